/* The process lists of a device: compute, graphics, MPS, and who used how much since the last look.
 *
 * Three traps: the list may grow between asking for its size and fetching it; a process may stand
 * in two lists with the same memory; and drivers 535.43 to 535.86 answer the _v3 calls with 32-byte
 * entries where all others write 24. */
#include "source/nvml/internal.h"

#include "base/io.h"
#include "base/strbuf.h"
#include "base/utf8.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LIST_START = 32, /* entries asked for first: one call where it suffices */
    LIST_MAX = 65536,
    LIST_TRIES = 6,
    SAMPLES_MIN = 128, /* the driver's own buffer has 100 entries */
};

typedef nvmlReturn_t (*list_fn)(nvmlDevice_t device, unsigned int *count, void *infos);

struct list_call {
    enum gp_process_type type;
    size_t v3, v2, v1; /* offsets in struct nvml_api */
};

#define API(name) offsetof(struct nvml_api, name)
static const struct list_call list_calls[] = {
    {GP_PROCESS_COMPUTE, API(nvmlDeviceGetComputeRunningProcesses_v3),
     API(nvmlDeviceGetComputeRunningProcesses_v2), API(nvmlDeviceGetComputeRunningProcesses)},
    {GP_PROCESS_GRAPHICS, API(nvmlDeviceGetGraphicsRunningProcesses_v3),
     API(nvmlDeviceGetGraphicsRunningProcesses_v2), API(nvmlDeviceGetGraphicsRunningProcesses)},
    {GP_PROCESS_MPS, API(nvmlDeviceGetMPSComputeRunningProcesses_v3),
     API(nvmlDeviceGetMPSComputeRunningProcesses_v2), API(nvmlDeviceGetMPSComputeRunningProcesses)},
};

struct raw_list {
    unsigned char *entries;
    unsigned capacity; /* entries of the widest form */
    unsigned count;
    size_t stride;
};

static list_fn list_function(const struct nvml_api *api, size_t offset)
{
    list_fn fn;
    memcpy(&fn, (const char *)api + offset, sizeof(fn));
    return fn;
}

static bool raw_list_reserve(struct raw_list *list, unsigned capacity)
{
    if (capacity <= list->capacity)
        return true;
    unsigned char *grown = realloc(list->entries, capacity * sizeof(nvmlProcessInfo_r535_t));
    if (!grown)
        return false;
    list->entries = grown;
    list->capacity = capacity;
    return true;
}

/* One form of one list, with room for growth between two tries. */
static nvmlReturn_t fetch_form(const struct nvml_device *device, list_fn fn, struct raw_list *list)
{
    if (!fn)
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    atomic_store_explicit(device->call, "process list", memory_order_relaxed);
    unsigned want = LIST_START;
    nvmlReturn_t rc = NVML_ERROR_INSUFFICIENT_SIZE;
    for (int try = 0; try < LIST_TRIES && rc == NVML_ERROR_INSUFFICIENT_SIZE; try++) {
        if (!raw_list_reserve(list, want))
            return NVML_ERROR_MEMORY;
        unsigned count = list->capacity;
        rc = fn(device->handle, &count, list->entries);
        list->count = count < list->capacity ? count : list->capacity;
        want = count > LIST_MAX / 2 - 8 ? LIST_MAX : 2 * count + 8;
    }
    return rc;
}

/* Newest form first. */
static nvmlReturn_t fetch_list(const struct nvml_device *device, const struct list_call *call,
                               struct raw_list *list)
{
    const struct nvml_api *api = &device->source->api;
    const struct {
        size_t offset;
        size_t stride;
    } forms[] = {
        {call->v3, device->source->wide_process_entries ? sizeof(nvmlProcessInfo_r535_t)
                                                        : sizeof(nvmlProcessInfo_v2_t)},
        {call->v2, sizeof(nvmlProcessInfo_v2_t)},
        {call->v1, sizeof(nvmlProcessInfo_v1_t)},
    };
    nvmlReturn_t rc = NVML_ERROR_FUNCTION_NOT_FOUND;
    for (size_t i = 0; i < GP_ARRAY_LEN(forms) && rc == NVML_ERROR_FUNCTION_NOT_FOUND; i++) {
        list->stride = forms[i].stride;
        rc = fetch_form(device, list_function(api, forms[i].offset), list);
    }
    return rc;
}

static void set_value(struct gp_value *v, bool known, int64_t number, uint64_t now_ns)
{
    *v = (struct gp_value){.i = known ? number : 0,
                           .time_ns = now_ns,
                           .status = known ? GP_STATUS_OK : GP_STATUS_UNSUPPORTED};
}

/* The processes found so far, with an index by pid and instance. */
struct collector {
    struct gp_source_process *rows;
    size_t count;
    size_t capacity;
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
    if (c->count == c->capacity) {
        size_t capacity = c->capacity ? 2 * c->capacity : LIST_START;
        struct gp_source_process *grown = realloc(c->rows, capacity * sizeof(*grown));
        if (!grown)
            return false;
        c->rows = grown;
        c->capacity = capacity;
    }
    struct gp_source_process *row = &c->rows[c->count++];
    *row = (struct gp_source_process){.pid = info->pid, .types = type};
    set_value(&row->memory, info->usedGpuMemory < UINT64_C(1) << 52, (int64_t)info->usedGpuMemory,
              c->now_ns);
    set_value(&row->gpu_instance, info->gpuInstanceId != NVML_NOT_AVAILABLE_U32,
              info->gpuInstanceId, c->now_ns);
    set_value(&row->compute_instance, info->computeInstanceId != NVML_NOT_AVAILABLE_U32,
              info->computeInstanceId, c->now_ns);
    set_value(&row->sm, false, 0, c->now_ns);
    row->mem = row->enc = row->dec = row->sm;
    return true;
}

static bool collect_list(struct collector *c, const struct raw_list *list,
                         enum gp_process_type type)
{
    for (unsigned i = 0; i < list->count; i++) {
        nvmlProcessInfo_v2_t info = {.gpuInstanceId = NVML_NOT_AVAILABLE_U32,
                                     .computeInstanceId = NVML_NOT_AVAILABLE_U32};
        size_t n = list->stride < sizeof(info) ? list->stride : sizeof(info);
        memcpy(&info, list->entries + i * list->stride, n);
        /* Some SoC drivers list garbage; 0 and numbers beyond Linux's limit are no pids. */
        if (info.pid == 0 || info.pid > 4194304)
            continue;
        if (!collector_add(c, &info, type))
            return false;
    }
    return true;
}

/* A process in two lists becomes one row with both types; its memory is the same number twice. */
static void merge_rows(struct collector *c)
{
    if (c->count < 2)
        return;
    qsort(c->rows, c->count, sizeof(*c->rows), compare_rows);
    size_t kept = 0;
    for (size_t i = 1; i < c->count; i++)
        if (compare_rows(&c->rows[kept], &c->rows[i]) == 0)
            c->rows[kept].types |= c->rows[i].types;
        else
            c->rows[++kept] = c->rows[i];
    c->count = kept + 1;
}

static void apply_sample(struct collector *c, const nvmlProcessUtilizationSample_t *sample)
{
    struct gp_source_process key = {.pid = sample->pid};
    /* rows are sorted by pid first; several rows of a pid differ by MIG instance, where the driver
     * gives no samples at all */
    size_t low = 0;
    size_t high = c->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (c->rows[mid].pid < key.pid)
            low = mid + 1;
        else
            high = mid;
    }
    if (low == c->count || c->rows[low].pid != key.pid)
        return;
    struct gp_source_process *row = &c->rows[low];
    set_value(&row->sm, sample->smUtil <= 100, sample->smUtil, c->now_ns);
    set_value(&row->mem, sample->memUtil <= 100, sample->memUtil, c->now_ns);
    set_value(&row->enc, sample->encUtil <= 100, sample->encUtil, c->now_ns);
    set_value(&row->dec, sample->decUtil <= 100, sample->decUtil, c->now_ns);
}

/* Fills the utilization of the rows. NOT_FOUND is the driver's word for "nobody did anything". */
static nvmlReturn_t read_utilization(struct nvml_device *device, struct collector *c)
{
    unsigned capacity = SAMPLES_MIN;
    nvmlReturn_t rc = NVML_ERROR_INSUFFICIENT_SIZE;
    nvmlProcessUtilizationSample_t *samples = NULL;
    unsigned count = 0;
    for (int try = 0; try < LIST_TRIES && rc == NVML_ERROR_INSUFFICIENT_SIZE; try++) {
        nvmlProcessUtilizationSample_t *grown = realloc(samples, capacity * sizeof(*samples));
        if (!grown)
            break;
        samples = grown;
        count = capacity;
        rc = NVML_CALL(device, nvmlDeviceGetProcessUtilization, device->handle, samples, &count,
                       device->last_process_sample_us);
        capacity = capacity < LIST_MAX / 2 ? 2 * (count > capacity ? count : capacity) : LIST_MAX;
    }
    if (rc == NVML_SUCCESS || rc == NVML_ERROR_NOT_FOUND)
        for (size_t i = 0; i < c->count; i++) {
            set_value(&c->rows[i].sm, true, 0, c->now_ns);
            c->rows[i].mem = c->rows[i].enc = c->rows[i].dec = c->rows[i].sm;
        }
    unsigned long long last = device->last_process_sample_us;
    for (unsigned i = 0; rc == NVML_SUCCESS && i < count; i++) {
        if (samples[i].timeStamp <= device->last_process_sample_us)
            continue;
        apply_sample(c, &samples[i]);
        last = samples[i].timeStamp > last ? samples[i].timeStamp : last;
    }
    device->last_process_sample_us = last;
    free(samples);
    return rc;
}

static bool pid_is_visible(const char *root, uint32_t pid)
{
    char path[GP_PATH_SIZE];
    char proc[32];
    if (!root)
        return kill((pid_t)pid, 0) == 0 || errno == EPERM; /* far cheaper than a look into /proc */
    (void)snprintf(proc, sizeof(proc), "/proc/%u", pid);
    return gp_io_path(path, root, proc) && access(path, F_OK) == 0;
}

/* Where /proc cannot tell a name (another pid namespace, hidepid), the driver may. */
static void ask_names(struct nvml_device *device, struct collector *c, struct gp_arena *arena)
{
    for (size_t i = 0; i < c->count; i++) {
        char name[1024] = "";
        if (pid_is_visible(device->source->config.root, c->rows[i].pid) ||
            NVML_CALL(device, nvmlSystemGetProcessName, c->rows[i].pid, name,
                      (unsigned)sizeof(name)) != NVML_SUCCESS)
            continue;
        name[sizeof(name) - 1] = '\0';
        struct gp_strbuf safe = GP_STRBUF_INIT(8192);
        gp_utf8_add_safe(&safe, name, strlen(name), 1024);
        c->rows[i].driver_name = gp_arena_strdup(arena, safe.buf);
        gp_strbuf_fini(&safe);
    }
}

static bool wants_utilization(const struct gp_want *want)
{
    return gp_metric_set_has(&want->metrics, GP_PROCESS_SM) ||
           gp_metric_set_has(&want->metrics, GP_PROCESS_MEM) ||
           gp_metric_set_has(&want->metrics, GP_PROCESS_ENC) ||
           gp_metric_set_has(&want->metrics, GP_PROCESS_DEC);
}

/* Status of the whole list: the best that any of the three lists gave. */
static nvmlReturn_t collect_lists(struct nvml_device *device, struct collector *c,
                                  struct gp_reading *reading)
{
    struct raw_list list = {0};
    nvmlReturn_t ended = NVML_SUCCESS;
    reading->processes_status = GP_STATUS_UNSUPPORTED;
    for (size_t i = 0; i < GP_ARRAY_LEN(list_calls); i++) {
        nvmlReturn_t rc = fetch_list(device, &list_calls[i], &list);
        if (nvml_return_ends_session(rc)) {
            ended = rc;
            break;
        }
        if (rc == NVML_SUCCESS && collect_list(c, &list, list_calls[i].type))
            reading->processes_status = GP_STATUS_OK;
        else if (reading->processes_status != GP_STATUS_OK)
            reading->processes_status =
                rc == NVML_SUCCESS ? GP_STATUS_ERROR : nvml_return_status(rc);
    }
    free(list.entries);
    return ended;
}

nvmlReturn_t nvml_read_processes(struct nvml_device *device, const struct gp_want *want,
                                 struct gp_reading *reading)
{
    struct collector c = {.now_ns = reading->time_ns};
    nvmlReturn_t rc = collect_lists(device, &c, reading);
    if (rc == NVML_SUCCESS) {
        merge_rows(&c);
        if (c.count && wants_utilization(want))
            (void)read_utilization(device, &c);
        ask_names(device, &c, &reading->arena);
        reading->processes = gp_arena_alloc(&reading->arena, c.count, sizeof(*c.rows));
        if (reading->processes && c.count) {
            memcpy(reading->processes, c.rows, c.count * sizeof(*c.rows));
            reading->process_count = c.count;
        }
    }
    free(c.rows);
    return rc;
}
