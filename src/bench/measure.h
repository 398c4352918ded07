/* Measures how long something takes: until it is steady, then several times. */
#ifndef GP_BENCH_MEASURE_H
#define GP_BENCH_MEASURE_H

#include "bench/device.h"
#include "bench/stats.h"

struct gp_bench_pace {
    uint64_t warm_ns;   /* of warm-up before the measurement, at least */
    uint64_t block_ns;  /* what is shorter is repeated, and timed together */
    size_t runs;        /* of blocks, at least GP_BENCH_RUNS_LEAST */
    uint64_t most_ns;   /* fewer runs, but at least those, if they would take longer */
    uint64_t answer_ns; /* how long a GPU may take for what is waited for */
    bool (*is_cancelled)(void);
};

enum { GP_BENCH_RUNS_LEAST = 5 };

struct gp_bench_work {
    struct gp_bench_device *device; /* that it is enqueued to; NULL: run() does all */
    int (*run)(void *context, struct gp_err *err);
    void *context;
};

struct gp_bench_timing {
    struct gp_bench_stats ns;  /* of one call of run() */
    bool by_device;            /* timed by the device's clock */
    double host_ratio;         /* the time that passed here, in units of that; 0: not known */
    uint64_t begin_ns, end_ns; /* of the measurement, monotonic */
    bool is_steady; /* the last blocks of the warm-up, or if these are few the measured ones,
                       differed by less than 1 % */
};

/* GP_EINTR: cancelled; or an error of the work. */
int gp_bench_measure(const struct gp_bench_work *work, const struct gp_bench_pace *pace,
                     struct gp_bench_timing *ret, struct gp_err *err) GP_MUST_CHECK;

/* amount / time: the rate for something that is `amount` per call, per nanosecond. */
struct gp_bench_stats gp_bench_rate(const struct gp_bench_stats *ns, double amount);
/* The times in units of `unit_ns`. */
struct gp_bench_stats gp_bench_times(const struct gp_bench_stats *ns, double unit_ns);

#endif
