#include "doctor/readers/packages.h"

#include "base/arena.h"
#include "doctor/files.h"
#include "doctor/lines.h"
#include "doctor/version.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Names get into suggested commands: what has other characters is no package. */
static bool is_name(const char *name)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "+._@-";
    return name[strspn(name, plain)] == '\0';
}

/* ---- dpkg ---- */

/* The value of "Key: value"; false if the line has another key. */
static bool field(const char *line, size_t length, const char *key, char *ret, size_t size)
{
    size_t n = strlen(key);
    if (length < n + 2 || memcmp(line, key, n) != 0 || line[n] != ':')
        return false;
    const char *value = line + n + 1;
    while (value < line + length && *value == ' ')
        value++;
    (void)snprintf(ret, size, "%.*s", (int)(line + length - value), value);
    return true;
}

bool gp_packages_next(struct gp_lines *lines, struct gp_package *ret)
{
    char status[64];
    const char *line;
    size_t n;
    *ret = (struct gp_package){0};
    while (gp_lines_next(lines, &line, &n)) {
        if (n == 0 && ret->name[0] && is_name(ret->name))
            return true;
        if (n == 0) {
            *ret = (struct gp_package){0};
        } else if (field(line, n, "Status", status, sizeof(status))) {
            const char *word = strrchr(status, ' '); /* "install ok half-configured" */
            ret->is_held = strncmp(status, "hold ", 5) == 0;
            (void)snprintf(ret->state, sizeof(ret->state), "%.23s", word ? word + 1 : status);
        } else if (!field(line, n, "Package", ret->name, sizeof(ret->name)) &&
                   !field(line, n, "Version", ret->version, sizeof(ret->version))) {
            (void)field(line, n, "Architecture", ret->arch, sizeof(ret->arch));
        }
    }
    return ret->name[0] && is_name(ret->name);
}

/* ---- pacman ---- */

bool gp_packages_of_folder(const char *folder, struct gp_package *ret)
{
    const char *release = strrchr(folder, '-');
    const char *version = release;
    while (version && version > folder && version[-1] != '-')
        version--;
    if (!release || version <= folder + 1 || version == release)
        return false;
    *ret = (struct gp_package){.state = "installed"};
    (void)snprintf(ret->name, sizeof(ret->name), "%.*s", (int)(version - 1 - folder), folder);
    (void)snprintf(ret->version, sizeof(ret->version), "%.63s", version);
    return is_name(ret->name);
}

unsigned gp_packages_branch(const char *name)
{
    for (const char *p = strchr(name, '-'); p; p = strchr(p + 1, '-')) {
        size_t n = strspn(p + 1, "0123456789");
        if (n == 3 && (p[4] == '\0' || p[4] == '-'))
            return (unsigned)strtoul(p + 1, NULL, 10);
    }
    return 0;
}

bool gp_packages_is_open(const char *name)
{
    static const char word[] = "-open";
    for (const char *p = strstr(name, word); p; p = strstr(p + 1, word))
        if (p[sizeof(word) - 1] == '\0' || p[sizeof(word) - 1] == '-')
            return true;
    return false;
}

bool gp_packages_is_broken(const struct gp_package *package)
{
    static const char *const states[] = {"half-configured", "half-installed", "unpacked"};
    for (size_t i = 0; i < GP_ARRAY_LEN(states); i++)
        if (strcmp(package->state, states[i]) == 0)
            return true;
    return false;
}

bool gp_packages_is_transitional(const struct gp_package *package)
{
    const char *colon = strchr(package->version, ':');
    unsigned branch = gp_packages_branch(package->name);
    unsigned version = gp_version_major(colon ? colon + 1 : package->version);
    return branch > 0 && version > branch;
}

/* ---- both ---- */

static bool begins_with(const char *name, const char *const *words)
{
    for (; *words; words++)
        if (strncmp(name, *words, strlen(*words)) == 0)
            return true;
    return false;
}

static long read_dpkg(const void *data, size_t size, const char *const *words,
                      struct gp_package *packages)
{
    struct gp_lines lines = gp_lines_of(data, size);
    long count = 0;
    while (count < GP_PACKAGES && gp_packages_next(&lines, &packages[count]))
        count += begins_with(packages[count].name, words);
    return count;
}

static long read_pacman(char **folders, long folder_count, const char *const *words,
                        struct gp_package *packages)
{
    long count = 0;
    for (long i = 0; i < folder_count && count < GP_PACKAGES; i++)
        count +=
            begins_with(folders[i], words) && gp_packages_of_folder(folders[i], &packages[count]);
    return count;
}

long gp_packages_read(const struct gp_files *files, struct gp_arena *arena,
                      const char *const *words, struct gp_package **ret)
{
    static const char status[] = "/var/lib/dpkg/status";
    const void *data;
    size_t size;
    char **folders;
    struct gp_package *packages = gp_arena_alloc(arena, GP_PACKAGES, sizeof(*packages));
    if (!packages)
        return -ENOMEM;
    *ret = packages;
    int fd = gp_files_open_file(files, status);
    if (fd < 0 && fd != -ENOENT)
        return fd;
    if (fd >= 0)
        (void)close(fd);
    if (fd >= 0 && gp_files_map(files, status, &data, &size)) {
        long count = read_dpkg(data, size, words, packages);
        (void)munmap((void *)(uintptr_t)data, size);
        return count;
    }
    long n = gp_files_list(files, arena, "/var/lib/pacman/local", &folders);
    return n < 0 ? n : read_pacman(folders, n, words, packages);
}

const struct gp_package *gp_packages_installed(const struct gp_files *files, struct gp_arena *arena,
                                               const char *name)
{
    const char *const words[] = {name, NULL};
    struct gp_package *packages;
    long n = gp_packages_read(files, arena, words, &packages);
    for (long i = 0; i < n; i++)
        if (strcmp(packages[i].name, name) == 0 && strcmp(packages[i].state, "installed") == 0)
            return &packages[i];
    return NULL;
}
