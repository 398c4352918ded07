/* Explanations from the rows of tables: what explain.c has for explain_line.c. */
#ifndef GP_DOCTOR_EXPLAIN_EXPLAIN_INTERNAL_H
#define GP_DOCTOR_EXPLAIN_EXPLAIN_INTERNAL_H

#include "doctor/explain/explain.h"

struct gp_error_entry;

extern const struct gp_explanation gp_explain_nothing;

/* A text in the arena; "" if there is no memory. */
const char *gp_explain_text(struct gp_arena *arena, const char *format, ...) GP_PRINTF(2, 3);

/* False if the table has no such row. */
bool gp_explain_xid(struct gp_arena *arena, unsigned code, struct gp_explanation *ret);
bool gp_explain_sxid(struct gp_arena *arena, unsigned code, struct gp_explanation *ret);

/* False if the entry is NULL. */
bool gp_explain_entry(const struct gp_error_entry *entry, struct gp_explanation *ret);

/* A line that is only the message of a shell: "Killed", "Segmentation fault (core dumped)". */
bool gp_explain_shell(struct gp_arena *arena, const char *line, struct gp_explanation *ret);

#endif
