/* Processes that hold GPU memory without using it. No driver reports how long, so they are observed
 * for the time given. */
#ifndef GP_JOBS_IDLE_H
#define GP_JOBS_IDLE_H

#include "model/metric.h"
#include "sample/sampler.h"

struct gp_err;
struct gp_procs;
struct gp_snapshot;

struct gp_idle {
    int64_t *pids; /* pids of those that were idle, sorted */
    size_t count;
};

/* What the sampler must collect. */
void gp_idle_want(struct gp_metric_set *metrics);

/* Observes the processes that match a filter (see gp_procs_matches()) for this long, or until none
 * of them can count any more; all GPUs must be sampled. *ret_last is the last snapshot, to be freed
 * by the caller; *ret needs gp_idle_fini(). A process counts if it existed from start to end and is
 * known to have been idle in each sample. `progress` (NULL: none) is called, if any process is
 * observed, at the start with the whole time, then with the time left, and at the end with 0.
 * GP_EPARTIAL: a GPU does not list its processes; GP_ENOMEM; the errors of the sampler. */
int gp_idle_observe(struct gp_sampler *sampler, const char *filter, uint64_t for_ns,
                    void (*progress)(uint64_t for_ns, uint64_t left_ns), struct gp_idle *ret,
                    struct gp_snapshot **ret_last, struct gp_err *err) GP_MUST_CHECK;

/* Removes the rows of all others. */
void gp_idle_keep(const struct gp_idle *idle, struct gp_procs *procs);
void gp_idle_fini(struct gp_idle *idle);

#endif
