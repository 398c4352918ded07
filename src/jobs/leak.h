/* Whether a process takes more and more GPU memory: a rising trough, by a slope that single steps
 * do not sway, and when its GPU will be full. Frameworks keep what they have freed, so that their
 * memory climbs in steps and then stays level: only what rises through all of the time watched
 * counts. */
#ifndef GP_JOBS_LEAK_H
#define GP_JOBS_LEAK_H

#include "base/util.h"

struct gp_snapshot;
struct gp_strbuf;

enum {
    GP_LEAK_SAMPLES = 5,      /* make a window, whose least value counts */
    GP_LEAK_WINDOWS = 64,     /* are kept */
    GP_LEAK_WINDOWS_MIN = 20, /* are needed */
    GP_LEAK_YOUNG_S = 600,    /* so long caches may still fill */
};

struct gp_leak_trend {
    bool known;         /* there are enough windows */
    bool rises;         /* 95 of 100 pairs of windows do, and by more than a MiB in a minute */
    double bytes_per_s; /* median of the slopes of all pairs (Theil and Sen) */
};

/* Of windows at these times (seconds), in their order. */
struct gp_leak_trend gp_leak_trend(const double *times_s, const double *bytes, size_t count);

struct gp_leaks;

/* NULL without memory. */
struct gp_leaks *gp_leaks_new(void) GP_MUST_CHECK;
void gp_leaks_free(struct gp_leaks *leaks);

/* Takes in a sample. GP_ENOMEM. */
int gp_leaks_take(struct gp_leaks *leaks, const struct gp_snapshot *snapshot) GP_MUST_CHECK;

/* A line for each process and GPU of that sample: its growth and the time until the GPU is full;
 * those that rise first. For people, or as csv with plain numbers. */
void gp_leaks_add(struct gp_strbuf *sb, const struct gp_leaks *leaks,
                  const struct gp_snapshot *snapshot, bool csv, bool header);

#endif
