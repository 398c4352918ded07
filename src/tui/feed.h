/* Takes samples on a separate thread, so that keys never wait for a driver. */
#ifndef GP_TUI_FEED_H
#define GP_TUI_FEED_H

#include "base/util.h"

struct gp_err;
struct gp_sampler;
struct gp_snapshot;

struct gp_xid;

struct gp_feed;

struct gp_feed_config {
    int (*open)(void *ctx, struct gp_sampler **ret, struct gp_err *err);
    void *ctx;
    uint64_t interval_ns;
    /* Takes over each snapshot, on the thread that sampled, so that no other thread has to wake.
     * NULL: they are handed over by gp_feed_take(). */
    void (*take)(void *take_ctx, struct gp_snapshot *snapshot, uint64_t took_ns);
    void *take_ctx;
};

/* Fails with GP_ENOMEM. */
int gp_feed_start(const struct gp_feed_config *config, struct gp_feed **ret,
                  struct gp_err *err) GP_MUST_CHECK;

/* Becomes readable when there is something to take, even if it is only the end. */
int gp_feed_fd(const struct gp_feed *feed);

/* Makes gp_feed_fd() readable. */
void gp_feed_wake(struct gp_feed *feed);

/* Hands over the newest snapshot and how long it took (may be NULL). *ret is NULL if there is no
 * new one since the last call. An error ends the feed. */
int gp_feed_take(struct gp_feed *feed, struct gp_snapshot **ret, uint64_t *ret_took_ns,
                 struct gp_err *err) GP_MUST_CHECK;

/* Takes at most `max` of the errors reported since the last call; the next call returns the
 * rest. */
size_t gp_feed_take_xids(struct gp_feed *feed, struct gp_xid *ret, size_t max);

/* Becomes readable while a sample is late: then call gp_feed_look_after(). */
int gp_feed_late_fd(const struct gp_feed *feed);

/* Replaces the thread if a GPU hangs in it. Otherwise does nothing. */
void gp_feed_look_after(struct gp_feed *feed);

/* Takes the next sample now, and then again after the interval. */
void gp_feed_hurry(struct gp_feed *feed);

void gp_feed_set_interval(struct gp_feed *feed, uint64_t interval_ns);

/* The visible part of a snapshot. Everything else is read less often or not at all. */
struct gp_feed_view {
    const uint32_t *pids; /* of the processes, sorted; NULL: all */
    size_t pid_count;
    bool others_matter; /* see gp_proc_watch() */
    bool ancestors;     /* whether ancestors of processes are needed */
    bool more;          /* want.more, for GPUs */
};

/* Copies the view. Without memory nothing changes. */
void gp_feed_watch(struct gp_feed *feed, const struct gp_feed_view *view);

/* Stops the thread and frees the feed. Returns false if the driver blocks the thread for longer
 * than `patience_ns`. Then nothing was freed, and the process must exit with _exit(). */
bool gp_feed_stop(struct gp_feed *feed, uint64_t patience_ns);

#endif
