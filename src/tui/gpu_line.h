/* Draws GPUs as lines below a heading, and as cells of a grid. */
#ifndef GP_TUI_GPU_LINE_H
#define GP_TUI_GPU_LINE_H

#include "base/util.h"

struct gp_box;
struct gp_device;
struct gp_gpus_view;

/* "+16 more": those for which there is no room. */
void gp_draw_more_gpus(const struct gp_box *box, int y, size_t count);

/* Draws as many GPUs as fit, from this place in the order on; `mark` is called for each. */
void gp_draw_gpu_lines(const struct gp_box *box, const struct gp_gpus_view *view, size_t first,
                       void (*mark)(const struct gp_box *box, int y, size_t row,
                                    const struct gp_gpus_view *view));

/* Whether lines of this width have room for the past of the GPUs. */
bool gp_gpu_lines_have_past(const struct gp_gpus_view *view, int w);

/* Whether a cell of this width has room for the past of the GPU. */
bool gp_gpu_cell_has_past(const struct gp_gpus_view *view, int w);

/* Draws a cell: the wider, the more of "12 ▇▅ 98% 71.4G 67". */
void gp_draw_gpu_cell(const struct gp_box *box, const struct gp_device *device,
                      const struct gp_gpus_view *view);

#endif
