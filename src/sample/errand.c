#include "sample/errand.h"

#include "base/clock.h"
#include "sample/thread.h"

#include <stdlib.h>
#include <string.h>

/* When enough are done, the others usually follow soon. A thread that is left running would keep
 * the driver's session open. */
enum { LINGER_MS = 100 };

struct errand {
    struct batch *all;
    size_t i;
    pthread_t thread;
    bool started;
    bool done; /* protected by the lock */
};

struct batch {
    pthread_mutex_t lock;
    pthread_cond_t finished; /* one more is done */
    size_t left;             /* unfinished; this and the next are protected by the lock */
    bool abandoned;          /* the caller no longer waits: the last thread frees this */
    atomic_uint *given_up;
    void (*work)(void *ctx, size_t i);
    void *ctx;
    struct errand each[];
};

static void batch_free(struct batch *all)
{
    (void)pthread_cond_destroy(&all->finished);
    (void)pthread_mutex_destroy(&all->lock);
    free(all);
}

static void *errand_main(void *arg)
{
    struct errand *errand = arg;
    struct batch *all = errand->all;
    all->work(all->ctx, errand->i);
    (void)pthread_mutex_lock(&all->lock);
    errand->done = true;
    bool last = --all->left == 0;
    bool abandoned = all->abandoned;
    (void)pthread_cond_signal(&all->finished);
    (void)pthread_mutex_unlock(&all->lock);
    if (last && abandoned) {
        if (all->given_up)
            (void)atomic_fetch_sub(all->given_up, 1);
        batch_free(all);
    }
    return NULL;
}

static struct batch *batch_new(const struct gp_errands *errands)
{
    struct batch *all = calloc(1, sizeof(*all) + errands->count * sizeof(all->each[0]));
    if (!all)
        return NULL;
    (void)pthread_mutex_init(&all->lock, NULL);
    gp_thread_cond_init(&all->finished);
    all->work = errands->work;
    all->ctx = errands->ctx;
    all->left = errands->count;
    all->given_up = errands->given_up;
    for (size_t i = 0; i < errands->count; i++)
        all->each[i] = (struct errand){.all = all, .i = i};
    return all;
}

static void note_done(const struct batch *all, size_t count, bool *done)
{
    for (size_t i = 0; i < count; i++)
        done[i] = all->each[i].done;
}

/* Waits for one more to finish; requires the lock. Returns false after the deadline. */
static bool wait_until(struct batch *all, uint64_t mono_ns)
{
    struct timespec until = gp_clock_timespec(mono_ns);
    (void)pthread_cond_timedwait(&all->finished, &all->lock, &until);
    return gp_clock_mono_ns() < mono_ns;
}

/* Waits until all or enough are done, or until the deadline; requires the lock. */
static void wait_for(struct batch *all, const struct gp_errands *errands, uint64_t begun_ns,
                     bool *done)
{
    uint64_t end_ns = begun_ns + errands->timeout_ns;
    uint64_t tell_ns = errands->on_wait ? begun_ns + errands->patience_ns : UINT64_MAX;
    bool enough = false;
    bool over = false;
    note_done(all, errands->count, done);
    while (all->left > 0 && !over) {
        if (!enough && errands->is_enough && errands->is_enough(errands->ctx, done)) {
            uint64_t linger_ns = gp_clock_mono_ns() + LINGER_MS * GP_NS_PER_MS;
            enough = true;
            tell_ns = UINT64_MAX;
            end_ns = linger_ns < end_ns ? linger_ns : end_ns;
        }
        bool tells = tell_ns < end_ns;
        bool late = !wait_until(all, tells ? tell_ns : end_ns);
        note_done(all, errands->count, done);
        over = late && !tells;
        if (late && tells && all->left > 0) {
            tell_ns = UINT64_MAX;
            (void)pthread_mutex_unlock(&all->lock);
            errands->on_wait(errands->ctx, done);
            (void)pthread_mutex_lock(&all->lock);
            note_done(all, errands->count, done);
        }
    }
}

bool gp_errands_run(const struct gp_errands *errands, bool *done)
{
    uint64_t begun_ns = gp_clock_mono_ns();
    size_t count = errands->count;
    memset(done, 0, count * sizeof(*done));
    struct batch *all = batch_new(errands);
    if (!all)
        return true;
    for (size_t i = 0; i < count; i++) {
        struct errand *errand = &all->each[i];
        errand->started = gp_thread_start(&errand->thread, errand_main, errand) == 0;
    }
    (void)pthread_mutex_lock(&all->lock);
    for (size_t i = 0; i < count; i++)
        all->left -= !all->each[i].started;
    wait_for(all, errands, begun_ns, done);
    bool stuck = all->left > 0;
    all->abandoned = stuck;
    if (stuck && all->given_up)
        (void)atomic_fetch_add(all->given_up, 1);
    for (size_t i = 0; stuck && i < count; i++)
        if (all->each[i].started)
            (void)pthread_detach(all->each[i].thread);
    (void)pthread_mutex_unlock(&all->lock);
    if (stuck)
        return false;
    for (size_t i = 0; i < count; i++)
        if (done[i])
            (void)pthread_join(all->each[i].thread, NULL);
    batch_free(all);
    return true;
}
