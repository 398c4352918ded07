/* The GPUs, each in the density that there is room for. */
#ifndef GP_TUI_GPUS_H
#define GP_TUI_GPUS_H

#include "tui/graph.h"
#include "tui/hits.h"
#include "tui/layout.h"

struct gp_device;
struct gp_snapshot;

struct gp_gpus_view {
    const struct gp_snapshot *snapshot;
    const struct gp_history *history;
    const struct gp_layout *layout;
    struct gp_span span;
    enum gp_series series; /* of the graphs */
    size_t first;          /* row that is shown first, where not all have room */
    size_t chosen;         /* row that is marked; as many as there are: none */
    bool has_focus;        /* the keys that move are for them */
    bool blocks;           /* graphs of blocks instead of dots */
    struct gp_hits *hits;  /* takes what can be clicked */
};

/* Why a GPU tells nothing, NULL: it does. */
const char *gp_gpu_trouble(const struct gp_device *device);
/* The same, but sleep is no trouble. */
bool gp_gpu_is_ill(const struct gp_device *device);

void gp_draw_gpus(const struct gp_box *box, const struct gp_gpus_view *view);

/* One as a card: three lines, and graphs in the rest of the box. */
void gp_draw_gpu(const struct gp_box *box, const struct gp_device *device,
                 const struct gp_gpus_view *view);

#endif
