#include "proc/cgroup.h"

#include "base/err.h"
#include "base/io.h"
#include "base/parse.h"
#include "proc/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_BYTES = 16384, FIRST_OF_VERSION_2 = 1 /* number of mounts below */ };

/* The files of a cgroup version. */
struct version {
    const char *mount;
    const char *limit, *usage;
    const char *files; /* label in memory.stat of the reclaimable file cache */
};

static const struct version versions[] = {
    {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
     "total_inactive_file "},
    {"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "},
    {"/sys/fs/cgroup/unified", "memory.max", "memory.current", "inactive_file "},
};

static bool read_number(const char *dir, const char *name, const char *label, uint64_t *ret)
{
    char path[GP_PATH_SIZE + 64];
    char text[TEXT_BYTES];
    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    if (gp_io_read(path, text, sizeof(text)) <= 0)
        return false;
    if (label)
        return gp_proc_find_number(text, label, ret);
    text[strcspn(text, "\n")] = '\0';
    return gp_parse_u64(text, ret); /* fails for "max" */
}

/* The memory left in one group; UINT64_MAX if it has no limit. */
static uint64_t group_room(const char *dir, const void *ctx)
{
    const struct version *version = ctx;
    uint64_t limit;
    uint64_t usage;
    uint64_t files;
    if (!read_number(dir, version->limit, NULL, &limit) ||
        !read_number(dir, version->usage, NULL, &usage))
        return UINT64_MAX;
    if (read_number(dir, "memory.stat", version->files, &files))
        usage -= files < usage ? files : usage;
    return limit > usage ? limit - usage : 0;
}

static bool has_controller(const char *list, const char *name)
{
    const size_t n = strlen(name);
    for (const char *p = list; *p; p += strcspn(p, ","), p += *p == ',')
        if (strncmp(p, name, n) == 0 && (p[n] == ',' || p[n] == '\0'))
            return true;
    return false;
}

/* Finds the path of the group, in the line of a controller of version 1; NULL: of version 2. */
static bool find_group(char *text, const char *controller, const char **ret)
{
    char *line;
    while ((line = strsep(&text, "\n"))) {
        char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = '\0';
        *ret = path;
        *controllers++ = '\0';
        if (controller ? has_controller(controllers, controller) : strcmp(line, "0") == 0)
            return true;
    }
    return false;
}

/* The least that the group of the process and those above it, up to the root group, allow. */
static uint64_t least_of(const char *root, const char *mount, const char *group,
                         uint64_t (*of)(const char *dir, const void *ctx), const void *ctx)
{
    char name[GP_PATH_SIZE];
    char dir[GP_PATH_SIZE];
    uint64_t least = UINT64_MAX;
    size_t top = strlen(mount);
    int n = snprintf(name, sizeof(name), "%s%s", mount, group);
    if (n < 0 || (size_t)n >= sizeof(name) || strstr(group, "/.."))
        return least;
    /* Includes the mount itself: in a container it may be the container's group. */
    while (strlen(name) >= top && gp_io_path(dir, root, name)) {
        uint64_t here = of(dir, ctx);
        least = here < least ? here : least;
        *strrchr(name, '/') = '\0';
    }
    return least;
}

static uint64_t available(const char *root)
{
    char path[GP_PATH_SIZE];
    char text[TEXT_BYTES];
    uint64_t kib;
    return gp_io_path(path, root, "/proc/meminfo") && gp_io_read(path, text, sizeof(text)) > 0 &&
                   gp_proc_find_number(text, "MemAvailable:", &kib)
               ? kib * 1024
               : UINT64_MAX;
}

static bool read_cgroup(const char *root, uint32_t pid, char text[TEXT_BYTES])
{
    char name[64];
    char path[GP_PATH_SIZE];
    (void)snprintf(name, sizeof(name), "/proc/%u/cgroup", pid);
    return gp_io_path(path, root, name) && gp_io_read(path, text, TEXT_BYTES) > 0;
}

uint64_t gp_cgroup_memory_room(const char *root, uint32_t pid)
{
    char text[TEXT_BYTES];
    char copy[TEXT_BYTES];
    uint64_t room = available(root);
    if (!read_cgroup(root, pid, text))
        return room;
    for (size_t i = 0; i < GP_ARRAY_LEN(versions); i++) {
        const char *group;
        memcpy(copy, text, sizeof(copy));
        if (!find_group(copy, i < FIRST_OF_VERSION_2 ? "memory" : NULL, &group))
            continue;
        uint64_t here = least_of(root, versions[i].mount, group, group_room, &versions[i]);
        room = here < room ? here : room;
    }
    return room;
}

/* ---- CPUs ---- */

/* Thousandths of a CPU; UINT64_MAX: no quota. */
static uint64_t thousandths(uint64_t quota_us, uint64_t period_us)
{
    return quota_us > 0 && period_us > 0 && quota_us < UINT64_MAX / 1000
               ? quota_us * 1000 / period_us
               : UINT64_MAX;
}

/* "max 100000" or "250000 100000" */
static uint64_t quota_of_version_2(const char *dir, const void *ctx)
{
    char path[GP_PATH_SIZE + 64];
    char text[64];
    uint64_t quota_us;
    uint64_t period_us;
    (void)ctx;
    (void)snprintf(path, sizeof(path), "%s/cpu.max", dir);
    char *space = gp_io_read(path, text, sizeof(text)) > 0 ? strchr(text, ' ') : NULL;
    if (!space)
        return UINT64_MAX;
    *space++ = '\0';
    space[strcspn(space, "\n")] = '\0';
    return gp_parse_u64(text, &quota_us) && gp_parse_u64(space, &period_us)
               ? thousandths(quota_us, period_us)
               : UINT64_MAX;
}

static uint64_t quota_of_version_1(const char *dir, const void *ctx)
{
    uint64_t quota_us;
    uint64_t period_us;
    (void)ctx;
    return read_number(dir, "cpu.cfs_quota_us", NULL, &quota_us) &&
                   read_number(dir, "cpu.cfs_period_us", NULL, &period_us)
               ? thousandths(quota_us, period_us)
               : UINT64_MAX; /* -1: none */
}

double gp_cgroup_cpus(const char *root, uint32_t pid)
{
    static const struct {
        const char *controller, *mount;
        uint64_t (*quota)(const char *dir, const void *ctx);
    } places[] = {
        {"cpu", "/sys/fs/cgroup/cpu", quota_of_version_1},
        {NULL, "/sys/fs/cgroup", quota_of_version_2},
        {NULL, "/sys/fs/cgroup/unified", quota_of_version_2},
    };
    char text[TEXT_BYTES];
    char copy[TEXT_BYTES];
    uint64_t least = UINT64_MAX;
    if (!read_cgroup(root, pid, text))
        return 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(places); i++) {
        const char *group;
        memcpy(copy, text, sizeof(copy));
        if (!find_group(copy, places[i].controller, &group))
            continue;
        uint64_t here = least_of(root, places[i].mount, group, places[i].quota, NULL);
        least = here < least ? here : least;
    }
    return least < UINT64_MAX ? (double)least / 1000 : 0;
}

/* ---- device memory ---- */

/* The number of a region in a file of lines "region number"; "max" is UINT64_MAX. */
static bool read_region(const char *root, const char *folder, const char *file, const char *region,
                        uint64_t *ret)
{
    char name[GP_PATH_SIZE + 64];
    char path[GP_PATH_SIZE];
    char text[TEXT_BYTES];
    char *rest = text;
    char *line;
    size_t n = strlen(region);
    (void)snprintf(name, sizeof(name), "%s/%s", folder, file);
    if (!gp_io_path(path, root, name) || gp_io_read(path, text, sizeof(text)) <= 0)
        return false;
    while ((line = strsep(&rest, "\n")))
        if (strncmp(line, region, n) == 0 && line[n] == ' ') {
            *ret = UINT64_MAX;
            return strcmp(line + n + 1, "max") == 0 || gp_parse_u64(line + n + 1, ret);
        }
    return false;
}

static int add_region(struct gp_cgroup_regions *regions, const char *group, const char *region,
                      uint64_t current, uint64_t max)
{
    for (size_t i = 0; i < regions->count; i++)
        if (strcmp(regions->items[i].group, group) == 0 &&
            strcmp(regions->items[i].region, region) == 0)
            return 0;
    struct gp_cgroup_region *grown = realloc(regions->items, (regions->count + 1) * sizeof(*grown));
    if (!grown)
        return GP_ENOMEM;
    regions->items = grown;
    struct gp_cgroup_region *added = &grown[regions->count++];
    *added = (struct gp_cgroup_region){.current = current, .max = max};
    (void)snprintf(added->group, sizeof(added->group), "%s", group);
    (void)snprintf(added->region, sizeof(added->region), "%s", region);
    return 0;
}

/* Goes up to the first group with a limit; returns the process's own group if there is none. */
static int find_limit(const char *root, const char *mount, const char *folder, const char *region,
                      struct gp_cgroup_regions *regions)
{
    char name[GP_PATH_SIZE];
    size_t top = strlen(mount);
    uint64_t current = 0;
    uint64_t max;
    (void)snprintf(name, sizeof(name), "%s", folder);
    while (strlen(name) > top) {
        if (read_region(root, name, "dmem.max", region, &max) && max != UINT64_MAX &&
            read_region(root, name, "dmem.current", region, &current))
            return add_region(regions, name + top, region, current, max);
        *strrchr(name, '/') = '\0';
    }
    return read_region(root, folder, "dmem.current", region, &current)
               ? add_region(regions, folder + top, region, current, UINT64_MAX)
               : 0;
}

static int add_regions(const char *root, const char *mount, const char *group,
                       struct gp_cgroup_regions *regions)
{
    char folder[GP_PATH_SIZE];
    char name[GP_PATH_SIZE + 64];
    char path[GP_PATH_SIZE];
    char text[TEXT_BYTES];
    char *rest = text;
    char *line;
    int r = 0;
    int n = snprintf(folder, sizeof(folder), "%s%s", mount, group);
    (void)snprintf(name, sizeof(name), "%s/dmem.current", folder);
    if (n < 0 || (size_t)n >= sizeof(folder) || strstr(group, "/..") ||
        !gp_io_path(path, root, name) || gp_io_read(path, text, sizeof(text)) <= 0)
        return 0;
    while (r == 0 && (line = strsep(&rest, "\n"))) {
        line[strcspn(line, " ")] = '\0';
        if (*line)
            r = find_limit(root, mount, folder, line, regions);
    }
    return r;
}

int gp_cgroup_add_regions(const char *root, uint32_t pid, struct gp_cgroup_regions *regions)
{
    char text[TEXT_BYTES];
    const char *group;
    int r = 0;
    if (!read_cgroup(root, pid, text) || !find_group(text, NULL, &group) || strcmp(group, "/") == 0)
        return 0;
    for (size_t i = FIRST_OF_VERSION_2; r == 0 && i < GP_ARRAY_LEN(versions); i++)
        r = add_regions(root, versions[i].mount, group, regions);
    return r;
}

void gp_cgroup_regions_fini(struct gp_cgroup_regions *regions)
{
    free(regions->items);
    *regions = (struct gp_cgroup_regions){NULL, 0};
}
