/* Chooses the columns of a table that fit, and places them. */
#ifndef GP_TUI_COLUMNS_H
#define GP_TUI_COLUMNS_H

#include "base/util.h"

struct gp_column {
    const char *title;
    int width; /* minimum */
    int rank;  /* columns of a higher rank are dropped first */
    int grows; /* share of the remaining room; 0: fixed width */
    bool left; /* text is left-aligned, numbers are right-aligned */
};

struct gp_column_place {
    int x, w; /* w is 0 if the column was dropped */
};

/* Places count columns within w, with one blank between them. */
void gp_columns_place(const struct gp_column *columns, size_t count, int w,
                      struct gp_column_place *ret);

/* The same with `gap` blanks. Returns the room that was left for those that grow. */
int gp_columns_place_apart(const struct gp_column *columns, size_t count, int w, int gap,
                           struct gp_column_place *ret);

#endif
