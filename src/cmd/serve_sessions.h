/* Feeds that are kept for the next request like the one before: opening the driver is slow, and
 * rates are differences. */
#ifndef GP_CMD_SERVE_SESSIONS_H
#define GP_CMD_SERVE_SESSIONS_H

#include "cmd/serve_feed.h"

enum { GP_SERVE_SESSIONS = 8 };

/* Zero-initialize. */
struct gp_serve_sessions {
    struct gp_serve_session {
        char *key; /* what was requested */
        struct gp_feed *feed;
        uint64_t used_ns;
    } items[GP_SERVE_SESSIONS];
};

/* A sample, from a feed with this configuration. Fails like gp_feed_open() and gp_feed_take(). */
int gp_serve_sessions_take(struct gp_serve_sessions *sessions, const struct gp_feed_config *config,
                           json_t **ret, struct gp_err *err) GP_MUST_CHECK;

/* Closes those that were not used for a while. Returns when that is to be done again; UINT64_MAX:
 * never. */
uint64_t gp_serve_sessions_close_idle(struct gp_serve_sessions *sessions);
void gp_serve_sessions_end(struct gp_serve_sessions *sessions);

#endif
