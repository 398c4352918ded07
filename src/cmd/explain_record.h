/* gpulse explain of logs, and of the jobs that gpulse run has recorded. */
#ifndef GP_CMD_EXPLAIN_RECORD_H
#define GP_CMD_EXPLAIN_RECORD_H

#include "base/util.h"

struct gp_doctor_options;
struct gp_err;

/* Whether a word is a log or a record: "-", "last", a file that exists or, if it is the `only`
 * word, what looks like a file's name. */
bool gp_explain_is_log(const char *word, bool only);

/* Explains the logs, "-" is standard input; "last", with N or alone, is the N-th newest record.
 * Returns 1, the exit status, if nothing in them is known. Call gp_failure_prepare() first. GP_EIO:
 * one cannot be read. */
int gp_explain_logs(const struct gp_doctor_options *o, int count, char *const *words,
                    struct gp_err *err) GP_MUST_CHECK;

/* Lists the jobs that are recorded, the newest first. GP_EIO: the output failed. */
int gp_explain_list(const struct gp_doctor_options *o, struct gp_err *err) GP_MUST_CHECK;

#endif
