/* Work that may hang in the driver or the kernel, on a separate thread. */
#ifndef GP_TUI_TASK_H
#define GP_TUI_TASK_H

#include "base/util.h"

struct gp_task;

/* Runs work(ctx). Returns NULL if no thread can be started. */
struct gp_task *gp_task_start(void (*work)(void *ctx), void *ctx) GP_MUST_CHECK;

/* Becomes readable when the work is done. */
int gp_task_fd(const struct gp_task *task);

/* Waits up to patience_ms for the work to be done. If it is, frees the task and returns true: ctx
 * belongs to the caller again. Otherwise ctx must stay valid; if the caller does not retry, the
 * process must exit with _exit(). */
bool gp_task_end(struct gp_task *task, int patience_ms) GP_MUST_CHECK;

enum { GP_TASK_PATIENCE_MS = 40 }; /* used when a screen is left */

#endif
