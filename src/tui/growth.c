#include "tui/growth.h"

enum {
    STEP_LEAST = 4, /* a step does at least this part of its share, */
    STEP_MOST = 3,  /* and at most this many times it */
    FORESIGHT = 4,  /* how far it is believed: this many times what was seen */
};

#define LEAST (1.0 / 200) /* of the total: a rise that counts */

static const unsigned steps_s[] = {5, 15, GP_GROWTH_LONGEST_S};

/* The lowest value of a step; below 0: nothing is known of it. */
static double trough_of(const float *values, unsigned step_s)
{
    double trough = -1;
    for (unsigned i = 0; i < step_s; i++)
        if (values[i] >= 0 && (trough < 0 || (double)values[i] < trough))
            trough = (double)values[i];
    return trough;
}

bool gp_growth_is_possible(const float *values)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(steps_s); i++)
        if (trough_of(values, steps_s[i]) > trough_of(values + steps_s[i], steps_s[i]))
            return true;
    return false;
}

/* False: nothing is known of a step, or of the beginning. */
static bool find_troughs(const float *values, unsigned step_s, double *ret)
{
    if (values[GP_GROWTH_STEPS * step_s - 1] < 0)
        return false;
    for (unsigned i = 0; i < GP_GROWTH_STEPS; i++) {
        ret[i] = trough_of(values + (size_t)i * step_s, step_s);
        if (ret[i] < 0)
            return false;
    }
    return true;
}

/* The newest first. */
static bool is_steady(const double *troughs, double total)
{
    const unsigned steps = GP_GROWTH_STEPS - 1;
    const double rise = troughs[0] - troughs[steps];
    const double latest = troughs[0] - troughs[steps / 2];
    const double share = rise / steps;
    if (rise < total * LEAST || latest < rise / 3)
        return false;
    for (unsigned i = 0; i < steps; i++) {
        const double step = troughs[i] - troughs[i + 1];
        if (step < share / STEP_LEAST || step > share * STEP_MOST)
            return false;
    }
    return true;
}

/* The highest value of the last step. */
static double peak_of(const float *values, unsigned step_s)
{
    float peak = values[0];
    for (unsigned i = 1; i < step_s; i++)
        peak = values[i] > peak ? values[i] : peak;
    return (double)peak;
}

/* Whether it was about as full before the later half of the rise. */
static bool was_there(const float *values, size_t count, unsigned step_s, double level)
{
    for (size_t i = (size_t)step_s * GP_GROWTH_STEPS / 2; i < count; i++)
        if ((double)values[i] >= level)
            return true;
    return false;
}

bool gp_growth_find(const float *values, size_t count, double total, bool is_at_work,
                    struct gp_growth *ret)
{
    double troughs[GP_GROWTH_STEPS];
    if (count < 1 || values[0] < 0)
        return false;
    for (size_t i = is_at_work ? 0 : 1; i < GP_ARRAY_LEN(steps_s); i++) {
        const unsigned for_s = GP_GROWTH_STEPS * steps_s[i];
        if (for_s > count || !find_troughs(values, steps_s[i], troughs))
            return false; /* a longer time is not known, either */
        const double rise = troughs[0] - troughs[GP_GROWTH_STEPS - 1];
        const double peak = peak_of(values, steps_s[i]);
        if (!is_steady(troughs, total) || peak - troughs[0] > rise / 2 ||
            was_there(values, count, steps_s[i], peak - rise / 8))
            continue;
        const double per_s = rise / (for_s - (double)steps_s[i]);
        *ret = (struct gp_growth){per_s, (total - (double)values[0]) / per_s, for_s};
        if (ret->full_s <= FORESIGHT * (double)for_s)
            return true;
    }
    return false;
}
