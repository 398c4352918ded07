/* The last line of the main screen. */
#ifndef GP_TUI_WATCH_KEYS_H
#define GP_TUI_WATCH_KEYS_H

#include "tui/cells.h"

struct gp_ui;

/* Draws a message, if there is one, and the keys, as many as fit: those of the processes, or of the
 * GPUs; if a window is in front, the two keys that any window has. */
void gp_watch_draw_keys(struct gp_ui *ui, const struct gp_box *box);

#endif
