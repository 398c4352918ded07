/* Clickable areas: drawing adds them, a click looks them up. */
#ifndef GP_TUI_HITS_H
#define GP_TUI_HITS_H

#include "tui/cells.h"

enum gp_hit_kind {
    GP_HIT_NONE,
    GP_HIT_GPU,    /* value: row of the snapshot's devices */
    GP_HIT_ROW,    /* value: row of the processes */
    GP_HIT_FOLD,   /* value: row of the processes, at its mark */
    GP_HIT_COLUMN, /* value: enum gp_proc_column, of the heading */
    GP_HIT_ACTION, /* value: enum gp_action, in the bar of keys */
    GP_HIT_ITEM,   /* value: line of a menu */
    GP_HIT_TIME,   /* the timeline of a recording */
};

struct gp_hit {
    enum gp_hit_kind kind;
    int x, y, w, h; /* screen coordinates */
    size_t value;
};

struct gp_hits {
    struct gp_hit hits[256]; /* areas in excess of this are not clickable */
    size_t count;
};

/* Adds an area of the box. */
void gp_hits_add(struct gp_hits *hits, const struct gp_box *part, enum gp_hit_kind kind,
                 size_t value);

/* The topmost area at this place; its kind is GP_HIT_NONE if there is none. */
struct gp_hit gp_hits_find(const struct gp_hits *hits, int x, int y);

#endif
