/* The timeline of a job, for gpulse run --timeline: samples of its GPUs and processes, lines of its
 * output, and the marks and ranges that it reports itself, as one trace (out/trace) on one clock.
 *
 * It is sampled by the thread that runs the job; lines come from the thread that reads its output.
 * Memory is bounded; the trace is written as it grows. A job that is tried again continues it. */
#ifndef GP_JOBS_TIMELINE_H
#define GP_JOBS_TIMELINE_H

#include "base/util.h"

#include <sys/types.h>

struct gp_err;
struct gp_marks_reader;
struct gp_snapshot;
struct gp_timeline;
struct gp_want;
struct gp_watch;

struct gp_timeline_plan {
    char *const *argv; /* the job's command */
    const char *path;  /* of the trace; NULL: no timeline */
    const char *mark; /* lines of output that match this regular expression are marks; NULL: none */
    uint64_t interval_ns; /* between two samples, at first; 0: see gp_timeline_interval_ns() */
    bool has_nvtx;        /* receive what the job's processes report to NVTX */
};

enum {
    GP_TIMELINE_MS = 500,
    GP_TIMELINE_OFTEN_S = 3600, /* how long it is sampled that often, without an interval */
    GP_TIMELINE_LATE_S = 10,    /* and how often after that */
    GP_TIMELINE_STEP = 128 << 20,
};

/* Prepares it. GP_EUSAGE: the expression is malformed, or another tool uses NVTX, or FILE is "-" or
 * exists and is no trace; GP_EIO, GP_EPERM: FILE is no regular file, or cannot be created. The plan
 * must outlive it. Call it before GPUs are reserved, so that a mistake costs no time. */
int gp_timeline_open(struct gp_timeline **ret, const struct gp_timeline_plan *plan,
                     struct gp_err *err) GP_MUST_CHECK;

/* Opens the file, before the command starts: an existing one becomes FILE.1. What `marks` receives
 * goes to it; they must outlive the timeline. Errors as in gp_trace_open(). */
int gp_timeline_start(struct gp_timeline *timeline, struct gp_marks_reader *marks,
                      struct gp_err *err) GP_MUST_CHECK;

/* What samples must contain. */
void gp_timeline_add_want(struct gp_want *want);

/* A variable ("NAME=VALUE") for the job's environment, which belongs to the timeline; NULL: none.
 */
char *gp_timeline_variable(struct gp_timeline *timeline);

/* The job starts, or starts again; its processes are the descendants of `parent`. The
 * first start is the time 0. */
void gp_timeline_begin(struct gp_timeline *timeline, pid_t parent, uint64_t started_ns);

/* Collects what the job reported, and writes. Returns when to call it again (monotonic). */
uint64_t gp_timeline_collect(struct gp_timeline *timeline);

/* Between two samples, `age_ns` after the start: what the plan says, or GP_TIMELINE_MS, and later
 * GP_TIMELINE_LATE_S. Each GP_TIMELINE_STEP bytes of samples double the first interval, so that the
 * file grows with the logarithm of the time: 256 processes on 8 GPUs, sampled every 0.05 s, write
 * less than 2 GiB in a month. */
uint64_t gp_timeline_interval_ns(uint64_t planned_ns, uint64_t age_ns, uint64_t sampled_bytes);

/* When the next sample is due; and whether one that is taken now for another reason can be it. */
uint64_t gp_timeline_due_ns(const struct gp_timeline *timeline);
bool gp_timeline_is_due(const struct gp_timeline *timeline);
void gp_timeline_sample(struct gp_timeline *timeline, const struct gp_snapshot *snapshot,
                        const struct gp_watch *watch);

/* A sample could not be taken: the next one is due later. */
void gp_timeline_skip(struct gp_timeline *timeline);

/* To be called after each tick of the sampler, whether it was a sample of the timeline or not:
 * means that the driver reports are those since the last tick. */
void gp_timeline_note_tick(struct gp_timeline *timeline, const struct gp_snapshot *snapshot);

/* A line of output. Any thread. */
void gp_timeline_add_line(void *timeline, const char *line);
/* Something that happened to the job. */
void gp_timeline_add_note(struct gp_timeline *timeline, const char *text);

/* The job has exited, and all of its output was read. */
void gp_timeline_end(struct gp_timeline *timeline, int status);

/* Completes the trace, frees everything, and says on the watch where the trace is, and how to look
 * deeper. NULL: nothing. */
void gp_timeline_close(struct gp_timeline *timeline, const struct gp_watch *watch);

#endif
