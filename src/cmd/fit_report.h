/* What gpulse fit-batch found, as text and as json (gpulse.fit/1, docs/schema.md). */
#ifndef GP_CMD_FIT_REPORT_H
#define GP_CMD_FIT_REPORT_H

#include "jobs/fit.h"

/* Prints it. GP_EFAIL: there is no answer, and why; GP_EPARTIAL: it is not certain; GP_EIO. */
int gp_fit_report(const struct gp_fit *fit, const char *format, bool quiet,
                  struct gp_err *err) GP_MUST_CHECK;

#endif
