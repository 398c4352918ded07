/* Verdicts as text and as JSON. */
#ifndef GP_WHY_REPORT_H
#define GP_WHY_REPORT_H

#include "why/rules.h"

#include <jansson.h>

struct gp_strbuf;

/* A paragraph per GPU: what is wrong, what was seen, what to try, and what it would gain. */
void gp_why_report_add(struct gp_strbuf *sb, const struct gp_why_case *cases, size_t count,
                       size_t columns);

/* The document gpulse.why/1; indent 0: on one line. */
void gp_why_report_add_json(struct gp_strbuf *sb, const struct gp_snapshot *last,
                            const struct gp_why_case *cases, size_t count, size_t indent);

/* A verdict as in it. NULL without memory. */
json_t *gp_why_report_verdict(const struct gp_why_verdict *v);

/* The parts of both that other reports share: who uses the GPU, a verdict, "    seen  …", "    gain
 * …" (nothing if it is unknown), and the first members of a GPU's object (NULL without memory). */
void gp_why_report_add_title(struct gp_strbuf *sb, const struct gp_why_case *c);
void gp_why_report_add_verdict(struct gp_strbuf *sb, const struct gp_why_verdict *v,
                               size_t columns);
void gp_why_report_add_line(struct gp_strbuf *sb, const char *label, const char *text,
                            size_t columns);
void gp_why_report_add_gain(struct gp_strbuf *sb, double gain);
json_t *gp_why_report_case(const struct gp_why_case *c);

#endif
