#include "tape/report.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/utf8.h"
#include "model/select.h"
#include "model/snapshot.h"
#include "source/source.h"
#include "tape/derive.h"
#include "tape/moments.h"
#include "tape/report_internal.h"
#include "tape/store.h"
#include "tape/tape.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ORDER_SHIFT = 20, /* of the order of GPUs: their number, then that of an instance */
    GPUS_MAX = 4096,  /* of a file; more are ignored */
    /* The sums are about a fifth of a file, in pages all over it. A report of an eighth of the time
     * needs a 40th of the file, which takes a disk longer than reading all of it in order. */
    AHEAD_PART = 8,
};

/* A recorder can have stored a process's times a period before what it used. */
#define LIVES_SLACK_US (2 * GP_USAGE_PERIOD_US)
#define AXIS_MAX_US (INT64_C(1) << 58)

/* ---- texts ---- */

static const char *keep_text(struct gp_report *report, struct sqlite3_stmt *row, int column)
{
    return gp_report_text(report, gp_store_text(row, column));
}

/* ---- GPUs ---- */

static bool keep_gpu(struct gp_report_work *work, struct sqlite3_stmt *row)
{
    struct gp_report *report = work->report;
    char key[48];
    struct gp_report_gpu *grown =
        realloc(report->by_id, (report->gpu_count + 1) * sizeof(*report->by_id));
    if (!grown)
        return false;
    report->by_id = grown;
    struct gp_report_gpu *gpu = &grown[report->gpu_count];
    const int64_t mig = gp_store_int(row, 3);
    const unsigned number = (unsigned)gp_store_int(row, 2);
    *gpu = (struct gp_report_gpu){.id = gp_store_int(row, 0), .is_mig = mig >= 0};
    const struct gp_identity identity = {.uuid = gp_store_text(row, 1),
                                         .bus_id = gp_store_text(row, 5),
                                         .name = gp_store_text(row, 4),
                                         .is_mig = gpu->is_mig,
                                         .gpu = number,
                                         .mig_index = (unsigned)mig};
    gpu->is_selected =
        !work->query->selection || gp_selection_matches(work->query->selection, number, &identity);
    report->gpu_count++;
    if (!gpu->is_selected)
        return true;
    report->selected++;
    (void)snprintf(key, sizeof(key), "%lld", (long long)gpu->id);
    struct gp_report_row *r = gp_report_row(report, &report->gpus, key);
    if (!r)
        return false;
    (void)snprintf(key, sizeof(key), gpu->is_mig ? "%u:%u" : "%u", number, (unsigned)mig);
    r->label = gp_arena_strdup(&report->arena, key);
    r->name = keep_text(report, row, 4);
    r->uuid = keep_text(report, row, 1);
    r->order = ((int64_t)number << ORDER_SHIFT) +
               (mig < 0 ? 0 : gp_report_clamp(mig, (1 << (ORDER_SHIFT - 1)) - 1) + 1);
    return r->label && r->name && r->uuid;
}

static int read_gpus(struct gp_report_work *work, struct gp_store *store, struct gp_err *err)
{
    struct gp_report *report = work->report;
    struct sqlite3_stmt *rows = gp_store_statement(
        store, "SELECT id, uuid, number, mig, name, bus FROM gpu ORDER BY id", "");
    unsigned count = 0;
    int r;
    while ((r = gp_store_step(store, rows, err)) == 1) {
        const bool ok = report->gpu_count == GPUS_MAX || keep_gpu(work, rows);
        const unsigned number = (unsigned)gp_report_clamp(gp_store_int(rows, 2), 1 << 20);
        count = number >= count ? number + 1 : count;
        if (!ok) {
            (void)sqlite3_reset(rows);
            return gp_err_set(err, GP_ENOMEM, "out of memory");
        }
    }
    if (r == 0 && work->query->selection)
        r = gp_selection_check(work->query->selection, count, err);
    if (r < 0)
        return r;
    /* the rows stay where they are from now on */
    gp_report_sort(&report->gpus);
    for (size_t i = 0; i < report->gpu_count; i++)
        for (size_t k = 0; k < report->gpus.count && report->by_id[i].is_selected; k++)
            if (strtoll(report->gpus.rows[k].key, NULL, 10) == report->by_id[i].id)
                report->by_id[i].row = &report->gpus.rows[k];
    return 0;
}

/* ---- processes ---- */

/* The container as a job, without its step, as in gpulse ps --by job; "": it is none. */
static const char *job_of(struct gp_report *report, const char *container)
{
    static const char *const kinds[] = {"slurm:", "pbs:"};
    for (size_t i = 0; i < GP_ARRAY_LEN(kinds); i++) {
        if (strncmp(container, kinds[i], strlen(kinds[i])) != 0)
            continue;
        char *job = gp_arena_strdup(&report->arena, container);
        if (job)
            job[strcspn(job, ".")] = '\0';
        return job;
    }
    return "";
}

static bool add_process(struct gp_report_work *work, const struct gp_report_process *process)
{
    if (work->process_count == work->process_room) {
        struct gp_report_process *grown =
            gp_grown(work->processes, &work->process_room, 64, sizeof(*grown));
        if (!grown)
            return false;
        work->processes = grown;
    }
    struct gp_report_process *p = &work->processes[work->process_count++];
    *p = *process;
    if (work->needs_groups && !(p->member = gp_report_member(work, p->user)))
        return false;
    p->is_hidden = !gp_report_is_wanted(work, p->user, p->member);
    for (int by = 0; by < GP_REPORT_BY__COUNT; by++)
        p->rows[by] = GP_REPORT_NO_ROW;
    return true;
}

static bool keep_process(struct gp_report_work *work, struct sqlite3_stmt *row)
{
    struct gp_report *report = work->report;
    struct gp_report_process p = {
        .id = gp_store_int(row, 0),
        .pid = gp_store_int(row, 1),
        .user = keep_text(report, row, 2),
        .name = keep_text(report, row, 3),
        .command = keep_text(report, row, 4),
        .container = keep_text(report, row, 5),
        .first = gp_report_clamp(gp_store_int(row, 7), AXIS_MAX_US),
        .last = gp_report_clamp(gp_store_int(row, 8), AXIS_MAX_US),
    };
    if (!p.user || !p.name || !p.command || !p.container)
        return false;
    p.job = job_of(report, p.container);
    if (p.job && *p.job)
        p.container = ""; /* a job is none */
    else if (*gp_store_text(row, 6))
        p.container = keep_text(report, row, 6);
    return p.job && p.container && add_process(work, &p);
}

static int read_processes(struct gp_report_work *work, struct gp_store *store, struct gp_err *err)
{
    const struct gp_report_process unknown = {.id = -1,
                                              .user = "",
                                              .name = "",
                                              .command = "",
                                              .job = "",
                                              .container = "",
                                              .last = AXIS_MAX_US};
    struct sqlite3_stmt *rows = gp_store_statement(
        store,
        "SELECT id, pid, user, name, command, container, container_name, first, last FROM process "
        "WHERE +last >= ? AND first < ? AND id > 0 ORDER BY id",
        "ii", work->report->from - LIVES_SLACK_US, work->report->to);
    int r;
    while ((r = gp_store_step(store, rows, err)) == 1) {
        if (!keep_process(work, rows)) {
            (void)sqlite3_reset(rows);
            return gp_err_set(err, GP_ENOMEM, "out of memory");
        }
    }
    if (r == 0 && !add_process(work, &unknown))
        r = gp_err_set(err, GP_ENOMEM, "out of memory");
    return r;
}

/* ---- the time ---- */

static int nothing_recorded(const struct gp_report_work *work, int64_t first, int64_t last,
                            struct gp_err *err)
{
    char from[GP_RFC3339_SIZE];
    char to[GP_RFC3339_SIZE];
    if (last <= first)
        return gp_err_set(err, GP_EUSAGE,
                          "nothing was recorded in '%.200s' yet; the first sums are stored after "
                          "a minute, and when the recorder ends",
                          work->report->path);
    gp_clock_plain((uint64_t)gp_report_wall(work->tape, first) * GP_NS_PER_US, from);
    gp_clock_plain((uint64_t)gp_report_wall(work->tape, last) * GP_NS_PER_US, to);
    return gp_err_set(err, GP_EUSAGE,
                      "nothing was recorded at that time; '%.200s' contains %.16s to %.16s",
                      work->report->path, from, to);
}

/* The start of a period, and of the next one. */
static int64_t floor_of(int64_t t)
{
    return t - t % GP_USAGE_PERIOD_US;
}

static int64_t ceiling_of(int64_t t)
{
    return floor_of(t + GP_USAGE_PERIOD_US - 1);
}

static int find_time(struct gp_report_work *work, struct gp_store *store, struct gp_err *err)
{
    struct gp_report *report = work->report;
    const struct gp_report_query *query = work->query;
    int64_t first = gp_store_number(store, "SELECT min(t) FROM usage", -1);
    int64_t last = gp_store_number(store, "SELECT max(t) FROM usage", -1);
    if (first < 0 || last < first || last > AXIS_MAX_US)
        return nothing_recorded(work, 0, 0, err);
    const int64_t begin = gp_store_number(store, "SELECT min(t) FROM clock", first);
    const int64_t derived = gp_store_number(store, "SELECT value FROM meta WHERE key = 'derived'",
                                            last + GP_USAGE_PERIOD_US);
    first = begin > first ? begin : first;
    if (derived > last && derived < last + GP_USAGE_PERIOD_US)
        last = derived;
    else
        last += GP_USAGE_PERIOD_US;
    if (last <= first)
        return nothing_recorded(work, 0, 0, err);
    report->from = first;
    report->to = last;
    if (query->since_us > gp_report_wall(work->tape, first)) {
        const int64_t t = gp_tape_place(work->tape, query->since_us);
        report->from = t < 0 || t >= last ? last : floor_of(t) > first ? floor_of(t) : first;
        report->is_rounded = report->from < t;
    }
    if (query->until_us && query->until_us < gp_report_wall(work->tape, last)) {
        const int64_t t = gp_tape_place(work->tape, query->until_us);
        if (query->until_us <= gp_report_wall(work->tape, first))
            report->to = report->from;
        else if (t >= 0 && t < last && ceiling_of(t) < last)
            report->to = ceiling_of(t);
        report->is_rounded = report->is_rounded || report->to > t;
    }
    if (report->to <= report->from)
        return nothing_recorded(work, first, last, err);
    if (report->to - report->from > (last - first) / AHEAD_PART)
        gp_store_read_ahead(store);
    const struct gp_moment_counts counts = gp_moment_count(store, report->from, report->to);
    report->detailed = counts.incidents;
    report->detailed_us = gp_report_wall(work->tape, counts.begin);
    report->from_us = gp_report_wall(work->tape, report->from);
    report->to_us = gp_report_wall(work->tape, report->to);
    return 0;
}

/* ---- all of it ---- */

/* Tables by GPU are copies of that of all GPUs: its values, or only its names. */
static bool copy_gpus(struct gp_report *report, struct gp_report_table *table, bool with_values)
{
    for (size_t i = 0; i < report->gpus.count; i++) {
        const struct gp_report_row *from = &report->gpus.rows[i];
        struct gp_report_row *to = gp_report_row(report, table, from->key);
        if (!to)
            return false;
        const char *key = to->key;
        *to = *from;
        to->key = key;
        if (with_values)
            continue;
        to->sums = (struct gp_report_sums){0};
        memset(to->incidents, 0, sizeof(to->incidents));
    }
    return true;
}

static bool prepare_tables(struct gp_report_work *work)
{
    struct gp_report *report = work->report;
    const struct gp_report_query *query = work->query;
    report->users = query->users ? gp_report_text(report, query->users) : NULL;
    report->groups = query->groups ? gp_report_text(report, query->groups) : NULL;
    report->is_of_some = query->users || query->groups;
    report->is_of_some_gpus = query->selection != NULL;
    bool ok = !query->users == !report->users && !query->groups == !report->groups;
    for (size_t i = 0; ok && i < query->by_count; i++) {
        report->tables[i] = (struct gp_report_table){.by = query->by[i]};
        report->table_count++;
        if (query->by[i] == GP_REPORT_GPU && report->is_of_some)
            ok = copy_gpus(report, &report->tables[i], false);
    }
    if (!query->charts)
        return ok;
    gp_report_make_steps(report);
    for (size_t i = 0; ok && i < report->gpu_count; i++) {
        if (!report->by_id[i].is_selected)
            continue;
        report->by_id[i].parts = calloc(report->step_count, sizeof(*report->by_id[i].parts));
        ok = report->by_id[i].parts != NULL;
    }
    return ok;
}

/* Of a GPU in MIG mode, only its instances are known to be held. */
static bool is_divided(const struct gp_report_table *gpus, size_t i)
{
    const struct gp_report_row *row = &gpus->rows[i];
    return i + 1 < gpus->count && row[0].order >> ORDER_SHIFT == row[1].order >> ORDER_SHIFT &&
           row->order % (1 << ORDER_SHIFT) == 0 && row->sums.known_us == 0 &&
           row->sums.held_us == 0;
}

/* Why it is unknown for how long GPUs were held. */
static void find_reasons(struct gp_report_table *gpus)
{
    for (size_t i = 0; i < gpus->count; i++) {
        struct gp_report_row *row = &gpus->rows[i];
        row->reason = !gp_report_is_seen(&row->sums) ? "not seen at that time"
                      : is_divided(gpus, i)          ? "in MIG mode: see its instances"
                      : row->sums.listed == 0        ? "its processes were not recorded"
                                                     : "";
    }
}

/* Keeps the rows that were idle for long enough. */
static void keep_idle(struct gp_report *report, struct gp_report_table *table, int64_t least_us)
{
    size_t kept = 0;
    for (size_t i = 0; i < table->count; i++) {
        const struct gp_report_sums *sums = &table->rows[i].sums;
        if (!gp_report_has_load(table->by, sums))
            report->idle_unknown += sums->held_us >= least_us;
        else if (sums->idle_us > 0 && sums->idle_us >= least_us)
            table->rows[kept++] = table->rows[i];
    }
    table->count = kept;
}

static bool finish_tables(struct gp_report_work *work)
{
    struct gp_report *report = work->report;
    bool ok = true;
    find_reasons(&report->gpus);
    for (size_t i = 0; ok && i < report->table_count; i++) {
        struct gp_report_table *table = &report->tables[i];
        if (table->by == GP_REPORT_GPU && !report->is_of_some)
            ok = copy_gpus(report, table, true);
        for (size_t k = 0; table->by == GP_REPORT_GPU && report->is_of_some && k < table->count;
             k++)
            table->rows[k].reason = report->gpus.rows[k].reason; /* in the same order */
        if (table->by == GP_REPORT_IDLE)
            keep_idle(report, table, work->query->idle_held_us);
        gp_report_sort(table);
    }
    return ok;
}

static int read_once(void *ctx, struct gp_store *store, struct gp_err *err)
{
    struct gp_report_work *work = ctx;
    struct gp_report *report = work->report;
    const char *path = report->path;
    gp_report_fini(report); /* of an attempt before */
    report->path = path;
    work->process_count = 0;
    gp_report_members_fini(work);
    report->interval_us =
        gp_store_number(store, "SELECT value FROM meta WHERE key = 'interval'", 1000000);
    int r = find_time(work, store, err);
    if (r == 0)
        r = read_gpus(work, store, err);
    if (r == 0)
        r = read_processes(work, store, err);
    if (r == 0 && !prepare_tables(work))
        r = gp_err_set(err, GP_ENOMEM, "out of memory");
    if (r == 0)
        r = gp_report_sum(work, store, err);
    if (r == 0)
        r = gp_report_add_waits(work, store, err);
    if (r == 0 && !finish_tables(work))
        r = gp_err_set(err, GP_ENOMEM, "out of memory");
    return r;
}

static void keep_host_text(const struct gp_snapshot *snapshot, enum gp_metric metric, char *ret,
                           size_t size)
{
    const struct gp_value *v = gp_snapshot_value(snapshot, NULL, NULL, metric);
    if (v && gp_value_is_present(v))
        gp_utf8_copy_safe(ret, size, v->s);
}

/* The machine that was recorded, if its samples can still be read. */
static void read_host(struct gp_tape *tape, struct gp_report *report)
{
    struct gp_want want = {0};
    struct gp_tape_found found;
    struct gp_snapshot *snapshot = NULL;
    gp_metric_set_add(&want.metrics, GP_HOST_NAME);
    gp_metric_set_add(&want.metrics, GP_DRIVER_VERSION);
    if (gp_tape_seek(tape, report->to - 1, &found, NULL) < 0)
        return;
    found.is_hole = false;
    if (gp_tape_show(tape, &found, report->to - 1, &want, &snapshot, NULL) < 0)
        return;
    keep_host_text(snapshot, GP_HOST_NAME, report->host, sizeof(report->host));
    keep_host_text(snapshot, GP_DRIVER_VERSION, report->driver, sizeof(report->driver));
    gp_snapshot_free(snapshot);
}

int gp_report_read(struct gp_tape *tape, const struct gp_report_query *query, const char *path,
                   struct gp_report *ret, struct gp_err *err)
{
    struct gp_report_work work = {.tape = tape, .query = query, .report = ret};
    *ret = (struct gp_report){.path = path};
    work.needs_groups = query->groups != NULL;
    for (size_t i = 0; i < query->by_count; i++)
        work.needs_groups = work.needs_groups || query->by[i] == GP_REPORT_GROUP;
    int r = gp_tape_do(tape, read_once, &work, err);
    free(work.processes);
    gp_report_members_fini(&work);
    if (r < 0)
        gp_report_fini(ret);
    else
        read_host(tape, ret);
    return r;
}

void gp_report_fini(struct gp_report *report)
{
    for (size_t i = 0; i < report->gpu_count; i++)
        free(report->by_id[i].parts);
    for (size_t i = 0; i < report->table_count; i++)
        gp_report_table_fini(&report->tables[i]);
    gp_report_table_fini(&report->gpus);
    free(report->by_id);
    gp_arena_fini(&report->arena);
    *report = (struct gp_report){0};
}
