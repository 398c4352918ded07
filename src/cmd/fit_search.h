/* The trials of gpulse fit-batch: runs the command with the batch sizes that the search in jobs/fit
 * chooses. */
#ifndef GP_CMD_FIT_SEARCH_H
#define GP_CMD_FIT_SEARCH_H

#include "cmd/run_job.h"

#include "jobs/fit.h"
#include "jobs/fit_cache.h"
#include "jobs/fit_trial.h"

#include <regex.h>

struct gp_fit_options {
    struct gp_run_plan plan;
    uint64_t min, start, max, multiple, margin, steady_ns, hang_ns;
    const char *until, *confirm, *env, *format, *dir;
    uint64_t confirm_ns; /* of --confirm, if it is a time */
    bool fresh, dry_run;
};

enum { GP_FIT_VARIABLES = 4 };

struct gp_fit_search {
    const struct gp_fit_options *options;
    struct gp_run_plan plan; /* of the trials */
    struct gp_run *run;
    const regex_t *until; /* NULL: no --until */
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

/* The sizes and the margin from the options, without the GPU's memory. */
struct gp_fit_request gp_fit_request_of(const struct gp_fit_options *o);

/* Prepares a search for a command of `count` words, whose trials are run by `run`. */
void gp_fit_search_prepare(struct gp_fit_search *s, const struct gp_fit_options *o,
                           struct gp_run *run, char *const *words, size_t count);

/* Starts the search on the GPUs granted to `watch`: the one with the least memory counts.
 * GP_EUSAGE. */
int gp_fit_search_init(struct gp_fit_search *s, const struct gp_watch *watch,
                       struct gp_err *err) GP_MUST_CHECK;

/* Runs trials until the search ends. GP_EFAIL: a trial failed for another reason, which stops the
 * search; GP_EINTR; GP_EIO: its output cannot be written. */
int gp_fit_search_run(struct gp_fit_search *s, struct gp_err *err) GP_MUST_CHECK;

#endif
