#include "jobs/samples_read.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double CELL_MOST = 0x1p60; /* more is no sample of a job */

static double number_of(const char *cell)
{
    char *end;
    const double n = strtod(cell, &end);
    return end == cell || !(fabs(n) < CELL_MOST) ? (double)NAN : n;
}

static bool parse(char *line, struct gp_job_sample *ret)
{
    char *rest = line;
    for (size_t i = 0; i < GP_JOB_COLUMN__COUNT; i++) {
        const char *cell = rest ? strsep(&rest, ",\n") : "";
        ret->cells[i] = number_of(cell);
    }
    return ret->cells[GP_JOB_TIME] >= 0 && ret->cells[GP_JOB_GPU] >= 0;
}

void gp_recorded_samples(const struct gp_recorded *recorded,
                         bool (*take)(void *context, const struct gp_job_sample *sample),
                         void *context)
{
    char line[512];
    struct gp_job_sample sample;
    int fd = gp_recorded_open(recorded, "samples.csv");
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (!file) {
        if (fd >= 0)
            (void)close(fd);
        return;
    }
    while (fgets(line, sizeof(line), file))
        if (parse(line, &sample) && !take(context, &sample))
            break;
    (void)fclose(file);
}
