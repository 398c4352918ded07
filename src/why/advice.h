/* What to change in a job that runs: pure functions of what was seen of it, of its verdicts, and of
 * its environment. */
#ifndef GP_WHY_ADVICE_H
#define GP_WHY_ADVICE_H

#include "why/rules.h"

enum gp_advice_id {
#define GP_ADVICE(id, word, title, fits) GP_ADVICE_##id,
#include "why/advice.def"
#undef GP_ADVICE
    GP_ADVICE__COUNT,
};

struct gp_advice_case {
    const struct gp_why_case *c;
    const struct gp_why_verdict *verdicts; /* from gp_why_judge() */
    size_t verdict_count;
    bool knows_environment;
    const char *const *environment; /* "NAME=VALUE" of its main process */
    size_t environment_count;
};

struct gp_advice {
    enum gp_advice_id id;
    enum gp_why_sure sure;
    double gain; /* upper limit of the speedup, such as 2.6; 0: unknown */
    char seen[GP_WHY_TEXT_SIZE];
    char change[GP_WHY_TEXT_SIZE]; /* a line of code, or a command */
};

const char *gp_advice_word(enum gp_advice_id id);
const char *gp_advice_title(enum gp_advice_id id);

/* Returns how many there are, possibly none. */
size_t gp_advice_find(const struct gp_advice_case *a, struct gp_advice ret[GP_ADVICE__COUNT]);

#endif
