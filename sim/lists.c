#include "sim/lists.h"

#include "base/cli.h"
#include "base/err.h"
#include "sim/machine.h"

#include <string.h>

enum cell_kind { CELL_NUMBER, CELL_TEXT };

static const struct {
    const char *key;
    enum sim_cell first;
} lists[SIM_LIST_COUNT] = {
#define SIM_LIST(list, key) {key, SIM_##list##_FIRST},
#define SIM_CELL(list, cell, key, kind)
#include "sim/lists.def"
};

static const struct {
    const char *key;
    enum cell_kind kind;
} cells[SIM_CELL_COUNT] = {
#define SIM_LIST(list, key)
#define SIM_CELL(list, cell, key, kind) [SIM_##cell] = {key, CELL_##kind},
#include "sim/lists.def"
};

static size_t width_of(enum sim_list list)
{
    size_t end = list + 1 < SIM_LIST_COUNT ? lists[list + 1].first : SIM_CELL_COUNT;
    return end - lists[list].first;
}

static int load_cell(const char *key, json_t *value, enum cell_kind kind, struct gp_arena *arena,
                     struct sim_value *ret, struct gp_err *err)
{
    const char *text = json_string_value(value);
    json_int_t number = json_integer_value(value);
    if (text && strlen(text) == json_string_length(value) && sim_return_code(text, &ret->code))
        return GP_OK;
    bool is_text = text && strlen(text) == json_string_length(value);
    if (kind == CELL_TEXT ? !is_text : !json_is_integer(value) || number < 0)
        return gp_err_set(err, GP_EFORMAT, "%s: expected %s or the name of a return code", key,
                          kind == CELL_TEXT ? "a string" : "a number from 0");
    ret->code = NVML_SUCCESS;
    if (kind == CELL_NUMBER)
        ret->number = (uint64_t)number;
    else if (!(ret->text = gp_arena_strdup(arena, text)))
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    return GP_OK;
}

static const char *next_key(const void *ctx, size_t i)
{
    const struct sim_rows *rows = ctx;
    return i < rows->width ? cells[rows->first + i].key : i == rows->width ? "repeat" : NULL;
}

static int load_row(json_t *json, const struct sim_rows *rows, struct gp_arena *arena,
                    struct sim_value *row, struct gp_err *err)
{
    if (!json_is_object(json))
        return gp_err_set(err, GP_EFORMAT, "expected an object");
    for (size_t i = 0; i < rows->width; i++)
        row[i].code = NVML_ERROR_NOT_SUPPORTED;
    const char *key;
    json_t *value;
    json_object_foreach(json, key, value)
    {
        size_t i = 0;
        while (i < rows->width && strcmp(cells[rows->first + i].key, key) != 0)
            i++;
        if (strcmp(key, "repeat") == 0)
            continue;
        if (i == rows->width) {
            const char *near = gp_cli_nearest(key, next_key, rows);
            return gp_err_set(err, GP_EFORMAT, "unknown key '%.60s'%s%s%s", key,
                              near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
        }
        int result = load_cell(key, value, cells[rows->first + i].kind, arena, &row[i], err);
        if (result < 0)
            return result;
    }
    return GP_OK;
}

/* The number of copies of a row; 0 if its "repeat" is invalid. */
static size_t repeats(json_t *json)
{
    json_t *repeat = json_object_get(json, "repeat");
    json_int_t n = repeat ? json_integer_value(repeat) : 1;
    return n >= 1 && n <= SIM_MAX_ROWS ? (size_t)n : 0;
}

static int load_rows(json_t *json, struct gp_arena *arena, struct sim_rows *rows,
                     struct gp_err *err)
{
    const char *text = json_string_value(json);
    if (text && sim_return_code(text, &rows->code))
        return GP_OK;
    if (!json_is_array(json))
        return gp_err_set(err, GP_EFORMAT, "expected an array or the name of a return code");
    size_t most = 0;
    for (size_t i = 0; i < json_array_size(json) && most <= SIM_MAX_ROWS; i++)
        most += repeats(json_array_get(json, i));
    if (most > SIM_MAX_ROWS)
        return gp_err_set(err, GP_EFORMAT, "expected at most %d rows", SIM_MAX_ROWS);
    rows->code = NVML_SUCCESS;
    rows->cells = gp_arena_alloc(arena, most * rows->width + 1, sizeof(*rows->cells));
    if (!rows->cells)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    for (size_t i = 0; i < json_array_size(json); i++) {
        json_t *entry = json_array_get(json, i);
        struct sim_value *row = rows->cells + rows->count * rows->width;
        struct gp_err why = {0};
        int result = load_row(entry, rows, arena, row, &why);
        size_t n = repeats(entry);
        if (result == GP_OK && n == 0)
            result = gp_err_set(&why, GP_EFORMAT, "repeat: expected a number from 1 to %d",
                                SIM_MAX_ROWS);
        if (result < 0)
            return gp_err_set(err, result, "[%zu]: %s", i, why.text);
        for (size_t k = 1; k < n; k++)
            memcpy(row + k * rows->width, row, rows->width * sizeof(*row));
        rows->count += n;
    }
    return GP_OK;
}

static const char *next_list(const void *ctx, size_t i)
{
    (void)ctx;
    return i < SIM_LIST_COUNT ? lists[i].key : NULL;
}

int sim_lists_load(json_t *json, struct gp_arena *arena, struct sim_lists *ret, struct gp_err *err)
{
    for (size_t i = 0; i < SIM_LIST_COUNT; i++)
        ret->rows[i] = (struct sim_rows){.code = NVML_ERROR_NOT_SUPPORTED,
                                         .width = width_of((enum sim_list)i),
                                         .first = lists[i].first};
    if (json && !json_is_object(json))
        return gp_err_set(err, GP_EFORMAT, "expected an object");
    const char *key;
    json_t *value;
    json_object_foreach(json, key, value)
    {
        size_t i = 0;
        while (i < SIM_LIST_COUNT && strcmp(lists[i].key, key) != 0)
            i++;
        struct gp_err why = {0};
        if (i == SIM_LIST_COUNT) {
            const char *near = gp_cli_nearest(key, next_list, NULL);
            return gp_err_set(err, GP_EFORMAT, "unknown list '%.60s'%s%s%s", key,
                              near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
        }
        int result = load_rows(value, arena, &ret->rows[i], &why);
        if (result < 0)
            return gp_err_set(err, result, "%s%s%s", key, why.text[0] == '[' ? "" : ": ", why.text);
    }
    return GP_OK;
}

const struct sim_value *sim_cell(const struct sim_rows *rows, size_t row, enum sim_cell cell)
{
    return &rows->cells[row * rows->width + (cell - rows->first)];
}

uint64_t sim_cell_number(const struct sim_rows *rows, size_t row, enum sim_cell cell,
                         uint64_t fallback)
{
    const struct sim_value *v = sim_cell(rows, row, cell);
    return v->code == NVML_SUCCESS ? v->number : fallback;
}

const char *sim_cell_text(const struct sim_rows *rows, size_t row, enum sim_cell cell)
{
    const struct sim_value *v = sim_cell(rows, row, cell);
    return v->code == NVML_SUCCESS ? v->text : "";
}
