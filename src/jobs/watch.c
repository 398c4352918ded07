#include "jobs/watch.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "jobs/misplaced.h"
#include "jobs/pick.h"
#include "model/snapshot.h"
#include "out/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    UNUSED_S = 120,        /* how long a program may take to start */
    SAME_S = 10,           /* failures within this time are one incident: several ranks of a job */
    LAST_S = 60,           /* a failure printed this shortly before the exit may be its reason */
    SAMPLE_LATE_S = 10,    /* how often a sample is kept in a long job */
    SAMPLE_OFTEN_S = 3600, /* how long every sample is kept */
    CONTEXT_MIB = 600,     /* a process with more holds more than a bare context */
};

/* ---- messages ---- */

static void tell(const struct gp_watch *watch, enum gp_watch_topic topic, const char *text)
{
    if (watch->tell)
        watch->tell(watch, topic, text);
}

static void tell_formatted(const struct gp_watch *watch, const char *fmt, va_list args)
{
    char text[1000];
    (void)vsnprintf(text, sizeof(text), fmt, args);
    tell(watch, GP_WATCH_OF_JOB, text);
}

void gp_watch_say(const struct gp_watch *watch, const char *fmt, ...)
{
    va_list args;
    if (watch->quiet)
        return;
    va_start(args, fmt);
    tell_formatted(watch, fmt, args);
    va_end(args);
}

void gp_watch_warn(const struct gp_watch *watch, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    tell_formatted(watch, fmt, args);
    va_end(args);
}

void gp_watch_tell_error(const struct gp_watch *watch, const struct gp_err *err)
{
    tell(watch, GP_WATCH_OF_ITSELF, err->text);
}

void gp_watch_tell_more(const struct gp_watch *watch, const char *lines)
{
    tell(watch, GP_WATCH_MORE, lines);
}

static void say_of_record(const struct gp_watch *watch, int r, const struct gp_err *err)
{
    if (r == 0)
        return;
    gp_watch_tell_error(watch, err);
    tell(watch, GP_WATCH_OF_ITSELF, "the record of this job is incomplete");
}

void gp_watch_record(struct gp_watch *watch, const char *name, const struct gp_strbuf *text)
{
    struct gp_err err;
    say_of_record(watch, gp_record_write(&watch->record, name, text->buf, text->len, &err), &err);
}

/* ---- the GPUs ---- */

size_t gp_watch_number(const struct gp_watch *watch, const struct gp_device *device)
{
    const char *uuid = gp_device_text(device, GP_UUID, "");
    for (size_t i = 0; i < watch->gpu_count; i++)
        if (strcmp(watch->gpus[i].uuid, uuid) == 0)
            return i;
    return GP_WATCH_GPUS;
}

static struct gp_watch_gpu *find(struct gp_watch *watch, const struct gp_device *device)
{
    const size_t number = gp_watch_number(watch, device);
    return number < GP_WATCH_GPUS ? &watch->gpus[number] : NULL;
}

struct gp_watch_gpu *gp_watch_find(struct gp_watch *watch, const struct gp_device *device)
{
    struct gp_watch_gpu *gpu = find(watch, device);
    return gpu && gpu->is_granted ? gpu : NULL;
}

static double energy_of(const struct gp_device *device)
{
    double joule;
    return gp_device_number_now(device, GP_ENERGY, &joule) ? joule : -1;
}

static struct gp_watch_gpu *add(struct gp_watch *watch, const struct gp_device *device)
{
    if (watch->gpu_count == GP_WATCH_GPUS)
        return NULL;
    struct gp_watch_gpu *gpu = &watch->gpus[watch->gpu_count++];
    *gpu = (struct gp_watch_gpu){
        .index = device->index, .is_mig = device->is_mig, .use = {.energy = -1}};
    (void)snprintf(gpu->name, sizeof(gpu->name), "%s", gp_device_text(device, GP_NAME, ""));
    (void)snprintf(gpu->uuid, sizeof(gpu->uuid), "%s", gp_device_text(device, GP_UUID, ""));
    (void)gp_device_number_now(device, GP_MEMORY_TOTAL, &gpu->total);
    (void)gp_device_number_now(device, GP_MEMORY_FREE, &gpu->free);
    (void)gp_device_number_now(device, GP_MEMORY_USED, &gpu->before);
    gpu->use.energy_begin = energy_of(device);
    return gpu;
}

void gp_watch_grant(struct gp_watch *watch, const struct gp_device *device)
{
    struct gp_watch_gpu *gpu = add(watch, device);
    if (gpu)
        gpu->is_granted = true;
    watch->is_accounted = watch->is_accounted ||
                          strcmp(gp_device_text(device, GP_ACCOUNTING_MODE, ""), "Enabled") == 0;
}

void gp_watch_begin(struct gp_watch *watch)
{
    watch->started_ns = gp_clock_mono_ns();
    watch->started_wall_ns = gp_clock_wall_ns();
    watch->pids.count = 0;
    watch->incident_count = 0;
    watch->repeats = 0;
    watch->classes = 0;
    watch->is_moment = false;
    watch->has_named_place = watch->has_named_unused = watch->has_named_limit = false;
    watch->ended_by = NULL;
    watch->told = 0;
    json_decref(watch->pace);
    json_decref(watch->verdicts);
    watch->pace = watch->verdicts = NULL;
    for (size_t i = 0; i < watch->gpu_count; i++) {
        struct gp_watch_use *use = &watch->gpus[i].use;
        *use = (struct gp_watch_use){
            .energy_begin = use->energy >= 0 ? use->energy : use->energy_begin, .energy = -1};
    }
}

/* ---- a job on the wrong GPU ---- */

static void name_place(struct gp_watch *watch, const struct gp_device *device, int64_t pid,
                       double bytes)
{
    char why[GP_MISPLACED_SIZE];
    gp_misplaced_reason((uint32_t)pid, watch->mask, why);
    watch->has_named_place = true;
    gp_watch_warn(
        watch,
        "process %lld of this job uses GPU %u (%.0f MiB%s), but the job has reserved %s: %s%s",
        (long long)pid, device->index, bytes / 0x1p20,
        bytes < CONTEXT_MIB * 0x1p20 ? ", a bare context" : "", watch->place, why,
        watch->limits.is_strict ? "; stopping the job (--strict)" : "");
}

/* ---- limits ---- */

static enum gp_watch_order check_memory(struct gp_watch *watch, const struct gp_watch_gpu *gpu)
{
    const struct gp_watch_limits *limits = &watch->limits;
    if (!limits->max_bytes || gpu->use.last <= (double)limits->max_bytes || watch->has_named_limit)
        return GP_WATCH_GO_ON;
    watch->has_named_limit = true;
    gp_watch_warn(watch,
                  "the job uses %.0f MiB of GPU %u, more than the %.0f MiB of --max-gpu-mem%s",
                  gpu->use.last / 0x1p20, gpu->index, (double)limits->max_bytes / 0x1p20,
                  limits->over == GP_WATCH_GO_ON ? "" : "; stopping it");
    if (limits->over != GP_WATCH_GO_ON)
        watch->ended_by = "max-gpu-mem";
    return limits->over;
}

/* A reserved GPU that the job does not use. */
static void check_idle(struct gp_watch *watch, struct gp_watch_gpu *gpu,
                       const struct gp_device *device)
{
    uint64_t now_ns = gp_clock_mono_ns();
    double percent;
    if (!gp_device_number_now(device, GP_UTILIZATION_GPU, &percent))
        return;
    gpu->use.busy_sum += percent;
    gpu->use.busy_count++;
    if (percent > 0)
        gpu->use.was_named_idle = false;
    gpu->use.idle_since_ns = percent > 0              ? 0
                             : gpu->use.idle_since_ns ? gpu->use.idle_since_ns
                                                      : now_ns;
    if (!watch->limits.idle_ns || gpu->use.was_named_idle || !gpu->use.idle_since_ns ||
        now_ns - gpu->use.idle_since_ns < watch->limits.idle_ns)
        return;
    gpu->use.was_named_idle = true;
    gp_watch_warn(watch, "GPU %u has been idle for %.0f s, while this job holds %.0f MiB on it",
                  gpu->index, (double)(now_ns - gpu->use.idle_since_ns) / 1e9,
                  gpu->use.last / 0x1p20);
}

static void check_unused(struct gp_watch *watch)
{
    bool any = false;
    if (watch->has_named_unused || gp_clock_mono_ns() - watch->started_ns < UNUSED_S * GP_NS_PER_S)
        return;
    watch->has_named_unused = true;
    for (size_t i = 0; i < watch->gpu_count; i++)
        any = any || watch->gpus[i].use.was_used;
    for (size_t i = 0; any && i < watch->gpu_count; i++)
        if (watch->gpus[i].is_granted && !watch->gpus[i].use.was_used)
            gp_watch_warn(watch,
                          "GPU %u is reserved but not used; if the program does not use several "
                          "GPUs, reserve fewer (-g)",
                          watch->gpus[i].index);
}

/* ---- samples ---- */

struct use {
    double bytes, cpu_percent, rss_bytes;
    int64_t pid; /* one of them; 0: no process */
};

static double number_of(const struct gp_process *p, enum gp_metric metric)
{
    const struct gp_value *value = gp_process_value(p, metric);
    if (!gp_value_is_present(value))
        return 0;
    return metric == GP_PROCESS_CPU ? value->f : (double)value->i;
}

static struct use use_of(struct gp_watch *watch, const struct gp_snapshot *snapshot,
                         const struct gp_device *device)
{
    struct use use = {.pid = 0};
    for (size_t i = 0; i < device->process_count; i++) {
        const struct gp_process *p = &snapshot->processes[device->first_process + i];
        int64_t pid = gp_process_value(p, GP_PID)->i;
        if (!gp_pick_comes_from(snapshot, pid, getpid()))
            continue;
        use.pid = pid;
        gp_accounted_add(&watch->pids, (uint32_t)pid);
        use.bytes += number_of(p, GP_PROCESS_MEMORY);
        use.cpu_percent += number_of(p, GP_PROCESS_CPU);
        use.rss_bytes += number_of(p, GP_PROCESS_RSS);
    }
    return use;
}

static void add_sample(struct gp_strbuf *sb, const struct gp_watch *watch,
                       const struct gp_device *device, const struct use *use)
{
    static const enum gp_metric metrics[] = {GP_UTILIZATION_GPU, GP_MEMORY_USED, GP_POWER_DRAW,
                                             GP_ENERGY};
    gp_strbuf_addf(sb, "%.1f,%u", (double)(gp_clock_mono_ns() - watch->started_ns) / 1e9,
                   device->index);
    for (size_t i = 0; i < GP_ARRAY_LEN(metrics); i++) {
        double number;
        gp_strbuf_addc(sb, ',');
        if (gp_device_number_now(device, metrics[i], &number))
            gp_strbuf_addf(sb, "%.*f", metrics[i] == GP_POWER_DRAW ? 1 : 0, number);
    }
    gp_strbuf_addf(sb, ",%.0f,%.1f,%.0f,", use->bytes, use->cpu_percent, use->rss_bytes);
    if (watch->stepped_ns > watch->started_ns)
        gp_strbuf_addf(sb, "%.10g,%.3f\n", watch->steps,
                       (double)(watch->stepped_ns - watch->started_ns) / 1e9);
    else
        gp_strbuf_adds(sb, ",\n");
}

/* Whether this sample is kept: in a long job not all are. */
static bool is_kept(struct gp_watch *watch)
{
    uint64_t now_ns = gp_clock_mono_ns();
    bool is_late = now_ns - watch->started_ns > SAMPLE_OFTEN_S * GP_NS_PER_S;
    if (is_late && now_ns - watch->sampled_ns < SAMPLE_LATE_S * GP_NS_PER_S)
        return false;
    watch->sampled_ns = now_ns;
    return true;
}

static enum gp_watch_order look_at_gpu(struct gp_watch *watch, const struct gp_snapshot *snapshot,
                                       const struct gp_device *device, struct gp_strbuf *samples)
{
    enum gp_watch_order order = GP_WATCH_GO_ON;
    const struct use use = use_of(watch, snapshot, device);
    struct gp_watch_gpu *gpu = find(watch, device);
    if (!gpu && use.pid)
        gpu = add(watch, device);
    if (!gpu)
        return order;
    if (use.pid && !gpu->is_granted && !watch->has_named_place) {
        name_place(watch, device, use.pid, use.bytes);
        order = watch->limits.is_strict ? GP_WATCH_STOP : order;
        watch->ended_by = watch->limits.is_strict ? "strict" : watch->ended_by;
    }
    gpu->use.was_used = gpu->use.was_used || use.pid;
    gpu->use.last = use.bytes;
    gpu->use.peak = use.bytes > gpu->use.peak ? use.bytes : gpu->use.peak;
    gpu->use.energy = energy_of(device);
    check_idle(watch, gpu, device);
    enum gp_watch_order over = check_memory(watch, gpu);
    add_sample(samples, watch, device, &use);
    return over > order ? over : order;
}

enum gp_watch_order gp_watch_look(struct gp_watch *watch, const struct gp_snapshot *snapshot,
                                  bool is_sample)
{
    struct gp_err err;
    struct gp_strbuf samples = GP_STRBUF_INIT(1 << 20);
    enum gp_watch_order order = GP_WATCH_GO_ON;
    if (watch->sampled_ns == 0)
        gp_strbuf_adds(
            &samples, "time_s,gpu,utilization_percent,memory_used_bytes,power_w,energy_j,"
                      "job_memory_bytes,job_cpu_percent,job_rss_bytes,job_steps,job_step_time_s\n");
    for (size_t i = 0; i < snapshot->device_count; i++) {
        enum gp_watch_order one = look_at_gpu(watch, snapshot, &snapshot->devices[i], &samples);
        order = one > order ? one : order;
    }
    check_unused(watch);
    if (is_sample && is_kept(watch))
        say_of_record(watch, gp_record_add_samples(&watch->record, samples.buf, samples.len, &err),
                      &err);
    gp_strbuf_fini(&samples);
    return order;
}

void gp_watch_take_accounts(struct gp_watch *watch, const struct gp_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->device_count; i++) {
        const struct gp_device *device = &snapshot->devices[i];
        struct gp_watch_gpu *gpu = find(watch, device);
        double peak;
        if (!gpu ||
            !gp_accounted_peak(snapshot, device, &watch->pids, watch->started_wall_ns, &peak) ||
            peak < gpu->use.peak) /* several at once used more than any one of them */
            continue;
        gpu->use.peak = peak;
        gpu->use.is_true_peak = true;
        gpu->use.was_used = true;
    }
}

/* ---- incidents ---- */

void gp_watch_keep_scene(struct gp_watch *watch, struct gp_snapshot *snapshot, bool is_moment)
{
    if (watch->is_moment && watch->scene) {
        gp_snapshot_free(snapshot);
        return;
    }
    gp_snapshot_free(watch->scene);
    watch->scene = snapshot;
    watch->is_moment = is_moment;
}

/* The GPU that a failure refers to: the one with the program's number. A job on the wrong GPU
 * numbers other GPUs; then it is the only one that it is on. */
static struct gp_watch_gpu *place_of(struct gp_watch *watch, const struct gp_failure *failure)
{
    struct gp_watch_gpu *used = NULL;
    size_t used_count = 0;
    size_t granted_count = 0;
    bool is_elsewhere = false;
    uint64_t ordinal = failure->values[GP_FAILURE_ORDINAL];
    for (size_t i = 0; i < watch->gpu_count; i++) {
        bool is_used = watch->gpus[i].use.peak > 0;
        used = is_used ? &watch->gpus[i] : used;
        used_count += is_used;
        granted_count += watch->gpus[i].is_granted;
        is_elsewhere = is_elsewhere || (is_used && !watch->gpus[i].is_granted);
    }
    if (!is_elsewhere && gp_failure_knows(failure, GP_FAILURE_ORDINAL) && ordinal < granted_count)
        return &watch->gpus[ordinal];
    if (used_count == 1)
        return used;
    return granted_count == 1 && !is_elsewhere ? &watch->gpus[0] : NULL;
}

/* The GPU of the processes that the message names; NULL: none. */
static const struct gp_device *find_named(const struct gp_snapshot *scene,
                                          const struct gp_failure *failure)
{
    for (size_t i = 0; i < scene->device_count; i++) {
        const struct gp_device *device = &scene->devices[i];
        for (size_t k = 0; k < device->process_count; k++) {
            const struct gp_process *p = &scene->processes[device->first_process + k];
            for (size_t o = 0; o < failure->other_count; o++)
                if (gp_process_value(p, GP_PID)->i == failure->others[o].pid)
                    return device;
        }
    }
    return NULL;
}

static const struct gp_device *find_device(const struct gp_snapshot *scene,
                                           const struct gp_watch_gpu *gpu)
{
    for (size_t i = 0; gpu && i < scene->device_count; i++)
        if (strcmp(gp_device_text(&scene->devices[i], GP_UUID, ""), gpu->uuid) == 0)
            return &scene->devices[i];
    return NULL;
}

/* Adds what the GPU showed; returns which one it was. */
static const struct gp_device *add_scene(struct gp_watch *watch, struct gp_incident *incident)
{
    const struct gp_snapshot *scene = watch->scene;
    struct gp_failure *f = &incident->failure;
    if (!scene)
        return NULL;
    const struct gp_device *device = find_named(scene, f);
    if (!device)
        device = find_device(scene, place_of(watch, f));
    if (!device)
        return NULL;
    const struct gp_watch_gpu *gpu = find(watch, device);
    f->is_misplaced = !gpu || !gpu->is_granted;
    f->place = device->index;
    gp_incident_add_scene(incident, scene, device, getpid(), gpu ? gpu->use.peak : 0);
    return device;
}

static void add_report(struct gp_strbuf *sb, const struct gp_watch *watch,
                       const struct gp_incident *incident, const struct gp_device *device)
{
    gp_strbuf_addf(sb, "%.1f s after the start",
                   (double)(watch->incident_ns - watch->started_ns) / 1e9);
    if (device)
        gp_strbuf_addf(sb, ", GPU %u", device->index);
    gp_strbuf_addf(sb, ": %s\n", incident->line);
    gp_incident_add_causes(sb, incident);
}

void gp_watch_add_incident(struct gp_watch *watch, const struct gp_incident *incident)
{
    uint64_t now_ns = gp_clock_mono_ns();
    bool is_same = watch->incident_count > 0 &&
                   now_ns - watch->incident_ns < SAME_S * GP_NS_PER_S &&
                   (watch->classes >> incident->failure.class & 1);
    char name[32];
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    watch->incident_ns = now_ns;
    watch->classes |= UINT32_C(1) << incident->failure.class;
    watch->is_moment = false;
    if (is_same) {
        watch->repeats++;
        return;
    }
    if (watch->incident_count == GP_WATCH_INCIDENTS) { /* the newest has the most information */
        watch->incident_count--;
        watch->repeats++;
    }
    struct gp_incident *kept = &watch->incidents[watch->incident_count++];
    *kept = *incident;
    const struct gp_device *device = add_scene(watch, kept);
    gp_incident_judge(kept);
    add_report(&sb, watch, kept, device);
    (void)snprintf(name, sizeof(name), "incident-%zu.txt", watch->incident_count);
    gp_watch_record(watch, name, &sb);
    gp_strbuf_fini(&sb);
}

bool gp_watch_had(const struct gp_watch *watch, enum gp_failure_class class)
{
    return watch->classes >> class & 1;
}

static bool is_fresh(const struct gp_watch *watch)
{
    return watch->incident_count > 0 &&
           gp_clock_mono_ns() - watch->incident_ns < LAST_S * GP_NS_PER_S;
}

bool gp_watch_is_out_of_memory(const struct gp_watch *watch, int status)
{
    if (status == 0 || !is_fresh(watch))
        return false;
    const struct gp_incident *last = &watch->incidents[watch->incident_count - 1];
    return gp_watch_had(watch, GP_FAILURE_GPU) && last->causes.items[0] != GP_CAUSE_IMPOSSIBLE;
}

/* ---- the end of the job ---- */

static void add_gpu_summary(char text[600], const struct gp_watch *watch,
                            const struct gp_watch_gpu *gpu)
{
    size_t n = strlen(text);
    if (!gpu->use.was_used) {
        (void)snprintf(text + n, 600 - n, "; GPU %u: no use seen", gpu->index);
        return;
    }
    n += (size_t)snprintf(text + n, 600 - n, "; GPU %u: peak %.0f MiB (%s)", gpu->index,
                          gpu->use.peak / 0x1p20,
                          gpu->use.is_true_peak ? "from the driver's accounting" : "sampled");
    if (n < 600 && gpu->use.busy_count > 0)
        n += (size_t)snprintf(text + n, 600 - n, ", %.0f %% busy",
                              gpu->use.busy_sum / gpu->use.busy_count);
    if (n < 600 && gpu->use.energy >= gpu->use.energy_begin && gpu->use.energy_begin >= 0 &&
        !watch->is_shared)
        (void)snprintf(text + n, 600 - n, ", %.1f kJ",
                       (gpu->use.energy - gpu->use.energy_begin) / 1e3);
}

bool gp_watch_summarize(struct gp_watch *watch, int status)
{
    double seconds = (double)(gp_clock_mono_ns() - watch->started_ns) / 1e9;
    char gpus[600] = "";
    for (size_t i = 0; i < watch->gpu_count; i++)
        if (strlen(gpus) + 100 < sizeof(gpus))
            add_gpu_summary(gpus, watch, &watch->gpus[i]);
    const char *name = status > 128 ? sigabbrev_np(status - 128) : NULL;
    const char *told = sigabbrev_np(watch->told);
    gp_watch_say(watch, "%s after %.1f s with status %d%s%s%s%s%s%s",
                 watch->ended_by ? "stopped" : "exited", seconds, status, name ? " (SIG" : "",
                 name ? name : "", name ? ")" : "", told && !name ? ", after SIG" : "",
                 told && !name ? told : "", gpus);
    if (watch->incident_count == 0)
        return watch->ended_by;
    if (status == 0 || watch->ended_by || !is_fresh(watch)) {
        gp_watch_say(watch, "it printed %s, and continued",
                     watch->incident_count == 1 ? "a failure" : "failures");
        return watch->ended_by;
    }
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    const struct gp_incident *last = &watch->incidents[watch->incident_count - 1];
    gp_incident_add_causes(&sb, last);
    gp_watch_warn(watch, "it failed after this message: %.100s%s", last->line,
                  strlen(last->line) > 100 ? "…" : "");
    gp_watch_tell_more(watch, sb.buf ? sb.buf : "");
    gp_strbuf_fini(&sb);
    return true;
}

static json_t *gpu_object(const struct gp_watch_gpu *gpu)
{
    bool has_energy = gpu->use.energy >= gpu->use.energy_begin && gpu->use.energy_begin >= 0;
    return json_pack(
        "{s:i, s:s, s:b, s:b, s:I, s:I, s:s, s:o, s:o}", "index", (int)gpu->index, "uuid",
        gpu->uuid, "granted", (int)gpu->is_granted, "used", (int)gpu->use.was_used, "memory_before",
        (json_int_t)gpu->before, "memory_peak", (json_int_t)gpu->use.peak, "memory_peak_source",
        gpu->use.is_true_peak ? "accounting" : "sampled", "utilization_mean",
        gpu->use.busy_count > 0 ? json_real(gpu->use.busy_sum / gpu->use.busy_count) : json_null(),
        "energy_j", has_energy ? json_real(gpu->use.energy - gpu->use.energy_begin) : json_null());
}

void gp_watch_write(struct gp_watch *watch, const char *state, int status)
{
    const struct rusage *usage = &watch->usage;
    const double seconds = (double)(gp_clock_mono_ns() - watch->started_ns) / 1e9;
    json_t *gpus = json_array();
    json_t *incidents = json_array();
    json_t *document = json_copy(watch->description);
    struct gp_strbuf sb = GP_STRBUF_INIT(16 << 20);
    for (size_t i = 0; i < watch->gpu_count; i++)
        (void)json_array_append_new(gpus, gpu_object(&watch->gpus[i]));
    for (size_t i = 0; i < watch->incident_count; i++)
        (void)json_array_append_new(incidents, gp_incident_json(&watch->incidents[i]));
    json_t *more = json_pack("{s:s, s:i, s:i, s:o, s:s?, s:f, s:I, s:o, s:o, s:i, s:O?, s:O?}",
                             "state", state, "signal", watch->told, "status", status, "duration_s",
                             watch->started_ns ? json_real(seconds) : json_null(), "ended_by",
                             watch->ended_by, "cpu_s",
                             (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
                                 (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1e6,
                             "rss_max", (json_int_t)usage->ru_maxrss * 1024, "gpus", gpus,
                             "incidents", incidents, "incidents_repeated", (int)watch->repeats,
                             "pace", watch->pace, "verdicts", watch->verdicts);
    (void)json_object_update(document, more);
    json_decref(more);
    gp_json_add(&sb, document, 2);
    gp_strbuf_addc(&sb, '\n');
    gp_watch_record(watch, "run.json", &sb);
    gp_strbuf_fini(&sb);
}

void gp_watch_fini(struct gp_watch *watch)
{
    gp_snapshot_free(watch->scene);
    gp_record_close(&watch->record);
    json_decref(watch->description);
    json_decref(watch->pace);
    json_decref(watch->verdicts);
}
