/* Small pictures of numbers. */
#ifndef GP_TUI_GRAPH_H
#define GP_TUI_GRAPH_H

#include "tui/cells.h"
#include "tui/history.h"

/* The ink for a load of so many thousandths, with the bounds that nvitop made usual. */
enum gp_ink gp_load_ink(enum gp_series series, int permille);

/* A bar of w columns, its rest dotted. */
void gp_draw_bar(const struct gp_box *box, int x, int y, int w, enum gp_ink ink, int permille);

/* The time that a graph shows: its right edge, and what one step of it is. */
struct gp_span {
    uint64_t end_ns, step_ns;
    bool half; /* the last step is the first of two that share a column of dots, and fills it: so
                  columns move with every second step only, and a slow line has less to carry */
};

/* What is drawn of a track. */
struct gp_plot {
    const struct gp_track *track; /* NULL: nothing */
    int channel;
    double max;          /* of a full graph; 0: round number above the highest one shown */
    enum gp_series like; /* whose inks it has */
};

/* One line: a block per sample, the newest at the right. */
void gp_draw_spark(const struct gp_box *box, int x, int y, int w, const struct gp_plot *plot,
                   const struct gp_span *span);

/* A graph with its axes and, where there is room, what it shows in words: now, mean and highest of
 * the time that is shown. Dots are two samples a column, blocks one. */
struct gp_panel {
    struct gp_plot plot;
    const char *title, *unit;
    uint64_t now_ns; /* for the axis of time: the span may end before */
    bool blocks;
};

void gp_draw_panel(const struct gp_box *box, const struct gp_panel *panel,
                   const struct gp_span *span);

#endif
