/* The threads that make the driver's calls: they take tasks, the consumer waits for them until a
 * deadline, and their number grows while the driver is slow. */
#include "base/clock.h"
#include "model/select.h"
#include "sample/sampler_internal.h"
#include "sample/thread.h"

#include <stdlib.h>

enum {
    PATIENCE_US = 1000, /* the pool grows if reads take longer than this, */
    SOON_US = 10000,    /* unless at their pace all will be done within this */
    QUICK_LOOKS = 5,    /* after a quick tick, the next one lasts at most this many first looks */
};

/* Takes the next queued task and marks it as running; NULL if there is none, or while the source is
 * being opened. Requires the lock. */
static struct gp_sampler_task *next_task(struct gp_sampler *s)
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

int gp_pool_add_tasks(struct gp_sampler *s, unsigned count)
{
    if (count <= s->task_count)
        return 0;
    struct gp_sampler_task **grown = realloc(s->tasks, count * sizeof(struct gp_sampler_task *));
    if (!grown)
        return GP_ENOMEM;
    s->tasks = grown;
    while (s->task_count < count) {
        struct gp_sampler_task *t = calloc(1, sizeof(*t));
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

void gp_pool_queue_reads(struct gp_sampler *s)
{
    uint64_t now = gp_clock_mono_ns();
    for (unsigned i = 0; i < s->task_count; i++) {
        struct gp_sampler_task *t = s->tasks[i];
        /* one tick waits for a GPU that hangs: if it hangs in a glance, the tick that made it due
         */
        if (!t->slot.chosen || (t->state == TASK_RUNNING && (!t->is_glance || t->is_due)))
            continue;
        if (t->state == TASK_IDLE) {
            s->queued++;
            t->since_ns = now;
        }
        if (t->state == TASK_RUNNING)
            t->is_due = true;
        else
            t->state = TASK_QUEUED;
        t->awaited = true;
        s->awaited++;
    }
}

void gp_pool_queue_glance(struct gp_sampler *s, struct gp_sampler_task *t)
{
    t->state = TASK_QUEUED;
    t->is_glance = t->awaited = true;
    t->since_ns = gp_clock_mono_ns();
    s->queued++;
    s->awaited++;
}

void gp_pool_drop_glances(struct gp_sampler *s)
{
    for (unsigned i = 0; i < s->task_count; i++) {
        struct gp_sampler_task *t = s->tasks[i];
        if (t->state != TASK_QUEUED || !t->is_glance)
            continue;
        t->state = TASK_IDLE;
        t->is_glance = false;
        s->queued--;
    }
}

/* Starts the only tick early; requires the lock. */
static void read_ahead(struct gp_sampler *s)
{
    struct gp_selection *selection = s->config.selection;
    struct gp_err err;
    if (s->open_result < 0 || s->want.host_only || gp_pool_add_tasks(s, s->gpu_count) < 0 ||
        (gp_selection_is_by_index(selection) &&
         gp_selection_check(selection, s->gpu_count, &err) < 0))
        return;
    s->tick++;
    gp_pool_queue_reads(s);
    s->ahead = true;
}

static void run_session(struct gp_sampler *s)
{
    bool open = !s->closing && !gp_session_is_released(s);
    s->session_state = TASK_RUNNING;
    (void)pthread_mutex_unlock(&s->lock);
    gp_calls_reopen(s, open);
    (void)pthread_mutex_lock(&s->lock);
    s->session_state = TASK_IDLE;
    s->held = open;
    if (open && s->config.once)
        read_ahead(s);
    s->quit = s->closing; /* the last work: no need to wake the thread again to stop it */
    (void)pthread_cond_signal(&s->done);
}

bool gp_pool_is_busy(const struct gp_sampler *s)
{
    for (unsigned i = 0; i < s->task_count; i++)
        if (s->tasks[i]->state == TASK_RUNNING)
            return true;
    return s->session_state == TASK_RUNNING;
}

static void run_task(struct gp_sampler *s, struct gp_sampler_task *t)
{
    if (!t->spare) {
        t->spare = s->handed_on;
        s->handed_on = NULL;
    }
    (void)pthread_mutex_unlock(&s->lock);
    struct gp_reading *reading = gp_calls_read(t);
    (void)pthread_mutex_lock(&s->lock);
    if (t->is_glance) {
        gp_calls_publish_glance(t, reading);
        t->is_glance = false;
    } else {
        gp_calls_publish(t, reading);
        t->no_memory = !reading;
        t->answer_tick = t->begun_tick;
    }
    if (!s->handed_on) {
        s->handed_on = t->spare;
        t->spare = NULL;
    }
    t->state = TASK_IDLE;
    if (t->is_due) {
        t->is_due = false;
        t->state = TASK_QUEUED;
        s->queued++;
        return;
    }
    if (t->awaited && --s->awaited == 0)
        (void)pthread_cond_signal(&s->done);
    t->awaited = false;
    if (s->config.once && s->queued == 0 && !gp_pool_is_busy(s)) {
        s->closing = true;
        s->session_state = TASK_QUEUED;
    }
}

static void *thread_main(void *arg)
{
    struct gp_sampler *s = arg;
    (void)pthread_mutex_lock(&s->lock);
    while (!s->quit) {
        struct gp_sampler_task *task = NULL;
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

int gp_pool_employ(struct gp_sampler *s, unsigned count)
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

uint64_t gp_pool_deadline_ns(const struct gp_sampler *s)
{
    uint64_t patience_ns = s->config.timeout_ns;
    if ((s->tick > 1 || s->looked) && s->config.later_timeout_ns > 0)
        patience_ns = s->config.later_timeout_ns;
    if (s->is_quick && patience_ns > QUICK_LOOKS * s->config.first_look_ns)
        patience_ns = QUICK_LOOKS * s->config.first_look_ns;
    return gp_clock_mono_ns() + patience_ns;
}

/* Opening is complete when the early reads have
 * started; after that, the state belongs to the next change. */
bool gp_pool_await_session(struct gp_sampler *s)
{
    uint64_t end_ns = gp_pool_deadline_ns(s);
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

/* A tick starts with
 * one thread: if the driver is quick, that thread reads all GPUs in less time than others need to
 * start. While it is not, the number of threads doubles, up to one per GPU. */
void gp_pool_await_reads(struct gp_sampler *s, uint64_t end_ns)
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
        (void)gp_pool_employ(s, more);
        employed += more;
    }
    if (asked > 0)
        s->is_soon = s->awaited == 0 && employed == 1 && took_soon(begin_ns);
}

bool gp_pool_reads_here(const struct gp_sampler *s)
{
    return s->config.is_relieved && s->is_soon;
}

bool gp_pool_read_here(struct gp_sampler *s)
{
    const unsigned consumer = s->consumer;
    const uint64_t begin_ns = gp_clock_mono_ns();
    struct gp_sampler_task *task;
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
        (void)gp_pool_employ(s, s->queued > 0);
    }
    (void)pthread_mutex_unlock(&s->lock);
}

void gp_pool_give_up_reads(struct gp_sampler *s)
{
    for (unsigned i = 0; s->awaited > 0 && i < s->task_count; i++)
        s->tasks[i]->awaited = false;
    s->awaited = 0;
}
