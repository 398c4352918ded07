/* Which processes are one job, as far as their parents tell. */
#ifndef GP_PROC_JOB_H
#define GP_PROC_JOB_H

#include "proc/proc.h"

/* The pid of the first process of a job: the farthest ancestor of this process that no shell, login
 * or the like is above of; itself if its parent is one, or not visible. Needs GP_PROC_STAT,
 * GP_PROC_COMMAND and GP_PROC_ANCESTORS. */
uint32_t gp_proc_job(const struct gp_proc_infos *infos, uint32_t pid);

#endif
