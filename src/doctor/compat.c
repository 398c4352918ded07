#include "doctor/compat.h"

#include "doctor/version.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- drivers and CUDA ---- */

const struct gp_driver *gp_driver_find(const char *driver)
{
    const struct gp_driver *found = NULL;
    for (size_t i = 0; i < gp_driver_count && gp_drivers[i].branch <= gp_version_major(driver); i++)
        found = &gp_drivers[i];
    return found;
}

const char *gp_cuda_ceiling(const char *driver)
{
    const struct gp_driver *row = gp_driver_find(driver);
    return row ? row->cuda : "";
}

/* Whether a release belongs to the CUDA version asked for: 12.8.1 to 12.8. */
static bool is_release_of(const char *release, const char *cuda)
{
    const char *dot = strchr(cuda, '.');
    size_t n = dot ? (size_t)(dot + 1 - cuda) + strcspn(dot + 1, ".") : strlen(cuda);
    for (; n > 0; n--)
        if (*release++ != *cuda++)
            return false;
    return *release == '.';
}

const char *gp_cuda_own_driver(const char *cuda)
{
    for (size_t i = 0; i < gp_toolkit_count; i++)
        if (is_release_of(gp_toolkits[i].cuda, cuda))
            return gp_toolkits[i].driver;
    return "";
}

const char *gp_cuda_floor(const char *cuda)
{
    for (size_t i = 0; i < gp_cuda_major_count; i++)
        if (gp_cuda_majors[i].major == gp_version_major(cuda))
            return gp_cuda_majors[i].driver;
    return gp_cuda_own_driver(cuda);
}

bool gp_driver_reaches(const char *driver, const char *version)
{
    if (!strchr(driver, '.'))
        return gp_version_major(driver) >= gp_version_major(version);
    return gp_version_compare(driver, version) >= 0;
}

bool gp_driver_implements(const char *driver, const char *cuda)
{
    enum { FIRST_COMPATIBLE = 11 };
    const char *ceiling = gp_cuda_ceiling(driver), *floor = gp_cuda_floor(cuda);
    return gp_version_major(cuda) < FIRST_COMPATIBLE && ceiling[0] &&
           gp_version_major(driver) == gp_version_major(floor) &&
           gp_version_major(ceiling) == gp_version_major(cuda) &&
           gp_version_minor(ceiling) >= gp_version_minor(cuda);
}

/* ---- drivers and GPUs ---- */

static int compare_arch(const void *key, const void *row)
{
    const unsigned *capability = key;
    const struct gp_arch *arch = row;
    return (*capability > arch->compute_capability) - (*capability < arch->compute_capability);
}

const struct gp_arch *gp_arch_find(unsigned capability)
{
    return bsearch(&capability, gp_archs, gp_arch_count, sizeof(gp_archs[0]), compare_arch);
}

/* ---- code for GPUs ---- */

struct item {
    bool is_binary, is_ptx;
    unsigned capability;
    char suffix; /* 'a', 'f' or NUL */
};

/* Reads the number of an item, "90", "9.0", "120", and its suffix. */
static const char *read_number(const char *p, struct item *item)
{
    char *end;
    unsigned long number = strtoul(p, &end, 10);
    if (*end == '.' && isdigit((unsigned char)end[1])) {
        number = number * 10 + (unsigned long)(end[1] - '0');
        end += 2;
    }
    item->capability = number < 1000 ? (unsigned)number : 0;
    if (*end == 'a' || *end == 'f')
        item->suffix = *end++;
    if (strncmp(end, "+PTX", 4) == 0) {
        item->is_ptx = true;
        end += 4;
    }
    return end;
}

/* The next item of a list; *list moves past it. */
static bool next_item(const char **list, struct item *item)
{
    const char *p = *list;
    for (; *p; p++) {
        *item = (struct item){0};
        if (strncmp(p, "sm_", 3) == 0) {
            item->is_binary = true;
            p += 3;
        } else if (strncmp(p, "compute_", 8) == 0) {
            item->is_ptx = true;
            p += 8;
        } else {
            item->is_binary = true;
        }
        if (isdigit((unsigned char)*p)) {
            *list = read_number(p, item);
            return true;
        }
        if (!*p)
            break;
    }
    *list = p;
    return false;
}

static bool is_binary_for(const struct item *item, unsigned capability, bool is_integrated)
{
    if (!item->is_binary)
        return false;
    if (item->capability == capability)
        return true;
    return item->suffix != 'a' && !is_integrated && item->capability / 10 == capability / 10 &&
           item->capability < capability;
}

static bool is_ptx_for(const struct item *item, unsigned capability)
{
    if (!item->is_ptx || item->capability > capability)
        return false;
    switch (item->suffix) {
    case 'a':
        return item->capability == capability;
    case 'f':
        return item->capability / 10 == capability / 10;
    default:
        return true;
    }
}

enum gp_code gp_code_for(const char *list, unsigned capability)
{
    const struct gp_arch *arch = gp_arch_find(capability);
    enum gp_code code = GP_CODE_UNKNOWN;
    struct item item;
    while (capability > 0 && list && next_item(&list, &item)) {
        if (is_binary_for(&item, capability, arch && arch->is_integrated))
            return GP_CODE_NATIVE;
        enum gp_code this_one = is_ptx_for(&item, capability) ? GP_CODE_PTX : GP_CODE_NONE;
        if (this_one > code)
            code = this_one;
    }
    return code;
}

/* ---- the verdict ---- */

/* GP_FIT_WORKS, or the problem between a GPU and a driver. */
static enum gp_code_fit judge_driver(const char *driver, const struct gp_arch *arch,
                                     unsigned *branch)
{
    unsigned have = gp_version_major(driver);
    if (have > 0 && have < arch->first_branch) {
        *branch = arch->first_branch;
        return GP_FIT_DRIVER_TOO_OLD;
    }
    if (have > 0 && arch->last_branch > 0 && have > arch->last_branch) {
        *branch = arch->last_branch;
        return GP_FIT_DRIVER_TOO_NEW;
    }
    return GP_FIT_WORKS;
}

struct gp_judgement gp_judge(const char *driver, const char *cuda, const char *list,
                             unsigned capability)
{
    const struct gp_arch *arch = gp_arch_find(capability);
    struct gp_judgement j = {.fit = GP_FIT_WORKS, .driver = ""};
    driver = driver ? driver : "";
    j.code = gp_code_for(list, capability);
    if (arch)
        j.fit = judge_driver(driver, arch, &j.branch);
    if (j.fit != GP_FIT_WORKS)
        return j;
    if (j.code == GP_CODE_NONE) {
        j.fit = GP_FIT_NO_CODE;
        return j;
    }
    const char *needed = j.code == GP_CODE_PTX ? gp_cuda_own_driver(cuda) : gp_cuda_floor(cuda);
    if (!needed[0]) {
        j.fit = GP_FIT_UNKNOWN;
    } else if (arch && arch->last_branch > 0 && gp_version_major(needed) > arch->last_branch) {
        j = (struct gp_judgement){GP_FIT_NO_DRIVER, j.code, needed, arch->last_branch};
    } else if (driver[0] && !gp_driver_reaches(driver, needed)) {
        j.fit = GP_FIT_NEEDS_DRIVER;
        j.driver = needed;
    }
    return j;
}

void gp_judgement_words(const struct gp_judgement *j, unsigned capability, char *text, size_t size)
{
    unsigned major = capability / 10, minor = capability % 10;
    switch (j->fit) {
    case GP_FIT_WORKS:
        (void)snprintf(text, size, "works");
        break;
    case GP_FIT_DRIVER_TOO_OLD:
        (void)snprintf(text, size,
                       "needs another driver: this one is too old for a GPU of compute capability "
                       "%u.%u, which requires branch %u",
                       major, minor, j->branch);
        break;
    case GP_FIT_DRIVER_TOO_NEW:
        (void)snprintf(
            text, size,
            "needs another driver: branch %u is the last for GPUs of compute capability %u.%u",
            j->branch, major, minor);
        break;
    case GP_FIT_NO_CODE:
        (void)snprintf(text, size, "has no code for GPUs of compute capability %u.%u", major,
                       minor);
        break;
    case GP_FIT_NEEDS_DRIVER:
        (void)snprintf(text, size, "needs driver %s or newer", j->driver);
        break;
    case GP_FIT_NO_DRIVER:
        (void)snprintf(text, size,
                       "needs driver %s, but branch %u is the last for GPUs of compute capability "
                       "%u.%u",
                       j->driver, j->branch, major, minor);
        break;
    case GP_FIT_UNKNOWN:
        (void)snprintf(text, size, "is for an unknown CUDA version");
        break;
    }
}

enum gp_code gp_cudnn_code_for(const char *cudnn, unsigned cuda_major, unsigned capability)
{
    const struct gp_cudnn *row = NULL;
    for (size_t i = 0; i < gp_cudnn_count; i++)
        if (gp_cudnns[i].cuda_major == cuda_major &&
            gp_version_compare(gp_cudnns[i].cudnn, cudnn) <= 0)
            row = &gp_cudnns[i];
    if (!row || capability == 0)
        return GP_CODE_UNKNOWN;
    return capability >= row->first_capability && capability / 10 <= row->last_capability / 10
               ? GP_CODE_NATIVE
               : GP_CODE_NONE;
}
