/* Private to pick. Its parts, from the lowest to the highest:
 *
 *   pick_owner.c     which job a process belongs to, and what a lease has reserved
 *   pick_obstacle.c  whether the job can have one GPU, and if not, why
 *   pick_set.c       the best of the GPUs that fit
 *   pick_why.c       the obstacles of all GPUs in one sentence
 *   pick.c           the whole choice */
#ifndef GP_JOBS_PICK_INTERNAL_H
#define GP_JOBS_PICK_INTERNAL_H

#include "jobs/pick.h"
#include "model/snapshot.h"

struct gp_picking {
    const struct gp_snapshot *snapshot;
    const struct gp_leases *leases;
    const struct gp_pick_request *request;
    struct gp_pick *pick;
};

/* How close two GPUs are. */
enum gp_nearness { GP_FAR, GP_SAME_NODE, GP_SAME_SWITCH, GP_LINKED };

/* ---- pick_owner.c ---- */

/* Whether a lease holds this GPU, or waits for it. */
bool gp_pick_has_gpu(const struct gp_lease *lease, const struct gp_device *device);
/* Whether a process on this GPU belongs to a job that has reserved it. A job's process on any other
 * GPU counts as foreign. */
bool gp_pick_is_leased(const struct gp_picking *p, const struct gp_device *device, int64_t pid);

/* ---- pick_obstacle.c ---- */

/* Whether the job can see this GPU under the inherited CUDA_VISIBLE_DEVICES. */
bool gp_pick_is_visible(const struct gp_pick_request *request, const struct gp_device *device);
/* Sets everything about a unit but is_chosen; its device is set. */
void gp_pick_judge(const struct gp_picking *p, struct gp_pick_unit *unit);

/* ---- pick_set.c: a unit is given by its index in pick->units ---- */

/* Sorts units, the best one first. */
void gp_pick_sort(const struct gp_picking *p, size_t *fitting, size_t count);
/* Chooses request->count of `count` sorted units: those closest to each other. Ties are decided by
 * the order. `set` has room for as many as are requested. Returns the nearness of the two that are
 * farthest apart. */
enum gp_nearness gp_pick_choose_set(const struct gp_picking *p, const size_t *fitting, size_t count,
                                    size_t *set);

/* ---- pick_why.c ---- */

/* Sets pick->why: why the request is not met, with this many GPUs that can ever be used, and that
 * are free now. */
void gp_pick_explain(const struct gp_picking *p, size_t possible, size_t fitting);

#endif
