/* The report of gpulse fit-batch, as text and as JSON (gpulse.fit/1, docs/schema.md). */
#ifndef GP_CMD_FIT_REPORT_H
#define GP_CMD_FIT_REPORT_H

#include "jobs/fit.h"

/* Prints it. GP_EFAIL: there is no result, with the reason; GP_EPARTIAL: it is uncertain;
 * GP_EIO. */
int gp_fit_report(const struct gp_fit *fit, const char *format, bool quiet,
                  struct gp_err *err) GP_MUST_CHECK;

#endif
