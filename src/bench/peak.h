/* What the data sheet of a GPU model says. */
#ifndef GP_BENCH_PEAK_H
#define GP_BENCH_PEAK_H

#include "bench/bench.h"

/* The model with this name, as its driver reports it; NULL: unknown. */
const struct gp_card *gp_bench_card_of(const char *name);

/* TFLOP/s (TOP/s) without sparsity; 0: unknown. `card` may be NULL. */
double gp_bench_peak_of(const struct gp_card *card, enum gp_bench_precision precision);
/* GB/s; 0: unknown. */
double gp_bench_bandwidth_of(const struct gp_card *card);

/* The first, at this clock; 0: unknown. */
double gp_bench_peak_at(const struct gp_card *card, enum gp_bench_precision precision,
                        double clock_mhz);

#endif
