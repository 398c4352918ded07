#include "proc/holders.h"

#include "base/err.h"
#include "base/io.h"
#include "base/parse.h"
#include "proc/cgroup.h"
#include "proc/files.h"
#include "proc/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

struct scan {
    const char *root; /* "" for none */
    int proc;
    struct gp_holders *found;
};

bool gp_proc_is_gpu_device(const char *path)
{
    static const char *const heads[] = {"/dev/nvidia", "/dev/dri/", "/dev/kfd", "/dev/dxg"};
    for (size_t i = 0; i < GP_ARRAY_LEN(heads); i++)
        if (strncmp(path, heads[i], strlen(heads[i])) == 0)
            return true;
    return false;
}

bool gp_holder_has(const struct gp_holder *holder, unsigned minor)
{
    return minor < GP_HOLDER_GPUS && holder->gpus[minor / 64] >> minor % 64 & 1;
}

/* ---- device files ---- */

static bool is_empty(const struct gp_holder *holder)
{
    uint64_t any = holder->has_others;
    for (size_t i = 0; i < GP_ARRAY_LEN(holder->gpus); i++)
        any |= holder->gpus[i];
    return any == 0;
}

static void add_path(const struct scan *scan, struct gp_holder *holder, const char *path)
{
    static const char head[] = "/dev/nvidia";
    size_t n = strlen(scan->root);
    uint64_t minor;
    if (strncmp(path, scan->root, n) == 0)
        path += n; /* device files below a root represent those of its machine */
    if (!gp_proc_is_gpu_device(path))
        return;
    if (strncmp(path, head, sizeof(head) - 1) == 0 &&
        gp_parse_u64(path + sizeof(head) - 1, &minor) && minor < GP_HOLDER_GPUS)
        holder->gpus[minor / 64] |= (uint64_t)1 << minor % 64;
    else
        holder->has_others = true;
}

/* False if its descriptors may not be read. */
static bool read_descriptors(const struct scan *scan, int dir, const char *name,
                             struct gp_holder *holder)
{
    char path[PATH_BYTES];
    const struct dirent *entry;
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
    bool permitted = list || errno != EACCES;
    if (!list && fd >= 0)
        (void)close(fd);
    while (list && permitted && (entry = readdir(list))) {
        if (entry->d_name[0] == '.')
            continue;
        ssize_t n = readlinkat(dirfd(list), entry->d_name, path, sizeof(path) - 1);
        permitted = n >= 0 || errno != EACCES;
        if (n <= 0)
            continue;
        path[n] = '\0';
        add_path(scan, holder, path);
    }
    if (list)
        (void)closedir(list);
    return permitted;
}

/* The first thread of a process may have exited while others run. It then looks like a zombie, and
 * its files must be read from the other threads. */
static void read_threads(const struct scan *scan, int dir, struct gp_holder *holder)
{
    char name[300];
    const struct dirent *entry;
    int fd = openat(dir, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
    if (!list && fd >= 0)
        (void)close(fd);
    while (list && is_empty(holder) && (entry = readdir(list))) {
        (void)snprintf(name, sizeof(name), "%s/fd", entry->d_name);
        if (entry->d_name[0] != '.')
            (void)read_descriptors(scan, dirfd(list), name, holder);
    }
    if (list)
        (void)closedir(list);
}

/* Parses lines "address permissions offset device inode path". False if there are none. */
static bool read_maps(const struct scan *scan, int dir, struct gp_holder *holder)
{
    char *line = NULL;
    size_t size = 0;
    bool any = false;
    int fd = openat(dir, "maps", O_RDONLY | O_CLOEXEC);
    FILE *maps = fd >= 0 ? fdopen(fd, "re") : NULL;
    if (!maps && fd >= 0)
        (void)close(fd);
    while (maps && getline(&line, &size, maps) > 0) {
        char *path = strchr(line, '/');
        any = true;
        if (!path)
            continue;
        path[strcspn(path, "\n")] = '\0';
        add_path(scan, holder, path);
    }
    if (maps)
        (void)fclose(maps);
    free(line);
    holder->is_mapped = !is_empty(holder);
    return any;
}

/* ---- orphans ---- */

/* Whether the process was orphaned: it was reparented to init or a subreaper (so its parent is not
 * in its group), and the leader of its group is gone. A service leads its own group, and the
 * processes that it starts have it as parent. */
static bool is_orphan(const struct scan *scan, uint32_t pid)
{
    struct gp_proc_stat own;
    struct gp_proc_stat other;
    if (!gp_proc_read_stat(scan->proc, pid, &own) || own.group == pid || own.group == 0)
        return false;
    bool adopted = own.ppid == 1 ||
                   (gp_proc_read_stat(scan->proc, own.ppid, &other) && other.group != own.group);
    return adopted && (!gp_proc_read_stat(scan->proc, own.group, &other) || other.state == 'Z');
}

/* ---- the scan ---- */

static int add_holder(struct gp_holders *found, const struct gp_holder *holder)
{
    struct gp_holder *list = realloc(found->list, (found->count + 1) * sizeof(*list));
    if (!list)
        return GP_ENOMEM;
    found->list = list;
    list[found->count++] = *holder;
    return 0;
}

static int look_at(struct scan *scan, uint32_t pid)
{
    char name[16];
    struct gp_holder holder = {.pid = pid};
    (void)snprintf(name, sizeof(name), "%u", pid);
    int dir = openat(scan->proc, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return 0;
    int r = 0;
    if (!read_descriptors(scan, dir, "fd", &holder))
        scan->found->hidden++;
    else if (is_empty(&holder) && !read_maps(scan, dir, &holder))
        read_threads(scan, dir, &holder);
    (void)close(dir);
    if (!is_empty(&holder)) {
        holder.is_orphan = is_orphan(scan, pid);
        r = add_holder(scan->found, &holder);
    }
    return r;
}

static int list_pids(const struct scan *scan, uint32_t **ret, size_t *ret_count)
{
    const struct dirent *entry;
    uint32_t *pids = NULL;
    size_t count = 0;
    int r = 0;
    int fd = openat(scan->proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir && fd >= 0)
        (void)close(fd);
    if (!dir)
        return GP_EIO;
    while (r == 0 && (entry = readdir(dir))) {
        uint64_t pid;
        if (!gp_parse_u64(entry->d_name, &pid) || pid > UINT32_MAX)
            continue;
        uint32_t *grown = realloc(pids, (count + 1) * sizeof(*pids));
        if (grown) {
            pids = grown;
            pids[count++] = (uint32_t)pid;
        } else {
            r = GP_ENOMEM;
        }
    }
    (void)closedir(dir);
    if (count > 0)
        qsort(pids, count, sizeof(*pids), gp_compare_u32);
    *ret = pids;
    *ret_count = count;
    return r;
}

/* Reads their identity, and drops those that have exited meanwhile. */
static int identify(struct gp_holders *found, const char *root)
{
    const unsigned want = GP_PROC_STAT | GP_PROC_USER | GP_PROC_COMMAND | GP_PROC_CONTAINER;
    size_t kept = 0;
    uint32_t *pids = calloc(found->count + 1, sizeof(*pids));
    found->reader = gp_proc_reader_new(root);
    for (size_t i = 0; pids && i < found->count; i++)
        pids[i] = found->list[i].pid;
    const struct gp_proc_infos *infos =
        pids && found->reader ? gp_proc_read(found->reader, want, pids, found->count) : NULL;
    free(pids);
    if (!infos)
        return GP_ENOMEM;
    for (size_t i = 0; i < found->count; i++) {
        found->list[i].info = gp_proc_find(infos, found->list[i].pid);
        if (!found->list[i].info || !found->list[i].info->exists)
            continue;
        if (gp_cgroup_add_regions(root, found->list[i].pid, &found->regions) < 0)
            return GP_ENOMEM;
        found->list[kept++] = found->list[i];
    }
    found->count = kept;
    return 0;
}

/* The initial pid namespace has a fixed inode number. */
bool gp_proc_is_inside(const char *root)
{
    char path[GP_PATH_SIZE];
    char name[64];
    ssize_t n =
        gp_io_path(path, root, "/proc/self/ns/pid") ? readlink(path, name, sizeof(name) - 1) : -1;
    name[n > 0 ? n : 0] = '\0';
    return n > 0 && strcmp(name, "pid:[4026531836]") != 0;
}

int gp_holders_read(const char *root, struct gp_holders *ret)
{
    char path[GP_PATH_SIZE];
    struct scan scan = {.root = root ? root : "", .proc = -1, .found = ret};
    uint32_t *pids = NULL;
    size_t count = 0;
    *ret = (struct gp_holders){.list = NULL};
    if (gp_io_path(path, root, "/proc"))
        scan.proc = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = scan.proc >= 0 ? list_pids(&scan, &pids, &count) : GP_EIO;
    for (size_t i = 0; r == 0 && i < count; i++)
        r = look_at(&scan, pids[i]);
    if (r == 0)
        r = identify(ret, root);
    ret->is_inside = r == 0 && gp_proc_is_inside(root);
    if (scan.proc >= 0)
        (void)close(scan.proc);
    free(pids);
    if (r < 0)
        gp_holders_fini(ret);
    return r;
}

void gp_holders_fini(struct gp_holders *holders)
{
    gp_proc_reader_free(holders->reader);
    gp_cgroup_regions_fini(&holders->regions);
    free(holders->list);
    *holders = (struct gp_holders){.list = NULL};
}
