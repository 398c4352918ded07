/* Turns a source into snapshots: threads, deadlines, loss and recovery.
 *
 * A driver call can block forever and cannot be canceled. So every call is made by a thread of a
 * pool, which grows up to one thread per GPU while the driver is slow, and nobody waits for a call
 * longer than the deadline. If a thread hangs in the driver, its GPU shows its last values and
 * their age; everything else continues. A stuck thread is never joined, and the driver is never
 * shut down while one exists (that crashes in the library). */
#ifndef GP_SAMPLE_SAMPLER_H
#define GP_SAMPLE_SAMPLER_H

#include "source/source.h"

struct gp_err;
struct gp_selection;
struct gp_snapshot;
struct gp_waiter;

struct gp_sampler_config {
    struct gp_source *source;       /* owned by the sampler */
    const char *root;               /* prefix for /proc, NULL for none */
    uint64_t timeout_ns;            /* how long the first tick waits for the driver */
    uint64_t later_timeout_ns;      /* how long later ticks wait; 0: the same */
    uint64_t first_look_ns;         /* see gp_sampler_goes_on(); 0: disabled */
    bool release_when_idle;         /* close the session while the GPUs could sleep */
    unsigned event_wait_ms;         /* see gp_waiter_new(); 0: half a second */
    bool once;                      /* a single tick: see gp_sampler_tick() */
    bool is_relieved;               /* the consumer may be replaced: see gp_sampler_relieve() */
    uint64_t step_ns;               /* of a recording: from one sample to the next */
    struct gp_selection *selection; /* must outlive the sampler */
    struct gp_want want;
    struct gp_metric_set brief; /* of GPUs: what gp_sampler_glance() reads */
};

struct gp_sampler;

/* Opens the source within the timeout. Fails with GP_ETIMEOUT, with GP_ENODEV if there is no GPU or
 * a selection term has no match, with GP_ENOMEM, or with an error of the source. *ret is then NULL,
 * and the source is freed; or it is a sampler in which a thread hangs, for gp_sampler_free(). */
int gp_sampler_new(const struct gp_sampler_config *config, struct gp_sampler **ret,
                   struct gp_err *err) GP_MUST_CHECK;

/* Takes a sample. GPUs that did not respond in time are marked in the snapshot. Fails with
 * GP_ENOMEM or GP_ENODEV. With config.once, the reads start as soon as the source is open, and the
 * session is closed as soon as they are done, all on the same thread. This saves a short command
 * the cost of waking threads. */
int gp_sampler_tick(struct gp_sampler *sampler, struct gp_snapshot **ret,
                    struct gp_err *err) GP_MUST_CHECK;

/* Reads config.brief of each GPU that responded to the last tick, between two ticks, and waits for
 * the driver for at most `patience_ns`. The snapshot has a row for each GPU, without MIG instances
 * and processes, with these values and the UUID; one that did not respond has the reason instead.
 * A GPU that hangs is waited for once, and the next tick waits for it as always. *ret is NULL if
 * there is nothing to read: the session is closed, or reading would keep GPUs awake that can
 * sleep. Fails with GP_ENOMEM. */
int gp_sampler_glance(struct gp_sampler *sampler, uint64_t patience_ns, struct gp_snapshot **ret,
                      struct gp_err *err) GP_MUST_CHECK;

/* With config.first_look_ns, the first call of gp_sampler_tick() returns after this time at the
 * latest, with the GPUs that have responded by then. In that case this returns true: the next call
 * continues the same tick, and waits for the other GPUs at most as long as a later tick. A tick
 * after one that took less than this time waits at most five times as long: a GPU that starts to
 * hang does not delay the others much. */
bool gp_sampler_goes_on(struct gp_sampler *sampler);

/* With config.is_relieved, a driver that is quick is read by the thread that calls
 * gp_sampler_tick(), which saves waking another one. If it is in a call for longer than
 * `patience_ns`, this starts a thread with start(ctx), which is to call gp_sampler_tick(): that
 * continues the same tick. For the first thread, gp_sampler_tick() fails with GP_EINTR when the
 * driver returns; it must not use the sampler any more. Does nothing in all other cases. */
void gp_sampler_relieve(struct gp_sampler *sampler, uint64_t patience_ns, int (*start)(void *ctx),
                        void *ctx);

/* Whether the source is a recording. Samples then cost no time, and only gp_sampler_tick() and
 * gp_sampler_free() have an effect. */
bool gp_sampler_is_recorded(const struct gp_sampler *sampler);

/* Whether the recording has ended: the last sample was the last one in it. */
bool gp_sampler_is_over(const struct gp_sampler *sampler);

/* Sets the processes to read from /proc in every tick (sorted pids, which must stay valid until the
 * next call); NULL: all. CPU utilization and memory of the others are STALE for up to a minute, or
 * longer if there are more than 2000. */
void gp_sampler_watch(struct gp_sampler *sampler, const uint32_t *pids, size_t count,
                      bool others_matter);

/* Sets whether snapshots include the ancestors of their processes from the next tick on. */
void gp_sampler_set_ancestors(struct gp_sampler *sampler, bool wanted);

/* Sets whether want.more is read too, from the next tick on; initially it is not. */
void gp_sampler_set_more(struct gp_sampler *sampler, bool wanted);

/* Sets lists to read in addition to want.lists from the next tick on. They are read in every tick,
 * and so are all other values that are otherwise read less often. */
void gp_sampler_set_lists(struct gp_sampler *sampler, uint32_t lists);

/* Adds lists to want.lists from the next tick on. */
void gp_sampler_add_lists(struct gp_sampler *sampler, uint32_t lists);

/* Closes the driver's session now and keeps it closed, or reopens it. An open session blocks a GPU
 * reset, unloading the driver, and changing MIG mode. If a call hangs, closing is left to a later
 * tick. While it is closed, the GPUs are RELEASED. */
void gp_sampler_release(struct gp_sampler *sampler, bool release);

/* Stops the threads and closes the source. Returns false if a thread hangs in the driver: then
 * nothing was freed, and the process must exit with _exit(), or try again when the sampler is no
 * longer busy. */
bool gp_sampler_free(struct gp_sampler *sampler);

/* Whether a thread is in a call of the driver; does not wait for it. */
bool gp_sampler_is_busy(struct gp_sampler *sampler);

/* The source of driver events, which name devices by index; NULL unless want.events. Only the
 * consumer's side of it may be used. */
struct gp_waiter *gp_sampler_waiter(struct gp_sampler *sampler);

#endif
