/* GPU memory that nobody needs any more: what holds it, and whose termination would free it. */
#ifndef GP_JOBS_RECLAIM_H
#define GP_JOBS_RECLAIM_H

#include "jobs/account.h"
#include "jobs/idle.h"

struct gp_reclaim {
    struct gp_account *accounts; /* of whole GPUs */
    size_t account_count;
    size_t missing;       /* GPUs with memory in use that no listed process accounts for */
    struct gp_procs rows; /* the user's idle processes, and leftovers on these GPUs */
};

/* What the snapshot needs, which is enough to terminate processes, too. */
struct gp_want gp_reclaim_want(void);

/* Finds such memory. `idle` are the processes that were observed to be idle; it may be empty. The
 * snapshot and the holders must outlive the result. GP_ENOMEM; gp_reclaim_fini() may be called. */
int gp_reclaim_find(struct gp_reclaim *ret, const struct gp_snapshot *snapshot,
                    const struct gp_holders *holders, const struct gp_idle *idle) GP_MUST_CHECK;
void gp_reclaim_fini(struct gp_reclaim *reclaim);

/* Appends an explanation of each GPU with missing memory. If there is nothing to free, says so. */
void gp_reclaim_add(struct gp_strbuf *sb, const struct gp_reclaim *reclaim);

/* Samples until each GPU has this much memory free. GP_EFAIL: not after wait_ns; the errors of the
 * sampler. */
int gp_reclaim_await_free(struct gp_sampler *sampler, uint64_t bytes, uint64_t wait_ns,
                          struct gp_err *err) GP_MUST_CHECK;

#endif
