/* Feeds that are kept for the next request like the one before: opening the driver is slow, and
 * rates are differences. */
#ifndef GP_OUT_RPC_SESSIONS_H
#define GP_OUT_RPC_SESSIONS_H

#include "out/rpc_feed.h"

enum { GP_RPC_SESSIONS = 8 };

/* Zero-initialize. */
struct gp_rpc_sessions {
    struct gp_rpc_session {
        char *key; /* what was requested */
        struct gp_rpc_feed *feed;
        uint64_t used_ns;
    } items[GP_RPC_SESSIONS];
};

/* A sample, from a feed with this configuration. Fails like gp_rpc_feed_open() and
 * gp_rpc_feed_take(). */
int gp_rpc_sessions_take(struct gp_rpc_sessions *sessions, const struct gp_rpc_feed_config *config,
                         json_t **ret, struct gp_err *err) GP_MUST_CHECK;

/* Closes those that were not used for a while. Returns when that is to be done again; UINT64_MAX:
 * never. */
uint64_t gp_rpc_sessions_close_idle(struct gp_rpc_sessions *sessions);
void gp_rpc_sessions_end(struct gp_rpc_sessions *sessions);

#endif
