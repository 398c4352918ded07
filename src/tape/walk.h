/* Where something was recorded: the samples before and after a place, and the events. */
#ifndef GP_TAPE_WALK_H
#define GP_TAPE_WALK_H

#include "base/util.h"

struct gp_err;
struct gp_tape;
struct gp_tape_bounds;

/* The next place after t at which a sample or a summary begins; −1: there is none. */
int gp_tape_after(struct gp_tape *tape, int64_t t, int64_t *ret, struct gp_err *err) GP_MUST_CHECK;

/* The place `count` samples after or before (negative) t. Where there are only summaries of
 * `step_us`, they are the samples. The first or the last place if there are fewer. */
int gp_tape_step(struct gp_tape *tape, const struct gp_tape_bounds *bounds, int64_t t,
                 int64_t step_us, int64_t count, int64_t *ret, struct gp_err *err) GP_MUST_CHECK;

/* An event of a recording. */
struct gp_tape_event {
    int64_t t;
    char text[160]; /* "GPU 3: xid: …"; safe */
};

/* The next one after t, or the last one before it. 1: found; 0: there is none. */
int gp_tape_find_event(struct gp_tape *tape, int64_t t, bool is_forward, struct gp_tape_event *ret,
                       struct gp_err *err) GP_MUST_CHECK;

/* Whether an event of this kind is an error, or says that samples are missing. */
bool gp_tape_is_fault(const char *kind);

#endif
