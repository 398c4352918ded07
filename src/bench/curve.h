/* matmul for people: a table and a chart. */
#ifndef GP_BENCH_CURVE_H
#define GP_BENCH_CURVE_H

#include "bench/bench.h"

struct gp_strbuf;

/* Appends a table by the number of rows, with the size from which on each GPU is faster
 * than the CPU, and a chart. Appends nothing if it was not measured. */
void gp_bench_add_curve(struct gp_strbuf *sb, const struct gp_bench *bench, size_t columns,
                        bool plain);
/* The chart as SVG; false: there is nothing to draw. */
bool gp_bench_add_curve_svg(struct gp_strbuf *sb, const struct gp_bench *bench);

#endif
