/* A comparison as text and JSON. */
#ifndef GP_TAPE_DIFF_REPORT_H
#define GP_TAPE_DIFF_REPORT_H

#include "tape/diff.h"

struct gp_strbuf;

/* all: also what did not change, or by too little. columns: of the output; 0: no limit. */
void gp_diff_report_add(struct gp_strbuf *sb, const struct gp_diff *diff, bool all, size_t columns);

/* Appends the document gpulse.diff/1 and a newline. */
void gp_diff_report_add_json(struct gp_strbuf *sb, const struct gp_diff *diff, bool all);

#endif
