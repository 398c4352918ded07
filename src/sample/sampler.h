/* From a source to snapshots: one worker thread per GPU, deadlines, loss and return.
 *
 * A driver call can block for ever and cannot be cancelled. So every call is made by the worker of
 * its GPU, and nobody waits for a worker longer than the deadline: a GPU whose worker is stuck shows
 * its last values with their age, everything else goes on. A stuck worker is never joined, and the
 * driver is never shut down beside it (that crashes inside the library). */
#ifndef GP_SAMPLE_SAMPLER_H
#define GP_SAMPLE_SAMPLER_H

#include "source/source.h"

struct gp_err;
struct gp_selection;
struct gp_snapshot;

struct gp_sampler_config {
    struct gp_source *source;       /* becomes the sampler's */
    const char *root;               /* prefix for /proc, NULL for none */
    uint64_t timeout_ns;            /* how long a tick waits for the driver */
    struct gp_selection *selection; /* which GPUs; must outlive the sampler */
    struct gp_want want;
};

struct gp_sampler;

/* Opens the source within the timeout. On failure the source is freed, unless it is stuck.
 * GP_ENODEV: no GPU, or a selection term that matches none; GP_ETIMEOUT: the driver hangs. */
int gp_sampler_new(const struct gp_sampler_config *config, struct gp_sampler **ret,
                   struct gp_err *err) GP_MUST_CHECK;

/* Samples once. What did not answer in time is in the snapshot as such. GP_ENOMEM, GP_ENODEV. */
int gp_sampler_tick(struct gp_sampler *sampler, struct gp_snapshot **ret, struct gp_err *err)
    GP_MUST_CHECK;

/* Ends the workers and closes the source. False if a worker is stuck inside the driver: then nothing
 * was freed, and the process must end with _exit(). */
bool gp_sampler_free(struct gp_sampler *sampler);

#endif
