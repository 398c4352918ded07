/* The bytes that make a terminal show a frame, from what changed in it. Curses would compare the
 * frames once more, and weigh ways to move the cursor, which takes longer than everything else
 * here. Independent of the terminal, so that tests can compare bytes. */
#ifndef GP_TUI_PAINT_H
#define GP_TUI_PAINT_H

#include "tui/cells.h"

struct gp_strbuf;

enum { GP_LOOK_SIZE = 64 };

struct gp_ink_look {
    char
        start[GP_LOOK_SIZE]; /* what starts it after a reset; empty: the look of an erased screen */
    bool replaces;           /* one that replaces follows another one without a reset */
};

struct gp_palette {
    struct gp_ink_look inks[GP_INK__COUNT];
    char reset[GP_LOOK_SIZE]; /* back to the look of an erased screen */
    /* Appends what moves the cursor. NULL: as ECMA-48 has it. */
    void (*place)(struct gp_strbuf *sb, int x, int y);
    bool ascii;         /* it shows nothing else */
    bool is_console;    /* its font has no dots, and few blocks */
    bool spares_corner; /* a character in the last cell would scroll the screen */
};

/* Appends what changes the terminal from `shown` to `frame`, which have the same size, and makes
 * them equal. Before and after, the look is that of an erased screen. Returns the number of changed
 * cells; if it is 0, nothing was appended. */
size_t gp_paint(struct gp_strbuf *sb, const struct gp_palette *palette, struct gp_cells *shown,
                const struct gp_cells *frame);

#endif
