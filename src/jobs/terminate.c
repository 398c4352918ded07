#include "jobs/terminate.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "jobs/account.h"
#include "model/snapshot.h"
#include "proc/signal.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    GRACE_S = 10,
    BACK_S = 30, /* how long the driver may take to free memory */
    BACK_TICK_MS = 100,
    BACK_TIMES = 3, /* checks in a row: other holders may show up a moment later */
};

/* From the mildest to the one that cannot be ignored. */
static const int signals[] = {SIGINT, SIGTERM, SIGKILL};

const char *gp_terminate_signal_name(int signal)
{
    return signal == SIGINT    ? "SIGINT"
           : signal == SIGTERM ? "SIGTERM"
           : signal == SIGKILL ? "SIGKILL"
                               : "nothing";
}

struct gp_want gp_terminate_want(void)
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

/* ---- the processes ---- */

static void skip(const struct gp_terminate *job, const struct gp_err *why)
{
    if (why->text[0] && job->plan->on_skipped)
        job->plan->on_skipped(job->plan->context, why->text);
}

static bool are_simulated(const struct gp_procs *procs)
{
    size_t count = 0;
    for (size_t i = 0; i < procs->count; i++) {
        const struct gp_proc_row *row = &procs->rows[i];
        if (row->pid && !gp_proc_is_simulated(row->pid))
            return false;
        count += row->pid != 0;
    }
    return count > 0;
}

/* Opens a handle on each process, and reports why others are skipped. If the only one is, the
 * reason is the error. A simulated process that is only shown needs no handle. */
static int hold(struct gp_terminate *job, const struct gp_procs *procs, const int64_t *named,
                size_t named_count, struct gp_err *err)
{
    struct gp_err refusal = {0};
    const struct gp_proc_row *unlisted = NULL; /* memory that no listed process holds */
    size_t refused = 0;
    job->rows.rows = calloc(procs->count + 1, sizeof(*procs->rows));
    if (!job->rows.rows)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    for (size_t i = 0; i < procs->count; i++) {
        const struct gp_proc_row *row = &procs->rows[i];
        struct gp_err why = {0};
        if (!row->pid && row->memory.known)
            unlisted = row;
        if (!row->pid)
            continue;
        if (job->only_shows && gp_proc_is_simulated(row->pid)) {
            job->rows.rows[job->rows.count++] = *row;
            continue;
        }
        int r = gp_ending_add(&job->ending, row->pid, job->before->wall_ns,
                              gp_procs_has_pid(named, named_count, row->pid), &why);
        if (r == GP_ENOMEM)
            return gp_err_copy(err, &why);
        if (r == 0)
            job->rows.rows[job->rows.count++] = *row;
        if (r == 0)
            continue;
        skip(job, &refusal);
        refusal = why;
        refused++;
    }
    if (job->rows.count > 0 || refused > 1)
        skip(job, &refusal);
    if (job->rows.count > 0)
        return 0;
    if (refused > 1)
        return gp_err_set(err, refusal.code, "none of the %zu processes can be terminated",
                          refused);
    if (refused == 1)
        return gp_err_copy(err, &refusal);
    if (unlisted)
        return gp_err_set(err, GP_ENODEV,
                          "no such process on the GPUs; to free memory of GPU %s that no listed "
                          "process holds: gpulse reclaim -i %s",
                          unlisted->gpus, unlisted->gpus);
    return gp_err_set(err, GP_ENODEV, "no matching process on the GPUs");
}

/* Sorted pids of the descendants, for gp_proc_read(). NULL: out of memory. */
static uint32_t *list_children(const struct gp_ending *ending, size_t from, size_t count)
{
    uint32_t *pids = calloc(count + 1, sizeof(*pids));
    for (size_t i = 0; pids && i < count; i++)
        pids[i] = (uint32_t)ending->processes[from + i].pid;
    if (pids)
        qsort(pids, count, sizeof(*pids), gp_compare_u32);
    return pids;
}

/* Adds the rows of child processes that use a GPU themselves. */
static int add_rows(struct gp_terminate *job, struct gp_err *err)
{
    static const struct gp_procs_options all = {.gpu = -1};
    struct gp_procs listed = {.rows = NULL};
    const struct gp_proc_infos *children = job->children;
    struct gp_proc_row *rows =
        realloc(job->rows.rows, (job->rows.count + children->count + 1) * sizeof(*rows));
    if (rows)
        job->rows.rows = rows;
    int r = rows ? gp_procs_build(&listed, job->before, &all) : GP_ENOMEM;
    for (size_t i = 0; r == 0 && i < children->count; i++) {
        const struct gp_proc_row *found = NULL;
        for (size_t k = 0; k < listed.count; k++)
            if (listed.rows[k].pid == children->infos[i].pid)
                found = &listed.rows[k];
        if (found)
            job->rows.rows[job->rows.count++] = *found;
    }
    gp_procs_fini(&listed);
    return r < 0 ? gp_err_set(err, GP_ENOMEM, "out of memory") : 0;
}

static int add_tree(struct gp_terminate *job, struct gp_err *err)
{
    const size_t first = job->ending.count;
    gp_ending_add_tree(&job->ending);
    const size_t count = job->ending.count - first;
    uint32_t *pids = list_children(&job->ending, first, count);
    job->reader = gp_proc_reader_new(NULL);
    if (pids && job->reader)
        job->children =
            gp_proc_read(job->reader, GP_PROC_STAT | GP_PROC_USER | GP_PROC_COMMAND, pids, count);
    free(pids);
    return job->children ? add_rows(job, err) : gp_err_set(err, GP_ENOMEM, "out of memory");
}

int gp_terminate_choose(struct gp_terminate *job, const struct gp_terminate_plan *plan,
                        struct gp_sampler *sampler, const struct gp_snapshot *snapshot,
                        const struct gp_procs *procs, const int64_t *named, size_t named_count,
                        struct gp_err *err)
{
    *job = (struct gp_terminate){.plan = plan,
                                 .sampler = sampler,
                                 .before = snapshot,
                                 .only_shows = plan->dry_run || are_simulated(procs)};
    int r = hold(job, procs, named, named_count, err);
    return r == 0 && plan->tree ? add_tree(job, err) : r;
}

const char *gp_terminate_why_not(const struct gp_terminate *job)
{
    return job->plan->dry_run ? "--dry-run"
           : job->only_shows  ? "simulated processes cannot be signalled; gpulse sim load starts "
                                "real ones"
                              : NULL;
}

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
    return gp_proc_row_of(info, job->before->wall_ns);
}

int gp_terminate_list(const struct gp_terminate *job, struct gp_procs *ret)
{
    const size_t children = job->children ? job->children->count : 0;
    ret->rows = calloc(job->rows.count + children + 1, sizeof(*ret->rows));
    if (!ret->rows)
        return GP_ENOMEM;
    for (size_t i = 0; i < job->rows.count; i++)
        if (!is_child(job, job->rows.rows[i].pid))
            ret->rows[ret->count++] = job->rows.rows[i];
    for (size_t i = 0; i < children; i++)
        ret->rows[ret->count++] = child_row(job, &job->children->infos[i]);
    return 0;
}

/* ---- termination ---- */

static uint64_t patience_ns(uint64_t given_ns, unsigned fallback_s)
{
    return given_ns ? given_ns : fallback_s * GP_NS_PER_S;
}

static bool end(struct gp_terminate *job)
{
    const struct gp_terminate_plan *o = job->plan;
    size_t first = 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(signals); i++)
        if (signals[i] == o->first_signal)
            first = i;
    const struct gp_ending_plan plan = {
        .signals = signals + first,
        .signal_count = GP_ARRAY_LEN(signals) - first,
        .grace_ns = patience_ns(o->grace_ns, GRACE_S),
        .tree = o->tree,
        .on_signal = o->on_signal,
        .ctx = o->context,
    };
    return gp_ending_run(&job->ending, &plan);
}

/* ---- freed memory ---- */

/* How much may remain in use without a process; false if this is not one of their GPUs. Memory that
 * a process held without being listed must be freed, too. */
static bool is_concerned(const struct gp_terminate *job, const struct gp_device *device,
                         double *ret)
{
    bool concerned = false;
    bool listed = true;
    for (size_t i = 0; !device->is_mig && i < job->rows.count; i++) {
        const struct gp_proc_row *row = &job->rows.rows[i];
        if (!gp_proc_row_uses(row, device->index))
            continue;
        concerned = true;
        listed = listed && gp_snapshot_lists(job->before, row->pid);
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
static bool is_gpu_back(const struct gp_terminate *job, const struct gp_device *device, double most)
{
    double rest;
    const struct gp_device *after = job->after ? same_gpu(job->after, device) : NULL;
    if (!after || after->status != GP_STATUS_OK || after->processes_status != GP_STATUS_OK)
        return false;
    return !gp_device_number_now(after, GP_MEMORY_UNATTRIBUTED, &rest) || rest <= most;
}

static bool is_back(const struct gp_terminate *job)
{
    for (size_t i = 0; i < job->ending.count; i++)
        if (job->ending.processes[i].ended &&
            gp_snapshot_lists(job->after, job->ending.processes[i].pid))
            return false;
    for (size_t i = 0; i < job->before->device_count; i++) {
        double most;
        const struct gp_device *device = &job->before->devices[i];
        if (is_concerned(job, device, &most) && !is_gpu_back(job, device, most))
            return false;
    }
    return true;
}

/* True as soon as the driver has freed it. */
static bool await_memory(struct gp_terminate *job, uint64_t wait_ns, struct gp_err *err)
{
    const struct timespec pause = gp_clock_timespec((uint64_t)BACK_TICK_MS * GP_NS_PER_MS);
    uint64_t until_ns = gp_clock_mono_ns() + wait_ns;
    int times = 0;
    do {
        gp_snapshot_free(job->after);
        job->after = NULL;
        if (gp_sampler_tick(job->sampler, &job->after, err) < 0)
            return false;
        times = is_back(job) ? times + 1 : 0;
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

/* What it held, at this offset in its row, if that was freed when it exited. */
static struct gp_amount memory_of(const struct gp_terminate *job, const struct gp_ending_process *p,
                                  size_t offset)
{
    struct gp_amount amount = {0};
    for (size_t i = 0; job->is_freed && p->ended && i < job->rows.count; i++)
        if (job->rows.rows[i].pid == p->pid)
            memcpy(&amount, (const char *)&job->rows.rows[i] + offset, sizeof(amount));
    return amount;
}

static void add_outcome(struct gp_strbuf *sb, const struct gp_terminate *job,
                        const struct gp_ending_process *p)
{
    const struct gp_amount freed = memory_of(job, p, offsetof(struct gp_proc_row, memory));
    const struct gp_amount suspended = memory_of(job, p, offsetof(struct gp_proc_row, suspended));
    gp_strbuf_addf(sb, "%lld%s ", (long long)p->pid, p->is_child ? " (child)" : "");
    if (!p->ended)
        gp_strbuf_addf(sb, "still runs: %s", why_not(p));
    else
        gp_strbuf_addf(sb, "terminated after %.1f s, by %s", (double)p->after_ns / 1e9,
                       gp_terminate_signal_name(p->signal));
    if (suspended.known)
        gp_strbuf_addf(sb, ", freed %.0f MiB of host memory, where it was suspended",
                       suspended.n / 0x1p20);
    else if (freed.known)
        gp_strbuf_addf(sb, ", freed %.0f MiB", freed.n / 0x1p20);
    gp_strbuf_addc(sb, '\n');
}

/* most: what may remain in use without a process, in bytes. */
static void add_gpu(struct gp_strbuf *sb, const struct gp_terminate *job,
                    const struct gp_device *device, double most)
{
    double before_bytes, now_bytes;
    const struct gp_device *after = same_gpu(job->after, device);
    gp_strbuf_addf(sb, "GPU %u: ", device->index);
    if (after && gp_device_number(device, GP_MEMORY_USED, &before_bytes) &&
        gp_device_number_now(after, GP_MEMORY_USED, &now_bytes))
        gp_strbuf_addf(sb, "%.0f MiB in use before, %.0f MiB now", before_bytes / 0x1p20,
                       now_bytes / 0x1p20);
    else
        gp_strbuf_adds(sb, "current use is unknown");
    if (!is_gpu_back(job, device, most))
        gp_strbuf_addf(sb, "; some memory was not freed: see gpulse ps --explain -i %u",
                       device->index);
    gp_strbuf_addc(sb, '\n');
}

void gp_terminate_add_result(struct gp_strbuf *sb, const struct gp_terminate *job)
{
    double most;
    for (size_t i = 0; i < job->ending.count; i++)
        add_outcome(sb, job, &job->ending.processes[i]);
    for (size_t i = 0; job->after && i < job->before->device_count; i++)
        if (is_concerned(job, &job->before->devices[i], &most))
            add_gpu(sb, job, &job->before->devices[i], most);
}

/* ---- all of it ---- */

int gp_terminate_run(struct gp_terminate *job, struct gp_err *err)
{
    struct gp_err why = {0};
    uint64_t wait_ns = patience_ns(job->plan->wait_ns, BACK_S);
    bool ended = end(job);
    job->is_freed = await_memory(job, wait_ns, &why);
    if (!ended)
        return gp_err_set(err, GP_EFAIL, "some processes still run");
    if (job->is_freed)
        return 0;
    return why.text[0] ? gp_err_copy(err, &why)
                       : gp_err_set(err, GP_EFAIL, "their memory was not freed within %.1f s",
                                    (double)wait_ns / 1e9);
}

void gp_terminate_fini(struct gp_terminate *job)
{
    gp_ending_fini(&job->ending);
    gp_procs_fini(&job->rows);
    gp_proc_reader_free(job->reader);
    gp_snapshot_free(job->after);
}
