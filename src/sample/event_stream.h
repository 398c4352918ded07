/* GPU events as they happen: what the driver reports, merged with what a comparison of samples
 * finds. The stream begins with an event of kind start, and says when it missed events. */
#ifndef GP_SAMPLE_EVENT_STREAM_H
#define GP_SAMPLE_EVENT_STREAM_H

#include "model/event.h"
#include "sample/sampler.h"

struct gp_err;
struct gp_snapshot;

struct gp_event_stream {
    struct gp_sampler *sampler; /* collects gp_event_stream_want() */
    gp_event_kinds kinds;       /* requested kinds */
    uint64_t interval_ns;       /* between samples, unless one is needed sooner */
    uint64_t settle_ns;         /* how long the driver may take to say which events it supports */
    uint64_t count;       /* end after N events that are not about the stream itself; 0: no limit */
    uint64_t duration_ns; /* end after this time; 0: no limit */
    /* Sleeps until this monotonic time, or until fd (−1: none) is readable. A negative result ends
     * the stream. */
    int (*sleep)(void *ctx, uint64_t mono_ns, int fd);
    /* Called with each event and the name of this machine. A negative result ends the stream. */
    int (*on_event)(void *ctx, const struct gp_event *event, const char *host, struct gp_err *err);
    /* Called with each sample, after the events that follow from it; NULL: they are not needed.
     * Likewise. */
    int (*on_sample)(void *ctx, const struct gp_snapshot *snapshot, struct gp_err *err);
    /* If glance_ns is not 0: called this often with a brief sample, see gp_sampler_glance(). A GPU
     * that was lost makes the next sample due at once. A negative result likewise. */
    uint64_t glance_ns;
    int (*on_glance)(void *ctx, const struct gp_snapshot *snapshot, struct gp_err *err);
    void *ctx;
};

/* What the sampler must collect for these kinds. */
struct gp_want gp_event_stream_want(gp_event_kinds kinds);

/* Delivers events until the count or the duration is reached: 0. Otherwise the result of a
 * callback, the error of the sampler, or GP_ENOMEM. */
int gp_event_stream_run(const struct gp_event_stream *stream, struct gp_err *err) GP_MUST_CHECK;

/* What the driver reports for a GPU. */
struct gp_event_source {
    unsigned index; /* of the GPU */
    gp_event_kinds kinds;
};

/* Instead of delivering events: finds what the driver reports for each GPU. The caller frees *ret.
 * The kinds, the count and `on_event` are not used. Errors as above. */
int gp_event_stream_sources(const struct gp_event_stream *stream, struct gp_event_source **ret,
                            size_t *ret_count, struct gp_err *err) GP_MUST_CHECK;

#endif
