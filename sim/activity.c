/* Recent activity of a GPU: the driver's sample buffers, the utilization of processes by engine,
 * and GPM. */
#include "sim/driver.h"

#include "base/clock.h"
#include "sim/mig.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

/* ------------------------------------------------------------------------- samples */

enum {
    SAMPLES = 120,
    SAMPLES_MAX = 4096,
    POWER_EVERY_US = 20000,
    UTILIZATION_EVERY_US = 166667,
};

static const struct {
    enum sim_slot slot; /* SIM_SLOT_COUNT: empty unless the machine file has samples */
    unsigned int every_us;
    int64_t most;
} series[NVML_SAMPLINGTYPE_COUNT] = {
    [NVML_TOTAL_POWER_SAMPLES] = {SIM_POWER, POWER_EVERY_US, UINT32_MAX},
    [NVML_GPU_UTILIZATION_SAMPLES] = {SIM_UTIL_GPU, UTILIZATION_EVERY_US, 100},
    [NVML_MEMORY_UTILIZATION_SAMPLES] = {SIM_UTIL_MEM, UTILIZATION_EVERY_US, 100},
    [NVML_ENC_UTILIZATION_SAMPLES] = {SIM_UTIL_ENC, UTILIZATION_EVERY_US, 100},
    [NVML_DEC_UTILIZATION_SAMPLES] = {SIM_UTIL_DEC, UTILIZATION_EVERY_US, 100},
    [NVML_PROCESSOR_CLK_SAMPLES] = {SIM_CLOCK_SM, POWER_EVERY_US, UINT32_MAX},
    [NVML_MEMORY_CLK_SAMPLES] = {SIM_CLOCK_MEM, POWER_EVERY_US, UINT32_MAX},
    [NVML_MODULE_POWER_SAMPLES] = {SIM_SLOT_COUNT, POWER_EVERY_US, UINT32_MAX},
    [NVML_JPG_UTILIZATION_SAMPLES] = {SIM_UTIL_JPG, UTILIZATION_EVERY_US, 100},
    [NVML_OFA_UTILIZATION_SAMPLES] = {SIM_UTIL_OFA, UTILIZATION_EVERY_US, 100},
};

/* The clock of the samples is the machine's uptime, not Unix time. */
static unsigned long long uptime_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000;
}

/* Varies the value by a few percent, depending only on the time; not at all while frozen. */
static int64_t rippled(const struct sim_call *call, int64_t value, unsigned long long k)
{
    int64_t percent = call->live.still ? 0 : (int64_t)((k * 2654435761U >> 8) % 9) - 6;
    return value + value * percent / 100;
}

/* The samples of one kind. */
struct buffer {
    unsigned int count;
    unsigned long long first_us, span_us;
    uint64_t max, min, rest; /* the highest comes first, then the lowest, then the others */
    uint64_t shift;          /* how far the clock has moved since the machine file was made */
};

/* From the current value. */
static nvmlReturn_t compute(const struct sim_call *call, nvmlSamplingType_t type,
                            struct buffer *ret)
{
    unsigned long long every_us = series[type].every_us;
    uint64_t now;
    if (series[type].slot == SIM_SLOT_COUNT)
        return NVML_ERROR_NOT_SUPPORTED;
    nvmlReturn_t code = sim_read(call, series[type].slot, &now);
    if (code == NVML_SUCCESS)
        *ret = (struct buffer){.count = SAMPLES,
                               .first_us = (uptime_us() / every_us - SAMPLES + 1) * every_us,
                               .span_us = (SAMPLES - 1) * every_us,
                               .max = now,
                               .min = now,
                               .rest = now * (SAMPLES - 2)};
    return code;
}

/* From a row of the machine file. The times may be in the future if this machine has not run that
 * long. */
static nvmlReturn_t replay(const struct sim_call *call, nvmlSamplingType_t type,
                           const struct sim_rows *rows, size_t row, struct buffer *ret)
{
    const struct sim_value *count = sim_cell(rows, row, SIM_SERIES_COUNT);
    uint64_t sum = sim_cell_number(rows, row, SIM_SERIES_SUM, 0);
    uint64_t now;
    if (count->code != NVML_SUCCESS)
        return count->code;
    struct buffer b = {
        .count = count->number < SAMPLES_MAX ? (unsigned int)count->number : SAMPLES_MAX,
        .first_us = uptime_us(),
        .max = sim_cell_number(rows, row, SIM_SERIES_MAX, 0),
        .min = sim_cell_number(rows, row, SIM_SERIES_MIN, 0),
    };
    b.span_us =
        sim_cell_number(rows, row, SIM_SERIES_DURATION, (uint64_t)series[type].every_us * b.count);
    b.rest = sum > b.max + b.min ? sum - b.max - b.min : 0;
    if (series[type].slot != SIM_SLOT_COUNT &&
        sim_read(call, series[type].slot, &now) == NVML_SUCCESS)
        b.shift = now - call->device->answers[series[type].slot].number;
    *ret = b;
    return NVML_SUCCESS;
}

/* Limits the value to what a driver would report; an absurd one reports anything. */
static int64_t limited(const struct sim_call *call, int64_t value, int64_t most)
{
    if (call->absurd)
        return value < 0 || value > UINT32_MAX ? UINT32_MAX : value;
    return value < 0 ? 0 : value > most ? most : value;
}

static nvmlSample_t sample_of(const struct sim_call *call, nvmlSamplingType_t type,
                              const struct buffer *b, unsigned int i)
{
    const int64_t most = series[type].most;
    uint64_t others = b->count > 2 ? b->count - 2 : 1;
    uint64_t value = i == 0   ? b->max
                     : i == 1 ? b->min
                              : b->rest / others + (i - 2 < b->rest % others);
    unsigned long long time_us = b->first_us + b->span_us * i / (b->count > 1 ? b->count - 1 : 1);
    int64_t moved = limited(call, (int64_t)(value + b->shift), most);
    moved = limited(call, rippled(call, moved, time_us / series[type].every_us), most);
    return (nvmlSample_t){.timeStamp = time_us, .sampleValue.uiVal = (unsigned int)moved};
}

static nvmlReturn_t take_buffer(const struct sim_call *call, nvmlSamplingType_t type,
                                struct buffer *ret)
{
    const struct sim_rows *rows = &call->device->lists.rows[SIM_LIST_SERIES];
    const struct sim_value *v = &call->device->answers[SIM_SAMPLES];
    if (v->code != NVML_SUCCESS)
        return v->code;
    if (call->device->parent || sim_mig_count(&call->live, call->device) > 0)
        return NVML_ERROR_NOT_SUPPORTED;
    for (size_t row = 0; row < rows->count; row++)
        if (sim_cell_number(rows, row, SIM_SERIES_KIND, NVML_SAMPLINGTYPE_COUNT) == (uint64_t)type)
            return replay(call, type, rows, row, ret);
    return compute(call, type, ret);
}

static nvmlReturn_t fill_series(const struct sim_call *call, nvmlSamplingType_t type,
                                unsigned long long last_seen, unsigned int *count,
                                nvmlSample_t *samples)
{
    struct buffer b;
    nvmlReturn_t code = take_buffer(call, type, &b);
    if (code != NVML_SUCCESS)
        return code;
    if (!samples) {
        *count = b.count;
        return b.count > 0 ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
    }
    if (*count < b.count)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    unsigned int n = 0;
    for (unsigned int i = 0; i < b.count; i++) {
        nvmlSample_t sample = sample_of(call, type, &b, i);
        if (sample.timeStamp > last_seen)
            samples[n++] = sample;
    }
    *count = n;
    return n > 0 ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, nvmlSamplingType_t type,
                                             unsigned long long last_seen,
                                             nvmlValueType_t *value_type, unsigned int *count,
                                             nvmlSample_t *samples)
{
    struct sim_call call;
    nvmlReturn_t code =
        sim_enter_device(&call, SIM_FN_nvmlDeviceGetSamples, device,
                         value_type && count && (size_t)type < NVML_SAMPLINGTYPE_COUNT);
    if (code == NVML_SUCCESS)
        code = fill_series(&call, type, last_seen, count, samples);
    if (code == NVML_SUCCESS)
        *value_type = NVML_VALUE_TYPE_UNSIGNED_INT;
    return sim_leave(code);
}

/* ------------------------------------------------------------------------- GPM */

/* A sample is the state of a device at one moment; a handle points to it. */
struct nvmlGpmSample_st {
    bool taken;
    unsigned int generation;
    unsigned int gpu;
    int gpu_instance; /* SIM_NO_INSTANCE: the whole GPU */
    uint64_t time_ns;
    double busy;          /* 0 to 1 */
    const uint8_t *units; /* gpm of its GPU */
    double pcie_tx_mib, pcie_rx_mib, nvlink_mib;
};

/* The typical use of a unit by a training job, relative to the GPU's utilization. */
static const struct {
    unsigned int id;
    double share;
} gpm_shares[] = {
    {1, 1.0}, {2, 0.93}, {3, 0.41}, {4, 0.22}, {5, 0.58},  {6, 0.0},   {7, 0.57},
    {8, 0.0}, {9, 0.01}, {10, 0.6}, {11, 0.0}, {12, 0.24}, {13, 0.05},
};

static nvmlReturn_t gpm_support(const struct sim_call *call)
{
    const struct sim_device *gpu = call->device->parent ? call->device->parent : call->device;
    if (sim_is_hit(call, SIM_FAULT_PROFILING) && call->function != SIM_FN_nvmlGpmQueryDeviceSupport)
        return NVML_ERROR_NO_PERMISSION;
    return gpu->answers[SIM_GPM].code;
}

SIM_EXPORT nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t *support)
{
    struct sim_call call;
    nvmlReturn_t code =
        sim_enter_device(&call, SIM_FN_nvmlGpmQueryDeviceSupport, device, support != NULL);
    if (code == NVML_SUCCESS && support->version != NVML_GPM_SUPPORT_VERSION)
        code = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (code == NVML_SUCCESS)
        support->isSupportedDevice = gpm_support(&call) == NVML_SUCCESS;
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *sample)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter(&call, SIM_FN_nvmlGpmSampleAlloc, sample != NULL);
    if (code == NVML_SUCCESS && !(*sample = calloc(1, sizeof(**sample))))
        code = NVML_ERROR_MEMORY;
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter(&call, SIM_FN_nvmlGpmSampleFree, sample != NULL);
    free(sample); /* even if a fault refuses it: the memory is ours, not the driver's */
    return sim_leave(code);
}

static double slot_or_0(const struct sim_call *call, enum sim_slot slot)
{
    struct sim_value v = sim_live_value(&call->live, call->device, slot);
    return v.code == NVML_SUCCESS ? (double)v.number : 0;
}

/* From 0 to 1. For a GPU in MIG instances the driver reports no utilization, but these metrics: its
 * power tells. An instance has no utilization of its own. */
static double busy_of(const struct sim_call *call)
{
    const double idle_share = 0.1; /* of the power limit */
    if (call->device->parent)
        return sim_live_load(&call->live, call->device) / 100;
    if (sim_live_value(&call->live, call->device, SIM_UTIL_GPU).code == NVML_SUCCESS)
        return slot_or_0(call, SIM_UTIL_GPU) / 100;
    const double limit = slot_or_0(call, SIM_LIMIT_ENFORCED);
    const double share = limit > 0 ? slot_or_0(call, SIM_POWER) / limit : 0;
    return share < idle_share ? 0 : share > 1 ? 1 : (share - idle_share) / (1 - idle_share);
}

static void take(const struct sim_call *call, int gpu_instance, nvmlGpmSample_t sample)
{
    static const double nvlink_mib = 190000; /* of a busy GPU in a multi-GPU training */
    const double busy = busy_of(call);
    *sample = (struct nvmlGpmSample_st){
        .taken = true,
        .generation = call->generation,
        .gpu = call->device->parent ? call->device->parent->index : call->device->index,
        .gpu_instance = gpu_instance,
        .time_ns = gp_clock_mono_ns(),
        .busy = call->absurd ? (double)NAN : busy,
        .units = (call->device->parent ? call->device->parent : call->device)->gpm,
        .pcie_tx_mib = slot_or_0(call, SIM_PCIE_TX) / 1024,
        .pcie_rx_mib = slot_or_0(call, SIM_PCIE_RX) / 1024,
        .nvlink_mib = call->device->parent ? 0 : nvlink_mib * busy,
    };
}

SIM_EXPORT nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter_device(&call, SIM_FN_nvmlGpmSampleGet, device, sample != NULL);
    if (code == NVML_SUCCESS)
        code = gpm_support(&call);
    if (code == NVML_SUCCESS)
        take(&call, call.device->parent ? call.device->gpu_instance : SIM_NO_INSTANCE, sample);
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t device, unsigned int gpu_instance,
                                            nvmlGpmSample_t sample)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter_device(&call, SIM_FN_nvmlGpmMigSampleGet, device, sample != NULL);
    if (code == NVML_SUCCESS)
        code = gpm_support(&call);
    if (code == NVML_SUCCESS && call.device->parent)
        code = NVML_ERROR_INVALID_ARGUMENT;
    struct sim_device *found = NULL;
    for (size_t i = 0; code == NVML_SUCCESS && i < sim_mig_count(&call.live, call.device); i++) {
        struct sim_device *mig = sim_mig_at(&call.live, call.device, i);
        if (!found && mig && mig->gpu_instance == (int)gpu_instance)
            found = mig;
    }
    if (code == NVML_SUCCESS && !found)
        code = NVML_ERROR_NOT_FOUND;
    if (code == NVML_SUCCESS) {
        call.device = found;
        take(&call, (int)gpu_instance, sample);
    }
    return sim_leave(code);
}

static void gpm_metric(const struct nvmlGpmSample_st *a, const struct nvmlGpmSample_st *b,
                       nvmlGpmMetric_t *metric)
{
    double busy = (a->busy + b->busy) / 2;
    metric->nvmlReturn = NVML_SUCCESS;
    for (size_t i = 0; i < GP_ARRAY_LEN(gpm_shares); i++)
        if (gpm_shares[i].id == metric->metricId) {
            unsigned own = a->units[gpm_shares[i].id];
            metric->value = busy * (own > 0 ? own - 1 : 100 * gpm_shares[i].share);
            return;
        }
    if (metric->metricId == 20)
        metric->value = (a->pcie_tx_mib + b->pcie_tx_mib) / 2;
    else if (metric->metricId == 21)
        metric->value = (a->pcie_rx_mib + b->pcie_rx_mib) / 2;
    else if (metric->metricId == 60 || metric->metricId == 61)
        metric->value = (a->nvlink_mib + b->nvlink_mib) / 2;
    else
        metric->nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
}

/* Both must belong to the same device, and the second must be later. */
static bool is_pair(const struct sim_call *call, const struct nvmlGpmSample_st *a,
                    const struct nvmlGpmSample_st *b)
{
    return a && b && a->taken && b->taken && a->gpu == b->gpu &&
           a->gpu_instance == b->gpu_instance && a->generation == call->generation &&
           b->generation == call->generation && b->time_ns > a->time_ns;
}

SIM_EXPORT nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *get)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter(&call, SIM_FN_nvmlGpmMetricsGet, get != NULL);
    if (code == NVML_SUCCESS && get->version != NVML_GPM_METRICS_GET_VERSION)
        code = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (code == NVML_SUCCESS &&
        (get->numMetrics > NVML_GPM_METRIC_MAX || !is_pair(&call, get->sample1, get->sample2)))
        code = NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned int i = 0; code == NVML_SUCCESS && i < get->numMetrics; i++)
        gpm_metric(get->sample1, get->sample2, &get->metrics[i]);
    return sim_leave(code);
}

/* ------------------------------------------------------------------------- processes */

enum { PROCESS_SAMPLES = 100 };

static nvmlReturn_t fill_processes(struct sim_call *call, nvmlProcessesUtilizationInfo_t *info)
{
    const struct sim_value *v = &call->device->answers[SIM_PROCESS_UTIL];
    if (v->code != NVML_SUCCESS)
        return v->code;
    if (call->device->parent || sim_mig_count(&call->live, call->device) > 0)
        return NVML_ERROR_NOT_SUPPORTED;
    if (!info->procUtilArray || info->processSamplesCount < PROCESS_SAMPLES) {
        info->processSamplesCount = PROCESS_SAMPLES;
        return NVML_ERROR_INSUFFICIENT_SIZE;
    }
    struct sim_process processes[PROCESS_SAMPLES];
    size_t found = sim_live_processes(&call->live, call->device, processes, PROCESS_SAMPLES);
    unsigned long long now = gp_clock_wall_ns() / 1000;
    unsigned int n = 0;
    for (size_t i = 0; i < found && i < PROCESS_SAMPLES; i++) {
        unsigned int pct[SIM_SHARE_COUNT];
        if (sim_live_shares(&call->live, call->device, &processes[i], pct) &&
            now > info->lastSeenTimeStamp)
            info->procUtilArray[n++] = (nvmlProcessUtilizationInfo_v1_t){
                .timeStamp = now,
                .pid = sim_listed_pid(call, processes[i].pid),
                .smUtil = call->absurd ? NVML_NOT_AVAILABLE_U32 : pct[SIM_SHARE_SM],
                .memUtil = call->absurd ? NVML_NOT_AVAILABLE_U32 : pct[SIM_SHARE_MEM],
                .encUtil = pct[SIM_SHARE_ENC],
                .decUtil = pct[SIM_SHARE_DEC],
            };
    }
    info->processSamplesCount = n;
    return n > 0 ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device,
                                                              nvmlProcessesUtilizationInfo_t *info)
{
    struct sim_call call;
    nvmlReturn_t code =
        sim_enter_device(&call, SIM_FN_nvmlDeviceGetProcessesUtilizationInfo, device, info != NULL);
    if (code == NVML_SUCCESS && info->version != nvmlProcessesUtilizationInfo_v1)
        code = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (code == NVML_SUCCESS)
        code = fill_processes(&call, info);
    return sim_leave(code);
}
