/* The process lists of a device: compute, graphics, MPS, and utilization since the last read.
 *
 * Three traps: the list may grow between reading its size and fetching it; a process may be in two
 * lists with the same memory; and drivers 535.43 to 535.86 return 32-byte entries from the _v3
 * calls, where all others use 24. */
#include "source/nvml/internal.h"

#include "base/clock.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    FIRST_PIDS = 8,    /* that tell of which pid namespace a list is */
    LIST_START = 32,   /* entries requested first, so that one call usually suffices */
    SAMPLES_MIN = 128, /* the driver's own buffer has 100 entries */
    SAMPLE_LASTS_S = 2,
    VISIBLE_TURNS = 16,
    EMPTY_AGAIN_S = 5,
};

/* A list call of the driver: *count is the room in entries, and becomes the number of entries. */
typedef nvmlReturn_t (*list_fn)(nvmlDevice_t device, unsigned int *count, void *entries);

struct list_call {
    enum gp_process_type type;
    enum nvml_function v3, v2, v1;
};

static const struct list_call list_calls[NVML_PROCESS_LISTS] = {
    {GP_PROCESS_COMPUTE, NVML_FN_nvmlDeviceGetComputeRunningProcesses_v3,
     NVML_FN_nvmlDeviceGetComputeRunningProcesses_v2, NVML_FN_nvmlDeviceGetComputeRunningProcesses},
    {GP_PROCESS_GRAPHICS, NVML_FN_nvmlDeviceGetGraphicsRunningProcesses_v3,
     NVML_FN_nvmlDeviceGetGraphicsRunningProcesses_v2,
     NVML_FN_nvmlDeviceGetGraphicsRunningProcesses},
    {GP_PROCESS_MPS, NVML_FN_nvmlDeviceGetMPSComputeRunningProcesses_v3,
     NVML_FN_nvmlDeviceGetMPSComputeRunningProcesses_v2,
     NVML_FN_nvmlDeviceGetMPSComputeRunningProcesses},
};

/* The largest entry of the process lists. */
enum { ROOM_BYTES = sizeof(nvmlProcessInfo_r535_t) };
_Static_assert(sizeof(nvmlProcessUtilizationSample_t) <= sizeof(nvmlProcessUtilizationInfo_v1_t),
               "the larger sample type determines the room");

static nvmlReturn_t ask_list(struct nvml_device *device, unsigned *count, void *entries,
                             const void *ctx)
{
    list_fn fn = (list_fn)nvml_find(&device->source->api, *(const enum nvml_function *)ctx);
    if (!fn)
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    atomic_store_explicit(device->call, "process list", memory_order_relaxed);
    return fn(device->handle, count, entries);
}

/* Drivers 535.43 to 535.86 have a fifth member in the _v3 entries; 535.98 removed the calls,
 * 535.104 restored the original ones. */
static size_t stride_v3(const struct nvml_source *source)
{
    bool wide = source->branch == 535 && source->minor >= 43 && source->minor < 98;
    return wide ? sizeof(nvmlProcessInfo_r535_t) : sizeof(nvmlProcessInfo_v2_t);
}

/* Newest version first, except if the size of its entries is unknown. */
static nvmlReturn_t fetch_list(struct nvml_device *device, const struct list_call *call,
                               struct nvml_buffer *list, size_t *ret_stride)
{
    const struct {
        enum nvml_function function;
        size_t stride;
    } forms[] = {
        {call->v3, stride_v3(device->source)},
        {call->v2, sizeof(nvmlProcessInfo_v2_t)},
        {call->v1, sizeof(nvmlProcessInfo_v1_t)},
    };
    nvmlReturn_t rc = NVML_ERROR_FUNCTION_NOT_FOUND;
    for (size_t i = device->source->branch == 0;
         i < GP_ARRAY_LEN(forms) && rc == NVML_ERROR_FUNCTION_NOT_FOUND; i++) {
        *ret_stride = forms[i].stride;
        rc = nvml_fetch(device, list, LIST_START, ask_list, &forms[i].function);
    }
    return rc;
}

static void set_value(struct gp_value *v, bool known, int64_t number, uint64_t now_ns)
{
    if (known)
        gp_value_set_int(v, number, now_ns);
    else
        gp_value_set_absent(v, GP_STATUS_UNSUPPORTED, NULL, now_ns);
}

/* The processes found so far, in the rows of the device's room. */
struct collector {
    struct nvml_process_room *room;
    size_t count;
    uint64_t now_ns;
};

static int compare_rows(const void *a, const void *b)
{
    const struct gp_source_process *x = a;
    const struct gp_source_process *y = b;
    int order = (x->pid > y->pid) - (x->pid < y->pid);
    if (order == 0)
        order = (x->gpu_instance.i > y->gpu_instance.i) - (x->gpu_instance.i < y->gpu_instance.i);
    if (order == 0)
        order = (x->compute_instance.i > y->compute_instance.i) -
                (x->compute_instance.i < y->compute_instance.i);
    return order;
}

static bool collector_add(struct collector *c, const nvmlProcessInfo_v2_t *info,
                          enum gp_process_type type)
{
    struct nvml_process_room *room = c->room;
    if (c->count == room->capacity) {
        struct gp_source_process *grown =
            gp_grown(room->rows, &room->capacity, LIST_START, sizeof(*grown));
        if (!grown)
            return false;
        room->rows = grown;
    }
    struct gp_source_process *row = &room->rows[c->count];
    *row = (struct gp_source_process){
        .pid = info->pid, .place = (uint32_t)c->count, .types = (uint8_t)type};
    c->count++;
    set_value(&row->memory, info->usedGpuMemory < UINT64_C(1) << 52, (int64_t)info->usedGpuMemory,
              c->now_ns);
    set_value(&row->gpu_instance, info->gpuInstanceId != NVML_NOT_AVAILABLE_U32,
              info->gpuInstanceId, c->now_ns);
    set_value(&row->compute_instance, info->computeInstanceId != NVML_NOT_AVAILABLE_U32,
              info->computeInstanceId, c->now_ns);
    set_value(&row->power, false, 0, c->now_ns);
    row->energy = row->power;
    return true;
}

static bool collect_list(struct collector *c, const struct nvml_buffer *list, size_t stride,
                         enum gp_process_type type)
{
    const unsigned char *entries = list->entries;
    for (unsigned i = 0; i < list->count; i++) {
        nvmlProcessInfo_v2_t info = {.gpuInstanceId = NVML_NOT_AVAILABLE_U32,
                                     .computeInstanceId = NVML_NOT_AVAILABLE_U32};
        memcpy(&info, entries + i * stride, stride < sizeof(info) ? stride : sizeof(info));
        /* Some SoC drivers list garbage; 0 and numbers above Linux's limit are not pids. */
        if (info.pid == 0 || info.pid > 4194304)
            continue;
        if (!collector_add(c, &info, type))
            return false;
    }
    return true;
}

/* Merges a process that is in two lists into one row with both types. Both have the same memory
 * number, which must not be added. */
static void merge_rows(struct collector *c)
{
    if (c->count < 2)
        return;
    qsort(c->room->rows, c->count, sizeof(*c->room->rows), compare_rows);
    size_t kept = 0;
    for (size_t i = 1; i < c->count; i++)
        if (compare_rows(&c->room->rows[kept], &c->room->rows[i]) != 0) {
            c->room->rows[++kept] = c->room->rows[i];
        } else {
            c->room->rows[kept].types =
                (uint8_t)(c->room->rows[kept].types | c->room->rows[i].types);
            if (c->room->rows[i].place < c->room->rows[kept].place)
                c->room->rows[kept].place = c->room->rows[i].place;
            if (c->room->rows[kept].memory.status != GP_STATUS_OK)
                c->room->rows[kept].memory = c->room->rows[i].memory;
        }
    c->count = kept + 1;
}

/* ---- utilization ---- */

/* Since when, and in which version. */
struct sample_query {
    unsigned long long since_us;
    bool all_engines; /* including JPEG and OFA: R550 and later */
};

static nvmlReturn_t ask_samples(struct nvml_device *device, unsigned *count, void *entries,
                                const void *ctx)
{
    const struct sample_query *query = ctx;
    if (!query->all_engines)
        return NVML_CALL(device, nvmlDeviceGetProcessUtilization, device->handle, entries, count,
                         query->since_us);
    nvmlProcessesUtilizationInfo_t info = {.version = nvmlProcessesUtilizationInfo_v1,
                                           .processSamplesCount = *count,
                                           .lastSeenTimeStamp = query->since_us,
                                           .procUtilArray = entries};
    nvmlReturn_t rc =
        NVML_CALL(device, nvmlDeviceGetProcessesUtilizationInfo, device->handle, &info);
    *count = info.processSamplesCount;
    return rc;
}

static nvmlProcessUtilizationInfo_v1_t sample_at(const struct nvml_buffer *list, unsigned i,
                                                 bool all_engines)
{
    const nvmlProcessUtilizationInfo_v1_t *infos = list->entries;
    if (all_engines)
        return infos[i];
    nvmlProcessUtilizationSample_t old = ((const nvmlProcessUtilizationSample_t *)list->entries)[i];
    return (nvmlProcessUtilizationInfo_v1_t){.timeStamp = old.timeStamp,
                                             .pid = old.pid,
                                             .smUtil = old.smUtil,
                                             .memUtil = old.memUtil,
                                             .encUtil = old.encUtil,
                                             .decUtil = old.decUtil,
                                             .jpgUtil = NVML_NOT_AVAILABLE_U32,
                                             .ofaUtil = NVML_NOT_AVAILABLE_U32};
}

/* Stores a sample as the newest of its process. */
static void remember_sample(struct nvml_samples *samples, nvmlProcessUtilizationInfo_v1_t raw,
                            uint64_t now_ns)
{
    struct nvml_sample *entry = NULL;
    for (size_t i = 0; i < samples->count && !entry; i++)
        if (samples->entries[i].raw.pid == raw.pid)
            entry = &samples->entries[i];
    if (!entry && samples->count == samples->capacity) {
        struct nvml_sample *grown =
            gp_grown(samples->entries, &samples->capacity, LIST_START, sizeof(*grown));
        if (!grown)
            return;
        samples->entries = grown;
    }
    if (!entry)
        entry = &samples->entries[samples->count++];
    else if (raw.timeStamp <= entry->raw.timeStamp)
        return;
    *entry = (struct nvml_sample){.raw = raw, .seen_ns = now_ns};
}

static void forget_old_samples(struct nvml_samples *samples, uint64_t now_ns)
{
    size_t kept = 0;
    for (size_t i = 0; i < samples->count; i++)
        if (now_ns - samples->entries[i].seen_ns < SAMPLE_LASTS_S * GP_NS_PER_S)
            samples->entries[kept++] = samples->entries[i];
    samples->count = kept;
}

static struct gp_percent percent(unsigned n)
{
    return n <= 100 ? (struct gp_percent){true, (uint8_t)n} : (struct gp_percent){false, 0};
}

static void apply_sample(const struct nvml_samples *samples, struct gp_source_process *row,
                         bool all_engines)
{
    nvmlProcessUtilizationInfo_v1_t raw = {0};
    if (!all_engines)
        raw.jpgUtil = raw.ofaUtil = NVML_NOT_AVAILABLE_U32;
    for (size_t i = 0; i < samples->count; i++)
        if (samples->entries[i].raw.pid == row->pid)
            raw = samples->entries[i].raw;
    row->sm = percent(raw.smUtil);
    row->mem = percent(raw.memUtil);
    row->enc = percent(raw.encUtil);
    row->dec = percent(raw.decUtil);
    row->jpeg = percent(raw.jpgUtil);
    row->ofa = percent(raw.ofaUtil);
}

/* Fills the utilization of the rows. NOT_FOUND means "nothing since the last call"; the driver
 * produces a sample per process about every second. Without a start time (the first read), it would
 * return averages over a driver-dependent period, so that read starts one second back. Returns
 * whether the driver reports utilization. */
static bool read_utilization(struct nvml_device *device, struct collector *c, bool all_engines)
{
    struct nvml_samples *samples = &device->samples;
    struct nvml_buffer *list = &c->room->samples;
    if (samples->last_us == 0)
        samples->last_us = gp_clock_wall_ns() / 1000 - 1000000;
    struct sample_query query = {samples->last_us, all_engines};
    nvmlReturn_t rc = nvml_fetch(device, list, SAMPLES_MIN, ask_samples, &query);
    if (all_engines && nvml_return_status(rc) == GP_STATUS_UNSUPPORTED &&
        rc != NVML_ERROR_NOT_FOUND) {
        query.all_engines = false;
        rc = nvml_fetch(device, list, SAMPLES_MIN, ask_samples, &query);
    }
    for (unsigned i = 0; rc == NVML_SUCCESS && i < list->count; i++) {
        nvmlProcessUtilizationInfo_v1_t raw = sample_at(list, i, query.all_engines);
        if (raw.timeStamp <= query.since_us)
            continue;
        remember_sample(samples, raw, c->now_ns);
        samples->last_us = raw.timeStamp > samples->last_us ? raw.timeStamp : samples->last_us;
    }
    forget_old_samples(samples, c->now_ns);
    bool known = rc == NVML_SUCCESS || rc == NVML_ERROR_NOT_FOUND;
    for (size_t i = 0; known && i < c->count; i++)
        apply_sample(samples, &c->room->rows[i], query.all_engines);
    return known;
}

static bool uses_video(const struct nvml_samples *samples)
{
    for (size_t i = 0; i < samples->count; i++)
        if (samples->entries[i].raw.encUtil || samples->entries[i].raw.decUtil)
            return true;
    return false;
}

/* ---- energy ---- */

/* The device's energy since the last read, in joules; *ret_s is the time since then. False on the
 * first read, and if the counter was reset. */
static bool spent_energy(struct nvml_device *device, double *ret_j, double *ret_s)
{
    struct nvml_energy *energy = &device->past->energy;
    unsigned long long mj = 0;
    if (NVML_CALL(device, nvmlDeviceGetTotalEnergyConsumption, device->handle, &mj) != NVML_SUCCESS)
        return false;
    uint64_t now_ns = gp_clock_mono_ns();
    bool known =
        energy->time_ns && (double)mj / 1000 >= energy->total_j && now_ns > energy->time_ns;
    *ret_j = (double)mj / 1000 - energy->total_j;
    *ret_s = (double)(now_ns - energy->time_ns) / 1e9;
    energy->total_j = (double)mj / 1000;
    energy->time_ns = now_ns;
    return known;
}

static double joules_before(const struct nvml_energy *energy, uint32_t pid)
{
    for (size_t i = 0; i < energy->count; i++)
        if (energy->shares[i].pid == pid)
            return energy->shares[i].joules;
    return 0;
}

/* Divides the energy among the processes by their share of the SM time: an approximation, but the
 * sum is right. Energy used while there are no processes is not attributed. */
static void share_energy(struct nvml_device *device, struct collector *c)
{
    struct nvml_energy *energy = &device->past->energy;
    double spent_j;
    double elapsed_s;
    double all = 0;
    bool known = spent_energy(device, &spent_j, &elapsed_s);
    for (size_t i = 0; i < c->count; i++)
        all += c->room->rows[i].sm.n;
    struct nvml_energy_share *shares = calloc(c->count + 1, sizeof(*shares));
    if (!shares)
        return;
    for (size_t i = 0; i < c->count; i++) {
        struct gp_source_process *row = &c->room->rows[i];
        double part = all > 0 ? row->sm.n / all : 0;
        double joules = joules_before(energy, row->pid) + (known ? part * spent_j : 0);
        shares[i] = (struct nvml_energy_share){row->pid, joules};
        if (!row->sm.known || energy->time_ns == 0)
            continue;
        gp_value_set_real(&row->energy, joules, c->now_ns);
        if (known)
            gp_value_set_real(&row->power, part * spent_j / elapsed_s, c->now_ns);
    }
    free(energy->shares);
    energy->shares = shares;
    energy->count = c->count;
}

/* ---- names ---- */

/* Without a root, the system call that only looks for the process is cheaper than /proc by far. A
 * /proc that hides processes of others (hidepid) also hides the first one. */
static bool pid_is_visible(const struct nvml_source *source, uint32_t pid)
{
    const char *root = source->config.root;
    char path[GP_PATH_SIZE];
    char proc[32];
    errno = 0;
    if (!root && getpriority(PRIO_PROCESS, pid) == -1 && errno == ESRCH)
        return false;
    if (!root && !source->hides_processes)
        return true;
    (void)snprintf(proc, sizeof(proc), "/proc/%u", pid);
    return gp_io_path(path, root, proc) && access(path, F_OK) == 0;
}

/* A process that was visible at the last read counts as visible, except for a few that are checked
 * again each time. With a thousand processes on a GPU this saves a thousand system calls. */
static bool is_visible(const struct nvml_device *device, uint32_t pid)
{
    const struct nvml_visible *last = &device->visible;
    if (last->count > 0 && pid % VISIBLE_TURNS != last->turn &&
        bsearch(&pid, last->pids, last->count, sizeof(pid), gp_compare_u32))
        return true;
    return pid_is_visible(device->source, pid);
}

static bool reserve_pids(struct nvml_visible *visible, size_t count)
{
    if (count <= visible->capacity)
        return true;
    uint32_t *grown = realloc(visible->pids, count * sizeof(*grown));
    if (!grown)
        return false;
    visible->pids = grown;
    visible->capacity = count;
    return true;
}

/* If /proc does not show a name (another pid namespace, hidepid), the driver may report it. The
 * path always comes from the driver. A list whose first processes are all visible is of this
 * namespace: the others are visible, too, or have ended. */
static void ask_names(struct nvml_device *device, const struct gp_want *want, struct collector *c,
                      struct gp_arena *arena)
{
    bool all = gp_metric_set_has(&want->metrics, GP_PROCESS_PATH);
    const struct nvml_visible before = device->visible;
    struct nvml_visible visible = device->visible_before;
    bool has_room = !all && reserve_pids(&visible, c->count);
    visible.count = 0;
    visible.turn = (before.turn + 1) % VISIBLE_TURNS;
    bool is_ours = !all && !device->source->config.root && !device->source->hides_processes;
    for (size_t i = 0; i < c->count; i++) {
        char name[1024] = "";
        bool shown =
            !all && ((is_ours && i >= FIRST_PIDS) || is_visible(device, c->room->rows[i].pid));
        is_ours = is_ours && shown;
        if (shown && has_room)
            visible.pids[visible.count++] = c->room->rows[i].pid;
        if (shown || NVML_CALL(device, nvmlSystemGetProcessName, c->room->rows[i].pid, name,
                               (unsigned)sizeof(name)) != NVML_SUCCESS)
            continue;
        name[sizeof(name) - 1] = '\0';
        struct gp_strbuf safe = GP_STRBUF_INIT(8192);
        gp_utf8_add_safe(&safe, name, strlen(name), 1024);
        c->room->rows[i].driver_name = gp_arena_strdup(arena, safe.buf);
        gp_strbuf_fini(&safe);
    }
    device->visible = visible;
    device->visible_before = before;
}

static bool wants_any(const struct gp_want *want, enum gp_metric first, enum gp_metric last)
{
    for (enum gp_metric m = first; m <= last; m++)
        if (gp_metric_set_has(&want->metrics, m))
            return true;
    return false;
}

/* Reads the lists of a GPU or MIG instance. A GPU without graphics refuses the graphics lists,
 * which is not an error; any other failure means that processes are missing. Most GPUs do either
 * graphics or MPS or none of both, so lists that are empty are not read again at once. Returns
 * NVML_SUCCESS, or the code that ended the session. */
static nvmlReturn_t collect_lists(struct nvml_device *device, struct collector *c,
                                  enum gp_status *ret_status)
{
    struct nvml_buffer *list = &c->room->list;
    size_t stride = 0;
    nvmlReturn_t ended = NVML_SUCCESS;
    for (size_t i = 0; i < GP_ARRAY_LEN(list_calls) && ended == NVML_SUCCESS; i++) {
        uint64_t *not_before_ns = &device->lists_not_before_ns[i];
        if (c->now_ns < *not_before_ns)
            continue;
        nvmlReturn_t rc = fetch_list(device, &list_calls[i], list, &stride);
        bool kept = rc != NVML_SUCCESS || collect_list(c, list, stride, list_calls[i].type);
        enum gp_status status = kept ? nvml_return_status(rc) : GP_STATUS_ERROR;
        bool may_lack = list_calls[i].type != GP_PROCESS_COMPUTE && status == GP_STATUS_UNSUPPORTED;
        if (status != GP_STATUS_OK && !may_lack && *ret_status == GP_STATUS_OK)
            *ret_status = status;
        bool is_empty = may_lack || (rc == NVML_SUCCESS && list->count == 0);
        *not_before_ns = is_empty && list_calls[i].type != GP_PROCESS_COMPUTE
                             ? c->now_ns + EMPTY_AGAIN_S * GP_NS_PER_S
                             : 0;
        if (nvml_return_ends_session(rc))
            ended = rc;
    }
    return ended;
}

/* In a container, the GPU's own list may be forbidden while those of its instances are allowed.
 * Their entries may not state their instance. */
static nvmlReturn_t collect_instances(struct nvml_device *device, struct collector *c,
                                      enum gp_status *ret_status)
{
    nvmlReturn_t rc = nvml_list_mig(device, c->now_ns);
    if (rc == NVML_SUCCESS && device->mig.count > 0)
        *ret_status = GP_STATUS_OK;
    for (size_t i = 0; i < device->mig.count && rc == NVML_SUCCESS; i++) {
        struct nvml_device *mig = device->mig.devices[i];
        size_t first = c->count;
        unsigned gi = 0;
        unsigned ci = 0;
        bool placed =
            NVML_CALL(mig, nvmlDeviceGetGpuInstanceId, mig->handle, &gi) == NVML_SUCCESS &&
            NVML_CALL(mig, nvmlDeviceGetComputeInstanceId, mig->handle, &ci) == NVML_SUCCESS;
        rc = collect_lists(mig, c, ret_status);
        for (size_t k = first; k < c->count && placed; k++) {
            gp_value_set_int(&c->room->rows[k].gpu_instance, gi, c->now_ns);
            gp_value_set_int(&c->room->rows[k].compute_instance, ci, c->now_ns);
        }
    }
    return rc;
}

nvmlReturn_t nvml_read_processes(struct nvml_device *device, const struct gp_want *want,
                                 struct gp_reading *reading)
{
    struct collector c = {.room = &device->room, .now_ns = reading->time_ns};
    device->room.list.entry_bytes = ROOM_BYTES;
    device->room.samples.entry_bytes = sizeof(nvmlProcessUtilizationInfo_v1_t);
    enum gp_status *status = &reading->processes_status;
    *status = GP_STATUS_OK;
    nvmlReturn_t rc = collect_lists(device, &c, status);
    if (rc == NVML_SUCCESS && *status == GP_STATUS_NO_PERMISSION)
        rc = collect_instances(device, &c, status);
    if (rc == NVML_SUCCESS) {
        merge_rows(&c);
        bool told = wants_any(want, GP_PROCESS_SM, GP_PROCESS_ENERGY);
        if (c.count && told)
            told = read_utilization(device, &c, wants_any(want, GP_PROCESS_JPEG, GP_PROCESS_OFA));
        device->no_video = told && *status == GP_STATUS_OK && !uses_video(&device->samples);
        if (wants_any(want, GP_PROCESS_POWER, GP_PROCESS_ENERGY))
            share_energy(device, &c);
        if (want->process_names)
            ask_names(device, want, &c, &reading->arena);
        reading->processes = gp_arena_alloc(&reading->arena, c.count + 1, sizeof(*c.room->rows));
        if (!reading->processes)
            reading->processes_status = GP_STATUS_ERROR;
        else if (c.count)
            memcpy(reading->processes, c.room->rows, c.count * sizeof(*c.room->rows));
        reading->process_count = reading->processes ? c.count : 0;
    }
    return rc;
}
