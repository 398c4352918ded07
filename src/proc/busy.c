#include "proc/busy.h"

#include "base/parse.h"
#include "proc/files.h"

#include <dirent.h>
#include <stdlib.h>

enum { DEPTH_MAX = 256 };

struct entry {
    uint32_t pid, parent;
    uint64_t ticks;
};

struct entries {
    struct entry *items;
    size_t count, room;
};

static bool add(struct entries *all, const struct entry *entry)
{
    if (all->count == all->room) {
        size_t room = all->room ? 2 * all->room : 512;
        struct entry *grown = realloc(all->items, room * sizeof(*grown));
        if (!grown)
            return false;
        all->items = grown;
        all->room = room;
    }
    all->items[all->count++] = *entry;
    return true;
}

static void read_all(struct entries *all)
{
    struct dirent *dirent;
    DIR *proc = opendir("/proc");
    while (proc && (dirent = readdir(proc))) {
        struct gp_proc_stat stat;
        uint64_t pid;
        if (!gp_parse_u64(dirent->d_name, &pid) ||
            !gp_proc_read_stat(dirfd(proc), (uint32_t)pid, &stat))
            continue;
        const struct entry entry = {(uint32_t)pid, stat.ppid, stat.user_ticks + stat.system_ticks};
        if (!add(all, &entry))
            break;
    }
    if (proc)
        (void)closedir(proc);
}

static int by_pid(const void *a, const void *b)
{
    const struct entry *x = a;
    const struct entry *y = b;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

static bool comes_from(const struct entries *all, const struct entry *entry, uint32_t pid)
{
    for (int depth = 0; entry && depth < DEPTH_MAX; depth++) {
        const struct entry parent = {.pid = entry->parent};
        if (entry->parent == pid)
            return true;
        entry = bsearch(&parent, all->items, all->count, sizeof(parent), by_pid);
    }
    return false;
}

uint64_t gp_proc_descendants_cpu_ns(uint32_t pid)
{
    struct entries all = {.items = NULL};
    uint64_t ticks = 0;
    read_all(&all);
    if (all.count > 0)
        qsort(all.items, all.count, sizeof(*all.items), by_pid);
    for (size_t i = 0; i < all.count; i++)
        if (comes_from(&all, &all.items[i], pid))
            ticks += all.items[i].ticks;
    free(all.items);
    return gp_proc_ticks_to_ns(ticks);
}
