/* Whether two series of numbers differ beyond noise. Pure functions.
 *
 * Values of a GPU resemble those of the second before: a thousand of them may say no more than
 * twenty independent ones. So means of blocks are compared, each so long that it hardly depends on
 * the one before; the length follows from the values themselves. */
#ifndef GP_TAPE_COMPARE_H
#define GP_TAPE_COMPARE_H

#include "base/util.h"

enum {
    GP_COMPARE_BLOCKS_LEAST = 8, /* with fewer, nothing can be said */
    GP_COMPARE_BLOCK_TIMES = 4,  /* a block is this many autocorrelation times long */
    GP_COMPARE_BLOCKS_MOST = 40,
};

/* Values at equal distances in time. */
struct gp_compare_series {
    const double *values;
    size_t count;
};

/* The autocorrelation time: of how many values together each is worth one independent one. */
double gp_compare_memory(const struct gp_compare_series *series);

struct gp_compare_mean {
    double mean;
    double error;  /* its standard error */
    size_t block;  /* values in a block */
    size_t blocks; /* 0: there are too few values */
};

/* memory: the autocorrelation time; of two series that are compared, the longer one, because it is
 * easily underestimated. quantum: the steps in which the number is reported, such as 1 for whole
 * degrees; 0: none. A number that moves by less is not known better than that. */
struct gp_compare_mean gp_compare_mean_of(const struct gp_compare_series *series, double memory,
                                          double quantum);

/* The difference of two means, or the ratio of two rates. */
struct gp_compare_result {
    double p;         /* the chance of such a difference, or a larger one, by noise alone */
    double low, high; /* the 95 % confidence interval */
};

/* Welch's t-test: after − before. Both have blocks. */
struct gp_compare_result gp_compare_means(const struct gp_compare_mean *before,
                                          const struct gp_compare_mean *after);

/* Whether events are more or less frequent, if they happen independently of each other: the exact
 * conditional test of two Poisson counts, with the confidence interval of the rate after divided
 * by that before (Clopper-Pearson); `high` is infinite without events before. Times are positive.
 */
struct gp_compare_result gp_compare_counts(uint64_t before, double time_before, uint64_t after,
                                           double time_after);

/* Replaces each p by that which is to be compared with 5 %, so that the chance of any false alarm
 * among all of them is at most 5 % (Holm). False without memory. */
bool gp_compare_holm(double *p, size_t count) GP_MUST_CHECK;

#endif
