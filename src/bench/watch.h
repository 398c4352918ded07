/* Observes GPUs while they compute: a thread samples their driver. */
#ifndef GP_BENCH_WATCH_H
#define GP_BENCH_WATCH_H

#include "bench/result.h"

struct gp_err;
struct gp_sampler;
struct gp_want;
struct gp_bench_watch;

/* Adds what the sampler must collect. */
void gp_bench_watch_want(struct gp_want *want);

/* Starts the thread, which alone uses the sampler from now on. uuids[i]: of device i; its driver
 * may not know it. GP_ENOMEM, GP_EFAIL. */
int gp_bench_watch_start(struct gp_sampler *sampler, const char *const *uuids, size_t count,
                         struct gp_bench_watch **ret, struct gp_err *err) GP_MUST_CHECK;

/* What device i did between two times; of a period that is shorter than two samples, the samples
 * beside it. */
void gp_bench_watch_between(struct gp_bench_watch *watch, size_t i, uint64_t begin_ns,
                            uint64_t end_ns, struct gp_bench_conditions *ret);

/* Stops the thread; the sampler is the caller's again. NULL: does nothing. */
void gp_bench_watch_stop(struct gp_bench_watch *watch);

#endif
