/* The calls of source/cuda.h, each with a deadline. A call that exceeds it leaves its thread stuck
 * in the driver: all further calls fail, and this process must terminate with _exit(). */
#ifndef GP_JOBS_CHECKPOINT_H
#define GP_JOBS_CHECKPOINT_H

#include "source/cuda.h"

/* Loads and initializes the driver, like gp_cuda_load(); GP_ETIMEOUT. */
int gp_checkpoint_open(const char *path, uint64_t timeout_ns, struct gp_err *err) GP_MUST_CHECK;

int gp_checkpoint_get_state(int64_t pid, uint64_t timeout_ns, enum gp_cuda_state *ret,
                            struct gp_err *err) GP_MUST_CHECK;

/* GP_EDRIVER has the driver's answer; GP_ETIMEOUT. A process whose lock times out runs on: the
 * driver gives up the lock. */
int gp_checkpoint_do(enum gp_cuda_call call, int64_t pid, uint64_t timeout_ns,
                     struct gp_err *err) GP_MUST_CHECK;

/* Whether a thread is stuck in the driver. */
bool gp_checkpoint_is_stuck(void);

#endif
