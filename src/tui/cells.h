/* The frame before it goes to the terminal: a grid of cells, drawn through clipping boxes. It is
 * independent of the terminal, so that tests can compare frames as text. */
#ifndef GP_TUI_CELLS_H
#define GP_TUI_CELLS_H

#include "base/util.h"

/* What a cell means; theme.h maps that to colors and attributes. */
enum gp_ink {
    GP_INK_PLAIN,
    GP_INK_STRONG,
    GP_INK_DIM,
    GP_INK_TITLE,  /* lines between areas, headings of columns */
    GP_INK_LOW,    /* a load, however high: work is no trouble */
    GP_INK_MEDIUM, /* worth a look: memory is held, and nothing runs */
    GP_INK_HIGH,   /* trouble: full, hot, slowed down */
    GP_INK_CRITICAL,
    GP_INK_STALE, /* stale or unknown */
    GP_INK_SELECTED,
    GP_INK_TAGGED,
    GP_INK_KEY,
    GP_INK_MEMORY, /* memory in use */
    GP_INK_PAUSED, /* what is shown is not what is now */
    GP_INK__COUNT,
};

/* In one word: a frame is drawn and compared in every tick. */
struct gp_cell {
    uint32_t cp : 24; /* 0: the right half of the preceding wide character */
    uint32_t ink : 8;
};

struct gp_cells {
    int w, h;
    struct gp_cell *cells; /* in row-major order */
};

/* Makes an empty frame of this size, at least 1×1. On GP_ENOMEM the old frame is unchanged. */
int gp_cells_resize(struct gp_cells *cells, int w, int h) GP_MUST_CHECK;
void gp_cells_clear(struct gp_cells *cells);
void gp_cells_fini(struct gp_cells *cells);

/* The replacement for a character where only ASCII can be shown. */
uint32_t gp_cell_ascii(uint32_t cp);

/* The replacement for one that the fonts of the Linux console lack: dots and eighths of blocks
 * become halves and whole ones. */
uint32_t gp_cell_console(uint32_t cp);

/* A rectangle of the frame. Drawing is clipped to it. */
struct gp_box {
    struct gp_cells *cells;
    int x, y, w, h;
};

/* The sub-rectangle at x, y, clipped to the box. */
struct gp_box gp_box_part(const struct gp_box *box, int x, int y, int w, int h);

/* Draws safe UTF-8; returns the column after it. */
int gp_draw(const struct gp_box *box, int x, int y, enum gp_ink ink, const char *text);
int gp_drawf(const struct gp_box *box, int x, int y, enum gp_ink ink, const char *fmt, ...)
    GP_PRINTF(5, 6);

/* Draws into w columns. Longer text is cut ("…"), shorter text is aligned left or right. */
void gp_draw_left(const struct gp_box *box, int x, int y, int w, enum gp_ink ink, const char *text);
void gp_draw_right(const struct gp_box *box, int x, int y, int w, enum gp_ink ink,
                   const char *text);

/* Draws text from line y on, wrapped at blanks. Text that does not fit into the box ends in an
 * ellipsis. Returns the line after it. */
int gp_draw_wrapped(const struct gp_box *box, int y, enum gp_ink ink, const char *text);

/* Draws the same character w times. */
void gp_draw_fill(const struct gp_box *box, int x, int y, int w, enum gp_ink ink, uint32_t cp);

/* Changes the ink of a row of the box, but for bars and graphs, whose inks mean something, unless
 * the row is selected, and for alarms, unless it is a mark for something else. */
void gp_draw_ink(const struct gp_box *box, int y, enum gp_ink ink);

#endif
