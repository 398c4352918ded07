/* Why programs failed, from their logs or from the records of jobs, which also say how the jobs
 * ended. */
#ifndef GP_DOCTOR_EXPLAIN_EXPLAIN_RECORD_H
#define GP_DOCTOR_EXPLAIN_EXPLAIN_RECORD_H

#include "doctor/explain/explain_log.h"

/* Whether a word is a log or a record: "-", "last", a file that exists or, if it is the `only`
 * word, what looks like a file's name. */
bool gp_explain_is_log(const char *word, bool only);

/* Explains the logs, "-" is standard input, and passes the text on as it is found, or the document
 * gpulse.explain/1 at the end. "last", with N or alone, is the N-th newest record. *ret_found:
 * something in them is known. Call gp_failure_prepare() first. GP_EIO: one cannot be read;
 * GP_EUSAGE; or the error of `write`. */
int gp_explain_logs(const struct gp_explain_options *o, int count, char *const *words,
                    bool *ret_found, struct gp_err *err) GP_MUST_CHECK;

#endif
