/* The result of a search for a batch size, as text and as JSON (gpulse.fit/1, docs/schema.md). Pure
 * functions. */
#ifndef GP_JOBS_FIT_REPORT_H
#define GP_JOBS_FIT_REPORT_H

#include "base/util.h"

struct gp_err;
struct gp_fit;
struct gp_strbuf;

void gp_fit_add_text(struct gp_strbuf *sb, const struct gp_fit *fit);

/* One line, for scripts that read line by line. */
void gp_fit_add_json(struct gp_strbuf *sb, const struct gp_fit *fit);

/* GP_EFAIL: there is no result, with the reason; GP_EPARTIAL: it is uncertain. */
int gp_fit_explain_end(const struct gp_fit *fit, struct gp_err *err) GP_MUST_CHECK;

#endif
