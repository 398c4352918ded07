/* What the files of rules share. */
#ifndef GP_WHY_RULE_H
#define GP_WHY_RULE_H

#include "why/rules.h"

/* Percent of the time: a GPU that is busy for less of it waits a lot. */
#define GP_WHY_WAITS_BELOW 75.0

static inline bool gp_why_is_used(const struct gp_why_case *c)
{
    return gp_why_most(c, GP_WHY_UTILIZATION) > GP_WHY_HARDLY;
}

/* Whether a rule holds, and then the rest of its verdict. */
#define GP_WHY_RULE(id, word, title, group, holds)                                                 \
    bool gp_why_##holds(const struct gp_why_case *c, struct gp_why_verdict *v);
#include "why/rules.def"
#undef GP_WHY_RULE

#endif
