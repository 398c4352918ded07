/* What gpulse serve reads from the driver for a request: a sampler with what it needs. */
#ifndef GP_OUT_RPC_FEED_H
#define GP_OUT_RPC_FEED_H

#include "model/event.h"

#include <jansson.h>

struct gp_err;
struct gp_observed;
struct gp_sampler;

struct gp_rpc_feed_config {
    const char *fields;   /* rows as in gpulse query; NULL: processes as in gpulse ps, or events */
    gp_event_kinds kinds; /* not 0: events */
    const char *gpus;     /* which GPUs; NULL: all */
    uint64_t timeout_ns;
    const struct gp_observed *machine;
    bool mig;
};

struct gp_rpc_feed;

/* Fails like gp_sampler_new(), or with GP_EBUSY if too many threads hang in the driver. */
int gp_rpc_feed_open(const struct gp_rpc_feed_config *config, struct gp_rpc_feed **ret,
                     struct gp_err *err) GP_MUST_CHECK;

/* Takes a sample: the document. Not for events. Fails like gp_sampler_tick(). */
int gp_rpc_feed_take(struct gp_rpc_feed *feed, json_t **ret, struct gp_err *err) GP_MUST_CHECK;

/* For events. */
struct gp_sampler *gp_rpc_feed_sampler(struct gp_rpc_feed *feed);

/* Whether a GPU did not respond in the last sample: a new feed would wait for it again. */
bool gp_rpc_feed_is_late(const struct gp_rpc_feed *feed);

/* NULL does nothing. */
void gp_rpc_feed_close(struct gp_rpc_feed *feed);

/* Whether a thread of a feed that was closed hangs in the driver. */
bool gp_rpc_feed_is_stuck(void);

#endif
