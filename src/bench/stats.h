/* Statistics of repeated measurements. Pure functions. */
#ifndef GP_BENCH_STATS_H
#define GP_BENCH_STATS_H

#include "base/util.h"

enum { GP_BENCH_RUNS_MAX = 1000 };

struct gp_bench_stats {
    size_t count; /* of measurements; 0: none, and the rest is 0 */
    double median, min, max;
    double low, high; /* the interval that contains the true median with about 95 % confidence: of 5
                         measurements or fewer, from the smallest to the largest (94 % for 5) */
};

/* Sorts the values, at most GP_BENCH_RUNS_MAX. */
struct gp_bench_stats gp_bench_stats_of(double *values, size_t count);

/* Half the width of the interval, relative to the median: 0.01 is ±1 %. */
double gp_bench_spread(const struct gp_bench_stats *stats);

enum gp_bench_change { GP_BENCH_SAME, GP_BENCH_LOWER, GP_BENCH_HIGHER };

/* Compares medians. A difference counts only if it is at least `least` (0.03: 3 %) of the earlier
 * one, and the intervals do not overlap: noise is no change. */
enum gp_bench_change gp_bench_compare(const struct gp_bench_stats *earlier,
                                      const struct gp_bench_stats *now, double least);

#endif
