/* The doctor's report, as text and JSON. */
#ifndef GP_DOCTOR_REPORT_H
#define GP_DOCTOR_REPORT_H

#include "base/util.h"

#include <jansson.h>

struct gp_check_list;
struct gp_exam;
struct gp_finding;
struct gp_strbuf;

/* Texts that may quote a file or a line: without control characters, in valid UTF-8. */
void gp_doctor_add_safe(struct gp_strbuf *sb, const char *text);

/* Ends the line with a text, wrapped if space is limited. The cursor is at column `indent`, where
 * continuation lines start. */
void gp_doctor_add_prose(struct gp_strbuf *sb, const char *text, size_t indent);

/* "BEFORE: TEXT", or one of them, in the same way. */
void gp_doctor_add_pair(struct gp_strbuf *sb, const char *before, const char *text, size_t indent);

/* Indented: a label of that width and a text, or the commands that fix a finding. */
void gp_doctor_add_labeled(struct gp_strbuf *sb, const char *label, size_t width, const char *text);
void gp_doctor_add_fixes(struct gp_strbuf *sb, const struct gp_finding *finding, const char *label,
                         size_t width);

json_t *gp_doctor_json_text(const char *text);
json_t *gp_doctor_json_text_or_null(const char *text); /* null for "" and NULL */

/* The evidence of a finding, `where` is the name of the member for its origin, and its fixes. */
json_t *gp_doctor_json_evidence(const struct gp_finding *finding, const char *where);
json_t *gp_doctor_json_fixes(const struct gp_finding *finding);

/* What a command needs to be about the examined machine: " --root DIR"; "": this one. */
const char *gp_doctor_machine_option(const struct gp_exam *exam);

/* If a copy of a machine or a simulated one was examined: that what is typed is for that one. */
void gp_doctor_add_whose(struct gp_strbuf *sb, const struct gp_exam *exam);

/* A line about the tables of facts if they are old, or not those that are built in; nothing
 * otherwise. */
void gp_doctor_add_tables(struct gp_strbuf *sb);
json_t *gp_doctor_json_tables(void);

void gp_doctor_add_text(struct gp_strbuf *sb, const struct gp_exam *exam, bool verbose,
                        bool in_color);
void gp_doctor_add_json(struct gp_strbuf *sb, const struct gp_exam *exam);

/* Appends the list of all checks. */
void gp_doctor_add_checks(struct gp_strbuf *sb, const struct gp_check_list *list);

#endif
