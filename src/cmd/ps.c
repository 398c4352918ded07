/* gpulse ps: lists GPU processes, or sums by user, container or GPU. */
#include "cmd/app.h"
#include "cmd/commands.h"
#include "cmd/habits.h"
#include "cmd/holders.h"
#include "cmd/proc_choice.h"
#include "cmd/proc_idle.h"

#include "base/err.h"
#include "base/io.h"
#include "base/parse.h"
#include "base/strbuf.h"
#include "jobs/account.h"
#include "jobs/environment.h"
#include "jobs/leak.h"
#include "jobs/proc_selection.h"
#include "model/snapshot.h"
#include "out/partial.h"
#include "out/proc_list.h"
#include "out/reservation.h"
#include "proc/holders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { INSPECT_S = 5 }; /* for the environment of a process */

struct ps_options {
    struct gp_proc_choice choice;
    const char *filter, *sort, *columns, *by, *format;
    bool tree, per_gpu, no_header, explain, holders, leaks, env;
    uint64_t interval_ns;
    uint64_t count;
    uint64_t idle_ns;
};

#define OPT(field) offsetof(struct ps_options, field)

static const struct gp_opt options[] = {
    GP_PROC_CHOICE_ROWS(struct ps_options, choice),
    GP_IDLE_ROW(struct ps_options, idle_ns),
    {0, "filter", NULL, GP_OPT_STRING, "WORDS", .offset = OPT(filter),
     .help = "only processes that match all WORDS, for example 'user:al cmd:train' or vllm"},
    {0, "by", NULL, GP_OPT_CHOICE, "KEY", .choices = GP_PROC_BY_WORDS, .offset = OPT(by),
     .group = "Show", .help = "sums per KEY"},
    {'t', "tree", NULL, GP_OPT_FLAG, .offset = OPT(tree), .excludes = "by per-gpu idle",
     .help = "processes below their parents"},
    {0, "per-gpu", NULL, GP_OPT_FLAG, .offset = OPT(per_gpu),
     .help = "a line for each GPU of a process"},
    {0, "explain", NULL, GP_OPT_FLAG, .offset = OPT(explain),
     .excludes = "holders by tree per-gpu idle",
     .help = "how each GPU's memory is used, including by unlisted processes"},
    {0, "holders", NULL, GP_OPT_FLAG, .offset = OPT(holders), .excludes = "by tree per-gpu idle",
     .help = "processes that have a GPU open but are not listed by the driver"},
    {0, "env", NULL, GP_OPT_FLAG, .offset = OPT(env),
     .help = "the environment of each process (may contain secrets)"},
    {0, "leaks", NULL, GP_OPT_FLAG, .offset = OPT(leaks), .needs = "interval",
     .excludes = "explain holders by tree",
     .help = "with --interval: processes whose GPU memory grows (needs 100 samples)"},
    {'f', "format", NULL, GP_OPT_CHOICE, "FORMAT", .choices = "table csv json",
     .offset = OPT(format), .group = "Output", .help = "output format (default table)"},
    {0, "columns", NULL, GP_OPT_STRING, "COLUMNS", .offset = OPT(columns),
     .help = "columns to print, for example pid,user,gpu,memory,command; 'help' lists all"},
    {0, "sort", NULL, GP_OPT_STRING, "COLUMNS", .offset = OPT(sort), .takes_dash = true,
     .help = "sort by these columns; -COLUMN reverses (default memory)"},
    {0, "no-header", NULL, GP_OPT_FLAG, .offset = OPT(no_header), .help = "omit the header line"},
    {'n', "interval", "watch", GP_OPT_DURATION, "TIME", "2", .offset = OPT(interval_ns),
     .excludes = "idle", .least = GP_NS_PER_S / 10, .group = "Repeat",
     .help = "repeat every TIME (default 2s) until Ctrl-C"},
    {'c', "count", NULL, GP_OPT_U64, "N", .offset = OPT(count), .least = 1, .needs = "interval",
     .help = "stop after N samples"},
    GP_OPT_END,
};

struct ps_run {
    const struct ps_options *options;
    struct gp_procs_options rows;
    enum gp_proc_column columns[GP_PROC_COLUMN__COUNT];
    struct gp_proc_list list;
    bool json;
    bool has_noted;              /* what cannot be inspected */
    const struct gp_proc_by *by; /* NULL: the list */
    char filter[1024];
    struct gp_idle idle;
    struct gp_leaks *leaks;
    struct gp_strbuf sb;
    bool is_empty;       /* something was selected, and nothing matches */
    bool has_told_empty; /* when repeating */
};

/* ---- a sample ---- */

static void add_rows(struct ps_run *run, const struct gp_snapshot *snapshot,
                     const struct gp_procs *procs)
{
    if (run->json)
        gp_proc_list_json(&run->sb, snapshot, procs);
    else
        gp_proc_list_add(&run->sb, &run->list, procs);
}

static int add_sums(struct ps_run *run, const struct gp_snapshot *snapshot,
                    const struct gp_procs *procs)
{
    struct gp_proc_sum *sums;
    size_t count;
    int r = gp_proc_sums(procs, run->by, &sums, &count);
    if (r < 0)
        return r;
    if (run->json)
        gp_proc_sums_json(&run->sb, snapshot, run->by, sums, count);
    else
        gp_proc_sums_add(&run->sb, &run->list, run->by, sums, count);
    free(sums);
    return 0;
}

static int add_holders(struct ps_run *run, const struct gp_snapshot *snapshot,
                       const struct gp_holders *holders)
{
    struct gp_procs procs = {.rows = NULL};
    int r = gp_account_add_holders(&procs, snapshot, holders);
    gp_procs_filter(&procs, run->rows.filter);
    gp_procs_sort(&procs, &run->rows.order);
    if (r == 0)
        add_rows(run, snapshot, &procs);
    if (holders->hidden > 0)
        (void)fprintf(stderr, "gpulse: %zu process%s could not be inspected\n", holders->hidden,
                      holders->hidden == 1 ? "" : "es");
    gp_procs_fini(&procs);
    return r;
}

/* --explain and --holders. */
static int add_explained(struct ps_run *run, const struct gp_snapshot *snapshot, struct gp_err *err)
{
    struct gp_holders holders;
    int r = gp_app_find_holders(&holders, err);
    if (r < 0)
        return r;
    r = run->options->explain ? gp_accounts_explain(&run->sb, snapshot, &holders, run->json)
                              : add_holders(run, snapshot, &holders);
    gp_holders_fini(&holders);
    return r < 0 ? gp_err_set(err, r, "out of memory") : 0;
}

static int add_leaks(struct ps_run *run, const struct gp_snapshot *snapshot, struct gp_err *err)
{
    if (!run->leaks && !(run->leaks = gp_leaks_new()))
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    if (gp_leaks_take(run->leaks, snapshot) < 0)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    gp_leaks_add(&run->sb, run->leaks, snapshot, run->list.csv, run->list.header);
    return 0;
}

/* In a container the driver may list processes outside it, which cannot be inspected here. */
static void note_unseen(struct ps_run *run, const struct gp_procs *procs)
{
    if (gp_common()->tape)
        return; /* they are not of this machine */
    size_t unseen = gp_proc_is_inside(gp_app_observed()->prefix) ? gp_procs_unseen(procs) : 0;
    if (unseen > 0)
        (void)fprintf(stderr,
                      "gpulse: %zu of them cannot be seen from this container's pid namespace; "
                      "gpulse ps --holders shows which processes in it have the GPUs open\n",
                      unseen);
    run->has_noted = true;
}

static int add_environments(struct ps_run *run, const struct gp_snapshot *snapshot,
                            const struct gp_procs *procs, struct gp_err *err)
{
    int r = gp_environments_add(&run->sb, snapshot, procs, gp_app_observed()->prefix,
                                gp_app_timeout_ns(INSPECT_S * GP_NS_PER_S), run->json, err);
    if (r == GP_ETIMEOUT)
        gp_app_note_stuck();
    return r;
}

static int add_list(struct ps_run *run, const struct gp_snapshot *snapshot, struct gp_err *err)
{
    struct gp_procs procs = {.rows = NULL};
    int r = gp_procs_build(&procs, snapshot, &run->rows);
    run->is_empty = r == 0 && procs.count == 0 && *run->filter;
    if (run->options->idle_ns)
        gp_idle_keep(&run->idle, &procs);
    if (!run->options->columns && !run->list.csv)
        gp_proc_list_add_occasional(&procs, run->columns, &run->list.column_count);
    if (r == 0 && !run->json && !run->has_noted)
        note_unseen(run, &procs);
    if (r == 0 && run->options->env)
        r = add_environments(run, snapshot, &procs, err);
    else if (r == 0 && run->options->by)
        r = add_sums(run, snapshot, &procs);
    else if (r == 0)
        add_rows(run, snapshot, &procs);
    gp_procs_fini(&procs);
    return r == GP_ENOMEM ? gp_err_set(err, r, "out of memory") : r;
}

/* When repeating, an empty table is no error: a process may start. It is explained once. */
static void note_empty(struct ps_run *run, const struct gp_snapshot *snapshot)
{
    struct gp_err why = {0};
    if (run->is_empty && !run->has_told_empty &&
        gp_proc_selection_refuse(run->filter, snapshot, &why) < 0)
        gp_io_print_note("gpulse", why.text);
    run->has_told_empty = run->is_empty;
}

static int on_sample(const struct gp_snapshot *snapshot, void *ctx, struct gp_err *err)
{
    struct ps_run *run = ctx;
    const struct ps_options *o = run->options;
    gp_strbuf_reset(&run->sb);
    int r = o->explain || o->holders ? add_explained(run, snapshot, err)
            : o->leaks               ? add_leaks(run, snapshot, err)
                                     : add_list(run, snapshot, err);
    if (r < 0)
        return r;
    if (!run->list.csv && !run->json && run->options->interval_ns)
        gp_strbuf_addc(&run->sb, '\n');
    run->list.header = run->list.header && !run->list.csv; /* csv has only one header */
    r = gp_app_write(STDOUT_FILENO, &run->sb, err);
    if (r == 0 && run->options->interval_ns)
        note_empty(run, snapshot);
    if (r < 0 || run->options->interval_ns)
        return r;
    gp_partial_explain(snapshot, err);
    return run->is_empty ? gp_proc_selection_refuse(run->filter, snapshot, err) : 0;
}

/* ---- running ---- */

/* Only the metrics behind printed columns are read. */
static bool is_shown(const struct ps_run *run, enum gp_proc_column column)
{
    bool shown =
        run->json || (run->options->by && (column == run->by->column || gp_proc_sums_have(column)));
    for (size_t i = 0; !run->options->by && i < run->list.column_count; i++)
        shown = shown || run->columns[i] == column;
    for (size_t i = 0; i < run->rows.order.count; i++)
        shown = shown || run->rows.order.by[i].column == column;
    return shown || *run->filter || (run->options->tree && column == GP_PROC_PPID_COLUMN);
}

static struct gp_want want_of(const struct ps_run *run)
{
    struct gp_want want = {
        .mig = true, .processes = true, .process_names = true, .ancestors = run->options->tree};
    gp_metric_set_add(&want.metrics, GP_PID);
    gp_proc_list_want_occasional(&want.metrics);
    gp_metric_set_add(&want.metrics, GP_MEMORY_UNATTRIBUTED);
    if (!run->options->by && !run->options->leaks && !run->options->env)
        gp_reservation_want(&want.metrics);
    if (run->options->idle_ns)
        gp_idle_want(&want.metrics);
    if (run->options->leaks)
        gp_leaks_want(&want.metrics);
    if (run->options->explain || run->options->holders)
        gp_accounts_want(&want.metrics);
    for (int c = 0; c < GP_PROC_COLUMN__COUNT; c++)
        if (is_shown(run, (enum gp_proc_column)c))
            gp_proc_column_want((enum gp_proc_column)c, &want.metrics);
    return want;
}

static int set_up(struct ps_run *run, const struct ps_options *o, struct gp_err *err)
{
    if (gp_common()->tape && (o->explain || o->holders || o->env))
        return gp_err_set(err, GP_EUSAGE,
                          "--explain, --holders and --env inspect the processes of this machine, "
                          "not of a recording");
    if (o->by && (o->columns || o->sort || o->per_gpu))
        return gp_err_set(err, GP_EUSAGE,
                          "--by has its own columns and order; omit --columns and --sort");
    if (o->by && strchr(o->by, ','))
        return gp_err_set(err, GP_EUSAGE, "--by takes one of: " GP_PROC_BY_WORDS);
    if (strchr(o->format, ','))
        return gp_err_set(err, GP_EUSAGE, "--format takes one of: table csv json");
    bool chooses = gp_proc_choice_any(&o->choice) || o->filter;
    if ((o->explain || o->leaks) && (chooses || o->columns || o->sort))
        return gp_err_set(
            err, GP_EUSAGE,
            "--explain and --leaks show all processes on the selected GPUs, in their own columns");
    if (o->explain && strcmp(o->format, "csv") == 0)
        return gp_err_set(err, GP_EUSAGE, "--explain supports only --format table and json");
    if (o->env && (o->interval_ns || o->explain || o->holders || o->leaks || o->by || o->tree ||
                   o->columns || strcmp(o->format, "csv") == 0))
        return gp_err_set(
            err, GP_EUSAGE,
            "--env supports only --format table and json, and options that select processes");
    if (o->interval_ns && strcmp(o->format, "json") == 0)
        return gp_err_set(err, GP_EUSAGE,
                          "--interval cannot be combined with --format json, which is one "
                          "document; use gpulse query --processes -f ndjson");
    run->by = o->by ? gp_proc_by(o->by) : NULL;
    run->json = strcmp(o->format, "json") == 0;
    run->rows = (struct gp_procs_options){
        .filter = run->filter,
        .gpu = -1,
        .tree = o->tree,
        .reserved = strcmp(o->format, "table") == 0 && !o->by,
        .per_gpu = o->per_gpu || (run->by && run->by->column == GP_PROC_GPU_COLUMN),
    };
    run->list = (struct gp_proc_list){
        .columns = run->columns,
        .csv = strcmp(o->format, "csv") == 0,
        .marks_bounds = !o->columns,
        .header = !o->no_header,
        .room = gp_io_columns(),
        .drops = !o->columns,
    };
    int r = gp_proc_choice_add_words(o->filter, run->filter, sizeof(run->filter), err);
    if (r == 0)
        r = gp_proc_choice_add(&o->choice, run->filter, sizeof(run->filter), err);
    if (r == 0)
        r = gp_proc_order_parse(o->sort ? o->sort : "memory", &run->rows.order, err);
    if (r == 0)
        r = gp_proc_columns_parse(o->columns ? o->columns : "", run->columns,
                                  &run->list.column_count, err);
    return r;
}

/* Arguments are words of a filter; numbers are pids, any of which may match. */
static int add_arguments(struct ps_run *run, char *const *arguments, int count, struct gp_err *err)
{
    struct gp_strbuf pids = GP_STRBUF_INIT(sizeof(run->filter));
    int r = gp_habit_check_words(gp_cmd_ps.name, count, arguments, err);
    if (r == 0 && count > 0 && (run->options->explain || run->options->leaks))
        r = gp_err_set(err, GP_EUSAGE, "--explain and --leaks show all processes, not '%.60s'",
                       arguments[0]);
    for (int i = 0; r == 0 && i < count; i++) {
        const char *word = arguments[i];
        if (!word[strspn(word, " ,")])
            r = gp_err_set(err, GP_EUSAGE, "an argument is empty");
        else if (word[strspn(word, "0123456789,")])
            r = gp_proc_choice_add_words(word, run->filter, sizeof(run->filter), err);
        else
            gp_strbuf_addf(&pids, "%s%s", pids.len ? "," : "pid=", word);
    }
    if (r == 0)
        r = pids.error ? gp_err_set(err, GP_EUSAGE, "too many words to select processes")
                       : gp_proc_choice_add_words(pids.buf, run->filter, sizeof(run->filter), err);
    gp_strbuf_fini(&pids);
    return r;
}

static int list_idle(struct ps_run *run, struct gp_sampler *sampler, struct gp_err *err)
{
    struct gp_snapshot *last = NULL;
    int r = gp_idle_watch(sampler, run->filter, run->options->idle_ns, &run->idle, &last, err);
    if (r == 0)
        r = on_sample(last, run, err);
    gp_snapshot_free(last);
    gp_idle_fini(&run->idle);
    return r;
}

static int ps_main(int argc, char **argv, struct gp_err *err)
{
    struct ps_options o = {.format = "table"};
    int positional;
    bool done;
    int r = gp_app_parse(&gp_cmd_ps, argc, argv, &o, &positional, &done, err);
    if (r < 0 || done)
        return r;
    if (gp_app_wants_columns(o.columns) || gp_app_wants_columns(o.sort))
        return gp_app_print_columns(gp_proc_columns_add_help, err);
    struct ps_run run = {.options = &o, .sb = GP_STRBUF_INIT(256 << 20)};
    struct gp_sampler *sampler;
    const struct gp_loop loop = {o.idle_ns ? GP_NS_PER_S : o.interval_ns, o.count, 0, 0};
    r = add_arguments(&run, argv + 1, positional, err);
    if (r == 0)
        r = set_up(&run, &o, err);
    if (r == 0 && o.idle_ns)
        r = gp_idle_take_id(run.filter, sizeof(run.filter), err);
    if (r < 0)
        return r;
    const struct gp_want want = want_of(&run);
    r = gp_app_open(&want, &loop, &sampler, err);
    if (r < 0)
        return r;
    r = o.idle_ns ? list_idle(&run, sampler, err)
                  : gp_app_loop(sampler, &loop, on_sample, &run, err);
    gp_strbuf_fini(&run.sb);
    gp_leaks_free(run.leaks);
    gp_app_close(sampler);
    return r;
}

const struct gp_cmd gp_cmd_ps = {
    .name = "ps",
    .group = "Processes",
    .summary = "list the processes on the GPUs",
    .usage = "[PID|WORD...] [options]",
    .description =
        "Prints a line per process: its memory and activity on all its GPUs, its CPU and host "
        "memory, its user, and the container or job it runs in. GPU memory that no listed process "
        "accounts for has its own line, without a pid, and so has a GPU that is reserved by gpulse "
        "run but has no processes. IDLE is the time since a process last used a GPU: ≥3m if it was "
        "not active in the 3 minutes that gpulse has watched, and - if the driver does not report "
        "it.\n"
        "\n"
        "Columns, filter words and sorting are the same as in gpulse top. An unknown value is -, "
        "empty in csv and null in JSON. In csv and JSON, memory is in bytes and time in seconds.",
    .examples =
        "gpulse ps\tall processes, largest first\ngpulse ps --by user\tmemory per user\ngpulse ps "
        "-i 0,1 -u alice train\talice's training jobs on two GPUs\ngpulse ps --explain -i 0\twhy "
        "memory is in use without a process\ngpulse ps -n 5 --leaks\twhose memory grows\n",
    .options = options,
    .takes_tape = true,
    .run = ps_main,
};
