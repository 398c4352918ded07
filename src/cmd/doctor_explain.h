/* How an explanation is shown. */
#ifndef GP_CMD_DOCTOR_EXPLAIN_H
#define GP_CMD_DOCTOR_EXPLAIN_H

#include "doctor/explain.h"

#include <jansson.h>

struct gp_strbuf;

/* A heading, and an indented line for each thing there is to say. */
void gp_doctor_add_explanation(struct gp_strbuf *sb, const struct gp_explanation *e,
                               bool has_source);

/* A line as it was read, made safe, and a line end. */
void gp_doctor_add_line(struct gp_strbuf *sb, const char *line);

/* NULL without memory. */
json_t *gp_doctor_explanation_json(const struct gp_explanation *e, const char *line);

#endif
