/* The top of the screen: the machine and its GPUs in a line, its processors and memory in another.
 */
#ifndef GP_TUI_HEADER_H
#define GP_TUI_HEADER_H

#include "tui/cells.h"

struct gp_snapshot;

/* Host, driver, sums; `right` stands at the right end. `snapshot` may be NULL. */
void gp_draw_header(const struct gp_box *box, const struct gp_snapshot *snapshot,
                    const char *right);

/* Processors, memory, swap, load. */
void gp_draw_host(const struct gp_box *box, const struct gp_snapshot *snapshot);

#endif
