/* A process that behaves like a CUDA job on the simulated machine: it uses the GPUs in
 * CUDA_VISIBLE_DEVICES, in CUDA's order, allocates memory, and fails like PyTorch if there is not
 * enough. */
#include "sim/tool.h"

#include "abi/cuda.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/parse.h"
#include "base/strbuf.h"
#include "sim/hosttree.h"
#include "sim/live.h"
#include "sim/mig.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { MEM_MIN = 1 << 20 };

struct options {
    const char *machine;
    uint64_t gpu;
    uint64_t bytes;
    uint64_t util;
    uint64_t duration_ns;
    const char *name;
    uint64_t grow_bytes;
    uint64_t spike_bytes;
    uint64_t churn_bytes;
    uint64_t workers;
    bool stubborn;
    bool busy;
    bool managed;
    bool touch;
};

static const struct gp_opt options[] = {
    SIM_MACHINE_OPTION(options, machine),
    {'g', "gpu", NULL, GP_OPT_U64, "INDEX", .offset = offsetof(struct options, gpu),
     .help = "index among the visible GPUs (default 0)"},
    {0, "mem", NULL, GP_OPT_SIZE, "SIZE", .in_mib = true, .offset = offsetof(struct options, bytes),
     .help = "memory to allocate, for example 20GiB (default 1GiB)"},
    {0, "util", NULL, GP_OPT_U64, "PERCENT", .offset = offsetof(struct options, util),
     .help = "utilization in percent (default 80)"},
    {0, "for", "duration", GP_OPT_DURATION, "TIME", .offset = offsetof(struct options, duration_ns),
     .help = "run time (default: until stopped)"},
    {0, "name", NULL, GP_OPT_STRING, "TEXT", .offset = offsetof(struct options, name),
     .help = "name in process lists (default: python)"},
    {0, "grow", NULL, GP_OPT_SIZE, "SIZE", .in_mib = true,
     .offset = offsetof(struct options, grow_bytes),
     .help = "additional memory to allocate per second"},
    {0, "spike", NULL, GP_OPT_SIZE, "SIZE", .in_mib = true,
     .offset = offsetof(struct options, spike_bytes),
     .help = "additional memory to allocate and free at the start, before anything can see it"},
    {0, "churn", NULL, GP_OPT_SIZE, "SIZE", .in_mib = true,
     .offset = offsetof(struct options, churn_bytes),
     .help = "part of the memory to free and allocate again, twice a second"},
    {0, "workers", NULL, GP_OPT_U64, "N", .offset = offsetof(struct options, workers),
     .help =
         "number of child processes that hold the GPU open; if the job is killed, they keep its "
         "memory"},
    {0, "stubborn", NULL, GP_OPT_FLAG, .offset = offsetof(struct options, stubborn),
     .help = "ignore SIGINT and SIGTERM"},
    {0, "busy", NULL, GP_OPT_FLAG, .offset = offsetof(struct options, busy),
     .help = "run GPU work that never finishes, so that the job cannot be suspended"},
    {0, "managed", NULL, GP_OPT_FLAG, .offset = offsetof(struct options, managed),
     .help = "use managed memory, which cannot be suspended"},
    {0, "touch", NULL, GP_OPT_FLAG, .offset = offsetof(struct options, touch),
     .help = "also allocate and touch the same amount of host memory"},
    GP_OPT_END,
};

/* ------------------------------------------------------------------------- visible devices */

enum { MAX_VISIBLE = SIM_MAX_DEVICES };

struct visible {
    const struct sim_device *devices[MAX_VISIBLE];
    size_t count;
};

static uint64_t capability(const struct sim_device *device)
{
    const struct sim_value *v = device->answers;
    return v[SIM_CC_MAJOR].code == NVML_SUCCESS
               ? v[SIM_CC_MAJOR].number * 10 + v[SIM_CC_MINOR].number
               : 0;
}

/* CUDA does not document how it determines the fastest GPU; compute capability and memory give its
 * order on all common mixed machines. */
static int by_speed(const void *a, const void *b)
{
    const struct sim_device *x = *(const struct sim_device *const *)a;
    const struct sim_device *y = *(const struct sim_device *const *)b;
    uint64_t x_memory = x->answers[SIM_MEM_TOTAL].number,
             y_memory = y->answers[SIM_MEM_TOTAL].number;
    if (capability(x) != capability(y))
        return capability(x) < capability(y) ? 1 : -1;
    if (x_memory != y_memory)
        return x_memory < y_memory ? 1 : -1;
    return (x->index > y->index) - (x->index < y->index);
}

static int by_bus(const void *a, const void *b)
{
    const struct sim_device *x = *(const struct sim_device *const *)a;
    const struct sim_device *y = *(const struct sim_device *const *)b;
    if (x->pci_domain != y->pci_domain)
        return x->pci_domain > y->pci_domain ? 1 : -1;
    if (x->pci_bus != y->pci_bus)
        return x->pci_bus > y->pci_bus ? 1 : -1;
    return (x->pci_slot > y->pci_slot) - (x->pci_slot < y->pci_slot);
}

/* The devices that CUDA enumerates: the GPUs in its order; for a partitioned GPU its first MIG
 * device. */
static void enumerate(const struct sim_machine *machine, struct visible *all)
{
    const char *order = getenv("CUDA_DEVICE_ORDER");
    bool bus = order && strcmp(order, "PCI_BUS_ID") == 0;
    for (size_t i = 0; i < machine->device_count; i++)
        all->devices[all->count++] = &machine->devices[i];
    qsort(all->devices, all->count, sizeof(*all->devices), bus ? by_bus : by_speed);
}

/* A UUID may be abbreviated to a unique prefix. */
static const struct sim_device *find_uuid(const struct sim_live *live, const char *text, size_t len)
{
    const struct sim_device *found = NULL;
    for (size_t i = 0; i < live->machine->device_count; i++) {
        const struct sim_device *gpu = &live->machine->devices[i];
        for (size_t j = 0; j <= sim_mig_count(live, gpu); j++) {
            const struct sim_device *device = j == 0 ? gpu : sim_mig_at(live, gpu, j - 1);
            if (!device || strncasecmp(device->uuid, text, len) != 0)
                continue;
            if (found)
                return NULL;
            found = device;
        }
    }
    return found;
}

static const struct sim_device *find_entry(const struct sim_live *live, const struct visible *all,
                                           const char *text, size_t len)
{
    char number[8];
    uint64_t index;
    if (len > 4 && (strncasecmp(text, "GPU-", 4) == 0 || strncasecmp(text, "MIG-", 4) == 0))
        return find_uuid(live, text, len);
    len = strspn(text, "0123456789"); /* as CUDA's strtoul(): "1x" is 1 */
    if (len == 0 || len >= sizeof(number))
        return NULL;
    (void)snprintf(number, sizeof(number), "%.*s", (int)len, text);
    return gp_parse_u64(number, &index) && index < all->count ? all->devices[index] : NULL;
}

/* CUDA uses the list up to its first invalid entry, and nothing if a device is listed twice. An
 * empty variable hides all devices. */
static void select_visible(const struct sim_live *live, struct visible *ret)
{
    struct visible all = {.count = 0};
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    enumerate(live->machine, &all);
    *ret = all;
    if (!list)
        return;
    ret->count = 0;
    for (const char *p = list; ret->count < MAX_VISIBLE; p++) {
        p += strspn(p, " ");
        size_t len = strcspn(p, ", ");
        const struct sim_device *device = find_entry(live, &all, p, len);
        for (size_t i = 0; i < ret->count; i++)
            if (device && ret->devices[i] == device) {
                ret->count = 0;
                return;
            }
        if (!device)
            return;
        ret->devices[ret->count++] = device;
        p += strcspn(p, ",");
        if (!*p)
            return;
    }
}

/* ------------------------------------------------------------------------- memory */

/* "1.50 GiB", in PyTorch's format. */
static void add_size(struct gp_strbuf *sb, uint64_t bytes)
{
    if (bytes <= 1024)
        gp_strbuf_addf(sb, "%llu bytes", (unsigned long long)bytes);
    else if (bytes <= 1 << 20)
        gp_strbuf_addf(sb, "%.2f KiB", (double)bytes / 0x1p10);
    else if (bytes <= 1 << 30)
        gp_strbuf_addf(sb, "%.2f MiB", (double)bytes / 0x1p20);
    else
        gp_strbuf_addf(sb, "%.2f GiB", (double)bytes / 0x1p30);
}

static void print_out_of_memory(const struct sim_live *live, const struct sim_device *device,
                                uint64_t gpu, uint64_t bytes, const struct sim_memory *memory)
{
    static struct sim_process holders[SIM_MAX_JOBS];
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    size_t count = sim_live_processes(live, device, holders, GP_ARRAY_LEN(holders));
    gp_strbuf_adds(&sb, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate ");
    add_size(&sb, bytes);
    gp_strbuf_addf(&sb, ". GPU %llu has a total capacity of ", (unsigned long long)gpu);
    add_size(&sb, memory->total);
    gp_strbuf_adds(&sb, " of which ");
    add_size(&sb, memory->free);
    gp_strbuf_adds(&sb, " is free.");
    for (size_t i = 0; i < count && i < GP_ARRAY_LEN(holders); i++) {
        gp_strbuf_addf(&sb, " Process %u has ", holders[i].pid);
        add_size(&sb, holders[i].memory_known ? holders[i].memory_bytes : 0);
        gp_strbuf_adds(&sb, " memory in use.");
    }
    gp_strbuf_adds(&sb,
                   " Of the allocated memory 0 bytes is allocated by PyTorch, and 0 bytes is "
                   "reserved by PyTorch but unallocated. If reserved but unallocated memory is "
                   "large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid "
                   "fragmentation.\n");
    (void)fwrite(sb.buf, 1, sb.len, stderr);
    gp_strbuf_fini(&sb);
}

/* The driver's pid of this process: the one in the machine's namespace, if /proc shows it. */
static uint32_t machine_pid(void)
{
    char name[16];
    uint64_t pid;
    ssize_t n = readlink("/proc/self", name, sizeof(name) - 1);
    name[n > 0 ? n : 0] = '\0';
    return gp_parse_u64(name, &pid) ? (uint32_t)pid : (uint32_t)getpid();
}

static struct sim_job job_of(const struct options *o, const struct sim_device *device)
{
    const struct sim_device *gpu = device->parent ? device->parent : device;
    struct sim_job job = {
        .pid = machine_pid(),
        .util_pct = (uint32_t)o->util,
        .start_ticks = sim_process_start(machine_pid()),
        .bytes = o->bytes,
        .device = (int32_t)gpu->index,
        .mig = device->parent ? (int32_t)device->index : SIM_NO_INSTANCE,
        .busy = o->busy,
        .managed = o->managed,
    };
    (void)snprintf(job.name, sizeof(job.name), "%s", o->name);
    return job;
}

/* Allocates the memory, or prints an error and returns GP_EFAIL without an error text. A spike is
 * over before a sample can see it; the driver's accounting records it. */
static int take(const struct sim_live *live, const struct options *o,
                const struct sim_device *device, const struct sim_job *job, size_t *ret_slot,
                struct gp_err *err)
{
    struct sim_memory memory = {0};
    struct sim_job most = *job;
    most.bytes += o->spike_bytes;
    int result = sim_state_lock(live->state, err);
    if (result < 0)
        return result;
    (void)sim_live_memory(live, device, &memory);
    if (most.bytes > memory.free) {
        print_out_of_memory(live, device, o->gpu, most.bytes, &memory);
        result = GP_EFAIL;
    } else {
        result = sim_state_add_job(live->state, job, ret_slot, err);
    }
    if (result == GP_OK && !device->parent && sim_live_accounts(live, device))
        sim_state_begin_account(live->state, &most);
    sim_state_unlock(live->state);
    return result;
}

/* ------------------------------------------------------------------------- running */

/* Only while its CUDA calls do not wait. */
static void resize(struct sim_state *state, size_t slot, int64_t more_bytes)
{
    struct sim_job job;
    if (sim_state_lock(state, NULL) < 0)
        return;
    if (sim_state_job(state, slot, &job) && job.cuda_state == CU_PROCESS_STATE_RUNNING) {
        job.bytes += (uint64_t)more_bytes;
        sim_state_update_job(state, slot, &job);
    }
    sim_state_unlock(state);
}

/* Waits for a signal or the end of its run time, while its memory changes: it grows ten times per
 * second, and a part of it is freed and allocated again every quarter. */
static void wait_for_end(const struct sim_live *live, const struct options *o, size_t slot,
                         const sigset_t *signals)
{
    uint64_t end_ns = o->duration_ns ? gp_clock_mono_ns() + o->duration_ns : UINT64_MAX;
    const uint64_t steps_per_s = o->grow_bytes ? 10 : o->churn_bytes ? 4 : 0;
    const uint64_t step_ns = steps_per_s ? GP_NS_PER_S / steps_per_s : UINT64_MAX;
    int64_t step = o->grow_bytes ? (int64_t)o->grow_bytes / 10 : -(int64_t)o->churn_bytes;
    int r = -1;
    /* Being stopped and continued also interrupts the wait. */
    while (r < 0 && gp_clock_mono_ns() < end_ns) {
        uint64_t rest_ns = end_ns - gp_clock_mono_ns();
        rest_ns = rest_ns < step_ns ? rest_ns : step_ns;
        struct timespec rest = gp_clock_timespec(rest_ns < INT64_MAX ? rest_ns : INT64_MAX);
        r = sigtimedwait(signals, NULL, &rest);
        if (r == 0 || errno != EAGAIN || step == 0)
            continue;
        resize(live->state, slot, step);
        if (!o->grow_bytes)
            step = -step;
    }
}

/* ------------------------------------------------------------------------- workers */

/* Where gpulse may look for open device files: below GPULSE_ROOT, or below the two folders of a
 * machine with a host (with and without --sim-still). */
enum { DEVICE_FILES = 2 };

/* In the folder of a machine with a host. */
static int open_of_host(const struct sim_live *live, const char *spec,
                        const struct sim_device *device, bool still)
{
    const struct sim_live view = {.machine = live->machine, .state = live->state, .still = still};
    struct sim_hosttree *tree = NULL;
    int fd = -1;
    if (sim_hosttree_open(spec, &view, &tree, NULL) == GP_OK &&
        sim_hosttree_update(tree, NULL) == GP_OK)
        fd = sim_hosttree_open_device(tree, device);
    sim_hosttree_close(tree);
    return fd;
}

/* A CUDA program has its GPU's device file open. Here it is a plain file; −1: there is none. */
static void open_device_files(const struct sim_live *live, const char *spec,
                              const struct sim_device *device, int ret[DEVICE_FILES])
{
    char path[GP_PATH_SIZE];
    char name[32];
    (void)snprintf(name, sizeof(name), "/dev/nvidia%u", device->index);
    const char *root = getenv("GPULSE_ROOT");
    for (int i = 0; i < DEVICE_FILES; i++)
        ret[i] = -1;
    if (root && gp_io_path(path, root, name))
        ret[0] = open(path, O_RDWR | O_CLOEXEC);
    for (int i = 0; !root && live->machine->host.name && i < DEVICE_FILES; i++)
        ret[i] = open_of_host(live, spec, device, i > 0);
}

static void close_device_files(const int files[DEVICE_FILES])
{
    for (int i = 0; i < DEVICE_FILES; i++)
        if (files[i] >= 0)
            (void)close(files[i]);
}

/* Behaves like a worker of PyTorch's data loader: it inherits the device file, and when its parent
 * is killed it survives with the memory, which the driver lists for no process. `keeps`: this
 * worker keeps the memory, which is never free in between; the others only have the GPU open.
 * `slot` is that of the parent's job. */
static void start_worker(const struct options *o, const struct sim_device *device, bool keeps,
                         size_t slot)
{
    struct gp_err err;
    struct sim_machine *machine = NULL;
    struct sim_state *state = NULL;
    const char *spec;
    sigset_t none;
    const uint32_t parent = machine_pid();
    int ready[2];
    char byte;
    if (pipe2(ready, O_CLOEXEC) != 0)
        return;
    if (fork() != 0) {
        (void)close(ready[1]);
        (void)!read(ready[0], &byte, 1); /* end of file: the worker is ready */
        (void)close(ready[0]);
        return;
    }
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)prctl(PR_SET_NAME, "pt_data_worker");
    /* An inherited lock would be its parent's. */
    struct sim_job job = job_of(o, device);
    job.hidden = 1;
    job.heir_of = parent;
    job.heir_slot = (uint16_t)slot;
    job.bytes = keeps ? o->bytes : 0;
    job.util_pct = 0;
    if (sim_tool_open(o->machine, &spec, &machine, &state, &err) == 0 &&
        sim_state_lock(state, &err) == 0) {
        (void)!sim_state_add_job(state, &job, &slot, &err);
        sim_state_unlock(state);
    }
    (void)close(ready[0]);
    (void)close(ready[1]);
    for (;;)
        (void)pause();
}

static int hold(const struct sim_live *live, const char *spec, const struct options *o,
                struct gp_err *err)
{
    int files[DEVICE_FILES];
    struct visible visible;
    select_visible(live, &visible);
    if (o->gpu >= visible.count) {
        (void)fprintf(stderr, visible.count == 0
                                  ? "RuntimeError: No CUDA GPUs are available (CUDA error 100: no "
                                    "CUDA-capable device is detected)\n"
                                  : "RuntimeError: CUDA error: invalid device ordinal\n");
        return GP_EFAIL;
    }
    const struct sim_device *device = visible.devices[o->gpu];
    const struct sim_device *gpu = device;
    for (size_t i = 0; device == gpu && !gpu->parent && i < sim_mig_count(live, gpu); i++)
        if (sim_mig_at(live, gpu, i))
            device = sim_mig_at(live, gpu, i);

    /* Signals are blocked, and waited for between other calls, so that the slot is always freed. */
    sigset_t signals;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGHUP);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &signals, NULL);
    if (o->stubborn) { /* they stay blocked and are ignored */
        (void)sigdelset(&signals, SIGINT);
        (void)sigdelset(&signals, SIGTERM);
    }
    size_t slot = 0;
    struct sim_job job = job_of(o, device);
    char *touched = o->touch ? malloc(o->bytes) : NULL;
    if (touched)
        memset(touched, 1, o->bytes);
    int result = take(live, o, device, &job, &slot, err);
    if (result < 0) {
        free(touched);
        return result;
    }
    open_device_files(live, spec, device->parent ? device->parent : device, files);
    if (o->workers > 0)
        (void)setpgid(0, 0);
    for (uint64_t i = 0; i < o->workers; i++)
        start_worker(o, device, i == 0, slot);
    (void)printf("pid %u holds %.2f GiB on %s (GPU %u)\n", machine_pid(), (double)o->bytes / 0x1p30,
                 device->uuid, (device->parent ? device->parent : device)->index);
    (void)fflush(stdout);
    wait_for_end(live, o, slot, &signals);

    if (o->workers > 0) {
        (void)signal(SIGTERM, SIG_IGN);
        (void)kill(0, SIGTERM); /* its process group */
    }
    result = sim_state_lock(live->state, err);
    if (o->workers > 0)
        sim_state_remove_heirs(live->state, job.pid);
    sim_state_remove_job(live->state, slot);
    if (result == GP_OK)
        sim_state_unlock(live->state);
    close_device_files(files);
    free(touched);
    return result;
}

/* The command line determines the name of a process, so this one executes itself again with the
 * requested name. */
static int take_name(int argc, char **argv, const char *name, struct gp_err *err)
{
    if (strcmp(program_invocation_name, name) == 0)
        return GP_OK;
    const char **again = calloc((size_t)argc + 2, sizeof(*again));
    if (!again)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    again[0] = name;
    for (int i = 0; i < argc; i++)
        again[i + 1] = argv[i];
    (void)execv("/proc/self/exe", (char *const *)(uintptr_t)again);
    free(again);
    return gp_err_set(err, GP_EFAIL, "cannot run under the name '%.60s': %s", name,
                      strerror(errno));
}

static int run(int argc, char **argv, struct gp_err *err)
{
    struct options o = {.bytes = 1 << 30, .util = 80, .name = "python"};
    const struct gp_opt_target target = {options, &o};
    struct sim_machine *machine = NULL;
    struct sim_state *state = NULL;
    const char *spec;
    int positional;
    int result = gp_cli_parse(argc, argv, &target, 1, false, &positional, NULL, err);
    if (result == GP_OK && positional > 0)
        result = gp_err_set(err, GP_EUSAGE, "load takes only options");
    if (result == GP_OK && o.util > 100)
        result = gp_err_set(err, GP_EUSAGE, "--util must be at most 100 percent");
    if (result == GP_OK && o.bytes < MEM_MIN)
        result = gp_err_set(err, GP_EUSAGE,
                            "--mem must be at least 1MiB; a number without a unit is in bytes, for "
                            "example 20GiB is 20 GiB");
    if (result == GP_OK)
        result = take_name(argc, argv, o.name, err);
    if (result == GP_OK)
        result = sim_tool_open(o.machine, &spec, &machine, &state, err);
    if (result == GP_OK) {
        const struct sim_live live = {.machine = machine, .state = state};
        result = hold(&live, spec, &o, err);
    }
    sim_state_close(state);
    sim_machine_free(machine);
    return result;
}

const struct gp_cmd sim_cmd_load = {
    .name = "load",
    .usage = "[options]",
    .summary = "run a process that behaves like a CUDA job",
    .description =
        "Holds memory of a simulated GPU until it is stopped. It respects "
        "CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER. If there is not enough memory, it "
        "prints PyTorch's error message and exits with status 1. It has the GPU's device "
        "file open, dev/nvidiaN below $GPULSE_ROOT or in the simulated machine's "
        "files.",
    .examples = "gpulse sim load -m h100x8 --gpu 0 --mem 20GiB --util 80 --for 60s\trun a job for "
                "one minute\n",
    .options = options,
    .run = run,
};
