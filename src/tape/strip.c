#include "tape/strip.h"

#include "base/clock.h"
#include "base/err.h"
#include "tape/derive.h"
#include "tape/frame.h"
#include "tape/roll.h"
#include "tape/store.h"
#include "tape/tape.h"
#include "tape/walk.h"

#include <sqlite3.h>
#include <string.h>

enum { EVENTS_MAX = 20000 };

static int64_t part_us(const struct gp_tape_strip *strip)
{
    return (strip->last - strip->first) / (int64_t)strip->count + 1;
}

/* The part of a place within the strip. */
static size_t part_of(const struct gp_tape_strip *strip, int64_t t)
{
    return (size_t)((t - strip->first) / part_us(strip));
}

void gp_tape_strip_plan(struct gp_tape_strip *strip, int64_t first, int64_t last, size_t count)
{
    if (count > GP_PLAYER_PARTS)
        count = GP_PLAYER_PARTS;
    if (count == 0 || last < first ||
        (strip->count == count && strip->first == first && last >= strip->last &&
         last - strip->last < part_us(strip)))
        return;
    memset(strip, 0, sizeof(*strip));
    strip->first = first;
    strip->last = last;
    strip->count = count;
    strip->read_to = first;
    for (size_t i = 0; i < count; i++)
        strip->parts[i].load = -1;
}

bool gp_tape_strip_is_read(const struct gp_tape_strip *strip)
{
    return strip->read_to > strip->last;
}

/* Adds the load of the time from `t` on. */
static void add_load(struct gp_tape_strip *strip, int64_t t, int64_t lasts_us, double load)
{
    int64_t end = lasts_us > strip->last - t ? strip->last : t + lasts_us - 1;
    if (t < strip->first)
        t = strip->first;
    for (size_t i = t > strip->last || end < t ? strip->count : part_of(strip, t);
         i < strip->count && i <= part_of(strip, end); i++) {
        strip->sums[i] += load < 0 ? 0 : load > 1 ? 1 : load;
        strip->counts[i]++;
        strip->parts[i].load = (float)(strip->sums[i] / strip->counts[i]);
    }
}

static void set_read(struct gp_tape_strip *strip, int64_t to)
{
    strip->read_to = to;
    for (size_t i = 0; i < strip->count; i++)
        strip->parts[i].is_known =
            gp_tape_strip_is_read(strip) || strip->first + (int64_t)(i + 1) * part_us(strip) <= to;
}

/* ---- loads ---- */

/* The mean utilization of a scene's GPUs, 0 to 1; false: it is not known of any. */
static bool load_of(const struct gp_scene *scene, bool is_summary, double *ret)
{
    const struct gp_tape_rows *rows = &scene->scopes[GP_TAPE_DEVICE];
    const int place = scene->columns->places[GP_UTILIZATION_GPU];
    const double scale = place < 0 ? 1 : scene->columns->columns[GP_TAPE_DEVICE][place].scale;
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; place >= 0 && i < rows->count; i++) {
        double percent;
        const struct gp_tape_row *row = &rows->rows[i];
        const struct gp_range *range = &row->ranges[place];
        if (is_summary && range->count > 0)
            percent = range->sum / (double)range->count / scale;
        else if (!gp_scene_number(scene, row, GP_UTILIZATION_GPU, &percent))
            continue;
        sum += percent / 100;
        count++;
    }
    if (count > 0)
        *ret = sum / (double)count;
    return count > 0;
}

struct reading {
    struct gp_tape_strip *strip;
    struct gp_scene scene;
    int64_t first, step_us; /* of the chunk that is read */
    int64_t until_ns;
};

static bool is_out_of_time(const struct reading *reading)
{
    return (int64_t)gp_clock_mono_ns() >= reading->until_ns;
}

/* ---- long parts: from the table of usage ---- */

static int read_usage(struct reading *reading, struct gp_store *store, struct gp_err *err)
{
    struct gp_tape_strip *strip = reading->strip;
    sqlite3_stmt *rows = gp_store_statement(
        store,
        "SELECT t, sum(busy), sum(known) FROM usage WHERE t >= ? AND t <= ? GROUP BY t ORDER BY t",
        "ii", strip->read_to - GP_USAGE_PERIOD_US, strip->last);
    int r;
    while ((r = gp_store_step(store, rows, err)) == 1) {
        const int64_t t = gp_store_int(rows, 0);
        const double known = gp_store_real(rows, 2);
        if (t + GP_USAGE_PERIOD_US > strip->read_to && known > 0)
            add_load(strip, t, GP_USAGE_PERIOD_US, gp_store_real(rows, 1) / known);
        strip->read_to = t + GP_USAGE_PERIOD_US;
        if (is_out_of_time(reading)) {
            (void)sqlite3_reset(rows);
            set_read(strip, strip->read_to);
            return 0;
        }
    }
    if (r == 0)
        set_read(strip, strip->last + 1);
    return r;
}

/* ---- short parts: from summaries, and the samples after the last of them ---- */

static int on_point(void *ctx, int64_t number)
{
    struct reading *reading = ctx;
    double load;
    if (number > (reading->strip->last - reading->first) / reading->step_us)
        return 1;
    const int64_t t = reading->first + number * reading->step_us;
    if (t >= reading->strip->read_to - reading->step_us && load_of(&reading->scene, true, &load))
        add_load(reading->strip, t, reading->step_us, load);
    return 0;
}

/* The longest summaries that are not longer than a part and exist; otherwise the shortest. */
static int64_t choose_step(const struct gp_tape_strip *strip, struct gp_store *store)
{
    const int64_t part = part_us(strip);
    const int64_t shortest =
        gp_store_number(store, "SELECT min(step) FROM chunk", gp_roll_levels[0].step_us);
    int64_t chosen = shortest > 0 ? shortest : gp_roll_levels[0].step_us;
    for (size_t i = 0; i < GP_ROLL_LEVELS; i++)
        if (gp_roll_levels[i].step_us <= part && gp_roll_levels[i].step_us > chosen)
            chosen = gp_roll_levels[i].step_us;
    return chosen;
}

/* 1: there is no further chunk. */
static int read_chunk(struct reading *reading, struct gp_store *store, struct gp_err *err)
{
    struct gp_tape_strip *strip = reading->strip;
    sqlite3_stmt *row = gp_store_statement(store,
                                           "SELECT first, last, data FROM chunk WHERE step = ? AND "
                                           "first <= ? AND last > ? ORDER BY first LIMIT 1",
                                           "iii", reading->step_us, strip->last, strip->read_to);
    size_t size;
    int r = gp_store_step(store, row, err);
    if (r <= 0)
        return r < 0 ? r : 1;
    const int64_t last = gp_store_int(row, 1);
    reading->first = gp_store_int(row, 0);
    const void *data = gp_store_bytes(row, 2, &size);
    r = gp_chunk_read(data, size, &reading->scene, on_point, reading);
    (void)sqlite3_reset(row);
    if (r < 0)
        return gp_err_set(err, r, "the recording is damaged");
    set_read(strip, last > strip->last ? strip->last + 1 : last);
    return 0;
}

/* The samples of which there are no summaries yet. */
static int read_samples(struct reading *reading, struct gp_store *store, struct gp_err *err)
{
    struct gp_tape_strip *strip = reading->strip;
    const int64_t interval_us =
        gp_store_number(store, "SELECT value FROM meta WHERE key = 'interval'", 1);
    sqlite3_stmt *rows = gp_store_statement(
        store,
        "SELECT t, frame FROM tick WHERE t >= (SELECT base FROM tick WHERE t >= ? ORDER BY t LIMIT "
        "1) AND t <= ? ORDER BY t LIMIT ?",
        "iii", strip->read_to, strip->last, (int64_t)GP_FRAMES_MAX);
    int r;
    while ((r = gp_store_step(store, rows, err)) == 1) {
        size_t size;
        double load;
        const void *frame = gp_store_bytes(rows, 1, &size);
        r = gp_frame_decode(&reading->scene, frame, size);
        if (r < 0)
            break;
        if (gp_store_int(rows, 0) >= strip->read_to && load_of(&reading->scene, false, &load))
            add_load(strip, gp_store_int(rows, 0), interval_us, load);
    }
    if (rows)
        (void)sqlite3_reset(rows);
    if (r == 0)
        set_read(strip, strip->last + 1);
    return r;
}

static int read_summaries(struct reading *reading, struct gp_store *store, struct gp_err *err)
{
    reading->step_us = choose_step(reading->strip, store);
    if (!gp_scene_init(&reading->scene, store->columns, true))
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    int r = 0;
    while (r == 0 && !gp_tape_strip_is_read(reading->strip) && !is_out_of_time(reading))
        r = read_chunk(reading, store, err);
    if (r == 1)
        r = read_samples(reading, store, err);
    gp_scene_fini(&reading->scene);
    return r;
}

/* ---- events ---- */

static int read_events(struct gp_tape_strip *strip, struct gp_store *store, struct gp_err *err)
{
    sqlite3_stmt *rows = gp_store_statement(
        store,
        "SELECT t, kind FROM event WHERE t >= ? AND t <= ? AND kind NOT IN ('start', "
        "'process.start', 'process.end') ORDER BY t LIMIT ?",
        "iii", strip->first, strip->last, (int64_t)EVENTS_MAX);
    int r;
    while ((r = gp_store_step(store, rows, err)) == 1) {
        struct gp_player_part *part = &strip->parts[part_of(strip, gp_store_int(rows, 0))];
        part->has_event = true;
        part->has_fault = part->has_fault || gp_tape_is_fault(gp_store_text(rows, 1));
    }
    strip->has_events = r == 0;
    return r;
}

static int read_strip(void *ctx, struct gp_store *store, struct gp_err *err)
{
    struct reading *reading = ctx;
    struct gp_tape_strip *strip = reading->strip;
    int r = strip->has_events ? 0 : read_events(strip, store, err);
    if (r < 0)
        return r;
    return part_us(strip) >= GP_USAGE_PERIOD_US ? read_usage(reading, store, err)
                                                : read_summaries(reading, store, err);
}

void gp_tape_strip_read(struct gp_tape_strip *strip, struct gp_tape *tape, uint64_t for_ns)
{
    struct gp_err ignored = {0};
    struct reading reading = {.strip = strip, .until_ns = (int64_t)(gp_clock_mono_ns() + for_ns)};
    if (strip->count == 0 || gp_tape_strip_is_read(strip))
        return;
    if (gp_tape_do(tape, read_strip, &reading, &ignored) < 0)
        set_read(strip, strip->last + 1);
}
