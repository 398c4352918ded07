/* A recording that is played: its samples after each other, and its player. */
#ifndef GP_TAPE_CONTROL_H
#define GP_TAPE_CONTROL_H

#include "source/player.h"

struct gp_err;
struct gp_snapshot;
struct gp_tape_control;
struct gp_want;

/* Where it starts, besides times of the clock. */
enum { GP_TAPE_AT_END = 0, GP_TAPE_AT_START = -1 };

/* at_us: the clock's time of the first sample. GP_EUSAGE: nothing was recorded at that time; errors
 * as of gp_tape_open(). `path` must outlive it. */
int gp_tape_control_open(const char *path, int64_t at_us, struct gp_tape_control **ret,
                         struct gp_err *err) GP_MUST_CHECK;

/* The next sample: what the player was asked for; otherwise, unless it is paused, a step later. 1:
 * there is none, and *ret is the last one. By one thread at a time. */
int gp_tape_control_sample(struct gp_tape_control *control, const struct gp_want *want,
                           uint64_t step_ns, struct gp_snapshot **ret,
                           struct gp_err *err) GP_MUST_CHECK;

struct gp_player *gp_tape_control_player(struct gp_tape_control *control);

/* Closes the recording. The player stays for those who hold it, and does nothing any more. NULL is
 * allowed. */
void gp_tape_control_close(struct gp_tape_control *control);

#endif
