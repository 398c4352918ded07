/* The record of a job, for gpulse diff. */
#ifndef GP_CMD_DIFF_JOB_H
#define GP_CMD_DIFF_JOB_H

#include "tape/diff_side.h"

struct gp_err;

/* Reads the record in a directory into a side, which is freed by the caller. GP_EIO: it is none;
 * GP_ENOMEM. */
int gp_diff_job(const char *folder, struct gp_diff_side *ret, struct gp_err *err) GP_MUST_CHECK;

#endif
