/* Advice as text and as JSON. */
#ifndef GP_WHY_ADVICE_REPORT_H
#define GP_WHY_ADVICE_REPORT_H

#include "why/advice.h"

#include <jansson.h>

struct gp_strbuf;

/* A paragraph about a GPU: what to change, what was seen, and what it would gain. */
void gp_advice_report_add(struct gp_strbuf *sb, const struct gp_advice_case *a, size_t columns);

/* A GPU as in the document gpulse.advise/1. NULL without memory. */
json_t *gp_advice_report_object(const struct gp_advice_case *a);

#endif
