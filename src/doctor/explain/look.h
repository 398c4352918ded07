/* What this machine shows of an error: the checks of the doctor that its explanation names. */
#ifndef GP_DOCTOR_EXPLAIN_LOOK_H
#define GP_DOCTOR_EXPLAIN_LOOK_H

#include "base/util.h"

#include <jansson.h>

struct gp_exam;
struct gp_known_error;
struct gp_known_errors;
struct gp_strbuf;

/* Examines the machine; the checks and groups in the comma list run even if one that they need
 * failed. NULL: it cannot. The exam belongs to the callee, until the next call. */
typedef const struct gp_exam *gp_look_at(void *context, const char *checks);

/* Looks for all of the errors at once, and for anything else. NULL: `look` is NULL, or it cannot.
 */
const struct gp_exam *gp_look_for(const struct gp_known_errors *errors, gp_look_at *look,
                                  void *context);

/* What the checks of an explanation, and those that show the very line, found: warnings and
 * failures with their fixes, or notes that it takes for its cause, after the failures that they
 * follow from; if there are none, how many passed, or what could not be looked at, and why; nothing
 * if the exam is NULL. */
void gp_look_add_text(struct gp_strbuf *sb, const struct gp_exam *exam,
                      const struct gp_known_error *known);

/* What the doctor would have fixed first, after errors of which none has a cause here, unless
 * everything works in spite of it; and for which machine the commands are. Nothing if the exam is
 * NULL. */
void gp_look_add_end(struct gp_strbuf *sb, const struct gp_exam *exam,
                     const struct gp_known_errors *errors);

/* An array of findings: of the explanation's checks, and the failures that they follow from; null:
 * nothing was looked at. */
json_t *gp_look_json(const struct gp_exam *exam, const struct gp_known_error *known);
/* What the doctor would have fixed first, likewise, or null. */
json_t *gp_look_first_json(const struct gp_exam *exam, const struct gp_known_errors *errors);

#endif
