#include "bench/figure.h"

#include "base/strbuf.h"
#include "doctor/tables.h"

#include <math.h>

void gp_bench_add_number(struct gp_strbuf *sb, double value)
{
    int decimals = 0; /* three digits */
    for (double size = fabs(value); size < 99.95 && size > 0 && decimals < 8; size *= 10)
        decimals++;
    gp_strbuf_addf(sb, "%.*f", decimals, value);
}

void gp_bench_add_value(struct gp_strbuf *sb, const struct gp_bench_stats *stats)
{
    static const double wide = 50;
    double percent = 100 * gp_bench_spread(stats);
    if (percent > wide) {
        gp_bench_add_number(sb, stats->low);
        gp_strbuf_adds(sb, " to ");
        gp_bench_add_number(sb, stats->high);
        return;
    }
    gp_bench_add_number(sb, stats->median);
    gp_strbuf_addf(sb, " ± %.*f %%", percent < 0.95 ? 1 : 0, percent);
}

void gp_bench_add_limits(struct gp_strbuf *sb, uint64_t limits)
{
    const char *between = "";
    for (size_t i = 0; i < gp_throttle_reason_count; i++)
        if (limits & gp_throttle_reasons[i].mask) {
            gp_strbuf_addf(sb, "%s%s", between, gp_throttle_reasons[i].word);
            between = ";";
        }
}
