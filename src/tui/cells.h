/* The picture of a screen before it goes to the terminal: a grid of cells, drawn into through boxes
 * that clip. Knows no terminal, so that tests compare pictures as text. */
#ifndef GP_TUI_CELLS_H
#define GP_TUI_CELLS_H

#include "base/util.h"

struct gp_strbuf;

/* What a cell means; theme.h says how that looks. */
enum gp_ink {
    GP_INK_PLAIN,
    GP_INK_STRONG,
    GP_INK_DIM,
    GP_INK_TITLE, /* lines between areas, headings of columns */
    GP_INK_LOW,
    GP_INK_MEDIUM,
    GP_INK_HIGH,
    GP_INK_CRITICAL,
    GP_INK_STALE, /* old, or not known */
    GP_INK_SELECTED,
    GP_INK_TAGGED,
    GP_INK_KEY,
    GP_INK__COUNT,
};

struct gp_cell {
    uint32_t cp; /* 0: the right half of the wide character before it */
    uint32_t ink;
};

struct gp_cells {
    int w, h;
    struct gp_cell *cells; /* row after row */
};

/* An empty picture of this size, at least 1×1. GP_ENOMEM leaves the old one as it was. */
int gp_cells_resize(struct gp_cells *cells, int w, int h) GP_MUST_CHECK;
void gp_cells_clear(struct gp_cells *cells);
void gp_cells_fini(struct gp_cells *cells);

/* Appends the picture as lines of text, without the blanks at their ends. */
void gp_cells_text(struct gp_strbuf *sb, const struct gp_cells *cells);

/* What stands for a character where only ASCII can be shown. */
uint32_t gp_cell_ascii(uint32_t cp);

/* A part of the picture: what is drawn outside of it is not drawn. */
struct gp_box {
    struct gp_cells *cells;
    int x, y, w, h;
};

/* The part of a box that lies at x, y in it, cut to what the box has. */
struct gp_box gp_box_part(const struct gp_box *box, int x, int y, int w, int h);

/* Draws safe UTF-8; returns the column behind it. */
int gp_draw(const struct gp_box *box, int x, int y, enum gp_ink ink, const char *text);
int gp_drawf(const struct gp_box *box, int x, int y, enum gp_ink ink, const char *fmt, ...)
    GP_PRINTF(5, 6);

/* In w columns: a longer text is cut ("…"), a shorter one stands at the left or the right. */
void gp_draw_left(const struct gp_box *box, int x, int y, int w, enum gp_ink ink, const char *text);
void gp_draw_right(const struct gp_box *box, int x, int y, int w, enum gp_ink ink,
                   const char *text);

/* Text over as many lines as it needs, broken at blanks, from y on; what does not fit into the box
 * ends in an ellipsis. Returns the line behind it. */
int gp_draw_wrapped(const struct gp_box *box, int y, enum gp_ink ink, const char *text);

/* The same character w times. */
void gp_draw_fill(const struct gp_box *box, int x, int y, int w, enum gp_ink ink, uint32_t cp);

/* Another ink for a whole row of the box. */
void gp_draw_ink(const struct gp_box *box, int y, enum gp_ink ink);

#endif
