/* Why a program found no memory, judged by the numbers in what it said and by what the GPU showed
 * at that moment; and the sentences for it. The rules are in cause.c, the words in cause.def.
 */
#ifndef GP_JOBS_CAUSE_H
#define GP_JOBS_CAUSE_H

#include "base/util.h"

struct gp_failure;
struct gp_strbuf;

enum gp_cause {
    GP_CAUSE_NONE,       /* it is no failure */
    GP_CAUSE_BY_NUMBERS, /* to be judged */
#define CAUSE(id, ...) GP_CAUSE_##id,
#include "jobs/cause.def"
#undef CAUSE
    GP_CAUSE__COUNT
};

struct gp_causes {
    enum gp_cause items[GP_CAUSE__COUNT]; /* what is to be told first comes first */
    size_t count;
};

/* Judges. Finds out which of the others is the program itself, and takes it from the others. */
struct gp_causes gp_causes_of(struct gp_failure *f);

/* "too-big" */
const char *gp_cause_word(enum gp_cause cause);

/* Append the sentence that says why, and the one that says what helps: without a full stop, the
 * second may be nothing. */
void gp_cause_add_why(struct gp_strbuf *sb, enum gp_cause cause, const struct gp_failure *f);
void gp_cause_add_next(struct gp_strbuf *sb, enum gp_cause cause, const struct gp_failure *f);

#endif
