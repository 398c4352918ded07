/* Draws one GPU as a card: three lines, and graphs in the rest of the box. */
#ifndef GP_TUI_GPU_CARD_H
#define GP_TUI_GPU_CARD_H

struct gp_box;
struct gp_device;
struct gp_gpus_view;

void gp_draw_gpu(const struct gp_box *box, const struct gp_device *device,
                 const struct gp_gpus_view *view);

#endif
