#include "tui/children.h"

#include "base/clock.h"
#include "model/snapshot.h"
#include "proc/tasks.h"
#include "tui/task.h"

#include <stdlib.h>

enum { EVERY_S = 3 };

/* The thread owns all but `task`, `due_ns` and `shown`. */
struct gp_children {
    const char *root;
    struct gp_task *task; /* NULL: it does not run */
    uint64_t due_ns;
    struct gp_children_sum *shown, *found; /* sorted by pid */
    size_t shown_count, found_count;
    uint32_t *pids; /* sorted, unique */
    size_t pid_count, room;
    struct gp_tasks *tasks; /* with the look before; NULL: there was none */
};

struct gp_children *gp_children_new(const char *root)
{
    struct gp_children *children = calloc(1, sizeof(*children));
    if (children)
        children->root = root;
    return children;
}

/* ---- on the thread ---- */

static void sum_up(struct gp_children *c)
{
    c->found_count = 0;
    for (size_t i = 0; i < c->pid_count; i++) {
        const struct gp_tasks_use use = gp_tasks_use(c->tasks, &c->pids[i], 1, NULL);
        if (use.is_known && use.workers > 0)
            c->found[c->found_count++] =
                (struct gp_children_sum){c->pids[i], use.workers, use.workers_cpus * 100};
    }
}

/* Each pair of looks is a measurement of its own; without memory there is none. */
static void work(void *ctx)
{
    struct gp_children *c = ctx;
    const uint64_t now_ns = gp_clock_mono_ns();
    if (c->tasks && gp_tasks_look(c->tasks, c->pids, c->pid_count, now_ns) == 0)
        sum_up(c);
    gp_tasks_free(c->tasks);
    c->tasks = gp_tasks_new(c->root);
    if (c->tasks && gp_tasks_look(c->tasks, c->pids, c->pid_count, now_ns) < 0) {
        gp_tasks_free(c->tasks);
        c->tasks = NULL;
    }
}

/* ---- from outside ---- */

/* Lists the processes. Without memory it returns false. */
static bool list_pids(struct gp_children *c, const struct gp_snapshot *snapshot)
{
    const size_t count = snapshot->process_count;
    if (c->room < count) {
        uint32_t *pids = realloc(c->pids, count * sizeof(*pids));
        if (!pids)
            return false;
        c->pids = pids;
        struct gp_children_sum *found = realloc(c->found, count * sizeof(*found));
        if (!found)
            return false;
        c->found = found;
        struct gp_children_sum *shown = realloc(c->shown, count * sizeof(*shown));
        if (!shown)
            return false;
        c->shown = shown;
        c->room = count;
    }
    c->pid_count = 0;
    for (size_t i = 0; i < count; i++)
        c->pids[c->pid_count++] = (uint32_t)gp_process_value(&snapshot->processes[i], GP_PID)->i;
    qsort(c->pids, c->pid_count, sizeof(*c->pids), gp_compare_u32);
    size_t kept = 0;
    for (size_t i = 0; i < c->pid_count; i++)
        if (kept == 0 || c->pids[kept - 1] != c->pids[i])
            c->pids[kept++] = c->pids[i];
    c->pid_count = kept;
    return true;
}

void gp_children_look(struct gp_children *c, const struct gp_snapshot *snapshot)
{
    if (c->task) {
        if (!gp_task_end(c->task, 0))
            return;
        c->task = NULL;
        for (size_t i = 0; i < c->found_count; i++)
            c->shown[i] = c->found[i];
        c->shown_count = c->found_count;
    }
    const uint64_t now_ns = gp_clock_mono_ns();
    if (now_ns < c->due_ns || !list_pids(c, snapshot))
        return;
    c->due_ns = now_ns + EVERY_S * GP_NS_PER_S;
    c->task = gp_task_start(work, c);
}

static int compare_pid(const void *a, const void *b)
{
    const int64_t *pid = a;
    const struct gp_children_sum *sum = b;
    return (*pid > sum->pid) - (*pid < sum->pid);
}

const struct gp_children_sum *gp_children_find(const struct gp_children *c, int64_t pid)
{
    return c && c->shown_count > 0
               ? bsearch(&pid, c->shown, c->shown_count, sizeof(*c->shown), compare_pid)
               : NULL;
}

bool gp_children_free(struct gp_children *c)
{
    if (!c)
        return true;
    if (c->task && !gp_task_end(c->task, GP_TASK_PATIENCE_MS))
        return false;
    gp_tasks_free(c->tasks);
    free(c->pids);
    free(c->found);
    free(c->shown);
    free(c);
    return true;
}
