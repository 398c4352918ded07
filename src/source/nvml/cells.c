/* The rows of the lists of a GPU, cell by cell. */
#include "source/nvml/lists.h"

#include "base/clock.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "source/nvml/readers.h"

#include <stdlib.h>
#include <string.h>

nvmlReturn_t nvml_rows_add(struct nvml_rows *rows)
{
    size_t width = gp_scope_width(rows->scope);
    if (rows->list.count == NVML_LIST_MAX)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    if (rows->list.count == rows->capacity) {
        size_t capacity = rows->capacity ? 2 * rows->capacity : 32;
        struct gp_value *grown =
            realloc(rows->list.values, capacity * width * sizeof(*rows->list.values));
        if (!grown)
            return NVML_ERROR_MEMORY;
        rows->list.values = grown;
        rows->capacity = capacity;
    }
    struct gp_value *row = rows->list.values + rows->list.count++ * width;
    for (size_t i = 0; i < width; i++)
        gp_value_set_absent(&row[i], GP_STATUS_UNSUPPORTED, NULL, rows->now_ns);
    return NVML_SUCCESS;
}

struct gp_value *nvml_rows_cell(const struct nvml_rows *rows, size_t row, enum gp_metric m)
{
    return &rows->list.values[row * gp_scope_width(rows->scope) +
                              (size_t)(m - gp_scope_table[rows->scope].first)];
}

/* True if there is a value to fill in; otherwise the cell gets the reason. */
static bool succeeded(const struct nvml_rows *rows, struct gp_value *v, nvmlReturn_t rc)
{
    enum gp_status status = nvml_return_status(rc);
    if (rc != NVML_SUCCESS)
        gp_value_set_absent(v, status, status == GP_STATUS_ERROR ? nvml_return_text(rc) : NULL,
                            rows->now_ns);
    return rc == NVML_SUCCESS;
}

static void doubt(const struct nvml_rows *rows, enum gp_metric m, struct gp_value *v)
{
    if (!nvml_is_plausible(rows->device, m, v))
        gp_value_set_absent(v, GP_STATUS_ERROR, "impossible value", rows->now_ns);
}

void nvml_cell_real(const struct nvml_rows *rows, size_t row, enum gp_metric m, nvmlReturn_t rc,
                    double number)
{
    struct gp_value *v = nvml_rows_cell(rows, row, m);
    if (!succeeded(rows, v, rc))
        return;
    gp_value_set_real(v, number, rows->now_ns);
    doubt(rows, m, v);
}

void nvml_cell_number(const struct nvml_rows *rows, size_t row, enum gp_metric m, nvmlReturn_t rc,
                      uint64_t number)
{
    struct gp_value *v = nvml_rows_cell(rows, row, m);
    if (gp_metric_table[m].type == GP_TYPE_REAL) {
        nvml_cell_real(rows, row, m, rc, (double)number);
        return;
    }
    if (!succeeded(rows, v, rc))
        return;
    gp_value_set_int(v, (int64_t)number, rows->now_ns);
    doubt(rows, m, v);
}

void nvml_cell_text(const struct nvml_rows *rows, size_t row, enum gp_metric m, nvmlReturn_t rc,
                    const char *text)
{
    struct gp_value *v = nvml_rows_cell(rows, row, m);
    if (!succeeded(rows, v, rc))
        return;
    struct gp_strbuf safe = GP_STRBUF_INIT(4096);
    gp_utf8_add_safe(&safe, text, strlen(text), 1024);
    const char *kept = gp_arena_strdup(rows->arena, safe.buf);
    gp_strbuf_fini(&safe);
    if (kept)
        gp_value_set_text(v, kept, rows->now_ns);
    else
        gp_value_set_absent(v, GP_STATUS_ERROR, "out of memory", rows->now_ns);
}

void nvml_cell_code(const struct nvml_rows *rows, size_t row, enum gp_metric m, nvmlReturn_t rc,
                    const struct code_name *names, uint64_t code)
{
    struct gp_value *v = nvml_rows_cell(rows, row, m);
    if (!succeeded(rows, v, rc))
        return;
    nvml_name_code(names, code > UINT32_MAX ? UINT32_MAX : (unsigned)code, v);
    gp_value_set_time(v, rows->now_ns);
}

bool nvml_cell_is_due(const struct nvml_rows *rows, size_t row, enum gp_metric m)
{
    const struct gp_list *before = rows->before;
    enum gp_tier tier = gp_metric_table[m].tier;
    if (!nvml_rows_want(rows, m))
        return false;
    if (before->status != GP_STATUS_OK || row >= before->count)
        return true;
    const struct gp_value *old = &before->values[row * gp_scope_width(rows->scope) +
                                                 (size_t)(m - gp_scope_table[rows->scope].first)];
    bool lasts = old->status == GP_STATUS_OK && tier == GP_TIER_STATIC;
    if (!lasts && rows->now_ns >= nvml_ask_again_ns(old->status, tier, gp_value_time_ns(old)))
        return true;
    struct gp_value *v = nvml_rows_cell(rows, row, m);
    if (old->status == GP_STATUS_OK && gp_metric_table[m].type == GP_TYPE_TEXT)
        nvml_cell_text(rows, row, m, NVML_SUCCESS, old->s);
    else
        *v = *old;
    v->time_us = old->time_us;
    return false;
}

void nvml_put_number(const struct nvml_rows *rows, enum gp_metric m, uint64_t number)
{
    nvml_cell_number(rows, rows->list.count - 1, m, NVML_SUCCESS, number);
}

void nvml_put_text(const struct nvml_rows *rows, enum gp_metric m, const char *text)
{
    nvml_cell_text(rows, rows->list.count - 1, m, NVML_SUCCESS, text);
}
