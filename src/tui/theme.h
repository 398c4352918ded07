/* Maps inks to colors: plain tables, independent of the terminal library. */
#ifndef GP_TUI_THEME_H
#define GP_TUI_THEME_H

#include "tui/cells.h"

/* In the order of GP_THEME_WORDS. */
enum gp_theme {
    GP_THEME_DEFAULT, /* dark or light, as the background of the terminal is */
    GP_THEME_DARK,
    GP_THEME_LIGHT,
    GP_THEME_TERMINAL, /* only the terminal's own 16 colors */
    GP_THEME_SAFE,     /* blue and orange, safe for color-blind users; on dark or light */
    GP_THEME_CONTRAST,
    GP_THEME_MONO,
    GP_THEME__COUNT,
};

#define GP_THEME_WORDS "default dark light terminal safe contrast mono"

enum gp_attr { GP_ATTR_BOLD = 1, GP_ATTR_REVERSE = 2, GP_ATTR_UNDERLINE = 4 };

/* A color: one of the terminal's 16 or 256, −1 for its default one, or 0xrrggbb with this flag. */
enum { GP_COLOR_RGB = 1 << 24 };

struct gp_look {
    int fg, bg;        /* colors */
    unsigned attrs;    /* enum gp_attr */
    short fg_of_8;     /* if there are only 8 colors */
    unsigned no_color; /* attributes if there are no colors */
};

/* The look of each ink, GP_INK__COUNT of them, on a dark or on a light background. */
const struct gp_look *gp_theme_looks(enum gp_theme theme, bool on_light);

/* Whether it looks different on a light background. */
bool gp_theme_asks(enum gp_theme theme);

/* Finds a theme by its word; false: there is none. */
bool gp_theme_find(const char *word, enum gp_theme *ret);

/* The nearest one of the 256 colors, and of the 8 colors. */
int gp_color_of_256(int color);
short gp_color_of_8(int color);

/* Reads the answer of a terminal that was asked for its background, "rgb:ffff/ffff/ffff" (xterm's
 * OSC 11). Returns false if it says nothing. */
bool gp_theme_read_background(const char *answer, bool *ret_light);

#endif
