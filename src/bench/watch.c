#include "bench/watch.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "bench/log.h"
#include "jobs/reserve.h"
#include "model/snapshot.h"
#include "sample/sampler.h"
#include "sample/thread.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    EVERY_MS = 100,
    KEPT = 8192, /* samples of a device: of the last quarter of an hour */
    KEEP_S = 1,  /* how often the reservation is looked after */
    IDLE = 1,    /* the bit of NVML for clocks that are low because there is no work */
};

struct track {
    const char *uuid, *name;
    const char *test; /* which it measures now, "": none, and what of it */
    char what[32];
    struct gp_bench_observation ring[KEPT];
    size_t taken;
    struct gp_bench_sum since; /* gp_bench_watch_mark() */
};

struct gp_bench_watch {
    struct gp_sampler *sampler;
    struct gp_reserve *reserve; /* NULL: none, like the next */
    struct gp_bench_log *log;
    struct gp_strbuf lines; /* that are to be written to it; of the thread alone */
    char lost[GP_RESERVE_WHY_SIZE];
    uint64_t kept_ns;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool is_stopping;
    bool has_ended; /* the thread; of the one that stops it */
    size_t count;
    struct track tracks[];
};

void gp_bench_watch_want(struct gp_want *want)
{
    static const enum gp_metric metrics[] = {
        GP_UUID,
        GP_CLOCK_SM,
        GP_CLOCK_MAX_SM,
        GP_POWER_DRAW,
        GP_TEMPERATURE_GPU,
        GP_REASONS_ACTIVE,
        GP_PID,
        GP_PROCESS_TYPE,
        GP_ECC_CORRECTED_VOLATILE,
        GP_ECC_UNCORRECTED_VOLATILE,
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(metrics); i++)
        gp_metric_set_add(&want->metrics, metrics[i]);
    want->processes = true;
}

static double number(const struct gp_device *device, enum gp_metric m)
{
    double value;
    return gp_device_number_now(device, m, &value) ? value : (double)NAN;
}

/* Another process that computes on the GPU; 0: none. A desktop only draws. */
static uint32_t other_pid(const struct gp_snapshot *snapshot, const struct gp_device *device)
{
    for (size_t i = 0; i < device->process_count; i++) {
        const struct gp_process *process = &snapshot->processes[device->first_process + i];
        const struct gp_value *pid = gp_process_value(process, GP_PID);
        if (gp_process_computes(process) && pid->status == GP_STATUS_OK && pid->i != getpid())
            return (uint32_t)pid->i;
    }
    return 0;
}

static struct gp_bench_observation observation_of(const struct gp_snapshot *snapshot,
                                                  const struct gp_device *device)
{
    double limits = number(device, GP_REASONS_ACTIVE);
    return (struct gp_bench_observation){
        .mono_ns = snapshot->mono_ns,
        .wall_ns = snapshot->wall_ns,
        .clock_mhz = number(device, GP_CLOCK_SM),
        .clock_max_mhz = number(device, GP_CLOCK_MAX_SM),
        .watts = number(device, GP_POWER_DRAW),
        .celsius = number(device, GP_TEMPERATURE_GPU),
        .limits = isnan(limits) ? 0 : (uint64_t)limits & ~(uint64_t)IDLE,
        .ecc_corrected = number(device, GP_ECC_CORRECTED_VOLATILE),
        .ecc_uncorrected = number(device, GP_ECC_UNCORRECTED_VOLATILE),
        .other_pid = other_pid(snapshot, device),
    };
}

static void add(struct gp_bench_watch *watch, struct track *track,
                const struct gp_bench_observation *o)
{
    track->ring[track->taken++ % KEPT] = *o;
    gp_bench_sum_add(&track->since, o);
    if (watch->log)
        gp_bench_log_add(&watch->lines, track->name, track->test, track->what, o);
}

static void take(struct gp_bench_watch *watch, const struct gp_snapshot *snapshot)
{
    for (size_t d = 0; d < snapshot->device_count; d++) {
        const struct gp_device *device = &snapshot->devices[d];
        const char *uuid = gp_device_text(device, GP_UUID, "");
        for (size_t i = 0; i < watch->count; i++)
            if (device->status == GP_STATUS_OK && uuid[0] &&
                strcmp(watch->tracks[i].uuid, uuid) == 0) {
                const struct gp_bench_observation o = observation_of(snapshot, device);
                add(watch, &watch->tracks[i], &o);
            }
    }
}

static void keep(struct gp_bench_watch *watch)
{
    uint64_t now_ns = gp_clock_mono_ns();
    if (!watch->reserve || watch->lost[0] || now_ns - watch->kept_ns < KEEP_S * GP_NS_PER_S)
        return;
    watch->kept_ns = now_ns;
    if (gp_reserve_keep(watch->reserve, watch->lost))
        watch->lost[0] = '\0';
}

/* Takes a sample of all GPUs. Called without the lock, by one thread at a time. */
static void sample(struct gp_bench_watch *watch)
{
    struct gp_snapshot *snapshot = NULL;
    struct gp_err err = {0};
    int r = gp_sampler_tick(watch->sampler, &snapshot, &err);
    (void)pthread_mutex_lock(&watch->lock);
    if (r == 0)
        take(watch, snapshot);
    (void)pthread_mutex_unlock(&watch->lock);
    gp_snapshot_free(snapshot);
    if (watch->log)
        gp_bench_log_write(watch->log, &watch->lines);
    gp_strbuf_reset(&watch->lines);
}

static void *observe(void *context)
{
    struct gp_bench_watch *watch = context;
    (void)pthread_mutex_lock(&watch->lock);
    while (!watch->is_stopping) {
        keep(watch);
        struct timespec until = gp_clock_timespec(gp_clock_mono_ns() + EVERY_MS * GP_NS_PER_MS);
        (void)pthread_cond_timedwait(&watch->wake, &watch->lock, &until);
        if (watch->is_stopping)
            break;
        (void)pthread_mutex_unlock(&watch->lock);
        sample(watch);
        (void)pthread_mutex_lock(&watch->lock);
    }
    (void)pthread_mutex_unlock(&watch->lock);
    return NULL;
}

int gp_bench_watch_start(const struct gp_bench *bench, struct gp_sampler *sampler,
                         struct gp_reserve *reserve, struct gp_bench_log *log,
                         struct gp_bench_watch **ret, struct gp_err *err)
{
    struct gp_bench_watch *watch =
        calloc(1, sizeof(*watch) + bench->count * sizeof(watch->tracks[0]));
    *ret = NULL;
    if (!watch)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    watch->sampler = sampler;
    watch->reserve = reserve;
    watch->log = log;
    watch->lines = (struct gp_strbuf)GP_STRBUF_INIT(1 << 20);
    watch->count = bench->count;
    for (size_t i = 0; i < bench->count; i++) {
        watch->tracks[i].uuid = bench->devices[i]->uuid;
        watch->tracks[i].name = bench->names[i];
        watch->tracks[i].test = "";
    }
    (void)pthread_mutex_init(&watch->lock, NULL);
    gp_thread_cond_init(&watch->wake);
    sample(watch); /* so that even the shortest measurement has one */
    if (gp_thread_start(&watch->thread, observe, watch) != 0) {
        gp_strbuf_fini(&watch->lines);
        free(watch);
        return gp_err_set(err, GP_EFAIL, "cannot start a thread");
    }
    *ret = watch;
    return 0;
}

void gp_bench_watch_stop(struct gp_bench_watch *watch)
{
    if (!watch || watch->has_ended)
        return;
    (void)pthread_mutex_lock(&watch->lock);
    watch->is_stopping = true;
    (void)pthread_cond_signal(&watch->wake);
    (void)pthread_mutex_unlock(&watch->lock);
    (void)pthread_join(watch->thread, NULL);
    watch->has_ended = true;
}

void gp_bench_watch_free(struct gp_bench_watch *watch)
{
    if (!watch)
        return;
    gp_bench_watch_stop(watch);
    (void)pthread_cond_destroy(&watch->wake);
    (void)pthread_mutex_destroy(&watch->lock);
    gp_strbuf_fini(&watch->lines);
    free(watch);
}

void gp_bench_watch_begin(struct gp_bench_watch *watch, uint64_t devices, const char *test,
                          const char *what)
{
    (void)pthread_mutex_lock(&watch->lock);
    for (size_t k = 0; k < watch->count; k++) {
        const bool is_meant = devices >> k & 1;
        struct track *track = &watch->tracks[k];
        track->test = is_meant ? test : "";
        (void)snprintf(track->what, sizeof(track->what), "%s", is_meant ? what : "");
    }
    (void)pthread_mutex_unlock(&watch->lock);
}

void gp_bench_watch_between(struct gp_bench_watch *watch, size_t i, uint64_t begin_ns,
                            uint64_t end_ns, struct gp_bench_conditions *ret)
{
    struct track *track = &watch->tracks[i];
    struct gp_bench_sum sum = {.watts = 0};
    (void)pthread_mutex_lock(&watch->lock);
    size_t first = track->taken > KEPT ? track->taken - KEPT : 0;
    for (size_t k = first; k < track->taken; k++) {
        const struct gp_bench_observation *o = &track->ring[k % KEPT];
        if (o->mono_ns >= begin_ns && o->mono_ns <= end_ns)
            gp_bench_sum_add(&sum, o);
    }
    if (sum.c.samples == 0 && track->taken > 0) /* too short: the last one */
        gp_bench_sum_add(&sum, &track->ring[(track->taken - 1) % KEPT]);
    *ret = gp_bench_sum_mean(&sum);
    (void)pthread_mutex_unlock(&watch->lock);
}

void gp_bench_watch_mark(struct gp_bench_watch *watch, size_t i)
{
    (void)pthread_mutex_lock(&watch->lock);
    watch->tracks[i].since = (struct gp_bench_sum){.watts = 0};
    (void)pthread_mutex_unlock(&watch->lock);
}

void gp_bench_watch_since(struct gp_bench_watch *watch, size_t i, struct gp_bench_conditions *ret)
{
    (void)pthread_mutex_lock(&watch->lock);
    *ret = gp_bench_sum_mean(&watch->tracks[i].since);
    (void)pthread_mutex_unlock(&watch->lock);
}

bool gp_bench_watch_celsius(struct gp_bench_watch *watch, size_t i, double *ret_celsius,
                            uint64_t *ret_age_ns)
{
    const struct track *track = &watch->tracks[i];
    (void)pthread_mutex_lock(&watch->lock);
    const struct gp_bench_observation *o =
        track->taken ? &track->ring[(track->taken - 1) % KEPT] : NULL;
    bool is_known = o && !isnan(o->celsius);
    if (is_known) {
        uint64_t now_ns = gp_clock_mono_ns();
        *ret_celsius = o->celsius;
        *ret_age_ns = now_ns > o->mono_ns ? now_ns - o->mono_ns : 0;
    }
    (void)pthread_mutex_unlock(&watch->lock);
    return is_known;
}

void gp_bench_watch_lost(struct gp_bench_watch *watch, char *ret, size_t size)
{
    (void)pthread_mutex_lock(&watch->lock);
    (void)snprintf(ret, size, "%s", watch->lost);
    (void)pthread_mutex_unlock(&watch->lock);
}
