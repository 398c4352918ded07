#include "sample/sampler.h"

#include "base/clock.h"
#include "base/err.h"
#include "model/select.h"
#include "sample/assemble.h"
#include "sample/release.h"
#include "sample/thread.h"
#include "sample/waiter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PATIENCE_US = 1000, /* the pool grows if reads take longer than this, */
    SOON_US = 10000,    /* unless at their pace all will be done within this */
    QUICK_LOOKS = 5,    /* after a quick tick, the next one lasts at most this many first looks */
    EVENT_WAIT_MS = 500,
    REINIT_FIRST_S = 1,
    REINIT_LAST_S = 60,
};

enum task_state { TASK_IDLE, TASK_QUEUED, TASK_RUNNING };

/* The work for one GPU. Never run by two threads at once. */
struct task {
    struct gp_sampler *sampler;
    /* Protected by the sampler's lock. */
    enum task_state state;
    bool awaited;         /* the current tick waits for it */
    uint64_t since_ns;    /* when it was queued */
    uint64_t begun_tick;  /* the tick in which its last read started */
    uint64_t answer_tick; /* the tick of its latest reading */
    bool no_memory;       /* for the last read */
    struct gp_slot slot;
    /* Used by the thread that runs the task, or by the opener while all other threads rest. */
    struct gp_source_device *device;
    struct gp_reading *spare; /* an earlier reading, to be filled again; or NULL */
    gp_call_name call;
};

struct gp_sampler {
    struct gp_sampler_config config;
    struct gp_want want; /* config.want, and what selection and assembly need */
    struct gp_want less; /* without want.more */
    atomic_bool wants_more;
    atomic_uint more_lists, added_lists;
    struct gp_want identity; /* its static part */
    bool wants_identity;
    struct gp_assembler assembler;
    struct gp_waiter *waiter; /* NULL: driver events are not requested */
    pthread_mutex_t lock;
    pthread_cond_t wake; /* there is work */
    pthread_cond_t done; /* nothing is awaited any more */
    struct task **tasks; /* one per GPU */
    unsigned task_count;
    pthread_t *threads; /* at most one per GPU, plus one */
    unsigned thread_count;
    unsigned resting; /* threads that wait for work */
    unsigned awaited; /* unfinished tasks of this tick */
    unsigned queued;
    enum task_state session_state; /* the other kind of task: opening and closing the source */
    bool closing;                  /* permanently */
    bool held;                     /* the source is open, or opening it was attempted */
    bool let_go;                   /* closed on the user's request */
    struct gp_release release;     /* closed because the GPUs are idle */
    bool busy;                     /* a GPU had work in the last sample */
    bool quit;
    bool ahead;    /* the reads of the next tick have started */
    bool looked;   /* at the early results of the first tick; the next call continues that tick */
    bool is_quick; /* the last tick took less than a first look */
    bool is_soon;  /* in the last tick, one thread read all GPUs within SOON_US */
    unsigned consumer;      /* how often the consumer was relieved */
    uint64_t here_since_ns; /* when the consumer itself began to read a GPU; 0: it does not */
    uint64_t tick;
    unsigned gpu_count;
    uint64_t session_ns; /* when the source was last opened */
    int open_result;
    struct gp_err open_err;
    uint64_t reinit_at_ns; /* next attempt to recover lost GPUs */
    uint64_t reinit_delay_ns;
};

/* Whether the session should be closed now. */
static bool is_released(const struct gp_sampler *s)
{
    return s->let_go || s->release.released;
}

/* ---- pool threads ---- */

/* Closes the session, if there is one, and opens a new one if there should be one. The waiter must
 * rest. */
static void change_session(struct gp_sampler *s, bool open)
{
    const struct gp_source_ops *ops = s->config.source->ops;
    unsigned count = 0;
    struct gp_err err = {0};
    for (unsigned i = 0; i < s->task_count; i++) {
        ops->detach(s->tasks[i]->device);
        s->tasks[i]->device = NULL;
    }
    ops->close(s->config.source);
    if (!open)
        return;
    int r = ops->open(s->config.source, &count, &err);
    struct gp_value host[GP_HOST__COUNT] = {{{0}, 0, 0}};
    if (r == 0)
        ops->read_host(s->config.source, &gp_assembler_want(&s->assembler)->metrics, host);
    (void)pthread_mutex_lock(&s->lock);
    s->open_result = r;
    s->open_err = err;
    if (r == 0) {
        s->gpu_count = count;
        s->session_ns = gp_clock_mono_ns();
        gp_assembler_set_driver(&s->assembler, host);
    }
    (void)pthread_mutex_unlock(&s->lock);
    if (r == 0 && s->waiter)
        gp_waiter_begin(s->waiter);
}

/* Whether another slot already has this GPU. */
static bool is_claimed(struct gp_sampler *s, const struct task *t, const char *uuid)
{
    bool claimed = false;
    (void)pthread_mutex_lock(&s->lock);
    for (unsigned i = 0; uuid[0] && i < s->task_count; i++)
        claimed = claimed || (s->tasks[i] != t && strcmp(s->tasks[i]->slot.uuid, uuid) == 0);
    (void)pthread_mutex_unlock(&s->lock);
    return claimed;
}

/* Opens the GPU at this index if it belongs to this slot: it has its UUID, or, while that is
 * unknown, no other slot has it. */
static bool attach_at(struct task *t, unsigned index, struct gp_reading *reading)
{
    struct gp_sampler *s = t->sampler;
    const struct gp_source_ops *ops = s->config.source->ops;
    struct gp_source_device *device;
    if (index >= s->gpu_count ||
        ops->attach(s->config.source, index, &t->call, &device, reading) < 0)
        return false;
    const char *uuid = ops->uuid(device);
    if (t->slot.uuid[0] ? strcmp(t->slot.uuid, uuid) != 0 : is_claimed(s, t, uuid)) {
        ops->detach(device);
        return false;
    }
    t->device = device;
    return true;
}

static void copy_status(struct gp_reading *to, const struct gp_reading *from)
{
    to->status = from->status;
    to->driver_code = from->driver_code;
    to->refused = from->refused;
    to->needs_reinit = from->needs_reinit;
    memcpy(to->status_text, from->status_text, sizeof(to->status_text));
}

/* Opens the GPU of this slot. The driver's order may change when it is reopened, so the UUID is
 * also searched at all other indices. A GPU that refuses to open has no UUID; its refusal only
 * counts for this slot if no other index has the slot's GPU. */
static void attach(struct task *t, struct gp_reading *reading)
{
    bool is_known = t->slot.uuid[0] != '\0';
    if (attach_at(t, t->slot.index, reading) || (!is_known && reading->status != GP_STATUS_NONE))
        return;
    bool found = false;
    for (unsigned i = 0; !found && i < t->sampler->gpu_count; i++) {
        struct gp_reading other = {0};
        found = i != t->slot.index && attach_at(t, i, &other);
        if (found || (is_known && reading->status == GP_STATUS_NONE))
            copy_status(reading, &other);
        gp_arena_fini(&other.arena);
    }
    if (found || reading->status != GP_STATUS_NONE)
        return;
    reading->status = GP_STATUS_LOST;
    reading->needs_reinit = true;
    (void)snprintf(reading->status_text, sizeof(reading->status_text),
                   "the driver no longer lists this GPU");
}

/* Publishes a reading; requires the lock. */
static void publish(struct task *t, struct gp_reading *reading)
{
    if (!reading)
        return;
    struct gp_slot *slot = &t->slot;
    struct gp_reading *earlier = slot->latest;
    slot->latest = reading;
    if (reading->status == GP_STATUS_OK) {
        gp_reading_unref(slot->good);
        slot->good = gp_reading_ref(reading);
        if (!slot->uuid[0])
            (void)snprintf(slot->uuid, sizeof(slot->uuid), "%s",
                           t->sampler->config.source->ops->uuid(t->device));
    }
    gp_reading_unref(t->spare);
    t->spare = gp_reading_recycle(earlier);
}

static struct gp_reading *new_reading(struct task *t)
{
    struct gp_reading *reading = t->spare ? t->spare : gp_reading_new();
    t->spare = NULL;
    return reading;
}

/* Publishes the permanent values as soon as the GPU is open, so that it has a name even if it hangs
 * in its first reading. */
static void publish_identity(struct task *t)
{
    struct gp_sampler *s = t->sampler;
    struct gp_reading *reading = s->wants_identity ? new_reading(t) : NULL;
    if (!reading)
        return;
    s->config.source->ops->read(t->device, &s->identity, reading);
    (void)pthread_mutex_lock(&s->lock);
    publish(t, reading);
    (void)pthread_mutex_unlock(&s->lock);
}

static struct gp_reading *read_device(struct task *t)
{
    struct gp_sampler *s = t->sampler;
    struct gp_reading *reading = new_reading(t);
    if (!reading)
        return NULL;
    reading->time_ns = gp_clock_mono_ns();
    bool is_new = !t->device;
    if (is_new) {
        attach(t, reading);
        if (t->device && !t->slot.good)
            publish_identity(t);
    }
    if (t->device) {
        struct gp_want want = s->wants_more ? s->want : s->less;
        want.lists |= s->more_lists | s->added_lists;
        want.fresh = want.fresh || s->more_lists;
        s->config.source->ops->read(t->device, &want, reading);
    }
    /* Only for a GPU that has responded: the waiter has one thread for all of them. */
    if (t->device && is_new && s->waiter)
        gp_waiter_offer(s->waiter, t->slot.index, t->device);
    return reading;
}

/* Takes the next queued task and marks it as running; NULL if there is none, or while the source is
 * being opened. Requires the lock. */
static struct task *next_task(struct gp_sampler *s)
{
    bool open = s->session_state == TASK_IDLE && !s->closing;
    for (unsigned i = 0; open && s->queued > 0 && i < s->task_count; i++)
        if (s->tasks[i]->state == TASK_QUEUED) {
            s->tasks[i]->state = TASK_RUNNING;
            s->tasks[i]->begun_tick = s->tick;
            s->queued--;
            return s->tasks[i];
        }
    return NULL;
}

static int add_tasks(struct gp_sampler *s, unsigned count)
{
    if (count <= s->task_count)
        return 0;
    struct task **grown = realloc(s->tasks, count * sizeof(struct task *));
    if (!grown)
        return GP_ENOMEM;
    s->tasks = grown;
    while (s->task_count < count) {
        struct task *t = calloc(1, sizeof(*t));
        if (!t)
            return GP_ENOMEM;
        t->sampler = s;
        t->slot.index = s->task_count;
        t->slot.chosen = !gp_selection_is_by_index(s->config.selection) ||
                         gp_selection_matches(s->config.selection, t->slot.index, NULL);
        s->tasks[s->task_count++] = t;
    }
    return 0;
}

/* Queues a read of every selected GPU; requires the lock. */
static void queue_reads(struct gp_sampler *s)
{
    uint64_t now = gp_clock_mono_ns();
    for (unsigned i = 0; i < s->task_count; i++) {
        struct task *t = s->tasks[i];
        if (!t->slot.chosen || t->state == TASK_RUNNING)
            continue;
        if (t->state == TASK_IDLE) {
            s->queued++;
            t->since_ns = now;
        }
        t->state = TASK_QUEUED;
        t->awaited = true;
        s->awaited++;
    }
}

/* Starts the only tick early; requires the lock. */
static void read_ahead(struct gp_sampler *s)
{
    struct gp_selection *selection = s->config.selection;
    struct gp_err err;
    if (s->open_result < 0 || s->want.host_only || add_tasks(s, s->gpu_count) < 0 ||
        (gp_selection_is_by_index(selection) &&
         gp_selection_check(selection, s->gpu_count, &err) < 0))
        return;
    s->tick++;
    queue_reads(s);
    s->ahead = true;
}

static void run_session(struct gp_sampler *s)
{
    bool open = !s->closing && !is_released(s);
    s->session_state = TASK_RUNNING;
    (void)pthread_mutex_unlock(&s->lock);
    change_session(s, open);
    (void)pthread_mutex_lock(&s->lock);
    s->session_state = TASK_IDLE;
    s->held = open;
    if (open && s->config.once)
        read_ahead(s);
    s->quit = s->closing; /* the last work: no need to wake the thread again to stop it */
    (void)pthread_cond_signal(&s->done);
}

/* Whether a thread is inside the driver; requires the lock. */
static bool is_busy(const struct gp_sampler *s)
{
    for (unsigned i = 0; i < s->task_count; i++)
        if (s->tasks[i]->state == TASK_RUNNING)
            return true;
    return s->session_state == TASK_RUNNING;
}

static void run_task(struct gp_sampler *s, struct task *t)
{
    (void)pthread_mutex_unlock(&s->lock);
    struct gp_reading *reading = read_device(t);
    (void)pthread_mutex_lock(&s->lock);
    publish(t, reading);
    t->no_memory = !reading;
    t->answer_tick = t->begun_tick;
    t->state = TASK_IDLE;
    if (t->awaited && --s->awaited == 0)
        (void)pthread_cond_signal(&s->done);
    t->awaited = false;
    if (s->config.once && s->queued == 0 && !is_busy(s)) {
        s->closing = true;
        s->session_state = TASK_QUEUED;
    }
}

static void *thread_main(void *arg)
{
    struct gp_sampler *s = arg;
    (void)pthread_mutex_lock(&s->lock);
    while (!s->quit) {
        struct task *task = NULL;
        if (s->session_state == TASK_QUEUED) {
            run_session(s);
        } else if ((task = next_task(s))) {
            run_task(s, task);
        } else {
            s->resting++;
            (void)pthread_cond_wait(&s->wake, &s->lock);
            s->resting--;
        }
    }
    (void)pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- consumer ---- */

/* Starts one more thread; requires the lock. */
static int start_thread(struct gp_sampler *s)
{
    pthread_t *grown = realloc(s->threads, (s->thread_count + 1) * sizeof(*grown));
    if (!grown)
        return GP_ENOMEM;
    s->threads = grown;
    int r = gp_thread_start(&s->threads[s->thread_count], thread_main, s);
    s->thread_count += r == 0;
    return r;
}

/* Puts up to `count` threads to work, resting ones first. Fails with GP_ENOMEM if there is not a
 * single thread. */
static int employ(struct gp_sampler *s, unsigned count)
{
    for (unsigned i = 0; i < count && i < s->resting; i++)
        (void)pthread_cond_signal(&s->wake);
    for (unsigned i = s->resting; i < count && s->thread_count <= s->task_count; i++)
        if (start_thread(s) < 0)
            break;
    return s->thread_count > 0 ? 0 : GP_ENOMEM;
}

/* Waits for `done` until the deadline; requires the lock. Returns false after the deadline. */
static bool wait_until(struct gp_sampler *s, uint64_t mono_ns)
{
    struct timespec until = gp_clock_timespec(mono_ns);
    return pthread_cond_timedwait(&s->done, &s->lock, &until) == 0;
}

/* The deadline of a wait that starts now. */
static uint64_t deadline_ns(const struct gp_sampler *s)
{
    uint64_t patience_ns = s->config.timeout_ns;
    if ((s->tick > 1 || s->looked) && s->config.later_timeout_ns > 0)
        patience_ns = s->config.later_timeout_ns;
    if (s->is_quick && patience_ns > QUICK_LOOKS * s->config.first_look_ns)
        patience_ns = QUICK_LOOKS * s->config.first_look_ns;
    return gp_clock_mono_ns() + patience_ns;
}

/* Waits for the requested change of the session. Opening is complete when the early reads have
 * started; after that, the state belongs to the next change. */
static bool await_session(struct gp_sampler *s)
{
    uint64_t end_ns = deadline_ns(s);
    while (s->session_state != TASK_IDLE && !s->ahead && gp_clock_mono_ns() < end_ns)
        (void)wait_until(s, end_ns);
    return s->session_state == TASK_IDLE || s->ahead;
}

/* How long the remaining reads will take at the pace of those that are done; UINT64_MAX if none
 * is. */
static uint64_t remaining_ns(const struct gp_sampler *s, unsigned asked, uint64_t elapsed_ns)
{
    unsigned done = asked - s->awaited;
    return done > 0 ? elapsed_ns / done * s->awaited : UINT64_MAX;
}

static bool took_soon(uint64_t begin_ns)
{
    return gp_clock_mono_ns() - begin_ns <= SOON_US * 1000;
}

/* Waits until the reads are done or the deadline has passed; requires the lock. A tick starts with
 * one thread: if the driver is quick, that thread reads all GPUs in less time than others need to
 * start. While it is not, the number of threads doubles, up to one per GPU. */
static void await_reads(struct gp_sampler *s, uint64_t end_ns)
{
    const uint64_t begin_ns = gp_clock_mono_ns();
    const unsigned asked = s->awaited;
    uint64_t patience_ns = PATIENCE_US * 1000;
    unsigned employed = 1;
    while (s->awaited > 0) {
        uint64_t now_ns = gp_clock_mono_ns();
        if (now_ns >= end_ns)
            break;
        uint64_t until_ns = end_ns;
        if (s->queued > 0 && now_ns + patience_ns < end_ns)
            until_ns = now_ns + patience_ns;
        if (wait_until(s, until_ns) || s->queued == 0)
            continue;
        uint64_t rest_ns = remaining_ns(s, asked, gp_clock_mono_ns() - begin_ns);
        bool soon = rest_ns <= SOON_US * 1000;
        patience_ns = soon && rest_ns > PATIENCE_US * 1000 ? rest_ns : PATIENCE_US * 1000;
        if (soon)
            continue;
        unsigned more = employed < s->queued ? employed : s->queued;
        (void)employ(s, more);
        employed += more;
    }
    if (asked > 0)
        s->is_soon = s->awaited == 0 && employed == 1 && took_soon(begin_ns);
}

static bool reads_here(const struct gp_sampler *s)
{
    return s->config.is_relieved && s->is_soon;
}

/* Reads the queued GPUs on the consumer's thread. Returns false if it was relieved meanwhile.
 * Requires the lock. */
static bool read_here(struct gp_sampler *s)
{
    const unsigned consumer = s->consumer;
    const uint64_t begin_ns = gp_clock_mono_ns();
    struct task *task;
    while (s->consumer == consumer && (task = next_task(s))) {
        s->here_since_ns = gp_clock_mono_ns();
        run_task(s, task);
    }
    if (s->consumer != consumer)
        return false;
    s->here_since_ns = 0;
    s->is_soon = took_soon(begin_ns);
    return true;
}

void gp_sampler_relieve(struct gp_sampler *s, uint64_t patience_ns, int (*start)(void *ctx),
                        void *ctx)
{
    (void)pthread_mutex_lock(&s->lock);
    bool is_stuck = s->here_since_ns && gp_clock_mono_ns() - s->here_since_ns > patience_ns;
    if (is_stuck && start(ctx) == 0) {
        s->consumer++;
        s->here_since_ns = 0;
        s->is_soon = false;
        s->ahead = true;
        (void)employ(s, s->queued > 0);
    }
    (void)pthread_mutex_unlock(&s->lock);
}

/* Stops waiting for those that have not responded. */
static void give_up_reads(struct gp_sampler *s)
{
    for (unsigned i = 0; s->awaited > 0 && i < s->task_count; i++)
        s->tasks[i]->awaited = false;
    s->awaited = 0;
}

/* Makes a pool thread change the session, and waits for it. Requires the lock, and that nothing
 * else is in progress. A change that takes longer continues in the background. None is started
 * while a wait for events hangs. */
static int request_session(struct gp_sampler *s)
{
    const char *why = is_released(s)
                          ? "gpulse had closed the driver"
                          : "the driver session was reopened to recover a GPU or the driver";
    if (s->waiter) {
        /* A wait for events takes its time even if the deadline is short. */
        uint64_t rest_ns = gp_clock_mono_ns() + gp_waiter_rest_ns(s->waiter);
        uint64_t end_ns = deadline_ns(s);
        if (!gp_waiter_rest(s->waiter, rest_ns > end_ns ? rest_ns : end_ns, why))
            return GP_ETIMEOUT;
    }
    s->session_state = TASK_QUEUED;
    s->is_soon = false; /* in a new session, the first call for each GPU may take seconds */
    if (employ(s, 1) < 0) {
        s->session_state = TASK_IDLE;
        return GP_ENOMEM;
    }
    return await_session(s) ? 0 : GP_ETIMEOUT;
}

/* A lost GPU or a reloaded driver only recovers through a new session. This is retried with growing
 * delays, and never while a call hangs. */
static void reopen_if_needed(struct gp_sampler *s)
{
    bool needed = s->open_result < 0 || (s->waiter && gp_waiter_has_ended(s->waiter));
    for (unsigned i = 0; i < s->task_count; i++) {
        const struct gp_slot *slot = &s->tasks[i]->slot;
        /* A result of an earlier session is obsolete if the session was reopened since. */
        needed = needed || (slot->chosen && slot->latest && slot->latest->needs_reinit &&
                            slot->latest->time_ns > s->session_ns);
    }
    uint64_t now = gp_clock_mono_ns();
    if (!needed) {
        s->reinit_delay_ns = REINIT_FIRST_S * GP_NS_PER_S;
        s->reinit_at_ns = now + s->reinit_delay_ns;
        return;
    }
    if (now < s->reinit_at_ns || is_busy(s))
        return;
    (void)request_session(s); /* open_result and open_err have the result */
    s->reinit_at_ns = gp_clock_mono_ns() + s->reinit_delay_ns;
    if (s->reinit_delay_ns < REINIT_LAST_S * GP_NS_PER_S)
        s->reinit_delay_ns *= 2;
}

/* Opens or closes the session if its state is not the desired one. */
static void update_session(struct gp_sampler *s)
{
    if (!await_session(s)) /* requested by an earlier tick */
        return;
    if (s->config.release_when_idle)
        (void)gp_release_update(&s->release, s->config.source->ops->power(s->config.source),
                                s->busy, gp_clock_mono_ns());
    if (is_released(s) == s->held && !is_busy(s) && gp_assembler_needs_source(&s->assembler))
        (void)request_session(s);
    else if (!is_released(s))
        reopen_if_needed(s);
}

static void begin_tick(struct gp_sampler *s)
{
    s->tick++;
    update_session(s);
    if (is_released(s) || s->open_result < 0 || s->session_state != TASK_IDLE || s->want.host_only)
        return;
    (void)add_tasks(s, s->gpu_count); /* more GPUs than in the last session */
    queue_reads(s);
    (void)employ(s, !reads_here(s) && s->queued > 0);
}

/* Passes the state of a GPU to the assembler: its reading of this tick, or why there is none. */
static void take(struct gp_sampler *s, const struct task *t)
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
    } else if (is_released(s)) {
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
static void settle_choice(struct gp_sampler *s, struct task *t)
{
    struct gp_slot *slot = &t->slot;
    bool complete = t->state == TASK_IDLE && slot->good && slot->good == slot->latest;
    if (slot->chosen && complete && !gp_selection_is_by_index(s->config.selection))
        slot->chosen = gp_assembler_chooses(&s->assembler, slot);
}

int gp_sampler_tick(struct gp_sampler *s, struct gp_snapshot **ret, struct gp_err *err)
{
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
    if (reads_here(s) && !read_here(s)) {
        (void)pthread_mutex_unlock(&s->lock);
        return gp_err_set(err, GP_EINTR, "another thread continues this sample");
    }
    await_reads(s, looks ? begin_ns + s->config.first_look_ns : deadline_ns(s));
    s->looked = looks && s->awaited > 0;
    s->is_quick =
        asks && s->awaited == 0 && gp_clock_mono_ns() - begin_ns < s->config.first_look_ns;
    if (!s->looked)
        give_up_reads(s);
    if (r == 0)
        r = gp_assembler_start(&s->assembler, s->task_count, s->gpu_count, err);
    for (unsigned i = 0; r == 0 && i < s->task_count; i++) {
        struct task *t = s->tasks[i];
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
    (void)pthread_mutex_lock(&s->lock);
    s->let_go = release;
    update_session(s);
    (void)pthread_mutex_unlock(&s->lock);
}

/* The threads have exited. */
static void free_sampler(struct gp_sampler *s)
{
    for (unsigned i = 0; i < s->task_count; i++) {
        struct task *t = s->tasks[i];
        gp_reading_unref(t->slot.latest);
        gp_reading_unref(t->slot.good);
        gp_reading_unref(t->spare);
        free(t);
    }
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
        await_reads(s, deadline_ns(s)); /* not collected by a tick */
    give_up_reads(s);
    s->ahead = false;
    if (s->closing)
        return await_session(s);
    if (is_busy(s))
        return false;
    s->closing = true;
    return s->thread_count == 0 || request_session(s) == 0;
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
    int r = request_session(s);
    if (r == 0 && s->open_result < 0)
        r = gp_err_copy(err, &s->open_err);
    (void)pthread_mutex_unlock(&s->lock);
    if (r == GP_ETIMEOUT || (r == GP_ENOMEM && s->thread_count == 0))
        return gp_thread_no_start(r, s->config.timeout_ns, err);
    if (r == 0 && s->gpu_count == 0 && !s->want.host_only)
        r = gp_thread_no_start(GP_ENODEV, s->config.timeout_ns, err);
    if (r == 0 && add_tasks(s, s->gpu_count) < 0)
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
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    }
    s->config = *config;
    s->reinit_delay_ns = REINIT_FIRST_S * GP_NS_PER_S;
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
        split_identity(s);
        unsigned wait_ms = config->event_wait_ms ? config->event_wait_ms : EVENT_WAIT_MS;
        if (s->want.events && !(s->waiter = gp_waiter_new(config->source, wait_ms)))
            r = gp_err_set(err, GP_ENOMEM, "cannot set up waiting for events");
    }
    if (r == 0)
        r = open_first(s, err);
    if (r < 0) {
        (void)gp_sampler_free(s);
        return r;
    }
    s->reinit_at_ns = gp_clock_mono_ns() + s->reinit_delay_ns;
    *ret = s;
    return 0;
}

/* ---- events ---- */

struct gp_waiter *gp_sampler_waiter(struct gp_sampler *s)
{
    return s->waiter;
}
