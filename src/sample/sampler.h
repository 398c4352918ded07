/* From a source to snapshots: threads, deadlines, loss and return.
 *
 * A driver call can block for ever and cannot be cancelled. So every call is made by a thread of a
 * pool, which grows up to one thread per GPU as long as the driver is slow, and nobody waits for
 * one longer than the deadline: a GPU inside which a thread is stuck shows its last values with
 * their age, everything else goes on. A stuck thread is never joined, and the driver is never shut
 * down beside it (that crashes inside the library). */
#ifndef GP_SAMPLE_SAMPLER_H
#define GP_SAMPLE_SAMPLER_H

#include "source/source.h"

struct gp_err;
struct gp_selection;
struct gp_snapshot;
struct gp_waiter;

struct gp_sampler_config {
    struct gp_source *source;       /* becomes the sampler's */
    const char *root;               /* prefix for /proc, NULL for none */
    uint64_t timeout_ns;            /* how long the first tick waits for the driver */
    uint64_t later_timeout_ns;      /* how long the others wait; 0: as long */
    uint64_t first_look_ns;         /* see gp_sampler_goes_on(); 0: there is none */
    bool release_when_idle;         /* close the session while the GPUs could sleep */
    bool once;                      /* a single tick: see gp_sampler_tick() */
    struct gp_selection *selection; /* which GPUs; must outlive the sampler */
    struct gp_want want;
};

struct gp_sampler;

/* Opens the source within the timeout. On failure the source is freed, except on GP_ETIMEOUT: then
 * a thread is stuck inside the driver, and the process must end with _exit(). GP_ENODEV: no GPU, or
 * a selection term that matches none; GP_ENOMEM; the source's own errors. */
int gp_sampler_new(const struct gp_sampler_config *config, struct gp_sampler **ret,
                   struct gp_err *err) GP_MUST_CHECK;

/* Samples once. What did not answer in time is in the snapshot as such. GP_ENOMEM, GP_ENODEV.
 * With config.once the reads begin as soon as the source is open, and the session is closed as soon
 * as they are done, by the same thread: a short command does not pay for waking threads. */
int gp_sampler_tick(struct gp_sampler *sampler, struct gp_snapshot **ret,
                    struct gp_err *err) GP_MUST_CHECK;

/* With config.first_look_ns the first call of gp_sampler_tick() returns after this time at the
 * latest, with the GPUs that have answered by then. Then this is true: the next call goes on with
 * the same tick, and waits for the others no longer than a later tick does. A tick behind one that
 * took less than this time waits no longer than five times of it: a GPU that begins to hang does
 * not hold up the others for long. */
bool gp_sampler_goes_on(struct gp_sampler *sampler);

/* Which processes are looked at in /proc at every tick (sorted pids, which must live until the next
 * call); NULL: all. The CPU use and memory of the others are STALE for up to 16 s, longer if there
 * are more than 2000. */
void gp_sampler_watch(struct gp_sampler *sampler, const uint32_t *pids, size_t count,
                      bool others_matter);

/* Whether snapshots have the ancestors of their processes from the next tick on. */
void gp_sampler_set_ancestors(struct gp_sampler *sampler, bool wanted);

/* Whether want.more is read too, from the next tick on; in the beginning it is not. */
void gp_sampler_set_more(struct gp_sampler *sampler, bool wanted);

/* Lists that are read besides want.lists from the next tick on: anew each time, and with them all
 * that else is asked for only now and then. */
void gp_sampler_set_lists(struct gp_sampler *sampler, uint32_t lists);

/* Closes the driver's session now and keeps it closed, or opens it again: an open one is in the way
 * of a GPU reset, an unloading of the driver, a change of the MIG mode. Beside a call that hangs it
 * is left for a later tick. Meanwhile the GPUs are RELEASED. */
void gp_sampler_release(struct gp_sampler *sampler, bool release);

/* Ends the threads and closes the source. False if one is stuck inside the driver: then nothing
 * was freed, and the process must end with _exit(). */
bool gp_sampler_free(struct gp_sampler *sampler);

/* Where the driver's events are taken from, devices being named by their index; NULL unless
 * want.events. Only the consumer's side of it may be used. */
struct gp_waiter *gp_sampler_waiter(struct gp_sampler *sampler);

#endif
