/* Threads that call the driver: a small stack, and no signals; and what is said when it does not
 * start on one. */
#ifndef GP_SAMPLE_THREAD_H
#define GP_SAMPLE_THREAD_H

#include "base/util.h"

#include <pthread.h>

struct gp_err;

/* 0 or GP_ENOMEM. */
int gp_thread_start(pthread_t *ret, void *(*main)(void *ctx), void *ctx) GP_MUST_CHECK;

/* A condition whose time-outs are monotonic moments. */
void gp_thread_cond_init(pthread_cond_t *cond);

/* Why the driver is of no use: it did not start in time (GP_ETIMEOUT), no thread could be had for
 * it (GP_ENOMEM), it has no GPU (GP_ENODEV). Returns the code. */
int gp_thread_no_start(int code, uint64_t timeout_ns, struct gp_err *err);

#endif
