#include "sample/errand.h"

#include "base/clock.h"
#include "sample/thread.h"

#include <stdlib.h>
#include <string.h>

struct errand {
    struct errands *all;
    size_t i;
    pthread_t thread;
    bool started;
    bool done; /* guarded by the lock */
};

struct errands {
    pthread_mutex_t lock;
    pthread_cond_t finished;
    size_t left;    /* under way; guarded by the lock, as the next */
    bool abandoned; /* nobody waits any more: the last one to end frees this */
    void (*work)(void *ctx, size_t i);
    void *ctx;
    struct errand each[];
};

static void errands_free(struct errands *all)
{
    (void)pthread_cond_destroy(&all->finished);
    (void)pthread_mutex_destroy(&all->lock);
    free(all);
}

static void *errand_main(void *arg)
{
    struct errand *errand = arg;
    struct errands *all = errand->all;
    all->work(all->ctx, errand->i);
    (void)pthread_mutex_lock(&all->lock);
    errand->done = true;
    bool last = --all->left == 0;
    bool abandoned = all->abandoned;
    if (last)
        (void)pthread_cond_signal(&all->finished);
    (void)pthread_mutex_unlock(&all->lock);
    if (last && abandoned)
        errands_free(all);
    return NULL;
}

static struct errands *errands_new(void (*work)(void *ctx, size_t i), void *ctx, size_t count)
{
    struct errands *all = calloc(1, sizeof(*all) + count * sizeof(all->each[0]));
    if (!all)
        return NULL;
    (void)pthread_mutex_init(&all->lock, NULL);
    gp_thread_cond_init(&all->finished);
    all->work = work;
    all->ctx = ctx;
    all->left = count;
    for (size_t i = 0; i < count; i++)
        all->each[i] = (struct errand){.all = all, .i = i};
    return all;
}

bool gp_errands_run(void (*work)(void *ctx, size_t i), void *ctx, size_t count, uint64_t timeout_ns,
                    bool *done)
{
    struct timespec until = gp_clock_timespec(gp_clock_mono_ns() + timeout_ns);
    memset(done, 0, count * sizeof(*done));
    struct errands *all = errands_new(work, ctx, count);
    if (!all)
        return true;
    for (size_t i = 0; i < count; i++) {
        struct errand *errand = &all->each[i];
        errand->started = gp_thread_start(&errand->thread, errand_main, errand) == 0;
    }
    (void)pthread_mutex_lock(&all->lock);
    for (size_t i = 0; i < count; i++)
        all->left -= !all->each[i].started;
    while (all->left > 0 && pthread_cond_timedwait(&all->finished, &all->lock, &until) == 0)
        ;
    bool stuck = all->left > 0;
    all->abandoned = stuck;
    for (size_t i = 0; i < count; i++) {
        done[i] = all->each[i].done;
        if (stuck && all->each[i].started)
            (void)pthread_detach(all->each[i].thread);
    }
    (void)pthread_mutex_unlock(&all->lock);
    if (stuck)
        return false;
    for (size_t i = 0; i < count; i++)
        if (done[i])
            (void)pthread_join(all->each[i].thread, NULL);
    errands_free(all);
    return true;
}
