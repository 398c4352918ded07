/* Processes that hold GPU memory and do nothing with it. No driver tells since when, so they are
 * watched for as long as was asked for. */
#ifndef GP_CMD_PROC_IDLE_H
#define GP_CMD_PROC_IDLE_H

#include "model/metric.h"
#include "sample/sampler.h"

struct gp_err;
struct gp_procs;
struct gp_snapshot;

struct gp_idle {
    int64_t *pids; /* of those that have done nothing, sorted */
    size_t count;
};

#define GP_IDLE_ROW(type_of, field)                                                                \
    {                                                                                              \
        0, "idle", NULL, GP_OPT_DURATION, "TIME",                                                  \
            .offset = offsetof(type_of, field),                                                    \
            .help = "only processes idle for TIME (observed by gpulse, on all GPUs)"               \
    }

/* What a sampler has to ask for. */
void gp_idle_want(struct gp_metric_set *metrics);

/* Watches for this long. *ret_last is the last snapshot, the caller's to free. A process counts if
 * it was there from the beginning to the end and is known to have done nothing at each sample. */
int gp_idle_watch(struct gp_sampler *sampler, uint64_t for_ns, struct gp_idle *ret,
                  struct gp_snapshot **ret_last, struct gp_err *err) GP_MUST_CHECK;

/* Drops the rows of all others. */
void gp_idle_keep(const struct gp_idle *idle, struct gp_procs *procs);
void gp_idle_fini(struct gp_idle *idle);

#endif
