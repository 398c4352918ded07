/* Runs work inside the driver on separate threads, with a deadline.
 *
 * For one-time work in a fixed order, such as changing a setting; the sampler's pool is for
 * repeated reads. The rule is the same: nobody waits for a driver call without a deadline, and a
 * thread that hangs in one is left running. */
#ifndef GP_SAMPLE_ERRAND_H
#define GP_SAMPLE_ERRAND_H

#include "base/util.h"

#include <stdatomic.h>

struct gp_errands {
    void (*work)(void *ctx, size_t i);
    void *ctx;
    size_t count;
    uint64_t timeout_ns;
    /* Whether there is no need to wait for the others. Called on the caller's thread whenever one
     * has finished, and blocks those that finish at the same time. The wait then ends after a short
     * delay, in which the others usually finish too. NULL: wait for all. */
    bool (*is_enough)(void *ctx, const bool *done);
    /* Called once, on the caller's thread, if some are unfinished after patience_ns. May be
     * NULL. */
    void (*on_wait)(void *ctx, const bool *done);
    uint64_t patience_ns;
    /* How many runs were given up whose threads have not all returned: one more for each false
     * below, one less when the last of its threads has returned. */
    atomic_uint *given_up;
};

/* Runs work(ctx, i) in parallel for each i below `count`, and waits until all or enough are done,
 * or until the deadline; done[i] says which are. Returns false if the others are given up: ctx and
 * everything it refers to must then outlive their threads, see given_up; if these hang, the process
 * must exit with _exit(). Work for which no thread can be started is not run, and not done. */
bool gp_errands_run(const struct gp_errands *errands, bool *done) GP_MUST_CHECK;

#endif
