/* Where everything stands: a pure function of the size of the screen and of what there is. */
#ifndef GP_TUI_LAYOUT_H
#define GP_TUI_LAYOUT_H

#include "base/util.h"

/* How a GPU is shown, from rich to dense; each falls back to the next where there is no room. */
enum gp_density {
    GP_DENSITY_CARD, /* three lines and graphs */
    GP_DENSITY_BAR,  /* three lines */
    GP_DENSITY_LINE, /* one */
    GP_DENSITY_GRID, /* a few columns */
    GP_DENSITY__COUNT,
    GP_DENSITY_AUTO = GP_DENSITY__COUNT,
};

enum {
    GP_CARD_COLUMNS = 80, /* a card or bar view has at least as many, if the screen has */
    GP_GRID_COLUMNS = 10,
    GP_TEXT_LINES = 3, /* of a card or a bar view */
};

struct gp_rect {
    int x, y, w, h;
};

struct gp_layout_options {
    int w, h;
    int gpus;                /* rows for GPUs and MIG instances */
    enum gp_density density; /* GP_DENSITY_AUTO: the richest that has room */
    bool host;               /* a line for the machine */
    bool no_gpus, no_processes;
};

struct gp_layout {
    struct gp_rect header, host, gpus, processes, keys; /* h is 0: not shown */
    enum gp_density density;
    int columns;    /* GPUs side by side */
    int gpu_height; /* lines of one GPU */
    int shown;      /* GPUs that have room at the same time */
};

struct gp_layout gp_layout_of(const struct gp_layout_options *options);

#endif
