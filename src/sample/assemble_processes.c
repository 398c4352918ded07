/* The processes of a snapshot: those listed by the driver, described by /proc, and suspended
 * ones. */
#include "sample/assemble_internal.h"

#include "base/clock.h"
#include "base/err.h"
#include "model/snapshot.h"
#include "proc/job.h"
#include "proc/proc.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_LOOK_NS GP_NS_PER_S /* covered by the first utilization of a process */

static bool same_number(const struct gp_value *a, const struct gp_value *b)
{
    return gp_value_is_present(a) && gp_value_is_present(b) && a->i == b->i;
}

static bool is_instance_of(const struct gp_device *mig, const struct gp_source_process *p)
{
    return same_number(&mig->values[GP_MIG_GPU_INSTANCE - GP_DEVICE__FIRST], &p->gpu_instance) &&
           same_number(&mig->values[GP_MIG_COMPUTE_INSTANCE - GP_DEVICE__FIRST],
                       &p->compute_instance);
}

/* The row of a process: its MIG instance, otherwise its GPU. `rows` is the first row of the GPU.
 * Returns device_count if its row is not shown. */
static size_t row_of(const struct gp_snapshot *snapshot, size_t rows,
                     const struct gp_source_process *p)
{
    unsigned index = snapshot->devices[rows].index;
    for (size_t i = rows; i < snapshot->device_count && snapshot->devices[i].index == index; i++)
        if (snapshot->devices[i].is_mig && is_instance_of(&snapshot->devices[i], p))
            return i;
    return snapshot->devices[rows].is_mig ? snapshot->device_count : rows;
}

static const char *type_text(unsigned types)
{
    static const char *const names[] = {"", "C", "G", "C+G", "M", "M+C", "M+G", "M+C+G"};
    return names[types & 7];
}

/* A process that is listed by the driver or suspended. */
struct listed {
    const struct gp_source_process *process; /* NULL: it is suspended */
    uint32_t pid;
    uint64_t suspended_bytes;
    uint64_t time_ns;
    bool is_old;
};

/* All values of a process; the requested ones are copied to its row. */
struct draft {
    struct gp_value values[GP_PROCESS__COUNT];
};

static struct gp_value *draft_value(struct draft *draft, enum gp_metric m)
{
    return &draft->values[m - GP_PROCESS__FIRST];
}

/* Fills the values from the driver. */
static void fill_from_driver(struct draft *draft, const struct listed *listed)
{
    const struct gp_source_process *p = listed->process;
    const struct {
        enum gp_metric metric;
        const struct gp_value *value;
    } copies[] = {
        {GP_PROCESS_MEMORY, &p->memory},       {GP_PROCESS_POWER, &p->power},
        {GP_PROCESS_ENERGY, &p->energy},       {GP_PROCESS_GI, &p->gpu_instance},
        {GP_PROCESS_CI, &p->compute_instance},
    };
    const struct {
        enum gp_metric metric;
        struct gp_percent percent;
    } uses[] = {
        {GP_PROCESS_SM, p->sm},   {GP_PROCESS_MEM, p->mem},   {GP_PROCESS_ENC, p->enc},
        {GP_PROCESS_DEC, p->dec}, {GP_PROCESS_JPEG, p->jpeg}, {GP_PROCESS_OFA, p->ofa},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(copies); i++)
        *draft_value(draft, copies[i].metric) = *copies[i].value;
    for (size_t i = 0; i < GP_ARRAY_LEN(uses); i++) {
        struct gp_value *to = draft_value(draft, uses[i].metric);
        if (uses[i].percent.known)
            gp_value_set_int(to, uses[i].percent.n, listed->time_ns);
        else
            gp_value_set_absent(to, GP_STATUS_UNSUPPORTED, NULL, listed->time_ns);
    }
    for (size_t i = 0; listed->is_old && i < GP_PROCESS__COUNT; i++)
        if (draft->values[i].status == GP_STATUS_OK)
            draft->values[i].status = GP_STATUS_STALE;
    gp_value_set_int(draft_value(draft, GP_PID), p->pid, listed->time_ns);
    gp_value_set_text(draft_value(draft, GP_PROCESS_TYPE), type_text(p->types), listed->time_ns);
    gp_value_set_absent(draft_value(draft, GP_PROCESS_SUSPENDED), GP_STATUS_UNSUPPORTED,
                        "the process is not suspended", listed->time_ns);
}

bool gp_wants_activity(const struct gp_metric_set *metrics)
{
    return gp_metric_set_has(metrics, GP_PROCESS_IDLE) ||
           gp_metric_set_has(metrics, GP_PROCESS_LAST_ACTIVE);
}

/* When the process last used the GPU. Before the first look, the driver's numbers cover a
 * second. */
static void fill_activity(struct gp_assembler *a, unsigned gpu, struct draft *draft,
                          const struct listed *listed)
{
    static const char unknown[] = "the utilization of the process is unknown";
    static const char unseen[] = "not active since gpulse first saw it";
    const struct gp_source_process *p = listed->process;
    const struct gp_percent uses[] = {p->sm, p->enc, p->dec, p->jpeg, p->ofa};
    struct gp_value *idle = draft_value(draft, GP_PROCESS_IDLE);
    struct gp_value *last = draft_value(draft, GP_PROCESS_LAST_ACTIVE);
    struct gp_snapshot *snapshot = a->snapshot;
    bool is_active = false;
    for (size_t i = 0; i < GP_ARRAY_LEN(uses); i++)
        is_active = is_active || (!listed->is_old && uses[i].known && uses[i].n > 0);
    gp_value_set_absent(last, GP_STATUS_UNSUPPORTED, p->sm.known ? unseen : unknown,
                        listed->time_ns);
    if (!p->sm.known) {
        gp_value_set_absent(idle, GP_STATUS_UNSUPPORTED, unknown, listed->time_ns);
        return;
    }
    uint64_t from_ns = listed->time_ns - (listed->time_ns > FIRST_LOOK_NS ? FIRST_LOOK_NS : 0);
    const struct gp_activity_entry entry =
        gp_activity_see(&a->activity, gpu, p->pid, is_active, from_ns, listed->time_ns);
    uint64_t then_ns = entry.active_ns ? entry.active_ns : entry.since_ns;
    /* until the GPU last answered: what the process has done since is unknown */
    uint64_t idle_ns = listed->time_ns > then_ns ? listed->time_ns - then_ns : 0;
    gp_value_set_real(idle, (double)idle_ns / 1e9, listed->time_ns);
    idle->status = listed->is_old ? GP_STATUS_STALE : GP_STATUS_OK;
    if (!entry.active_ns)
        return;
    char text[GP_RFC3339_SIZE];
    uint64_t ago_ns = snapshot->mono_ns > entry.active_ns ? snapshot->mono_ns - entry.active_ns : 0;
    gp_clock_rfc3339(snapshot->wall_ns - ago_ns, text);
    gp_value_set_text(last, gp_arena_strdup(&snapshot->arena, text), listed->time_ns);
}

/* Fills the driver's values for a suspended process, which it does not list because the process has
 * released its GPUs. */
static void fill_suspended(struct draft *draft, const struct listed *listed)
{
    static const char why[] = "the process is suspended";
    for (enum gp_metric m = GP_PROCESS_SM; m <= GP_PROCESS_CI; m++)
        gp_value_set_absent(draft_value(draft, m), GP_STATUS_UNSUPPORTED, why, listed->time_ns);
    for (enum gp_metric m = GP_PROCESS_IDLE; m <= GP_PROCESS_LAST_ACTIVE; m++)
        gp_value_set_absent(draft_value(draft, m), GP_STATUS_UNSUPPORTED, why, listed->time_ns);
    gp_value_set_int(draft_value(draft, GP_PID), listed->pid, listed->time_ns);
    gp_value_set_text(draft_value(draft, GP_PROCESS_TYPE), GP_TYPE_SUSPENDED, listed->time_ns);
    gp_value_set_int(draft_value(draft, GP_PROCESS_MEMORY), 0, listed->time_ns);
    gp_value_set_int(draft_value(draft, GP_PROCESS_SUSPENDED), (int64_t)listed->suspended_bytes,
                     listed->time_ns);
}

/* The driver reports a path or a whole command line. */
static const char *name_from_driver(struct gp_snapshot *snapshot, const char *driver_name)
{
    const char *start;
    size_t n = gp_proc_program_name(driver_name, &start);
    char *copy = gp_arena_alloc(&snapshot->arena, n + 1, 1);
    if (copy)
        memcpy(copy, start, n);
    return copy && n > 0 ? copy : NULL;
}

/* Raw and derived numbers. They are stale for processes that are only read occasionally. */
static void fill_numbers(const struct gp_snapshot *snapshot, struct draft *draft,
                         const struct gp_proc_info *info)
{
    uint64_t now = snapshot->mono_ns;
    uint64_t then = info->is_old ? info->as_of_ns : now;
    const enum gp_metric moving[] = {GP_PROCESS_CPU, GP_PROCESS_RSS, GP_PROCESS_STATE,
                                     GP_PROCESS_THREADS};
    gp_value_set_text(draft_value(draft, GP_PROCESS_START), info->texts->start, now);
    gp_value_set_int(draft_value(draft, GP_PROCESS_PPID), info->ppid, now);
    gp_value_set_int(draft_value(draft, GP_PROCESS_SESSION), info->session, now);
    gp_value_set_real(draft_value(draft, GP_PROCESS_CPU), info->cpu_pct, then);
    gp_value_set_int(draft_value(draft, GP_PROCESS_RSS), (int64_t)info->rss_bytes, then);
    gp_value_set_text(draft_value(draft, GP_PROCESS_STATE), gp_proc_state_text(info->state), then);
    gp_value_set_int(draft_value(draft, GP_PROCESS_THREADS), info->threads, then);
    for (size_t i = 0; info->is_old && i < GP_ARRAY_LEN(moving); i++)
        draft_value(draft, moving[i])->status = GP_STATUS_STALE;
}

/* Fills the values from /proc; without those, the name comes from the driver. The path prefers the
 * driver's, which other tools show as well. */
static void fill_from_proc(struct gp_snapshot *snapshot, struct draft *draft,
                           const struct gp_proc_info *info, const char *driver_name)
{
    static const char hidden[] =
        "not in /proc: it has exited, is hidden, or runs in another pid namespace";
    static const char nowhere[] = "not in a container, job or service";
    static const char nameless[] = "no readable file contains its name";
    static const char unsaid[] = "not in its environment";
    static const char unread[] = "only visible to its owner and root";
    const struct gp_proc_texts *of = info->texts;
    if (driver_name)
        driver_name = gp_arena_strdup(&snapshot->arena, driver_name);
    /* The driver may find a process without a name, as nvidia-smi shows it. */
    const bool has_name = driver_name && *driver_name;
    const char *name = of->name;
    if (!name && driver_name)
        name = name_from_driver(snapshot, driver_name);
    bool contained = of->container && *of->container;
    bool told = of->origin && *of->origin;
    const struct {
        enum gp_metric metric;
        const char *text, *why;
        unsigned part; /* the part that may be denied */
    } texts[] = {
        {GP_PROCESS_NAME, name, NULL, GP_PROC_COMMAND},
        {GP_PROCESS_PATH, driver_name ? driver_name : of->path, NULL, GP_PROC_COMMAND},
        {GP_PROCESS_USER, of->user, NULL, 0},
        {GP_PROCESS_COMMAND, of->command || !has_name ? of->command : driver_name, NULL,
         GP_PROC_COMMAND},
        {GP_PROCESS_CONTAINER, contained ? of->container : NULL, of->container ? nowhere : NULL,
         GP_PROC_CONTAINER},
        {GP_PROCESS_CONTAINER_NAME, of->container_name, contained ? nameless : nowhere,
         GP_PROC_CONTAINER},
        {GP_PROCESS_ORIGIN, told ? of->origin : NULL, of->origin ? unsaid : NULL, GP_PROC_ORIGIN},
        {GP_PROCESS_CWD, of->cwd, NULL, GP_PROC_CWD},
        {GP_PROCESS_NS_PID, NULL, NULL, 0},
        {GP_PROCESS_SESSION, NULL, NULL, 0},
        {GP_PROCESS_CPU, NULL, NULL, 0},
        {GP_PROCESS_RSS, NULL, NULL, 0},
        {GP_PROCESS_START, NULL, NULL, 0},
        {GP_PROCESS_PPID, NULL, NULL, 0},
        {GP_PROCESS_STATE, NULL, NULL, 0},
        {GP_PROCESS_THREADS, NULL, NULL, 0},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(texts); i++) {
        struct gp_value *v = draft_value(draft, texts[i].metric);
        if (!snapshot->columns.places[texts[i].metric - GP_PROCESS__FIRST])
            continue;
        if (texts[i].text)
            gp_value_set_text(v, texts[i].text, snapshot->mono_ns);
        else if (of->denied & texts[i].part)
            gp_value_set_absent(v, GP_STATUS_NO_PERMISSION, unread, snapshot->mono_ns);
        else
            gp_value_set_absent(v, GP_STATUS_UNSUPPORTED, info->exists ? texts[i].why : hidden,
                                snapshot->mono_ns);
    }
    if (of->ns_pid)
        gp_value_set_int(draft_value(draft, GP_PROCESS_NS_PID), of->ns_pid, snapshot->mono_ns);
    if (info->state)
        fill_numbers(snapshot, draft, info);
}

/* Reads the listed processes from /proc, each pid once, even if it uses several GPUs. The path is
 * the driver's if it reports one. NULL without memory. */
static const struct gp_proc_infos *ask_proc(struct gp_assembler *a, const struct listed *listed,
                                            size_t count)
{
    uint32_t *pids = gp_arena_alloc(&a->scratch, count + 1, sizeof(*pids));
    bool has_paths = true;
    size_t kept = 0;
    if (!pids)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        pids[i] = listed[i].pid;
        has_paths = has_paths && listed[i].process && listed[i].process->driver_name;
    }
    qsort(pids, count, sizeof(*pids), gp_compare_u32);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || pids[i] != pids[kept - 1])
            pids[kept++] = pids[i];
    unsigned want = has_paths ? a->proc_want & ~(unsigned)GP_PROC_PATH : a->proc_want;
    return gp_proc_read(a->proc, want, pids, kept);
}

/* Allocates this many rows; NULL without memory. */
static struct gp_process *new_rows(struct gp_snapshot *snapshot, size_t count)
{
    size_t width = snapshot->columns.count;
    struct gp_process *rows = gp_arena_alloc(&snapshot->arena, count + 1, sizeof(*rows));
    struct gp_value *cells = gp_arena_alloc(&snapshot->arena, count * width + 1, sizeof(*cells));
    for (size_t i = 0; rows && cells && i < count; i++)
        rows[i] = (struct gp_process){.columns = &snapshot->columns, .cells = &cells[i * width]};
    return cells ? rows : NULL;
}

static void fill_row(struct gp_snapshot *snapshot, struct gp_process *row, struct draft *draft,
                     const struct gp_proc_info *info, const char *driver_name)
{
    fill_from_proc(snapshot, draft, info, driver_name);
    row->texts = gp_shared_hold(&info->texts->shared);
    row->owner = info->texts->owner;
    for (size_t i = 0; i < GP_PROCESS__COUNT; i++)
        if (snapshot->columns.places[i])
            row->cells[snapshot->columns.places[i] - 1] = draft->values[i];
}

static int add_ancestors(struct gp_snapshot *snapshot, const struct gp_proc_infos *infos)
{
    size_t count = 0;
    for (size_t i = 0; i < infos->count; i++)
        count += infos->infos[i].is_ancestor;
    if (count == 0)
        return 0;
    snapshot->ancestors = new_rows(snapshot, count);
    if (!snapshot->ancestors)
        return GP_ENOMEM;
    for (size_t i = 0; i < infos->count; i++) {
        struct draft draft = {0};
        if (!infos->infos[i].is_ancestor)
            continue;
        gp_value_set_int(draft_value(&draft, GP_PID), infos->infos[i].pid, snapshot->mono_ns);
        fill_row(snapshot, &snapshot->ancestors[snapshot->ancestor_count++], &draft,
                 &infos->infos[i], NULL);
    }
    return 0;
}

static size_t count_processes(const struct gp_assembler *a)
{
    size_t count = 0;
    for (size_t i = 0; i < a->taken_count; i++) {
        const struct gp_reading *shown = gp_taken_shown(&a->taken[i]);
        count += shown ? shown->process_count : 0;
    }
    for (size_t i = 0; i < a->shared.suspended.count; i++)
        count += a->shared.suspended.items[i].gpu_count;
    return count;
}

static bool is_listed(const struct gp_reading *reading, uint32_t pid)
{
    for (size_t i = 0; reading && i < reading->process_count; i++)
        if (reading->processes[i].pid == pid)
            return true;
    return false;
}

/* Appends the processes that were on this GPU when they were suspended. If the driver lists one of
 * them, it is only about to be suspended, or was resumed. */
static void list_suspended(struct gp_assembler *a, const struct gp_taken *t, uint32_t row,
                           struct listed *listed)
{
    struct gp_snapshot *snapshot = a->snapshot;
    for (size_t i = 0; t->uuid && i < a->shared.suspended.count; i++) {
        const struct gp_suspended *s = &a->shared.suspended.items[i];
        for (size_t g = 0; g < s->gpu_count; g++) {
            if (strcmp(s->gpus[g].uuid, t->uuid) != 0 || is_listed(gp_taken_shown(t), s->pid))
                continue;
            snapshot->processes[snapshot->process_count].device = row;
            snapshot->processes[snapshot->process_count].place = UINT32_MAX;
            listed[snapshot->process_count++] = (struct listed){
                .pid = s->pid,
                .suspended_bytes = s->gpus[g].bytes,
                .time_ns = snapshot->mono_ns,
            };
        }
    }
}

/* Assigns processes to rows. */
static void list_processes(struct gp_assembler *a, struct listed *listed)
{
    struct gp_snapshot *snapshot = a->snapshot;
    size_t first = 0; /* row of the current GPU */
    for (size_t d = 0; d < snapshot->device_count; d++) {
        struct gp_device *device = &snapshot->devices[d];
        const struct gp_taken *t = gp_taken_of(a, device);
        const struct gp_reading *shown = t ? gp_taken_shown(t) : NULL;
        if (d == 0 || device[-1].index != device->index)
            first = d;
        device->first_process = snapshot->process_count;
        for (size_t i = 0; shown && i < shown->process_count; i++) {
            if (row_of(snapshot, first, &shown->processes[i]) != d)
                continue;
            struct gp_process *row = &snapshot->processes[snapshot->process_count];
            row->device = (uint32_t)d;
            row->place = (uint32_t)shown->processes[i].place;
            listed[snapshot->process_count++] = (struct listed){
                .process = &shown->processes[i],
                .pid = shown->processes[i].pid,
                .time_ns = shown->time_ns,
                .is_old = t->status != GP_STATUS_OK,
            };
        }
        if (t && !device->is_mig)
            list_suspended(a, t, (uint32_t)d, listed);
        device->process_count = snapshot->process_count - device->first_process;
    }
}

/* Whether a process of a GPU that is lost, and lists nobody any more, runs as it did then. */
static bool still_runs(const struct gp_snapshot *snapshot, const struct listed *listed,
                       const struct gp_proc_info *info)
{
    const uint64_t ago_ns = snapshot->mono_ns - listed->time_ns;
    return info && info->exists && info->start_ns + ago_ns <= snapshot->wall_ns + GP_NS_PER_S;
}

static bool any_is_lost(const struct gp_snapshot *snapshot)
{
    for (size_t d = 0; d < snapshot->device_count; d++)
        if (snapshot->devices[d].status == GP_STATUS_LOST)
            return true;
    return false;
}

/* Removes those that have ended since their GPU was lost. */
static void drop_ended(struct gp_snapshot *snapshot, struct listed *listed,
                       const struct gp_proc_infos *infos)
{
    size_t kept = 0;
    size_t next = 0;
    for (size_t d = 0; d < snapshot->device_count; d++) {
        struct gp_device *device = &snapshot->devices[d];
        const size_t end = next + device->process_count;
        device->first_process = kept;
        for (; next < end; next++) {
            if (device->status == GP_STATUS_LOST && listed[next].process &&
                !still_runs(snapshot, &listed[next], gp_proc_find(infos, listed[next].pid)))
                continue;
            snapshot->processes[kept].device = snapshot->processes[next].device;
            snapshot->processes[kept].place = snapshot->processes[next].place;
            listed[kept++] = listed[next];
        }
        device->process_count = kept - device->first_process;
    }
    snapshot->process_count = kept;
}

int gp_assemble_processes(struct gp_assembler *a)
{
    struct gp_snapshot *snapshot = a->snapshot;
    size_t most = count_processes(a);
    const bool watches = gp_wants_activity(&a->want.metrics);
    if (watches && gp_activity_begin(&a->activity, most) < 0)
        return GP_ENOMEM;
    const struct gp_proc_infos *infos = NULL;
    struct listed *listed = gp_arena_alloc(&a->scratch, most + 1, sizeof(*listed));
    snapshot->processes = new_rows(snapshot, most);
    if (snapshot->processes && listed) {
        list_processes(a, listed);
        infos = ask_proc(a, listed, snapshot->process_count);
    }
    if (infos && any_is_lost(snapshot))
        drop_ended(snapshot, listed, infos);
    for (size_t i = 0; infos && i < snapshot->process_count; i++) {
        const struct gp_source_process *p = listed[i].process;
        struct draft draft = {0};
        if (p)
            fill_from_driver(&draft, &listed[i]);
        else
            fill_suspended(&draft, &listed[i]);
        if (p && watches)
            fill_activity(a, snapshot->devices[snapshot->processes[i].device].index, &draft,
                          &listed[i]);
        const struct gp_proc_info *info = gp_proc_find(infos, listed[i].pid);
        fill_row(snapshot, &snapshot->processes[i], &draft, info, p ? p->driver_name : NULL);
        if (a->want.jobs && info->exists)
            snapshot->processes[i].job = gp_proc_job(infos, info->pid);
    }
    if (watches)
        gp_activity_end(&a->activity);
    if (!infos)
        return GP_ENOMEM;
    return a->shows_ancestors ? add_ancestors(snapshot, infos) : 0;
}
