#include "cmd/proc_end.h"

#include "cmd/app.h"
#include "cmd/proc_select.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "jobs/terminate.h"
#include "out/proc_list.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* 0: not given. */
static int signal_of(const char *word)
{
    return !word                       ? 0
           : strcmp(word, "int") == 0  ? SIGINT
           : strcmp(word, "term") == 0 ? SIGTERM
                                       : SIGKILL;
}

/* ---- what happens ---- */

static void on_skipped(void *context, const char *why)
{
    (void)context;
    (void)fprintf(stderr, "gpulse: skipped: %s\n", why);
}

static void on_signal(void *context, int signal, size_t left)
{
    (void)context;
    (void)fprintf(stderr, "gpulse: %s to %zu process%s\n", gp_terminate_signal_name(signal), left,
                  left == 1 ? "" : "es");
}

/* ---- the list ---- */

static int show(const struct gp_terminate *job, size_t *ret_count, struct gp_err *err)
{
    static const enum gp_proc_column usual[] = {
        GP_PROC_PID_COLUMN,     GP_PROC_USER_COLUMN, GP_PROC_GPU_COLUMN,
        GP_PROC_MEMORY_COLUMN,  GP_PROC_TIME_COLUMN, GP_PROC_CONTAINER_COLUMN,
        GP_PROC_COMMAND_COLUMN,
    };
    enum gp_proc_column columns[GP_PROC_COLUMN__COUNT];
    size_t count = GP_ARRAY_LEN(usual);
    memcpy(columns, usual, sizeof(usual));
    struct gp_procs procs = {.rows = NULL};
    int r = gp_terminate_list(job, &procs) < 0 ? gp_err_set(err, GP_ENOMEM, "out of memory") : 0;
    gp_proc_list_add_occasional(&procs, columns, &count);
    if (r == 0)
        r = gp_proc_select_show(&procs, columns, count, err);
    *ret_count = procs.count;
    gp_procs_fini(&procs);
    return r;
}

static int confirm(const struct gp_end_options *o, size_t count, struct gp_err *err)
{
    char question[96];
    if (o->yes)
        return 0;
    (void)snprintf(question, sizeof(question), "Terminate %zu process%s", count,
                   count == 1 ? "" : "es");
    return gp_app_confirm(question, "nothing was terminated", err);
}

/* ---- results ---- */

static int report(const struct gp_terminate *job, struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(64 << 20);
    gp_terminate_add_result(&sb, job);
    int r = gp_app_write(STDOUT_FILENO, &sb, err);
    gp_strbuf_fini(&sb);
    return r;
}

/* ---- the command ---- */

static int terminate(struct gp_terminate *job, const struct gp_end_options *o, struct gp_err *err)
{
    struct gp_err why;
    size_t count;
    int r = show(job, &count, err);
    const char *why_not = gp_terminate_why_not(job);
    if (r == 0 && why_not)
        (void)fprintf(stderr, "gpulse: nothing was terminated (%s)\n", why_not);
    if (r < 0 || why_not)
        return r;
    r = confirm(o, count, err);
    if (r < 0)
        return r;
    int ended = gp_terminate_run(job, &why);
    r = report(job, err);
    return r < 0 || ended == 0 ? r : gp_err_copy(err, &why);
}

int gp_end_processes(struct gp_sampler *sampler, const struct gp_snapshot *snapshot,
                     const struct gp_procs *procs, const int64_t *named, size_t named_count,
                     const struct gp_end_options *options, bool *ret_ended, struct gp_err *err)
{
    const struct gp_terminate_plan plan = {
        .dry_run = options->dry_run,
        .tree = options->tree,
        .first_signal = signal_of(options->first),
        .grace_ns = options->grace_ns,
        .wait_ns = options->wait_ns,
        .on_skipped = on_skipped,
        .on_signal = on_signal,
    };
    struct gp_terminate job;
    if (!gp_observed_is_reachable(gp_app_observed()))
        return gp_err_set(err, GP_EUSAGE, "processes below --root are not running on this machine");
    int r = gp_terminate_choose(&job, &plan, sampler, snapshot, procs, named, named_count, err);
    if (r == 0)
        r = terminate(&job, options, err);
    if (r == 0)
        *ret_ended = !job.only_shows;
    gp_terminate_fini(&job);
    return r;
}
