/* Suspending processes and letting them go on, as a whole: either all are suspended, or all run on.
 * Whatever happens in between, each has a note (proc/suspended.h) from before its first call until
 * it runs again, so that there is a way back. */
#ifndef GP_JOBS_SUSPEND_H
#define GP_JOBS_SUSPEND_H

#include "proc/suspended.h"

/* All GPU memory of it, in bytes. */
uint64_t gp_suspended_bytes(const struct gp_suspended *s);

/* Whether main memory has room for what all of them have on their GPUs, and some to spare. GP_EFAIL
 * says which process has too little. root: prefix, NULL for none. */
int gp_suspend_check_room(const char *root, const struct gp_suspended *list, size_t count,
                          struct gp_err *err) GP_MUST_CHECK;

/* What only a look at the GPUs tells. */
struct gp_suspend_eyes {
    void *ctx;
    /* Fills in what each has now, when all are stopped, and whether there is room for it in main
     * memory: an error ends it. */
    int (*measure)(void *ctx, struct gp_suspended *list, size_t count, struct gp_err *err);
    /* Whether there is room for one on its GPUs. */
    bool (*has_room)(void *ctx, const struct gp_suspended *s);
};

struct gp_suspend_plan {
    const char *root;         /* prefix of the notes */
    uint64_t lock_timeout_ns; /* that each may take to finish the GPU work that it has begun */
    struct gp_suspend_eyes eyes;
};

/* All are stopped before the first is moved: processes of one job wait for each other. The error
 * says which process failed, and who of them does not run on: who has been moved already and finds
 * no room to go back, or one that the driver does not answer about. */
int gp_suspend_all(const struct gp_suspend_plan *plan, struct gp_suspended *list, size_t count,
                   struct gp_err *err) GP_MUST_CHECK;

/* All are moved back before the first goes on. Whether there is room is asked again before each:
 * one that finds none would be lost. Also of those that were stopped only half. The error is that
 * of the first that does not go on; the others do. */
int gp_resume_all(const struct gp_suspend_plan *plan, const struct gp_suspended *list, size_t count,
                  struct gp_err *err) GP_MUST_CHECK;

#endif
