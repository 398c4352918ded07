#include "cmd/diff_job.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/utf8.h"
#include "jobs/samples_read.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LOAD_PERCENT = 50, PAUSE_S = 30 };

#define STEP_US INT64_C(1000000)

struct job {
    struct gp_diff_side *side;
    double time_s[GP_DIFF_GPUS_MOST]; /* of each GPU's last sample, 0 at first */
    double last_s;
    double steps, step_time_s; /* at the last sample */
    bool has_steps;
    bool has_failed; /* without memory */
};

/* How long a sample of a GPU stands for, in seconds: since the one before. */
static double length_of(struct job *job, size_t gpu, double time_s)
{
    const double length_s = time_s - job->time_s[gpu];
    job->time_s[gpu] = time_s;
    return length_s > 0 && length_s <= PAUSE_S ? length_s : 0;
}

static bool add(struct gp_line *line, double mean, double seconds)
{
    return isnan(mean) || gp_line_add(line, mean, (int64_t)(seconds * 1e6));
}

static bool take_gpu(struct job *job, const struct gp_job_sample *sample)
{
    const double *cells = sample->cells;
    struct gp_diff_gpu *gpu = gp_diff_side_gpu(job->side, (uint64_t)cells[GP_JOB_GPU]);
    if (!gpu)
        return true;
    const size_t place = (size_t)(gpu - job->side->gpus);
    const double seconds = length_of(job, place, cells[GP_JOB_TIME]);
    const double load = cells[GP_JOB_UTILIZATION];
    gpu->seen_us += (int64_t)(seconds * 1e6);
    bool ok = add(&gpu->lines[GP_DIFF_UTILIZATION], load, seconds) &&
              add(&gpu->lines[GP_DIFF_MEMORY], cells[GP_JOB_MEMORY_USED], seconds);
    if (ok && load >= LOAD_PERCENT)
        ok = add(&gpu->lines[GP_DIFF_POWER], cells[GP_JOB_POWER], seconds);
    else if (ok && load <= 0)
        ok = add(&gpu->lines[GP_DIFF_POWER_IDLE], cells[GP_JOB_POWER], seconds);
    return ok;
}

/* The pace from the last reported step of one sample to that of the next. A job that was retried
 * counts anew. */
static bool take_steps(struct job *job, const struct gp_job_sample *sample)
{
    const double steps = sample->cells[GP_JOB_STEPS];
    const double time_s = sample->cells[GP_JOB_STEP_TIME];
    const double more = steps - job->steps;
    const double seconds = time_s - job->step_time_s;
    if (isnan(steps) || isnan(time_s))
        return true;
    const bool is_next = job->has_steps && more > 0 && seconds > 0 && seconds < 0x1p30;
    const bool ok = !is_next || add(&job->side->pace, more / seconds, seconds);
    if (is_next || !job->has_steps || more < 0) {
        job->steps = steps;
        job->step_time_s = time_s;
        job->has_steps = true;
    }
    return ok;
}

static bool take(void *context, const struct gp_job_sample *sample)
{
    struct job *job = context;
    const double time_s = sample->cells[GP_JOB_TIME];
    job->last_s = time_s > job->last_s ? time_s : job->last_s;
    job->has_failed = !take_gpu(job, sample) || !take_steps(job, sample);
    return !job->has_failed;
}

/* Names and UUIDs are in run.json. */
static void name_gpus(struct gp_diff_side *side, const struct gp_recorded *recorded)
{
    const json_t *gpus = json_object_get(recorded->document, "gpus");
    for (size_t i = 0; i < side->gpu_count; i++) {
        struct gp_diff_gpu *gpu = &side->gpus[i];
        (void)snprintf(gpu->label, sizeof(gpu->label), "%llu", (unsigned long long)gpu->id);
        for (size_t k = 0; k < json_array_size(gpus); k++) {
            const json_t *object = json_array_get(gpus, k);
            const char *uuid = json_string_value(json_object_get(object, "uuid"));
            if (json_integer_value(json_object_get(object, "index")) == (json_int_t)gpu->id && uuid)
                gp_utf8_copy_safe(gpu->uuid, sizeof(gpu->uuid), uuid);
        }
    }
}

/* A record of an earlier gpulse has the pace of the whole job, but no steps in its samples. */
static bool take_pace(struct gp_diff_side *side, const struct gp_recorded *recorded)
{
    const json_t *pace = json_object_get(recorded->document, "pace");
    const double rate = json_number_value(json_object_get(pace, "steps_per_s"));
    return side->pace.count > 0 || !(rate > 0) || gp_line_add(&side->pace, rate, STEP_US);
}

int gp_diff_job(const char *folder, struct gp_diff_side *ret, struct gp_err *err)
{
    struct gp_recorded recorded;
    struct job job = {.side = ret};
    uint64_t started_ns;
    int r = gp_recorded_read(folder, &recorded, err);
    if (r < 0)
        return r;
    if (gp_diff_side_init(ret, folder, STEP_US)) {
        gp_recorded_samples(&recorded, take, &job);
        name_gpus(ret, &recorded);
        ret->seen_us = (int64_t)(fmin(fmax(recorded.seconds, job.last_s), 0x1p40) * 1e6);
        if (gp_clock_parse_rfc3339(recorded.started, &started_ns)) {
            ret->from_us = (int64_t)(started_ns / GP_NS_PER_US);
            ret->to_us = ret->from_us + ret->seen_us;
        }
        if (job.has_failed || !take_pace(ret, &recorded)) {
            gp_diff_side_fini(ret);
            r = gp_err_set(err, GP_ENOMEM, "out of memory");
        }
    } else {
        r = gp_err_set(err, GP_ENOMEM, "out of memory");
    }
    gp_recorded_fini(&recorded);
    return r;
}
