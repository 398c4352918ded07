/* What gpulse explain says of a log. */
#ifndef GP_CMD_EXPLAIN_LOG_H
#define GP_CMD_EXPLAIN_LOG_H

#include "base/util.h"

struct gp_doctor_options;
struct gp_err;

/* Whether a word is a log: "-", a file that exists or, if it is the `only` word, what looks like a
 * file's name. */
bool gp_explain_is_log(const char *word, bool only);

/* Explains the logs, "-" is standard input. Returns 1, the exit status, if nothing in them is
 * known. Call gp_failure_prepare() first. GP_EIO: one cannot be read. */
int gp_explain_logs(const struct gp_doctor_options *o, int count, char *const *paths,
                    struct gp_err *err) GP_MUST_CHECK;

#endif
