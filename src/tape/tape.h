/* An open recording: what a machine was like at any time.
 *
 * It may be written meanwhile. A time is a place on the recording's axis, see axis.h. */
#ifndef GP_TAPE_TAPE_H
#define GP_TAPE_TAPE_H

#include "tape/moments.h"

struct gp_err;
struct gp_snapshot;
struct gp_store;
struct gp_tape;
struct gp_want;

/* Errors as of gp_store_open(); GP_EFORMAT also if nothing was recorded. `path` must outlive it. */
int gp_tape_open(const char *path, struct gp_tape **ret, struct gp_err *err) GP_MUST_CHECK;
void gp_tape_close(struct gp_tape *tape);

struct gp_tape_bounds {
    int64_t first, last; /* what is recorded */
    int64_t samples;     /* where the single samples begin; before, there are summaries */
    int64_t interval_us; /* between samples */
};

/* As they are now. */
int gp_tape_bounds(struct gp_tape *tape, struct gp_tape_bounds *ret,
                   struct gp_err *err) GP_MUST_CHECK;

/* How much there is. */
struct gp_tape_contents {
    int64_t gpus, processes, events; /* GPUs without MIG instances; processes that ended, too */
    struct gp_moment_counts moments;
    uint64_t size; /* in bytes, with the log */
};

int gp_tape_contents(struct gp_tape *tape, struct gp_tape_contents *ret,
                     struct gp_err *err) GP_MUST_CHECK;

/* The clock's time at a place, and the place of a time, see gp_axis_find(). */
int64_t gp_tape_wall(const struct gp_tape *tape, int64_t t);
int64_t gp_tape_place(const struct gp_tape *tape, int64_t wall_us);

/* What was last recorded at or before a place. */
struct gp_tape_found {
    int64_t t;       /* when it was recorded; of a summary: its start */
    int64_t step_us; /* of a summary; 0: a sample */
    bool is_hole;    /* it is too old: nothing was recorded at the place itself */
    bool is_moment;  /* it is a sample of an incident, in what was recorded around it */
};

/* Makes the scene that of a place. GP_EFORMAT: the recording is damaged there; GP_EIO: there is
 * nothing at or before it. */
int gp_tape_seek(struct gp_tape *tape, int64_t t, struct gp_tape_found *ret,
                 struct gp_err *err) GP_MUST_CHECK;

/* The scene of the place that was sought last, as a sample with these metrics. What was not
 * recorded is UNSUPPORTED. */
int gp_tape_show(struct gp_tape *tape, const struct gp_tape_found *found, int64_t t,
                 const struct gp_want *want, struct gp_snapshot **ret,
                 struct gp_err *err) GP_MUST_CHECK;

/* Runs a function that only reads the file. If the writer moved data meanwhile, it is run again;
 * GP_EBUSY after some times. */
int gp_tape_do(struct gp_tape *tape,
               int (*read)(void *ctx, struct gp_store *store, struct gp_err *err), void *ctx,
               struct gp_err *err) GP_MUST_CHECK;

#endif
