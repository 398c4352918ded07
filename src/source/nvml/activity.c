/* Values over the time between two reads: the driver's own samples, and GPM, which subtracts a pair
 * of samples. Two of them less than NVML_GAP_MS apart are useless: the older values stay. */
#include "source/nvml/lists.h"

#include "base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SAMPLES_MAX = 4096,
    SAMPLE_TRIES = 3,
};

/* ---- the driver's own samples ---- */

static const struct sample_kind {
    const char *name;
    double most;    /* plausible maximum, in the driver's unit */
    double divisor; /* the driver's counts per unit */
} sample_kinds[NVML_SAMPLINGTYPE_COUNT] = {
    [NVML_TOTAL_POWER_SAMPLES] = {"power", 1e7, 1000},
    [NVML_GPU_UTILIZATION_SAMPLES] = {"gpu", 100, 1},
    [NVML_MEMORY_UTILIZATION_SAMPLES] = {"memory", 100, 1},
    [NVML_ENC_UTILIZATION_SAMPLES] = {"encoder", 100, 1},
    [NVML_DEC_UTILIZATION_SAMPLES] = {"decoder", 100, 1},
    [NVML_PROCESSOR_CLK_SAMPLES] = {"sm_clock", 1e5, 1},
    [NVML_MEMORY_CLK_SAMPLES] = {"memory_clock", 1e5, 1},
    [NVML_MODULE_POWER_SAMPLES] = {"module_power", 1e7, 1000},
    [NVML_JPG_UTILIZATION_SAMPLES] = {"jpeg", 100, 1},
    [NVML_OFA_UTILIZATION_SAMPLES] = {"ofa", 100, 1},
};

static const struct series {
    nvmlSamplingType_t type;
    enum gp_metric peak, mean;
    enum gp_metric now; /* the sampled metric */
} series[NVML_SERIES] = {
    {NVML_GPU_UTILIZATION_SAMPLES, GP_UTILIZATION_GPU_PEAK, GP_UTILIZATION_GPU_MEAN,
     GP_UTILIZATION_GPU},
    {NVML_MEMORY_UTILIZATION_SAMPLES, GP_UTILIZATION_MEMORY_PEAK, GP_UTILIZATION_MEMORY_MEAN,
     GP_UTILIZATION_MEMORY},
    {NVML_TOTAL_POWER_SAMPLES, GP_POWER_DRAW_PEAK, GP_POWER_DRAW_MEAN, GP_POWER_DRAW},
};

static bool sample_number(nvmlValueType_t type, const nvmlValue_t *value, double *ret)
{
    nvmlFieldValue_t field = {.valueType = type, .value = *value};
    int64_t number;
    if (!nvml_field_number(&field, &number))
        return false;
    *ret = (double)number;
    return true;
}

/* Fetches the samples since that time; the caller frees *ret. The driver may write fewer than
 * announced: unwritten entries have time 0. */
static nvmlReturn_t fetch_samples(struct nvml_device *device, nvmlSamplingType_t kind,
                                  unsigned long long since, nvmlValueType_t *type,
                                  nvmlSample_t **ret, unsigned *ret_count)
{
    unsigned room = 0;
    nvmlReturn_t rc =
        NVML_CALL(device, nvmlDeviceGetSamples, device->handle, kind, since, type, &room, NULL);
    for (int try = 0; try < SAMPLE_TRIES; try++) {
        if ((rc != NVML_SUCCESS && rc != NVML_ERROR_INSUFFICIENT_SIZE) || room == 0)
            return rc == NVML_SUCCESS ? NVML_ERROR_NOT_FOUND : rc;
        room = room > SAMPLES_MAX ? SAMPLES_MAX : room;
        nvmlSample_t *samples = calloc(room, sizeof(*samples));
        if (!samples)
            return NVML_ERROR_MEMORY;
        unsigned count = room;
        rc = NVML_CALL(device, nvmlDeviceGetSamples, device->handle, kind, since, type, &count,
                       samples);
        if (rc == NVML_SUCCESS) {
            *ret = samples;
            *ret_count = count < room ? count : room;
            return rc;
        }
        free(samples);
        room = count;
    }
    return rc;
}

/* A summary of the plausible samples, in our unit. */
struct summary {
    unsigned count; /* 0: no samples */
    bool doubted;   /* there were implausible ones */
    double max, min, mean;
    unsigned long long oldest_us, newest_us;
};

static nvmlReturn_t summarize(struct nvml_device *device, nvmlSamplingType_t kind,
                              unsigned long long since_us, struct summary *ret)
{
    const struct sample_kind *k = &sample_kinds[kind];
    nvmlValueType_t type = NVML_VALUE_TYPE_UNSIGNED_INT;
    nvmlSample_t *samples = NULL;
    unsigned count = 0;
    double sum = 0;
    struct summary s = {.min = (double)INFINITY, .oldest_us = UINT64_MAX};
    nvmlReturn_t rc = fetch_samples(device, kind, since_us, &type, &samples, &count);
    for (unsigned i = 0; i < count; i++) {
        unsigned long long time_us = samples[i].timeStamp;
        double value;
        if (time_us <= since_us)
            continue;
        if (!sample_number(type, &samples[i].sampleValue, &value) || value < 0 || value > k->most) {
            s.doubted = true;
            continue;
        }
        sum += value; /* of whole numbers, so it is exact */
        value /= k->divisor;
        s.count++;
        s.max = value > s.max ? value : s.max;
        s.min = value < s.min ? value : s.min;
        s.oldest_us = time_us < s.oldest_us ? time_us : s.oldest_us;
        s.newest_us = time_us > s.newest_us ? time_us : s.newest_us;
    }
    s.mean = s.count ? sum / s.count / k->divisor : 0;
    free(samples);
    *ret = s;
    return rc == NVML_ERROR_NOT_FOUND ? NVML_SUCCESS : rc;
}

static void set_number(struct nvml_device *device, enum gp_metric m, double number, uint64_t now_ns)
{
    if (gp_metric_table[m].type == GP_TYPE_INT)
        gp_value_set_int(nvml_cached(device, m), (int64_t)number, now_ns);
    else
        gp_value_set_real(nvml_cached(device, m), number, now_ns);
}

/* If there are no samples since the last read, the current value is peak and mean. */
static nvmlReturn_t copy_now(struct nvml_device *device, const struct series *s, uint64_t now_ns)
{
    struct gp_metric_set want = {0};
    gp_metric_set_add(&want, s->now);
    nvmlReturn_t rc = nvml_run_readers(device, &want, now_ns);
    const struct gp_value *now = nvml_cached(device, s->now);
    *nvml_cached(device, s->peak) = *now;
    *nvml_cached(device, s->mean) = *now;
    if (now->status == GP_STATUS_OK && gp_metric_table[s->now].type == GP_TYPE_INT)
        nvml_cached(device, s->mean)->f = (double)now->i;
    return rc;
}

static nvmlReturn_t read_one_series(struct nvml_device *device, const struct series *s,
                                    struct nvml_series *state, uint64_t now_ns)
{
    struct summary sum;
    nvmlReturn_t rc = summarize(device, s->type, state->last_us, &sum);
    if (sum.count > 0) {
        state->last_us = sum.newest_us;
        set_number(device, s->peak, sum.max, now_ns);
        set_number(device, s->mean, sum.mean, now_ns);
    } else if (rc == NVML_SUCCESS) {
        rc = copy_now(device, s, now_ns);
    } else {
        nvml_set_refused(nvml_cached(device, s->peak), rc, now_ns);
        nvml_set_refused(nvml_cached(device, s->mean), rc, now_ns);
        state->next_ns = nvml_refused_until(rc, now_ns);
    }
    return nvml_return_ends_session(rc) ? rc : NVML_SUCCESS;
}

static nvmlReturn_t read_series(struct nvml_device *device, const struct gp_metric_set *want,
                                uint64_t now_ns)
{
    nvmlReturn_t rc = NVML_SUCCESS;
    for (size_t i = 0; i < NVML_SERIES && !device->is_mig && rc == NVML_SUCCESS; i++)
        if (now_ns >= device->series[i].next_ns &&
            (gp_metric_set_has(want, series[i].peak) || gp_metric_set_has(want, series[i].mean)))
            rc = read_one_series(device, &series[i], &device->series[i], now_ns);
    return rc;
}

/* Reads the whole buffer of one kind. */
static nvmlReturn_t read_buffer(struct nvml_rows *rows, nvmlSamplingType_t kind,
                                struct summary *ret)
{
    struct nvml_refusal *last = &rows->device->buffers[kind];
    if (rows->now_ns < last->next_ns)
        return last->rc;
    nvmlReturn_t rc = summarize(rows->device, kind, 0, ret);
    *last = (struct nvml_refusal){rc, nvml_refused_until(rc, rows->now_ns)};
    return rc;
}

static bool wants_more_than_the_kind(const struct nvml_rows *rows)
{
    for (enum gp_metric m = GP_SAMPLES_DURATION; m <= GP_SAMPLES_AVERAGE; m++)
        if (nvml_rows_want(rows, m))
            return true;
    return false;
}

static void put_nothing(struct nvml_rows *rows, enum gp_status status, const char *words)
{
    for (enum gp_metric m = GP_SAMPLES_DURATION; m <= GP_SAMPLES_AVERAGE; m++)
        gp_value_set_absent(nvml_rows_cell(rows, rows->list.count - 1, m), status, words,
                            rows->now_ns);
}

static void put_summary(struct nvml_rows *rows, nvmlReturn_t rc, const struct summary *s)
{
    size_t row = rows->list.count - 1;
    nvml_cell_real(rows, row, GP_SAMPLES_DURATION, rc, (double)(s->newest_us - s->oldest_us) / 1e6);
    nvml_cell_number(rows, row, GP_SAMPLES_COUNT, rc, s->count);
    nvml_cell_real(rows, row, GP_SAMPLES_MAX, rc, s->max);
    nvml_cell_real(rows, row, GP_SAMPLES_MIN, rc, s->min);
    nvml_cell_real(rows, row, GP_SAMPLES_AVERAGE, rc, s->mean);
}

/* One row for each kind; a refused kind states the reason. */
nvmlReturn_t nvml_list_samples(struct nvml_rows *rows)
{
    bool whole = wants_more_than_the_kind(rows);
    nvmlReturn_t rc = NVML_SUCCESS;
    for (size_t kind = 0; kind < NVML_SAMPLINGTYPE_COUNT; kind++) {
        struct summary s = {0};
        rc = nvml_rows_add(rows);
        if (rc != NVML_SUCCESS)
            return rc;
        nvml_put_text(rows, GP_SAMPLES_KIND, sample_kinds[kind].name);
        if (whole)
            rc = read_buffer(rows, (nvmlSamplingType_t)kind, &s);
        if (nvml_return_ends_session(rc))
            return rc;
        if (whole && rc == NVML_SUCCESS && s.count == 0)
            put_nothing(rows, s.doubted ? GP_STATUS_ERROR : GP_STATUS_UNSUPPORTED,
                        s.doubted ? "impossible value" : GP_NO_SAMPLES);
        else if (whole)
            put_summary(rows, rc, &s);
    }
    return NVML_SUCCESS;
}

/* ---- GPM ---- */

static const struct gpm {
    enum gp_metric metric;
    unsigned id;
    double scale; /* of the driver's unit */
} gpm_metrics[] = {
    {GP_GPM_GRAPHICS, 1, 1},        {GP_GPM_SM, 2, 1},
    {GP_GPM_SM_OCCUPANCY, 3, 1},    {GP_GPM_INTEGER, 4, 1},
    {GP_GPM_TENSOR, 5, 1},          {GP_GPM_TENSOR_DFMA, 6, 1},
    {GP_GPM_TENSOR_HMMA, 7, 1},     {GP_GPM_TENSOR_DMMA, 8, 1},
    {GP_GPM_TENSOR_IMMA, 9, 1},     {GP_GPM_DRAM, 10, 1},
    {GP_GPM_FP64, 11, 1},           {GP_GPM_FP32, 12, 1},
    {GP_GPM_FP16, 13, 1},           {GP_GPM_PCIE_TX, 20, 0x1p20}, /* MiB/s, like the next */
    {GP_GPM_PCIE_RX, 21, 0x1p20},   {GP_GPM_NVLINK_TX, 61, 0x1p20},
    {GP_GPM_NVLINK_RX, 60, 0x1p20},
};

static void gpm_refuse(struct nvml_device *device, nvmlReturn_t rc, uint64_t now_ns)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(gpm_metrics); i++)
        nvml_set_refused(nvml_cached(device, gpm_metrics[i].metric), rc, now_ns);
}

static nvmlReturn_t gpm_start(struct nvml_device *device)
{
    nvmlGpmSupport_t support = {.version = NVML_GPM_SUPPORT_VERSION};
    nvmlDevice_t gpu = device->parent ? device->parent->handle : device->handle;
    nvmlReturn_t rc = NVML_CALL(device, nvmlGpmQueryDeviceSupport, gpu, &support);
    if (rc == NVML_SUCCESS && !support.isSupportedDevice)
        rc = NVML_ERROR_NOT_SUPPORTED;
    for (size_t i = 0; i < 2 && rc == NVML_SUCCESS; i++)
        if (!device->gpm.samples[i])
            rc = NVML_CALL(device, nvmlGpmSampleAlloc, &device->gpm.samples[i]);
    return rc;
}

static nvmlReturn_t gpm_sample(struct nvml_device *device, nvmlGpmSample_t sample)
{
    if (!device->is_mig)
        return NVML_CALL(device, nvmlGpmSampleGet, device->handle, sample);
    unsigned instance = 0;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetGpuInstanceId, device->handle, &instance);
    return rc != NVML_SUCCESS
               ? rc
               : NVML_CALL(device, nvmlGpmMigSampleGet, device->parent->handle, instance, sample);
}

static void gpm_settle(struct nvml_device *device, const struct gpm *gpm,
                       const nvmlGpmMetric_t *metric, uint64_t now_ns)
{
    struct gp_value *v = nvml_cached(device, gpm->metric);
    double value = metric->value * gpm->scale;
    bool share = gpm->scale <= 1;
    if (metric->nvmlReturn != NVML_SUCCESS)
        nvml_set_refused(v, metric->nvmlReturn, now_ns);
    else if (!isfinite(value) || value < 0 || (share && value > 101))
        gp_value_set_absent(v, GP_STATUS_ERROR, "impossible value", now_ns);
    else
        gp_value_set_real(v, nvml_limit_share(gpm->metric, value), now_ns);
}

/* The driver subtracts the older sample from the newer, and only computes the requested metrics.
 * The array has room for all ids of the newest header, because some drivers check the size. */
static nvmlReturn_t gpm_subtract(struct nvml_device *device, const struct gp_metric_set *want,
                                 uint64_t now_ns)
{
    nvmlGpmMetricsGet_t get; /* 13 KiB: metrics that are not requested stay uninitialized */
    get.version = NVML_GPM_METRICS_GET_VERSION;
    get.numMetrics = 0;
    get.sample1 = device->gpm.samples[!device->gpm.newest];
    get.sample2 = device->gpm.samples[device->gpm.newest];
    const struct gpm *asked[GP_ARRAY_LEN(gpm_metrics)];
    for (size_t i = 0; i < GP_ARRAY_LEN(gpm_metrics); i++)
        if (gp_metric_set_has(want, gpm_metrics[i].metric)) {
            asked[get.numMetrics] = &gpm_metrics[i];
            get.metrics[get.numMetrics] = (nvmlGpmMetric_t){.metricId = gpm_metrics[i].id};
            get.numMetrics++;
        }
    nvmlReturn_t rc = NVML_CALL(device, nvmlGpmMetricsGet, &get);
    for (unsigned i = 0; i < get.numMetrics && rc == NVML_SUCCESS; i++)
        gpm_settle(device, asked[i], &get.metrics[i], now_ns);
    return rc;
}

static bool wants_gpm(const struct gp_metric_set *want)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(gpm_metrics); i++)
        if (gp_metric_set_has(want, gpm_metrics[i].metric))
            return true;
    return false;
}

static nvmlReturn_t read_gpm(struct nvml_device *device, const struct gp_metric_set *want,
                             uint64_t now_ns)
{
    struct nvml_gpm *gpm = &device->gpm;
    if (!wants_gpm(want) || now_ns < gpm->next_ns ||
        (gpm->time_ns && now_ns - gpm->time_ns < NVML_GAP_MS * GP_NS_PER_MS))
        return NVML_SUCCESS;
    nvmlReturn_t rc = gpm->samples[1] ? NVML_SUCCESS : gpm_start(device);
    if (rc == NVML_SUCCESS)
        rc = gpm_sample(device, gpm->samples[!gpm->newest]);
    now_ns = gp_clock_mono_ns();
    bool has_older = gpm->time_ns != 0;
    if (rc == NVML_SUCCESS) {
        gpm->newest = !gpm->newest;
        gpm->time_ns = now_ns;
        if (has_older)
            rc = gpm_subtract(device, want, now_ns);
    }
    if (rc != NVML_SUCCESS) {
        gpm_refuse(device, rc, now_ns);
        gpm->time_ns = 0; /* a difference needs two good samples */
        gpm->next_ns = nvml_refused_until(rc, now_ns);
    } else if (!has_older) {
        for (size_t i = 0; i < GP_ARRAY_LEN(gpm_metrics); i++)
            gp_value_set_absent(nvml_cached(device, gpm_metrics[i].metric), GP_STATUS_UNSUPPORTED,
                                "rates need a second sample", now_ns);
    }
    return nvml_return_ends_session(rc) ? rc : NVML_SUCCESS;
}

void nvml_free_gpm(struct nvml_device *device)
{
    for (size_t i = 0; i < 2; i++)
        if (device->gpm.samples[i])
            (void)NVML_CALL(device, nvmlGpmSampleFree, device->gpm.samples[i]);
}

nvmlReturn_t nvml_read_activity(struct nvml_device *device, const struct gp_metric_set *want,
                                uint64_t now_ns)
{
    nvmlReturn_t rc = read_series(device, want, now_ns);
    return rc == NVML_SUCCESS ? read_gpm(device, want, now_ns) : rc;
}
