/* Why a job was slow: looks at it more closely every few seconds, and says at its end what stood
 * out. */
#ifndef GP_JOBS_SLOW_H
#define GP_JOBS_SLOW_H

#include "base/util.h"

#include <jansson.h>

struct gp_observed;
struct gp_snapshot;
struct gp_want;
struct gp_watch;
struct gp_why_follow;

struct gp_slow {
    const struct gp_observed *observed; /* the machine; NULL: nothing is looked for */
    struct gp_why_follow *follow;
    uint64_t due_ns; /* of the next closer look */
};

/* Adds what a closer look needs: to want->more, or if it costs no driver call, to
 * want->metrics. */
void gp_slow_add_want(struct gp_want *want);

/* The job starts, or is retried: its processes come from this one. */
void gp_slow_begin(struct gp_slow *slow, uint64_t now_ns);

/* Whether the next sample is to be a closer look. */
bool gp_slow_is_due(const struct gp_slow *slow, uint64_t now_ns);

/* A sample with want->more. */
void gp_slow_look(struct gp_slow *slow, const struct gp_snapshot *snapshot);

/* The job has ended: reports the surest reason through the watch if `tells`, and returns all of
 * them as in run.json; NULL: it was not observed for long enough. */
json_t *gp_slow_end(struct gp_slow *slow, const struct gp_watch *watch, bool tells);

void gp_slow_fini(struct gp_slow *slow);

#endif
