/* The column of commands: in a tree with its branches, and with what is folded. */
#ifndef GP_TUI_PROC_COMMAND_H
#define GP_TUI_PROC_COMMAND_H

#include "tui/cells.h"

struct gp_proc_view;

/* Draws the command of a row; `gpus`: those that have no room in their column, or NULL. */
void gp_draw_command(const struct gp_box *part, const struct gp_proc_view *view, size_t at,
                     enum gp_ink ink, const char *gpus);

#endif
