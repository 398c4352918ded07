/* How inks look: tables of colours, without a word about the terminal's library. */
#ifndef GP_TUI_THEME_H
#define GP_TUI_THEME_H

#include "tui/cells.h"

/* In the order of GP_THEME_WORDS. */
enum gp_theme {
    GP_THEME_DEFAULT,
    GP_THEME_MONO,
    GP_THEME_LIGHT,
    GP_THEME_SAFE, /* blue and orange: told apart by colour-blind eyes */
    GP_THEME_CONTRAST,
    GP_THEME__COUNT,
};

#define GP_THEME_WORDS "default mono light safe contrast"

enum gp_attr { GP_ATTR_BOLD = 1, GP_ATTR_REVERSE = 2, GP_ATTR_UNDERLINE = 4 };

struct gp_look {
    short fg, bg;      /* of the terminal's 16 or 256 colours; −1: its own */
    unsigned attrs;    /* enum gp_attr */
    short fg_of_8;     /* where there are only 8 */
    unsigned no_color; /* attrs where there is no colour at all */
};

/* The look of each ink, GP_INK__COUNT of them. */
const struct gp_look *gp_theme_looks(enum gp_theme theme);

#endif
