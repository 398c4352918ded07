/* A failure that was found in what a program printed, with its causes: as text and as json. */
#ifndef GP_JOBS_INCIDENT_H
#define GP_JOBS_INCIDENT_H

#include "jobs/failure.h"

#include <jansson.h>

struct gp_device;
struct gp_snapshot;
struct gp_strbuf;

struct gp_incident {
    struct gp_failure failure;
    struct gp_causes causes; /* set by gp_incident_judge() */
    char line[400];          /* its first line, cut */
    uint64_t line_number;    /* from 1 */
};

/* Adds what a snapshot of that moment, or soon after, shows of the GPU: numbers that the program
 * did not print, who the others are. `from` is the process that all of the job come from,
 * `job_bytes` the most that it was seen to have there, as it may have ended since. */
void gp_incident_add_scene(struct gp_incident *incident, const struct gp_snapshot *snapshot,
                           const struct gp_device *device, int64_t from, double job_bytes);

/* When all numbers are there that are to be had. */
void gp_incident_judge(struct gp_incident *incident);

/* Appends two lines for each cause, indented: why, and what helps. */
void gp_incident_add_causes(struct gp_strbuf *sb, const struct gp_incident *incident);

/* All of it, as docs/schema.md has it; NULL without memory. */
json_t *gp_incident_json(const struct gp_incident *incident);

#endif
