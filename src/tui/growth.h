/* Whether a GPU's memory will be full soon: a steady rise, and for how long it has been one.
 *
 * A job that loads a model, allocates one more block, or fills and frees a buffer repeatedly does
 * not rise steadily. So the lowest values of twelve steps in a row must each be above the one
 * before, by similar amounts; steps of 5, 15 and 45 s are tried, as leaks are slow or fast. What
 * was reached before does not count: a buffer fills up to the same height again. */
#ifndef GP_TUI_GROWTH_H
#define GP_TUI_GROWTH_H

#include "base/util.h"

enum {
    GP_GROWTH_STEPS = 12,
    GP_GROWTH_LONGEST_S = 45, /* a step */
    GP_GROWTH_S = GP_GROWTH_STEPS * GP_GROWTH_LONGEST_S,
    GP_GROWTH_LATEST_S = 2 * GP_GROWTH_LONGEST_S, /* two steps */
};

struct gp_growth {
    double per_s;   /* in the unit of the values */
    double full_s;  /* until it is full, at this rate; no more than four times for_s */
    unsigned for_s; /* how long it has risen, at least */
};

/* Whether there may be a rise, from its last two steps: most often there is none, and the earlier
 * values need not be read. values: as below, GP_GROWTH_LATEST_S of them. */
bool gp_growth_is_possible(const float *values);

/* values: one for each second, the newest first; below 0: unknown. `is_at_work`: whether the GPU
 * did anything meanwhile; if not, a rise is more likely a model that is being loaded, and takes
 * longer to be believed. False: no steady rise. */
bool gp_growth_find(const float *values, size_t count, double total, bool is_at_work,
                    struct gp_growth *ret) GP_MUST_CHECK;

#endif
