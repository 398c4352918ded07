#include "bench/observation.h"

#include <math.h>

/* Adds a number to a mean. */
static void add(double *sum, unsigned *count, double value)
{
    if (isnan(value))
        return;
    *sum += value;
    (*count)++;
}

void gp_bench_sum_add(struct gp_bench_sum *sum, const struct gp_bench_observation *o)
{
    struct gp_bench_conditions *c = &sum->c;
    if (c->samples++ == 0) {
        sum->first_corrected = o->ecc_corrected;
        sum->first_uncorrected = o->ecc_uncorrected;
    }
    c->limits |= o->limits;
    if (o->other_pid)
        c->other_pid = o->other_pid;
    if (!isnan(o->celsius))
        c->celsius = fmax(c->celsius, o->celsius);
    if (o->ecc_corrected > sum->first_corrected)
        c->ecc_corrected = o->ecc_corrected - sum->first_corrected;
    if (o->ecc_uncorrected > sum->first_uncorrected)
        c->ecc_uncorrected = o->ecc_uncorrected - sum->first_uncorrected;
    if (!isnan(o->clock_max_mhz))
        c->clock_max_mhz = o->clock_max_mhz;
    if (!isnan(o->clock_mhz) && (sum->clocks == 0 || o->clock_mhz < c->clock_least_mhz))
        c->clock_least_mhz = o->clock_mhz;
    add(&c->clock_mhz, &sum->clocks, o->clock_mhz);
    add(&c->watts, &sum->watts, o->watts);
}

struct gp_bench_conditions gp_bench_sum_mean(const struct gp_bench_sum *sum)
{
    struct gp_bench_conditions c = sum->c;
    c.is_known = c.samples > 0;
    if (sum->clocks > 0)
        c.clock_mhz /= sum->clocks;
    if (sum->watts > 0)
        c.watts /= sum->watts;
    return c;
}
