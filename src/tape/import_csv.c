/* nvidia-smi --query-gpu --format=csv, and gpulse query -f csv, tsv or ndjson. */
#include "tape/import_file.h"

#include "base/err.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS_MAX = 1024, NO_METRIC = -1 };

struct column {
    int metric;    /* NO_METRIC: it is not imported */
    char unit[24]; /* of the heading; "" for none */
};

struct csv {
    struct gp_import_rows *rows;
    char separator;
    struct column columns[COLUMNS_MAX];
    size_t count;
    int time, index, uuid, bus; /* columns; −1: there is none */
};

/* ---- cells ---- */

/* The next cell, without quotes and the blanks around it; NULL: there are no more. */
static char *next_cell(char **line, char separator)
{
    char *p = *line;
    if (!p)
        return NULL;
    p += strspn(p, " ");
    char *cell = p;
    if (*p == '"') {
        char *to = cell;
        for (p++; *p && (*p != '"' || p[1] == '"'); p++) {
            *to++ = *p;
            p += *p == '"';
        }
        p += *p == '"' ? strcspn(p, (char[]){separator, '\0'}) : 0;
        *line = *p ? p + 1 : NULL;
        *to = '\0';
        return cell;
    }
    p += strcspn(p, (char[]){separator, '\0'});
    *line = *p ? p + 1 : NULL;
    *p = '\0';
    while (p > cell && p[-1] == ' ')
        *--p = '\0';
    return cell;
}

/* "memory.used [MiB]", "memory.used:GiB [GiB]", "memory.used:GiB". */
static void read_heading(struct csv *csv, char *heading, struct column *column)
{
    enum gp_metric m;
    char *unit = strstr(heading, " [");
    *column = (struct column){.metric = NO_METRIC};
    if (unit) {
        (void)snprintf(column->unit, sizeof(column->unit), "%.*s", (int)strcspn(unit + 2, "]"),
                       unit + 2);
        *unit = '\0';
    }
    char *colon = strchr(heading, ':');
    if (colon) {
        if (!unit)
            (void)snprintf(column->unit, sizeof(column->unit), "%.23s", colon + 1);
        *colon = '\0';
    }
    if (gp_metric_find(heading, &m, NULL) == 0 &&
        (gp_metric_table[m].scope == GP_SCOPE_DEVICE || m == GP_TIMESTAMP))
        column->metric = (int)m;
    else
        gp_import_skip(csv->rows, heading);
}

static int read_head(struct csv *csv, char *line, struct gp_err *err)
{
    char *cell;
    csv->time = csv->index = csv->uuid = csv->bus = -1;
    while ((cell = next_cell(&line, csv->separator))) {
        if (csv->count == COLUMNS_MAX)
            return gp_import_fail(csv->rows, "there are too many columns", err);
        read_heading(csv, cell, &csv->columns[csv->count]);
        const int m = csv->columns[csv->count].metric;
        const int at = (int)csv->count++;
        csv->time = m == GP_TIMESTAMP ? at : csv->time;
        csv->index = m == GP_INDEX ? at : csv->index;
        csv->uuid = m == GP_UUID ? at : csv->uuid;
        csv->bus = m == GP_PCI_BUS_ID ? at : csv->bus;
    }
    return 0;
}

/* ---- rows ---- */

static int read_row(struct csv *csv, char *line, struct gp_err *err)
{
    char *cells[COLUMNS_MAX];
    size_t count = 0;
    int64_t wall_us = 0;
    struct gp_device *device = NULL;
    while (count < csv->count && (cells[count] = next_cell(&line, csv->separator)))
        count++;
    if (count < csv->count || line)
        return gp_import_fail(csv->rows, "it does not have as many columns as the first line", err);
    const int name = csv->uuid >= 0 ? csv->uuid : csv->bus >= 0 ? csv->bus : csv->index;
    const char *key = name >= 0 ? cells[name] : "0";
    int r = 0;
    if (csv->time < 0)
        r = gp_import_count_time(csv->rows, key, &wall_us, err);
    else if (!gp_import_time(cells[csv->time], &wall_us))
        r = gp_import_fail(csv->rows, "its timestamp cannot be read", err);
    if (r == 0)
        r = gp_import_row(csv->rows, wall_us, key,
                          csv->index >= 0 ? gp_import_index(cells[csv->index]) : -1, &device, err);
    for (size_t i = 0; r == 0 && i < count; i++)
        if (csv->columns[i].metric != NO_METRIC && csv->columns[i].metric != GP_TIMESTAMP &&
            csv->columns[i].metric != GP_INDEX)
            gp_import_set(csv->rows, device, (enum gp_metric)csv->columns[i].metric, cells[i],
                          csv->columns[i].unit);
    return r;
}

int gp_import_csv(struct gp_import_file *file, struct gp_err *err)
{
    struct csv *csv = calloc(1, sizeof(*csv));
    if (!csv)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    csv->rows = file->rows;
    csv->separator = strchr(file->line, '\t') ? '\t' : ',';
    int r = read_head(csv, file->line, err);
    while (r == 0 && (r = gp_import_next_line(file, err)) == 1)
        r = *file->line ? read_row(csv, file->line, err) : 0;
    free(csv);
    return r;
}

/* ---- ndjson ---- */

static const char *text_of(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

/* A member such as "memory.used:GiB": 71.4 */
static void set_member(struct gp_import_rows *rows, struct gp_device *device, const char *name,
                       const json_t *value)
{
    char plain[128];
    char text[64];
    enum gp_metric m;
    const char *colon = strchr(name, ':');
    (void)snprintf(plain, sizeof(plain), "%.*s", (int)strcspn(name, ":"), name);
    if (gp_metric_find(plain, &m, NULL) < 0 || gp_metric_table[m].scope != GP_SCOPE_DEVICE ||
        m == GP_INDEX)
        return;
    if (json_is_string(value)) {
        gp_import_set(rows, device, m, json_string_value(value), "");
    } else if (json_is_number(value)) {
        (void)snprintf(text, sizeof(text), "%.17g", json_number_value(value));
        gp_import_set(rows, device, m, text, colon ? colon + 1 : "");
    }
}

static int read_object(struct gp_import_rows *rows, json_t *object, struct gp_err *err)
{
    char key[96];
    const char *name;
    json_t *value;
    int64_t wall_us;
    struct gp_device *device;
    const char *time = text_of(object, "time");
    const json_t *index = json_object_get(object, "index");
    const char *uuid = text_of(object, "uuid");
    if (!time || !gp_import_time(time, &wall_us))
        return gp_import_fail(rows, "it has no time", err);
    if (!json_is_integer(index) && !uuid)
        return gp_import_fail(rows, "it has neither index nor uuid", err);
    (void)snprintf(key, sizeof(key), "%lld", (long long)json_integer_value(index));
    int r = gp_import_row(rows, wall_us, uuid ? uuid : key,
                          json_is_integer(index) ? gp_import_index(key) : -1, &device, err);
    json_object_foreach(object, name, value) if (r == 0) set_member(rows, device, name, value);
    return r;
}

int gp_import_ndjson(struct gp_import_file *file, struct gp_err *err)
{
    int r = 0;
    do {
        r = 0;
        json_t *object = *file->line ? json_loads(file->line, 0, NULL) : NULL;
        if (*file->line)
            r = json_is_object(object) ? read_object(file->rows, object, err)
                                       : gp_import_fail(file->rows, "it is not JSON", err);
        json_decref(object);
    } while (r == 0 && (r = gp_import_next_line(file, err)) == 1);
    return r;
}
