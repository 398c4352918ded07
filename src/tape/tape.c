#include "tape/tape.h"

#include "base/err.h"
#include "tape/chunk.h"
#include "tape/frame.h"
#include "tape/moments.h"
#include "tape/roll.h"
#include "tape/show.h"
#include "tape/store.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

enum { TRIES = 20 };
#define INTERVAL_MAX_US INT64_C(100000000000)

struct gp_tape {
    const char *path;
    struct gp_store *store;
    struct gp_axis_mark *marks;
    size_t mark_count;
    struct gp_tape_columns columns; /* of `scene`: the file may get more */
    struct gp_scene scene;
    int64_t base, at; /* the samples that the scene consists of; at 0: none */
    struct gp_scene moment;
    int64_t interval_us;
    int64_t origin; /* the monotonic time of samples is counted from here */
    bool has_origin;
};

/* ---- reading while it is written ---- */

static int reopen(struct gp_tape *tape, struct gp_err *err)
{
    gp_store_close(tape->store);
    tape->store = NULL;
    free(tape->marks);
    tape->marks = NULL;
    tape->mark_count = 0;
    tape->at = 0;
    int r = gp_store_open(tape->path, &tape->store, err);
    if (r == 0)
        r = gp_store_marks(tape->store, &tape->marks, &tape->mark_count, err);
    if (r < 0)
        return r;
    tape->interval_us =
        gp_store_number(tape->store, "SELECT value FROM meta WHERE key = 'interval'", 1000000);
    if (tape->interval_us < 1 || tape->interval_us > INTERVAL_MAX_US)
        return gp_store_decode_error(tape->path, GP_EFORMAT, err);
    if (!tape->has_origin && tape->mark_count > 0) {
        tape->origin = tape->marks[0].t;
        tape->has_origin = true;
    }
    gp_scene_fini(&tape->scene);
    gp_scene_fini(&tape->moment);
    tape->columns = *tape->store->columns;
    return gp_scene_init(&tape->scene, &tape->columns, true) &&
                   gp_scene_init(&tape->moment, &tape->columns, false)
               ? 0
               : gp_err_set(err, GP_ENOMEM, "out of memory");
}

int gp_tape_do(struct gp_tape *tape,
               int (*read)(void *ctx, struct gp_store *store, struct gp_err *err), void *ctx,
               struct gp_err *err)
{
    for (int i = 0; i < TRIES; i++) {
        int r = tape->store && gp_store_is_current(tape->store) ? 0 : reopen(tape, err);
        if (r == 0)
            r = read(ctx, tape->store, err);
        if (r == GP_ENOMEM || (tape->store && gp_store_is_steady(tape->store)))
            return r;
        gp_store_close(tape->store);
        tape->store = NULL;
        if (r < 0 && r != GP_EFORMAT && r != GP_EIO && r != GP_EBUSY)
            return r;
        if (r < 0 && i + 1 == TRIES)
            return r;
    }
    return gp_err_set(err, GP_EBUSY, "'%.200s' is being written; try again", tape->path);
}

static int do_nothing(void *ctx, struct gp_store *store, struct gp_err *err)
{
    (void)ctx;
    (void)err;
    return store ? 0 : GP_EIO;
}

int gp_tape_open(const char *path, struct gp_tape **ret, struct gp_err *err)
{
    struct gp_tape_bounds bounds;
    struct gp_tape *tape = calloc(1, sizeof(*tape));
    if (!tape)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    tape->path = path;
    int r = gp_tape_do(tape, do_nothing, NULL, err);
    if (r == 0)
        r = gp_tape_bounds(tape, &bounds, err);
    if (r < 0)
        gp_tape_close(tape);
    else
        *ret = tape;
    return r;
}

void gp_tape_close(struct gp_tape *tape)
{
    if (!tape)
        return;
    gp_store_close(tape->store);
    gp_scene_fini(&tape->scene);
    gp_scene_fini(&tape->moment);
    free(tape->marks);
    free(tape);
}

/* ---- time ---- */

static int read_bounds(void *ctx, struct gp_store *store, struct gp_err *err)
{
    struct gp_tape_bounds *bounds = ctx;
    bounds->samples = gp_store_number(store, "SELECT min(t) FROM tick", -1);
    bounds->last = gp_store_number(store, "SELECT max(t) FROM tick", -1);
    bounds->first = gp_store_number(store, "SELECT min(first) FROM chunk", -1);
    if (bounds->first < 0 || (bounds->samples >= 0 && bounds->samples < bounds->first))
        bounds->first = bounds->samples;
    const int64_t begin = gp_store_number(store, "SELECT min(t) FROM clock", bounds->first);
    if (begin > bounds->first) /* a summary is of a whole step of time */
        bounds->first = begin;
    if (bounds->last < 0)
        bounds->last = gp_store_number(store, "SELECT max(last) - 1 FROM chunk", -1);
    const int64_t moment = gp_moment_last(store);
    if (moment > bounds->last) /* after a crash */
        bounds->last = moment;
    return bounds->last <= GP_STORE_TIME_MAX &&
                   (bounds->last < 0 || (bounds->first >= 0 && bounds->first <= bounds->last))
               ? 0
               : gp_err_set(err, GP_EFORMAT, "'%.200s' is damaged", store->path);
}

int gp_tape_bounds(struct gp_tape *tape, struct gp_tape_bounds *ret, struct gp_err *err)
{
    *ret = (struct gp_tape_bounds){.last = -1};
    int r = gp_tape_do(tape, read_bounds, ret, err);
    ret->interval_us = tape->interval_us;
    if (r == 0 && ret->last < 0)
        r = gp_err_set(err, GP_EFORMAT, "nothing is recorded in '%.200s' yet", tape->path);
    else if (r == 0 && (ret->first < 0 || ret->first > ret->last || ret->last > GP_AXIS_MAX))
        r = gp_store_decode_error(tape->path, GP_EFORMAT, err);
    return r;
}

static int read_contents(void *ctx, struct gp_store *store, struct gp_err *err)
{
    struct gp_tape_contents *contents = ctx;
    (void)err;
    contents->gpus = gp_store_number(store, "SELECT count(*) FROM gpu WHERE mig < 0", 0);
    contents->processes = gp_store_number(store, "SELECT count(*) FROM process", 0);
    contents->events = gp_store_number(store, "SELECT count(*) FROM event", 0);
    contents->moments = gp_moment_count(store, 0, INT64_MAX);
    contents->size = gp_store_size(store) + gp_store_log_size(store);
    return 0;
}

int gp_tape_contents(struct gp_tape *tape, struct gp_tape_contents *ret, struct gp_err *err)
{
    *ret = (struct gp_tape_contents){.size = 0};
    return gp_tape_do(tape, read_contents, ret, err);
}

int64_t gp_tape_wall(const struct gp_tape *tape, int64_t t)
{
    return gp_axis_wall(tape->marks, tape->mark_count, t);
}

int64_t gp_tape_place(const struct gp_tape *tape, int64_t wall_us)
{
    return gp_axis_find(tape->marks, tape->mark_count, INT64_MAX, wall_us);
}

/* ---- seeking ---- */

struct seek {
    struct gp_tape *tape;
    int64_t t;
    struct gp_tape_found found;
    bool has_found;
};

/* Decodes the frames after `at` up to t. */
static int play(struct seek *seek, struct gp_store *store, struct gp_err *err)
{
    struct gp_tape *tape = seek->tape;
    sqlite3_stmt *rows =
        gp_store_statement(store, "SELECT t, frame FROM tick WHERE t > ? AND t <= ? ORDER BY t",
                           "ii", tape->at, seek->t);
    unsigned count = 0;
    int r;
    while ((r = gp_store_step(store, rows, err)) == 1) {
        size_t size;
        const void *frame = gp_store_bytes(rows, 1, &size);
        r = count++ < GP_FRAMES_MAX ? gp_frame_decode(&tape->scene, frame, size) : GP_EFORMAT;
        if (r < 0) {
            tape->at = 0;
            (void)sqlite3_reset(rows);
            return gp_store_decode_error(tape->path, r, err);
        }
        tape->at = gp_store_int(rows, 0);
    }
    return r;
}

static int seek_sample(struct seek *seek, struct gp_store *store, struct gp_err *err)
{
    struct gp_tape *tape = seek->tape;
    sqlite3_stmt *row = gp_store_statement(
        store, "SELECT base FROM tick WHERE t <= ? ORDER BY t DESC LIMIT 1", "i", seek->t);
    int r = gp_store_step(store, row, err);
    if (r <= 0)
        return r;
    const int64_t base = gp_store_int(row, 0);
    (void)sqlite3_reset(row);
    if (base < 0)
        return gp_store_decode_error(tape->path, GP_EFORMAT, err);
    if (tape->at == 0 || tape->base != base || tape->at > seek->t) {
        tape->at = base - 1;
        tape->base = base;
    }
    r = play(seek, store, err);
    seek->has_found = r == 0 && tape->at >= base;
    seek->found = (struct gp_tape_found){.t = tape->at};
    return r;
}

/* The point of a chunk that is wanted. */
struct point {
    int64_t wanted, found; /* numbers, from that of the first */
};

static int on_point(void *ctx, int64_t number)
{
    struct point *point = ctx;
    if (number > point->wanted)
        return 1;
    point->found = number;
    return number == point->wanted;
}

/* Decodes the point in two passes if the wanted one is missing: it is known that it is when the one
 * after it was decoded. */
static int read_point(struct seek *seek, sqlite3_stmt *row, struct gp_err *err)
{
    const int64_t step_us = gp_store_int(row, 0);
    const int64_t first = gp_store_int(row, 1);
    if (first < 0)
        return gp_store_decode_error(seek->tape->path, GP_EFORMAT, err);
    struct point point = {(seek->t - first) / step_us, -1};
    size_t size;
    const void *data = gp_store_bytes(row, 2, &size);
    int r = 0;
    for (int pass = 0; pass < 2; pass++) {
        r = gp_chunk_read(data, size, &seek->tape->scene, on_point, &point);
        if (r <= 0 || point.found == point.wanted)
            break;
        point.wanted = point.found;
    }
    if (r < 0)
        return gp_store_decode_error(seek->tape->path, r, err);
    seek->has_found = point.found >= 0;
    seek->found = (struct gp_tape_found){.t = first + point.found * step_us, .step_us = step_us};
    return 0;
}

/* The shortest summary that covers the place, or otherwise the last one before it. */
static int seek_summary(struct seek *seek, struct gp_store *store, struct gp_err *err)
{
    static const char sql[] = "SELECT step, first, data, last FROM chunk WHERE step = ? AND "
                              "first <= ? ORDER BY first DESC LIMIT 1";
    int64_t best_us = 0;
    int64_t best_end = -1;
    for (size_t i = 0; i < GP_ROLL_LEVELS && best_end <= seek->t; i++) {
        sqlite3_stmt *row =
            gp_store_statement(store, sql, "ii", gp_roll_levels[i].step_us, seek->t);
        int r = gp_store_step(store, row, err);
        if (r < 0)
            return r;
        if (r == 1 && gp_store_int(row, 3) > best_end) {
            best_us = gp_roll_levels[i].step_us;
            best_end = gp_store_int(row, 3);
        }
        (void)sqlite3_reset(row);
    }
    if (best_us == 0)
        return 0;
    sqlite3_stmt *row = gp_store_statement(store, sql, "ii", best_us, seek->t);
    int r = gp_store_step(store, row, err);
    if (r <= 0)
        return r;
    seek->tape->at = 0;
    r = read_point(seek, row, err);
    (void)sqlite3_reset(row);
    return r;
}

/* A sample of an incident says more of a place than the summary of the time around it: for a
 * second, and where the next summary has begun, until the next sample would have been taken. Of
 * two samples, the later one counts. */
#define MOMENT_LASTS_US INT64_C(1000000)
#define MOMENT_LASTS_ON_US INT64_C(200000)

/* From when on a sample of an incident is nearer than what was found. */
static int64_t nearest_since(const struct seek *seek)
{
    const struct gp_tape_found *found = &seek->found;
    if (!seek->has_found || !found->step_us)
        return seek->has_found ? found->t : 0;
    const int64_t earliest = seek->t - MOMENT_LASTS_US;
    const int64_t earlier = seek->t - MOMENT_LASTS_ON_US;
    const int64_t here = earliest > found->t ? earliest : found->t;
    return here < earlier ? here : earlier;
}

/* If a sample of an incident is nearer to the place than what was found, adds it to that. */
static int seek_moment(struct seek *seek, struct gp_store *store, struct gp_err *err)
{
    struct gp_tape *tape = seek->tape;
    struct gp_scene *scene = seek->has_found ? &tape->moment : &tape->scene;
    const int64_t at = tape->at;
    int64_t t;
    tape->at = 0; /* the scene will not be that of a sample any more */
    int r = gp_moment_seek(store, nearest_since(seek), seek->t, scene, &t, err);
    if (r == 0 && t < 0)
        tape->at = at;
    if (r < 0 || t < 0)
        return r;
    if (seek->has_found && !gp_moment_overlay(&tape->scene, scene))
        return gp_store_decode_error(tape->path, GP_ENOMEM, err);
    seek->has_found = true;
    seek->found = (struct gp_tape_found){.t = t, .is_moment = true};
    return 0;
}

static int read_place(void *ctx, struct gp_store *store, struct gp_err *err)
{
    struct seek *seek = ctx;
    seek->has_found = false;
    int r = seek_sample(seek, store, err);
    if (r == 0 && !seek->has_found)
        r = seek_summary(seek, store, err);
    return r == 0 ? seek_moment(seek, store, err) : r;
}

int gp_tape_seek(struct gp_tape *tape, int64_t t, struct gp_tape_found *ret, struct gp_err *err)
{
    struct seek seek = {.tape = tape, .t = t < GP_STORE_TIME_MAX ? t : GP_STORE_TIME_MAX};
    int r = gp_tape_do(tape, read_place, &seek, err);
    if (r < 0)
        return r;
    if (!seek.has_found)
        return gp_err_set(err, GP_EIO, "nothing is recorded at that time in '%.200s'", tape->path);
    const int64_t pause_us = gp_store_pause_us(tape->interval_us);
    seek.found.is_hole = seek.t - seek.found.t > seek.found.step_us + pause_us;
    *ret = seek.found;
    return 0;
}

/* Never 0, which means that there is no time. */
static int64_t since_origin(const struct gp_tape *tape, int64_t t)
{
    return t > tape->origin ? t - tape->origin + 1 : 1;
}

int gp_tape_show(struct gp_tape *tape, const struct gp_tape_found *found, int64_t t,
                 const struct gp_want *want, struct gp_snapshot **ret, struct gp_err *err)
{
    const struct gp_show show = {
        .scene = &tape->scene,
        .wall_us = gp_tape_wall(tape, found->is_hole ? t : found->t),
        .mono_us = since_origin(tape, found->is_hole ? t : found->t),
        .is_hole = found->is_hole,
        .want = want,
        .store = tape->store,
    };
    int r = gp_show(&show, ret);
    return r < 0 ? gp_store_decode_error(tape->path, r, err) : 0;
}
