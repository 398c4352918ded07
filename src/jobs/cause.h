/* Why a program ran out of memory, judged from the numbers in its message and from what the GPU
 * showed at that moment; and the sentences that explain it. The rules are in cause.c, the words in
 * cause.def. */
#ifndef GP_JOBS_CAUSE_H
#define GP_JOBS_CAUSE_H

#include "base/util.h"

struct gp_failure;
struct gp_strbuf;

enum gp_cause {
    GP_CAUSE_NONE,       /* not a failure */
    GP_CAUSE_BY_NUMBERS, /* not judged yet; EITHER likewise, if the numbers are a GPU's */
#define CAUSE(id, ...) GP_CAUSE_##id,
#include "jobs/cause.def"
#undef CAUSE
    GP_CAUSE__COUNT
};

struct gp_causes {
    enum gp_cause items[GP_CAUSE__COUNT]; /* the most important cause comes first */
    size_t count;
};

/* Judges the failure. Finds the program itself among the other processes, and removes it from
 * them. */
struct gp_causes gp_causes_of(struct gp_failure *f);

/* "too-big" */
const char *gp_cause_word(enum gp_cause cause);

/* Append the sentence with the reason and the one with the remedy, without a full stop. The second
 * may be empty. */
void gp_cause_add_why(struct gp_strbuf *sb, enum gp_cause cause, const struct gp_failure *f);
void gp_cause_add_next(struct gp_strbuf *sb, enum gp_cause cause, const struct gp_failure *f);

#endif
