#include "jobs/idle.h"

#include "base/clock.h"
#include "base/err.h"
#include "model/snapshot.h"
#include "out/procs.h"

#include <stdlib.h>
#include <time.h>

enum { SAMPLES = 20, LEAST_MS = 100, MOST_MS = 2000 };

static const enum gp_metric works[] = {GP_PROCESS_SM, GP_PROCESS_ENC, GP_PROCESS_DEC};

void gp_idle_want(struct gp_metric_set *metrics)
{
    gp_metric_set_add(metrics, GP_PID);
    gp_metric_set_add(metrics, GP_PROCESS_START);
    for (size_t i = 0; i < GP_ARRAY_LEN(works); i++)
        gp_metric_set_add(metrics, works[i]);
}

/* A process counts as idle if it does not use the compute engines; metrics that are unknown, such
 * as its encoder use, may not exist at all. */
static bool does_nothing(const struct gp_process *p)
{
    const struct gp_value *sm = gp_process_value(p, GP_PROCESS_SM);
    if (sm->status != GP_STATUS_OK)
        return false;
    for (size_t i = 0; i < GP_ARRAY_LEN(works); i++) {
        const struct gp_value *v = gp_process_value(p, works[i]);
        if (v->status == GP_STATUS_OK && v->i > 0)
            return false;
    }
    return true;
}

static int compare(const void *a, const void *b)
{
    const int64_t *x = a;
    const int64_t *y = b;
    return (*x > *y) - (*x < *y);
}

/* Whether it existed since then, and is idle on all GPUs of the snapshot. */
static bool is_idle(const struct gp_snapshot *snapshot, int64_t pid, uint64_t since_wall_ns)
{
    bool found = false;
    for (size_t i = 0; i < snapshot->process_count; i++) {
        const struct gp_process *p = &snapshot->processes[i];
        const struct gp_value *start = gp_process_value(p, GP_PROCESS_START);
        uint64_t start_ns;
        if (gp_process_value(p, GP_PID)->i != pid)
            continue;
        if (!does_nothing(p) ||
            (start->status == GP_STATUS_OK && gp_clock_parse_rfc3339(start->s, &start_ns) &&
             start_ns > since_wall_ns))
            return false;
        found = true;
    }
    return found;
}

/* Whether all GPUs list their processes: on one that does not, any process may be busy. */
static bool is_complete(const struct gp_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->device_count; i++)
        if (snapshot->devices[i].status != GP_STATUS_OK ||
            snapshot->devices[i].processes_status != GP_STATUS_OK)
            return false;
    return true;
}

static int begin(struct gp_idle *idle, const struct gp_snapshot *snapshot, const char *filter,
                 struct gp_err *err)
{
    const struct gp_procs_options rows = {.filter = filter, .gpu = -1};
    struct gp_procs procs = {.rows = NULL};
    idle->count = 0;
    idle->pids = calloc(snapshot->process_count + 1, sizeof(*idle->pids));
    int r = idle->pids ? gp_procs_build(&procs, snapshot, &rows) : GP_ENOMEM;
    for (size_t i = 0; r == 0 && i < procs.count; i++)
        if (procs.rows[i].pid > 0)
            idle->pids[idle->count++] = procs.rows[i].pid;
    gp_procs_fini(&procs);
    if (r < 0)
        return gp_err_set(err, r, "out of memory");
    qsort(idle->pids, idle->count, sizeof(*idle->pids), compare);
    return 0;
}

static void keep_idle(struct gp_idle *idle, const struct gp_snapshot *snapshot,
                      uint64_t since_wall_ns)
{
    size_t kept = 0;
    for (size_t i = 0; i < idle->count; i++)
        if ((i == 0 || idle->pids[i] != idle->pids[i - 1]) &&
            is_idle(snapshot, idle->pids[i], since_wall_ns))
            idle->pids[kept++] = idle->pids[i];
    idle->count = kept;
}

static uint64_t step_of(uint64_t for_ns)
{
    const uint64_t least_ns = LEAST_MS * GP_NS_PER_MS;
    const uint64_t most_ns = MOST_MS * GP_NS_PER_MS;
    const uint64_t step_ns = for_ns / SAMPLES;
    return step_ns < least_ns ? least_ns : step_ns > most_ns ? most_ns : step_ns;
}

int gp_idle_observe(struct gp_sampler *sampler, const char *filter, uint64_t for_ns,
                    void (*progress)(uint64_t for_ns, uint64_t left_ns), struct gp_idle *ret,
                    struct gp_snapshot **ret_last, struct gp_err *err)
{
    const struct timespec step = gp_clock_timespec(step_of(for_ns));
    uint64_t since_wall_ns = gp_clock_wall_ns();
    uint64_t until_ns = gp_clock_mono_ns() + for_ns;
    struct gp_snapshot *snapshot = NULL;
    int r = gp_sampler_tick(sampler, &snapshot, err);
    if (r == 0)
        r = begin(ret, snapshot, filter, err);
    bool is_told = r == 0 && ret->count > 0 && progress;
    if (is_told)
        progress(for_ns, for_ns);
    while (r == 0) {
        if (!is_complete(snapshot))
            r = gp_err_set(err, GP_EPARTIAL,
                           "a GPU does not list its processes, so no process is known to be idle");
        keep_idle(ret, snapshot, since_wall_ns);
        uint64_t now_ns = gp_clock_mono_ns();
        if (r < 0 || ret->count == 0 || now_ns >= until_ns)
            break;
        if (progress)
            progress(for_ns, until_ns - now_ns);
        gp_snapshot_free(snapshot);
        snapshot = NULL;
        (void)nanosleep(&step, NULL);
        r = gp_sampler_tick(sampler, &snapshot, err);
    }
    if (is_told)
        progress(for_ns, 0);
    if (r < 0) {
        gp_idle_fini(ret);
        gp_snapshot_free(snapshot);
        snapshot = NULL;
    }
    *ret_last = snapshot;
    return r;
}

void gp_idle_keep(const struct gp_idle *idle, struct gp_procs *procs)
{
    size_t kept = 0;
    for (size_t i = 0; i < procs->count; i++)
        if (gp_procs_has_pid(idle->pids, idle->count, procs->rows[i].pid))
            procs->rows[kept++] = procs->rows[i];
    procs->count = kept;
}

void gp_idle_fini(struct gp_idle *idle)
{
    free(idle->pids);
    *idle = (struct gp_idle){NULL, 0};
}
