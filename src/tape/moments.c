#include "tape/moments.h"

#include "base/err.h"
#include "tape/chunk.h"
#include "tape/store.h"

#include <sqlite3.h>
#include <string.h>

/* A row ends where the next one begins: those of a recorder never overlap, and in a crafted file no
 * sample is read more than once. */
#define WINDOW                                                                                     \
    "SELECT first, min(last, coalesce((SELECT min(later.first) FROM chunk AS later WHERE "         \
    "later.step = 1000 AND later.first > chunk.first), last)), data FROM chunk WHERE step = 1000 " \
    "AND "
_Static_assert(GP_MOMENT_STEP_US == 1000, "the statements have it, too");

/* ---- the samples of an incident ---- */

struct window {
    int64_t first, last;
    const void *data;
    size_t size;
};

/* The next row; its data lives until the next step. */
static int take_window(struct gp_store *store, sqlite3_stmt *rows, struct window *ret,
                       struct gp_err *err)
{
    int r = gp_store_step(store, rows, err);
    if (r <= 0)
        return r;
    ret->first = gp_store_int(rows, 0);
    ret->last = gp_store_int(rows, 1);
    ret->data = gp_store_bytes(rows, 2, &ret->size);
    if (ret->first < 0 || ret->last < ret->first || ret->last > GP_STORE_TIME_MAX)
        return gp_store_decode_error(store->path, GP_EFORMAT, err);
    return 1;
}

static int64_t number_of(const struct window *w, int64_t t)
{
    return (t - w->first) / GP_MOMENT_STEP_US;
}

static int64_t time_of(const struct window *w, int64_t number)
{
    return w->first + number * GP_MOMENT_STEP_US;
}

/* A point that is looked for. */
struct point {
    int64_t wanted, last, after; /* after −1: there is none */
};

static int on_number(void *ctx, int64_t number)
{
    struct point *point = ctx;
    if (number > point->wanted) {
        point->after = number;
        return 1;
    }
    point->last = number;
    return 0;
}

static int on_last(void *ctx, int64_t number)
{
    const struct point *point = ctx;
    return number >= point->last;
}

int gp_moment_seek(struct gp_store *store, int64_t since, int64_t t, struct gp_scene *scene,
                   int64_t *ret, struct gp_err *err)
{
    sqlite3_stmt *rows =
        gp_store_statement(store, WINDOW "first <= ? ORDER BY first DESC LIMIT 1", "i", t);
    struct window w;
    *ret = -1;
    int r = take_window(store, rows, &w, err);
    if (r == 1 && w.last > since) { /* most places are long after one */
        struct point point = {number_of(&w, t), -1, -1};
        r = gp_chunk_read(w.data, w.size, NULL, on_number, &point);
        if (r >= 0 && point.last >= 0 && time_of(&w, point.last) < since)
            point.last = -1;
        if (r >= 0 && point.last >= 0) /* a scene cannot go back: now up to this one */
            r = gp_chunk_read(w.data, w.size, scene, on_last, &point);
        if (r >= 0 && point.last >= 0)
            *ret = time_of(&w, point.last);
        if (r < 0)
            r = gp_store_decode_error(store->path, r, err);
    }
    if (rows)
        (void)sqlite3_reset(rows);
    return r < 0 ? r : 0;
}

int gp_moment_after(struct gp_store *store, int64_t t, int64_t *ret, struct gp_err *err)
{
    sqlite3_stmt *rows =
        gp_store_statement(store, WINDOW "first <= ? ORDER BY first DESC LIMIT 1", "i", t);
    struct window w;
    *ret = -1;
    int r = take_window(store, rows, &w, err);
    if (r == 1 && t < w.last) {
        struct point point = {number_of(&w, t), -1, -1};
        r = gp_chunk_read(w.data, w.size, NULL, on_number, &point);
        if (r < 0)
            r = gp_store_decode_error(store->path, r, err);
        else if (point.after >= 0 && time_of(&w, point.after) < w.last)
            *ret = time_of(&w, point.after);
    }
    if (rows)
        (void)sqlite3_reset(rows);
    if (r < 0 || *ret >= 0)
        return r < 0 ? r : 0;
    rows = gp_store_statement(store, WINDOW "first > ? ORDER BY first LIMIT 1", "i", t);
    r = take_window(store, rows, &w, err);
    if (r == 1)
        *ret = w.first;
    if (rows)
        (void)sqlite3_reset(rows);
    return r < 0 ? r : 0;
}

int64_t gp_moment_last(struct gp_store *store)
{
    return gp_store_number(
        store, "SELECT last - 1 FROM chunk WHERE step = 1000 ORDER BY first DESC LIMIT 1", -1);
}

/* ---- all of them ---- */

struct reading {
    const struct window *window;
    int64_t from, to;
    int (*on_moment)(void *ctx, int64_t t);
    void *ctx;
};

static int on_point(void *ctx, int64_t number)
{
    const struct reading *reading = ctx;
    const int64_t t = time_of(reading->window, number);
    return t < reading->from                                ? 0
           : t >= reading->to || t >= reading->window->last ? 1
                                                            : reading->on_moment(reading->ctx, t);
}

int gp_moments_read(struct gp_store *store, int64_t from, int64_t to, struct gp_scene *scene,
                    int (*on_moment)(void *ctx, int64_t t), void *ctx, struct gp_err *err)
{
    sqlite3_stmt *rows =
        gp_store_statement(store,
                           WINDOW "first < ?1 AND first >= coalesce((SELECT max(first) FROM chunk "
                                  "WHERE step = 1000 AND first <= ?2), 0) ORDER BY first",
                           "ii", to, from);
    struct window w;
    struct reading reading = {&w, from, to, on_moment, ctx};
    int r;
    while ((r = take_window(store, rows, &w, err)) == 1) {
        if (w.last <= from)
            continue;
        r = gp_chunk_read(w.data, w.size, scene, on_point, &reading);
        if (r == GP_EFORMAT || r == GP_ENOMEM)
            r = gp_store_decode_error(store->path, r, err);
        if (r < 0)
            break;
    }
    if (rows)
        (void)sqlite3_reset(rows);
    return r;
}

struct gp_moment_counts gp_moment_count(struct gp_store *store, int64_t from, int64_t to)
{
    struct gp_moment_counts counts = {0};
    sqlite3_stmt *row =
        gp_store_statement(store,
                           "SELECT count(*), sum(count), max(first) FROM chunk WHERE "
                           "step = 1000 AND first < ? AND last > ?",
                           "ii", to, from);
    if (gp_store_step(store, row, NULL) == 1)
        counts = (struct gp_moment_counts){gp_store_int(row, 0), gp_store_int(row, 1),
                                           gp_store_int(row, 2)};
    if (row)
        (void)sqlite3_reset(row);
    return counts;
}

/* ---- in a scene ---- */

static bool copy_cell(struct gp_tape_cell *to, const struct gp_tape_cell *from)
{
    to->status = from->status;
    to->number = from->number;
    return gp_tape_cell_set_text(to, from->text, from->text ? strlen(from->text) : 0);
}

/* Whether the value of a column, which the moment does not have, holds for a GPU that did not
 * respond. */
static bool is_permanent(const struct gp_tape_column_info *info)
{
    return (int)info->column >= GP_METRIC__COUNT ||
           gp_metric_table[info->column].tier == GP_TIER_STATIC;
}

static bool overlay_row(struct gp_scene *scene, struct gp_tape_row *to,
                        const struct gp_scene *moment, const struct gp_tape_row *from)
{
    const struct gp_tape_column_info *columns = scene->columns->columns[GP_TAPE_DEVICE];
    const struct gp_tape_cell *status = gp_scene_cell(moment, from, GP_TAPE_STATUS);
    const enum gp_status state = status && status->status == GP_STATUS_OK && status->number >= 0 &&
                                         status->number <= GP_STATUS_ERROR
                                     ? (enum gp_status)status->number
                                     : GP_STATUS_OK;
    bool ok = true;
    for (unsigned i = 0; ok && i < scene->scopes[GP_TAPE_DEVICE].width; i++) {
        if (from->cells[i].status != GP_STATUS_NONE)
            ok = copy_cell(&to->cells[i], &from->cells[i]);
        else if (state != GP_STATUS_OK && !is_permanent(&columns[i]))
            ok = copy_cell(&to->cells[i], &(struct gp_tape_cell){.status = state});
    }
    return ok;
}

bool gp_moment_overlay(struct gp_scene *scene, const struct gp_scene *moment)
{
    const struct gp_tape_rows *from = &moment->scopes[GP_TAPE_DEVICE];
    const struct gp_tape_rows *to = &scene->scopes[GP_TAPE_DEVICE];
    bool ok = true;
    for (size_t k = 0; ok && k < to->count; k++)
        for (size_t i = 0; ok && i < from->count; i++)
            if (to->rows[k].id == from->rows[i].id)
                ok = overlay_row(scene, &to->rows[k], moment, &from->rows[i]);
    return ok;
}
