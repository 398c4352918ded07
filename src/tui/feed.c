#include "tui/feed.h"

#include "base/clock.h"
#include "base/err.h"
#include "model/snapshot.h"
#include "sample/sampler.h"
#include "sample/thread.h"
#include "sample/waiter.h"
#include "tui/alerts.h"

#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum {
    REPORTS = 16,
    LATE_MS = 100, /* a sample that takes this long is looked after */
};

struct gp_feed {
    struct gp_feed_config config;
    pthread_t thread;
    int fd;
    int late_fd; /* a timer */
    pthread_mutex_t lock;
    sem_t wake; /* posted when the interval changes or on stop. Unlike a condition, it does not
                   leave the lock contended, which costs a system call in every sample */
    pthread_cond_t done;
    uint64_t interval_ns;
    uint64_t due_ns; /* when the sample that is taken or waited for was or is to begin */
    bool quit, ended, let_go;
    bool hurries;               /* the next sample is to begin now */
    struct gp_sampler *sampler; /* NULL before it is open, and after it has ended */
    uint32_t *in_use;           /* by the sampler: an earlier value of pids */
    struct gp_feed_view view;   /* set by the caller for the thread, together with its pids: */
    uint32_t *pids;
    bool review;
    struct gp_snapshot *snapshot; /* waiting for gp_feed_take() */
    uint64_t took_ns;
    struct gp_xid xids[GP_XIDS_MAX]; /* waiting for the caller; excess errors are dropped */
    size_t xid_count;
    int result;
    struct gp_err err;
};

void gp_feed_wake(struct gp_feed *feed)
{
    (void)eventfd_write(feed->fd, 1);
}

/* Sets when the next sample is late, and how often to report that. */
static void set_late(struct gp_feed *feed)
{
    const uint64_t late_ns = LATE_MS * GP_NS_PER_MS;
    const struct itimerspec timer = {.it_value = gp_clock_timespec(feed->due_ns + late_ns),
                                     .it_interval = gp_clock_timespec(late_ns)};
    (void)timerfd_settime(feed->late_fd, TFD_TIMER_ABSTIME, &timer, NULL);
}

static void publish(struct gp_feed *feed, struct gp_snapshot *snapshot, uint64_t took_ns)
{
    if (feed->config.take) {
        feed->config.take(feed->config.take_ctx, snapshot, took_ns);
        return;
    }
    (void)pthread_mutex_lock(&feed->lock);
    gp_snapshot_free(feed->snapshot);
    feed->snapshot = snapshot;
    feed->took_ns = took_ns;
    (void)pthread_mutex_unlock(&feed->lock);
    gp_feed_wake(feed);
}

/* Sleeps until the next sample is due. Returns false on stop. */
static bool rest(struct gp_feed *feed)
{
    (void)pthread_mutex_lock(&feed->lock);
    uint64_t last_ns = feed->due_ns;
    uint64_t now_ns = gp_clock_mono_ns();
    for (;;) {
        const uint64_t due_ns = last_ns + feed->interval_ns;
        if (due_ns != feed->due_ns) {
            feed->due_ns = due_ns;
            set_late(feed);
        }
        if (feed->hurries)
            feed->due_ns = now_ns;
        if (feed->quit || feed->due_ns <= now_ns)
            break;
        struct timespec until = gp_clock_timespec(feed->due_ns);
        (void)pthread_mutex_unlock(&feed->lock);
        (void)sem_clockwait(&feed->wake, CLOCK_MONOTONIC, &until);
        (void)pthread_mutex_lock(&feed->lock);
        now_ns = gp_clock_mono_ns();
    }
    if (now_ns > feed->due_ns + feed->interval_ns)
        feed->due_ns = now_ns; /* missed samples are skipped */
    feed->hurries = false;
    bool goes_on = !feed->quit;
    (void)pthread_mutex_unlock(&feed->lock);
    return goes_on;
}

/* Tells the sampler what is on the screen. */
static void take_view(struct gp_feed *feed)
{
    (void)pthread_mutex_lock(&feed->lock);
    bool review = feed->review;
    struct gp_feed_view view = feed->view;
    uint32_t *pids = feed->pids;
    if (review)
        feed->pids = NULL;
    feed->review = false;
    (void)pthread_mutex_unlock(&feed->lock);
    if (!review)
        return;
    gp_sampler_watch(feed->sampler, view.pids, view.pid_count, view.others_matter);
    gp_sampler_set_ancestors(feed->sampler, view.ancestors);
    gp_sampler_set_more(feed->sampler, view.more);
    free(feed->in_use);
    feed->in_use = pids;
}

/* Takes the events of the driver. Only Xid errors are shown. */
static void take_reports(struct gp_feed *feed, struct gp_waiter *waiter)
{
    struct gp_source_event reports[REPORTS];
    struct gp_waiter_gap gap;
    uint64_t missed;
    size_t n;
    do {
        n = gp_waiter_take(waiter, reports, REPORTS, &missed);
        (void)pthread_mutex_lock(&feed->lock);
        for (size_t i = 0; i < n; i++)
            if (reports[i].kind == GP_EVENT_XID && feed->xid_count < GP_XIDS_MAX)
                feed->xids[feed->xid_count++] =
                    (struct gp_xid){reports[i].device, reports[i].number, reports[i].wall_ns};
        (void)pthread_mutex_unlock(&feed->lock);
    } while (n == REPORTS);
    while (gp_waiter_take_gap(waiter, &gap))
        continue;
}

/* Samples until it is stopped, or fails. Returns GP_EINTR if it was relieved. */
static int sample(struct gp_feed *feed, struct gp_err *err)
{
    struct gp_sampler *sampler = feed->sampler;
    do {
        struct gp_snapshot *snapshot;
        take_view(feed);
        uint64_t before_ns = gp_clock_mono_ns();
        int r = gp_sampler_tick(sampler, &snapshot, err);
        if (r < 0)
            return r;
        if (gp_sampler_waiter(sampler))
            take_reports(feed, gp_sampler_waiter(sampler));
        publish(feed, snapshot, gp_clock_mono_ns() - before_ns);
    } while (gp_sampler_goes_on(sampler) || rest(feed));
    return 0;
}

static void set_sampler(struct gp_feed *feed, struct gp_sampler *sampler)
{
    (void)pthread_mutex_lock(&feed->lock);
    feed->sampler = sampler;
    (void)pthread_mutex_unlock(&feed->lock);
}

/* The rest of the feed's life, after the sampler has been opened with this result. */
static void go_on(struct gp_feed *feed, int r, struct gp_err *err)
{
    struct gp_sampler *sampler = feed->sampler;
    if (r == 0)
        r = sample(feed, err);
    if (r == GP_EINTR) {
        (void)pthread_detach(pthread_self()); /* the feed may have ended by now */
        return;
    }
    set_sampler(feed, NULL); /* from here on, nobody relieves it */
    bool let_go = gp_sampler_free(sampler) && r != GP_ETIMEOUT;
    free(feed->in_use);
    feed->in_use = NULL;
    (void)pthread_mutex_lock(&feed->lock);
    feed->result = r;
    feed->err = *err;
    feed->let_go = let_go;
    feed->ended = true;
    (void)pthread_cond_signal(&feed->done);
    (void)pthread_mutex_unlock(&feed->lock);
    gp_feed_wake(feed);
}

static void *thread_main(void *arg)
{
    struct gp_feed *feed = arg;
    struct gp_sampler *sampler = NULL;
    struct gp_err err = {0};
    int r = feed->config.open(feed->config.ctx, &sampler, &err);
    if (r == 0)
        gp_sampler_watch(sampler, NULL, 0, true);
    set_sampler(feed, sampler);
    go_on(feed, r, &err);
    return NULL;
}

/* Of a thread that relieves another one. */
static void *relief_main(void *arg)
{
    struct gp_err err = {0};
    go_on(arg, 0, &err);
    return NULL;
}

static int start_relief(void *arg)
{
    struct gp_feed *feed = arg;
    pthread_t thread;
    int r = gp_thread_start(&thread, relief_main, feed);
    if (r == 0)
        feed->thread = thread;
    return r;
}

static void free_feed(struct gp_feed *feed)
{
    gp_snapshot_free(feed->snapshot);
    free(feed->pids);
    if (feed->fd >= 0)
        (void)close(feed->fd);
    if (feed->late_fd >= 0)
        (void)close(feed->late_fd);
    (void)sem_destroy(&feed->wake);
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
    feed->due_ns = gp_clock_mono_ns();
    feed->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    feed->late_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    set_late(feed);
    (void)pthread_mutex_init(&feed->lock, NULL);
    (void)sem_init(&feed->wake, 0, 0);
    gp_thread_cond_init(&feed->done);
    if (feed->fd < 0 || feed->late_fd < 0 ||
        gp_thread_start(&feed->thread, thread_main, feed) < 0) {
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

int gp_feed_take(struct gp_feed *feed, struct gp_snapshot **ret, uint64_t *ret_took_ns,
                 struct gp_err *err)
{
    eventfd_t count;
    (void)eventfd_read(feed->fd, &count);
    (void)pthread_mutex_lock(&feed->lock);
    *ret = feed->snapshot;
    feed->snapshot = NULL;
    if (ret_took_ns)
        *ret_took_ns = feed->took_ns;
    if (feed->ended && *ret)
        gp_feed_wake(feed); /* after this item the caller sees the end */
    int r = feed->ended && !*ret ? gp_err_copy(err, &feed->err) : 0;
    (void)pthread_mutex_unlock(&feed->lock);
    return r;
}

size_t gp_feed_take_xids(struct gp_feed *feed, struct gp_xid *ret, size_t max)
{
    (void)pthread_mutex_lock(&feed->lock);
    size_t n = feed->xid_count < max ? feed->xid_count : max;
    memcpy(ret, feed->xids, n * sizeof(*ret));
    feed->xid_count -= n;
    memmove(feed->xids, feed->xids + n, feed->xid_count * sizeof(*ret));
    (void)pthread_mutex_unlock(&feed->lock);
    return n;
}

void gp_feed_hurry(struct gp_feed *feed)
{
    (void)pthread_mutex_lock(&feed->lock);
    feed->hurries = true;
    (void)sem_post(&feed->wake);
    (void)pthread_mutex_unlock(&feed->lock);
}

void gp_feed_set_interval(struct gp_feed *feed, uint64_t interval_ns)
{
    (void)pthread_mutex_lock(&feed->lock);
    feed->interval_ns = interval_ns;
    (void)sem_post(&feed->wake);
    (void)pthread_mutex_unlock(&feed->lock);
}

void gp_feed_watch(struct gp_feed *feed, const struct gp_feed_view *view)
{
    struct gp_feed_view copy = *view;
    uint32_t *pids = view->pids ? malloc((view->pid_count + 1) * sizeof(*pids)) : NULL;
    if (view->pids && !pids)
        return;
    if (pids)
        memcpy(pids, view->pids, view->pid_count * sizeof(*pids));
    copy.pids = pids;
    (void)pthread_mutex_lock(&feed->lock);
    free(feed->pids);
    feed->view = copy;
    feed->pids = pids;
    feed->review = true;
    (void)pthread_mutex_unlock(&feed->lock);
}

int gp_feed_late_fd(const struct gp_feed *feed)
{
    return feed->late_fd;
}

void gp_feed_look_after(struct gp_feed *feed)
{
    uint64_t times;
    (void)!read(feed->late_fd, &times, sizeof(times));
    (void)pthread_mutex_lock(&feed->lock);
    if (feed->sampler)
        gp_sampler_relieve(feed->sampler, LATE_MS * GP_NS_PER_MS / 2, start_relief, feed);
    (void)pthread_mutex_unlock(&feed->lock);
}

bool gp_feed_stop(struct gp_feed *feed, uint64_t patience_ns)
{
    struct timespec until = gp_clock_timespec(gp_clock_mono_ns() + patience_ns);
    (void)pthread_mutex_lock(&feed->lock);
    feed->quit = true;
    (void)sem_post(&feed->wake);
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
