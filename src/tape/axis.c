#include "tape/axis.h"

#include "tape/bytes.h"

#include <stdio.h>
#include <string.h>

int64_t gp_axis_at(struct gp_axis_mark *mark, const struct gp_axis_clocks *clocks, int64_t after,
                   bool *ret_marked)
{
    const bool is_same_boot = mark->boot[0] && strcmp(mark->boot, clocks->boot) == 0 &&
                              clocks->boottime_us >= mark->boottime_us;
    int64_t t =
        is_same_boot ? mark->t + (clocks->boottime_us - mark->boottime_us) : clocks->wall_us;
    if (t <= after)
        t = after + 1;
    if (!is_same_boot && after > 0 && t - after > GP_AXIS_PAUSE_US)
        t = after + GP_AXIS_PAUSE_US;
    const int64_t off_us = clocks->wall_us - t - mark->ahead_us;
    *ret_marked = !is_same_boot || off_us > GP_AXIS_TOLERANCE_US || off_us < -GP_AXIS_TOLERANCE_US;
    if (*ret_marked) {
        *mark = (struct gp_axis_mark){
            .t = t, .ahead_us = clocks->wall_us - t, .boottime_us = clocks->boottime_us};
        (void)snprintf(mark->boot, sizeof(mark->boot), "%s", clocks->boot);
    }
    return t;
}

int64_t gp_axis_wall(const struct gp_axis_mark *marks, size_t count, int64_t t)
{
    int64_t ahead_us = count ? marks[0].ahead_us : 0;
    for (size_t i = 0; i < count && marks[i].t <= t; i++)
        ahead_us = marks[i].ahead_us;
    return gp_plus(t, ahead_us); /* a file of strangers has any numbers */
}

int64_t gp_axis_find(const struct gp_axis_mark *marks, size_t count, int64_t end, int64_t wall_us)
{
    int64_t next = -1; /* where the clock was set forward over that time, or recording began */
    for (size_t i = count; i-- > 0;) {
        const int64_t last = i + 1 < count ? gp_minus(marks[i + 1].t, 1) : end;
        const int64_t t = gp_minus(wall_us, marks[i].ahead_us);
        if (t >= marks[i].t && t <= last)
            return t;
        if (t < marks[i].t)
            next = marks[i].t;
        else if (next >= 0)
            return next;
    }
    return next;
}
