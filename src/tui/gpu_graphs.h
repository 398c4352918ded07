/* The graphs of a card, and where they stand: below the bars of the same values. */
#ifndef GP_TUI_GPU_GRAPHS_H
#define GP_TUI_GPU_GRAPHS_H

#include "tui/cells.h"

struct gp_device;
struct gp_gpus_view;

/* The driver reports no utilization for MIG instances, nor for a GPU that is split into them. */
bool gp_gpu_has_load(const struct gp_device *device, const struct gp_gpus_view *view);

/* The part of a card for utilization, at the left, or for memory, at the right: their bars and
 * their graphs are in the same columns. */
struct gp_box gp_gpu_half(const struct gp_box *box, bool is_right);

/* Whether the past of utilization or memory is in a graph below their bars. */
bool gp_gpu_graphs_gauge(const struct gp_gpus_view *view);

/* The selected series, followed by as many others as fit, of those that the driver reports. If only
 * one fits, utilization and memory are side by side. */
void gp_draw_gpu_graphs(const struct gp_box *box, const struct gp_device *device,
                        const struct gp_gpus_view *view);

#endif
