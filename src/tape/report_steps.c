/* The steps of a report's charts: whole hours, days or weeks of local time. */
#include "tape/report_internal.h"

#include "tape/tape.h"

#include <time.h>

enum { WEEK_S = 7 * 86400, MONDAY_S = 3 * 86400 }; /* 1970 began on a Thursday */

#define US INT64_C(1000000)
#define WALL_MAX_US (INT64_C(253402300799) * US) /* the end of the year 9999 */

int64_t gp_report_wall(const struct gp_tape *tape, int64_t t)
{
    return gp_report_clamp(gp_tape_wall(tape, t), WALL_MAX_US);
}

/* Seconds of local time, as if it were UTC. */
static int64_t local_s(int64_t wall_us, int64_t *ret_offset_s)
{
    const time_t s = (time_t)(wall_us / US);
    struct tm tm = {0};
    (void)localtime_r(&s, &tm);
    *ret_offset_s = tm.tm_gmtoff;
    return (int64_t)s + tm.tm_gmtoff;
}

static int64_t number_of(int64_t wall_us, int64_t step_s, int64_t *ret_offset_s)
{
    return (local_s(wall_us, ret_offset_s) + MONDAY_S + WEEK_S) / step_s;
}

/* The shortest step of which there are not too many. */
static int64_t choose_step(int64_t from_us, int64_t to_us)
{
    static const int64_t lengths_s[] = {600, 3600, 6 * 3600, 86400, WEEK_S};
    int64_t length_s = 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(lengths_s); i++) {
        length_s = lengths_s[i];
        if ((to_us - from_us) / (length_s * US) + 2 <= GP_REPORT_STEPS_MAX)
            return length_s;
    }
    while ((to_us - from_us) / (length_s * US) + 2 > GP_REPORT_STEPS_MAX)
        length_s *= 2;
    return length_s;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The clock's time at which a step begins. *offset_s: the difference to UTC somewhere near; it is
 * that of this place afterwards. A step in which it changes may begin an hour off. */
static int64_t start_of(int64_t number, int64_t step_s, int64_t *offset_s)
{
    const int64_t local_start_s = number * step_s - MONDAY_S - WEEK_S;
    (void)local_s(later(local_start_s - *offset_s, 0) * US, offset_s);
    return (local_start_s - *offset_s) * US;
}

void gp_report_make_steps(struct gp_report *report)
{
    const int64_t from_us = report->from_us;
    const int64_t to_us = later(report->to_us, from_us + 1);
    const int64_t step_s = choose_step(from_us, to_us);
    struct gp_report_step *step = report->steps;
    int64_t offset_s;
    const int64_t last = number_of(to_us - 1, step_s, &offset_s);
    const int64_t first = number_of(from_us, step_s, &offset_s);
    step->from_us = from_us;
    for (int64_t i = first + 1; i <= last && i < first + GP_REPORT_STEPS_MAX; i++) {
        const int64_t start_us = start_of(i, step_s, &offset_s);
        if (start_us <= step->from_us || start_us >= to_us)
            continue; /* an hour that clocks skip */
        step->to_us = start_us;
        (++step)->from_us = start_us;
    }
    step->to_us = to_us;
    report->step_s = step_s;
    report->step_count = (size_t)(step - report->steps) + 1;
}

size_t gp_report_step_at(const struct gp_report *report, const struct gp_tape *tape, int64_t t)
{
    int64_t wall_us = gp_report_wall(tape, t);
    size_t low = 0;
    size_t high = report->step_count;
    wall_us = later(wall_us, report->from_us);
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (report->steps[middle].from_us <= wall_us)
            low = middle;
        else
            high = middle;
    }
    return low;
}
