/* The GPUs: a heading for the machine, and each GPU in the density that there is room for. */
#ifndef GP_TUI_GPUS_H
#define GP_TUI_GPUS_H

#include "tui/graph.h"
#include "tui/layout.h"

struct gp_snapshot;

struct gp_gpus_view {
    const struct gp_snapshot *snapshot;
    const struct gp_history *history;
    const struct gp_layout *layout;
    struct gp_span span;
    size_t first;  /* row that is shown first, where not all have room */
    size_t chosen; /* row that is marked; as many as there are: none */
    bool blocks;   /* graphs of blocks instead of dots */
};

void gp_draw_gpus(const struct gp_box *box, const struct gp_gpus_view *view);

/* Host, driver, sums; `right` stands at the right end. */
void gp_draw_header(const struct gp_box *box, const struct gp_snapshot *snapshot,
                    const char *right);

#endif
