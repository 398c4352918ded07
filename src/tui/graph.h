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
};

/* One line: a block per sample, the newest at the right. */
void gp_draw_spark(const struct gp_box *box, int x, int y, int w, const struct gp_track *track,
                   enum gp_series series, const struct gp_span *span);

/* The whole box: dots (two samples a column), or blocks. */
void gp_draw_graph(const struct gp_box *box, const struct gp_track *track, enum gp_series series,
                   const struct gp_span *span, bool blocks);

#endif
