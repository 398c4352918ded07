/* Measured values as text. */
#ifndef GP_BENCH_FIGURE_H
#define GP_BENCH_FIGURE_H

#include "bench/stats.h"

struct gp_strbuf;

/* Appends three digits: "1234", "12.3", "0.00123". */
void gp_bench_add_number(struct gp_strbuf *sb, double value);
/* Appends the median and its error, "12.3 ± 2 %"; or only the interval, if that is wide: "2.1 to
 * 36.0". */
void gp_bench_add_value(struct gp_strbuf *sb, const struct gp_bench_stats *stats);
/* Appends what limited the clocks, from bits of NVML: "sw_power_cap;hw_slowdown". */
void gp_bench_add_limits(struct gp_strbuf *sb, uint64_t limits);

#endif
