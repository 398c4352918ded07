#include "tape/line.h"

#include <math.h>
#include <stdlib.h>

void gp_line_init(struct gp_line *line, int64_t step_us)
{
    *line = (struct gp_line){.step_us = step_us};
}

void gp_line_fini(struct gp_line *line)
{
    free(line->values);
    line->values = NULL;
    line->count = line->room = 0;
}

/* Twice the time for each value. */
static void halve(struct gp_line *line)
{
    for (size_t i = 0; i < line->count / 2; i++)
        line->values[i] = (line->values[2 * i] + line->values[2 * i + 1]) / 2;
    line->count /= 2;
    line->step_us *= 2;
}

static bool push(struct gp_line *line, double value)
{
    if (line->count == line->room) {
        double *grown = gp_grown(line->values, &line->room, 64, sizeof(*grown));
        if (!grown)
            return false;
        line->values = grown;
    }
    line->values[line->count++] = value;
    if (line->count == GP_LINE_MOST)
        halve(line);
    return true;
}

bool gp_line_add(struct gp_line *line, double mean, int64_t us)
{
    while (us > 0 && isfinite(mean)) {
        const int64_t lacks_us = line->step_us - line->part_us;
        const int64_t taken_us = us < lacks_us ? us : lacks_us;
        line->sum += mean * (double)taken_us;
        line->part_us += taken_us;
        us -= taken_us;
        if (line->part_us < line->step_us)
            break;
        const double value = line->sum / (double)line->step_us;
        line->sum = 0;
        line->part_us = 0;
        if (!push(line, value))
            return false;
    }
    return true;
}
