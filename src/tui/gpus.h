/* Draws the GPUs in the most detailed density that fits. */
#ifndef GP_TUI_GPUS_H
#define GP_TUI_GPUS_H

#include "tui/gpu_order.h"
#include "tui/graph.h"
#include "tui/hits.h"
#include "tui/layout.h"

struct gp_snapshot;
struct gp_xids;

struct gp_gpus_view {
    const struct gp_snapshot *snapshot;
    const struct gp_history *history;
    const struct gp_xids *xids; /* NULL: none */
    const struct gp_layout *layout;
    struct gp_span span;
    enum gp_series series; /* graphed series */
    const struct gp_gpu_order *order;
    size_t first;         /* place of the first visible GPU when not all fit */
    size_t chosen;        /* selected row; the number of rows if there is none */
    bool has_focus;       /* whether movement keys apply to the GPUs */
    bool blocks;          /* draw graphs with blocks instead of dots */
    bool no_graphs;       /* only present values */
    const char *owner;    /* the user of all processes, whose programs are named; NULL: several */
    struct gp_hits *hits; /* collects the clickable areas */
};

/* How many of those that are shown have one line among cards. */
int gp_gpus_flat(const struct gp_snapshot *snapshot, const struct gp_gpu_order *order);

/* Where the graphed series would be on the screen, which does not show it; NULL: it does. Bars have
 * others, and narrow lines and cells none. */
const char *gp_gpus_series_place(const struct gp_gpus_view *view);

/* Appends "GPUs 36-63 of 64", which are their indices, or if those are not in order how many are
 * shown and above: "GPUs 28 of 64 ↑36". "GPUs 64": all are shown. */
void gp_gpus_add_range(struct gp_strbuf *sb, const struct gp_gpus_view *view);

void gp_draw_gpus(const struct gp_box *box, const struct gp_gpus_view *view);

#endif
