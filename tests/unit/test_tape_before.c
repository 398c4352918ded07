/* The seconds before an incident: what is stored of them, when, and how it is found. */
#include "tape_lab.h"

#include "model/snapshot.h"
#include "source/source.h"
#include "tape/before.h"
#include "tape/moments.h"
#include "tape/series.h"
#include "tape/store.h"
#include "tape/tape.h"
#include "tape/walk.h"

#include <math.h>
#include <sqlite3.h>

enum { GLANCES = 10 }; /* in a second */

/* Brief samples are numbered by their power; those of whole seconds follow a sample with it. */
static int64_t number;

static void glance(struct lab *lab)
{
    struct gp_err err = {0};
    struct gp_snapshot brief = lab->machine.snapshot;
    brief.process_count = 0;
    gp_value_set_real(fixture_value(&lab->machine, FIXTURE_WELL, GP_POWER_DRAW),
                      100 + (double)number / 8, FIXTURE_NOW_NS);
    if (number++ % GLANCES == 0)
        lab_sample(lab);
    if (gp_recorder_glance(lab->recorder, &brief, &err) < 0)
        fail_msg("%s", err.text);
    lab_pass(lab, S / GLANCES);
}

static void pass(struct lab *lab, int count)
{
    for (int i = 0; i < count; i++)
        glance(lab);
}

static void incident(struct lab *lab)
{
    lab_event(lab, GP_EVENT_LOST, "it fell off the bus");
}

static void begin(struct lab *lab, uint64_t before_s)
{
    number = 0;
    lab->before_ns = before_s * GP_NS_PER_S;
    lab_start(lab, GP_NS_PER_S);
}

static struct gp_moment_counts counts_of(const struct lab *lab)
{
    struct gp_store *store;
    struct gp_err err = {0};
    if (gp_store_open(lab->path, &store, &err) < 0)
        fail_msg("%s", err.text);
    const struct gp_moment_counts counts = gp_moment_count(store, 0, INT64_MAX);
    gp_store_close(store);
    return counts;
}

static struct gp_tape *open_tape(const struct lab *lab)
{
    struct gp_tape *tape = NULL;
    struct gp_err err = {0};
    if (gp_tape_open(lab->path, &tape, &err) < 0)
        fail_msg("%s", err.text);
    return tape;
}

/* What is shown of a place; to be freed. */
static struct gp_snapshot *look(struct gp_tape *tape, int64_t t, struct gp_tape_found *ret)
{
    struct gp_err err = {0};
    struct gp_snapshot *snapshot = NULL;
    const struct gp_want want = gp_recorder_want();
    if (gp_tape_seek(tape, t, ret, &err) < 0 ||
        gp_tape_show(tape, ret, t, &want, &snapshot, &err) < 0)
        fail_msg("%s", err.text);
    return snapshot;
}

/* The number of the sample at a place; −1: its power is unknown. */
static long number_at(struct gp_tape *tape, int64_t t, bool *ret_is_moment)
{
    struct gp_tape_found found;
    double watts;
    struct gp_snapshot *snapshot = look(tape, t, &found);
    const bool has = gp_device_number(&snapshot->devices[FIXTURE_WELL], GP_POWER_DRAW, &watts);
    assert_int_equal(snapshot->process_count, FIXTURE_PROCESSES);
    assert_string_not_equal(gp_device_text(&snapshot->devices[FIXTURE_WELL], GP_NAME, ""), "");
    gp_snapshot_free(snapshot);
    *ret_is_moment = found.is_moment;
    return has ? lround((watts - 100) * 8) : -1;
}

static void ten_seconds_before_and_two_after(void **state)
{
    struct lab *lab = *state;
    bool is_moment;
    begin(lab, 10);
    pass(lab, 253);
    incident(lab); /* at 25.3 s */
    pass(lab, 100);
    lab_stop(lab);
    const struct gp_moment_counts counts = counts_of(lab);
    assert_int_equal(counts.incidents, 1);
    assert_int_equal(counts.samples, 121);
    assert_true(counts.begin >= START + 15300000 && counts.begin < START + 15400000);
    struct gp_tape *tape = open_tape(lab);
    for (long i = 0; i < 353; i++) {
        const bool is_in = i >= 153 && i <= 273;
        const long found = number_at(tape, START + i * S / GLANCES + 50000, &is_moment);
        assert_int_equal(found, is_in                              ? i
                                : i - i % GLANCES > 273 || i < 153 ? i - i % GLANCES
                                                                   : 273);
        assert_int_equal(is_moment, is_in || (i > 273 && i < 280));
    }
    gp_tape_close(tape);
}

static void steps_go_through_them(void **state)
{
    struct lab *lab = *state;
    struct gp_tape_bounds bounds;
    struct gp_err err = {0};
    bool is_moment;
    long seen = 0;
    int64_t t = START + 10 * S;
    begin(lab, 10);
    pass(lab, 253);
    incident(lab);
    pass(lab, 100);
    lab_stop(lab);
    struct gp_tape *tape = open_tape(lab);
    assert_int_equal(gp_tape_bounds(tape, &bounds, &err), 0);
    while (t < START + 30 * S) {
        int64_t next;
        int64_t back;
        assert_int_equal(gp_tape_step(tape, &bounds, t, 0, 1, &next, &err), 0);
        assert_true(next > t && next - t <= S);
        assert_int_equal(gp_tape_step(tape, &bounds, next, 0, -1, &back, &err), 0);
        assert_int_equal(back, t);
        (void)number_at(tape, next, &is_moment);
        seen += is_moment;
        t = next;
    }
    assert_int_equal(seen, 121);
    assert_int_equal(gp_tape_step(tape, &bounds, t, 0, -64, &t, &err), 0);
    assert_int_equal(gp_tape_step(tape, &bounds, t, 0, 64, &t, &err), 0);
    assert_int_equal(t, START + 30 * S);
    gp_tape_close(tape);
}

static void only_if_something_happens(void **state)
{
    struct lab *lab = *state;
    begin(lab, 10);
    pass(lab, 150);
    lab_event(lab, GP_EVENT_THROTTLE, "limited by heat");
    lab_event(lab, GP_EVENT_ECC_CORRECTED, "a bit");
    lab_event(lab, GP_EVENT_BACK, "it is back");
    pass(lab, 50);
    lab_stop(lab);
    assert_int_equal(counts_of(lab).incidents, 0);
}

static void the_length_is_chosen(void **state)
{
    struct lab *lab = *state;
    begin(lab, 0);
    pass(lab, 100);
    incident(lab);
    pass(lab, 50);
    lab_stop(lab);
    assert_int_equal(counts_of(lab).incidents, 0);
    lab->before_ns = 3 * GP_NS_PER_S;
    lab_start(lab, GP_NS_PER_S);
    pass(lab, 103);
    incident(lab);
    pass(lab, 50);
    lab_stop(lab);
    assert_int_equal(counts_of(lab).samples, 51);
}

static void which_events_are_incidents(void **state)
{
    static const struct {
        enum gp_event_kind kind;
        uint64_t number;
        bool is_incident;
    } cases[] = {
        {GP_EVENT_LOST, 0, true},
        {GP_EVENT_SILENT, 0, true},
        {GP_EVENT_UNAVAILABLE, 0, true},
        {GP_EVENT_POISON, 0, true},
        {GP_EVENT_ECC_UNCORRECTED, 1, true},
        {GP_EVENT_ECC_CORRECTED, 1, false},
        {GP_EVENT_XID, 79, true},
        {GP_EVENT_XID, 48, true},
        {GP_EVENT_XID, 13, false},
        {GP_EVENT_XID, 43, false},
        {GP_EVENT_XID, 9999, true},
        {GP_EVENT_BACK, 0, false},
        {GP_EVENT_START, 0, false},
        {GP_EVENT_PROCESS_END, 0, false},
    };
    (void)state;
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        const struct gp_event event = {.kind = cases[i].kind, .number = cases[i].number};
        assert_int_equal(gp_before_is_incident(&event), cases[i].is_incident);
    }
}

/* Each sample is stored once, however close incidents follow each other. */
static void incidents_share_no_samples(void **state)
{
    struct lab *lab = *state;
    begin(lab, 10);
    pass(lab, 203);
    incident(lab);
    pass(lab, 10);
    incident(lab); /* during the first one: nothing new */
    pass(lab, 40);
    incident(lab); /* at 25.3 s: of the 3 s since the end of the first one */
    pass(lab, 100);
    lab_stop(lab);
    const struct gp_moment_counts counts = counts_of(lab);
    assert_int_equal(counts.incidents, 2);
    assert_int_equal(counts.samples, 121 + 50);
}

static void a_storm_does_not_fill_the_disk(void **state)
{
    struct lab *lab = *state;
    begin(lab, 10);
    for (int i = 0; i < 10; i++) {
        pass(lab, 150);
        incident(lab);
    }
    pass(lab, 50);
    lab_stop(lab);
    assert_int_equal(counts_of(lab).incidents, GP_BEFORE_PER_HOUR);
    lab_start(lab, GP_NS_PER_S); /* also for the next recorder */
    pass(lab, 150);
    incident(lab);
    pass(lab, 50);
    assert_int_equal(counts_of(lab).incidents, GP_BEFORE_PER_HOUR);
    lab_pass(lab, 3600 * S);
    pass(lab, 150);
    incident(lab);
    pass(lab, 50);
    lab_stop(lab);
    assert_int_equal(counts_of(lab).incidents, GP_BEFORE_PER_HOUR + 1);
}

static void a_lost_gpu_has_no_values(void **state)
{
    struct lab *lab = *state;
    struct gp_tape_found found;
    double watts;
    begin(lab, 10);
    pass(lab, 153); /* the last sample is of 15.0 s */
    struct gp_device before = lab->machine.devices[FIXTURE_WELL];
    fixture_set_all(&lab->machine, FIXTURE_WELL, GP_STATUS_LOST);
    *fixture_value(&lab->machine, FIXTURE_WELL, GP_UUID) = fixture_text(lab->uuids[FIXTURE_WELL]);
    fixture_set_status(&lab->machine, FIXTURE_WELL, GP_STATUS_LOST, "GPU is lost");
    struct gp_snapshot brief = lab->machine.snapshot;
    struct gp_err err = {0};
    brief.process_count = 0;
    assert_int_equal(gp_recorder_glance(lab->recorder, &brief, &err), 0); /* at 15.3 s */
    incident(lab);
    lab_pass(lab, S);
    lab->machine.devices[FIXTURE_WELL] = before;
    pass(lab, 50);
    lab_stop(lab);
    struct gp_tape *tape = open_tape(lab);
    struct gp_snapshot *snapshot = look(tape, START + 15400000, &found);
    const struct gp_device *device = &snapshot->devices[FIXTURE_WELL];
    assert_true(found.is_moment);
    assert_int_equal(device->status, GP_STATUS_LOST);
    assert_string_equal(device->status_text, "GPU is lost");
    assert_false(gp_device_number(device, GP_POWER_DRAW, &watts));
    assert_false(gp_device_number(device, GP_POWER_LIMIT_ENFORCED, &watts)); /* not read then */
    assert_string_not_equal(gp_device_text(device, GP_NAME, ""), "");
    assert_string_equal(gp_device_text(device, GP_STATUS, ""), "lost");
    gp_snapshot_free(snapshot);
    snapshot = look(tape, START + 15200000, &found);
    assert_true(
        gp_device_number(&snapshot->devices[FIXTURE_WELL], GP_POWER_LIMIT_ENFORCED, &watts));
    gp_snapshot_free(snapshot);
    gp_tape_close(tape);
}

/* Of hours later, the samples around are gone; those of the incident stay with summaries around. */
static void they_outlive_samples(void **state)
{
    struct lab *lab = *state;
    struct gp_tape_bounds bounds;
    struct gp_err err = {0};
    bool is_moment;
    begin(lab, 10);
    pass(lab, 253);
    incident(lab);
    pass(lab, 100);
    for (int i = 0; i < 3 * 3600; i++) {
        lab_sample(lab);
        lab_pass(lab, S);
        gp_recorder_wait(lab->recorder);
    }
    lab_stop(lab);
    struct gp_tape *tape = open_tape(lab);
    assert_int_equal(gp_tape_bounds(tape, &bounds, &err), 0);
    assert_true(bounds.samples > START + 3600 * S);
    for (int64_t direction = 1; direction >= -1; direction -= 2) {
        int64_t t = START + (direction > 0 ? 14 : 29) * S;
        long moments = 0;
        long summaries = 0;
        while (t >= START + 14 * S && t <= START + 29 * S) {
            int64_t next;
            assert_int_equal(gp_tape_step(tape, &bounds, t, S, direction, &next, &err), 0);
            assert_true(direction > 0 ? next > t : next < t);
            const long found = number_at(tape, next, &is_moment);
            if (is_moment) /* to the millisecond, on a clock that moves by tenths of seconds */
                assert_int_equal(found, (next - START + 2000) * GLANCES / S);
            moments += is_moment;
            summaries += !is_moment;
            t = next;
        }
        assert_int_equal(moments, 121);
        assert_int_equal(summaries, direction > 0 ? 3 : 4); /* 28 to 30; 28 and 15 to 13 */
    }
    gp_tape_close(tape);
}

static void they_go_when_they_are_too_old(void **state)
{
    struct lab *lab = *state;
    lab->age_max_ns = 2 * 3600 * GP_NS_PER_S;
    begin(lab, 10);
    pass(lab, 253);
    incident(lab);
    pass(lab, 100);
    for (int i = 0; i < 3 * 3600; i++) {
        lab_sample(lab);
        lab_pass(lab, S);
        gp_recorder_wait(lab->recorder);
    }
    lab_stop(lab);
    assert_int_equal(counts_of(lab).incidents, 0);
}

/* ---- all of it in one pass ---- */

static void ignore(void *ctx)
{
    (void)ctx;
}

static int on_piece(void *ctx, const struct gp_series_piece *piece, struct gp_err *err)
{
    (void)ctx;
    (void)piece;
    (void)err;
    return 0;
}

static int on_moment(void *ctx, const struct gp_series_piece *piece, struct gp_err *err)
{
    long *sum = ctx;
    struct gp_series_number watts;
    (void)err;
    assert_true(gp_series_number(piece, &piece->scene->scopes[GP_TAPE_DEVICE].rows[FIXTURE_WELL],
                                 GP_POWER_DRAW, &watts));
    const long found = lround((watts.mean - 100) * 8);
    assert_int_equal(found, (piece->t - START + 2000) * GLANCES / S);
    *sum += 1;
    return 0;
}

static void a_series_has_them(void **state)
{
    struct lab *lab = *state;
    struct gp_err err = {0};
    long count = 0;
    begin(lab, 10);
    pass(lab, 253);
    incident(lab);
    pass(lab, 100);
    lab_stop(lab);
    struct gp_tape *tape = open_tape(lab);
    const struct gp_series_reader reader = {ignore, on_piece, on_moment, &count};
    assert_int_equal(gp_series_read(tape, START, START + 40 * S, &reader, &err), 0);
    /* those that are at the same time as a sample are the sample */
    assert_true(count >= 121 - 13 && count <= 121);
    gp_tape_close(tape);
}

/* Runs a statement on the recording, which nobody has open, and returns its first number. */
static int64_t run_sql(const struct lab *lab, const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *statement;
    assert_int_equal(sqlite3_open(lab->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    const int64_t first =
        sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    assert_int_equal(sqlite3_finalize(statement), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return first;
}

/* Of more than fit into a sixteenth of the file, the last ones stay. */
static void they_take_a_part_of_the_file(void **state)
{
    enum { SIZE = 1 << 20, FIT = 7 };
    struct lab *lab = *state;
    begin(lab, 10);
    pass(lab, 253);
    incident(lab);
    pass(lab, 100);
    lab_stop(lab);
    (void)run_sql(lab,
                  "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < 20) "
                  "INSERT INTO chunk SELECT NULL, 1000, first - i * 600000000, "
                  "last - i * 600000000, count, zeroblob(1048576 / 16 / 7 - 100) "
                  "FROM chunk, n WHERE step = 1000");
    const int64_t last = run_sql(lab, "SELECT max(first) FROM chunk WHERE step = 1000");
    (void)run_sql(lab,
                  "UPDATE chunk SET data = zeroblob(1048576 / 16 / 7 - 100) WHERE step = 1000");
    lab->size_max = SIZE;
    begin(lab, 10);
    pass(lab, 700);
    lab_stop(lab);
    assert_int_equal(run_sql(lab, "SELECT count(*) FROM chunk WHERE step = 1000"), FIT);
    assert_int_equal(run_sql(lab, "SELECT max(first) FROM chunk WHERE step = 1000"), last);
    assert_int_equal(run_sql(lab, "SELECT min(first) FROM chunk WHERE step = 1000"),
                     last - (FIT - 1) * 600 * S);
}

struct order {
    long count;
    int64_t last;
};

static int on_time(void *ctx, int64_t t)
{
    struct order *order = ctx;
    assert_true(t > order->last);
    order->last = t;
    order->count++;
    return 0;
}

/* A recorder never makes rows that overlap; in a crafted file, a reader must not read the samples
 * of all of them for each piece of the time. */
static void rows_that_overlap_are_read_once(void **state)
{
    struct lab *lab = *state;
    struct gp_err err = {0};
    struct gp_store *store;
    struct gp_scene scene;
    struct order order = {0, 0};
    begin(lab, 10);
    pass(lab, 253);
    incident(lab);
    pass(lab, 100);
    lab_stop(lab);
    for (int i = 0; i < 50; i++)
        (void)run_sql(lab, "INSERT INTO chunk SELECT NULL, 1000, min(first) - 1, max(last), count, "
                           "data FROM chunk WHERE step = 1000");
    assert_int_equal(gp_store_open(lab->path, &store, &err), 0);
    assert_true(gp_scene_init(&scene, store->columns, true));
    for (int64_t t = START; t < START + 40 * S; t += S) /* as gp_series_read() does */
        assert_int_equal(gp_moments_read(store, t, t + S, &scene, on_time, &order, &err), 0);
    assert_int_equal(order.count, 121 + 50);
    gp_scene_fini(&scene);
    gp_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, lab_set_up, lab_tear_down)
        TEST(ten_seconds_before_and_two_after),
        TEST(steps_go_through_them),
        TEST(only_if_something_happens),
        TEST(the_length_is_chosen),
        TEST(which_events_are_incidents),
        TEST(incidents_share_no_samples),
        TEST(a_storm_does_not_fill_the_disk),
        TEST(a_lost_gpu_has_no_values),
        TEST(they_outlive_samples),
        TEST(they_go_when_they_are_too_old),
        TEST(a_series_has_them),
        TEST(they_take_a_part_of_the_file),
        TEST(rows_that_overlap_are_read_once),
#undef TEST
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
