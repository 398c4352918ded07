#include "tape/scene.h"

#include <stdlib.h>
#include <string.h>

static void free_row(struct gp_tape_row *row, unsigned width)
{
    for (unsigned i = 0; row->cells && i < width; i++)
        free(row->cells[i].text);
    free(row->cells);
    free(row->ranges);
}

/* Gives the row cells without values; false without memory. */
static bool make_row(const struct gp_scene *scene, struct gp_tape_row *row, unsigned width)
{
    row->cells = calloc(width + 1, sizeof(*row->cells));
    row->ranges = scene->has_ranges ? calloc(width + 1, sizeof(*row->ranges)) : NULL;
    if (row->cells && (row->ranges || !scene->has_ranges))
        return true;
    free_row(row, 0);
    return false;
}

static void free_rows(struct gp_tape_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++)
        free_row(&rows->rows[i], rows->width);
    free(rows->rows);
    *rows = (struct gp_tape_rows){0};
}

bool gp_scene_init(struct gp_scene *scene, const struct gp_tape_columns *columns, bool has_ranges)
{
    *scene = (struct gp_scene){.columns = columns, .has_ranges = has_ranges};
    for (size_t s = 0; s < GP_TAPE_SCOPE__COUNT; s++)
        scene->scopes[s].width = columns->counts[s];
    return gp_scene_list(scene, GP_TAPE_HOST, &(struct gp_tape_key){0, 0}, 1);
}

void gp_scene_fini(struct gp_scene *scene)
{
    for (size_t s = 0; s < GP_TAPE_SCOPE__COUNT; s++)
        free_rows(&scene->scopes[s]);
}

void gp_scene_forget(struct gp_scene *scene)
{
    for (size_t s = 0; s < GP_TAPE_SCOPE__COUNT; s++) {
        const struct gp_tape_rows *rows = &scene->scopes[s];
        for (size_t i = 0; i < rows->count; i++)
            for (unsigned k = 0; k < rows->width; k++) {
                struct gp_tape_cell *cell = &rows->rows[i].cells[k];
                free(cell->text);
                *cell = (struct gp_tape_cell){0};
            }
    }
}

bool gp_scene_is_listed(const struct gp_scene *scene, enum gp_tape_scope scope,
                        const struct gp_tape_key *keys, size_t count)
{
    const struct gp_tape_rows *rows = &scene->scopes[scope];
    for (size_t i = 0; rows->count == count && i < count; i++)
        if (rows->rows[i].id != keys[i].id || rows->rows[i].device != keys[i].device)
            return false;
    return rows->count == count;
}

static int compare_rows(const void *a, const void *b)
{
    const struct gp_tape_row *x = a;
    const struct gp_tape_row *y = b;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return (x->device > y->device) - (x->device < y->device);
}

/* Moves this row out of the sorted earlier ones, with its cells; false: it is new. */
static bool take_row(const struct gp_tape_rows *sorted, struct gp_tape_row *row)
{
    struct gp_tape_row *found =
        sorted->count ? bsearch(row, sorted->rows, sorted->count, sizeof(*row), compare_rows)
                      : NULL;
    if (!found || !found->cells)
        return false;
    *row = *found;
    found->cells = NULL;
    found->ranges = NULL;
    return true;
}

bool gp_scene_list(struct gp_scene *scene, enum gp_tape_scope scope, const struct gp_tape_key *keys,
                   size_t count)
{
    struct gp_tape_rows *rows = &scene->scopes[scope];
    struct gp_tape_rows next = {.rows = calloc(count + 1, sizeof(*next.rows)),
                                .width = rows->width};
    if (!next.rows)
        return false;
    if (rows->count > 1)
        qsort(rows->rows, rows->count, sizeof(*rows->rows), compare_rows);
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++) {
        struct gp_tape_row *row = &next.rows[next.count];
        *row = (struct gp_tape_row){.id = keys[i].id, .device = keys[i].device};
        ok = take_row(rows, row) || make_row(scene, row, rows->width);
        next.count += ok;
    }
    free_rows(rows);
    *rows = next;
    return ok;
}

bool gp_tape_cell_set_text(struct gp_tape_cell *cell, const char *text, size_t len)
{
    if (cell->text && text && strlen(cell->text) == len && memcmp(cell->text, text, len) == 0)
        return true;
    char *copy = text ? malloc(len + 1) : NULL;
    if (text && !copy)
        return false;
    if (copy) {
        memcpy(copy, text, len);
        copy[len] = '\0';
    }
    free(cell->text);
    cell->text = copy;
    return true;
}

const struct gp_tape_cell *gp_scene_cell(const struct gp_scene *scene,
                                         const struct gp_tape_row *row, int column)
{
    int place = scene->columns->places[column];
    return place < 0 ? NULL : &row->cells[place];
}

bool gp_scene_number(const struct gp_scene *scene, const struct gp_tape_row *row, int column,
                     double *ret)
{
    const struct gp_tape_cell *cell = gp_scene_cell(scene, row, column);
    if (!cell || (cell->status != GP_STATUS_OK && cell->status != GP_STATUS_STALE))
        return false;
    const struct gp_tape_column_info *info =
        &scene->columns->columns[gp_tape_column_scope(column)][scene->columns->places[column]];
    *ret = (double)cell->number / info->scale;
    return true;
}
