/* Summaries of what is recorded, in steps of growing length: of each step the last values, and of
 * the moving numbers the minimum, the maximum and the mean. */
#ifndef GP_TAPE_ROLL_H
#define GP_TAPE_ROLL_H

#include "tape/chunk.h"

enum { GP_ROLL_LEVELS = 4, GP_ROLL_POINTS = 120 };

struct gp_roll_level {
    int64_t step_us;
    int64_t keep_us; /* how long its summaries are kept */
};
extern const struct gp_roll_level gp_roll_levels[GP_ROLL_LEVELS];

struct gp_roll {
    struct gp_roll_state {
        struct gp_scene ranges; /* of the step that is not over */
        int64_t number;         /* of that step; −1: it has no sample yet */
        int64_t after_us;       /* summaries of steps up to there exist */
        struct gp_chunk chunk;
        bool is_stored; /* the chunk is as it was stored last */
    } levels[GP_ROLL_LEVELS];
    size_t first; /* the level with the shortest steps that are not shorter than the interval */
};

/* Called with each chunk to store, possibly again with more points. A negative result is passed
 * on. */
typedef int gp_roll_store(void *ctx, int64_t step_us, const struct gp_chunk *chunk);

/* after_us: up to where each level's summaries exist. False without memory. */
bool gp_roll_init(struct gp_roll *roll, const struct gp_tape_columns *columns, int64_t interval_us,
                  const int64_t after_us[GP_ROLL_LEVELS]) GP_MUST_CHECK;
void gp_roll_fini(struct gp_roll *roll);

/* Ends the steps that are over at time t; the scene still is that of the sample before. */
int gp_roll_end(struct gp_roll *roll, int64_t t, const struct gp_scene *scene, gp_roll_store *store,
                void *ctx) GP_MUST_CHECK;

/* Adds the sample of time t. GP_ENOMEM. */
int gp_roll_add(struct gp_roll *roll, int64_t t, const struct gp_scene *scene) GP_MUST_CHECK;

/* Stores what was not stored yet. */
int gp_roll_flush(struct gp_roll *roll, gp_roll_store *store, void *ctx) GP_MUST_CHECK;

/* The place on the axis from which on samples are needed to go on after this process has ended. */
int64_t gp_roll_needs_us(const struct gp_roll *roll);

#endif
