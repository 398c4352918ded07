/* Draws the GPUs in the most detailed density that fits. */
#ifndef GP_TUI_GPUS_H
#define GP_TUI_GPUS_H

#include "tui/graph.h"
#include "tui/hits.h"
#include "tui/layout.h"

struct gp_device;
struct gp_snapshot;
struct gp_strbuf;

struct gp_gpus_view {
    const struct gp_snapshot *snapshot;
    const struct gp_history *history;
    const struct gp_layout *layout;
    struct gp_span span;
    enum gp_series series; /* graphed series */
    size_t first;          /* first visible row when not all rows fit */
    size_t chosen;         /* selected row; the number of rows if there is none */
    bool has_focus;        /* whether movement keys apply to the GPUs */
    bool blocks;           /* draw graphs with blocks instead of dots */
    struct gp_hits *hits;  /* collects the clickable areas */
};

/* Why a GPU reports no values; NULL if it does. */
const char *gp_gpu_trouble(const struct gp_device *device);
/* Same as gp_gpu_trouble(), but a sleeping GPU is not a problem. */
bool gp_gpu_is_ill(const struct gp_device *device);

/* Appends what the letters behind its power mean: "P: power limits the clocks". Nothing if there
 * are none. */
void gp_gpu_add_flag_words(struct gp_strbuf *sb, const struct gp_device *device);

void gp_draw_gpus(const struct gp_box *box, const struct gp_gpus_view *view);

/* Draws one GPU as a card: three lines, and graphs in the rest of the box. */
void gp_draw_gpu(const struct gp_box *box, const struct gp_device *device,
                 const struct gp_gpus_view *view);

#endif
