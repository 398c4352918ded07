/* JSON: one document per run or an array of documents, or one flat object per row (ndjson).
 *
 * An absent value is null, and "reasons" says why. A stale value is present, and "reasons" says how
 * old it is. Numbers are plain, in the unit of the catalog. */
#include "out/json.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "out/rows.h"

#include <stdio.h>

/* docs/schema.md describes the stable parts. An incompatible change needs a new number. */
#define SCHEMA_DOCUMENT "gpulse.query/1"
#define SCHEMA_ROW "gpulse.query.row/1"

static json_t *json_value(const struct gp_field *field, const struct gp_value *v)
{
    const struct gp_metric_info *info = &gp_metric_table[field->metric];
    if (!gp_value_is_present(v))
        return json_null();
    if (info->type == GP_TYPE_TEXT)
        return json_string(v->s);
    double number = gp_field_number(field, v);
    if (field->unit && field->unit->decimals == 0)
        return json_integer((json_int_t)number);
    return info->type == GP_TYPE_REAL || field->unit ? json_real(number) : json_integer(v->i);
}

/* The key of a field: its name, followed by the unit if it is not the default one. */
static void name_key(const struct gp_field *field, char *key, size_t size)
{
    (void)snprintf(key, size, "%s%s%s", GP_METRIC_NAME(field->metric), field->unit ? ":" : "",
                   field->unit ? field->unit->name : "");
}

json_t *gp_json_document(const struct gp_snapshot *snapshot, const char *schema)
{
    json_t *document = json_object();
    if (!document)
        return NULL;
    const struct {
        const char *key;
        enum gp_metric metric;
    } host[] = {{"time", GP_TIMESTAMP}, {"host", GP_HOST_NAME}, {"driver", GP_DRIVER_VERSION}};
    (void)json_object_set_new(document, "schema", json_string(schema));
    for (size_t i = 0; i < GP_ARRAY_LEN(host); i++) {
        struct gp_field field = {.metric = host[i].metric};
        const struct gp_value *v = gp_snapshot_value(snapshot, NULL, NULL, host[i].metric);
        (void)json_object_set_new(document, host[i].key, json_value(&field, v));
    }
    return document;
}

void gp_json_add(struct gp_strbuf *sb, json_t *document, size_t indent)
{
    /* 15 digits: decimal numbers of the driver survive the round trip. */
    size_t flags =
        (indent ? JSON_INDENT(indent) : JSON_COMPACT) | JSON_REAL_PRECISION(15) | JSON_ENCODE_ANY;
    size_t need = document ? json_dumpb(document, NULL, 0, flags) : 0;
    if (need == 0 && !sb->error)
        sb->error = GP_ENOMEM;
    if (need > 0 && gp_strbuf_reserve(sb, need)) {
        /* The second pass allocates too, and can also run out of memory. */
        if (json_dumpb(document, sb->buf + sb->len, need, flags) == need)
            sb->len += need;
        else
            sb->error = GP_ENOMEM;
        sb->buf[sb->len] = '\0';
    }
    json_decref(document);
}

/* Adds the fields of a row to `object`, and the reasons for absent or stale values to `reasons`. */
static void set_row(json_t *object, const struct gp_view *view, const struct gp_snapshot *snapshot,
                    struct gp_row row)
{
    json_t *reasons = json_object();
    for (size_t c = 0; c < view->fields.count; c++) {
        const struct gp_field *field = &view->fields.fields[c];
        const struct gp_value *v = gp_row_value(snapshot, row, field);
        char name[128];
        name_key(field, name, sizeof(name));
        (void)json_object_set_new(object, name, json_value(field, v));
        if (v->status == GP_STATUS_OK)
            continue;
        struct gp_strbuf reason = GP_STRBUF_INIT(1024);
        gp_field_reason(&reason, v, snapshot->mono_ns);
        (void)json_object_set_new(reasons, name, json_string(reason.buf));
        gp_strbuf_fini(&reason);
    }
    if (json_object_size(reasons) > 0)
        (void)json_object_set_new(object, "reasons", reasons);
    else
        json_decref(reasons);
}

static void set_units(json_t *document, const struct gp_view *view)
{
    if (!view->units)
        return;
    json_t *units = json_object();
    for (size_t c = 0; c < view->fields.count; c++) {
        const struct gp_field *field = &view->fields.fields[c];
        char name[128];
        name_key(field, name, sizeof(name));
        if (*gp_field_unit(field))
            (void)json_object_set_new(units, name, json_string(gp_field_unit(field)));
    }
    (void)json_object_set_new(document, "units", units);
}

void gp_json_set_incomplete(json_t *document, const struct gp_snapshot *snapshot)
{
    json_t *gpus = json_array();
    for (size_t i = 0; i < snapshot->device_count; i++) {
        const struct gp_device *device = &snapshot->devices[i];
        if (device->is_mig || device->processes_status == GP_STATUS_OK)
            continue;
        json_t *gpu = json_object();
        (void)json_object_set_new(gpu, "index", json_integer(device->index));
        (void)json_object_set_new(gpu, "status",
                                  json_string(gp_device_state(device->processes_status)));
        (void)json_array_append_new(gpus, gpu);
    }
    if (json_array_size(gpus) > 0)
        (void)json_object_set_new(document, "incomplete", gpus);
    else
        json_decref(gpus);
}

void gp_json_set_rows(json_t *document, const struct gp_view *view,
                      const struct gp_snapshot *snapshot)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < gp_row_count(view, snapshot); i++) {
        json_t *row = json_object();
        set_row(row, view, snapshot, gp_row_at(view, snapshot, i));
        (void)json_array_append_new(rows, row);
    }
    (void)json_object_set_new(document, gp_scope_table[view->scope].plural, rows);
    if (view->scope == GP_SCOPE_PROCESS)
        gp_json_set_incomplete(document, snapshot);
}

static void write_json(const struct gp_view *view, struct gp_writer_state *state,
                       const struct gp_snapshot *snapshot, struct gp_strbuf *sb)
{
    json_t *document = gp_json_document(snapshot, SCHEMA_DOCUMENT);
    set_units(document, view);
    gp_json_set_rows(document, view, snapshot);
    /* Several samples form one array, so that the whole output is one JSON text. */
    if (view->looped)
        gp_strbuf_adds(sb, state->samples == 0 ? "[\n" : ",\n");
    gp_json_add(sb, document, 2);
    if (!view->looped)
        gp_strbuf_addc(sb, '\n');
    state->samples++;
}

static void end_json(const struct gp_view *view, struct gp_writer_state *state,
                     struct gp_strbuf *sb)
{
    if (view->looped)
        gp_strbuf_adds(sb, state->samples == 0 ? "[]\n" : "\n]\n");
}

/* One flat, self-contained object per row, for data frames and log shippers. */
static void write_ndjson(const struct gp_view *view, struct gp_writer_state *state,
                         const struct gp_snapshot *snapshot, struct gp_strbuf *sb)
{
    for (size_t i = 0; i < gp_row_count(view, snapshot); i++) {
        json_t *document = gp_json_document(snapshot, SCHEMA_ROW);
        set_units(document, view);
        set_row(document, view, snapshot, gp_row_at(view, snapshot, i));
        gp_json_add(sb, document, 0);
        gp_strbuf_addc(sb, '\n');
    }
    state->samples++;
}

const struct gp_writer gp_writer_json = {.name = "json", .sample = write_json, .end = end_json};
const struct gp_writer gp_writer_ndjson = {.name = "ndjson", .sample = write_ndjson};
