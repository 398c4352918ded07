#include "sample/errand.h"

#include "base/clock.h"
#include "sample/thread.h"

#include <stdlib.h>
#include <string.h>

struct errand {
    struct batch *all;
    size_t i;
    pthread_t thread;
    bool started;
    bool done; /* guarded by the lock */
};

struct batch {
    pthread_mutex_t lock;
    pthread_cond_t finished;
    size_t left;    /* under way; guarded by the lock, as the next */
    bool abandoned; /* nobody waits any more: the last one to end frees this */
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
    if (last)
        (void)pthread_cond_signal(&all->finished);
    (void)pthread_mutex_unlock(&all->lock);
    if (last && abandoned)
        batch_free(all);
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
    for (size_t i = 0; i < errands->count; i++)
        all->each[i] = (struct errand){.all = all, .i = i};
    return all;
}

/* Waits until all are done, or until this moment; the lock is held. */
static void wait_until(struct batch *all, uint64_t mono_ns)
{
    struct timespec until = gp_clock_timespec(mono_ns);
    while (all->left > 0 && pthread_cond_timedwait(&all->finished, &all->lock, &until) == 0)
        ;
}

static void note_done(const struct batch *all, size_t count, bool *done)
{
    for (size_t i = 0; i < count; i++)
        done[i] = all->each[i].done;
}

/* Waits as long as the caller has patience; the lock is held. */
static void wait_for(struct batch *all, const struct gp_errands *errands, uint64_t begun_ns,
                     bool *done)
{
    bool on = true;
    if (errands->waits_on && errands->patience_ns < errands->timeout_ns) {
        wait_until(all, begun_ns + errands->patience_ns);
        if (all->left > 0) {
            note_done(all, errands->count, done);
            (void)pthread_mutex_unlock(&all->lock);
            on = errands->waits_on(errands->ctx, done);
            (void)pthread_mutex_lock(&all->lock);
        }
    }
    if (on)
        wait_until(all, begun_ns + errands->timeout_ns);
    note_done(all, errands->count, done);
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
