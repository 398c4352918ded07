/* What a recording says about some time, for a comparison. */
#ifndef GP_TAPE_DIFF_GATHER_H
#define GP_TAPE_DIFF_GATHER_H

#include "tape/diff_side.h"

struct gp_err;

/* Reads what was recorded in `file` from from_us to to_us (wall-clock time; 0: from the start, to
 * the end) into a side, which is freed by the caller. GP_EIO: nothing was; errors as of
 * gp_tape_open(). `name` is what the user called it. */
int gp_diff_gather(const char *file, const char *name, int64_t from_us, int64_t to_us,
                   struct gp_diff_side *ret, struct gp_err *err) GP_MUST_CHECK;

#endif
