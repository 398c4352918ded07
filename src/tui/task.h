/* Work that may hang in the driver or the kernel, on a thread of its own. */
#ifndef GP_TUI_TASK_H
#define GP_TUI_TASK_H

#include "base/util.h"

struct gp_task;

/* Runs work(ctx). NULL if no thread can be had. */
struct gp_task *gp_task_start(void (*work)(void *ctx), void *ctx) GP_MUST_CHECK;

/* Readable as soon as it is done. */
int gp_task_fd(const struct gp_task *task);

/* Waits so long for it to be done: then the task is freed and ctx is the caller's again. Else
 * false: ctx must stay, and if it is not asked again the process must end with _exit(). */
bool gp_task_end(struct gp_task *task, int patience_ms) GP_MUST_CHECK;

enum { GP_TASK_PATIENCE_MS = 40 }; /* of a screen that is left */

#endif
