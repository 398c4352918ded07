/* How fast a job makes progress: steps that it reports, in its output or by gpulse_step()
 * (jobs/marks_read), and from them the model FLOPs utilization (MFU), the share of the GPUs'
 * arithmetic that the model itself used. */
#ifndef GP_JOBS_PACE_H
#define GP_JOBS_PACE_H

#include "base/util.h"

#include <jansson.h>
#include <regex.h>

struct gp_watch;

struct gp_pace_plan {
    const regex_t *step;   /* finds a line that reports a step; its first group, if there is one, is
                              the number of the step. NULL: the job reports steps itself, or none */
    double flops;          /* of a step, for all GPUs together; 0: unknown */
    const char *precision; /* as in gpulse.models/1: "bf16" */
};

/* Steps between the first and the last one that was reported. All zero at the start. */
struct gp_pace {
    uint64_t reports; /* lines, or calls */
    double steps;
    double number;    /* of the last one, if they have numbers */
    bool may_restart; /* the last number was `restart`, so low that it may begin a new epoch */
    double restart;
    uint64_t first_ns, last_ns;
};

/* Adds a line of output. A number that is lower than half of the last one begins a new epoch if the
 * next one is lower than the last one, too; other lower or equal ones are those of another process
 * of the job. */
void gp_pace_add(struct gp_pace *pace, const regex_t *step, const char *line, uint64_t now_ns);

/* The job has ended: reports its pace through the watch, and returns it as in run.json; NULL:
 * nothing was counted. The peak of the GPUs is from gpulse-doctor, which has the table. */
json_t *gp_pace_end(const struct gp_pace *pace, const struct gp_pace_plan *plan,
                    const struct gp_watch *watch);

#endif
