/* Builds the list of processes from a snapshot. */
#include "out/procs.h"

#include "base/err.h"
#include "model/snapshot.h"
#include "out/groups.h"
#include "out/reservation.h"
#include "out/tree.h"
#include "proc/proc.h"

#include <stdlib.h>

struct gp_proc_row gp_proc_row_of(const struct gp_proc_info *info, uint64_t wall_ns)
{
    return (struct gp_proc_row){
        .pid = info->pid,
        .ppid = info->ppid,
        .user = info->texts->user,
        .command = info->texts->command,
        .container = info->texts->container,
        .job = gp_procs_job_id(info->texts->container),
        .container_name = info->texts->container_name,
        .state = gp_proc_state_text(info->state),
        .age_s = {(double)(wall_ns - info->start_ns) / 1e9,
                  info->start_ns > 0 && wall_ns > info->start_ns, false},
        .rss = {(double)info->rss_bytes, info->state != 0, false},
    };
}

static int compare_processes(const void *a, const void *b, void *ctx)
{
    const struct gp_process *processes = ctx;
    const struct gp_process *x = &processes[*(const uint32_t *)a];
    const struct gp_process *y = &processes[*(const uint32_t *)b];
    int64_t p = gp_process_value(x, GP_PID)->i;
    int64_t q = gp_process_value(y, GP_PID)->i;
    if (p != q)
        return p < q ? -1 : 1;
    return (x->device > y->device) - (x->device < y->device);
}

/* The order of the last snapshot is mostly that of this one, too. */
static void sort_by_pid(struct gp_procs *procs, const struct gp_snapshot *snapshot)
{
    const size_t count = snapshot->process_count;
    struct gp_process *processes = snapshot->processes;
    uint32_t *by_pid = procs->by_pid;
    for (size_t i = 0; procs->by_pid_count != count && i < count; i++)
        by_pid[i] = (uint32_t)i;
    procs->by_pid_count = count;
    size_t sorted = 1;
    while (sorted < count &&
           compare_processes(&by_pid[sorted - 1], &by_pid[sorted], processes) <= 0)
        sorted++;
    if (sorted < count)
        qsort_r(by_pid, count, sizeof(*by_pid), compare_processes, processes);
}

static bool is_meant(const struct gp_procs_options *options, const struct gp_device *device)
{
    if (options->gpu >= 0 && device->index != (unsigned)options->gpu)
        return false;
    return !options->only_mig || (device->is_mig && device->mig_index == options->mig);
}

static void add_processes(struct gp_procs *procs, const struct gp_snapshot *snapshot,
                          const struct gp_procs_options *options)
{
    for (size_t i = 0; i < snapshot->process_count; i++) {
        const struct gp_process *p = &snapshot->processes[procs->by_pid[i]];
        const struct gp_device *device = &snapshot->devices[p->device];
        struct gp_proc_row *row = procs->count ? &procs->rows[procs->count - 1] : NULL;
        if (!is_meant(options, device))
            continue;
        if (!row || row->pid != gp_process_value(p, GP_PID)->i || options->per_gpu) {
            row = &procs->rows[procs->count++];
            gp_proc_row_init(row, p, snapshot->wall_ns);
        }
        gp_proc_row_add_use(row, p, device);
    }
}

static void add_unattributed(struct gp_procs *procs, const struct gp_snapshot *snapshot,
                             const struct gp_procs_options *options)
{
    for (size_t i = 0; i < snapshot->device_count; i++) {
        const struct gp_device *device = &snapshot->devices[i];
        const struct gp_value *v = &device->values[GP_MEMORY_UNATTRIBUTED - GP_DEVICE__FIRST];
        if (!gp_value_is_present(v) || v->i < GP_PROC_UNATTRIBUTED_LEAST ||
            !is_meant(options, device))
            continue;
        struct gp_proc_row *row = &procs->rows[procs->count++];
        *row = (struct gp_proc_row){.command = "(not attributed to any listed process)",
                                    .memory = {(double)v->i, true, false}};
        gp_proc_row_add_gpu(row, device);
    }
}

/* Reserved GPUs, and instances, on which nothing runs yet. */
static void add_reserved(struct gp_procs *procs, const struct gp_snapshot *snapshot,
                         const struct gp_procs_options *options)
{
    for (size_t i = 0; i < snapshot->device_count; i++) {
        const struct gp_device *device = &snapshot->devices[i];
        if (!gp_is_reserved(device) || device->process_count > 0 || !is_meant(options, device))
            continue;
        gp_proc_row_init_reserved(&procs->rows[procs->count++], device, snapshot->wall_ns);
    }
}

/* Empties the list, and makes it large enough. */
static int make_room(struct gp_procs *procs, size_t rows, size_t processes)
{
    if (procs->room < rows) {
        free(procs->rows);
        procs->rows = calloc(rows, sizeof(*procs->rows));
        procs->room = rows;
    }
    if (procs->by_pid_room < processes) {
        free(procs->by_pid);
        procs->by_pid = calloc(processes, sizeof(*procs->by_pid));
        procs->by_pid_room = processes;
        procs->by_pid_count = 0;
    }
    if (!procs->rows || !procs->by_pid) {
        gp_procs_fini(procs);
        return GP_ENOMEM;
    }
    procs->count = procs->hidden = procs->ancestors = procs->folded = 0;
    procs->reserved = procs->groups = procs->closed = 0;
    return 0;
}

int gp_procs_build(struct gp_procs *procs, const struct gp_snapshot *snapshot,
                   const struct gp_procs_options *options)
{
    size_t most = snapshot->process_count + 2 * snapshot->device_count;
    if (make_room(procs, most + 1, snapshot->process_count + 1) < 0)
        return GP_ENOMEM;
    sort_by_pid(procs, snapshot);
    add_processes(procs, snapshot, options);
    add_unattributed(procs, snapshot, options);
    if (options->reserved)
        add_reserved(procs, snapshot, options);
    gp_procs_filter(procs, options->filter);
    const bool is_tree = options->tree || options->groups == GP_PROC_GROUPS_TREE;
    int r = is_tree ? gp_tree_add_ancestors(procs, snapshot, options->groups) : 0;
    if (r == 0 && options->groups)
        r = gp_groups_add(procs, options->groups);
    if (r == 0 && options->groups == GP_PROC_GROUPS_TREE)
        r = gp_tree_sort(procs, &options->order, options->groups);
    else
        gp_procs_sort(procs, &options->order);
    if (r == 0 && (is_tree || options->groups))
        r = gp_tree_arrange(procs, options->groups);
    if (r < 0)
        gp_procs_fini(procs);
    return r;
}

size_t gp_procs_unseen(const struct gp_procs *procs)
{
    size_t unseen = 0;
    for (size_t i = 0; i < procs->count; i++)
        unseen += procs->rows[i].pid > 0 && !procs->rows[i].user && !procs->rows[i].state;
    return unseen;
}
