/* A series of numbers whose size is bounded: when there are too many, each two become their mean.
 * All stand for the same length of time. */
#ifndef GP_TAPE_LINE_H
#define GP_TAPE_LINE_H

#include "base/util.h"

enum { GP_LINE_MOST = 4096 };

struct gp_line {
    double *values;
    size_t count, room;
    int64_t step_us; /* what each stands for */
    double sum;      /* of the one that is not complete: numbers times microseconds */
    int64_t part_us;
};

/* step_us: the length of time that a value begins with, more than 0. */
void gp_line_init(struct gp_line *line, int64_t step_us);
void gp_line_fini(struct gp_line *line);

/* Appends some time during which the number had this mean. False without memory. */
bool gp_line_add(struct gp_line *line, double mean, int64_t us) GP_MUST_CHECK;

#endif
