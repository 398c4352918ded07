/* What an error means, from a line that a program or the kernel printed. */
#ifndef GP_DOCTOR_EXPLAIN_EXPLAIN_LINE_H
#define GP_DOCTOR_EXPLAIN_EXPLAIN_LINE_H

#include "doctor/explain/explain.h"

struct gp_kmsg;

/* A line without its newline; false: not a known error. */
bool gp_explain_line(struct gp_arena *arena, const char *line, struct gp_explanation *ret);

/* A notable line of the kernel log; false: not a known error. */
bool gp_explain_kmsg(struct gp_arena *arena, const struct gp_kmsg *k, struct gp_explanation *ret);

#endif
