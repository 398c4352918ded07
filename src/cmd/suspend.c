/* gpulse suspend, gpulse resume: move processes' GPU memory to host memory and back. */
#include "cmd/app.h"
#include "cmd/commands.h"
#include "cmd/proc_select.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "jobs/checkpoint.h"
#include "jobs/pick.h"
#include "jobs/suspend.h"
#include "jobs/suspend_check.h"
#include "model/snapshot.h"
#include "out/procs.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    OPEN_S = 30,
    LOCK_S = 10,
    MOVE_S = 600,
    SEEN_S = 10, /* how long the driver may take to list them, or to stop listing them */
    TICK_MS = 200,
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
    static const enum gp_metric metrics[] = {
        GP_UUID,
        GP_MEMORY_USED,
        GP_MEMORY_FREE,
        GP_MEMORY_UNATTRIBUTED,
        GP_PID,
        GP_PROCESS_USER,
        GP_MEMORY_TOTAL,
        GP_PROCESS_TYPE,
        GP_PROCESS_MEMORY,
        GP_PROCESS_START,
        GP_PROCESS_ORIGIN,
        GP_PROCESS_CONTAINER,
        GP_PROCESS_CONTAINER_NAME,
        GP_PROCESS_COMMAND,
        GP_PROCESS_PPID,
        GP_PROCESS_SUSPENDED,
    };
    const struct gp_loop loop = {.interval_ns = GP_NS_PER_S};
    struct gp_want want = {
        .mig = true, .processes = true, .process_names = true, .ancestors = true};
    for (size_t i = 0; i < GP_ARRAY_LEN(metrics); i++)
        gp_metric_set_add(&want.metrics, metrics[i]);
    gp_proc_select_want(select, &want);
    return gp_app_open(&want, &loop, ret, err);
}

static int open_driver(struct gp_err *err)
{
    const char *path;
    if (!gp_app_is_reachable())
        return gp_err_set(err, GP_EUSAGE, "processes below --root cannot be reached from here");
    int r = gp_app_cuda_library(&path, err);
    return r < 0 ? r : gp_checkpoint_open(path, gp_app_timeout_ns(OPEN_S * GP_NS_PER_S), err);
}

static int show(const struct gp_procs *procs, struct gp_err *err)
{
    return gp_proc_select_show(procs, columns, GP_ARRAY_LEN(columns), err);
}

/* A move must be completed: signals that would terminate this process are delayed until it is. */
static void hold_signals(sigset_t *before)
{
    sigset_t held;
    (void)sigemptyset(&held);
    (void)sigaddset(&held, SIGHUP);
    (void)sigaddset(&held, SIGINT);
    (void)sigaddset(&held, SIGQUIT);
    (void)sigaddset(&held, SIGTERM);
    (void)sigaddset(&held, SIGTSTP);
    (void)pthread_sigmask(SIG_BLOCK, &held, before);
}

static void release_signals(const sigset_t *before)
{
    (void)pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* ---- results ---- */

static bool is_concerned(const struct gp_device *device, const struct gp_suspended_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        for (size_t g = 0; g < list->items[i].gpu_count; g++)
            if (strcmp(list->items[i].gpus[g].uuid, gp_device_text(device, GP_UUID, "")) == 0)
                return !device->is_mig;
    return false;
}

static void add_gpus(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                     const struct gp_suspended_list *list)
{
    for (size_t i = 0; i < snapshot->device_count; i++) {
        double used;
        double free_bytes;
        const struct gp_device *device = &snapshot->devices[i];
        if (is_concerned(device, list) && gp_device_number_now(device, GP_MEMORY_USED, &used) &&
            gp_device_number_now(device, GP_MEMORY_FREE, &free_bytes))
            gp_strbuf_addf(sb, "GPU %u: %.0f MiB used, %.0f MiB free now\n", device->index,
                           used / 0x1p20, free_bytes / 0x1p20);
    }
}

static bool has_one_of(const struct gp_lease *lease, const struct gp_snapshot *snapshot,
                       const struct gp_suspended_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (gp_pick_comes_from(snapshot, list->items[i].pid, lease->pid))
            return true;
    return false;
}

/* Free memory of a suspended job may be mistaken for a free GPU: the reservation stays. */
static void add_reservations(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                             const struct gp_suspended_list *list)
{
    struct gp_leases leases;
    if (gp_leases_read(&leases, NULL) < 0)
        return;
    for (size_t i = 0; i < leases.count; i++) {
        const struct gp_lease *lease = &leases.items[i];
        if (lease->state == GP_LEASE_HELD && gp_pick_is_suspended(snapshot, lease) &&
            has_one_of(lease, snapshot, list))
            gp_strbuf_addf(sb, "its reservation stays (gpulse run, pid %u): see gpulse queue\n",
                           lease->pid);
    }
    gp_leases_fini(&leases);
}

static int report(struct gp_sampler *sampler, const struct gp_suspended_list *list, bool suspended,
                  struct gp_err *err)
{
    const struct timespec pause = gp_clock_timespec((uint64_t)TICK_MS * GP_NS_PER_MS);
    uint64_t until_ns = gp_clock_mono_ns() + SEEN_S * GP_NS_PER_S;
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    struct gp_snapshot *snapshot = NULL;
    bool seen = false;
    int r = 0;
    do {
        gp_snapshot_free(snapshot);
        snapshot = NULL;
        r = gp_sampler_tick(sampler, &snapshot, err);
        seen = r == 0 && gp_suspend_is_seen(snapshot, list, suspended);
        if (r == 0 && !seen)
            (void)nanosleep(&pause, NULL);
    } while (r == 0 && !seen && gp_clock_mono_ns() < until_ns);
    for (size_t i = 0; seen && i < list->count; i++) {
        const struct gp_suspended *s = &list->items[i];
        uint64_t bytes = gp_suspended_bytes(s);
        double mib = (double)bytes / 0x1p20;
        if (suspended)
            gp_strbuf_addf(
                &sb, "process %u is suspended with %.0f MiB; to resume it: gpulse resume %u\n",
                s->pid, mib, s->pid);
        else
            gp_strbuf_addf(&sb, "process %u runs again with %.0f MiB\n", s->pid, mib);
    }
    if (r == 0)
        add_gpus(&sb, snapshot, list);
    if (r == 0 && suspended)
        add_reservations(&sb, snapshot, list);
    int w = gp_app_write(STDOUT_FILENO, &sb, r == 0 ? err : NULL);
    if (r == 0 && w == 0 && !seen)
        r = gp_err_set(err, GP_EFAIL,
                       "done, but the driver's process list is not up to date yet: see gpulse ps");
    gp_strbuf_fini(&sb);
    gp_snapshot_free(snapshot);
    return r < 0 ? r : w;
}

/* ---- suspend ---- */

static int confirm(const struct gp_suspended_list *list, struct gp_err *err)
{
    char question[96];
    (void)snprintf(question, sizeof(question), "Suspend %zu process%s", list->count,
                   list->count == 1 ? "" : "es");
    return gp_app_confirm(question, "nothing was suspended", err);
}

/* Samples the GPUs while the processes are stopped. */
static int measure(void *ctx, struct gp_suspended *list, size_t count, struct gp_err *err)
{
    struct gp_snapshot *snapshot;
    int r = gp_sampler_tick(ctx, &snapshot, err);
    if (r < 0)
        return r;
    r = gp_suspend_measure(snapshot, list, count, err);
    gp_snapshot_free(snapshot);
    return r < 0 ? r : gp_suspend_check_room(gp_app_prefix(), list, count, err);
}

static bool has_room(void *ctx, const struct gp_suspended *s)
{
    struct gp_suspended_list one = {NULL, 1};
    struct gp_suspended copy = *s;
    struct gp_snapshot *snapshot;
    if (gp_sampler_tick(ctx, &snapshot, NULL) < 0)
        return false;
    one.items = &copy;
    bool room = gp_resume_check_gpus(&one, snapshot, NULL) == 0;
    gp_snapshot_free(snapshot);
    return room;
}

static int suspend_list(struct gp_sampler *sampler, const struct suspend_options *o,
                        struct gp_suspended_list *list, uint64_t seen_wall_ns, struct gp_err *err)
{
    const struct gp_suspend_plan plan = {
        .root = gp_app_prefix(),
        .lock_timeout_ns = o->grace_ns ? o->grace_ns : LOCK_S * GP_NS_PER_S,
        .eyes = {sampler, measure, has_room},
    };
    sigset_t before;
    int r = o->yes ? 0 : confirm(list, err);
    if (r == 0)
        r = gp_suspend_check_again(list, seen_wall_ns, err);
    if (r < 0)
        return r;
    hold_signals(&before);
    r = gp_suspend_all(&plan, list->items, list->count, err);
    release_signals(&before);
    return r < 0 ? r : report(sampler, list, true, err);
}

static int suspend(struct gp_sampler *sampler, const struct suspend_options *o, struct gp_err *err)
{
    const struct gp_suspend_rules rules = {
        .root = gp_app_prefix(),
        .timeout_ns = gp_app_timeout_ns(LOCK_S * GP_NS_PER_S),
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

/* The selected processes that have a note. */
static int find_suspended(struct gp_sampler *sampler, const struct gp_proc_select *select,
                          struct gp_procs *ret_rows, struct gp_suspended_list *ret,
                          struct gp_snapshot **ret_snapshot, struct gp_err *err)
{
    struct gp_suspended_list all = {NULL, 0};
    size_t kept = 0;
    int r = gp_proc_select_find(select, sampler, ret_snapshot, ret_rows, err);
    if (r == 0)
        r = gp_suspended_read(gp_app_prefix(), &all, err);
    if (r == 0 && !(ret->items = calloc(ret_rows->count + 1, sizeof(*ret->items))))
        r = gp_err_set(err, GP_ENOMEM, "out of memory");
    for (size_t i = 0; r == 0 && i < ret_rows->count; i++) {
        const struct gp_suspended *s = gp_suspended_find(&all, ret_rows->rows[i].pid);
        if (!s)
            continue;
        ret->items[ret->count++] = *s;
        ret_rows->rows[kept++] = ret_rows->rows[i];
    }
    ret_rows->count = kept;
    gp_suspended_fini(&all);
    return r;
}

/* Samples until there is room, and checks that the processes still exist and respond. */
static int await_room(struct gp_sampler *sampler, struct gp_suspended_list *list,
                      const struct gp_snapshot *first, uint64_t wait_ns, struct gp_err *err)
{
    const struct timespec pause = gp_clock_timespec((uint64_t)TICK_MS * GP_NS_PER_MS);
    uint64_t until_ns = gp_clock_mono_ns() + wait_ns;
    int r = gp_suspend_check_again(list, first->wall_ns, err);
    if (r < 0)
        return r;
    r = gp_resume_check_gpus(list, first, err);
    if (r < 0 && wait_ns)
        (void)fprintf(stderr, "gpulse: waiting for free GPU memory\n");
    while (r == GP_EFAIL && gp_clock_mono_ns() < until_ns) {
        struct gp_snapshot *snapshot;
        (void)nanosleep(&pause, NULL);
        int looked = gp_suspend_check_again(list, first->wall_ns, err);
        if (looked == 0)
            looked = gp_sampler_tick(sampler, &snapshot, err);
        if (looked < 0)
            return looked;
        r = gp_resume_check_gpus(list, snapshot, err);
        gp_snapshot_free(snapshot);
    }
    return r;
}

/* If one note of several is implausible, the other processes are still resumed. Returns how many
 * remain. */
static size_t leave_out_misfits(struct gp_suspended_list *list, const struct gp_snapshot *snapshot)
{
    size_t kept = 0;
    size_t count = list->count;
    for (size_t i = 0; count > 1 && i < count; i++) {
        struct gp_err why = {0};
        char note[sizeof(why.text) + 64];
        if (gp_resume_check_note(&list->items[i], snapshot, &why) == 0) {
            list->items[kept++] = list->items[i];
            continue;
        }
        (void)snprintf(note, sizeof(note), "process %u skipped: %s", list->items[i].pid, why.text);
        gp_io_print_note("gpulse", note);
    }
    list->count = count > 1 ? kept : count;
    return count - list->count;
}

static int resume_list(struct gp_sampler *sampler, const struct resume_options *o,
                       struct gp_suspended_list *list, const struct gp_snapshot *snapshot,
                       struct gp_err *err)
{
    sigset_t before;
    size_t left_out = leave_out_misfits(list, snapshot);
    int r = list->count > 0 ? await_room(sampler, list, snapshot, o->wait_ns, err) : 0;
    if (r < 0)
        return r;
    if (list->count == 0)
        return gp_err_set(err, GP_EFAIL, "no process left to resume");
    hold_signals(&before);
    const struct gp_suspend_plan plan = {
        .root = gp_app_prefix(),
        .eyes = {.ctx = sampler, .has_room = has_room},
    };
    r = gp_resume_all(&plan, list->items, list->count, err);
    release_signals(&before);
    if (r == 0)
        r = report(sampler, list, false, err);
    if (r == 0 && left_out > 0)
        r = gp_err_set(err, GP_EFAIL, "%zu of %zu were skipped", left_out, left_out + list->count);
    return r;
}

/* A process without a note. */
static int resume_unnoted(int64_t pid, bool force, struct gp_err *err)
{
    const uint64_t timeout_ns = (uint64_t)MOVE_S * GP_NS_PER_S;
    struct gp_err why = {0};
    enum gp_cuda_state state;
    sigset_t before;
    int r = gp_resume_check_unnoted(pid, force, timeout_ns, &state, &why);
    if (r == 0) {
        hold_signals(&before);
        if (state == GP_CUDA_CHECKPOINTED)
            r = gp_checkpoint_do(GP_CUDA_RESTORE, pid, timeout_ns, &why);
        if (r == 0)
            r = gp_checkpoint_do(GP_CUDA_UNLOCK, pid, timeout_ns, &why);
        release_signals(&before);
    }
    if (r < 0)
        return gp_err_set(err, r, "process %lld: %s", (long long)pid, why.text);
    (void)fprintf(stderr, "gpulse: process %lld runs again\n", (long long)pid);
    return 0;
}

/* The named processes without a note; the others stay in the list. */
static int resume_all_unnoted(struct resume_options *o, struct gp_err *err)
{
    struct gp_suspended_list all;
    size_t kept = 0;
    int r = gp_suspended_read(gp_app_prefix(), &all, err);
    if (r < 0)
        return r;
    for (size_t i = 0; r == 0 && i < o->select.named_count; i++) {
        int64_t pid = o->select.named[i];
        if (gp_suspended_find(&all, pid))
            o->select.named[kept++] = pid;
        else
            r = resume_unnoted(pid, o->force, err);
    }
    o->select.named_count = kept;
    gp_suspended_fini(&all);
    return r;
}

static int resume(struct gp_sampler *sampler, const struct resume_options *o, bool only_list,
                  struct gp_err *err)
{
    struct gp_suspended_list list = {NULL, 0};
    struct gp_snapshot *snapshot;
    struct gp_procs procs;
    int r = find_suspended(sampler, &o->select, &procs, &list, &snapshot, err);
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
    struct gp_sampler *sampler;
    bool any_named = o->select.named_count > 0;
    int r = only_list ? 0 : open_driver(err);
    if (r == 0)
        r = resume_all_unnoted(o, err);
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
        "effect after that. A job of gpulse run keeps its GPUs reserved.\n\n"
        "suspend refuses what is known to fail, and says why: drivers before 570, MPS, MIG, "
        "graphics, too little host memory (of the machine or in the job's own limit), stopped "
        "processes; and without --force, processes on several GPUs and distributed ranks.\n\n"
        "Managed memory (cudaMallocManaged) and memory shared between processes cannot be detected "
        "from outside. The driver should refuse such processes, but some drivers terminate the "
        "process "
        "instead: try it first on a job you can afford to lose.\n\n"
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
        "moves that memory back to the GPUs it came from, and lets the processes continue.\n\n"
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
