/* The letters next to a GPU, one for each problem, and what limits its clocks. */
#ifndef GP_TUI_GPU_FLAGS_H
#define GP_TUI_GPU_FLAGS_H

#include "tui/cells.h"

struct gp_device;
struct gp_strbuf;
struct gp_xids;

/* What they are about: a GPU, and the driver's errors up to now. */
struct gp_flags_of {
    const struct gp_device *device;
    const struct gp_xids *xids; /* NULL: none */
    uint64_t wall_ns;
};

/* Draws as many letters as fit into w columns, the worst problem first, each in its ink. */
void gp_gpu_draw_flags(const struct gp_box *box, int x, int y, int w, const struct gp_flags_of *of);

/* Appends what these letters mean: "P: power limits the clocks". Nothing if there are none. */
void gp_gpu_add_flag_words(struct gp_strbuf *sb, const struct gp_flags_of *of);

/* What limits the clocks and is no fault, such as "limited: power"; NULL: nothing, or a fault does.
 */
const char *gp_gpu_limit(const struct gp_device *device);

#endif
