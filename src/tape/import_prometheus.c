/* The answer of Prometheus to /api/v1/query_range: a series of times and values for each GPU and
 * metric, by DCGM's exporter or by gpulse. */
#include "tape/import_file.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "tape/import_names.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE_MAX_MIB = 512 };

struct point {
    int64_t wall_us;
    const char *key; /* of the GPU, in the document */
    int index;
    enum gp_metric metric;
    double value;
};

struct points {
    struct point *items;
    size_t count, room;
};

static int compare(const void *a, const void *b)
{
    const struct point *x = a;
    const struct point *y = b;
    if (x->wall_us != y->wall_us)
        return x->wall_us < y->wall_us ? -1 : 1;
    return strcmp(x->key, y->key);
}

static bool add(struct points *points, const struct point *point)
{
    if (points->count == points->room) {
        struct point *grown = gp_grown(points->items, &points->room, 1024, sizeof(*grown));
        if (!grown)
            return false;
        points->items = grown;
    }
    points->items[points->count++] = *point;
    return true;
}

static const char *label_of(const json_t *labels, const char *const *names)
{
    const char *text = NULL;
    for (; *names && !text; names++)
        text = json_string_value(json_object_get(labels, *names));
    return text;
}

/* Numbers are texts in Prometheus's answers. */
static bool read_pair(const json_t *pair, struct point *point, double factor)
{
    const char *text = json_string_value(json_array_get(pair, 1));
    const double seconds = json_number_value(json_array_get(pair, 0));
    char *end;
    if (!text || !(seconds > 0) || seconds > 9e9)
        return false;
    point->wall_us = (int64_t)(seconds * 1e6);
    point->value = strtod(text, &end) * factor;
    return end != text && !*end;
}

static int read_series(struct gp_import_rows *rows, const json_t *series, struct points *points,
                       struct gp_err *err)
{
    static const char *const uuids[] = {"UUID", "uuid", "gpu", NULL};
    static const char *const indices[] = {"gpu", "index", NULL};
    static const char *const names[] = {"__name__", NULL};
    const json_t *labels = json_object_get(series, "metric");
    const json_t *values = json_object_get(series, "values");
    const char *name = label_of(labels, names);
    const char *index = label_of(labels, indices);
    struct point point = {.key = label_of(labels, uuids)};
    if (!name || !point.key)
        return gp_import_fail(rows, "a series has no __name__, or no label gpu or UUID", err);
    const struct gp_import_name *found = gp_import_name_find(GP_IMPORT_PROMETHEUS, name);
    if (!found) {
        gp_import_skip(rows, name);
        return 0;
    }
    point.metric = found->metric;
    point.index = index ? gp_import_index(index) : -1;
    for (size_t i = 0; i < json_array_size(values); i++)
        if (read_pair(json_array_get(values, i), &point, found->factor) && !add(points, &point))
            return gp_err_set(err, GP_ENOMEM, "out of memory");
    return 0;
}

static int record(struct gp_import_rows *rows, struct points *points, struct gp_err *err)
{
    struct gp_device *device = NULL;
    const struct point *before = NULL;
    int r = 0;
    if (points->count)
        qsort(points->items, points->count, sizeof(*points->items), compare);
    for (size_t i = 0; r == 0 && i < points->count; i++) {
        const struct point *p = &points->items[i];
        if (!before || compare(before, p) != 0)
            r = gp_import_row(rows, p->wall_us, p->key, p->index, &device, err);
        before = p;
        if (r == 0)
            gp_import_set_number(rows, device, p->metric, p->value);
    }
    return r;
}

/* The whole document; its first line has been read. */
static json_t *load(struct gp_import_file *file, struct gp_err *err)
{
    struct gp_strbuf text = GP_STRBUF_INIT((size_t)SIZE_MAX_MIB << 20);
    json_error_t where;
    int r = 1;
    while (r == 1 && !text.error) {
        gp_strbuf_adds(&text, file->line);
        gp_strbuf_addc(&text, '\n');
        r = gp_import_next_line(file, err);
    }
    json_t *document = NULL;
    if (text.error)
        (void)gp_err_set(err, text.error, "'%.200s' is larger than %d MiB",
                         file->rows->config->from, (int)SIZE_MAX_MIB);
    else if (r == 0 && !(document = json_loadb(text.buf, text.len, 0, &where)))
        (void)gp_err_set(err, GP_EFORMAT, "'%.200s', line %d: %.100s", file->rows->config->from,
                         where.line, where.text);
    gp_strbuf_fini(&text);
    return document;
}

int gp_import_prometheus(struct gp_import_file *file, struct gp_err *err)
{
    struct points points = {0};
    json_t *document = load(file, err);
    if (!document)
        return err->code;
    const json_t *data = json_object_get(document, "data");
    const json_t *result = json_object_get(data, "result");
    const char *kind = json_string_value(json_object_get(data, "resultType"));
    int r = 0;
    if (!kind || strcmp(kind, "matrix") != 0 || !json_is_array(result))
        r = gp_err_set(err, GP_EFORMAT,
                       "'%.200s' is no answer of Prometheus for a time range: query it with "
                       "/api/v1/query_range",
                       file->rows->config->from);
    for (size_t i = 0; r == 0 && i < json_array_size(result); i++)
        r = read_series(file->rows, json_array_get(result, i), &points, err);
    if (r == 0)
        r = record(file->rows, &points, err);
    free(points.items);
    json_decref(document);
    return r;
}
