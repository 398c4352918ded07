/* The time axis of a recording: microseconds that never go back.
 *
 * It starts with the clock's time and then follows CLOCK_BOOTTIME, which is not set and goes on
 * while the machine is suspended. Where the clock was set, the difference between the two changes;
 * a file lists these places, and so knows the clock's time at each place of the axis. */
#ifndef GP_TAPE_AXIS_H
#define GP_TAPE_AXIS_H

#include "base/util.h"

#include <sys/types.h>

enum { GP_BOOT_ID_SIZE = 40 };

/* A place from which on the clock differs from the axis by `ahead_us`. */
struct gp_axis_mark {
    int64_t t;        /* on the axis */
    int64_t ahead_us; /* the clock's time minus t */
    char boot[GP_BOOT_ID_SIZE];
    int64_t boottime_us; /* CLOCK_BOOTTIME there */
};

/* The clocks at a moment. */
struct gp_axis_clocks {
    int64_t wall_us;
    int64_t boottime_us;
    const char *boot;
};

/* No place and no difference is greater; a file of a stranger may say anything. */
#define GP_AXIS_MAX (INT64_C(1) << 60)

enum { GP_AXIS_TOLERANCE_US = 100000 }; /* what the clock is slewed by does not matter */

/* The longest pause on the axis at a new boot, 30 days: a clock that is years ahead until it is set
 * must not make everything before it look old. */
#define GP_AXIS_PAUSE_US (30 * INT64_C(86400000000))

/* The time since the last mark. The place on the axis never is before or at `after`. *ret_marked:
 * the clock was set or this is the first time; *mark is then new and must be kept. */
int64_t gp_axis_at(struct gp_axis_mark *mark, const struct gp_axis_clocks *clocks, int64_t after,
                   bool *ret_marked);

/* The clock's time at a place of the axis. The marks are sorted by t; without any, it is t. */
int64_t gp_axis_wall(const struct gp_axis_mark *marks, size_t count, int64_t t);

/* The last place on the axis, up to `end`, at which the clock showed this time; or, if it never
 * did, because it was set forward over it or nothing was recorded, the next place after it.
 * −1: there is none. */
int64_t gp_axis_find(const struct gp_axis_mark *marks, size_t count, int64_t end, int64_t wall_us);

#endif
