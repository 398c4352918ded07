/* The processes as a table on the screen. */
#ifndef GP_TUI_PROC_TABLE_H
#define GP_TUI_PROC_TABLE_H

#include "tui/hits.h"
#include "out/procs.h"

struct gp_proc_view {
    const struct gp_procs *procs;
    const struct gp_procs_options *options;
    const enum gp_proc_column *columns;
    size_t column_count;
    size_t first, chosen;  /* rows; `chosen` is marked */
    int scroll;            /* so many columns of the commands are not shown */
    bool has_focus;        /* the keys that move are for this table */
    const int64_t *tagged; /* pids */
    size_t tagged_count;
    struct gp_hits *hits; /* takes what can be clicked */
};

/* The title, the heading and rows from `first` on; returns the column behind the title. */
int gp_draw_procs(const struct gp_box *box, const struct gp_proc_view *view);

#endif
