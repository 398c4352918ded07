#include "jobs/timeline_gpus.h"

#include "jobs/pick.h"
#include "source/source.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FIRST_PID = GP_TRACE_PID + 1, ORDER = 1, NO_ANSWER = GP_TIMELINE_REASONS };

/* Rows with the same name are series of one counter, next to each other. What a GPU does
 * not report is left out. */
static const struct {
    const char *name, *series;
    enum gp_metric metric;
    double unit;  /* of the metric, in one of the series */
    double grain; /* smaller changes are not written */
    bool is_rate; /* a mean over the time since the last sample */
} rows[] = {
    {"utilization", "%", GP_UTILIZATION_GPU, 1, 1, false},
    {"memory controller", "%", GP_UTILIZATION_MEMORY, 1, 1, false},
    {"SM active", "%", GP_GPM_SM, 1, 0.1, true},
    {"tensor cores active", "%", GP_GPM_TENSOR, 1, 0.1, true},
    {"memory bandwidth", "%", GP_GPM_DRAM, 1, 0.1, true},
    {"power", "W", GP_POWER_DRAW, 1, 1, false},
    {"temperature", "°C", GP_TEMPERATURE_GPU, 1, 1, false},
    {"SM clock", "MHz", GP_CLOCK_SM, 1, 1, false},
    {"memory clock", "MHz", GP_CLOCK_MEMORY, 1, 1, false},
    {"PCIe", "to GPU MB/s", GP_PCIE_RX, 1e6, 0.1, true},
    {"PCIe", "from GPU MB/s", GP_PCIE_TX, 1e6, 0.1, true},
    {"NVLink", "to GPU MB/s", GP_GPM_NVLINK_RX, 1e6, 0.1, true},
    {"NVLink", "from GPU MB/s", GP_GPM_NVLINK_TX, 1e6, 0.1, true},
};
static_assert(GP_ARRAY_LEN(rows) <= GP_TIMELINE_ROWS, "GP_TIMELINE_ROWS is too small");

static const enum gp_metric reasons[] = {
    GP_REASON_GPU_IDLE,    GP_REASON_APPLICATIONS_CLOCKS, GP_REASON_SW_POWER_CAP,
    GP_REASON_HW_SLOWDOWN, GP_REASON_HW_THERMAL,          GP_REASON_HW_POWER_BRAKE,
    GP_REASON_SW_THERMAL,  GP_REASON_SYNC_BOOST,          GP_REASON_DISPLAY_CLOCKS,
};
static_assert(GP_ARRAY_LEN(reasons) == GP_TIMELINE_REASONS, "GP_TIMELINE_REASONS differs");

void gp_timeline_gpus_init(struct gp_timeline_gpus *gpus)
{
    gpus->use_count = 0;
    for (size_t i = 0; i < GP_WATCH_GPUS; i++) {
        struct gp_timeline_gpu *gpu = &gpus->items[i];
        *gpu = (struct gp_timeline_gpu){.job_mib = (double)NAN, .other_mib = (double)NAN};
        for (size_t k = 0; k < GP_TIMELINE_ROWS; k++)
            gpu->last[k] = (double)NAN;
    }
}

void gp_timeline_gpus_add_want(struct gp_want *want)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(rows); i++)
        gp_metric_set_add(&want->metrics, rows[i].metric);
    for (size_t i = 0; i < GP_ARRAY_LEN(reasons); i++)
        gp_metric_set_add(&want->metrics, reasons[i]);
    gp_metric_set_add(&want->metrics, GP_NAME);
}

/* "sw power cap", from "clocks_event_reasons.sw_power_cap". */
static void reason_name(enum gp_metric reason, char ret[64])
{
    const char *dot = strrchr(GP_METRIC_NAME(reason), '.');
    (void)snprintf(ret, 64, "%s", dot ? dot + 1 : GP_METRIC_NAME(reason));
    for (char *at = ret; (at = strchr(at, '_'));)
        *at = ' ';
}

static void name_gpu(struct gp_trace *trace, uint32_t pid, const struct gp_device *device,
                     unsigned order)
{
    char label[GP_DEVICE_LABEL_SIZE];
    char name[160];
    gp_device_label(device, label);
    (void)snprintf(name, sizeof(name), "GPU %s: %s", label, gp_device_text(device, GP_NAME, ""));
    gp_trace_name_process(trace, pid, name, (int)order);
}

/* Whether this is another value than the last one written, which it then is. */
static bool is_news(double *last, double value)
{
    bool is_same = !isnan(*last) && fabs(*last - value) < 1e-9;
    *last = value;
    return !is_same;
}

/* Writes the counters that have news, or all if there is no device: as they were last. */
static void add_counters(struct gp_timeline_gpu *gpu, struct gp_trace *trace, uint32_t pid,
                         const struct gp_device *device, uint64_t mono_ns, uint64_t ticked_ns)
{
    /* of a mean: since the last tick */
    const uint64_t from_ns = gpu->sampled_ns > ticked_ns ? gpu->sampled_ns : ticked_ns;
    for (size_t i = 0; i < GP_ARRAY_LEN(rows);) {
        struct gp_trace_value values[2];
        size_t count = 0;
        bool any = !device;
        const size_t first = i;
        for (; i < GP_ARRAY_LEN(rows) && strcmp(rows[i].name, rows[first].name) == 0; i++) {
            double number = gpu->last[i] * rows[i].unit;
            if (device ? !gp_device_number_now(device, rows[i].metric, &number) : isnan(number))
                continue;
            number = gp_trace_rounded(number / rows[i].unit, rows[i].grain);
            any = is_news(&gpu->last[i], number) || any;
            values[count++] = (struct gp_trace_value){rows[i].series, number};
        }
        const bool is_past = device && rows[first].is_rate && gpu->sampled_ns;
        if (any && count > 0)
            gp_trace_count(trace, pid, rows[first].name, is_past ? from_ns : mono_ns, values,
                           count);
    }
}

/* Opens or closes the slice with this number, unless it is so already. */
static void set_slice(struct gp_timeline_gpu *gpu, struct gp_trace *trace, uint32_t pid,
                      uint32_t number, bool is_open, const char *track, const char *name,
                      uint64_t mono_ns)
{
    const struct gp_trace_place place = {pid, number + 1};
    char text[96];
    if (is_open == gpu->slices[number].is_open)
        return;
    gpu->slices[number].is_open = is_open;
    if (!gpu->slices[number].is_named) {
        (void)snprintf(text, sizeof(text), "%s%s", track, name);
        gp_trace_name_thread(trace, place, text);
    }
    gpu->slices[number].is_named = true;
    if (is_open)
        gp_trace_open_slice(trace, place, name, mono_ns);
    else
        gp_trace_close_slice(trace, place, mono_ns);
}

static void add_reasons(struct gp_timeline_gpu *gpu, struct gp_trace *trace, uint32_t pid,
                        const struct gp_device *device, uint64_t mono_ns)
{
    for (uint32_t i = 0; i < GP_ARRAY_LEN(reasons); i++) {
        const char *text = gp_device_text(device, reasons[i], "");
        char name[64];
        if (!text[0]) /* not known */
            continue;
        reason_name(reasons[i], name);
        set_slice(gpu, trace, pid, i, strcmp(text, "Active") == 0, "clocks limited: ", name,
                  mono_ns);
    }
}

/* ---- memory ---- */

static void count_memory(struct gp_trace *trace, const struct gp_timeline_use *use,
                         uint64_t mono_ns)
{
    char name[32];
    (void)snprintf(name, sizeof(name), "GPU %u memory", use->gpu);
    const struct gp_trace_value value = {"MiB", use->mib};
    gp_trace_count(trace, use->pid, name, mono_ns, &value, 1);
}

static void note_use(struct gp_timeline_gpus *gpus, struct gp_trace *trace, uint32_t pid,
                     unsigned gpu, double mib, uint64_t mono_ns)
{
    struct gp_timeline_use *use = gpus->uses;
    const struct gp_timeline_use *end = gpus->uses + gpus->use_count;
    while (use < end && (use->pid != pid || use->gpu != gpu))
        use++;
    if (use == end) {
        if (gpus->use_count == GP_TIMELINE_USES)
            return; /* only the sums show it */
        gpus->use_count++;
        *use = (struct gp_timeline_use){.pid = pid, .gpu = gpu, .mib = (double)NAN};
    }
    use->is_seen = true;
    if (is_news(&use->mib, mib))
        count_memory(trace, use, mono_ns);
}

/* The processes that are gone have none. */
static void forget_gone(struct gp_timeline_gpus *gpus, struct gp_trace *trace, uint64_t mono_ns)
{
    size_t kept = 0;
    for (size_t i = 0; i < gpus->use_count; i++) {
        struct gp_timeline_use *use = &gpus->uses[i];
        if (use->is_seen) {
            use->is_seen = false;
            gpus->uses[kept++] = *use;
            continue;
        }
        use->mib = 0;
        count_memory(trace, use, mono_ns);
    }
    gpus->use_count = kept;
}

/* What its processes have is unknown: as before, until it is known again. */
static void keep_uses(struct gp_timeline_gpus *gpus, unsigned gpu)
{
    for (size_t i = 0; i < gpus->use_count; i++)
        gpus->uses[i].is_seen = gpus->uses[i].is_seen || gpus->uses[i].gpu == gpu;
}

static void count_sums(const struct gp_timeline_gpu *gpu, struct gp_trace *trace, uint32_t place,
                       uint64_t mono_ns)
{
    const struct gp_trace_value values[] = {{"job MiB", gpu->job_mib},
                                            {"others MiB", gpu->other_mib}};
    gp_trace_count(trace, place, "memory", mono_ns, values, GP_ARRAY_LEN(values));
}

static void add_memory(struct gp_timeline_gpus *gpus, struct gp_timeline_gpu *gpu,
                       struct gp_trace *trace, uint32_t place, const struct gp_snapshot *snapshot,
                       const struct gp_device *device)
{
    double job = 0;
    double used;
    if (device->processes_status != GP_STATUS_OK) {
        keep_uses(gpus, device->index);
        return;
    }
    for (size_t i = 0; i < device->process_count; i++) {
        const struct gp_process *p = &snapshot->processes[device->first_process + i];
        const struct gp_value *bytes = gp_process_value(p, GP_PROCESS_MEMORY);
        const int64_t pid = gp_process_value(p, GP_PID)->i;
        if (!gp_value_is_present(bytes) || !gp_pick_comes_from(snapshot, pid, getpid()))
            continue;
        job += (double)bytes->i / 0x1p20;
        note_use(gpus, trace, (uint32_t)pid, device->index,
                 gp_trace_rounded((double)bytes->i / 0x1p20, 1), snapshot->mono_ns);
    }
    if (!gp_device_number_now(device, GP_MEMORY_USED, &used))
        return;
    used /= 0x1p20;
    job = gp_trace_rounded(job, 1);
    used = gp_trace_rounded(used > job ? used - job : 0, 1);
    const bool is_new = is_news(&gpu->job_mib, job);
    if (is_news(&gpu->other_mib, used) || is_new)
        count_sums(gpu, trace, place, snapshot->mono_ns);
}

/* ---- a sample ---- */

void gp_timeline_gpus_sample(struct gp_timeline_gpus *gpus, struct gp_trace *trace,
                             const struct gp_snapshot *snapshot, const struct gp_watch *watch,
                             uint64_t ticked_ns)
{
    const uint64_t mono_ns = snapshot->mono_ns;
    for (size_t i = 0; i < snapshot->device_count; i++) {
        const struct gp_device *device = &snapshot->devices[i];
        const size_t number = gp_watch_number(watch, device);
        if (number == GP_WATCH_GPUS)
            continue;
        struct gp_timeline_gpu *gpu = &gpus->items[number];
        const uint32_t pid = FIRST_PID + (uint32_t)number;
        if (!gpu->is_named)
            name_gpu(trace, pid, device, ORDER + (unsigned)number);
        gpu->is_named = true;
        add_memory(gpus, gpu, trace, pid, snapshot, device);
        set_slice(gpu, trace, pid, NO_ANSWER, device->status != GP_STATUS_OK, "", "no answer",
                  mono_ns);
        if (device->status != GP_STATUS_OK)
            continue;
        add_counters(gpu, trace, pid, device, mono_ns, ticked_ns);
        add_reasons(gpu, trace, pid, device, mono_ns);
        gpu->sampled_ns = mono_ns;
    }
    forget_gone(gpus, trace, mono_ns);
}

void gp_timeline_gpus_end(struct gp_timeline_gpus *gpus, struct gp_trace *trace, uint64_t mono_ns)
{
    forget_gone(gpus, trace, mono_ns);
    for (size_t i = 0; i < GP_WATCH_GPUS; i++) {
        struct gp_timeline_gpu *gpu = &gpus->items[i];
        const uint32_t pid = FIRST_PID + (uint32_t)i;
        add_counters(gpu, trace, pid, NULL, mono_ns, 0);
        if (!isnan(gpu->other_mib))
            count_sums(gpu, trace, pid, mono_ns);
        for (uint32_t k = 0; k < GP_TIMELINE_SLICES; k++)
            set_slice(gpu, trace, pid, k, false, "", "", mono_ns);
    }
}
