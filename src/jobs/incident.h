/* A failure found in the output of a program, with its causes: as text and as JSON. */
#ifndef GP_JOBS_INCIDENT_H
#define GP_JOBS_INCIDENT_H

#include "jobs/failure.h"

#include <jansson.h>

struct gp_device;
struct gp_snapshot;
struct gp_strbuf;

enum { GP_INCIDENT_LINE = 400 /* bytes */ };

struct gp_incident {
    struct gp_failure failure;
    struct gp_causes causes;     /* set by gp_incident_judge() */
    char line[GP_INCIDENT_LINE]; /* its first line, truncated */
    uint64_t line_number;        /* counted from 1 */
};

/* Adds what a snapshot from that moment, or soon after, shows of the GPU: numbers that the program
 * did not print, and the other processes. `from` is the ancestor of all processes of the job;
 * `job_bytes` is the most that the job was seen to use there, as it may have exited since. */
void gp_incident_add_scene(struct gp_incident *incident, const struct gp_snapshot *snapshot,
                           const struct gp_device *device, int64_t from, double job_bytes);

/* Call this when all available numbers are there. */
void gp_incident_judge(struct gp_incident *incident);

/* Appends two indented lines for each cause: the reason and the remedy. */
void gp_incident_add_causes(struct gp_strbuf *sb, const struct gp_incident *incident);

/* All of it, as documented in docs/schema.md; NULL if out of memory. */
json_t *gp_incident_json(const struct gp_incident *incident);

#endif
