/* The calls of source/cuda.h with a deadline each. One that is over leaves its thread in the
 * driver: all further calls fail, and this process must end with _exit(). */
#ifndef GP_JOBS_CHECKPOINT_H
#define GP_JOBS_CHECKPOINT_H

#include "source/cuda.h"

/* Loads and initializes it. As gp_cuda_load(); GP_ETIMEOUT. */
int gp_checkpoint_open(const char *path, uint64_t timeout_ns, struct gp_err *err) GP_MUST_CHECK;

int gp_checkpoint_get_state(int64_t pid, uint64_t timeout_ns, enum gp_cuda_state *ret,
                            struct gp_err *err) GP_MUST_CHECK;

/* GP_EDRIVER says what the driver answered; GP_ETIMEOUT. One whose lock is not had in time runs on:
 * the driver gives it up. */
int gp_checkpoint_do(enum gp_cuda_call call, int64_t pid, uint64_t timeout_ns,
                     struct gp_err *err) GP_MUST_CHECK;

/* Whether a thread is in the driver for good. */
bool gp_checkpoint_is_stuck(void);

#endif
