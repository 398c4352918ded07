/* Why a GPU is not as fast as it could be: pure functions of what was seen. */
#ifndef GP_WHY_RULES_H
#define GP_WHY_RULES_H

#include "why/words.h"

enum gp_why_rule {
#define GP_WHY_RULE(id, word, title, group, holds) GP_WHY_RULE_##id,
#include "why/rules.def"
#undef GP_WHY_RULE
    GP_WHY_RULE__COUNT,
};

enum gp_why_sure { GP_WHY_POSSIBLE, GP_WHY_LIKELY, GP_WHY_CERTAIN };

/* A gain below this would be shown as 1.0: too little for an advice. */
#define GP_WHY_GAIN_LEAST 1.05

struct gp_why_verdict {
    enum gp_why_rule rule;
    enum gp_why_sure sure;
    double gain; /* upper limit of the speedup without it, such as 2.6; 0: unknown */
    char seen[GP_WHY_TEXT_SIZE];
    char advice[GP_WHY_TEXT_SIZE]; /* what to try first; "": nothing */
};

const char *gp_why_word(enum gp_why_rule rule);
const char *gp_why_title(enum gp_why_rule rule);
const char *gp_why_sure_word(enum gp_why_sure sure);

/* The verdicts in order, the most important first; returns their number. Of a GPU that has failed,
 * only that one: advice about speed would mislead. */
size_t gp_why_judge(const struct gp_why_case *c, struct gp_why_verdict ret[GP_WHY_RULE__COUNT]);

/* A sentence about a GPU for which no rule holds: what it did. */
void gp_why_nothing(const struct gp_why_case *c, char ret[GP_WHY_TEXT_SIZE]);

#endif
