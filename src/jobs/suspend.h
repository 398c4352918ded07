/* Suspends and resumes processes as a group: either all are suspended, or all run on. Each has a
 * note (proc/suspended.h) from before its first call until it runs again, so that it can be resumed
 * whatever happens in between. */
#ifndef GP_JOBS_SUSPEND_H
#define GP_JOBS_SUSPEND_H

#include "proc/suspended.h"

/* All GPU memory of it, in bytes. */
uint64_t gp_suspended_bytes(const struct gp_suspended *s);

/* Whether host memory has room for all of their GPU memory, with some to spare. GP_EFAIL names the
 * process with too little. root: prefix, NULL for none. */
int gp_suspend_check_room(const char *root, const struct gp_suspended *list, size_t count,
                          struct gp_err *err) GP_MUST_CHECK;

/* Callbacks that query the GPUs. */
struct gp_suspend_eyes {
    void *ctx;
    /* Updates the GPU memory of each process once all are stopped, and checks whether host memory
     * has room for it: an error aborts. */
    int (*measure)(void *ctx, struct gp_suspended *list, size_t count, struct gp_err *err);
    /* Whether there is room for one on its GPUs. */
    bool (*has_room)(void *ctx, const struct gp_suspended *s);
};

struct gp_suspend_plan {
    const char *root;         /* prefix of the notes */
    uint64_t lock_timeout_ns; /* time limit for each to finish its pending GPU work */
    struct gp_suspend_eyes eyes;
};

/* All are stopped before the first is moved, because processes of one job wait for each other. The
 * error names the process that failed, and those that do not run on: those already moved that find
 * no room to return, or those the driver does not answer for. */
int gp_suspend_all(const struct gp_suspend_plan *plan, struct gp_suspended *list, size_t count,
                   struct gp_err *err) GP_MUST_CHECK;

/* All are moved back before the first continues. Room is checked again before each: a process moved
 * back without room would be lost. Also for processes that were stopped only partly. The error is
 * that of the first process that fails; the others continue. */
int gp_resume_all(const struct gp_suspend_plan *plan, const struct gp_suspended *list, size_t count,
                  struct gp_err *err) GP_MUST_CHECK;

#endif
