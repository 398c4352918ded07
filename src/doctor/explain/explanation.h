/* Output of explanations. */
#ifndef GP_DOCTOR_EXPLAIN_EXPLANATION_H
#define GP_DOCTOR_EXPLAIN_EXPLANATION_H

#include "doctor/explain/explain.h"

#include <jansson.h>

struct gp_exam;
struct gp_known_errors;
struct gp_strbuf;

/* A heading, and an indented line for each part that is known. */
void gp_doctor_add_explanation(struct gp_strbuf *sb, const struct gp_explanation *e,
                               bool has_source);

/* A line as read, sanitized, and a newline. */
void gp_doctor_add_line(struct gp_strbuf *sb, const char *line);

/* NULL: out of memory. Without what the machine shows. */
json_t *gp_doctor_explanation_json(const struct gp_explanation *e, const char *line);

/* Several errors: their explanations, or that there are none, and what to check first; the document
 * gpulse.doctor.explain/1 and a newline. The exam is from gp_look_for(), or NULL. */
void gp_known_errors_add_text(struct gp_strbuf *sb, const struct gp_known_errors *errors,
                              const struct gp_exam *exam, bool has_sources);
void gp_known_errors_add_json(struct gp_strbuf *sb, const struct gp_known_errors *errors,
                              const struct gp_exam *exam);

/* How many entries each family has. */
void gp_explain_add_stats_text(struct gp_strbuf *sb);
void gp_explain_add_stats_json(struct gp_strbuf *sb);

#endif
