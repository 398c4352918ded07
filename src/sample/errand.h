/* Work inside the driver, done on threads of its own within a deadline.
 *
 * For what is done once and in order, such as changing a setting: the sampler's pool is for what
 * is read again and again. The rule is the same: nobody waits for a driver call without a deadline,
 * and a thread that is stuck in one is left alone. */
#ifndef GP_SAMPLE_ERRAND_H
#define GP_SAMPLE_ERRAND_H

#include "base/util.h"

struct gp_errands {
    void (*work)(void *ctx, size_t i);
    void *ctx;
    size_t count;
    uint64_t timeout_ns;
    /* Whether nobody need wait for the others any longer: asked on the caller's thread whenever one
     * has ended, while those that end now are held up. The wait then ends a moment later, in
     * which the others usually end, too. NULL: all are waited for. */
    bool (*is_enough)(void *ctx, const bool *done);
    /* Told once, on the caller's thread, when some are still waited for after patience_ns. NULL:
     * nobody is. */
    void (*on_wait)(void *ctx, const bool *done);
    uint64_t patience_ns;
};

/* Runs work(ctx, i) for each i below `count`, all at the same time, and waits until all are done,
 * enough are, or the time is over; done[i] says which are. False if a thread is stuck: then ctx and
 * what it leads to must live as long as that thread, and the process must end with _exit(). One for
 * which no thread can be had is not run, and not done. */
bool gp_errands_run(const struct gp_errands *errands, bool *done) GP_MUST_CHECK;

#endif
