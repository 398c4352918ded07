/* Searches a batch size: runs a command with the sizes that jobs/fit chooses, and judges these
 * trials. Progress is reported to the watch of the run. */
#ifndef GP_JOBS_FIT_SEARCH_H
#define GP_JOBS_FIT_SEARCH_H

#include "jobs/fit.h"
#include "jobs/fit_cache.h"
#include "jobs/fit_trial.h"
#include "jobs/run.h"

#include <regex.h>

struct gp_fit_plan {
    struct gp_run_plan run; /* its timeout is the maximum of a trial */
    uint64_t min, start, max, multiple; /* batch sizes; start and max: 0 for none */
    uint64_t margin;                    /* percent of the GPU's memory that is left free */
    uint64_t steady_ns;                 /* a trial is over when its memory has not risen for this */
    uint64_t hang_ns;        /* it hangs after this time without progress; 0: from earlier trials */
    const char *until;       /* regular expression instead of steady_ns; NULL: none */
    const char *confirm;     /* "full", "no", or a time, which is confirm_ns; NULL: by default */
    uint64_t confirm_ns;
    const char *env; /* NAME=VALUE with {} for the batch size; NULL: none */
    bool fresh;      /* ignore the results of earlier searches */
};

enum { GP_FIT_VARIABLES = 4 };

struct gp_fit_search {
    const struct gp_fit_plan *plan;
    struct gp_run_plan run_plan; /* of the current trial */
    struct gp_run *run;
    const regex_t *until; /* plan->until, compiled by the caller; NULL: none */
    struct gp_fit fit;
    struct gp_fit_cache cache;
    char *const *template; /* the command, containing {} */
    size_t words;
    uint64_t longest_ns,
        settle_ns; /* maximum over all successful short trials: total, and until the peak */
    /* of the current trial */
    char log[GP_PATH_SIZE];
    char *variables[GP_FIT_VARIABLES]; /* NULL after the last one */
    struct gp_fit_watch watch;
    double busy_sum; /* as of the last sample */
};

/* Warns about environment variables that make programs preallocate GPU memory. */
void gp_fit_warn_of_environment(const struct gp_watch *watch);

/* Appends the command of a trial with its variables, in human-readable form. */
void gp_fit_add_command(struct gp_strbuf *sb, const struct gp_fit_search *s, uint64_t batch);

/* The sizes and the margin from the plan, without the GPU's memory. */
struct gp_fit_request gp_fit_request_of(const struct gp_fit_plan *o);

/* Prepares a search for a command of `count` words, whose trials are run by `run`. */
void gp_fit_search_prepare(struct gp_fit_search *s, const struct gp_fit_plan *o,
                           struct gp_run *run, char *const *words, size_t count);

/* Starts the search on the GPUs granted to `watch`: the one with the least memory counts.
 * GP_EUSAGE. */
int gp_fit_search_init(struct gp_fit_search *s, const struct gp_watch *watch,
                       struct gp_err *err) GP_MUST_CHECK;

/* Runs trials until the search ends. GP_EFAIL: a trial failed for another reason, which stops the
 * search; GP_EINTR; GP_EIO: its output cannot be written. */
int gp_fit_search_run(struct gp_fit_search *s, struct gp_err *err) GP_MUST_CHECK;

#endif
