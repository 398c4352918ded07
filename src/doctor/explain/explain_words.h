/* Explains what a user types instead of a log: a code, or lines of a message. */
#ifndef GP_DOCTOR_EXPLAIN_EXPLAIN_WORDS_H
#define GP_DOCTOR_EXPLAIN_EXPLAIN_WORDS_H

#include "base/util.h"

struct gp_err;
struct gp_known_errors;

/* GP_EUSAGE: no words, a topic without an entry, or a number without a topic. */
int gp_explain_check_words(int count, char *const *words, struct gp_err *err) GP_MUST_CHECK;

/* Adds the errors in these words, which are one code, such as "xid 79" or "SIGKILL", or a text. The
 * caller frees `errors`, whatever is returned. Call gp_failure_prepare() first. GP_EFAIL: the topic
 * has no such code; GP_ETOOBIG. */
int gp_explain_words(struct gp_known_errors *errors, int count, char *const *words,
                     struct gp_err *err) GP_MUST_CHECK;

#endif
