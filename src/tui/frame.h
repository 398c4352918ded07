/* The frame of a wide screen: one around the GPUs and the processes, with walls between cards that
 * are side by side. */
#ifndef GP_TUI_FRAME_H
#define GP_TUI_FRAME_H

#include "tui/cells.h"

struct gp_layout;

/* A line from edge to edge, which walls join. */
void gp_draw_rule(const struct gp_box *box, int y);

/* Whether nothing but that line is in this row of the box. */
bool gp_rule_is_free(const struct gp_box *box, int y);

/* Draws the walls and the bottom around what has been drawn, if the layout has a frame. */
void gp_draw_frame(const struct gp_box *box, const struct gp_layout *layout);

#endif
