/* What a GPU's driver reports while it computes, and what many such observations say together. Pure
 * functions. */
#ifndef GP_BENCH_OBSERVATION_H
#define GP_BENCH_OBSERVATION_H

#include "bench/result.h"

struct gp_bench_observation {
    uint64_t mono_ns, wall_ns;
    double clock_mhz, clock_max_mhz, watts, celsius; /* NAN: unknown */
    double ecc_corrected, ecc_uncorrected;           /* since the driver was loaded; NAN: unknown */
    uint64_t limits;                                 /* of its clocks: bits of NVML, without idle */
    uint32_t other_pid;                              /* 0: none */
};

/* Zero-initialized, it is empty. */
struct gp_bench_sum {
    struct gp_bench_conditions c; /* with sums in place of the means */
    unsigned clocks, watts;       /* how many of these were known */
    double first_corrected, first_uncorrected;
};

void gp_bench_sum_add(struct gp_bench_sum *sum, const struct gp_bench_observation *o);
struct gp_bench_conditions gp_bench_sum_mean(const struct gp_bench_sum *sum);

#endif
