#include "sim/hosttree.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "sim/hosttree_internal.h"
#include "sim/state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FRESH_MS = 20 }; /* what is younger is not written again */

/* ------------------------------------------------------------------------- what moves */

static void put_cpu(struct sim_hosttree *tree, double pct, double up_s)
{
    const struct sim_host *host = &tree->live->machine->host;
    struct gp_strbuf sb = GP_STRBUF_INIT(SIM_TREE_TEXT_MAX);
    double most = 98.0 * (double)host->cpus;
    uint64_t busy = sim_tree_ticks_after(tree, up_s, pct < most ? pct : most, 0);
    uint64_t all = (uint64_t)(up_s * sim_tree_ticks_per_s() * (double)host->cpus);
    gp_strbuf_addf(&sb, "cpu  %" PRIu64 " 0 %" PRIu64 " %" PRIu64 " 0 0 0 0 0 0\n", busy - busy / 8,
                   busy / 8, all > busy ? all - busy : 0);
    for (uint64_t i = 0; i < host->cpus; i++)
        gp_strbuf_addf(&sb, "cpu%" PRIu64 " %" PRIu64 " 0 0 %" PRIu64 " 0 0 0 0 0 0\n", i,
                       busy / host->cpus, all > busy ? (all - busy) / host->cpus : 0);
    gp_strbuf_addf(&sb, "btime %" PRIu64 "\n", tree->boot_s);
    sim_tree_built(tree, "/proc", "stat", &sb);
    gp_strbuf_addf(&sb, "%.2f %.2f\n", up_s, (double)(all - busy) / sim_tree_ticks_per_s());
    sim_tree_built(tree, "/proc", "uptime", &sb);
    double load = pct / 100 * (1 + 0.05 * sim_live_drift(tree->live, 2));
    gp_strbuf_addf(&sb, "%.2f %.2f %.2f %u/2048 4190999\n", load, pct / 100, pct / 100,
                   (unsigned int)load + 1);
    sim_tree_built(tree, "/proc", "loadavg", &sb);
    gp_strbuf_fini(&sb);
}

static void put_memory(struct sim_hosttree *tree, uint64_t used)
{
    const struct sim_host *host = &tree->live->machine->host;
    struct gp_strbuf sb = GP_STRBUF_INIT(SIM_TREE_TEXT_MAX);
    uint64_t free_kib = used < host->memory_bytes ? (host->memory_bytes - used) / 1024 : 0;
    gp_strbuf_addf(&sb,
                   "MemTotal: %" PRIu64 " kB\nMemFree: %" PRIu64 " kB\nMemAvailable: %" PRIu64
                   " kB\nSwapTotal: %" PRIu64 " kB\nSwapFree: %" PRIu64 " kB\n",
                   host->memory_bytes / 1024, free_kib / 2, free_kib, host->swap_bytes / 1024,
                   host->swap_bytes / 1024);
    sim_tree_built(tree, "/proc", "meminfo", &sb);
    gp_strbuf_fini(&sb);
}

static void put_moving(struct sim_hosttree *tree)
{
    const struct sim_host *host = &tree->live->machine->host;
    struct sim_presents all = sim_tree_presents(tree);
    uint64_t used = host->memory_used_bytes;
    double pct = (double)host->cpu_pct;
    for (size_t i = 0; i < all.count; i++) {
        if (!all.items[i].like)
            continue;
        used += sim_tree_resident_bytes(tree, &all.items[i]);
        pct += (double)all.items[i].like->cpu_pct;
    }
    sim_tree_put_processes(tree, &all);
    put_cpu(tree, pct, sim_tree_now_s() - (double)tree->boot_s);
    put_memory(tree, used);
    free(all.items);
}

/* ------------------------------------------------------------------------- the directory */

/* Of an earlier process of the same machine; 0: none. */
static uint64_t known_boot(const struct sim_hosttree *tree)
{
    char text[65536];
    const char *at = gp_io_read_at(tree->dir, "proc/stat", text, sizeof(text)) > 0
                         ? strstr(text, "\nbtime ")
                         : NULL;
    return at ? strtoull(at + strlen("\nbtime "), NULL, 10) : 0;
}

/* Whether what does not move is as it was left, by a program of the same version. */
static bool is_known(struct sim_hosttree *tree, char stamp[80])
{
    char text[80], folder[32];
    const struct sim_host *host = &tree->live->machine->host;
    tree->digest = UINT64_C(0xcbf29ce484222325);
    tree->is_digest = true;
    sim_tree_put_fixed(tree);
    for (size_t i = 0; i < host->process_count; i++) {
        unsigned int pid = (unsigned int)host->processes[i].pid;
        (void)snprintf(folder, sizeof(folder), "/proc/%u", pid);
        sim_tree_put_identity(tree, folder, pid, &host->processes[i]);
    }
    tree->is_digest = false;
    (void)snprintf(stamp, 80, "%s %016" PRIx64 " %" PRIu64 "\n", GPULSE_VERSION, tree->digest,
                   host->uptime_s);
    return gp_io_read_at(tree->dir, ".stamp", text, sizeof(text)) > 0 && strcmp(text, stamp) == 0;
}

static int open_folder(struct sim_hosttree *tree, const char *spec, struct gp_err *err)
{
    char place[GP_PATH_SIZE], name[SIM_STATE_NAME_SIZE], real[GP_PATH_SIZE];
    int dir;
    int r = sim_state_directory(place, &dir, err);
    if (r < 0)
        return r;
    sim_state_name(spec, tree->live->still ? "still" : "host", name);
    bool ok = (mkdirat(dir, name, 0700) == 0 || errno == EEXIST) && realpath(place, real);
    if (ok)
        tree->dir = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int saved = errno;
    (void)close(dir);
    if (tree->dir < 0)
        return gp_err_system(err, saved, GP_EIO, "cannot open '%s/%s'", place, name);
    int n = snprintf(tree->path, sizeof(tree->path), "%s/%s", real, name);
    return n > 0 && n < GP_PATH_SIZE ? GP_OK : gp_err_set(err, GP_EIO, "the path is too long");
}

static void delay(struct sim_hosttree *tree)
{
    atomic_store(&tree->due_ns, gp_clock_mono_ns() + FRESH_MS * GP_NS_PER_MS);
}

/* One thread of one process writes. */
static void lock(struct sim_hosttree *tree)
{
    (void)pthread_mutex_lock(&tree->lock);
    while (flock(tree->dir, LOCK_EX) < 0 && errno == EINTR)
        ;
}

static bool try_lock(struct sim_hosttree *tree)
{
    if (pthread_mutex_trylock(&tree->lock) != 0)
        return false;
    if (flock(tree->dir, LOCK_EX | LOCK_NB) == 0)
        return true;
    (void)pthread_mutex_unlock(&tree->lock);
    return false;
}

static void unlock(struct sim_hosttree *tree)
{
    (void)flock(tree->dir, LOCK_UN);
    (void)pthread_mutex_unlock(&tree->lock);
}

int sim_hosttree_update(struct sim_hosttree *tree, struct gp_err *err)
{
    char stamp[80];
    lock(tree);
    bool known = is_known(tree, stamp) && tree->boot_s > 0;
    if (!known) {
        sim_tree_clear(tree->dir, ".", false);
        tree->boot_s = gp_clock_wall_ns() / GP_NS_PER_S - tree->live->machine->host.uptime_s;
        (void)is_known(tree, stamp); /* the stamp of what depends on that time, too */
        sim_tree_put_fixed(tree);
    }
    put_moving(tree);
    if (!known && tree->error == 0)
        sim_tree_text(tree, "/.stamp", stamp);
    unlock(tree);
    delay(tree);
    return tree->error == 0
               ? GP_OK
               : gp_err_system(err, -tree->error, GP_EIO, "cannot write below '%s'", tree->path);
}

int sim_hosttree_open(const char *spec, const struct sim_live *live, struct sim_hosttree **ret,
                      struct gp_err *err)
{
    struct sim_hosttree *tree = calloc(1, sizeof(*tree));
    if (!tree)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    tree->live = live;
    tree->dir = -1;
    (void)pthread_mutex_init(&tree->lock, NULL);
    int r = open_folder(tree, spec, err);
    if (r < 0) {
        sim_hosttree_close(tree);
        return r;
    }
    tree->boot_s = known_boot(tree);
    delay(tree);
    *ret = tree;
    return GP_OK;
}

void sim_hosttree_close(struct sim_hosttree *tree)
{
    if (!tree)
        return;
    if (tree->dir >= 0)
        (void)close(tree->dir);
    (void)pthread_mutex_destroy(&tree->lock);
    free(tree);
}

const char *sim_hosttree_path(const struct sim_hosttree *tree)
{
    return tree->path;
}

int sim_hosttree_open_device(const struct sim_hosttree *tree, const struct sim_device *device)
{
    char path[32];
    (void)snprintf(path, sizeof(path), "dev/nvidia%u", sim_tree_minor(device));
    return openat(tree->dir, path, O_RDWR | O_CLOEXEC);
}

/* While another thread or process writes, this one goes on. */
void sim_hosttree_refresh(struct sim_hosttree *tree)
{
    unsigned long long due = tree ? atomic_load_explicit(&tree->due_ns, memory_order_relaxed) : 0;
    if (!tree || gp_clock_mono_ns() < due ||
        !atomic_compare_exchange_strong(&tree->due_ns, &due, ULLONG_MAX))
        return;
    if (try_lock(tree)) {
        put_moving(tree);
        unlock(tree);
    }
    delay(tree);
}

void sim_hosttree_show(struct sim_hosttree *tree, const struct sim_process *processes, size_t count)
{
    bool all = true;
    for (size_t i = 0; tree && all && i < count; i++) {
        char path[32];
        struct stat st;
        (void)snprintf(path, sizeof(path), "proc/%u", processes[i].pid);
        all = fstatat(tree->dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
    }
    if (all)
        return;
    lock(tree);
    put_moving(tree);
    unlock(tree);
}
