/* A scene as a sample, for views. */
#ifndef GP_TAPE_SHOW_H
#define GP_TAPE_SHOW_H

#include "tape/scene.h"

struct gp_snapshot;
struct gp_store;
struct gp_want;

struct gp_show {
    const struct gp_scene *scene;
    int64_t wall_us;
    int64_t mono_us; /* since the recording began: graphs keep only 34 years of it */
    bool is_hole;    /* the rows are known, but no value */
    const struct gp_want *want;
    struct gp_store *store; /* for what is kept with a process: its command */
};

/* GP_ENOMEM; GP_EFORMAT: the rows contradict each other. */
int gp_show(const struct gp_show *show, struct gp_snapshot **ret) GP_MUST_CHECK;

#endif
