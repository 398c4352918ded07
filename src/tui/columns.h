/* Which columns of a table have room, and where. */
#ifndef GP_TUI_COLUMNS_H
#define GP_TUI_COLUMNS_H

#include "base/util.h"

struct gp_column {
    const char *title;
    int width; /* the least */
    int rank;  /* those with higher ones give way first */
    int grows; /* share of the room that is left; 0: none */
    bool left; /* text; numbers stand at the right */
};

enum { GP_COLUMNS_MAX = 24 };

struct gp_column_place {
    int x, w; /* w is 0: no room for it */
};

/* Places count columns (at most GP_COLUMNS_MAX) with a blank between each two within w. */
void gp_columns_place(const struct gp_column *columns, size_t count, int w,
                      struct gp_column_place *ret);

#endif
