#include "tape/series.h"

#include "base/err.h"
#include "tape/chunk.h"
#include "tape/frame.h"
#include "tape/moments.h"
#include "tape/roll.h"
#include "tape/store.h"
#include "tape/tape.h"

#include <sqlite3.h>
#include <stdlib.h>

#define TIME_MOST (INT64_MAX / 4) /* no time of a file is later: sums do not overflow */

struct reading {
    const struct gp_series_reader *reader;
    int64_t from, to;
    int64_t interval_us;
    struct gp_store *store;
    struct gp_tape_columns columns;
    struct gp_scene scene, moment;
    int64_t quiet_to; /* before that, there are no samples of incidents */
};

struct moments {
    const struct reading *reading;
    int64_t to;
    struct gp_err *err;
};

static int on_moment(void *ctx, int64_t t)
{
    const struct moments *m = ctx;
    const struct gp_series_piece piece = {&m->reading->moment, t, m->to - t, false};
    return m->reading->reader->moment(m->reading->reader->ctx, &piece, m->err);
}

/* Passes on the samples of incidents between `from` and `to`. */
static int emit_moments(struct reading *reading, int64_t from, int64_t to, struct gp_err *err)
{
    struct moments moments = {reading, to, err};
    int64_t next;
    if (!reading->reader->moment || to <= reading->quiet_to)
        return 0;
    int r = gp_moment_after(reading->store, from, &next, err);
    if (r < 0)
        return r;
    reading->quiet_to = next < 0 ? TIME_MOST : next;
    return to <= reading->quiet_to ? 0
                                   : gp_moments_read(reading->store, from + 1, to, &reading->moment,
                                                     on_moment, &moments, err);
}

/* Passes on what of the scene is between `from` and `to`. */
static int emit(struct reading *reading, int64_t from, int64_t to, bool is_summary,
                struct gp_err *err)
{
    const struct gp_series_piece piece = {&reading->scene, from, to - from, is_summary};
    int r = from < to ? reading->reader->piece(reading->reader->ctx, &piece, err) : 0;
    return r == 0 && from < to ? emit_moments(reading, from, to, err) : r;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- samples ---- */

/* A sample lasts until the next one, unless nothing was recorded for a while. */
static int emit_sample(struct reading *reading, int64_t t, int64_t next, struct gp_err *err)
{
    const int64_t pause_us = gp_store_pause_us(reading->interval_us);
    const int64_t end = next - t > pause_us ? t + reading->interval_us : next;
    return t < reading->from ? 0 : emit(reading, t, gp_least(end, reading->to), false, err);
}

/* From the key frame that the first sample depends on. */
static int read_samples(struct reading *reading, int64_t from, struct gp_err *err)
{
    static const char sql[] =
        "SELECT t, frame FROM tick WHERE t >= coalesce((SELECT base FROM tick WHERE t <= ?1 "
        "ORDER BY t DESC LIMIT 1), 0) AND t < ?2 ORDER BY t";
    sqlite3_stmt *rows = gp_store_statement(reading->store, sql, "ii", from, reading->to);
    int64_t last = -1; /* the time of the scene */
    int r;
    while ((r = gp_store_step(reading->store, rows, err)) == 1) {
        size_t size;
        const int64_t t = gp_store_int(rows, 0);
        const void *frame = gp_store_bytes(rows, 1, &size);
        r = last < 0 ? 0 : emit_sample(reading, last, t, err);
        if (r == 0 && (last >= 0 || gp_frame_is_key(frame, size))) {
            r = gp_frame_decode(&reading->scene, frame, size);
            r = r < 0 ? gp_store_decode_error(reading->store->path, r, err) : 0;
            last = t;
        }
        if (r < 0) {
            (void)sqlite3_reset(rows);
            return r;
        }
    }
    return r == 0 && last >= 0 ? emit_sample(reading, last, last + reading->interval_us, err) : r;
}

/* ---- summaries ---- */

/* A chunk that is being read, and the time that it is read for. */
struct stretch {
    struct reading *reading;
    struct gp_err *err;
    int64_t step_us, first;
    int64_t from, to;
    unsigned points;
};

/* Summaries are of whole steps of time. Of one that began before shorter ones ended, these are all
 * that was recorded. */
static int on_point(void *ctx, int64_t number)
{
    struct stretch *s = ctx;
    if (++s->points > GP_ROLL_POINTS)
        return GP_EFORMAT;
    if (number > (s->to - s->first) / s->step_us)
        return 1;
    const int64_t t = s->first + number * s->step_us;
    return t < s->from ? 0 : emit(s->reading, t, gp_least(t + s->step_us, s->to), true, s->err);
}

/* Ends the stretch where the next chunk of steps of this length begins. */
static void end_at_next(struct stretch *s, int64_t step_us)
{
    sqlite3_stmt *row = gp_store_statement(
        s->reading->store,
        "SELECT first FROM chunk WHERE step = ? AND first > ? ORDER BY first LIMIT 1", "ii",
        step_us, s->from);
    if (gp_store_step(s->reading->store, row, NULL) == 1) {
        s->to = gp_least(s->to, gp_store_int(row, 0));
        (void)sqlite3_reset(row);
    }
}

/* Finds the shortest summaries of a place, and until where they are that. *ret_row: their chunk, or
 * NULL. */
static int find_chunk(struct stretch *s, sqlite3_stmt **ret_row)
{
    static const char sql[] = "SELECT last, data, first FROM chunk WHERE step = ? AND first <= ? "
                              "AND first >= 0 ORDER BY first DESC LIMIT 1";
    *ret_row = NULL;
    for (size_t i = 0; i < GP_ROLL_LEVELS; i++) {
        s->step_us = gp_roll_levels[i].step_us;
        sqlite3_stmt *row = gp_store_statement(s->reading->store, sql, "ii", s->step_us, s->from);
        int r = gp_store_step(s->reading->store, row, s->err);
        if (r < 0)
            return r;
        if (r == 1 && gp_store_int(row, 0) > s->from) {
            s->first = gp_store_int(row, 2);
            s->to = gp_least(s->to, gp_store_int(row, 0));
            *ret_row = row;
            return 0;
        }
        (void)sqlite3_reset(row);
        end_at_next(s, s->step_us);
    }
    return 0;
}

static int read_summaries(struct reading *reading, int64_t end, struct gp_err *err)
{
    int r = 0;
    for (int64_t at = reading->from; r == 0 && at < end;) {
        struct stretch s = {.reading = reading, .err = err, .from = at, .to = end};
        sqlite3_stmt *row;
        r = find_chunk(&s, &row);
        if (r == 0 && row) {
            size_t size;
            const void *data = gp_store_bytes(row, 1, &size);
            r = gp_chunk_read(data, size, &reading->scene, on_point, &s);
            if (r == GP_EFORMAT || r == GP_ENOMEM)
                r = gp_store_decode_error(reading->store->path, r, err);
            r = r > 0 ? 0 : r;
        }
        if (row)
            (void)sqlite3_reset(row);
        at = s.to;
    }
    return r;
}

/* ---- all of it ---- */

static int read_all(void *ctx, struct gp_store *store, struct gp_err *err)
{
    struct reading *reading = ctx;
    reading->store = store;
    reading->columns = *store->columns;
    reading->quiet_to = 0;
    bool ok = gp_scene_init(&reading->scene, &reading->columns, true);
    ok = gp_scene_init(&reading->moment, &reading->columns, true) && ok;
    if (!ok) {
        gp_scene_fini(&reading->scene);
        gp_scene_fini(&reading->moment);
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    }
    reading->reader->begin(reading->reader->ctx);
    const int64_t samples =
        gp_store_number(store, "SELECT min(t) FROM tick WHERE t = base", TIME_MOST);
    int r = read_summaries(reading, gp_least(samples, reading->to), err);
    if (r == 0)
        r = read_samples(reading, most(samples, reading->from), err);
    gp_scene_fini(&reading->scene);
    gp_scene_fini(&reading->moment);
    return r;
}

int gp_series_read(struct gp_tape *tape, int64_t from, int64_t to,
                   const struct gp_series_reader *reader, struct gp_err *err)
{
    struct gp_tape_bounds bounds;
    struct reading *reading = calloc(1, sizeof(*reading));
    if (!reading)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    int r = gp_tape_bounds(tape, &bounds, err);
    if (r == 0) {
        reading->reader = reader;
        reading->from = most(most(from, bounds.first), 0);
        reading->to = gp_least(to, TIME_MOST);
        reading->interval_us = gp_least(most(bounds.interval_us, 1), TIME_MOST / 8);
        r = gp_tape_do(tape, read_all, reading, err);
    }
    free(reading);
    return r;
}

bool gp_series_number(const struct gp_series_piece *piece, const struct gp_tape_row *row,
                      int column, struct gp_series_number *ret)
{
    const struct gp_tape_columns *columns = piece->scene->columns;
    const int place = columns->places[column];
    if (place < 0 || row->cells[place].status != GP_STATUS_OK || row->ranges[place].count == 0)
        return false;
    const double scale = columns->columns[gp_tape_column_scope(column)][place].scale;
    const struct gp_range *range = &row->ranges[place];
    *ret = (struct gp_series_number){range->sum / (double)range->count / scale,
                                     (double)range->min / scale, (double)range->max / scale};
    return true;
}

const char *gp_series_text(const struct gp_series_piece *piece, const struct gp_tape_row *row,
                           int column)
{
    const struct gp_tape_cell *cell = gp_scene_cell(piece->scene, row, column);
    return cell && cell->status == GP_STATUS_OK ? cell->text : NULL;
}
