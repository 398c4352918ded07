/* Output of explanations. */
#ifndef GP_DOCTOR_EXPLANATION_H
#define GP_DOCTOR_EXPLANATION_H

#include "doctor/explain.h"

#include <jansson.h>

struct gp_strbuf;

/* A heading, and an indented line for each part that is known. */
void gp_doctor_add_explanation(struct gp_strbuf *sb, const struct gp_explanation *e,
                               bool has_source);

/* A line as read, sanitized, and a newline. */
void gp_doctor_add_line(struct gp_strbuf *sb, const char *line);

/* NULL: out of memory. */
json_t *gp_doctor_explanation_json(const struct gp_explanation *e, const char *line);

#endif
