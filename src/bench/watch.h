/* Observes GPUs while they compute: a thread samples their driver. */
#ifndef GP_BENCH_WATCH_H
#define GP_BENCH_WATCH_H

#include "bench/bench.h"

struct gp_err;
struct gp_reserve;
struct gp_sampler;
struct gp_want;
struct gp_bench_log;
struct gp_bench_watch;

/* Adds what the sampler must collect. */
void gp_bench_watch_want(struct gp_want *want);

/* Starts the thread, which alone uses the sampler from now on. It also keeps the reservation (NULL:
 * none), and writes a log (NULL: none). The driver may not know the UUIDs of the devices.
 * GP_ENOMEM, GP_EFAIL. */
int gp_bench_watch_start(const struct gp_bench *bench, struct gp_sampler *sampler,
                         struct gp_reserve *reserve, struct gp_bench_log *log,
                         struct gp_bench_watch **ret, struct gp_err *err) GP_MUST_CHECK;

/* What these devices (a bit for each) measure from now on, for the log; the others do nothing. */
void gp_bench_watch_begin(struct gp_bench_watch *watch, uint64_t devices, const char *test,
                          const char *what);

/* What device i did between two times; of a period that is shorter than two samples, the samples
 * beside it. */
void gp_bench_watch_between(struct gp_bench_watch *watch, size_t i, uint64_t begin_ns,
                            uint64_t end_ns, struct gp_bench_conditions *ret);

/* What device i did since the last gp_bench_watch_mark(), however long ago that was. */
void gp_bench_watch_mark(struct gp_bench_watch *watch, size_t i);
void gp_bench_watch_since(struct gp_bench_watch *watch, size_t i, struct gp_bench_conditions *ret);

/* The temperature of device i, and how old it is. False: not known. */
bool gp_bench_watch_celsius(struct gp_bench_watch *watch, size_t i, double *ret_celsius,
                            uint64_t *ret_age_ns);

/* Why the reservation was lost; "": it was not. */
void gp_bench_watch_lost(struct gp_bench_watch *watch, char *ret, size_t size);

/* Stops the thread, which may wait for the driver; the sampler is the caller's again. What it saw
 * can still be asked for. NULL: does nothing; like the next. */
void gp_bench_watch_stop(struct gp_bench_watch *watch);
void gp_bench_watch_free(struct gp_bench_watch *watch);

#endif
