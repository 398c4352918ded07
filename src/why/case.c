#include "why/case.h"

#include <math.h>

static const double unknown = (double)NAN;

double gp_why_mean(const struct gp_why_case *c, enum gp_why_series series)
{
    const struct gp_why_values *v = &c->values[series];
    return v->count > 0 ? v->sum / v->count : unknown;
}

double gp_why_most(const struct gp_why_case *c, enum gp_why_series series)
{
    return c->values[series].count > 0 ? c->values[series].most : unknown;
}

double gp_why_growth(const struct gp_why_case *c, enum gp_why_series series)
{
    const struct gp_why_values *v = &c->values[series];
    return v->count > 1 ? v->last - v->first : unknown;
}

double gp_why_limited(const struct gp_why_case *c, enum gp_why_limit limit)
{
    return c->limit_samples > 0 ? (double)c->limited[limit] / c->limit_samples : unknown;
}

double gp_why_link_rate(const struct gp_why_case *c, enum gp_why_series gen,
                        enum gp_why_series width)
{
    static const double lane[] = {unknown, 0.25e9, 0.5e9, 0.985e9, 1.969e9, 3.938e9, 7.563e9};
    double known = gp_why_most(c, gen); /* an idle link is slower than it can be */
    size_t g = known >= 1 ? (size_t)known : 0;
    return g < GP_ARRAY_LEN(lane) ? lane[g] * gp_why_most(c, width) : unknown;
}

double gp_why_traffic(const struct gp_why_case *c)
{
    double rx = gp_why_mean(c, GP_WHY_PCIE_RX);
    double tx = gp_why_mean(c, GP_WHY_PCIE_TX);
    return tx > rx || !gp_why_is_known(rx) ? tx : rx;
}

double gp_why_link_share(const struct gp_why_case *c)
{
    return gp_why_traffic(c) / gp_why_link_rate(c, GP_WHY_PCIE_GEN, GP_WHY_PCIE_WIDTH);
}

double gp_why_power_share(const struct gp_why_case *c)
{
    return gp_why_mean(c, GP_WHY_POWER) / gp_why_mean(c, GP_WHY_POWER_LIMIT);
}

double gp_why_clock_share(const struct gp_why_case *c)
{
    return gp_why_mean(c, GP_WHY_CLOCK) / gp_why_mean(c, GP_WHY_CLOCK_MAX);
}

double gp_why_cpus(const struct gp_tasks_use *use)
{
    return use->quota > 0 && use->quota < use->allowed ? use->quota : use->allowed;
}

double gp_why_free_cpus(const struct gp_why_case *c)
{
    double online = gp_why_mean(c, GP_WHY_HOST_CPUS);
    double idle = online * (1 - gp_why_mean(c, GP_WHY_HOST_CPU) / 100);
    double left = gp_why_cpus(&c->job) - c->job.cpus;
    return idle < left ? idle : left;
}
