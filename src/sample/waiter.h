/* The thread that waits for events of the driver.
 *
 * It is apart from the pool, because its call is meant to block: half a second at a time, so that
 * it can be told to rest before the session ends. A driver that answers errors at once, or comes
 * back before the time is over, is asked ever more rarely. What it reports waits in a queue of
 * bounded length; what does not fit is counted.
 *
 * A driver keeps no events for a session that is not there. So the last thing before a rest is to
 * take what it has, and the time from then until the GPUs are registered again is a gap, which is
 * told. */
#ifndef GP_SAMPLE_WAITER_H
#define GP_SAMPLE_WAITER_H

#include "source/source.h"

struct gp_waiter;

/* A driver that is well comes back from a wait within this time. */
#define GP_WAITER_REST_NS GP_NS_PER_S

/* NULL if there is no memory, or no descriptor for gp_waiter_fd(). */
struct gp_waiter *gp_waiter_new(struct gp_source *source) GP_MUST_CHECK;

/* The session is open: from here on the driver may be called. */
void gp_waiter_begin(struct gp_waiter *w);

/* Has the events of a device delivered under this name, until the waiter is told to rest. */
void gp_waiter_offer(struct gp_waiter *w, unsigned name, struct gp_source_device *device);

/* Takes what the driver has to report, forbids calls, and forgets the devices. False if the call in
 * progress does not come back until this moment: then everything stays as it was. `why` says what
 * for, to people; it lives for ever. */
bool gp_waiter_rest(struct gp_waiter *w, uint64_t until_ns, const char *why);

/* Ends the thread of a waiter that rests. NULL is fine. */
void gp_waiter_free(struct gp_waiter *w);

/* ---- the consumer's side ---- */

/* The driver has said that the session is over. */
bool gp_waiter_has_ended(struct gp_waiter *w);

/* Readable when there is something to take, or something has changed. */
int gp_waiter_fd(const struct gp_waiter *w);

/* Takes up to `capacity` events, and how many were missed since the last time. */
size_t gp_waiter_take(struct gp_waiter *w, struct gp_source_event *out, size_t capacity,
                      uint64_t *ret_missed);

/* A time in which events of the driver may have been lost. */
struct gp_waiter_gap {
    unsigned devices; /* how many it is about; of a single one */
    unsigned name;    /* … its name */
    uint64_t from_ns; /* monotonic */
    uint64_t to_ns;
    gp_event_kinds kinds;
    const char *why;
};

/* Takes a gap that has ended, of all devices that it began for and that are registered again; false
 * if there is none. One that stays away has its gap told when it is back. */
bool gp_waiter_take_gap(struct gp_waiter *w, struct gp_waiter_gap *ret);

/* The kinds that the driver reports of a device; none while nobody listens. */
gp_event_kinds gp_waiter_kinds(struct gp_waiter *w, unsigned name);

/* Whether every device that was offered has been asked what it reports. */
bool gp_waiter_is_settled(struct gp_waiter *w);

/* The call that does not come back, and for how long; NULL if all is well. */
const char *gp_waiter_stuck_in(struct gp_waiter *w, double *ret_s);

#endif
