/* The doctor's report, as text and JSON. */
#ifndef GP_CMD_DOCTOR_VIEW_H
#define GP_CMD_DOCTOR_VIEW_H

#include "base/util.h"

#include <jansson.h>

struct gp_exam;
struct gp_strbuf;

/* Texts that may quote a file or a line: without control characters, in valid UTF-8. */
void gp_doctor_add_safe(struct gp_strbuf *sb, const char *text);
json_t *gp_doctor_json_text(const char *text);
json_t *gp_doctor_json_text_or_null(const char *text); /* null for "" and NULL */

void gp_doctor_add_text(struct gp_strbuf *sb, const struct gp_exam *exam, bool verbose,
                        bool in_color);
void gp_doctor_add_json(struct gp_strbuf *sb, const struct gp_exam *exam);

/* Appends the list of all checks. */
void gp_doctor_add_checks(struct gp_strbuf *sb);

#endif
