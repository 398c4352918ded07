/* Sees to it that a job does not outlive its supervisor: a small process that ends all that has the
 * job's mark in its environment as soon as the supervisor is gone without a word. */
#ifndef GP_JOBS_GUARD_H
#define GP_JOBS_GUARD_H

#include "base/util.h"

#include <sys/types.h>

struct gp_err;

enum { GP_GUARD_MARK_SIZE = 64 };

/* In it the job has its mark, behind a colon if it was started by another one that has one. */
#define GP_GUARD_VARIABLE "GPULSE_JOB"

struct gp_guard {
    pid_t pid;
    int fd; /* as long as it is open somebody watches */
};

/* Starts it; to be called before the first thread. `mark` is a word that no other job has. What has
 * not its environment from the job, as behind sudo or env -i, is not found. GP_EFAIL. */
int gp_guard_start(struct gp_guard *guard, const char *mark, struct gp_err *err) GP_MUST_CHECK;

/* Sends it home: nothing of the job is left, or what is left may stay. */
void gp_guard_dismiss(struct gp_guard *guard);

#endif
