/* The samples of incidents, which were taken ten times a second (before.h). They are in the table
 * `chunk`, among the summaries, with steps of a millisecond: a step with a point is a sample, and
 * contains only what was read then. Programs that do not know of them read summaries by the
 * length of their steps, and so ignore them. */
#ifndef GP_TAPE_MOMENTS_H
#define GP_TAPE_MOMENTS_H

#include "tape/scene.h"

struct gp_err;
struct gp_store;

#define GP_MOMENT_STEP_US INT64_C(1000)

/* The last one at since <= place <= t, of which the scene then is; with rows of GPUs only. *ret:
 * its time; −1: there is none. GP_EFORMAT, GP_ENOMEM, GP_EIO. */
int gp_moment_seek(struct gp_store *store, int64_t since, int64_t t, struct gp_scene *scene,
                   int64_t *ret, struct gp_err *err) GP_MUST_CHECK;

/* The time of the first one after t; −1: there is none. Errors likewise. */
int gp_moment_after(struct gp_store *store, int64_t t, int64_t *ret,
                    struct gp_err *err) GP_MUST_CHECK;

/* The time of the last one of all, or a little later; −1: there is none. */
int64_t gp_moment_last(struct gp_store *store);

/* Calls the function with each one at from <= t < to, in order. Anything but 0 ends that, and is
 * returned; errors likewise. */
int gp_moments_read(struct gp_store *store, int64_t from, int64_t to, struct gp_scene *scene,
                    int (*on_moment)(void *ctx, int64_t t), void *ctx,
                    struct gp_err *err) GP_MUST_CHECK;

/* Puts the values of the moment into a scene of the time around it. What is unknown of a GPU that
 * did not respond then is unknown there, too. False without memory. */
bool gp_moment_overlay(struct gp_scene *scene, const struct gp_scene *moment) GP_MUST_CHECK;

/* Incidents at from <= t < to, their samples, and the time of the first sample of the last one. */
struct gp_moment_counts {
    int64_t incidents, samples, begin;
};
struct gp_moment_counts gp_moment_count(struct gp_store *store, int64_t from, int64_t to);

#endif
