/* The top of the screen: one line for the machine and its GPUs, one for its CPUs and memory. */
#ifndef GP_TUI_HEADER_H
#define GP_TUI_HEADER_H

#include "tui/words.h"

struct gp_snapshot;

/* Host, driver, sums; `right` is aligned right. `snapshot` may be NULL. */
void gp_draw_header(const struct gp_box *box, const struct gp_snapshot *snapshot,
                    const struct gp_words *right);

/* CPU, memory, swap, load. */
void gp_draw_host(const struct gp_box *box, const struct gp_snapshot *snapshot);

#endif
