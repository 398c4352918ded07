/* Samples in a thread of its own, so that keys never wait for a driver. */
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
};

/* GP_ENOMEM. */
int gp_feed_start(const struct gp_feed_config *config, struct gp_feed **ret,
                  struct gp_err *err) GP_MUST_CHECK;

/* Readable as soon as there is something to take. */
int gp_feed_fd(const struct gp_feed *feed);

/* The newest snapshot, which becomes the caller's, and how long it took (NULL: nobody asks); *ret
 * is NULL if there is none since the last call. An error ends the feed. */
int gp_feed_take(struct gp_feed *feed, struct gp_snapshot **ret, uint64_t *ret_took_ns,
                 struct gp_err *err) GP_MUST_CHECK;

/* Takes the errors that the driver has reported since the last call; at most `max` of them, the
 * rest later. */
size_t gp_feed_take_xids(struct gp_feed *feed, struct gp_xid *ret, size_t max);

void gp_feed_set_interval(struct gp_feed *feed, uint64_t interval_ns);

/* What of a snapshot is on the screen; the rest is read more seldom or not at all. */
struct gp_feed_view {
    const uint32_t *pids; /* of the processes, sorted; NULL: all */
    size_t pid_count;
    bool others_matter; /* see gp_proc_watch() */
    bool ancestors;     /* of processes */
    bool more;          /* want.more, of GPUs */
};

/* Copies it. Without memory all stays as it is. */
void gp_feed_watch(struct gp_feed *feed, const struct gp_feed_view *view);

/* Ends it. False if the driver does not let go of the thread for this long: then nothing was freed,
 * and the process must end with _exit(). */
bool gp_feed_stop(struct gp_feed *feed, uint64_t patience_ns);

#endif
