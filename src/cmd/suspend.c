/* gpulse suspend, gpulse resume: move processes' GPU memory to host memory and back. */
#include "cmd/app.h"
#include "cmd/commands.h"
#include "cmd/proc_select.h"

#include "base/err.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "jobs/checkpoint.h"
#include "jobs/suspend_check.h"
#include "jobs/suspension.h"
#include "model/snapshot.h"
#include "out/procs.h"

#include <stdio.h>
#include <unistd.h>

enum {
    OPEN_S = 30,
    STATE_S = 10, /* for the driver to report the state of a process */
};

struct suspend_options {
    struct gp_proc_select select;
    bool yes, dry_run, force;
    uint64_t grace_ns;
};

struct resume_options {
    struct gp_proc_select select;
    uint64_t wait_ns;
    bool force, yes;
};

static const struct gp_opt suspend_options[] = {
    GP_PROC_SELECT_ROWS(struct suspend_options, select),
    {'y', "yes", NULL, GP_OPT_FLAG, .offset = offsetof(struct suspend_options, yes), .group = "Act",
     .help = "do not ask for confirmation"},
    {0, "dry-run", NULL, GP_OPT_FLAG, .offset = offsetof(struct suspend_options, dry_run),
     .help = "check and print what would be suspended, and do nothing"},
    {0, "grace", NULL, GP_OPT_DURATION, "TIME",
     .offset = offsetof(struct suspend_options, grace_ns),
     .help = "wait up to TIME for running GPU work to finish (default 10s)"},
    {0, "force", NULL, GP_OPT_FLAG, .offset = offsetof(struct suspend_options, force),
     .help = "include processes on several GPUs and distributed ranks, which may not survive"},
    GP_OPT_END,
};

static const struct gp_opt resume_options[] = {
    GP_PROC_SELECT_ROWS(struct resume_options, select),
    {'y', "yes", NULL, GP_OPT_FLAG, .offset = offsetof(struct resume_options, yes), .group = "Act",
     .help = "no effect: resume never asks"},
    {0, "wait", NULL, GP_OPT_DURATION, "TIME", .offset = offsetof(struct resume_options, wait_ns),
     .help = "wait up to TIME for enough free GPU memory (default: do not wait)"},
    {0, "force", NULL, GP_OPT_FLAG, .offset = offsetof(struct resume_options, force),
     .help = "resume a given pid even if the note about its memory is lost"},
    GP_OPT_END,
};

static const enum gp_proc_column columns[] = {
    GP_PROC_PID_COLUMN,       GP_PROC_USER_COLUMN, GP_PROC_GPU_COLUMN,     GP_PROC_MEMORY_COLUMN,
    GP_PROC_SUSPENDED_COLUMN, GP_PROC_TIME_COLUMN, GP_PROC_COMMAND_COLUMN,
};

static int open_sampler(const struct gp_proc_select *select, struct gp_sampler **ret,
                        struct gp_err *err)
{
    const struct gp_loop loop = {.interval_ns = GP_NS_PER_S};
    struct gp_want want = gp_suspension_want();
    gp_proc_select_want(select, &want);
    return gp_app_open(&want, &loop, ret, err);
}

static int open_driver(struct gp_err *err)
{
    static char room[GP_PATH_SIZE]; /* as long as the library is in use */
    const struct gp_observed *observed = gp_app_observed();
    const char *path;
    if (!gp_observed_is_reachable(observed))
        return gp_err_set(err, GP_EUSAGE, "processes below --root cannot be reached from here");
    int r = gp_observed_cuda(observed, room, &path, err);
    return r < 0 ? r : gp_checkpoint_open(path, gp_app_timeout_ns(OPEN_S * GP_NS_PER_S), err);
}

static int show(const struct gp_procs *procs, struct gp_err *err)
{
    return gp_proc_select_show(procs, columns, GP_ARRAY_LEN(columns), err);
}

/* ---- results ---- */

/* Prints the result of a move that returned `moved`, with its error. */
static int finish(int moved, const struct gp_err *why, struct gp_suspension_result *result,
                  const struct gp_suspended_list *list, bool suspended, struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    int r = 0;
    if (result->after) {
        gp_suspension_add_result(&sb, result, list, suspended);
        r = gp_app_write(STDOUT_FILENO, &sb, err);
    }
    gp_strbuf_fini(&sb);
    gp_suspension_result_fini(result);
    return r < 0 || moved == 0 ? r : gp_err_copy(err, why);
}

static void tell(const char *text)
{
    gp_io_print_note("gpulse", text);
}

static struct gp_suspension suspension_of(struct gp_sampler *sampler)
{
    return (struct gp_suspension){
        .sampler = sampler, .root = gp_app_observed()->prefix, .tell = tell};
}

/* ---- suspend ---- */

static int confirm(const struct gp_suspended_list *list, struct gp_err *err)
{
    char question[96];
    (void)snprintf(question, sizeof(question), "Suspend %zu process%s", list->count,
                   list->count == 1 ? "" : "es");
    return gp_app_confirm(question, "nothing was suspended", err);
}

static int suspend_list(struct gp_sampler *sampler, const struct suspend_options *o,
                        struct gp_suspended_list *list, uint64_t seen_wall_ns, struct gp_err *err)
{
    const struct gp_suspension move = suspension_of(sampler);
    struct gp_suspension_result result = {NULL, false};
    struct gp_err why;
    int r = o->yes ? 0 : confirm(list, err);
    if (r < 0)
        return r;
    r = gp_suspension_suspend(&move, list, o->grace_ns, seen_wall_ns, &result, &why);
    return finish(r, &why, &result, list, true, err);
}

static int suspend(struct gp_sampler *sampler, const struct suspend_options *o, struct gp_err *err)
{
    const struct gp_suspend_rules rules = {
        .root = gp_app_observed()->prefix,
        .timeout_ns = gp_app_timeout_ns(STATE_S * GP_NS_PER_S),
        .force = o->force,
    };
    struct gp_suspended_list list = {NULL, 0};
    struct gp_snapshot *snapshot;
    struct gp_procs procs;
    int r = gp_proc_select_find(&o->select, sampler, &snapshot, &procs, err);
    if (r == 0)
        r = gp_suspend_check_all(&rules, &procs, snapshot, &list, err);
    if (r == 0)
        r = show(&procs, err);
    if (r == 0 && o->dry_run)
        (void)fprintf(stderr, "gpulse: nothing was suspended (--dry-run)\n");
    if (r == 0 && !o->dry_run)
        r = suspend_list(sampler, o, &list, snapshot->wall_ns, err);
    gp_suspended_fini(&list);
    gp_procs_fini(&procs);
    gp_snapshot_free(snapshot);
    return r;
}

static int open_and_suspend(const struct suspend_options *o, struct gp_err *err)
{
    struct gp_sampler *sampler;
    int r = open_driver(err);
    if (r == 0)
        r = open_sampler(&o->select, &sampler, err);
    if (r < 0)
        return r;
    r = suspend(sampler, o, err);
    gp_app_close(sampler);
    return r;
}

static int suspend_main(int argc, char **argv, struct gp_err *err)
{
    static struct suspend_options o; /* large */
    int positional;
    bool done;
    int r = gp_app_parse(&gp_cmd_suspend, argc, argv, &o, &positional, &done, err);
    if (r < 0 || done)
        return r;
    r = gp_proc_select_parse(&o.select, argv + 1, positional, err);
    if (r == 0)
        r = open_and_suspend(&o, err);
    if (gp_checkpoint_is_stuck())
        gp_app_note_stuck();
    return r;
}

/* ---- resume ---- */

static int resume_list(struct gp_sampler *sampler, const struct resume_options *o,
                       struct gp_suspended_list *list, const struct gp_snapshot *snapshot,
                       struct gp_err *err)
{
    const struct gp_suspension move = suspension_of(sampler);
    struct gp_suspension_result result = {NULL, false};
    struct gp_err why;
    int r = gp_suspension_resume(&move, list, snapshot, o->wait_ns, &result, &why);
    return finish(r, &why, &result, list, false, err);
}

static int resume(struct gp_sampler *sampler, const struct resume_options *o, bool only_list,
                  struct gp_err *err)
{
    const struct gp_suspension move = suspension_of(sampler);
    struct gp_suspended_list list = {NULL, 0};
    struct gp_snapshot *snapshot;
    struct gp_procs procs;
    int r = gp_proc_select_find(&o->select, sampler, &snapshot, &procs, err);
    if (r == 0)
        r = gp_suspension_find(&move, &procs, &list, err);
    if (r == 0 && list.count > 0)
        r = only_list ? show(&procs, err) : resume_list(sampler, o, &list, snapshot, err);
    else if (r == 0 && only_list)
        (void)fprintf(stderr, "gpulse: no suspended processes\n");
    else if (r == 0)
        r = gp_err_set(err, GP_EFAIL, "none of the selected processes is suspended");
    gp_suspended_fini(&list);
    gp_procs_fini(&procs);
    gp_snapshot_free(snapshot);
    return r;
}

static int open_and_resume(struct resume_options *o, bool only_list, struct gp_err *err)
{
    const struct gp_suspension move = suspension_of(NULL);
    struct gp_sampler *sampler;
    bool any_named = o->select.named_count > 0;
    int r = only_list ? 0 : open_driver(err);
    if (r == 0)
        r = gp_suspension_resume_unnoted(&move, o->select.named, &o->select.named_count, o->force,
                                         err);
    if (r < 0 || (any_named && o->select.named_count == 0))
        return r;
    r = open_sampler(&o->select, &sampler, err);
    if (r < 0)
        return r;
    r = resume(sampler, o, only_list, err);
    gp_app_close(sampler);
    return r;
}

static int resume_main(int argc, char **argv, struct gp_err *err)
{
    static struct resume_options o; /* large */
    int positional;
    bool done;
    int r = gp_app_parse(&gp_cmd_resume, argc, argv, &o, &positional, &done, err);
    if (r < 0 || done)
        return r;
    bool only_list = positional == 0 && !gp_proc_select_any(&o.select);
    o.select.all = o.select.all || only_list;
    r = gp_proc_select_parse(&o.select, argv + 1, positional, err);
    if (r == 0)
        r = open_and_resume(&o, only_list, err);
    if (gp_checkpoint_is_stuck())
        gp_app_note_stuck();
    return r;
}

/* ---- the commands ---- */

const struct gp_cmd gp_cmd_suspend = {
    .name = "suspend",
    .summary = "move running processes' GPU memory to host memory, and pause them",
    .usage = "[PID|WORD...] [options]",
    .description =
        "Blocks the CUDA calls of processes, waits until their running GPU work is done, and moves "
        "their GPU memory to host memory. The processes stay alive: their next CUDA call waits "
        "until gpulse resume. suspend selects processes as gpulse kill does, lists them, and asks "
        "for confirmation. Either all of them are suspended, or all keep running; Ctrl-C takes "
        "effect after that. A job of gpulse run keeps its GPUs reserved.\n"
        "\n"
        "suspend refuses what is known to fail, and says why: drivers before 570, MPS, MIG, "
        "graphics, too little host memory (of the machine or in the job's own limit), stopped "
        "processes; and without --force, processes on several GPUs and distributed ranks.\n"
        "\n"
        "Managed memory (cudaMallocManaged) and memory shared between processes cannot be detected "
        "from outside. The driver should refuse such processes, but some drivers terminate the "
        "process instead: try it first on a job you can afford to lose.\n"
        "\n"
        "gpulse ps and gpulse top show a suspended process with type S.",
    .examples = "gpulse suspend 4711\tmake room for an urgent job\n"
                "gpulse suspend --job 4711 --yes\ta Slurm job's processes on this machine\n"
                "gpulse suspend 4711 --dry-run\tcheck only\n",
    .options = suspend_options,
    .no_loop = true,
    .run = suspend_main,
};

const struct gp_cmd gp_cmd_resume = {
    .name = "resume",
    .summary = "resume suspended processes, or list them",
    .usage = "[PID|WORD...] [options]",
    .description =
        "Without arguments, lists the suspended processes and the GPU memory they need. Otherwise "
        "moves that memory back to the GPUs it came from, and lets the processes continue.\n"
        "\n"
        "A process that is restored without enough free memory on its GPU is lost for good, so "
        "resume checks first, and refuses or, with --wait, waits. A process whose note was lost "
        "can still be resumed by its pid.",
    .examples = "gpulse resume\tlist suspended processes\n"
                "gpulse resume 4711\tresume one process\n"
                "gpulse resume --mine --wait 1h\tall of mine, once enough memory is free\n",
    .options = resume_options,
    .no_loop = true,
    .run = resume_main,
};
