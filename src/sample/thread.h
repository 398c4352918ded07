/* Threads that call the driver: a small stack, and no signals. */
#ifndef GP_SAMPLE_THREAD_H
#define GP_SAMPLE_THREAD_H

#include "base/util.h"

#include <pthread.h>

/* 0 or GP_ENOMEM. */
int gp_thread_start(pthread_t *ret, void *(*main)(void *ctx), void *ctx) GP_MUST_CHECK;

/* A condition whose time-outs are monotonic moments. */
void gp_thread_cond_init(pthread_cond_t *cond);

#endif
