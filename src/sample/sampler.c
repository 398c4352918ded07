#include "sample/sampler.h"

#include "base/clock.h"
#include "base/err.h"
#include "model/select.h"
#include "sample/assemble.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    STACK_BYTES = 512 * 1024,
    REINIT_FIRST_S = 1,
    REINIT_LAST_S = 60,
};

enum job { JOB_NONE, JOB_OPEN, JOB_READ, JOB_QUIT };

struct worker {
    struct gp_sampler *sampler;
    pthread_t thread;
    bool started;
    /* guarded by the sampler's lock */
    enum job job;
    bool busy;
    bool awaited; /* the tick in progress waits for it */
    uint64_t busy_since_ns;
    struct gp_slot slot;
    /* touched by the worker only, or by the opener while all others rest */
    struct gp_source_device *device;
    gp_call_name call;
};

struct gp_sampler {
    struct gp_sampler_config config;
    struct gp_want want; /* config.want and what selection and assembly need */
    struct gp_assembler assembler;
    pthread_mutex_t lock;
    pthread_cond_t wake; /* a worker has a job */
    pthread_cond_t done; /* nobody is awaited any more */
    struct worker **workers; /* one per GPU; the first opens the source too */
    unsigned worker_count;
    unsigned awaited; /* workers started in this tick and not yet back */
    unsigned gpu_count;
    int open_result;
    struct gp_err open_err;
    uint64_t reinit_at_ns; /* next attempt to bring lost GPUs back */
    uint64_t reinit_delay_ns;
};

/* ---- the worker's side ---- */

static void open_source(struct gp_sampler *s)
{
    const struct gp_source_ops *ops = s->config.source->ops;
    unsigned count = 0;
    struct gp_err err = {0};
    for (unsigned i = 0; i < s->worker_count; i++) {
        ops->detach(s->workers[i]->device);
        s->workers[i]->device = NULL;
    }
    ops->close(s->config.source);
    int r = ops->open(s->config.source, &count, &err);
    (void)pthread_mutex_lock(&s->lock);
    s->open_result = r;
    s->open_err = err;
    if (r == 0) {
        s->gpu_count = count;
        struct gp_value host[GP_HOST__COUNT] = {{{0}, 0, 0}};
        ops->read_host(s->config.source, host);
        gp_assembler_set_driver(&s->assembler, host);
    }
    (void)pthread_mutex_unlock(&s->lock);
}

/* Takes hold of the GPU of this slot. After a re-opening the driver may count differently, so a known
 * UUID is looked for at the old index first and then at all others. */
static void attach(struct worker *w, struct gp_reading *reading)
{
    struct gp_sampler *s = w->sampler;
    const struct gp_source_ops *ops = s->config.source->ops;
    const char *known = w->slot.uuid;
    for (unsigned k = 0; k <= s->gpu_count; k++) {
        unsigned index = k == 0 ? w->slot.index : k - 1;
        if (index >= s->gpu_count || (k > 0 && index == w->slot.index))
            continue;
        struct gp_source_device *device;
        if (ops->attach(s->config.source, index, &w->call, &device, reading) < 0) {
            if (!known[0])
                return;
            continue;
        }
        if (!known[0] || strcmp(known, ops->uuid(device)) == 0) {
            w->device = device;
            reading->status = GP_STATUS_OK;
            reading->needs_reinit = false;
            return;
        }
        ops->detach(device);
    }
    if (reading->status == GP_STATUS_NONE) {
        reading->status = GP_STATUS_LOST;
        (void)snprintf(reading->status_text, sizeof(reading->status_text),
                       "the driver no longer lists this GPU");
    }
    reading->needs_reinit = reading->status == GP_STATUS_LOST;
}

static struct gp_reading *read_device(struct worker *w)
{
    struct gp_reading *reading = gp_reading_new();
    if (!reading)
        return NULL;
    reading->time_ns = gp_clock_mono_ns();
    if (!w->device)
        attach(w, reading);
    if (w->device)
        w->sampler->config.source->ops->read(w->device, &w->sampler->want, reading);
    return reading;
}

/* Publishes a reading; the lock is held. */
static void publish(struct worker *w, struct gp_reading *reading)
{
    if (!reading)
        return;
    struct gp_slot *slot = &w->slot;
    gp_reading_unref(slot->latest);
    slot->latest = reading;
    if (reading->status == GP_STATUS_OK) {
        gp_reading_unref(slot->good);
        slot->good = gp_reading_ref(reading);
        if (!slot->uuid[0])
            (void)snprintf(slot->uuid, sizeof(slot->uuid), "%s",
                           w->sampler->config.source->ops->uuid(w->device));
    }
}

static void *worker_main(void *arg)
{
    struct worker *w = arg;
    struct gp_sampler *s = w->sampler;
    (void)pthread_mutex_lock(&s->lock);
    for (;;) {
        while (w->job == JOB_NONE)
            (void)pthread_cond_wait(&s->wake, &s->lock);
        enum job job = w->job;
        w->job = JOB_NONE;
        if (job == JOB_QUIT)
            break;
        (void)pthread_mutex_unlock(&s->lock);
        struct gp_reading *reading = NULL;
        if (job == JOB_OPEN)
            open_source(s);
        else
            reading = read_device(w);
        (void)pthread_mutex_lock(&s->lock);
        publish(w, reading);
        w->busy = false;
        if (w->awaited && --s->awaited == 0)
            (void)pthread_cond_signal(&s->done);
        w->awaited = false;
    }
    (void)pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- the consumer's side ---- */

/* Signals belong to the thread that runs the command. */
static int start_thread(struct worker *w)
{
    pthread_attr_t attr;
    sigset_t all;
    sigset_t before;
    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setstacksize(&attr, STACK_BYTES);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int r = pthread_create(&w->thread, &attr, worker_main, w);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attr);
    w->started = r == 0;
    return r == 0 ? 0 : GP_ENOMEM;
}

/* Gives an idle worker a job; the lock is held. Its thread starts with its first job. */
static int give_job(struct gp_sampler *s, struct worker *w, enum job job)
{
    w->job = job;
    w->busy = true;
    w->busy_since_ns = gp_clock_mono_ns();
    w->awaited = true;
    s->awaited++;
    if (w->started)
        return 0;
    int r = start_thread(w);
    if (r < 0) {
        w->job = JOB_NONE;
        w->busy = w->awaited = false;
        s->awaited--;
    }
    return r;
}

/* Waits until everybody is back or the deadline is over; the lock is held. */
static void await_workers(struct gp_sampler *s)
{
    struct timespec deadline = gp_clock_timespec(gp_clock_mono_ns() + s->config.timeout_ns);
    while (s->awaited > 0)
        if (pthread_cond_timedwait(&s->done, &s->lock, &deadline) != 0)
            break;
    if (s->awaited > 0)
        for (unsigned i = 0; i < s->worker_count; i++)
            s->workers[i]->awaited = false;
    s->awaited = 0;
}

static int add_workers(struct gp_sampler *s, unsigned count)
{
    if (count <= s->worker_count)
        return 0;
    struct worker **grown = realloc(s->workers, count * sizeof(struct worker *));
    if (!grown)
        return GP_ENOMEM;
    s->workers = grown;
    while (s->worker_count < count) {
        struct worker *w = calloc(1, sizeof(*w));
        if (!w)
            return GP_ENOMEM;
        w->sampler = s;
        w->slot.index = s->worker_count;
        w->slot.chosen = !gp_selection_is_by_index(s->config.selection) ||
                         gp_selection_matches(s->config.selection, w->slot.index, NULL, NULL, NULL);
        s->workers[s->worker_count++] = w;
    }
    return 0;
}

static bool is_any_busy(const struct gp_sampler *s)
{
    for (unsigned i = 0; i < s->worker_count; i++)
        if (s->workers[i]->busy)
            return true;
    return false;
}

/* Opens the source on the first worker's thread; the lock is held and all workers rest. */
static int run_open(struct gp_sampler *s, struct gp_err *err)
{
    int r = give_job(s, s->workers[0], JOB_OPEN);
    if (r < 0)
        return gp_err_set(err, r, "cannot start a thread for the driver");
    (void)pthread_cond_broadcast(&s->wake);
    await_workers(s);
    if (s->workers[0]->busy)
        return gp_err_set(err, GP_ETIMEOUT,
                          "the driver did not answer within %.1f s while starting (nvmlInit); the "
                          "kernel log may say why: dmesg | grep -i nvrm",
                          (double)s->config.timeout_ns / 1e9);
    *err = s->open_err;
    return s->open_result;
}

/* A lost GPU, or a driver that was reloaded, comes back only through a new session. That is tried
 * again and again, ever more rarely, and never beside a call that hangs. */
static void reopen_if_needed(struct gp_sampler *s)
{
    bool needed = s->open_result < 0;
    for (unsigned i = 0; i < s->worker_count; i++) {
        const struct gp_slot *slot = &s->workers[i]->slot;
        needed = needed || (slot->latest && slot->latest->needs_reinit);
    }
    uint64_t now = gp_clock_mono_ns();
    if (!needed) {
        s->reinit_delay_ns = REINIT_FIRST_S * GP_NS_PER_S;
        s->reinit_at_ns = now + s->reinit_delay_ns;
        return;
    }
    if (now < s->reinit_at_ns || is_any_busy(s))
        return;
    struct gp_err err;
    if (run_open(s, &err) == 0)
        (void)add_workers(s, s->gpu_count);
    s->reinit_at_ns = gp_clock_mono_ns() + s->reinit_delay_ns;
    if (s->reinit_delay_ns < REINIT_LAST_S * GP_NS_PER_S)
        s->reinit_delay_ns *= 2;
}

static void start_reads(struct gp_sampler *s)
{
    for (unsigned i = 0; i < s->worker_count; i++) {
        struct worker *w = s->workers[i];
        if (w->slot.chosen && !w->busy && s->open_result == 0)
            (void)give_job(s, w, JOB_READ);
    }
    (void)pthread_cond_broadcast(&s->wake);
}

int gp_sampler_tick(struct gp_sampler *s, struct gp_snapshot **ret, struct gp_err *err)
{
    (void)pthread_mutex_lock(&s->lock);
    reopen_if_needed(s);
    start_reads(s);
    await_workers(s);
    int r = gp_assembler_start(&s->assembler, s->worker_count, err);
    uint64_t now = gp_clock_mono_ns();
    for (unsigned i = 0; r == 0 && i < s->worker_count; i++) {
        struct worker *w = s->workers[i];
        uint64_t silent_ns = w->busy ? now - w->busy_since_ns : 0;
        const char *call = w->busy ? atomic_load_explicit(&w->call, memory_order_relaxed) : NULL;
        if (w->slot.chosen)
            gp_assembler_take(&s->assembler, &w->slot, w->busy, silent_ns, call);
    }
    (void)pthread_mutex_unlock(&s->lock);
    if (r < 0)
        return r;
    return gp_assembler_finish(&s->assembler, s->gpu_count, ret, err);
}

/* The threads are all resting. */
static void free_sampler(struct gp_sampler *s)
{
    for (unsigned i = 0; i < s->worker_count; i++) {
        struct worker *w = s->workers[i];
        s->config.source->ops->detach(w->device);
        gp_reading_unref(w->slot.latest);
        gp_reading_unref(w->slot.good);
        free(w);
    }
    free(s->workers);
    gp_assembler_fini(&s->assembler);
    s->config.source->ops->close(s->config.source);
    s->config.source->ops->free(s->config.source);
    (void)pthread_cond_destroy(&s->done);
    (void)pthread_cond_destroy(&s->wake);
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
}

bool gp_sampler_free(struct gp_sampler *s)
{
    if (!s)
        return true;
    (void)pthread_mutex_lock(&s->lock);
    bool stuck = is_any_busy(s);
    for (unsigned i = 0; !stuck && i < s->worker_count; i++)
        s->workers[i]->job = JOB_QUIT;
    (void)pthread_cond_broadcast(&s->wake);
    (void)pthread_mutex_unlock(&s->lock);
    if (stuck)
        return false;
    for (unsigned i = 0; i < s->worker_count; i++)
        if (s->workers[i]->started)
            (void)pthread_join(s->workers[i]->thread, NULL);
    free_sampler(s);
    return true;
}

static int open_first(struct gp_sampler *s, struct gp_err *err)
{
    (void)pthread_mutex_lock(&s->lock);
    int r = run_open(s, err);
    (void)pthread_mutex_unlock(&s->lock);
    if (r == 0 && s->gpu_count == 0)
        r = gp_err_set(err, GP_ENODEV, "the driver runs, but it has no GPU; see what the kernel says: "
                                       "dmesg | grep -i nvrm");
    if (r == 0 && add_workers(s, s->gpu_count) < 0)
        r = gp_err_set(err, GP_ENOMEM, "out of memory for %u GPUs", s->gpu_count);
    if (r < 0 || !gp_selection_is_by_index(s->config.selection))
        return r;
    return gp_selection_check(s->config.selection, s->gpu_count, err);
}

int gp_sampler_new(const struct gp_sampler_config *config, struct gp_sampler **ret, struct gp_err *err)
{
    struct gp_sampler *s = calloc(1, sizeof(*s));
    if (s)
        s->config = *config;
    if (!s || add_workers(s, 1) < 0) {
        free(s);
        config->source->ops->free(config->source);
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    }
    s->reinit_delay_ns = REINIT_FIRST_S * GP_NS_PER_S;
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_cond_init(&s->wake, NULL);
    pthread_condattr_t monotonic;
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&s->done, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    int r = gp_assembler_init(&s->assembler, config->selection, &config->want, config->root, err);
    if (r == 0) {
        s->want = *gp_assembler_want(&s->assembler);
        r = open_first(s, err);
    }
    if (r < 0) {
        (void)gp_sampler_free(s);
        return r;
    }
    s->reinit_at_ns = gp_clock_mono_ns() + s->reinit_delay_ns;
    *ret = s;
    return 0;
}
