/* A window with lines of which one is chosen. */
#ifndef GP_TUI_MENU_H
#define GP_TUI_MENU_H

#include "tui/hits.h"

struct gp_menu {
    size_t count, chosen, first, height;
};

/* Another list: its first line is chosen. */
void gp_menu_open(struct gp_menu *menu, size_t count);

/* Moves; false if the key is another one. */
bool gp_menu_key(struct gp_menu *menu, int key, bool vi);

/* The lines: `add` appends one. */
void gp_menu_draw(struct gp_menu *menu, const struct gp_box *box, struct gp_hits *hits,
                  void (*draw)(const struct gp_box *line, size_t i, const void *ctx),
                  const void *ctx);

/* A window in the middle of the box, with a line around it; returns what is inside. */
struct gp_box gp_draw_window(const struct gp_box *box, int w, int h, const char *title);

#endif
