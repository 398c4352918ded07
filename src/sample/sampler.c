#include "sample/sampler.h"

#include "base/clock.h"
#include "base/err.h"
#include "model/select.h"
#include "sample/assemble.h"
#include "sample/sampler_internal.h"
#include "sample/thread.h"
#include "sample/waiter.h"

#include <stdio.h>
#include <stdlib.h>

enum { EVENT_WAIT_MS = 500 };

static void begin_tick(struct gp_sampler *s)
{
    s->tick++;
    gp_session_update(s);
    if (gp_session_is_released(s) || s->open_result < 0 || s->session_state != TASK_IDLE ||
        s->want.host_only)
        return;
    (void)gp_pool_add_tasks(s, s->gpu_count); /* more GPUs than in the last session */
    gp_pool_queue_reads(s);
    (void)gp_pool_employ(s, !gp_pool_reads_here(s) && s->queued > 0);
}

/* Passes the state of a GPU to the assembler: its reading of this tick, or why there is none. */
static void take(struct gp_sampler *s, const struct gp_sampler_task *t)
{
    char text[sizeof(s->open_err.text)] = "";
    enum gp_status status = GP_STATUS_TIMEOUT;
    double silent_s = (double)(gp_clock_mono_ns() - t->since_ns) / 1e9;
    const char *call = atomic_load_explicit(&t->call, memory_order_relaxed);
    if (s->looked && t->state != TASK_IDLE) {
        (void)snprintf(text, sizeof(text), "no answer yet (%s)", call ? call : "starting");
    } else if (t->state != TASK_IDLE && t->slot.latest &&
               t->slot.latest->status == GP_STATUS_LOST) {
        status = GP_STATUS_LOST; /* whatever it hangs in or waits for now */
        (void)snprintf(text, sizeof(text), "%s", t->slot.latest->status_text);
    } else if (t->state == TASK_RUNNING) {
        (void)snprintf(text, sizeof(text), "no answer for %.0f s (%s)", silent_s,
                       call ? call : "starting");
    } else if (t->state == TASK_QUEUED) {
        (void)snprintf(text, sizeof(text), "not queried for %.0f s: no thread is free", silent_s);
    } else if (gp_session_is_released(s)) {
        status = GP_STATUS_RELEASED;
        if (s->held)
            (void)snprintf(text, sizeof(text),
                           "closing the driver is delayed by a call that hangs");
        else
            (void)snprintf(text, sizeof(text), "released: gpulse closed the driver%s",
                           s->let_go ? "; SIGUSR1 reopens it" : " so that the GPU can sleep");
    } else if (s->session_state != TASK_IDLE && !s->closing) {
        (void)snprintf(text, sizeof(text), "the driver is being reopened");
    } else if (s->open_result < 0) {
        status = GP_STATUS_LOST;
        (void)snprintf(text, sizeof(text), "%s", s->open_err.text);
    } else if (t->answer_tick != s->tick) {
        (void)snprintf(text, sizeof(text), "responded too late for this sample");
    } else if (t->no_memory) {
        status = GP_STATUS_ERROR;
        (void)snprintf(text, sizeof(text), "out of memory");
    } else {
        status = GP_STATUS_OK;
        silent_s = 0;
    }
    gp_assembler_take(&s->assembler, &t->slot, status, silent_s, text);
}

/* Once a complete reading has identified a GPU, drops it if it is not selected. */
static void settle_choice(struct gp_sampler *s, struct gp_sampler_task *t)
{
    struct gp_slot *slot = &t->slot;
    bool complete = t->state == TASK_IDLE && slot->good && slot->good == slot->latest;
    if (slot->chosen && complete && !gp_selection_is_by_index(s->config.selection))
        slot->chosen = gp_assembler_chooses(&s->assembler, slot);
}

int gp_sampler_tick(struct gp_sampler *s, struct gp_snapshot **ret, struct gp_err *err)
{
    if (gp_sampler_is_recorded(s))
        return gp_recorded_tick(s, ret, err);
    (void)pthread_mutex_lock(&s->lock);
    bool looks = s->config.first_look_ns > 0 && s->tick == 0;
    uint64_t begin_ns = gp_clock_mono_ns();
    if (!s->ahead && !s->looked)
        begin_tick(s);
    s->ahead = false;
    bool asks = s->awaited > 0;
    (void)pthread_mutex_unlock(&s->lock);
    int r = gp_assembler_prepare(&s->assembler, err); /* meanwhile, the pool reads the GPUs */
    (void)pthread_mutex_lock(&s->lock);
    if (gp_pool_reads_here(s) && !gp_pool_read_here(s)) {
        (void)pthread_mutex_unlock(&s->lock);
        return gp_err_set(err, GP_EINTR, "another thread continues this sample");
    }
    gp_pool_await_reads(s, looks ? begin_ns + s->config.first_look_ns : gp_pool_deadline_ns(s));
    s->looked = looks && s->awaited > 0;
    s->is_quick =
        asks && s->awaited == 0 && gp_clock_mono_ns() - begin_ns < s->config.first_look_ns;
    if (!s->looked)
        gp_pool_give_up_reads(s);
    if (r == 0)
        r = gp_assembler_start(&s->assembler, s->task_count, s->gpu_count, err);
    for (unsigned i = 0; r == 0 && i < s->task_count; i++) {
        struct gp_sampler_task *t = s->tasks[i];
        settle_choice(s, t);
        if (t->slot.chosen && !s->want.host_only)
            take(s, t);
    }
    (void)pthread_mutex_unlock(&s->lock);
    if (r == 0)
        r = gp_assembler_finish(&s->assembler, ret, err);
    if (r == 0 && s->config.release_when_idle)
        s->busy = gp_snapshot_has_work(*ret);
    return r;
}

bool gp_sampler_is_recorded(const struct gp_sampler *s)
{
    return s->config.source->ops->sample != NULL;
}

bool gp_sampler_is_over(const struct gp_sampler *s)
{
    return s->is_over;
}

bool gp_sampler_goes_on(struct gp_sampler *s)
{
    return s->looked; /* only used by the consumer */
}

void gp_sampler_watch(struct gp_sampler *s, const uint32_t *pids, size_t count, bool others_matter)
{
    /* Both sides of it belong to the consumer. */
    gp_assembler_watch(&s->assembler, pids, count, others_matter);
}

void gp_sampler_set_ancestors(struct gp_sampler *s, bool wanted)
{
    gp_assembler_set_ancestors(&s->assembler, wanted); /* likewise */
}

void gp_sampler_set_more(struct gp_sampler *s, bool wanted)
{
    s->wants_more = wanted;
}

void gp_sampler_set_lists(struct gp_sampler *s, uint32_t lists)
{
    s->more_lists = lists;
    gp_assembler_set_lists(&s->assembler, lists); /* likewise */
}

void gp_sampler_add_lists(struct gp_sampler *s, uint32_t lists)
{
    s->added_lists |= lists;
    gp_assembler_add_lists(&s->assembler, lists);
}

void gp_sampler_release(struct gp_sampler *s, bool release)
{
    if (gp_sampler_is_recorded(s))
        return;
    (void)pthread_mutex_lock(&s->lock);
    s->let_go = release;
    gp_session_update(s);
    (void)pthread_mutex_unlock(&s->lock);
}

/* The threads have exited. */
static void free_sampler(struct gp_sampler *s)
{
    for (unsigned i = 0; i < s->task_count; i++) {
        struct gp_sampler_task *t = s->tasks[i];
        gp_reading_unref(t->slot.latest);
        gp_reading_unref(t->slot.good);
        gp_reading_unref(t->glance);
        gp_reading_unref(t->spare);
        free(t);
    }
    gp_reading_unref(s->handed_on);
    free(s->tasks);
    free(s->threads);
    gp_waiter_free(s->waiter);
    gp_assembler_fini(&s->assembler);
    s->config.source->ops->free(s->config.source);
    (void)pthread_cond_destroy(&s->done);
    (void)pthread_cond_destroy(&s->wake);
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
}

/* Closes the driver's session, which may hang like any call. Returns false if a thread hangs;
 * requires the lock. */
static bool end_session(struct gp_sampler *s)
{
    if (s->ahead)
        gp_pool_await_reads(s, gp_pool_deadline_ns(s)); /* not collected by a tick */
    gp_pool_give_up_reads(s);
    s->ahead = false;
    if (s->closing)
        return gp_pool_await_session(s);
    if (gp_pool_is_busy(s))
        return false;
    s->closing = true;
    return s->thread_count == 0 || gp_session_request(s) == 0;
}

bool gp_sampler_free(struct gp_sampler *s)
{
    if (!s)
        return true;
    (void)pthread_mutex_lock(&s->lock);
    bool ended = end_session(s);
    s->quit = ended; /* next to a stuck thread, the others keep resting: nobody will join them */
    if (ended)
        (void)pthread_cond_broadcast(&s->wake);
    (void)pthread_mutex_unlock(&s->lock);
    if (!ended)
        return false;
    for (unsigned i = 0; i < s->thread_count; i++)
        (void)pthread_join(s->threads[i], NULL);
    free_sampler(s);
    return true;
}

static int open_first(struct gp_sampler *s, struct gp_err *err)
{
    if (!gp_assembler_needs_source(&s->assembler))
        return 0;
    (void)pthread_mutex_lock(&s->lock);
    int r = gp_session_request(s);
    if (r == 0 && s->open_result < 0)
        r = gp_err_copy(err, &s->open_err);
    (void)pthread_mutex_unlock(&s->lock);
    if (r == GP_ETIMEOUT || (r == GP_ENOMEM && s->thread_count == 0))
        return gp_thread_no_start(r, s->config.timeout_ns, err);
    if (r == 0 && s->gpu_count == 0 && !s->want.host_only)
        r = gp_thread_no_start(GP_ENODEV, s->config.timeout_ns, err);
    if (r == 0 && gp_pool_add_tasks(s, s->gpu_count) < 0)
        r = gp_err_set(err, GP_ENOMEM, "out of memory for %u GPUs", s->gpu_count);
    if (r == 0 && !s->want.host_only && gp_selection_is_by_index(s->config.selection))
        r = gp_selection_check(s->config.selection, s->gpu_count, err);
    return r;
}

static void split_identity(struct gp_sampler *s)
{
    for (int m = GP_DEVICE__FIRST; m < GP_PROCESS__FIRST; m++)
        if (gp_metric_table[m].tier == GP_TIER_STATIC &&
            gp_metric_set_has(&s->want.metrics, (enum gp_metric)m)) {
            gp_metric_set_add(&s->identity.metrics, (enum gp_metric)m);
            s->wants_identity = true;
        }
}

int gp_sampler_new(const struct gp_sampler_config *config, struct gp_sampler **ret,
                   struct gp_err *err)
{
    struct gp_sampler *s = calloc(1, sizeof(*s));
    if (!s) {
        config->source->ops->free(config->source);
        *ret = NULL;
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    }
    s->config = *config;
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_cond_init(&s->wake, NULL);
    gp_thread_cond_init(&s->done);
    int r = gp_assembler_init(&s->assembler, config->selection, &config->want, config->root, err);
    if (r == 0) {
        if (config->release_when_idle)
            gp_assembler_add_activity(&s->assembler);
        s->want = *gp_assembler_want(&s->assembler);
        s->less = s->want;
        gp_metric_set_drop(&s->less.metrics, &config->want.more);
        gp_metric_set_join(&s->less.metrics, &config->want.metrics);
        split_identity(s);
        unsigned wait_ms = config->event_wait_ms ? config->event_wait_ms : EVENT_WAIT_MS;
        if (gp_sampler_is_recorded(s))
            s->want.events = 0;
        if (s->want.events)
            s->waiter = gp_waiter_new(config->source, s->want.events, wait_ms);
        if (s->want.events && !s->waiter)
            r = gp_err_set(err, GP_ENOMEM, "cannot set up waiting for events");
    }
    if (r == 0 && !gp_sampler_is_recorded(s))
        r = open_first(s, err);
    if (r == 0)
        gp_session_reset_delay(s);
    *ret = r < 0 && gp_sampler_free(s) ? NULL : s;
    return r;
}

bool gp_sampler_is_busy(struct gp_sampler *s)
{
    (void)pthread_mutex_lock(&s->lock);
    bool is_busy = gp_pool_is_busy(s);
    (void)pthread_mutex_unlock(&s->lock);
    return is_busy;
}

struct gp_waiter *gp_sampler_waiter(struct gp_sampler *s)
{
    return s->waiter;
}
