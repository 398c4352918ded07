/* The thread that waits for driver events.
 *
 * It is separate from the pool because its call is meant to block: for half a second at a time, so
 * that it can be told to rest before the session is closed. If a driver returns errors immediately,
 * or returns too early, it is called with growing delays. Events are stored in a queue of limited
 * length; excess events are counted.
 *
 * A driver keeps no events for a closed session. So the last step before a rest is to collect all
 * events, and the time from then until the GPUs are registered again is a gap, which is
 * reported. */
#ifndef GP_SAMPLE_WAITER_H
#define GP_SAMPLE_WAITER_H

#include "source/source.h"

struct gp_waiter;

/* Waits for events of these kinds. wait_ms: how long one call waits for events. They arrive at once
 * anyway, but the waiter can rest only between two calls, and each call wakes its thread. NULL
 * without memory, or without a descriptor for gp_waiter_fd(). */
struct gp_waiter *gp_waiter_new(struct gp_source *source, gp_event_kinds kinds,
                                unsigned wait_ms) GP_MUST_CHECK;

/* A working driver returns from a call within this time. */
uint64_t gp_waiter_rest_ns(const struct gp_waiter *w);

/* The session is open: driver calls are allowed from now on. */
void gp_waiter_begin(struct gp_waiter *w);

/* Registers a device: its events are delivered under this name until the waiter rests. */
void gp_waiter_offer(struct gp_waiter *w, unsigned name, struct gp_source_device *device);

/* Whether no call is in progress; with `on`, none begins until gp_waiter_rest(), or the same
 * without `on`. So a sampler need not wait for the end of a call in order to rest, which can take
 * long. */
bool gp_waiter_pause(struct gp_waiter *w, bool on);

/* Collects the driver's events, forbids calls, and forgets the devices. Returns false if the
 * current call does not return until this time: then nothing changes. `why` is the reason, for
 * people; it must be permanent. */
bool gp_waiter_rest(struct gp_waiter *w, uint64_t until_ns, const char *why);

/* Stops the thread of a resting waiter. NULL is allowed. */
void gp_waiter_free(struct gp_waiter *w);

/* ---- consumer ---- */

/* Whether the driver reported the end of the session. */
bool gp_waiter_has_ended(struct gp_waiter *w);

/* Readable when there is something to take, or something has changed. */
int gp_waiter_fd(const struct gp_waiter *w);

/* Takes up to `capacity` events, and the number of events missed since the last call. */
size_t gp_waiter_take(struct gp_waiter *w, struct gp_source_event *out, size_t capacity,
                      uint64_t *ret_missed);

/* A time range in which driver events may have been lost. */
struct gp_waiter_gap {
    unsigned devices; /* number of affected devices; if it is one, … */
    unsigned name;    /* … its name */
    uint64_t from_ns; /* monotonic time */
    uint64_t to_ns;
    gp_event_kinds kinds;
    const char *why;
};

/* Takes a finished gap, for all devices that it started for and that are registered again. False if
 * there is none. The gap of a device that is missing is reported when the device is back. */
bool gp_waiter_take_gap(struct gp_waiter *w, struct gp_waiter_gap *ret);

/* The kinds that the driver reports for a device; none while not listening. */
gp_event_kinds gp_waiter_kinds(struct gp_waiter *w, unsigned name);

/* Whether all offered devices were queried for their event kinds. */
bool gp_waiter_is_settled(struct gp_waiter *w);

/* The call that hangs, and for how long; NULL if there is none. */
const char *gp_waiter_stuck_in(struct gp_waiter *w, double *ret_s);

#endif
