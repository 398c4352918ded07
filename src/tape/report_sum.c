/* Adds what happened in each period to the rows of a report.
 *
 * Processes of a user can be on a GPU at the same time, and their times must not be added up: a
 * user cannot hold a GPU for two hours in one. How long a GPU was held at all is known; so that is
 * the most that it was held by the processes of a row together. It was idle for at least the time
 * that remains if they computed one after the other. */
#include "tape/report_internal.h"

#include "base/err.h"
#include "tape/derive.h"
#include "tape/store.h"
#include "tape/tape.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* Events of a period beyond these are counted for the GPU, but not for its users. */
    EVENTS_MAX = 256,
    TEXT_SIZE = 64,
};

#define ENERGY_MAX_MJ (INT64_C(1) << 40) /* of a GPU in a period: more than a megawatt */
#define MEMORY_MAX (INT64_C(1) << 50)
#define SLACK_US INT64_C(5000000) /* a process is last seen a sample before it ends */

/* Rows of a table in the order of time, grouped by period. */
struct stream {
    struct sqlite3_stmt *statement;
    int64_t period; /* of the row that it is at */
    bool has_row;
};

struct item {
    uint32_t process, gpu;
    int64_t held, measured, busy, active, energy, memory;
};

/* An item for a table. */
struct entry {
    uint32_t row, gpu, item;
};

struct incident {
    int64_t t;
    uint32_t gpu;
    enum gp_event_kind kind;
};

struct pass {
    struct gp_report_work *work;
    struct gp_store *store;
    struct stream usage, share, event;
    struct use {
        struct gp_report_sums sums;
        bool is_known;
    } * uses; /* of each GPU in the period */
    struct item *items;
    struct entry *entries;
    size_t item_count, item_room, entry_count, entry_room;
    struct incident incidents[EVENTS_MAX];
    size_t incident_count;
};

/* ---- reading ---- */

static int advance(struct pass *pass, struct stream *stream, struct gp_err *err)
{
    int r = gp_store_step(pass->store, stream->statement, err);
    stream->has_row = r == 1;
    if (stream->has_row)
        stream->period = gp_store_int(stream->statement, 0) / GP_USAGE_PERIOD_US;
    return r < 0 ? r : 0;
}

static int compare_gpus(const void *a, const void *b)
{
    const struct gp_report_gpu *x = a;
    const struct gp_report_gpu *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/* The place of a GPU; false: it is not in the recording, or not selected. */
static bool gpu_at(const struct gp_report *report, int64_t id, uint32_t *ret)
{
    const struct gp_report_gpu key = {.id = id};
    const struct gp_report_gpu *gpu =
        bsearch(&key, report->by_id, report->gpu_count, sizeof(key), compare_gpus);
    if (!gpu || !gpu->is_selected)
        return false;
    *ret = (uint32_t)(gpu - report->by_id);
    return true;
}

static int compare_processes(const void *a, const void *b)
{
    const struct gp_report_process *x = a;
    const struct gp_report_process *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/* A process that is not in its table counts as an unknown one, which is the last. */
static uint32_t process_at(const struct gp_report_work *work, int64_t id)
{
    const struct gp_report_process key = {.id = id};
    const size_t count = work->process_count - 1;
    const struct gp_report_process *found =
        bsearch(&key, work->processes, count, sizeof(key), compare_processes);
    return (uint32_t)(found ? found - work->processes : (ptrdiff_t)count);
}

static int64_t period_of_time(struct sqlite3_stmt *row, int column)
{
    return gp_report_clamp(gp_store_int(row, column), GP_USAGE_PERIOD_US);
}

static void read_usage(struct pass *pass, struct sqlite3_stmt *row)
{
    uint32_t gpu;
    if (!gpu_at(pass->work->report, gp_store_int(row, 1), &gpu))
        return;
    struct gp_report_sums sums = {
        .listed = !gp_store_is_null(row, 4),
        .known_us = period_of_time(row, 2),
        .busy_us = period_of_time(row, 3),
        .held_us = period_of_time(row, 4),
        .reserved_us = period_of_time(row, 6),
        .energy_mj = gp_report_clamp(gp_store_int(row, 7), ENERGY_MAX_MJ),
        .memory = gp_report_clamp(gp_store_int(row, 8), MEMORY_MAX),
    };
    sums.unlisted_us = sums.listed ? 0 : sums.known_us;
    sums.measured_us = gp_least(sums.held_us, sums.known_us);
    sums.used_us = gp_least(sums.busy_us, sums.measured_us);
    sums.idle_us = gp_least(period_of_time(row, 5), sums.measured_us);
    gp_report_add_sums(&pass->uses[gpu].sums, &sums);
    pass->uses[gpu].is_known = true;
}

static bool read_share(struct pass *pass, struct sqlite3_stmt *row)
{
    uint32_t gpu;
    const uint32_t process = process_at(pass->work, gp_store_int(row, 1));
    if (pass->work->processes[process].is_hidden ||
        !gpu_at(pass->work->report, gp_store_int(row, 2), &gpu))
        return true;
    if (pass->item_count == pass->item_room) {
        struct item *items = gp_grown(pass->items, &pass->item_room, 64, sizeof(*items));
        if (!items)
            return false;
        pass->items = items;
    }
    const int64_t held = period_of_time(row, 3);
    const int64_t busy = period_of_time(row, 4);
    const int64_t idle = gp_least(period_of_time(row, 5), held);
    const bool is_measured = busy > 0 || idle > 0; /* otherwise the driver did not say */
    pass->items[pass->item_count++] = (struct item){
        .process = process,
        .gpu = gpu,
        .held = held,
        .measured = is_measured ? held : 0,
        .busy = busy,
        .active = held - idle,
        .energy = gp_report_clamp(gp_store_int(row, 6), ENERGY_MAX_MJ),
        .memory = gp_report_clamp(gp_store_int(row, 7), MEMORY_MAX),
    };
    return true;
}

static bool is_incident(enum gp_event_kind kind)
{
    return kind == GP_EVENT_THROTTLE || (gp_event_table[kind].group == GP_EVENT_GROUP_HEALTH &&
                                         kind != GP_EVENT_BACK && kind != GP_EVENT_RECOVERY);
}

/* Of changes in what limits the clocks, those after which something does: bits other than that of
 * an idle GPU. */
static bool limits(const char *now)
{
    return strtoull(now, NULL, 16) & ~1ULL;
}

static void read_event(struct pass *pass, struct sqlite3_stmt *row)
{
    struct gp_report *report = pass->work->report;
    const char *word = gp_store_text(row, 2);
    int kind = 0;
    uint32_t gpu;
    while (kind < GP_EVENT__COUNT && strcmp(gp_event_table[kind].name, word) != 0)
        kind++;
    if (kind == GP_EVENT__COUNT || !is_incident((enum gp_event_kind)kind) ||
        !gpu_at(report, gp_store_int(row, 1), &gpu) ||
        (kind == GP_EVENT_THROTTLE && !limits(gp_store_text(row, 3))))
        return;
    report->incidents[kind]++;
    report->by_id[gpu].row->incidents[kind]++;
    if (pass->incident_count < EVENTS_MAX)
        pass->incidents[pass->incident_count++] = (struct incident){
            .t = gp_store_int(row, 0), .gpu = gpu, .kind = (enum gp_event_kind)kind};
}

/* ---- rows of processes ---- */

static bool describe(struct gp_report_work *work, struct gp_report_row *row,
                     const struct gp_report_process *process, const char *label)
{
    char pid[TEXT_SIZE];
    (void)snprintf(pid, sizeof(pid), "%lld", (long long)process->pid);
    if (!label)
        label = process->id < 0 ? "" : pid;
    row->label = gp_arena_strdup(&work->report->arena, label);
    return row->label != NULL;
}

/* group: of a table of groups. */
static struct gp_report_row *add_row(struct gp_report_work *work, struct gp_report_table *table,
                                     struct gp_report_process *process, uint32_t gpu,
                                     const char *group)
{
    char number[TEXT_SIZE];
    struct gp_report *report = work->report;
    const struct gp_report_gpu *g = &report->by_id[gpu];
    const struct {
        const char *text;
        bool is_process;
    } keys[GP_REPORT_BY__COUNT] = {
        [GP_REPORT_USER] = {process->user, false},
        [GP_REPORT_GROUP] = {group, false},
        [GP_REPORT_JOB] = {process->job, false},
        [GP_REPORT_CONTAINER] = {process->container, false},
        [GP_REPORT_PROGRAM] = {process->name, false},
        [GP_REPORT_PROCESS] = {number, true},
        [GP_REPORT_IDLE] = {number, true},
    };
    (void)snprintf(number, sizeof(number), table->by == GP_REPORT_IDLE ? "%lld %lld" : "%lld",
                   (long long)process->id, (long long)g->id);
    const size_t before = table->count;
    struct gp_report_row *row = gp_report_row(report, table, keys[table->by].text);
    if (!row || table->count == before)
        return row;
    if (!describe(work, row, process, keys[table->by].is_process ? NULL : row->key))
        return NULL;
    if (keys[table->by].is_process) {
        row->pid = process->pid;
        row->name = process->name;
        row->user = process->user;
        row->command = process->command;
        row->first = process->first;
        row->last = process->last;
        row->gpu = g->row->label;
    }
    return row;
}

/* The row of a process on a GPU in a table; −1 without memory. */
static int64_t row_at(struct gp_report_work *work, struct gp_report_table *table,
                      struct gp_report_process *process, uint32_t gpu)
{
    if (table->by == GP_REPORT_GPU) /* in the order of `gpus` */
        return work->report->by_id[gpu].row - work->report->gpus.rows;
    int32_t *known = &process->rows[table->by];
    if (*known != GP_REPORT_NO_ROW && table->by != GP_REPORT_IDLE)
        return *known;
    struct gp_report_row *row = add_row(work, table, process, gpu, NULL);
    if (!row)
        return -1;
    if (*known == GP_REPORT_NO_ROW)
        row->processes++;
    *known = (int32_t)(row - table->rows);
    return *known;
}

/* The row of a group in the table of groups; −1 without memory. */
static int64_t group_row_at(struct gp_report_work *work, struct gp_report_table *table,
                            struct gp_report_process *process, uint32_t gpu, size_t i)
{
    struct gp_report_membership *in = &process->member->groups[i];
    if (in->row == GP_REPORT_NO_ROW) {
        const struct gp_report_row *row = add_row(work, table, process, gpu, in->group);
        if (!row)
            return -1;
        in->row = (int32_t)(row - table->rows);
    }
    if (process->rows[GP_REPORT_GROUP] == GP_REPORT_NO_ROW)
        table->rows[in->row].processes++;
    if (i + 1 == process->member->count)
        process->rows[GP_REPORT_GROUP] = in->row; /* it is counted in all of them */
    return in->row;
}

/* ---- adding a period ---- */

static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a;
    const struct entry *y = b;
    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    return (x->gpu > y->gpu) - (x->gpu < y->gpu);
}

/* The incidents on a GPU while one of these processes was there. */
static void add_incidents(const struct pass *pass, struct gp_report_row *row, uint32_t gpu,
                          int64_t first, int64_t last)
{
    for (size_t i = 0; i < pass->incident_count; i++) {
        const struct incident *incident = &pass->incidents[i];
        if (incident->gpu == gpu && incident->t >= first && incident->t - SLACK_US <= last)
            row->incidents[incident->kind]++;
    }
}

/* Adds entries of the same row and GPU. */
static void add_cell(struct pass *pass, struct gp_report_table *table, const struct entry *entries,
                     size_t count)
{
    const struct use *use = &pass->uses[entries->gpu];
    struct gp_report_row *row = &table->rows[entries->row];
    struct item sum = {0};
    int64_t first = INT64_MAX;
    int64_t last = INT64_MIN;
    for (size_t i = 0; i < count; i++) {
        const struct item *item = &pass->items[entries[i].item];
        const struct gp_report_process *process = &pass->work->processes[item->process];
        sum.held += item->held;
        sum.measured += item->measured;
        sum.busy += item->busy;
        sum.active += item->active;
        gp_report_add_to(&sum.energy, item->energy);
        sum.memory = item->memory > sum.memory ? item->memory : sum.memory;
        first = process->first < first ? process->first : first;
        last = process->last > last ? process->last : last;
    }
    const int64_t most =
        use->is_known ? gp_least(use->sums.held_us, GP_USAGE_PERIOD_US) : GP_USAGE_PERIOD_US;
    struct gp_report_sums sums = {.held_us = gp_least(sum.held, most),
                                  .busy_us = sum.busy,
                                  .energy_mj = sum.energy,
                                  .memory = sum.memory};
    sums.measured_us = gp_least(sum.measured, sums.held_us);
    sums.used_us = gp_least(sum.busy, sums.measured_us);
    if (sums.held_us > sum.active) /* what is not measured counts as active */
        sums.idle_us = sums.held_us - sum.active;
    gp_report_add_sums(&row->sums, &sums);
    add_incidents(pass, row, entries->gpu, first, last);
}

static bool add_entry(struct pass *pass, int64_t row, size_t i)
{
    if (row < 0)
        return false;
    if (pass->entry_count == pass->entry_room) {
        struct entry *grown = gp_grown(pass->entries, &pass->entry_room, 64, sizeof(*grown));
        if (!grown)
            return false;
        pass->entries = grown;
    }
    pass->entries[pass->entry_count++] =
        (struct entry){(uint32_t)row, pass->items[i].gpu, (uint32_t)i};
    return true;
}

/* Adds an entry for each row in which an item counts. */
static bool add_item(struct pass *pass, struct gp_report_table *table, size_t i)
{
    struct gp_report_process *process = &pass->work->processes[pass->items[i].process];
    const uint32_t gpu = pass->items[i].gpu;
    bool ok = true;
    if (table->by == GP_REPORT_WAIT)
        return true;
    if (table->by != GP_REPORT_GROUP)
        return add_entry(pass, row_at(pass->work, table, process, gpu), i);
    for (size_t k = 0; ok && k < process->member->count; k++)
        ok = add_entry(pass, group_row_at(pass->work, table, process, gpu, k), i);
    return ok;
}

static bool add_to_table(struct pass *pass, struct gp_report_table *table)
{
    pass->entry_count = 0;
    for (size_t i = 0; i < pass->item_count; i++)
        if (!add_item(pass, table, i))
            return false;
    if (pass->entry_count) /* none: the table is not of processes, and there may be no array */
        qsort(pass->entries, pass->entry_count, sizeof(*pass->entries), compare_entries);
    for (size_t i = 0; i < pass->entry_count;) {
        size_t end = i + 1;
        while (end < pass->entry_count &&
               compare_entries(&pass->entries[i], &pass->entries[end]) == 0)
            end++;
        add_cell(pass, table, &pass->entries[i], end - i);
        i = end;
    }
    return true;
}

static void add_gpus(struct pass *pass, int64_t period)
{
    struct gp_report *report = pass->work->report;
    const size_t step = report->step_count ? gp_report_step_at(report, pass->work->tape,
                                                               period * GP_USAGE_PERIOD_US)
                                           : 0;
    for (size_t i = 0; i < report->gpu_count; i++) {
        const struct gp_report_sums *sums = &pass->uses[i].sums;
        if (!pass->uses[i].is_known)
            continue;
        gp_report_add_sums(&report->by_id[i].row->sums, sums);
        gp_report_add_sums(&report->total, sums);
        if (!report->by_id[i].parts)
            continue;
        struct gp_report_part *part = &report->by_id[i].parts[step];
        gp_report_add_to(&part->known_us, sums->known_us);
        gp_report_add_to(&part->held_us, sums->held_us);
        gp_report_add_to(&part->idle_us, sums->idle_us);
        gp_report_add_to(&part->busy_us, sums->busy_us);
        gp_report_add_to(&part->energy_mj, sums->energy_mj);
        gp_report_add_to(&part->unlisted_us, sums->unlisted_us);
    }
}

static bool add_period(struct pass *pass, int64_t period)
{
    struct gp_report *report = pass->work->report;
    bool ok = true;
    add_gpus(pass, period);
    for (size_t i = 0; ok && i < report->table_count && pass->item_count > 0; i++)
        if (report->tables[i].by != GP_REPORT_GPU || report->is_of_some)
            ok = add_to_table(pass, &report->tables[i]);
    pass->item_count = 0;
    pass->incident_count = 0;
    memset(pass->uses, 0, report->gpu_count * sizeof(*pass->uses));
    return ok;
}

/* ---- all periods ---- */

static int read_period(struct pass *pass, int64_t period, struct gp_err *err)
{
    int r = 0;
    while (r == 0 && pass->usage.has_row && pass->usage.period == period) {
        read_usage(pass, pass->usage.statement);
        r = advance(pass, &pass->usage, err);
    }
    while (r == 0 && pass->share.has_row && pass->share.period == period) {
        if (!read_share(pass, pass->share.statement))
            return gp_err_set(err, GP_ENOMEM, "out of memory");
        r = advance(pass, &pass->share, err);
    }
    while (r == 0 && pass->event.has_row && pass->event.period == period) {
        read_event(pass, pass->event.statement);
        r = advance(pass, &pass->event, err);
    }
    if (r == 0 && !add_period(pass, period))
        r = gp_err_set(err, GP_ENOMEM, "out of memory");
    return r;
}

static int read_all(struct pass *pass, struct gp_err *err)
{
    struct stream *const streams[] = {&pass->usage, &pass->share, &pass->event};
    int r = 0;
    for (size_t i = 0; r == 0 && i < GP_ARRAY_LEN(streams); i++)
        r = advance(pass, streams[i], err);
    while (r == 0) {
        int64_t period = INT64_MAX;
        for (size_t i = 0; i < GP_ARRAY_LEN(streams); i++)
            if (streams[i]->has_row)
                period = gp_least(period, streams[i]->period);
        if (period == INT64_MAX)
            break;
        r = read_period(pass, period, err);
    }
    for (size_t i = 0; i < GP_ARRAY_LEN(streams); i++)
        if (streams[i]->statement)
            (void)sqlite3_reset(streams[i]->statement);
    return r;
}

int gp_report_sum(struct gp_report_work *work, struct gp_store *store, struct gp_err *err)
{
    const int64_t from = work->report->from - work->report->from % GP_USAGE_PERIOD_US;
    const int64_t to = work->report->to;
    struct pass *pass = calloc(1, sizeof(*pass));
    if (pass)
        pass->uses = calloc(work->report->gpu_count + 1, sizeof(*pass->uses));
    if (!pass || !pass->uses) {
        free(pass);
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    }
    pass->work = work;
    pass->store = store;
    pass->usage.statement = gp_store_statement(
        store,
        "SELECT t, gpu, known, busy, held, idle, reserved, energy, memory FROM usage "
        "WHERE t >= ? AND t < ? ORDER BY t",
        "ii", from, to);
    pass->share.statement =
        gp_store_statement(store,
                           "SELECT t, process, gpu, held, busy, idle, energy, memory FROM share "
                           "WHERE t >= ? AND t < ? ORDER BY t",
                           "ii", from, to);
    pass->event.statement = gp_store_statement(
        store, "SELECT t, gpu, kind, now FROM event WHERE t >= ? AND t < ? ORDER BY t", "ii", from,
        to);
    int r = read_all(pass, err);
    free(pass->uses);
    free(pass->items);
    free(pass->entries);
    free(pass);
    return r;
}
