/* The columns of processes on the screen: those of every list, and one that only the screen has. */
#ifndef GP_TUI_TOP_COLUMNS_H
#define GP_TUI_TOP_COLUMNS_H

#include "out/procs.h"

enum { GP_TOP_PAST_COLUMN = GP_PROC_COLUMN__COUNT, GP_TOP_COLUMNS };

/* Like gp_proc_columns_parse(), into at most GP_TOP_COLUMNS, with "cpu_past" as well. */
int gp_top_columns_parse(const char *text, enum gp_proc_column *ret, size_t *ret_count,
                         struct gp_err *err) GP_MUST_CHECK;
/* Like gp_proc_columns_add_help(). */
void gp_top_columns_add_help(struct gp_strbuf *sb);

#endif
