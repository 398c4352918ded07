/* Advice: which version of a framework, CUDA or the driver fits a machine, and how to install it.
 * Advice is reported as findings of the exam: the summary is what to install, the fixes are the
 * commands, and the evidence gives details and the source of the table rows. */
#ifndef GP_DOCTOR_ADVISE_ADVISE_H
#define GP_DOCTOR_ADVISE_ADVISE_H

#include "doctor/advise/question.h"

struct gp_strbuf;

void gp_exam_advise(struct gp_exam *exam, enum gp_subject subject, const struct gp_client *client);

/* advice_report.c: append the findings as text, after the machine they are for, `has_sources`: with
 * the sources of facts; or as the document gpulse.advice/1 and a newline. */
void gp_advice_add_text(struct gp_strbuf *sb, const struct gp_exam *exam,
                        const struct gp_client *client, bool has_sources);
void gp_advice_add_json(struct gp_strbuf *sb, const struct gp_exam *exam,
                        const struct gp_client *client, enum gp_subject subject);

#endif
