/* The recent CPU use of the processes on the screen, for a line of blocks next to each. It is made
 * of the samples that are taken anyway. */
#ifndef GP_TUI_CPU_PAST_H
#define GP_TUI_CPU_PAST_H

#include "out/procs.h"
#include "tui/cells.h"

/* A column is the mean of several samples, so that lines move only once in a while. */
enum { GP_CPU_PAST_COLUMNS = 8, GP_CPU_PAST_PER_COLUMN = 8 };

struct gp_cpu_past;

/* Adds the values of these rows at a moment, of which each is valid for about interval_ns.
 * Allocates *past if it is NULL; without memory there is no past. */
void gp_cpu_past_add(struct gp_cpu_past **past, const struct gp_proc_row *rows, size_t count,
                     uint64_t mono_ns, uint64_t interval_ns);

/* Draws GP_CPU_PAST_COLUMNS columns, the newest at the right. The top is as many whole CPUs as the
 * highest value needs. `past` may be NULL. */
void gp_draw_cpu_past(const struct gp_box *box, int x, int y, enum gp_ink ink,
                      const struct gp_cpu_past *past, int64_t pid);

void gp_cpu_past_free(struct gp_cpu_past *past);

#endif
