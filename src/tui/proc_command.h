/* The column of commands: in a tree with its branches, and with what is folded. */
#ifndef GP_TUI_PROC_COMMAND_H
#define GP_TUI_PROC_COMMAND_H

#include "tui/cells.h"

struct gp_proc_view;

/* Draws the command of a row. `has_gpus`: all of its GPUs are in their column. */
void gp_draw_command(const struct gp_box *part, const struct gp_proc_view *view, size_t at,
                     enum gp_ink ink, bool has_gpus);

#endif
