/* A job's process that uses other GPUs than those reserved for the job. */
#ifndef GP_JOBS_MISPLACED_H
#define GP_JOBS_MISPLACED_H

#include "base/util.h"

enum { GP_MISPLACED_SIZE = 400 };

/* Why it does, judged by its environment: a clause. `reserved`: the CUDA_VISIBLE_DEVICES of the
 * job. */
void gp_misplaced_reason(uint32_t pid, const char *reserved, char why[GP_MISPLACED_SIZE]);

#endif
