/* How long jobs waited for GPUs, added to the rows of users, groups and waiting jobs. */
#include "tape/report_internal.h"

#include "base/err.h"
#include "tape/store.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

enum { VERSION_LEAST = 2, KEY_SIZE = 1024 }; /* of recordings that have the table */

/* What a request waited within the report. */
struct request {
    const char *user, *job;
    int64_t waited_us;
};

static bool add_to(struct gp_report *report, struct gp_report_table *table, const char *key,
                   const char *label, const struct request *request)
{
    const size_t before = table->count;
    struct gp_report_row *row = gp_report_row(report, table, key);
    if (!row)
        return false;
    if (table->count > before) {
        row->label = gp_arena_strdup(&report->arena, label);
        row->user = table->by == GP_REPORT_WAIT ? request->user : row->user;
    }
    row->waits++;
    gp_report_add_to(&row->waited_us, request->waited_us);
    if (request->waited_us > row->waited_longest_us)
        row->waited_longest_us = request->waited_us;
    return row->label != NULL;
}

static bool add_to_table(struct gp_report_work *work, struct gp_report_table *table,
                         const struct request *request)
{
    char key[KEY_SIZE];
    bool ok = true;
    if (table->by == GP_REPORT_USER)
        return add_to(work->report, table, request->user, request->user, request);
    if (table->by == GP_REPORT_WAIT) {
        (void)snprintf(key, sizeof(key), "%s\n%s", request->user, request->job);
        return add_to(work->report, table, key, request->job, request);
    }
    const struct gp_report_member *member =
        table->by == GP_REPORT_GROUP ? gp_report_member(work, request->user) : NULL;
    for (size_t i = 0; ok && member && i < member->count; i++)
        ok = add_to(work->report, table, member->groups[i].group, member->groups[i].group, request);
    return ok && (member || table->by != GP_REPORT_GROUP);
}

static bool add_request(struct gp_report_work *work, struct sqlite3_stmt *row)
{
    struct gp_report *report = work->report;
    const struct gp_report_member *member = NULL;
    const struct request request = {
        .user = gp_report_text(report, gp_store_text(row, 0)),
        .job = gp_report_text(report, gp_store_text(row, 1)),
        .waited_us = gp_report_clamp(gp_store_int(row, 2), report->to - report->from),
    };
    if (!request.user || !request.job ||
        (work->needs_groups && !(member = gp_report_member(work, request.user))))
        return false;
    bool ok = true;
    for (size_t i = 0; ok && i < report->table_count; i++)
        if (gp_report_is_wanted(work, request.user, member))
            ok = add_to_table(work, &report->tables[i], &request);
    return ok;
}

int gp_report_add_waits(struct gp_report_work *work, struct gp_store *store, struct gp_err *err)
{
    /* of a request that was seen several times, its parts are one wait */
    static const char sql[] =
        "SELECT user, job, total(max(0, min(last, ?2) - max(first, ?1))) FROM line "
        "WHERE first < ?2 AND last > ?1 GROUP BY user, job, request ORDER BY user, job, request";
    struct gp_report *report = work->report;
    if (store->version < VERSION_LEAST || work->query->selection)
        return 0;
    struct sqlite3_stmt *rows = gp_store_statement(store, sql, "ii", report->from, report->to);
    int r;
    while ((r = gp_store_step(store, rows, err)) == 1) {
        bool ok = true;
        if (gp_store_is_null(rows, 0)) /* the first row, if it is there */
            report->watched_us = gp_report_clamp(gp_store_int(rows, 2), report->to - report->from);
        else if (report->watched_us > 0)
            ok = add_request(work, rows);
        if (!ok) {
            (void)sqlite3_reset(rows);
            return gp_err_set(err, GP_ENOMEM, "out of memory");
        }
    }
    return r;
}
