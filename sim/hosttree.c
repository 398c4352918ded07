#include "sim/hosttree.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/strbuf.h"
#include "sim/state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    FRESH_MS = 20,  /* what is younger is not written again */
    NAME_KEPT = 15, /* the kernel keeps this much of a program's name */
    TEXT_MAX = 1 << 20,
    ANCESTORS_MAX = 64,
};

struct sim_hosttree {
    const struct sim_live *live;
    pthread_mutex_t lock; /* with the lock of the directory */
    int dir;
    char path[GP_PATH_SIZE];
    uint64_t boot_s; /* of the simulated computer, since 1970 */
    atomic_ullong due_ns;
    int error;       /* the first −errno of a pass */
    bool is_digest;  /* nothing is written, only added to `digest` */
    uint64_t digest; /* of all that does not move */
};

/* A process that exists now. */
struct present {
    unsigned int pid;
    const struct sim_host_process *like; /* NULL: a real one */
    double age_s;
};

struct presents {
    struct present *items; /* by pid */
    size_t count;
};

/* ------------------------------------------------------------------------- files */

static void note(struct sim_hosttree *tree, bool ok)
{
    if (!ok && tree->error == 0)
        tree->error = -errno;
}

static void digest(struct sim_hosttree *tree, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        tree->digest = (tree->digest ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
}

/* Makes the directories above a path. */
static void make_parents(struct sim_hosttree *tree, const char *path)
{
    char folder[GP_PATH_SIZE];
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        (void)snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
        note(tree, mkdirat(tree->dir, folder + 1, 0700) == 0 || errno == EEXIST);
    }
}

/* Replaces the file as a whole: nobody reads half of it. */
static void put(struct sim_hosttree *tree, const char *path, const char *text, size_t size)
{
    static const char fresh[] = ".new";
    if (tree->is_digest) {
        digest(tree, path, strlen(path) + 1);
        digest(tree, text, size);
        return;
    }
    int fd = openat(tree->dir, fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    note(tree, fd >= 0);
    if (fd < 0)
        return;
    int r = gp_io_write_all(fd, text, size);
    (void)close(fd);
    /* ext4 writes a file that replaces another to the disk at once, but not one that changes places
     * with it */
    if (r == 0 && renameat2(tree->dir, fresh, tree->dir, path + 1, RENAME_EXCHANGE) == 0) {
        (void)unlinkat(tree->dir, fresh, 0);
        return;
    }
    make_parents(tree, path);
    note(tree, r == 0 && renameat(tree->dir, fresh, tree->dir, path + 1) == 0);
}

static void put_text(struct sim_hosttree *tree, const char *path, const char *text)
{
    put(tree, path, text, strlen(text));
}

static void put_link(struct sim_hosttree *tree, const char *path, const char *target)
{
    if (tree->is_digest) {
        digest(tree, path, strlen(path) + 1);
        digest(tree, target, strlen(target) + 1);
        return;
    }
    make_parents(tree, path);
    (void)unlinkat(tree->dir, path + 1, 0);
    note(tree, symlinkat(target, tree->dir, path + 1) == 0);
}

/* Writes "DIR/NAME" with what the text buffer holds, and empties that. */
static void put_built(struct sim_hosttree *tree, const char *folder, const char *name,
                      struct gp_strbuf *sb)
{
    char path[GP_PATH_SIZE];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    put(tree, path, sb->buf, sb->len);
    gp_strbuf_reset(sb);
}

/* Removes what is in a directory. Only links of ours lead out of it, and they are not followed. */
static void clear(int parent, const char *name, bool itself)
{
    const struct dirent *entry;
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
    if (!list && fd >= 0)
        (void)close(fd);
    while (list && (entry = readdir(list)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            unlinkat(dirfd(list), entry->d_name, 0) != 0)
            clear(dirfd(list), entry->d_name, true);
    if (list)
        (void)closedir(list);
    if (itself)
        (void)unlinkat(parent, name, AT_REMOVEDIR);
}

/* ------------------------------------------------------------------------- who exists */

static int compare_presents(const void *a, const void *b)
{
    unsigned int x = ((const struct present *)a)->pid, y = ((const struct present *)b)->pid;
    return (x > y) - (x < y);
}

static bool has(const struct presents *all, unsigned int pid)
{
    for (size_t i = 0; i < all->count; i++)
        if (all->items[i].pid == pid)
            return true;
    return false;
}

/* The simulated ones come first, so a real process that has the pid of one is left out. */
static void add(struct sim_hosttree *tree, struct presents *all, const struct present *one)
{
    struct present *grown =
        has(all, one->pid) ? NULL : realloc(all->items, (all->count + 1) * sizeof(*grown));
    if (grown) {
        all->items = grown;
        grown[all->count++] = *one;
    } else if (!has(all, one->pid)) {
        tree->error = -ENOMEM;
    }
}

static double now_s(void)
{
    uint64_t ns = gp_clock_wall_ns();
    return (double)ns * 1e-9;
}

static double ticks_per_s(void)
{
    long ticks = sysconf(_SC_CLK_TCK);
    return (double)ticks;
}

/* A process of a workload is there as often as the workload is. */
static void add_like(struct sim_hosttree *tree, const struct sim_host_process *like,
                     struct presents *all)
{
    const struct sim_machine *machine = tree->live->machine;
    double born_s = (double)tree->boot_s + (double)machine->host.uptime_s - (double)like->age_s;
    struct present one = {.pid = (unsigned int)like->pid, .like = like, .age_s = now_s() - born_s};
    bool is_workload = false;
    for (size_t d = 0; d < machine->device_count; d++)
        for (size_t i = 0; i < machine->devices[d].process_count; i++) {
            const struct sim_process *process = &machine->devices[d].processes[i];
            struct present copy = one;
            uint64_t start_s;
            if (process->like_pid != like->pid)
                continue;
            is_workload = true;
            if (!sim_live_is_running(tree->live, process, &copy.pid, &start_s))
                continue;
            if (start_s > 0)
                copy.age_s = now_s() - (double)start_s;
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
static void add_real(struct sim_hosttree *tree, struct presents *all)
{
    struct sim_job job;
    for (size_t slot = 0; sim_state_has_jobs(tree->live->state) && slot < SIM_MAX_JOBS; slot++) {
        unsigned int pid = sim_state_job_or_heir(tree->live->state, slot, &job) ? job.pid : 0;
        for (int i = 0; pid > 0 && i < ANCESTORS_MAX && !has(all, pid); i++) {
            add(tree, all, &(struct present){.pid = pid});
            pid = parent_of(pid);
        }
    }
}

static struct presents find_presents(struct sim_hosttree *tree)
{
    const struct sim_host *host = &tree->live->machine->host;
    struct presents all = {NULL, 0};
    for (size_t i = 0; i < host->process_count; i++)
        add_like(tree, &host->processes[i], &all);
    add_real(tree, &all);
    if (all.count > 0)
        qsort(all.items, all.count, sizeof(*all.items), compare_presents);
    return all;
}

/* ------------------------------------------------------------------------- processes */

static unsigned int minor_of(const struct sim_device *device)
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
                put_link(tree, path, common[fd]);
            }
            (void)snprintf(path, sizeof(path), "%s/fd/%u", folder, fd++);
            (void)snprintf(target, sizeof(target), "/dev/nvidia%u", minor_of(device));
            put_link(tree, path, target);
        }
    if (fd > 0)
        return;
    (void)snprintf(path, sizeof(path), "%s/fd/0", folder);
    put_link(tree, path, common[0]);
}

/* CPU time grows with its share of a CPU, a little faster and slower in turns. */
static uint64_t ticks_after(const struct sim_hosttree *tree, double seconds, double pct,
                            unsigned int channel)
{
    double swung_s = seconds + 0.15 * sim_live_drift(tree->live, channel);
    double ticks = swung_s > 0 ? swung_s * ticks_per_s() * pct / 100 : 0;
    return (uint64_t)ticks;
}

/* The memory of an idle process does not change. */
static uint64_t resident_bytes(const struct sim_hosttree *tree, const struct present *one)
{
    double drift = one->like->cpu_pct > 0 ? sim_live_drift(tree->live, one->pid + 1) : 0;
    return (uint64_t)((double)one->like->rss_bytes * (1 + 0.01 * drift));
}

/* What moves. */
static void put_stat(struct sim_hosttree *tree, const char *folder, const struct present *one)
{
    const struct sim_host_process *p = one->like;
    struct gp_strbuf sb = GP_STRBUF_INIT(TEXT_MAX);
    uint64_t rss = resident_bytes(tree, one);
    uint64_t ticks = ticks_after(tree, one->age_s, (double)p->cpu_pct, one->pid);
    double start_s = now_s() - one->age_s - (double)tree->boot_s;
    uint64_t start = start_s > 0 ? (uint64_t)(start_s * ticks_per_s() + 0.5) : 0;
    uint64_t group = p->group == p->pid ? one->pid : p->group;
    gp_strbuf_addf(&sb, "%u (%.*s) %s %" PRIu64 " %" PRIu64 " %" PRIu64, one->pid, NAME_KEPT,
                   p->name, p->state, p->ppid, group, group);
    gp_strbuf_addf(&sb, " 0 -1 4194304 0 0 0 0 %" PRIu64 " %" PRIu64 " 0 0 20 0 %" PRIu64,
                   ticks - ticks / 8, ticks / 8, p->threads);
    gp_strbuf_addf(&sb, " 0 %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", start ? start : 1, 4 * rss,
                   rss / (uint64_t)sysconf(_SC_PAGESIZE));
    put_built(tree, folder, "stat", &sb);
    gp_strbuf_fini(&sb);
}

static void put_status(struct sim_hosttree *tree, const char *folder, unsigned int pid,
                       const struct sim_host_process *p)
{
    static const char *const ids[] = {"Uid", "Gid"};
    struct gp_strbuf sb = GP_STRBUF_INIT(TEXT_MAX);
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
    put_built(tree, folder, "status", &sb);
    gp_strbuf_addf(&sb, "rchar: 0\nread_bytes: %" PRIu64 "\nwrite_bytes: %" PRIu64 "\n",
                   p->rss_bytes, p->rss_bytes / 16);
    put_built(tree, folder, "io", &sb);
    gp_strbuf_fini(&sb);
}

/* What stays while the process runs. */
static void put_identity(struct sim_hosttree *tree, const char *folder, unsigned int pid,
                         const struct sim_host_process *p)
{
    char path[64];
    struct gp_strbuf sb = GP_STRBUF_INIT(TEXT_MAX);
    gp_strbuf_add(&sb, p->command.text, p->command.size);
    put_built(tree, folder, "cmdline", &sb);
    gp_strbuf_addf(&sb, "%.*s\n", NAME_KEPT, p->name);
    put_built(tree, folder, "comm", &sb);
    gp_strbuf_add(&sb, p->environment.text, p->environment.size);
    put_built(tree, folder, "environ", &sb);
    gp_strbuf_addf(&sb, "0::%s\n", p->cgroup);
    put_built(tree, folder, "cgroup", &sb);
    gp_strbuf_adds(&sb, "0\n");
    put_built(tree, folder, "oom_score", &sb);
    gp_strbuf_fini(&sb);
    (void)snprintf(path, sizeof(path), "%s/cwd", folder);
    put_link(tree, path, p->cwd);
    (void)snprintf(path, sizeof(path), "%s/exe", folder);
    put_link(tree, path, p->command.text);
    put_descriptors(tree, folder, p);
    put_status(tree, folder, pid, p);
}

/* Removes the processes that have ended, and notes which directories are there. */
static void sweep(struct sim_hosttree *tree, const struct presents *all, bool *is_there)
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
        struct present key = {.pid = (unsigned int)pid};
        const struct present *one =
            all->count > 0 ? bsearch(&key, all->items, all->count, sizeof(key), compare_presents)
                           : NULL;
        if (one && (entry->d_type == DT_LNK) == !one->like)
            is_there[one - all->items] = true;
        else if (unlinkat(dirfd(list), entry->d_name, 0) != 0)
            clear(dirfd(list), entry->d_name, true);
    }
    if (list)
        (void)closedir(list);
}

static void put_processes(struct sim_hosttree *tree, const struct presents *all)
{
    bool *is_there = calloc(all->count + 1, sizeof(*is_there));
    if (is_there)
        sweep(tree, all, is_there);
    for (size_t i = 0; is_there && i < all->count; i++) {
        const struct present *one = &all->items[i];
        char path[32];
        (void)snprintf(path, sizeof(path), "/proc/%u", one->pid);
        if (!is_there[i] && !one->like)
            put_link(tree, path, path);
        if (!is_there[i] && one->like)
            put_identity(tree, path, one->pid, one->like);
        if (one->like && (!is_there[i] || one->like->cpu_pct > 0))
            put_stat(tree, path, one);
    }
    free(is_there);
}

/* ------------------------------------------------------------------------- the computer */

static void put_cpu(struct sim_hosttree *tree, double pct, double up_s)
{
    const struct sim_host *host = &tree->live->machine->host;
    struct gp_strbuf sb = GP_STRBUF_INIT(TEXT_MAX);
    double most = 98.0 * (double)host->cpus;
    uint64_t busy = ticks_after(tree, up_s, pct < most ? pct : most, 0);
    uint64_t all = (uint64_t)(up_s * ticks_per_s() * (double)host->cpus);
    gp_strbuf_addf(&sb, "cpu  %" PRIu64 " 0 %" PRIu64 " %" PRIu64 " 0 0 0 0 0 0\n", busy - busy / 8,
                   busy / 8, all > busy ? all - busy : 0);
    for (uint64_t i = 0; i < host->cpus; i++)
        gp_strbuf_addf(&sb, "cpu%" PRIu64 " %" PRIu64 " 0 0 %" PRIu64 " 0 0 0 0 0 0\n", i,
                       busy / host->cpus, all > busy ? (all - busy) / host->cpus : 0);
    gp_strbuf_addf(&sb, "btime %" PRIu64 "\n", tree->boot_s);
    put_built(tree, "/proc", "stat", &sb);
    gp_strbuf_addf(&sb, "%.2f %.2f\n", up_s, (double)(all - busy) / ticks_per_s());
    put_built(tree, "/proc", "uptime", &sb);
    double load = pct / 100 * (1 + 0.05 * sim_live_drift(tree->live, 2));
    gp_strbuf_addf(&sb, "%.2f %.2f %.2f %u/2048 4190999\n", load, pct / 100, pct / 100,
                   (unsigned int)load + 1);
    put_built(tree, "/proc", "loadavg", &sb);
    gp_strbuf_fini(&sb);
}

static void put_memory(struct sim_hosttree *tree, uint64_t used)
{
    const struct sim_host *host = &tree->live->machine->host;
    struct gp_strbuf sb = GP_STRBUF_INIT(TEXT_MAX);
    uint64_t free_kib = used < host->memory_bytes ? (host->memory_bytes - used) / 1024 : 0;
    gp_strbuf_addf(&sb,
                   "MemTotal: %" PRIu64 " kB\nMemFree: %" PRIu64 " kB\nMemAvailable: %" PRIu64
                   " kB\nSwapTotal: %" PRIu64 " kB\nSwapFree: %" PRIu64 " kB\n",
                   host->memory_bytes / 1024, free_kib / 2, free_kib, host->swap_bytes / 1024,
                   host->swap_bytes / 1024);
    put_built(tree, "/proc", "meminfo", &sb);
    gp_strbuf_fini(&sb);
}

static void put_moving(struct sim_hosttree *tree)
{
    const struct sim_host *host = &tree->live->machine->host;
    struct presents all = find_presents(tree);
    uint64_t used = host->memory_used_bytes;
    double pct = (double)host->cpu_pct;
    for (size_t i = 0; i < all.count; i++) {
        if (!all.items[i].like)
            continue;
        used += resident_bytes(tree, &all.items[i]);
        pct += (double)all.items[i].like->cpu_pct;
    }
    put_processes(tree, &all);
    put_cpu(tree, pct, now_s() - (double)tree->boot_s);
    put_memory(tree, used);
    free(all.items);
}

/* The machine's users, then those of this computer: jobs on simulated GPUs belong to them. */
static void put_users(struct sim_hosttree *tree)
{
    const struct sim_host *host = &tree->live->machine->host;
    char real[65536];
    struct gp_strbuf sb = GP_STRBUF_INIT(TEXT_MAX);
    long n = gp_io_read("/etc/passwd", real, sizeof(real));
    for (size_t i = 0; i < host->user_count; i++)
        gp_strbuf_addf(&sb, "%s:x:%" PRIu64 ":%" PRIu64 "::/home/%s:/bin/bash\n",
                       host->users[i].name, host->users[i].uid, host->users[i].uid,
                       host->users[i].name);
    gp_strbuf_add(&sb, real, n > 0 ? (size_t)n : 0);
    put_built(tree, "/etc", "passwd", &sb);
    gp_strbuf_fini(&sb);
}

static void put_gpu(struct sim_hosttree *tree, const struct sim_device *device)
{
    char address[16], folder[64], path[80];
    struct gp_strbuf sb = GP_STRBUF_INIT(TEXT_MAX);
    const struct sim_value *name = &device->answers[SIM_NAME];
    (void)snprintf(address, sizeof(address), "%04x:%02x:%02x.0", device->pci_domain,
                   device->pci_bus, device->pci_slot);
    (void)snprintf(folder, sizeof(folder), "/sys/bus/pci/devices/%s", address);
    gp_strbuf_addf(&sb, "0x%04x\n", device->pci_device_id & 0xffff);
    put_built(tree, folder, "vendor", &sb);
    gp_strbuf_addf(&sb, "0x%04x\n", device->pci_device_id >> 16);
    put_built(tree, folder, "device", &sb);
    gp_strbuf_adds(&sb, "0x030200\n");
    put_built(tree, folder, "class", &sb);
    gp_strbuf_adds(&sb, "active\n");
    put_built(tree, folder, "power/runtime_status", &sb);
    gp_strbuf_adds(&sb, "on\n");
    put_built(tree, folder, "power/control", &sb);
    (void)snprintf(path, sizeof(path), "%s/driver", folder);
    put_link(tree, path, "../../drivers/nvidia");
    (void)snprintf(path, sizeof(path), "/sys/bus/pci/drivers/nvidia/%s", address);
    (void)snprintf(folder, sizeof(folder), "../../devices/%s", address);
    put_link(tree, path, folder);
    (void)snprintf(folder, sizeof(folder), "/proc/driver/nvidia/gpus/%s", address);
    for (unsigned int minor = 0; minor <= minor_of(device); minor++) {
        (void)snprintf(path, sizeof(path), "/dev/nvidia%u", minor);
        put_text(tree, path, "");
    }
    gp_strbuf_addf(&sb,
                   "Model: \t\t %s\nGPU UUID: \t %s\nBus Location: \t %s\nDevice Minor: \t %u\n",
                   name->code == NVML_SUCCESS ? name->text : "Unknown", device->uuid, address,
                   minor_of(device));
    put_built(tree, folder, "information", &sb);
    gp_strbuf_fini(&sb);
}

/* The kernel module, and what packages install with it. */
static void put_driver(struct sim_hosttree *tree)
{
    static const char *const empty[] = {"/dev/nvidiactl", "/dev/nvidia-uvm", "/usr/bin/nvidia-smi",
                                        "/sys/module/nvidia_uvm/initstate"};
    static const char *const libraries[] = {"libcuda.so", "libnvidia-ml.so"};
    static const char module[] =
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  %s  Release Build\n";
    const char *version = tree->live->machine->driver_version;
    char path[128], name[80];
    struct gp_strbuf sb = GP_STRBUF_INIT(TEXT_MAX);
    gp_strbuf_addf(&sb, module, version);
    put_built(tree, "/proc/driver/nvidia", "version", &sb);
    gp_strbuf_addf(&sb, "%s\n", version);
    put_built(tree, "/sys/module/nvidia", "version", &sb);
    put_text(tree, "/proc/driver/nvidia/params", "DeviceFileMode: 438\nModifyDeviceFiles: 1\n");
    for (size_t i = 0; i < GP_ARRAY_LEN(empty); i++)
        put_text(tree, empty[i], "");
    for (size_t i = 0; i < GP_ARRAY_LEN(libraries); i++) {
        (void)snprintf(name, sizeof(name), "%s.%.20s", libraries[i], version);
        put_built(tree, "/usr/lib/x86_64-linux-gnu", name, &sb);
        (void)snprintf(path, sizeof(path), "/usr/lib/x86_64-linux-gnu/%s.1", libraries[i]);
        put_link(tree, path, name);
    }
    gp_strbuf_fini(&sb);
}

static bool is_of_job(const struct sim_host *host, unsigned int pid, uint64_t supervisor)
{
    const struct sim_host_process *process = sim_host_find(host, pid);
    return process && (process->pid == supervisor || process->ppid == supervisor);
}

/* A reservation lasts as long as its job has a workload on one of its GPUs. */
static bool is_held(const struct sim_machine *machine, const struct sim_host_lease *lease)
{
    for (size_t d = 0; d < machine->device_count && d < SIM_HOST_GPUS; d++)
        for (size_t i = 0; lease->gpus >> d & 1 && i < machine->devices[d].process_count; i++)
            if (is_of_job(&machine->host, machine->devices[d].processes[i].like_pid, lease->pid))
                return true;
    return false;
}

/* One that waits does so for GPUs that are reserved. */
static bool is_alive(const struct sim_machine *machine, const struct sim_host_lease *lease)
{
    const struct sim_host *host = &machine->host;
    if (!lease->waits_for)
        return is_held(machine, lease);
    for (size_t i = 0; i < host->lease_count; i++)
        if (!host->leases[i].waits_for && host->leases[i].gpus & lease->gpus &&
            is_held(machine, &host->leases[i]))
            return true;
    return false;
}

/* In the form of proc/lease_text.c, below a directory for each user. */
static void put_lease(struct sim_hosttree *tree, size_t index)
{
    const struct sim_machine *machine = tree->live->machine;
    const struct sim_host_lease *lease = &machine->host.leases[index];
    char folder[48], name[32];
    struct gp_strbuf sb = GP_STRBUF_INIT(TEXT_MAX);
    uint64_t since_s = tree->boot_s + machine->host.uptime_s - lease->age_s;
    int count = __builtin_popcountll(lease->gpus);
    (void)snprintf(folder, sizeof(folder), "/run/gpulse-simulated/%" PRIu64, lease->uid);
    (void)snprintf(name, sizeof(name), "%s.%016zx", lease->waits_for ? "wait" : "held", index);
    gp_strbuf_addf(&sb, "gpulse-lease 2\nsince %" PRIu64 "\npid %" PRIu64 "\nns 0\nshared %d",
                   since_s * GP_NS_PER_S, lease->pid, lease->bytes > 0);
    if (lease->limit_s > 0)
        gp_strbuf_addf(&sb, "\nlimit %" PRIu64, lease->limit_s * GP_NS_PER_S);
    gp_strbuf_addf(&sb, "\nbytes %" PRIu64 "\nwanted %u\nname %s\ncommand %s\n", lease->bytes,
                   lease->waits_for ? (unsigned int)lease->waits_for : (unsigned int)count,
                   lease->name, lease->command);
    for (size_t d = 0; d < machine->device_count && d < SIM_HOST_GPUS; d++)
        if (lease->gpus >> d & 1)
            gp_strbuf_addf(&sb, "gpu %s\n", machine->devices[d].uuid);
    put_built(tree, folder, name, &sb);
    gp_strbuf_fini(&sb);
}

static void put_leases(struct sim_hosttree *tree)
{
    const struct sim_machine *machine = tree->live->machine;
    for (size_t i = 0; i < machine->host.lease_count; i++)
        if (is_alive(machine, &machine->host.leases[i]))
            put_lease(tree, i);
}

/* What does not move, into an empty directory. What gpulse keeps of real jobs is that of this
 * computer. */
static void put_fixed(struct sim_hosttree *tree)
{
    static const char *const kept[] = {"/run/gpulse", "/dev/shm", "/tmp"};
    const struct sim_host *host = &tree->live->machine->host;
    struct gp_strbuf sb = GP_STRBUF_INIT(TEXT_MAX);
    put_users(tree);
    if (tree->live->machine->driver_version)
        put_driver(tree);
    for (size_t i = 0; i < tree->live->machine->device_count; i++)
        put_gpu(tree, &tree->live->machine->devices[i]);
    put_leases(tree);
    gp_strbuf_addf(&sb, "%s\n", host->name);
    put_built(tree, "/proc/sys/kernel", "hostname", &sb);
    gp_strbuf_addf(&sb, "Name:\tgpulse\nUid:\t%u\t%u\t%u\t%u\n", geteuid(), geteuid(), geteuid(),
                   geteuid());
    put_built(tree, "/proc/self", "status", &sb);
    gp_strbuf_fini(&sb);
    put_link(tree, "/proc/self/ns/pid", "pid:[4026531836]");
    put_text(tree, "/proc/self/mounts", "tmpfs /dev/shm tmpfs rw,nosuid,nodev 0 0\n");
    for (size_t i = 0; i < host->file_count; i++)
        put_text(tree, host->files[i].path, host->files[i].text);
    /* Last, so that no file of the machine is written through one of these links. */
    for (size_t i = 0; i < GP_ARRAY_LEN(kept); i++)
        put_link(tree, kept[i], kept[i]);
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
    put_fixed(tree);
    for (size_t i = 0; i < host->process_count; i++) {
        unsigned int pid = (unsigned int)host->processes[i].pid;
        (void)snprintf(folder, sizeof(folder), "/proc/%u", pid);
        put_identity(tree, folder, pid, &host->processes[i]);
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
        return gp_err_set(err, GP_EIO, "cannot open '%s/%s': %s", place, name, strerror(saved));
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
        clear(tree->dir, ".", false);
        tree->boot_s = gp_clock_wall_ns() / GP_NS_PER_S - tree->live->machine->host.uptime_s;
        (void)is_known(tree, stamp); /* the stamp of what depends on that time, too */
        put_fixed(tree);
    }
    put_moving(tree);
    if (!known && tree->error == 0)
        put_text(tree, "/.stamp", stamp);
    unlock(tree);
    delay(tree);
    return tree->error == 0 ? GP_OK
                            : gp_err_set(err, GP_EIO, "cannot write below '%s': %s", tree->path,
                                         strerror(-tree->error));
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
    (void)snprintf(path, sizeof(path), "dev/nvidia%u", minor_of(device));
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
