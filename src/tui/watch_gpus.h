/* The GPUs on the main screen: their order, and which of them is selected. */
#ifndef GP_TUI_WATCH_GPUS_H
#define GP_TUI_WATCH_GPUS_H

#include "tui/layout.h"

struct gp_box;
struct gp_device;
struct gp_ui;

/* Whether it is this MIG instance of a GPU; −1: the GPU itself. */
bool gp_device_is(const struct gp_device *device, int gpu, int mig);

/* Selects a GPU or a MIG instance; NULL, −1: none. */
void gp_watch_choose(struct gp_ui *ui, const struct gp_device *device);
void gp_watch_choose_gpu(struct gp_ui *ui, int gpu);

/* Row of the selected GPU or instance; the number of rows if none is selected. There must be a
 * snapshot. */
size_t gp_watch_gpu_row(const struct gp_ui *ui);

/* Whether this GPU does not report its processes; −1: whether none is known, and one of the GPUs
 * does not report its own. There must be a snapshot. */
bool gp_watch_is_silent(const struct gp_ui *ui, int gpu);

/* Selects the GPU or instance that many places further on, or at that end. */
void gp_watch_move_gpu(struct gp_ui *ui, long step);

/* Gives the movement keys to the GPUs or to the processes. */
void gp_watch_focus(struct gp_ui *ui, bool to_gpus);

/* After the GPUs or the processes were hidden: gives the keys to those that are left. */
void gp_watch_focus_shown(struct gp_ui *ui);

/* Whether the other of the two is not hidden. */
bool gp_watch_may_turn(const struct gp_ui *ui);

/* Gives the movement keys to the other of the two, if it is not hidden. GPUs need a selected one
 * for that: it is the first on the screen, and selected no longer than until the keys go back to
 * the processes. */
void gp_watch_turn_pane(struct gp_ui *ui);

/* After the user has chosen another order: shows the selected GPU, otherwise its beginning. */
void gp_watch_reorder(struct gp_ui *ui);

/* Sets the order of the GPUs, the layout, and which of them are visible. In a grid, problems come
 * first unless another order is wanted. */
struct gp_layout gp_watch_arrange(struct gp_ui *ui, const struct gp_box *box, bool host);

#endif
