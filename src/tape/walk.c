#include "tape/walk.h"

#include "base/err.h"
#include "base/utf8.h"
#include "model/event.h"
#include "tape/moments.h"
#include "tape/roll.h"
#include "tape/store.h"
#include "tape/tape.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

/* The number in the first row of a statement; `fallback` if there is none. */
static int read_number(struct gp_store *store, sqlite3_stmt *row, int64_t fallback, int64_t *ret,
                       struct gp_err *err)
{
    int r = gp_store_step(store, row, err);
    if (r < 0)
        return r;
    *ret = r == 1 ? gp_store_int(row, 0) : fallback;
    if (row)
        (void)sqlite3_reset(row);
    return 0;
}

/* ---- the next place ---- */

struct after {
    int64_t t, found;
    int64_t wanted, number; /* of the points of a chunk: the first that is wanted, and it */
};

/* A summary begins here. It counts only if it is of another time than what was found: a long one
 * begins earlier than the samples in it. */
static void offer(struct after *after, int64_t t, int64_t step_us)
{
    if (t > after->t && (after->found < 0 || t <= after->found - step_us))
        after->found = t;
}

static int on_point(void *ctx, int64_t number)
{
    struct after *after = ctx;
    after->number = number;
    return number >= after->wanted;
}

/* The next point of the chunk in which the place is. */
static int look_into_chunk(struct after *after, struct gp_store *store, int64_t step_us,
                           struct gp_err *err)
{
    sqlite3_stmt *row = gp_store_statement(store,
                                           "SELECT first, data FROM chunk WHERE step = ? AND "
                                           "first <= ? AND last > ? ORDER BY first DESC LIMIT 1",
                                           "iii", step_us, after->t, after->t);
    size_t size;
    int r = gp_store_step(store, row, err);
    if (r <= 0)
        return r;
    const int64_t first = gp_store_int(row, 0);
    const void *data = gp_store_bytes(row, 1, &size);
    after->wanted = (after->t - first) / step_us + 1;
    r = first < 0 ? GP_EFORMAT : gp_chunk_read(data, size, NULL, on_point, after);
    if (r == 1 && after->number <= (INT64_MAX - first) / step_us)
        offer(after, first + after->number * step_us, step_us);
    (void)sqlite3_reset(row);
    return r < 0 ? gp_err_set(err, r, "the recording is damaged") : 0;
}

static int find_after(void *ctx, struct gp_store *store, struct gp_err *err)
{
    struct after *after = ctx;
    int64_t t;
    after->found = -1;
    int r =
        read_number(store,
                    gp_store_statement(store, "SELECT t FROM tick WHERE t > ? ORDER BY t LIMIT 1",
                                       "i", after->t),
                    -1, &t, err);
    if (r < 0)
        return r;
    offer(after, t, 0);
    r = gp_moment_after(store, after->t, &t, err);
    offer(after, t, 0);
    for (size_t i = 0; r == 0 && i < GP_ROLL_LEVELS; i++) {
        const int64_t step_us = gp_roll_levels[i].step_us;
        r = read_number(store,
                        gp_store_statement(store,
                                           "SELECT first FROM chunk WHERE step = ? AND first > ? "
                                           "ORDER BY first LIMIT 1",
                                           "ii", step_us, after->t),
                        -1, &t, err);
        if (r == 0) {
            r = look_into_chunk(after, store, step_us, err);
            offer(after, t, step_us);
        }
    }
    return r;
}

int gp_tape_after(struct gp_tape *tape, int64_t t, int64_t *ret, struct gp_err *err)
{
    struct after after = {.t = t};
    int r = gp_tape_do(tape, find_after, &after, err);
    if (r == 0)
        *ret = after.found;
    return r;
}

/* ---- steps ---- */

struct step {
    int64_t t, count;
    int64_t found; /* −1: there are not that many samples */
    int64_t there; /* then: how many there are */
};

static int find_sample(void *ctx, struct gp_store *store, struct gp_err *err)
{
    static const char forward[] = "SELECT t FROM tick WHERE t > ? ORDER BY t LIMIT 1 OFFSET ?";
    static const char back[] = "SELECT t FROM tick WHERE t < ? ORDER BY t DESC LIMIT 1 OFFSET ?";
    struct step *step = ctx;
    const bool is_forward = step->count > 0;
    const int64_t skipped = is_forward ? step->count - 1 : -step->count - 1;
    int r = read_number(
        store, gp_store_statement(store, is_forward ? forward : back, "ii", step->t, skipped), -1,
        &step->found, err);
    if (r < 0 || step->found >= 0)
        return r;
    return read_number(
        store, gp_store_statement(store, "SELECT count(*) FROM tick WHERE t < ?", "i", step->t), 0,
        &step->there, err);
}

/* `count` summaries of step_us forward. */
static int step_forward(struct gp_tape *tape, const struct gp_tape_bounds *bounds,
                        const struct step *step, int64_t step_us, int64_t *ret, struct gp_err *err)
{
    int64_t found = -1;
    const bool is_over = step->count > (bounds->last - step->t) / step_us;
    int r = is_over ? 0 : gp_tape_after(tape, step->t + step->count * step_us - 1, &found, err);
    if (r == 0)
        *ret = found >= 0 ? found : bounds->last;
    return r;
}

static int step_back(struct gp_tape *tape, const struct gp_tape_bounds *bounds, int64_t from,
                     int64_t back_us, int64_t *ret, struct gp_err *err)
{
    struct gp_tape_found found;
    if (back_us > from - bounds->first) {
        *ret = bounds->first;
        return 0;
    }
    int r = gp_tape_seek(tape, from - back_us, &found, err);
    if (r == 0)
        *ret = found.t < bounds->first ? bounds->first : found.t;
    return r;
}

/* Step by step, through whatever there is. */
static int step_singly(struct gp_tape *tape, const struct gp_tape_bounds *bounds, int64_t t,
                       int64_t count, int64_t *ret, struct gp_err *err)
{
    int r = 0;
    for (; r == 0 && count > 0 && t < bounds->last; count--) {
        int64_t next = -1;
        r = gp_tape_after(tape, t, &next, err);
        t = next < 0 || next > bounds->last ? bounds->last : next;
    }
    for (; r == 0 && count < 0 && t > bounds->first; count++) {
        r = step_back(tape, bounds, t, 1, &t, err);
    }
    if (r == 0)
        *ret = t;
    return r;
}

static int has_moments(void *ctx, struct gp_store *store, struct gp_err *err)
{
    bool *has = ctx;
    (void)err;
    *has = gp_moment_last(store) >= 0;
    return 0;
}

int gp_tape_step(struct gp_tape *tape, const struct gp_tape_bounds *bounds, int64_t t,
                 int64_t step_us, int64_t count, int64_t *ret, struct gp_err *err)
{
    enum { MOST = 1 << 20, SINGLE_MOST = 64 };
    bool is_mixed = false;
    if (count >= -SINGLE_MOST && count <= SINGLE_MOST) {
        int checked = gp_tape_do(tape, has_moments, &is_mixed, err);
        if (checked < 0 || is_mixed)
            return checked < 0 ? checked : step_singly(tape, bounds, t, count, ret, err);
    }
    struct step step = {t, count > MOST ? MOST : count < -MOST ? -MOST : count, -1, 0};
    const bool is_sample = bounds->samples >= 0 && t >= bounds->samples;
    const int64_t most_us = bounds->last - bounds->first + 1;
    int r = is_sample && count != 0 ? gp_tape_do(tape, find_sample, &step, err) : 0;
    if (r < 0)
        return r;
    if (step.found >= 0 || count == 0 || (is_sample && count > 0)) {
        *ret = step.found >= 0 ? step.found : count == 0 ? t : bounds->last;
        return 0;
    }
    if (!is_sample && step_us == 0 && count > 0) { /* nothing was recorded there */
        r = gp_tape_after(tape, t, ret, err);
        if (r == 0 && *ret < 0)
            *ret = bounds->last;
        return r;
    }
    if (!is_sample && step_us == 0)
        return step_back(tape, bounds, t, 1, ret, err);
    if (count > 0)
        return step_forward(tape, bounds, &step, step_us, ret, err);
    const int64_t left = -step.count - step.there - 1; /* after the last one before them */
    const int64_t from = is_sample ? bounds->samples - 1 : t - step_us;
    const int64_t each_us = is_sample ? bounds->interval_us : step_us;
    return step_back(tape, bounds, from, left > most_us / each_us ? most_us : left * each_us, ret,
                     err);
}

/* ---- events ---- */

struct find_event {
    int64_t t;
    bool is_forward, has_found;
    struct gp_tape_event *event;
};

bool gp_tape_is_fault(const char *kind)
{
    for (int k = 0; k < GP_EVENT__COUNT; k++)
        if (strcmp(gp_event_table[k].name, kind) == 0)
            return gp_event_table[k].group == GP_EVENT_GROUP_HEALTH && k != GP_EVENT_BACK;
    return strcmp(kind, "hole") == 0;
}

static void describe(struct gp_tape_event *event, sqlite3_stmt *row)
{
    const char *kind = gp_store_text(row, 1);
    const char *words = gp_store_text(row, 2);
    int n = 0;
    if (!gp_store_is_null(row, 3))
        n = snprintf(event->text, sizeof(event->text),
                     "GPU %lld: ", (long long)gp_store_int(row, 3));
    gp_utf8_copy_safe(event->text + n, sizeof(event->text) - (size_t)n, *words ? words : kind);
}

static int read_event(void *ctx, struct gp_store *store, struct gp_err *err)
{
#define EVENT                                                                                      \
    "SELECT t, kind, words, (SELECT number FROM gpu WHERE gpu.id = event.gpu) FROM event WHERE "
    static const char forward[] =
        EVENT "t > ? AND kind NOT IN ('start', 'process.start', 'process.end') ORDER BY t LIMIT 1";
    static const char back[] = EVENT "t < ? AND kind NOT IN ('start', 'process.start', "
                                     "'process.end') ORDER BY t DESC LIMIT 1";
#undef EVENT
    struct find_event *find = ctx;
    sqlite3_stmt *row = gp_store_statement(store, find->is_forward ? forward : back, "i", find->t);
    int r = gp_store_step(store, row, err);
    if (r < 0)
        return r;
    find->has_found = r == 1;
    if (r == 1) {
        find->event->t = gp_store_int(row, 0);
        describe(find->event, row);
    }
    (void)sqlite3_reset(row);
    return 0;
}

int gp_tape_find_event(struct gp_tape *tape, int64_t t, bool is_forward, struct gp_tape_event *ret,
                       struct gp_err *err)
{
    struct find_event find = {t, is_forward, false, ret};
    int r = gp_tape_do(tape, read_event, &find, err);
    return r < 0 ? r : find.has_found;
}
