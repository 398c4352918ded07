/* The processes of a host: which ones exist, and their directories below /proc. */
#include "sim/hosttree_internal.h"

#include "base/clock.h"
#include "base/parse.h"
#include "base/strbuf.h"
#include "sim/state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    NAME_KEPT = 15, /* the kernel keeps this much of a program's name */
    ANCESTORS_MAX = 64,
};

/* ------------------------------------------------------------------------- who exists */

static int compare_presents(const void *a, const void *b)
{
    unsigned int x = ((const struct sim_present *)a)->pid, y = ((const struct sim_present *)b)->pid;
    return (x > y) - (x < y);
}

static bool has(const struct sim_presents *all, unsigned int pid)
{
    for (size_t i = 0; i < all->count; i++)
        if (all->items[i].pid == pid)
            return true;
    return false;
}

/* The simulated ones come first, so a real process that has the pid of one is left out. */
static void add(struct sim_hosttree *tree, struct sim_presents *all, const struct sim_present *one)
{
    struct sim_present *grown =
        has(all, one->pid) ? NULL : realloc(all->items, (all->count + 1) * sizeof(*grown));
    if (grown) {
        all->items = grown;
        grown[all->count++] = *one;
    } else if (!has(all, one->pid)) {
        tree->error = -ENOMEM;
    }
}

double sim_tree_now_s(void)
{
    uint64_t ns = gp_clock_wall_ns();
    return (double)ns * 1e-9;
}

double sim_tree_ticks_per_s(void)
{
    long ticks = sysconf(_SC_CLK_TCK);
    return (double)ticks;
}

/* A process of a workload is there as often as the workload is. */
static void add_like(struct sim_hosttree *tree, const struct sim_host_process *like,
                     struct sim_presents *all)
{
    const struct sim_machine *machine = tree->live->machine;
    double born_s = (double)tree->boot_s + (double)machine->host.uptime_s - (double)like->age_s;
    struct sim_present one = {.pid = (unsigned int)like->pid, .like = like, .born_s = born_s};
    bool is_workload = false;
    for (size_t d = 0; d < machine->device_count; d++)
        for (size_t i = 0; i < machine->devices[d].process_count; i++) {
            const struct sim_process *process = &machine->devices[d].processes[i];
            struct sim_present copy = one;
            uint64_t start_s;
            if (process->like_pid != like->pid)
                continue;
            is_workload = true;
            if (!sim_live_is_running(tree->live, process, &copy.pid, &start_s))
                continue;
            if (start_s > 0)
                copy.born_s = (double)start_s;
            add(tree, all, &copy);
        }
    if (!is_workload)
        add(tree, all, &one);
}

static unsigned int parent_of(unsigned int pid)
{
    char path[32], text[1024];
    unsigned int ppid = 0;
    (void)snprintf(path, sizeof(path), "/proc/%u/stat", pid);
    const char *close = gp_io_read(path, text, sizeof(text)) > 0 ? strrchr(text, ')') : NULL;
    return close && sscanf(close, ") %*c %u", &ppid) == 1 ? ppid : 0;
}

/* Real processes that use a simulated GPU or only have it open, and their parents. */
static void add_real(struct sim_hosttree *tree, struct sim_presents *all)
{
    struct sim_job job;
    for (size_t slot = 0; sim_state_has_jobs(tree->live->state) && slot < SIM_MAX_JOBS; slot++) {
        unsigned int pid = sim_state_job_or_heir(tree->live->state, slot, &job) ? job.pid : 0;
        for (int i = 0; pid > 0 && i < ANCESTORS_MAX && !has(all, pid); i++) {
            add(tree, all, &(struct sim_present){.pid = pid});
            pid = parent_of(pid);
        }
    }
}

struct sim_presents sim_tree_presents(struct sim_hosttree *tree)
{
    const struct sim_host *host = &tree->live->machine->host;
    struct sim_presents all = {NULL, 0};
    for (size_t i = 0; i < host->process_count; i++)
        add_like(tree, &host->processes[i], &all);
    add_real(tree, &all);
    if (all.count > 0)
        qsort(all.items, all.count, sizeof(*all.items), compare_presents);
    return all;
}

/* ------------------------------------------------------------------------- processes */

unsigned int sim_tree_minor(const struct sim_device *device)
{
    const struct sim_value *minor = &device->answers[SIM_MINOR];
    return minor->code == NVML_SUCCESS ? (unsigned int)minor->number : device->index;
}

/* The device files that a process has open: those of its GPUs. */
static void put_descriptors(struct sim_hosttree *tree, const char *folder,
                            const struct sim_host_process *p)
{
    static const char *const common[] = {"/dev/null", "/dev/nvidiactl", "/dev/nvidia-uvm"};
    const struct sim_machine *machine = tree->live->machine;
    char path[GP_PATH_SIZE], target[32];
    unsigned int fd = 0;
    for (size_t d = 0; d < machine->device_count; d++)
        for (size_t i = 0; i < machine->devices[d].process_count; i++) {
            const struct sim_device *device = &machine->devices[d];
            if (device->processes[i].like_pid != p->pid)
                continue;
            for (; fd < GP_ARRAY_LEN(common); fd++) {
                (void)snprintf(path, sizeof(path), "%s/fd/%u", folder, fd);
                sim_tree_link(tree, path, common[fd]);
            }
            (void)snprintf(path, sizeof(path), "%s/fd/%u", folder, fd++);
            (void)snprintf(target, sizeof(target), "/dev/nvidia%u", sim_tree_minor(device));
            sim_tree_link(tree, path, target);
        }
    if (fd > 0)
        return;
    (void)snprintf(path, sizeof(path), "%s/fd/0", folder);
    sim_tree_link(tree, path, common[0]);
}

uint64_t sim_tree_ticks_after(const struct sim_hosttree *tree, double seconds, double pct,
                              unsigned int channel)
{
    double swung_s = seconds + 0.15 * sim_live_drift(tree->live, channel);
    double ticks = swung_s > 0 ? swung_s * sim_tree_ticks_per_s() * pct / 100 : 0;
    return (uint64_t)ticks;
}

uint64_t sim_tree_resident_bytes(const struct sim_hosttree *tree, const struct sim_present *one)
{
    double drift = one->like->cpu_pct > 0 ? sim_live_drift(tree->live, one->pid + 1) : 0;
    return (uint64_t)((double)one->like->rss_bytes * (1 + 0.01 * drift));
}

/* What moves. */
static void put_stat(struct sim_hosttree *tree, const char *folder, const struct sim_present *one)
{
    const struct sim_host_process *p = one->like;
    struct gp_strbuf sb = GP_STRBUF_INIT(SIM_TREE_TEXT_MAX);
    uint64_t rss = sim_tree_resident_bytes(tree, one);
    double age_s = sim_tree_now_s() - one->born_s;
    double start_s = one->born_s - (double)tree->boot_s;
    uint64_t ticks = sim_tree_ticks_after(tree, age_s, (double)p->cpu_pct, one->pid);
    uint64_t start = start_s > 0 ? (uint64_t)(start_s * sim_tree_ticks_per_s() + 0.5) : 0;
    uint64_t group = p->group == p->pid ? one->pid : p->group;
    gp_strbuf_addf(&sb, "%u (%.*s) %s %" PRIu64 " %" PRIu64 " %" PRIu64, one->pid, NAME_KEPT,
                   p->name, p->state, p->ppid, group, group);
    gp_strbuf_addf(&sb, " 0 -1 4194304 0 0 0 0 %" PRIu64 " %" PRIu64 " 0 0 20 0 %" PRIu64,
                   ticks - ticks / 8, ticks / 8, p->threads);
    gp_strbuf_addf(&sb, " 0 %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", start ? start : 1, 4 * rss,
                   rss / (uint64_t)sysconf(_SC_PAGESIZE));
    sim_tree_built(tree, folder, "stat", &sb);
    gp_strbuf_fini(&sb);
}

static void put_status(struct sim_hosttree *tree, const char *folder, unsigned int pid,
                       const struct sim_host_process *p)
{
    static const char *const ids[] = {"Uid", "Gid"};
    struct gp_strbuf sb = GP_STRBUF_INIT(SIM_TREE_TEXT_MAX);
    uint64_t kib = p->rss_bytes / 1024;
    gp_strbuf_addf(&sb, "Name:\t%.*s\nState:\t%s\nTgid:\t%u\nPid:\t%u\nPPid:\t%" PRIu64 "\n",
                   NAME_KEPT, p->name, p->state, pid, pid, p->ppid);
    for (size_t i = 0; i < GP_ARRAY_LEN(ids); i++)
        gp_strbuf_addf(&sb, "%s:\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n", ids[i],
                       p->uid, p->uid, p->uid, p->uid);
    gp_strbuf_addf(&sb, "NSpid:\t%u", pid);
    if (p->ns_pid != p->pid)
        gp_strbuf_addf(&sb, "\t%" PRIu64, p->ns_pid);
    gp_strbuf_addf(&sb, "\nVmSize:\t%" PRIu64 " kB\nVmLck:\t0 kB\nVmRSS:\t%" PRIu64 " kB\n",
                   4 * kib, kib);
    gp_strbuf_addf(&sb, "RssShmem:\t%" PRIu64 " kB\nVmSwap:\t0 kB\nThreads:\t%" PRIu64 "\n",
                   kib / 8, p->threads);
    gp_strbuf_addf(
        &sb, "voluntary_ctxt_switches:\t%" PRIu64 "\nnonvoluntary_ctxt_switches:\t%" PRIu64 "\n",
        p->age_s * 19, p->age_s);
    sim_tree_built(tree, folder, "status", &sb);
    gp_strbuf_addf(&sb, "rchar: 0\nread_bytes: %" PRIu64 "\nwrite_bytes: %" PRIu64 "\n",
                   p->rss_bytes, p->rss_bytes / 16);
    sim_tree_built(tree, folder, "io", &sb);
    gp_strbuf_fini(&sb);
}

void sim_tree_put_identity(struct sim_hosttree *tree, const char *folder, unsigned int pid,
                           const struct sim_host_process *p)
{
    char path[64];
    struct gp_strbuf sb = GP_STRBUF_INIT(SIM_TREE_TEXT_MAX);
    gp_strbuf_add(&sb, p->command.text, p->command.size);
    sim_tree_built(tree, folder, "cmdline", &sb);
    gp_strbuf_addf(&sb, "%.*s\n", NAME_KEPT, p->name);
    sim_tree_built(tree, folder, "comm", &sb);
    gp_strbuf_add(&sb, p->environment.text, p->environment.size);
    sim_tree_built(tree, folder, "environ", &sb);
    gp_strbuf_addf(&sb, "0::%s\n", p->cgroup);
    sim_tree_built(tree, folder, "cgroup", &sb);
    gp_strbuf_adds(&sb, "0\n");
    sim_tree_built(tree, folder, "oom_score", &sb);
    gp_strbuf_fini(&sb);
    (void)snprintf(path, sizeof(path), "%s/cwd", folder);
    sim_tree_link(tree, path, p->cwd);
    (void)snprintf(path, sizeof(path), "%s/exe", folder);
    sim_tree_link(tree, path, p->command.text);
    put_descriptors(tree, folder, p);
    put_status(tree, folder, pid, p);
}

/* Removes the processes that have ended, and notes which directories are there. */
static void sweep(struct sim_hosttree *tree, const struct sim_presents *all, bool *is_there)
{
    const struct dirent *entry;
    int fd = openat(tree->dir, "proc", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
    if (!list && fd >= 0)
        (void)close(fd);
    while (list && (entry = readdir(list))) {
        uint64_t pid;
        if (!gp_parse_u64(entry->d_name, &pid))
            continue;
        struct sim_present key = {.pid = (unsigned int)pid};
        const struct sim_present *one =
            all->count > 0 ? bsearch(&key, all->items, all->count, sizeof(key), compare_presents)
                           : NULL;
        if (one && (entry->d_type == DT_LNK) == !one->like)
            is_there[one - all->items] = true;
        else if (unlinkat(dirfd(list), entry->d_name, 0) != 0)
            sim_tree_clear(dirfd(list), entry->d_name, true);
    }
    if (list)
        (void)closedir(list);
}

void sim_tree_put_processes(struct sim_hosttree *tree, const struct sim_presents *all)
{
    bool *is_there = calloc(all->count + 1, sizeof(*is_there));
    if (is_there)
        sweep(tree, all, is_there);
    for (size_t i = 0; is_there && i < all->count; i++) {
        const struct sim_present *one = &all->items[i];
        char path[32];
        (void)snprintf(path, sizeof(path), "/proc/%u", one->pid);
        if (!is_there[i] && !one->like)
            sim_tree_link(tree, path, path);
        if (!is_there[i] && one->like)
            sim_tree_put_identity(tree, path, one->pid, one->like);
        if (one->like && (!is_there[i] || one->like->cpu_pct > 0))
            put_stat(tree, path, one);
    }
    free(is_there);
}
