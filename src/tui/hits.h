/* What lies where on the screen, for the mouse: drawing notes it, a click looks it up. */
#ifndef GP_TUI_HITS_H
#define GP_TUI_HITS_H

#include "tui/cells.h"

enum gp_hit_kind {
    GP_HIT_NONE,
    GP_HIT_GPU,    /* value: row of the snapshot's devices */
    GP_HIT_ROW,    /* value: row of the processes */
    GP_HIT_COLUMN, /* value: enum gp_proc_column, of the heading */
    GP_HIT_ACTION, /* value: enum gp_action, of the bar of keys */
    GP_HIT_ITEM,   /* value: line of a menu */
};

struct gp_hit {
    enum gp_hit_kind kind;
    int x, y, w, h; /* on the screen */
    size_t value;
};

struct gp_hits {
    struct gp_hit hits[256]; /* what has no room cannot be clicked */
    size_t count;
};

/* A part of the box. */
void gp_hits_add(struct gp_hits *hits, const struct gp_box *part, enum gp_hit_kind kind,
                 size_t value);

/* What was drawn last at this place; its kind is GP_HIT_NONE if that is nothing. */
struct gp_hit gp_hits_find(const struct gp_hits *hits, int x, int y);

#endif
