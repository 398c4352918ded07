#include "cmd/proc_end.h"

#include "cmd/app.h"
#include "cmd/proc_select.h"
#include "cmd/ps_holders.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "jobs/account.h"
#include "model/snapshot.h"
#include "out/procs.h"
#include "proc/ending.h"
#include "proc/proc.h"
#include "proc/signal.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    GRACE_S = 10,
    BACK_S = 30, /* how long the driver may take to free memory */
    BACK_TICK_MS = 100,
    BACK_TIMES = 3, /* checks in a row: other holders may show up a moment later */
};

/* From the mildest to the one that cannot be ignored. */
static const struct {
    const char *word, *name;
    int number;
} signals[] = {
    {"int", "SIGINT", SIGINT}, {"term", "SIGTERM", SIGTERM}, {"kill", "SIGKILL", SIGKILL}};

struct end_run {
    struct gp_sampler *sampler;
    const struct gp_snapshot *before;
    struct gp_snapshot *after;
    const struct gp_end_options *options;
    struct gp_procs chosen; /* the rows to terminate; with --tree also their child processes */
    struct gp_proc_reader *reader;
    struct gp_ending ending;
    struct gp_strbuf sb;
};

/* ---- selection ---- */

static const enum gp_proc_column columns[] = {
    GP_PROC_PID_COLUMN,  GP_PROC_USER_COLUMN,      GP_PROC_GPU_COLUMN,     GP_PROC_MEMORY_COLUMN,
    GP_PROC_TIME_COLUMN, GP_PROC_CONTAINER_COLUMN, GP_PROC_COMMAND_COLUMN,
};

struct gp_want gp_end_want(void)
{
    static const enum gp_metric metrics[] = {
        GP_MEMORY_USED,     GP_MEMORY_UNATTRIBUTED, GP_PID,
        GP_PROCESS_USER,    GP_PROCESS_TYPE,        GP_PROCESS_MEMORY,
        GP_PROCESS_START,   GP_PROCESS_CONTAINER,   GP_PROCESS_CONTAINER_NAME,
        GP_PROCESS_COMMAND, GP_PROCESS_SUSPENDED,
    };
    struct gp_want want = {.mig = true, .processes = true, .process_names = true};
    for (size_t i = 0; i < GP_ARRAY_LEN(metrics); i++)
        gp_metric_set_add(&want.metrics, metrics[i]);
    return want;
}

static void tell(const char *reason)
{
    if (reason[0])
        (void)fprintf(stderr, "gpulse: skipped: %s\n", reason);
}

/* Opens a handle on each process, and reports why others are skipped. If the only one is, the
 * reason is the error. With --dry-run, a simulated process needs no handle. */
static int hold(struct end_run *run, const struct gp_procs *procs, const int64_t *named,
                size_t named_count, struct gp_err *err)
{
    struct gp_err refusal = {0};
    size_t refused = 0;
    run->chosen.rows = calloc(procs->count + 1, sizeof(*procs->rows));
    if (!run->chosen.rows)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    for (size_t i = 0; i < procs->count; i++) {
        const struct gp_proc_row *row = &procs->rows[i];
        struct gp_err why = {0};
        if (!row->pid)
            continue;
        if (run->options->dry_run && gp_proc_is_simulated(row->pid)) {
            run->chosen.rows[run->chosen.count++] = *row;
            continue;
        }
        int r = gp_ending_add(&run->ending, row->pid, run->before->wall_ns,
                              gp_procs_has_pid(named, named_count, row->pid), &why);
        if (r == GP_ENOMEM)
            return gp_err_copy(err, &why);
        if (r == 0)
            run->chosen.rows[run->chosen.count++] = *row;
        if (r == 0)
            continue;
        tell(refusal.text);
        refusal = why;
        refused++;
    }
    if (run->chosen.count > 0 || refused > 1)
        tell(refusal.text);
    if (run->chosen.count > 0)
        return 0;
    if (refused > 1)
        return gp_err_set(err, refusal.code, "none of the %zu processes can be terminated",
                          refused);
    if (refused == 1)
        return gp_err_copy(err, &refusal);
    return gp_err_set(err, GP_ENODEV, "no matching process on the GPUs");
}

/* Adds rows for child processes. */
static int add_tree(struct end_run *run, struct gp_err *err)
{
    static const struct gp_procs_options all = {.gpu = -1};
    struct gp_procs listed = {.rows = NULL};
    size_t named = run->ending.count;
    gp_ending_add_tree(&run->ending);
    size_t count = run->ending.count - named;
    uint32_t *pids = calloc(count + 1, sizeof(*pids));
    struct gp_proc_row *rows =
        realloc(run->chosen.rows, (run->chosen.count + count + 1) * sizeof(*rows));
    if (rows)
        run->chosen.rows = rows;
    run->reader = gp_proc_reader_new(NULL);
    for (size_t i = 0; pids && i < count; i++)
        pids[i] = (uint32_t)run->ending.processes[named + i].pid;
    if (pids)
        qsort(pids, count, sizeof(*pids), gp_compare_u32);
    const struct gp_proc_infos *infos =
        pids && rows && run->reader
            ? gp_proc_read(run->reader, GP_PROC_STAT | GP_PROC_USER | GP_PROC_COMMAND, pids, count)
            : NULL;
    /* a child that uses a GPU itself already has a row */
    bool ok = infos && gp_procs_build(&listed, run->before, &all) == 0;
    for (size_t i = 0; ok && i < infos->count; i++) {
        struct gp_proc_row row = gp_ps_row(&infos->infos[i], run->before->wall_ns);
        for (size_t k = 0; k < listed.count; k++)
            if (listed.rows[k].pid == row.pid)
                row = listed.rows[k];
        run->chosen.rows[run->chosen.count++] = row;
    }
    gp_procs_fini(&listed);
    free(pids);
    return ok ? 0 : gp_err_set(err, GP_ENOMEM, "out of memory");
}

static int confirm(const struct end_run *run, struct gp_err *err)
{
    char question[96];
    if (run->options->yes)
        return 0;
    (void)snprintf(question, sizeof(question), "Terminate %zu process%s", run->chosen.count,
                   run->chosen.count == 1 ? "" : "es");
    return gp_app_confirm(question, "nothing was terminated", err);
}

/* ---- termination ---- */

static uint64_t patience_ns(uint64_t given_ns, unsigned fallback_s)
{
    return given_ns ? given_ns : fallback_s * GP_NS_PER_S;
}

static const char *signal_name(int number)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(signals); i++)
        if (signals[i].number == number)
            return signals[i].name;
    return "nothing";
}

static void on_signal(void *ctx, int signal, size_t left)
{
    (void)ctx;
    (void)fprintf(stderr, "gpulse: %s to %zu process%s\n", signal_name(signal), left,
                  left == 1 ? "" : "es");
}

static bool end(struct end_run *run)
{
    int plan_signals[GP_ARRAY_LEN(signals)];
    struct gp_ending_plan plan = {
        .signals = plan_signals,
        .grace_ns = patience_ns(run->options->grace_ns, GRACE_S),
        .tree = run->options->tree,
        .on_signal = on_signal,
    };
    const char *first = run->options->first ? run->options->first : signals[0].word;
    for (size_t i = 0; i < GP_ARRAY_LEN(signals); i++)
        if (plan.signal_count > 0 || strcmp(signals[i].word, first) == 0)
            plan_signals[plan.signal_count++] = signals[i].number;
    return gp_ending_run(&run->ending, &plan);
}

/* ---- freed memory ---- */

/* How much may remain in use without a process; false if this is not one of their GPUs. Memory that
 * a process held without being listed must be freed, too. */
static bool is_concerned(const struct end_run *run, const struct gp_device *device, double *ret)
{
    bool concerned = false;
    bool listed = true;
    for (size_t i = 0; !device->is_mig && i < run->chosen.count; i++) {
        const struct gp_proc_row *row = &run->chosen.rows[i];
        if (!gp_proc_row_uses(row, device->index))
            continue;
        concerned = true;
        listed = listed && gp_snapshot_lists(run->before, row->pid);
    }
    if (!listed || !gp_device_number(device, GP_MEMORY_UNATTRIBUTED, ret))
        *ret = 0;
    *ret += GP_ACCOUNT_SLACK;
    return concerned;
}

static const struct gp_device *same_gpu(const struct gp_snapshot *snapshot,
                                        const struct gp_device *gpu)
{
    for (size_t i = 0; i < snapshot->device_count; i++)
        if (snapshot->devices[i].index == gpu->index && !snapshot->devices[i].is_mig)
            return &snapshot->devices[i];
    return NULL;
}

/* Whether the GPU responds and has at most this much in use without a process. If the driver does
 * not report memory per process, as under WSL, it is enough that it lists none of them. */
static bool is_gpu_back(const struct end_run *run, const struct gp_device *device, double most)
{
    double rest;
    const struct gp_device *after = run->after ? same_gpu(run->after, device) : NULL;
    if (!after || after->status != GP_STATUS_OK || after->processes_status != GP_STATUS_OK)
        return false;
    return !gp_device_number_now(after, GP_MEMORY_UNATTRIBUTED, &rest) || rest <= most;
}

static bool is_back(const struct end_run *run)
{
    for (size_t i = 0; i < run->ending.count; i++)
        if (run->ending.processes[i].ended &&
            gp_snapshot_lists(run->after, run->ending.processes[i].pid))
            return false;
    for (size_t i = 0; i < run->before->device_count; i++) {
        double most;
        const struct gp_device *device = &run->before->devices[i];
        if (is_concerned(run, device, &most) && !is_gpu_back(run, device, most))
            return false;
    }
    return true;
}

/* True as soon as the driver has freed it. */
static bool await_memory(struct end_run *run, uint64_t wait_ns, struct gp_err *err)
{
    const struct timespec pause = gp_clock_timespec((uint64_t)BACK_TICK_MS * GP_NS_PER_MS);
    uint64_t until_ns = gp_clock_mono_ns() + wait_ns;
    int times = 0;
    do {
        gp_snapshot_free(run->after);
        run->after = NULL;
        if (gp_sampler_tick(run->sampler, &run->after, err) < 0)
            return false;
        times = is_back(run) ? times + 1 : 0;
        if (times == BACK_TIMES)
            return true;
        (void)nanosleep(&pause, NULL);
    } while (gp_clock_mono_ns() < until_ns);
    return false;
}

/* ---- results ---- */

static const char *why_not(const struct gp_ending_process *p)
{
    return p->error          ? "no permission to signal it"
           : p->state == 'D' ? "blocked in the kernel, where no signal can terminate it"
           : p->state == 'Z'
               ? "one of its threads is blocked in the kernel, where no signal can terminate it"
               : "it ignores all signals";
}

static void add_outcome(struct end_run *run, const struct gp_ending_process *p, bool back)
{
    const struct gp_proc_row *row = NULL;
    for (size_t i = 0; i < run->chosen.count; i++)
        if (run->chosen.rows[i].pid == p->pid)
            row = &run->chosen.rows[i];
    gp_strbuf_addf(&run->sb, "%lld%s ", (long long)p->pid, p->is_child ? " (child)" : "");
    if (!p->ended)
        gp_strbuf_addf(&run->sb, "still runs: %s", why_not(p));
    else
        gp_strbuf_addf(&run->sb, "terminated after %.1f s, by %s", (double)p->after_ns / 1e9,
                       signal_name(p->signal));
    if (p->ended && row && row->memory.known && back)
        gp_strbuf_addf(&run->sb, ", freed %.0f MiB", row->memory.n / 0x1p20);
    gp_strbuf_addc(&run->sb, '\n');
}

static void add_gpu(struct end_run *run, const struct gp_device *device, double most)
{
    double before;
    double now;
    const struct gp_device *after = same_gpu(run->after, device);
    gp_strbuf_addf(&run->sb, "GPU %u: ", device->index);
    if (after && gp_device_number(device, GP_MEMORY_USED, &before) &&
        gp_device_number_now(after, GP_MEMORY_USED, &now))
        gp_strbuf_addf(&run->sb, "%.0f MiB in use before, %.0f MiB now", before / 0x1p20,
                       now / 0x1p20);
    else
        gp_strbuf_adds(&run->sb, "current use is unknown");
    if (!is_gpu_back(run, device, most))
        gp_strbuf_addf(&run->sb, "; some memory was not freed: see gpulse ps --explain -i %u",
                       device->index);
    gp_strbuf_addc(&run->sb, '\n');
}

static int report(struct end_run *run, bool back, struct gp_err *err)
{
    gp_strbuf_reset(&run->sb);
    for (size_t i = 0; i < run->ending.count; i++)
        add_outcome(run, &run->ending.processes[i], back);
    for (size_t i = 0; run->after && i < run->before->device_count; i++) {
        double most;
        if (is_concerned(run, &run->before->devices[i], &most))
            add_gpu(run, &run->before->devices[i], most);
    }
    return gp_app_write(STDOUT_FILENO, &run->sb, err);
}

/* ---- the command ---- */

static int end_and_report(struct end_run *run, struct gp_err *err)
{
    struct gp_err why = {0};
    uint64_t wait_ns = patience_ns(run->options->wait_ns, BACK_S);
    bool ended = end(run);
    bool back = await_memory(run, wait_ns, &why);
    int r = report(run, back, err);
    if (r < 0)
        return r;
    if (!ended)
        return gp_err_set(err, GP_EFAIL, "some processes still run");
    if (back)
        return 0;
    return why.text[0] ? gp_err_copy(err, &why)
                       : gp_err_set(err, GP_EFAIL, "their memory was not freed within %.1f s",
                                    (double)wait_ns / 1e9);
}

int gp_end_processes(struct gp_sampler *sampler, const struct gp_snapshot *snapshot,
                     const struct gp_procs *procs, const int64_t *named, size_t named_count,
                     const struct gp_end_options *options, struct gp_err *err)
{
    struct end_run run = {
        .sampler = sampler, .before = snapshot, .options = options, .sb = GP_STRBUF_INIT(64 << 20)};
    if (!gp_app_is_reachable())
        return gp_err_set(err, GP_EUSAGE, "processes below --root are not running on this machine");
    int r = hold(&run, procs, named, named_count, err);
    if (r == 0 && options->tree)
        r = add_tree(&run, err);
    if (r == 0)
        r = gp_proc_select_show(&run.chosen, columns, GP_ARRAY_LEN(columns), err);
    if (r == 0 && options->dry_run)
        (void)fprintf(stderr, "gpulse: nothing was terminated (--dry-run)\n");
    if (r == 0 && !options->dry_run) {
        r = confirm(&run, err);
        if (r == 0)
            r = end_and_report(&run, err);
    }
    gp_ending_fini(&run.ending);
    gp_procs_fini(&run.chosen);
    gp_proc_reader_free(run.reader);
    gp_snapshot_free(run.after);
    gp_strbuf_fini(&run.sb);
    return r;
}
