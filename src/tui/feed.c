#include "tui/feed.h"

#include "base/clock.h"
#include "base/err.h"
#include "model/snapshot.h"
#include "sample/sampler.h"
#include "sample/thread.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct gp_feed {
    struct gp_feed_config config;
    pthread_t thread;
    int fd;
    pthread_mutex_t lock;
    pthread_cond_t wake; /* the interval has changed, or it ends */
    pthread_cond_t done;
    uint64_t interval_ns;
    bool quit, ended, let_go;
    uint32_t *watched; /* to be taken over by the thread; NULL: all */
    size_t watched_count;
    bool rewatch;
    struct gp_snapshot *snapshot; /* not taken yet */
    int result;
    struct gp_err err;
};

static void tell(struct gp_feed *feed)
{
    (void)eventfd_write(feed->fd, 1);
}

static void publish(struct gp_feed *feed, struct gp_snapshot *snapshot)
{
    (void)pthread_mutex_lock(&feed->lock);
    gp_snapshot_free(feed->snapshot);
    feed->snapshot = snapshot;
    (void)pthread_mutex_unlock(&feed->lock);
    tell(feed);
}

/* Sleeps until the next sample is due; false if it ends. */
static bool rest(struct gp_feed *feed, uint64_t *due_ns)
{
    (void)pthread_mutex_lock(&feed->lock);
    uint64_t last_ns = *due_ns;
    uint64_t now_ns = gp_clock_mono_ns();
    for (;;) {
        *due_ns = last_ns + feed->interval_ns;
        if (feed->quit || *due_ns <= now_ns)
            break;
        struct timespec until = gp_clock_timespec(*due_ns);
        (void)pthread_cond_timedwait(&feed->wake, &feed->lock, &until);
        now_ns = gp_clock_mono_ns();
    }
    if (now_ns > *due_ns + feed->interval_ns)
        *due_ns = now_ns; /* missed ones are left out */
    bool goes_on = !feed->quit;
    (void)pthread_mutex_unlock(&feed->lock);
    return goes_on;
}

/* Hands the list of processes to the sampler; returns the one that is in use. */
static uint32_t *take_watched(struct gp_feed *feed, struct gp_sampler *sampler, uint32_t *in_use)
{
    (void)pthread_mutex_lock(&feed->lock);
    bool rewatch = feed->rewatch;
    uint32_t *watched = feed->watched;
    size_t count = feed->watched_count;
    if (rewatch)
        feed->watched = NULL;
    feed->rewatch = false;
    (void)pthread_mutex_unlock(&feed->lock);
    if (!rewatch)
        return in_use;
    gp_sampler_watch(sampler, watched, count);
    free(in_use);
    return watched;
}

static void *thread_main(void *arg)
{
    struct gp_feed *feed = arg;
    uint32_t *watched = NULL;
    struct gp_sampler *sampler = NULL;
    struct gp_err err = {0};
    int r = feed->config.open(feed->config.ctx, &sampler, &err);
    uint64_t due_ns = gp_clock_mono_ns();
    if (r == 0)
        gp_sampler_watch(sampler, NULL, 0);
    while (r == 0) {
        struct gp_snapshot *snapshot;
        watched = take_watched(feed, sampler, watched);
        r = gp_sampler_tick(sampler, &snapshot, &err);
        if (r == 0)
            publish(feed, snapshot);
        if (r < 0 || (!gp_sampler_goes_on(sampler) && !rest(feed, &due_ns)))
            break;
    }
    bool let_go = gp_sampler_free(sampler) && r != GP_ETIMEOUT;
    free(watched);
    (void)pthread_mutex_lock(&feed->lock);
    feed->result = r;
    feed->err = err;
    feed->let_go = let_go;
    feed->ended = true;
    (void)pthread_cond_signal(&feed->done);
    (void)pthread_mutex_unlock(&feed->lock);
    tell(feed);
    return NULL;
}

static void free_feed(struct gp_feed *feed)
{
    gp_snapshot_free(feed->snapshot);
    free(feed->watched);
    if (feed->fd >= 0)
        (void)close(feed->fd);
    (void)pthread_cond_destroy(&feed->wake);
    (void)pthread_cond_destroy(&feed->done);
    (void)pthread_mutex_destroy(&feed->lock);
    free(feed);
}

int gp_feed_start(const struct gp_feed_config *config, struct gp_feed **ret, struct gp_err *err)
{
    struct gp_feed *feed = calloc(1, sizeof(*feed));
    if (!feed)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    feed->config = *config;
    feed->interval_ns = config->interval_ns;
    feed->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    (void)pthread_mutex_init(&feed->lock, NULL);
    gp_thread_cond_init(&feed->wake);
    gp_thread_cond_init(&feed->done);
    if (feed->fd < 0 || gp_thread_start(&feed->thread, thread_main, feed) < 0) {
        free_feed(feed);
        return gp_err_set(err, GP_ENOMEM, "cannot start a thread for the driver");
    }
    *ret = feed;
    return 0;
}

int gp_feed_fd(const struct gp_feed *feed)
{
    return feed->fd;
}

int gp_feed_take(struct gp_feed *feed, struct gp_snapshot **ret, struct gp_err *err)
{
    eventfd_t count;
    (void)eventfd_read(feed->fd, &count);
    (void)pthread_mutex_lock(&feed->lock);
    *ret = feed->snapshot;
    feed->snapshot = NULL;
    int r = feed->ended && !*ret ? gp_err_copy(err, &feed->err) : 0;
    (void)pthread_mutex_unlock(&feed->lock);
    return r;
}

void gp_feed_set_interval(struct gp_feed *feed, uint64_t interval_ns)
{
    (void)pthread_mutex_lock(&feed->lock);
    feed->interval_ns = interval_ns;
    (void)pthread_cond_signal(&feed->wake);
    (void)pthread_mutex_unlock(&feed->lock);
}

void gp_feed_watch(struct gp_feed *feed, const uint32_t *pids, size_t count)
{
    uint32_t *copy = pids ? malloc((count + 1) * sizeof(*copy)) : NULL;
    if (pids && !copy)
        return;
    if (pids)
        memcpy(copy, pids, count * sizeof(*copy));
    (void)pthread_mutex_lock(&feed->lock);
    free(feed->watched);
    feed->watched = copy;
    feed->watched_count = count;
    feed->rewatch = true;
    (void)pthread_mutex_unlock(&feed->lock);
}

bool gp_feed_stop(struct gp_feed *feed, uint64_t patience_ns)
{
    struct timespec until = gp_clock_timespec(gp_clock_mono_ns() + patience_ns);
    (void)pthread_mutex_lock(&feed->lock);
    feed->quit = true;
    (void)pthread_cond_signal(&feed->wake);
    while (!feed->ended && pthread_cond_timedwait(&feed->done, &feed->lock, &until) == 0)
        continue;
    bool ended = feed->ended && feed->let_go;
    (void)pthread_mutex_unlock(&feed->lock);
    if (!ended)
        return false;
    (void)pthread_join(feed->thread, NULL);
    free_feed(feed);
    return true;
}
