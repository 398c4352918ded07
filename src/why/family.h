/* Which processes belong together: jobs, as far as their parents and containers tell. */
#ifndef GP_WHY_FAMILY_H
#define GP_WHY_FAMILY_H

#include "model/snapshot.h"

/* A number or a text of a process; 0 or "": unknown. */
static inline uint32_t gp_why_pid_of(const struct gp_process *process, enum gp_metric m)
{
    const struct gp_value *v = gp_process_value(process, m);
    return gp_value_is_present(v) && v->i > 0 ? (uint32_t)v->i : 0;
}

static inline const char *gp_why_text_of(const struct gp_process *process, enum gp_metric m)
{
    const struct gp_value *v = gp_process_value(process, m);
    return gp_value_is_present(v) ? v->s : "";
}

/* Identifies the job of a process: the pid of its first process, see proc/job.h, which samples and
 * recordings have. The tasks of a Slurm step have none in common, but a name: it is the hash of
 * that. */
uint64_t gp_why_job_of(const struct gp_process *process);

/* Whether this pid is the process or one of its ancestors. Of a recording, only the first process
 * of its job is known among these. */
bool gp_why_comes_from(const struct gp_snapshot *snapshot, const struct gp_process *process,
                       uint32_t pid);

#endif
