/* A window with a list of lines to select from. */
#ifndef GP_TUI_MENU_H
#define GP_TUI_MENU_H

#include "tui/hits.h"

struct gp_menu {
    size_t count, chosen, first, height;
};

/* Starts a new list, with its first line selected. */
void gp_menu_open(struct gp_menu *menu, size_t count);

/* Handles movement keys; returns false for any other key. */
bool gp_menu_key(struct gp_menu *menu, int key, bool vi);

/* Draws the lines; `add` appends the text of one. */
void gp_menu_draw(struct gp_menu *menu, const struct gp_box *box, struct gp_hits *hits,
                  void (*draw)(const struct gp_box *line, size_t i, const void *ctx),
                  const void *ctx);

/* Draws a framed window in the middle of the box; returns its inside. */
struct gp_box gp_draw_window(const struct gp_box *box, int w, int h, const char *title);

#endif
