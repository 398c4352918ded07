#include "cmd/proc_end.h"

#include "cmd/app.h"
#include "cmd/proc_select.h"
#include "cmd/ps_holders.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "jobs/terminate.h"
#include "model/snapshot.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *word, *name;
    int number;
} signals[] = {
    {"int", "SIGINT", SIGINT}, {"term", "SIGTERM", SIGTERM}, {"kill", "SIGKILL", SIGKILL}};

static int signal_number(const char *word)
{
    for (size_t i = 0; word && i < GP_ARRAY_LEN(signals); i++)
        if (strcmp(signals[i].word, word) == 0)
            return signals[i].number;
    return 0;
}

static const char *signal_name(int number)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(signals); i++)
        if (signals[i].number == number)
            return signals[i].name;
    return "nothing";
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
    (void)fprintf(stderr, "gpulse: %s to %zu process%s\n", signal_name(signal), left,
                  left == 1 ? "" : "es");
}

/* ---- the list ---- */

static bool is_child(const struct gp_terminate *job, int64_t pid)
{
    for (size_t i = 0; job->children && i < job->children->count; i++)
        if (job->children->infos[i].pid == pid)
            return true;
    return false;
}

/* A child that uses a GPU itself already has a row. */
static struct gp_proc_row child_row(const struct gp_terminate *job, const struct gp_proc_info *info)
{
    for (size_t i = 0; i < job->rows.count; i++)
        if (job->rows.rows[i].pid == info->pid)
            return job->rows.rows[i];
    return gp_ps_row(info, job->before->wall_ns);
}

/* All processes that will be terminated, children last. */
static int list(const struct gp_terminate *job, struct gp_procs *ret, struct gp_err *err)
{
    const size_t children = job->children ? job->children->count : 0;
    ret->rows = calloc(job->rows.count + children + 1, sizeof(*ret->rows));
    if (!ret->rows)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    for (size_t i = 0; i < job->rows.count; i++)
        if (!is_child(job, job->rows.rows[i].pid))
            ret->rows[ret->count++] = job->rows.rows[i];
    for (size_t i = 0; i < children; i++)
        ret->rows[ret->count++] = child_row(job, &job->children->infos[i]);
    return 0;
}

static bool any_suspended(const struct gp_procs *procs)
{
    for (size_t i = 0; i < procs->count; i++)
        if (procs->rows[i].suspended.known)
            return true;
    return false;
}

static int show(const struct gp_terminate *job, size_t *ret_count, struct gp_err *err)
{
    static const enum gp_proc_column all[] = {
        GP_PROC_PID_COLUMN,       GP_PROC_USER_COLUMN,      GP_PROC_GPU_COLUMN,
        GP_PROC_MEMORY_COLUMN,    GP_PROC_SUSPENDED_COLUMN, GP_PROC_TIME_COLUMN,
        GP_PROC_CONTAINER_COLUMN, GP_PROC_COMMAND_COLUMN,
    };
    enum gp_proc_column columns[GP_ARRAY_LEN(all)];
    size_t count = 0;
    struct gp_procs procs = {.rows = NULL};
    int r = list(job, &procs, err);
    for (size_t i = 0; i < GP_ARRAY_LEN(all); i++)
        if (all[i] != GP_PROC_SUSPENDED_COLUMN || any_suspended(&procs))
            columns[count++] = all[i];
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

static void add_outcome(struct gp_strbuf *sb, const struct gp_terminate *job,
                        const struct gp_ending_process *p)
{
    const double freed = gp_terminate_freed(job, p);
    const double suspended = gp_terminate_freed_suspended(job, p);
    gp_strbuf_addf(sb, "%lld%s ", (long long)p->pid, p->is_child ? " (child)" : "");
    if (!p->ended)
        gp_strbuf_addf(sb, "still runs: %s", gp_terminate_why_not(p));
    else
        gp_strbuf_addf(sb, "terminated after %.1f s, by %s", (double)p->after_ns / 1e9,
                       signal_name(p->signal));
    if (suspended >= 0)
        gp_strbuf_addf(sb, ", freed %.0f MiB of host memory, where it was suspended",
                       suspended / 0x1p20);
    else if (freed >= 0)
        gp_strbuf_addf(sb, ", freed %.0f MiB", freed / 0x1p20);
    gp_strbuf_addc(sb, '\n');
}

static void add_gpu(struct gp_strbuf *sb, const struct gp_terminate_gpu *gpu)
{
    gp_strbuf_addf(sb, "GPU %u: ", gpu->index);
    if (gpu->is_known)
        gp_strbuf_addf(sb, "%.0f MiB in use before, %.0f MiB now", gpu->before_bytes / 0x1p20,
                       gpu->now_bytes / 0x1p20);
    else
        gp_strbuf_adds(sb, "current use is unknown");
    if (!gpu->is_freed)
        gp_strbuf_addf(sb, "; some memory was not freed: see gpulse ps --explain -i %u",
                       gpu->index);
    gp_strbuf_addc(sb, '\n');
}

static int report(const struct gp_terminate *job, struct gp_err *err)
{
    struct gp_terminate_gpu gpu;
    struct gp_strbuf sb = GP_STRBUF_INIT(64 << 20);
    size_t at = 0;
    for (size_t i = 0; i < job->ending.count; i++)
        add_outcome(&sb, job, &job->ending.processes[i]);
    while (gp_terminate_next_gpu(job, &at, &gpu))
        add_gpu(&sb, &gpu);
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
    if (r == 0 && o->dry_run)
        (void)fprintf(stderr, "gpulse: nothing was terminated (--dry-run)\n");
    if (r < 0 || o->dry_run)
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
                     const struct gp_end_options *options, struct gp_err *err)
{
    const struct gp_terminate_plan plan = {
        .dry_run = options->dry_run,
        .tree = options->tree,
        .first_signal = signal_number(options->first),
        .grace_ns = options->grace_ns,
        .wait_ns = options->wait_ns,
        .on_skipped = on_skipped,
        .on_signal = on_signal,
    };
    struct gp_terminate job;
    if (!gp_app_is_reachable())
        return gp_err_set(err, GP_EUSAGE, "processes below --root are not running on this machine");
    int r = gp_terminate_choose(&job, &plan, sampler, snapshot, procs, named, named_count, err);
    if (r == 0)
        r = terminate(&job, options, err);
    gp_terminate_fini(&job);
    return r;
}
