/* Threads that call the driver, with a small stack and all signals blocked; and the error messages
 * if the driver does not start. */
#ifndef GP_SAMPLE_THREAD_H
#define GP_SAMPLE_THREAD_H

#include "base/util.h"

#include <pthread.h>

struct gp_err;

/* 0 or GP_ENOMEM. */
int gp_thread_start(pthread_t *ret, void *(*main)(void *ctx), void *ctx) GP_MUST_CHECK;

/* Initializes a condition whose timeouts are monotonic times. */
void gp_thread_cond_init(pthread_cond_t *cond);

/* Sets the reason why the driver is unusable: it did not start in time (GP_ETIMEOUT), no thread
 * could be started (GP_ENOMEM), or it has no GPU (GP_ENODEV). Returns the code. */
int gp_thread_no_start(int code, uint64_t timeout_ns, struct gp_err *err);

#endif
