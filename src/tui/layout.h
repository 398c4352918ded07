/* The layout: a pure function of the size of the screen and of what there is to show. */
#ifndef GP_TUI_LAYOUT_H
#define GP_TUI_LAYOUT_H

#include "base/util.h"

/* GPU views, from detailed to dense. A view that does not fit falls back to the next. */
enum gp_density {
    GP_DENSITY_CARD, /* three text lines and graphs */
    GP_DENSITY_BAR,  /* two text lines, or three on a wide screen, with the recent past */
    GP_DENSITY_LINE, /* one line */
    GP_DENSITY_GRID, /* cells as wide as the room allows */
    GP_DENSITY__COUNT,
    GP_DENSITY_AUTO = GP_DENSITY__COUNT,
};

#define GP_DENSITY_WORDS "card bar line grid auto"

/* When to show the line of the machine. */
enum gp_host_pref { GP_HOST_AUTO, GP_HOST_YES, GP_HOST_NO };

#define GP_HOST_WORDS "auto yes no"

enum {
    GP_CARD_COLUMNS = 80, /* minimum width of cards and bars, if the screen is that wide */
    GP_GRID_COLUMNS = 10, /* minimum width of a cell of a grid, with an index below 100 */
    GP_TEXT_LINES = 3,    /* of a card */
    GP_FRAME_FROM = 120,  /* columns of a screen with a frame around GPUs and processes, if it */
    GP_FRAME_LINES = 12,  /* has this many lines */
};

struct gp_rect {
    int x, y, w, h;
};

struct gp_layout_options {
    int w, h;
    int gpus;                /* number of GPUs and MIG instances */
    int flat;                /* those of them that have one line among cards */
    enum gp_density density; /* GP_DENSITY_AUTO: the most detailed that fits */
    bool host;               /* whether to show the line of the machine */
    bool no_gpus, no_processes, no_graphs;
    bool processes_first; /* they are above the GPUs */
};

struct gp_layout {
    struct gp_rect header, host, gpus, processes, keys; /* h is 0: not shown */
    struct gp_rect frame; /* around GPUs and processes, whose first lines are part of it */
    enum gp_density density;
    int columns;    /* GPUs side by side */
    int gpu_height; /* lines per GPU, unless it is flat */
    int shown;      /* GPUs that fit at the same time */
    bool has_more;  /* after them, a line or cell says how many others there are */
    bool has_total; /* the last line of a grid is about all GPUs */
    bool has_rule;  /* the first line of the GPUs is a title, as their lines have none */
};

struct gp_layout gp_layout_of(const struct gp_layout_options *options);

/* The x and w of a column of GPUs in their area. */
struct gp_rect gp_layout_column(const struct gp_layout *layout, int column);

#endif
