#include "bench/stats.h"

#include <math.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The rank (from 0) of the lower end of the interval of the median, by the binomial distribution
 * with p = 1/2: the largest k such that P(X < k) <= 2.5 %. The ends are the kth smallest and the
 * kth largest value. */
static size_t rank_of(size_t count)
{
    double probability = pow(0.5, (double)count); /* P(X = 0) */
    double below = 0;
    size_t k = 0;
    while (k < count / 2 && below + probability <= 0.025) {
        below += probability;
        probability *= (double)(count - k) / (double)(k + 1);
        k++;
    }
    return k > 0 ? k - 1 : 0;
}

struct gp_bench_stats gp_bench_stats_of(double *values, size_t count)
{
    if (count == 0)
        return (struct gp_bench_stats){0};
    qsort(values, count, sizeof(*values), compare);
    size_t k = rank_of(count);
    return (struct gp_bench_stats){
        .count = count,
        .median = count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2,
        .min = values[0],
        .max = values[count - 1],
        .low = values[k],
        .high = values[count - 1 - k],
    };
}

double gp_bench_spread(const struct gp_bench_stats *stats)
{
    return stats->median > 0 ? (stats->high - stats->low) / 2 / stats->median : 0;
}

enum gp_bench_change gp_bench_compare(const struct gp_bench_stats *earlier,
                                      const struct gp_bench_stats *now, double least)
{
    if (now->high < earlier->low && now->median <= earlier->median * (1 - least))
        return GP_BENCH_LOWER;
    if (now->low > earlier->high && now->median >= earlier->median * (1 + least))
        return GP_BENCH_HIGHER;
    return GP_BENCH_SAME;
}
