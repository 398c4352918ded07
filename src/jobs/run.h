/* Runs a command on reserved GPUs, once or several times: watches it, ends it at its limits, and
 * cleans up after it. */
#ifndef GP_JOBS_RUN_H
#define GP_JOBS_RUN_H

#include "jobs/child.h"
#include "jobs/guard.h"
#include "jobs/output.h"
#include "jobs/reserve.h"
#include "jobs/slow.h"
#include "jobs/watch.h"
#include "proc/ending.h"

enum { GP_RUN_VARIABLES = 64 };

struct gp_marks_reader;
struct gp_timeline;

struct gp_run_plan {
    struct gp_reserve_plan gpus; /* its functions are set by the run */
    uint64_t timeout_ns;         /* of the command; 0: no limit */
    uint64_t sample_ns;          /* between two samples */
    struct gp_output_plan output;
    char *const *variables; /* "NAME=VALUE" in addition to those that name its GPUs, at most
                               GP_RUN_VARIABLES, NULL after the last one; NULL: none */
    bool quiet, no_clean, no_watch;
    bool is_detached; /* see struct gp_child */
    struct gp_watch_limits limits;
    struct gp_marks_reader *marks; /* receives what the job reports itself; NULL: nothing does */
    struct gp_timeline *timeline;  /* NULL: none */
    const struct gp_observed *observed; /* to say why the command was slow; NULL: that is not
                                           said */
    /* Called for each sample, decides what happens to the command. NULL: not called. */
    enum gp_watch_order (*judge)(void *context, struct gp_watch *watch);
    void *context;
};

struct gp_run {
    const struct gp_run_plan *plan;
    struct gp_reserve_plan reserve_plan;
    struct gp_reserve gpus;
    struct gp_guard guard;
    struct gp_ending others; /* children of this process that are not the job's */
    struct gp_child child;
    struct gp_watch watch; /* set its `tell` and `label` before gp_run_begin() */
    struct gp_slow slow;
    struct gp_pace pace; /* of the last try */
    uint64_t looked_ns;
    bool is_lost;       /* part of its output */
    bool is_unreserved; /* its GPUs may be those of others: said already */
};

/* Makes a run of zeros one that has nothing open. */
void gp_run_init(struct gp_run *run);

/* Starts the guard, a child process. Call this before this process has threads, such as those of a
 * sampler. The plan must outlive the run. Must be closed whatever it returns. */
int gp_run_begin(struct gp_run *run, const struct gp_run_plan *plan,
                 struct gp_err *err) GP_MUST_CHECK;

/* What the sampler must collect besides gp_job_want(). */
struct gp_want gp_run_want(const struct gp_run_plan *plan);

/* Reserves GPUs for a command of `argc` words. The sampler must outlive the run. Errors as in
 * gp_reserve_open(). */
int gp_run_reserve(struct gp_run *run, struct gp_sampler *sampler, char *const *argv, int argc,
                   struct gp_err *err) GP_MUST_CHECK;

/* Runs the command until it exits, and terminates its leftover processes. Returns its exit status,
 * 124 if the time limit was reached, or 1 if it was stopped and still reported success. 126 and
 * 127, with child.pid below 0: it cannot be run, and the watch has told why. Otherwise an error. */
int gp_run_once(struct gp_run *run, char *const *argv, struct gp_err *err) GP_MUST_CHECK;

/* Waits until its memory is freed, or reports that it was not: the next command must find the GPUs
 * as this one did. False if it was not. */
bool gp_run_await_memory(struct gp_run *run);

/* Releases the GPUs and dismisses the guard. */
void gp_run_close(struct gp_run *run);

#endif
