/* A report as JSON. */
#include "tape/report_write.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "out/json.h"

#include <string.h>

static json_t *text_or_null(const char *text)
{
    return *text ? json_string(text) : json_null();
}

/* A path can be any bytes. */
static json_t *path_of(const char *path)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 16);
    gp_utf8_add_safe(&sb, path, strlen(path), 1 << 15);
    json_t *text = json_string(sb.buf);
    gp_strbuf_fini(&sb);
    return text;
}

static json_t *time_of(int64_t wall_us)
{
    char text[GP_RFC3339_SIZE];
    gp_clock_rfc3339((uint64_t)wall_us * GP_NS_PER_US, text);
    return json_string(text);
}

static json_t *incidents_object(const uint32_t counts[GP_EVENT__COUNT])
{
    json_t *object = json_object();
    for (size_t i = 0; i < GP_EVENT__COUNT; i++)
        if (counts[i] > 0)
            (void)json_object_set_new(object, gp_event_table[i].name, json_integer(counts[i]));
    return object;
}

/* What a row is of: "user": "mia", or "pid": 4711. */
static void set_key(json_t *object, enum gp_report_by by, const struct gp_report_row *row)
{
    const bool is_process = by == GP_REPORT_PROCESS || by == GP_REPORT_IDLE;
    if (!is_process)
        (void)json_object_set_new(object, by == GP_REPORT_WAIT ? "job" : gp_report_by_word(by),
                                  text_or_null(row->label));
    else
        (void)json_object_set_new(object, "pid",
                                  *row->label ? json_integer(row->pid) : json_null());
    if (by == GP_REPORT_GPU)
        (void)json_object_set_new(object, "uuid", text_or_null(row->uuid));
}

/* Why numbers of a GPU that depend on its processes are null. */
static void add_reasons(json_t *object, const struct gp_report_row *row)
{
    static const char *const names[] = {"held_hours", "idle_hours", "reserved_hours", "utilization",
                                        "cost"};
    json_t *reasons = json_object();
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++)
        if (json_is_null(json_object_get(object, names[i])))
            (void)json_object_set_new(reasons, names[i], json_string(row->reason));
    (void)json_object_set_new(object, "reasons", reasons);
}

static json_t *row_object(const struct gp_report_look *look, enum gp_report_by by,
                          const struct gp_report_row *row)
{
    json_t *object = json_object();
    double n;
    set_key(object, by, row);
    for (size_t i = 1; i < gp_report_column_count; i++) { /* after the key */
        const struct gp_report_column *column = &gp_report_columns[i];
        if (!gp_report_has_column(look, by, column) || strcmp(column->name, "reason") == 0)
            continue;
        json_t *value = NULL;
        if (column->kind == GP_REPORT_INCIDENTS)
            value = incidents_object(row->incidents);
        else if (column->text)
            value = text_or_null(column->text(row));
        else if (!column->number(look, by, row, &n))
            value = json_null();
        else if (column->kind == GP_REPORT_COUNT || column->kind == GP_REPORT_BYTES)
            value = json_integer((json_int_t)n);
        else
            value = json_real(n);
        (void)json_object_set_new(object, column->name, value);
    }
    if (*row->reason)
        add_reasons(object, row);
    return object;
}

void gp_report_add_json(struct gp_strbuf *sb, const struct gp_report_look *look)
{
    const struct gp_report *report = look->report;
    json_t *tables = json_array();
    double seen;
    double watched;
    const bool has_watched = gp_report_watched_percent(report, &watched);
    const int is_known = gp_report_knows_holders(report);
    const bool has_seen = gp_report_seen_percent(report, &seen);
    for (size_t i = 0; i < report->table_count; i++) {
        const struct gp_report_table *table = &report->tables[i];
        json_t *rows = json_array();
        for (size_t k = 0; k < table->count; k++)
            if (json_array_append_new(rows, row_object(look, table->by, &table->rows[k])) < 0)
                sb->error = GP_ENOMEM; /* a row that is missing would not be noticed */
        (void)json_array_append_new(
            tables, json_pack("{s:s, s:o}", "by", gp_report_by_word(table->by), "rows", rows));
    }
    json_t *document = json_pack(
        "{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:f, s:o, s:b, s:o, s:I, s:o, s:o, s:o, s:o, s:o}",
        "schema", "gpulse.report/1", "time", time_of((int64_t)(gp_clock_wall_ns() / GP_NS_PER_US)),
        "host", text_or_null(report->host), "driver", text_or_null(report->driver), "recording",
        path_of(report->path), "from", time_of(report->from_us), "to", time_of(report->to_us),
        "hours", gp_report_hours(report->to - report->from), "seen_percent",
        has_seen ? json_real(seen) : json_null(), "processes_known", is_known,
        "waiting_seen_percent", has_watched ? json_real(watched) : json_null(), "idle_unknown",
        (json_int_t)report->idle_unknown, "users",
        report->users ? json_string(report->users) : json_null(), "groups",
        report->groups ? json_string(report->groups) : json_null(), "price",
        look->has_price ? json_real(look->price) : json_null(), "currency",
        look->has_price ? text_or_null(look->currency) : json_null(), "tables", tables);
    gp_json_add(sb, document, 2);
    gp_strbuf_addc(sb, '\n');
}
