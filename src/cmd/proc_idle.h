/* Processes that hold GPU memory without using it. No driver reports how long, so they are observed
 * for the time given. */
#ifndef GP_CMD_PROC_IDLE_H
#define GP_CMD_PROC_IDLE_H

#include "model/metric.h"
#include "sample/sampler.h"

struct gp_err;
struct gp_procs;
struct gp_snapshot;

struct gp_idle {
    int64_t *pids; /* pids of those that were idle, sorted */
    size_t count;
};

#define GP_IDLE_ROW(type_of, field)                                                                \
    {                                                                                              \
        0, "idle", NULL, GP_OPT_DURATION, "TIME",                                                  \
            .offset = offsetof(type_of, field),                                                    \
            .help = "only processes that stay idle on all GPUs for TIME (gpulse watches "          \
                    "that long)"                                                                   \
    }

/* What the sampler must collect. */
void gp_idle_want(struct gp_metric_set *metrics);

/* Observes the processes that match a filter (see gp_procs_matches()) for this long, or until none
 * of them can count any more. *ret_last is the last snapshot, to be freed by the caller. A process
 * counts if it existed from start to end and is known to have been idle in each sample. */
int gp_idle_watch(struct gp_sampler *sampler, const char *filter, uint64_t for_ns,
                  struct gp_idle *ret, struct gp_snapshot **ret_last,
                  struct gp_err *err) GP_MUST_CHECK;

/* Removes the rows of all others. */
void gp_idle_keep(const struct gp_idle *idle, struct gp_procs *procs);
void gp_idle_fini(struct gp_idle *idle);

#endif
