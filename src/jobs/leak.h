/* Detects processes whose GPU memory keeps growing, and predicts when their GPU will be full.
 * Frameworks keep memory that they have freed, so their memory climbs in steps and then stays
 * level. Only a trough that rises for the whole time counts, measured by a slope that single steps
 * do not affect. */
#ifndef GP_JOBS_LEAK_H
#define GP_JOBS_LEAK_H

#include "base/util.h"

struct gp_metric_set;
struct gp_snapshot;
struct gp_strbuf;

enum {
    GP_LEAK_SAMPLES = 5,      /* per window, whose minimum counts */
    GP_LEAK_WINDOWS = 64,     /* stored at most */
    GP_LEAK_WINDOWS_MIN = 20, /* needed for a trend */
    GP_LEAK_YOUNG_S = 600,    /* caches may still fill up to this age */
};

struct gp_leak_trend {
    bool known;         /* there are enough windows */
    bool rises;         /* 95 of 100 pairs of windows rise, by more than 1 MiB per minute */
    double bytes_per_s; /* median of the slopes of all pairs (Theil-Sen estimator) */
};

/* From windows at these times (seconds), in order. */
struct gp_leak_trend gp_leak_trend(const double *times_s, const double *bytes, size_t count);

struct gp_leaks;

/* The metrics that the samples need. */
void gp_leaks_want(struct gp_metric_set *metrics);

/* NULL if out of memory. */
struct gp_leaks *gp_leaks_new(void) GP_MUST_CHECK;
void gp_leaks_free(struct gp_leaks *leaks);

/* Adds a sample. GP_ENOMEM. */
int gp_leaks_take(struct gp_leaks *leaks, const struct gp_snapshot *snapshot) GP_MUST_CHECK;

/* Appends a line for each process and GPU of that sample: its growth and the time until the GPU is
 * full; growing processes first. Human-readable, or CSV with plain numbers. */
void gp_leaks_add(struct gp_strbuf *sb, struct gp_leaks *leaks, const struct gp_snapshot *snapshot,
                  bool csv, bool header);

#endif
