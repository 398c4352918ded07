/* Recordings: what was recorded is what is shown, for every kind of value and at any time. */
#include "unit.h"

#include "tape_lab.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "base/when.h"
#include "source/source.h"
#include "tape/axis.h"
#include "tape/bytes.h"
#include "tape/frame.h"
#include "tape/store.h"
#include "tape/tape.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- numbers ---- */

static void numbers_are_read_as_written(void **state)
{
    (void)state;
    static const uint64_t numbers[] = {0, 1, 127, 128, 300, 1 << 20, UINT64_MAX / 2, UINT64_MAX};
    struct gp_strbuf sb = GP_STRBUF_INIT(1024);
    for (size_t i = 0; i < GP_ARRAY_LEN(numbers); i++)
        gp_bytes_add(&sb, numbers[i]);
    struct gp_bytes in = {(uint8_t *)sb.buf, (uint8_t *)sb.buf + sb.len, false};
    for (size_t i = 0; i < GP_ARRAY_LEN(numbers); i++)
        assert_true(gp_bytes_read(&in) == numbers[i]);
    assert_false(in.failed);
    assert_int_equal(gp_bytes_read(&in), 0);
    assert_true(in.failed);
    gp_strbuf_fini(&sb);
    static const int64_t signs[] = {0, -1, 1, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < GP_ARRAY_LEN(signs); i++)
        assert_true(gp_unzigzag(gp_zigzag(signs[i])) == signs[i]);
}

static void too_large_numbers_are_refused(void **state)
{
    (void)state;
    static const uint8_t large[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02};
    struct gp_bytes in = {large, large + sizeof(large), false};
    assert_int_equal(gp_bytes_read(&in), 0);
    assert_true(in.failed);
}

/* The length itself takes bytes, which are not the text's. */
static void too_long_texts_are_refused(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {3, 'a', 'b'};
    struct gp_bytes in = {bytes, bytes + sizeof(bytes), false};
    const char *text;
    assert_int_equal(gp_bytes_read_text(&in, &text), 0);
    assert_true(in.failed);
    in = (struct gp_bytes){bytes, bytes + sizeof(bytes), false};
    in.at = (const uint8_t *)"\2ab";
    in.end = in.at + 3;
    assert_int_equal(gp_bytes_read_text(&in, &text), 2);
    assert_false(in.failed);
}

/* ---- time ---- */

static int64_t at(struct gp_axis_mark *mark, int64_t wall_us, int64_t boottime_us, const char *boot,
                  int64_t after, bool expect_mark)
{
    bool marked;
    int64_t t =
        gp_axis_at(mark, &(struct gp_axis_clocks){wall_us, boottime_us, boot}, after, &marked);
    assert_int_equal(marked, expect_mark);
    return t;
}

static void the_axis_never_goes_back(void **state)
{
    (void)state;
    struct gp_axis_mark marks[4] = {{.t = 0}};
    struct gp_axis_mark mark = {.t = 0};
    assert_int_equal(at(&mark, 1000 * S, 50 * S, "a", 0, true), 1000 * S);
    marks[0] = mark;
    assert_int_equal(at(&mark, 1010 * S, 60 * S, "a", 1000 * S, false), 1010 * S);
    /* set back by an hour */
    assert_int_equal(at(&mark, 1020 * S - 3600 * S, 70 * S, "a", 1010 * S, true), 1020 * S);
    marks[1] = mark;
    assert_int_equal(at(&mark, 1030 * S - 3600 * S, 80 * S, "a", 1020 * S, false), 1030 * S);
    /* suspended for a day: the boot time goes on */
    assert_int_equal(at(&mark, 87430 * S - 3600 * S, 86480 * S, "a", 1030 * S, false), 87430 * S);
    /* set forward */
    assert_int_equal(at(&mark, 200000 * S, 86490 * S, "a", 87430 * S, true), 87440 * S);
    marks[2] = mark;
    /* rebooted, with a clock that is behind the axis */
    assert_int_equal(at(&mark, 500 * S, 1 * S, "b", 87440 * S, true), 87440 * S + 1);
    marks[3] = mark;
    assert_int_equal(gp_axis_wall(marks, 4, 1005 * S), 1005 * S);
    assert_int_equal(gp_axis_wall(marks, 4, 1025 * S), 1025 * S - 3600 * S);
    assert_int_equal(gp_axis_wall(marks, 4, 87440 * S), 200000 * S);
    assert_int_equal(gp_axis_wall(marks, 4, 87441 * S), 501 * S - 1);
    /* a time that the clock showed twice: the later one */
    assert_int_equal(gp_axis_find(marks, 2, INT64_MAX, 1005 * S), 4605 * S);
    assert_int_equal(gp_axis_find(marks, 2, 2000 * S, 1005 * S), 1005 * S);
    /* a time that the clock was set over: the next one */
    assert_int_equal(gp_axis_find(marks, 3, INT64_MAX, 150000 * S), 87440 * S);
    assert_int_equal(gp_axis_find(marks, 1, INT64_MAX, 10 * S), 1000 * S);
    assert_int_equal(gp_axis_find(marks, 1, 1500 * S, 2000 * S), -1);
}

static void times_as_people_type_them(void **state)
{
    (void)state;
    assert_int_equal(setenv("TZ", "Europe/Berlin", 1), 0);
    const uint64_t now_ns = UINT64_C(1795800000) * GP_NS_PER_S; /* 2026-11-27 18:20:00 there */
    static const struct {
        const char *text;
        int64_t before_s; /* now; −1: refused */
    } rows[] = {
        {"now", 0},
        {"18:20", 0},
        {"18:19:59", 1},
        {"18:21", 86400 - 60},
        {"3:10", 15 * 3600 + 600},
        {"today", 18 * 3600 + 1200},
        {"today 18:00", 1200},
        {"yesterday", 42 * 3600 + 1200},
        {"yesterday 03:10", 39 * 3600 + 600},
        {"2026-11-27 18:00", 1200},
        {"2026-11-27T18:00:30", 1170},
        {"2026-11-27", 18 * 3600 + 1200},
        {"2026-10-25 02:30", 33 * 86400 + 15 * 3600 + 3000}, /* the later one that night */
        {"2026-11-27T18:19:00.000+01:00", 60},
        {"2026-11-27T17:19:00.000+00:00", 60},
        {"90s ago", 90},
        {"1h30m ago", 5400},
        {"2d ago", 172800},
        {"1w ago", 604800},
        {"1y ago", 365 * 86400},
        {"", -1},
        {"ago", -1},
        {" ago", -1},
        {"5 ago", -1},
        {"24:00", -1},
        {"12:60", -1},
        {"12:5", -1},
        {"2026-02-30", -1},
        {"2026-11-27x", -1},
        {"2026-11-27 ", -1},
        {"yesterday03:10", -1},
        {"1969-12-31", -1},
        {"900y ago", -1},
        {"noon", -1},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(rows); i++) {
        uint64_t ns = 1;
        const bool ok = gp_parse_time(rows[i].text, now_ns, &ns);
        const int64_t before_s =
            ok ? (int64_t)(now_ns / GP_NS_PER_S) - (int64_t)(ns / GP_NS_PER_S) : -1;
        if (before_s != rows[i].before_s && !(i == 12 && before_s == rows[i].before_s + 3600))
            fail_msg("'%s' is %lld s before, not %lld", rows[i].text, (long long)before_s,
                     (long long)rows[i].before_s);
        assert_true(ok || ns == 1);
    }
    uint64_t ns;
    assert_true(gp_parse_since("7d", now_ns, &ns) && ns == now_ns - 7 * 86400 * GP_NS_PER_S);
    assert_true(gp_parse_since("yesterday", now_ns, &ns));
    assert_false(gp_parse_since("7", now_ns, &ns));
    assert_int_equal(unsetenv("TZ"), 0);
}

/* ---- a machine that is recorded ---- */

/* A name that a URI would have to quote. */
static int set_up(void **state)
{
    int r = lab_set_up(state);
    struct lab *lab = *state;
    (void)snprintf(lab->path, sizeof(lab->path), "%s/a%%?# .tape", lab->folder);
    return r;
}

static struct gp_snapshot *show(struct gp_tape *tape, int64_t t, struct gp_tape_found *found)
{
    struct gp_snapshot *snapshot;
    struct gp_err err = {0};
    const struct gp_want want = gp_recorder_want();
    if (gp_tape_seek(tape, t, found, &err) < 0 ||
        gp_tape_show(tape, found, t, &want, &snapshot, &err) < 0)
        fail_msg("%s", err.text);
    return snapshot;
}

static struct gp_tape *reopen(const struct lab *lab)
{
    struct gp_tape *tape;
    struct gp_err err = {0};
    if (gp_tape_open(lab->path, &tape, &err) < 0)
        fail_msg("%s", err.text);
    return tape;
}

static void assert_same_value(enum gp_metric m, const struct gp_value *was,
                              const struct gp_value *is)
{
    const char *name = GP_METRIC_NAME(m);
    if (was->status != is->status)
        fail_msg("%s: status %d became %d", name, (int)was->status, (int)is->status);
    if (!gp_value_is_present(was)) {
        if (was->s && *was->s)
            assert_string_equal(was->s, is->s);
    } else if (gp_metric_table[m].type == GP_TYPE_TEXT) {
        assert_string_equal(was->s, is->s);
    } else if (gp_metric_table[m].type == GP_TYPE_REAL) {
        if (fabs(was->f - is->f) > 0.0005001)
            fail_msg("%s: %.9g became %.9g", name, was->f, is->f);
    } else {
        if (was->i != is->i)
            fail_msg("%s: %lld became %lld", name, (long long)was->i, (long long)is->i);
    }
}

static void assert_same(const struct gp_snapshot *was, const struct gp_snapshot *is)
{
    for (int m = 1; m < GP_HOST__COUNT; m++) /* without the time of the sample */
        assert_same_value((enum gp_metric)m, &was->host[m], &is->host[m]);
    assert_int_equal(was->device_count, is->device_count);
    for (size_t i = 0; i < was->device_count; i++) {
        const struct gp_device *a = &was->devices[i];
        const struct gp_device *b = &is->devices[i];
        assert_int_equal(a->index, b->index);
        assert_int_equal(a->is_mig, b->is_mig);
        assert_int_equal(a->mig_index, b->mig_index);
        assert_int_equal(a->status, b->status);
        assert_string_equal(a->status_text, b->status_text);
        assert_int_equal(a->processes_status, b->processes_status);
        assert_int_equal(a->process_count, b->process_count);
        for (int m = GP_DEVICE__FIRST; m < GP_PROCESS__FIRST; m++)
            assert_same_value((enum gp_metric)m, &a->values[m - GP_DEVICE__FIRST],
                              &b->values[m - GP_DEVICE__FIRST]);
    }
    assert_int_equal(was->process_count, is->process_count);
    for (size_t i = 0; i < was->process_count; i++) {
        assert_int_equal(was->processes[i].device, is->processes[i].device);
        for (int m = GP_PROCESS__FIRST; m < GP_CLOCK__FIRST; m++) {
            const struct gp_value *v = gp_process_value(&was->processes[i], (enum gp_metric)m);
            if (m == GP_PROCESS_COMMAND || m == GP_PROCESS_PATH || m == GP_PROCESS_CWD) {
                if (!gp_value_is_present(v))
                    continue; /* its reason is not kept */
            }
            assert_same_value((enum gp_metric)m, v,
                              gp_process_value(&is->processes[i], (enum gp_metric)m));
        }
    }
}

static void what_is_shown_is_what_was_recorded(void **state)
{
    struct lab *lab = *state;
    struct gp_tape_found found;
    lab_start(lab, GP_NS_PER_S);
    lab_sample(lab);
    lab_stop(lab);
    struct gp_tape *tape = reopen(lab);
    struct gp_snapshot *snapshot = show(tape, START, &found);
    assert_int_equal(found.t, START);
    assert_int_equal(found.step_us, 0);
    assert_false(found.is_hole);
    assert_same(&lab->machine.snapshot, snapshot);
    gp_snapshot_free(snapshot);
    gp_tape_close(tape);
}

/* A value that says when it was recorded. */
static void set_power(struct lab *lab, int64_t i)
{
    gp_value_set_real(fixture_value(&lab->machine, FIXTURE_WELL, GP_POWER_DRAW),
                      100 + (double)i / 8, FIXTURE_NOW_NS);
}

static double power_at(struct gp_tape *tape, int64_t t, struct gp_tape_found *found)
{
    double watts = -1;
    struct gp_snapshot *snapshot = show(tape, t, found);
    if (!gp_device_number(&snapshot->devices[FIXTURE_WELL], GP_POWER_DRAW, &watts))
        watts = -1;
    gp_snapshot_free(snapshot);
    return watts;
}

static void every_sample_is_found(void **state)
{
    struct lab *lab = *state;
    struct gp_tape_found found;
    enum { COUNT = 300 };
    lab_start(lab, GP_NS_PER_S);
    for (int64_t i = 0; i < COUNT; i++) {
        set_power(lab, i);
        lab_sample(lab);
        lab_pass(lab, S);
    }
    lab_stop(lab);
    struct gp_tape *tape = reopen(lab);
    for (int64_t k = 0; k < COUNT; k++) {
        const int64_t i = k * 77 % COUNT; /* back and forth */
        assert_true(fabs(power_at(tape, START + i * S + S / 2, &found) - (100 + (double)i / 8)) <
                    1e-9);
        assert_int_equal(found.t, START + i * S);
    }
    assert_true(power_at(tape, START + COUNT * S + 60 * S, &found) < 0);
    assert_true(found.is_hole);
    gp_tape_close(tape);
}

/* After an hour, samples are dropped, and summaries are shown. */
static void summaries_remain(void **state)
{
    struct lab *lab = *state;
    struct gp_tape_found found;
    enum { COUNT = 3 * 360 };
    lab_start(lab, 10 * GP_NS_PER_S);
    for (int64_t i = 0; i < COUNT; i++) {
        set_power(lab, i);
        lab_sample(lab);
        lab_pass(lab, 10 * S);
        if (i == COUNT - 1) { /* what is done once a minute */
            lab_stop(lab);
            lab_start(lab, 10 * GP_NS_PER_S);
        }
    }
    set_power(lab, COUNT);
    lab_sample(lab);
    lab_stop(lab);
    struct gp_tape *tape = reopen(lab);
    struct gp_tape_bounds bounds;
    struct gp_err err = {0};
    assert_int_equal(gp_tape_bounds(tape, &bounds, &err), 0);
    assert_int_equal(bounds.first, START);
    assert_true(bounds.samples > START + 3600 * S);
    for (int64_t i = 0; i < 300; i += 7) {
        const double watts = power_at(tape, START + i * 10 * S + 3 * S, &found);
        assert_true(fabs(watts - (100 + (double)i / 8)) < 1e-9);
        assert_int_equal(found.step_us, 10 * S);
        assert_int_equal(found.t, START + i * 10 * S);
    }
    gp_tape_close(tape);
}

static int64_t number(struct lab *lab, const char *sql)
{
    struct gp_store *store;
    struct gp_err err = {0};
    if (gp_store_open(lab->path, &store, &err) < 0)
        fail_msg("%s", err.text);
    const int64_t n = gp_store_number(store, sql, -1);
    gp_store_close(store);
    return n;
}

static void usage_is_summed_up(void **state)
{
    struct lab *lab = *state;
    lab_start(lab, GP_NS_PER_S);
    gp_value_set_int(fixture_value(&lab->machine, FIXTURE_WELL, GP_UTILIZATION_GPU), 50,
                     FIXTURE_NOW_NS);
    gp_value_set_real(fixture_value(&lab->machine, FIXTURE_WELL, GP_POWER_DRAW), 300,
                      FIXTURE_NOW_NS);
    for (int i = 0; i <= 100; i++) {
        lab_sample(lab);
        lab_pass(lab, S);
    }
    lab_pass(lab, 3600 * S); /* nothing is known of this hour */
    for (int i = 0; i <= 20; i++) {
        lab_sample(lab);
        lab_pass(lab, S);
    }
    lab_stop(lab);
    assert_int_equal(number(lab, "SELECT sum(known) FROM usage WHERE gpu = 1"), 120 * S);
    assert_int_equal(number(lab, "SELECT sum(busy) FROM usage WHERE gpu = 1"), 60 * S);
    assert_int_equal(number(lab, "SELECT sum(energy) FROM usage WHERE gpu = 1"), 120 * 300 * 1000);
    assert_int_equal(number(lab, "SELECT count(*) FROM process"), FIXTURE_PROCESSES);
}

/* Who held a GPU is unknown for ten minutes in which its processes were never known, also if the
 * recorder began anew in them. */
static void without_a_list_of_processes(void **state)
{
    static const char held[] = "SELECT count(held) FROM usage WHERE gpu = 1";
    static const enum gp_status statuses[] = {GP_STATUS_UNSUPPORTED, GP_STATUS_NO_PERMISSION,
                                              GP_STATUS_OK, GP_STATUS_UNSUPPORTED};
    struct lab *lab = *state;
    lab->machine.snapshot.process_count = 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(statuses); i++) {
        lab->machine.devices[FIXTURE_WELL].process_count = 0;
        lab->machine.devices[FIXTURE_WELL].processes_status = statuses[i];
        lab_start(lab, GP_NS_PER_S);
        for (int k = 0; k < 10; k++) {
            lab_sample(lab);
            lab_pass(lab, S);
        }
        lab_stop(lab);
        assert_int_equal(number(lab, "SELECT count(*) FROM usage WHERE gpu = 1"), 1);
        assert_int_equal(number(lab, held), i >= 2);
    }
}

/* Ends without closing: what a crash leaves. */
static void crash(struct lab *lab)
{
    struct gp_recorder_state now;
    char command[1200];
    for (uint64_t waiting = 1; waiting > 0; waiting = now.waiting)
        gp_recorder_state(lab->recorder, &now);
    for (uint64_t n = 0; n < 1000 && now.stored == 0; n++) {
        gp_recorder_state(lab->recorder, &now);
        (void)usleep(2000);
    }
    (void)usleep(1200 * 1000);
    (void)snprintf(command, sizeof(command),
                   "cd '%s' && cp 'a%%?# .tape' x && cp 'a%%?# .tape-wal' x-wal", lab->folder);
    assert_int_equal(system(command), 0);
    lab_stop(lab);
    (void)snprintf(command, sizeof(command),
                   "cd '%s' && rm -f a* && mv x 'a%%?# .tape' && mv x-wal 'a%%?# .tape-wal'",
                   lab->folder);
    assert_int_equal(system(command), 0);
}

static void nothing_is_lost_by_a_crash(void **state)
{
    struct lab *lab = *state;
    struct gp_tape_found found;
    gp_value_set_int(fixture_value(&lab->machine, FIXTURE_WELL, GP_UTILIZATION_GPU), 50,
                     FIXTURE_NOW_NS);
    lab_start(lab, GP_NS_PER_S);
    for (int i = 0; i <= 100; i++) {
        set_power(lab, i);
        lab_sample(lab);
        lab_pass(lab, S);
    }
    crash(lab);
    struct gp_tape *tape = reopen(lab);
    assert_true(fabs(power_at(tape, START + 100 * S, &found) - 112.5) < 1e-9);
    gp_tape_close(tape);
    lab_start(lab, GP_NS_PER_S);
    for (int i = 101; i <= 200; i++) {
        set_power(lab, i);
        lab_sample(lab);
        lab_pass(lab, S);
    }
    lab_stop(lab);
    assert_int_equal(number(lab, "SELECT sum(known) FROM usage WHERE gpu = 1"), 200 * S);
    assert_int_equal(number(lab, "SELECT sum(busy) FROM usage WHERE gpu = 1"), 100 * S);
    /* those whose start is unknown may be others by now */
    assert_int_equal(number(lab, "SELECT count(DISTINCT pid) FROM process"), FIXTURE_PROCESSES);
    assert_int_equal(number(lab, "SELECT count(*) FROM process WHERE start > 0"),
                     number(lab, "SELECT count(DISTINCT pid) FROM process WHERE start > 0"));
    assert_int_equal(number(lab, "SELECT sum(count) FROM chunk WHERE step = 1000000"), 200);
    tape = reopen(lab);
    for (int64_t i = 0; i <= 200; i++)
        assert_true(fabs(power_at(tape, START + i * S, &found) - (100 + (double)i / 8)) < 1e-9);
    gp_tape_close(tape);
}

/* Somebody starts thousands of processes that last a second; one that lasted an hour stays. */
static void very_many_processes_go(void **state)
{
    struct lab *lab = *state;
    struct gp_store *store;
    struct gp_err err = {0};
    lab_start(lab, GP_NS_PER_S);
    lab_sample(lab);
    lab_stop(lab);
    assert_int_equal(gp_store_create(lab->path, false, &store, &err), 0);
    assert_int_equal(gp_store_run(store, &err,
                                  "WITH RECURSIVE n(i) AS (VALUES(100) UNION ALL SELECT i + 1 "
                                  "FROM n WHERE i < 210000) INSERT INTO process(id, pid, first, "
                                  "last) SELECT i, i, ?1, ?1 + iif(i = 150, 3600000000, 1000000) "
                                  "FROM n",
                                  "i", START),
                     0);
    assert_int_equal(
        gp_store_run(
            store, &err,
            "INSERT INTO share SELECT first, id, 1, 1, 1, 1, 1, 1 FROM process WHERE id <= 200",
            ""),
        0);
    gp_store_close(store);
    lab_pass(lab, 7200 * S);
    lab_start(lab, GP_NS_PER_S);
    lab_sample(lab);
    lab_stop(lab);
    const int64_t left = number(lab, "SELECT count(*) FROM process");
    assert_in_range(left, 100000, 131072); /* 4 KiB each of 512 MiB */
    assert_int_equal(number(lab, "SELECT count(*) FROM process WHERE id = 150"), 1);
    assert_int_equal(number(lab, "SELECT count(*) FROM process WHERE id = 100"), 0);
    assert_int_equal(number(lab, "SELECT count(*) FROM process WHERE id = 210000"), 1);
    assert_int_equal(number(lab, "SELECT count(*) FROM share WHERE process = 100"), 0);
    assert_int_equal(number(lab, "SELECT count(*) FROM share WHERE process = 150"), 1);
}

/* The table that is stored when ten minutes are over is not counted again after a crash. */
static void a_crash_after_ten_minutes(void **state)
{
    struct lab *lab = *state;
    lab_pass(lab, 580 * S);
    lab_start(lab, GP_NS_PER_S);
    for (int i = 0; i <= 30; i++) {
        lab_sample(lab);
        lab_pass(lab, S);
    }
    crash(lab);
    lab_start(lab, GP_NS_PER_S);
    lab_sample(lab);
    lab_stop(lab);
    assert_int_equal(number(lab, "SELECT sum(known) FROM usage WHERE gpu = 1"), 31 * S);
}

static void a_clock_that_is_ahead_at_boot(void **state)
{
    (void)state;
    struct gp_axis_mark mark = {.t = 0};
    assert_int_equal(at(&mark, 1000 * S, 50 * S, "a", 0, true), 1000 * S);
    /* 70 years later, until the clock is set */
    const int64_t t = at(&mark, INT64_C(2200000000) * S, 1 * S, "b", 1000 * S, true);
    assert_int_equal(t, 1000 * S + GP_AXIS_PAUSE_US);
    assert_int_equal(gp_axis_wall(&mark, 1, t), INT64_C(2200000000) * S);
}

static void only_one_records(void **state)
{
    struct lab *lab = *state;
    struct gp_recorder *second;
    struct gp_err err = {0};
    const struct gp_recorder_config config = {.path = lab->path, .interval_ns = GP_NS_PER_S};
    lab_start(lab, GP_NS_PER_S);
    assert_int_equal(gp_recorder_open(&config, &second, &err), GP_EBUSY);
    assert_int_equal(gp_store_writer(lab->path), getpid());
    lab_sample(lab);
    lab_stop(lab);
    assert_int_equal(gp_store_writer(lab->path), 0);
}

static void what_is_no_recording_is_refused(void **state)
{
    struct lab *lab = *state;
    struct gp_tape *tape;
    struct gp_err err = {0};
    assert_int_equal(gp_tape_open(lab->path, &tape, &err), GP_EIO);
    FILE *f = fopen(lab->path, "we");
    assert_non_null(f);
    assert_true(fputs("timestamp, name\n", f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(gp_tape_open(lab->path, &tape, &err), GP_EFORMAT);
    assert_int_equal(truncate(lab->path, 0), 0);
    assert_int_equal(gp_tape_open(lab->path, &tape, &err), GP_EFORMAT);
    assert_int_equal(unlink(lab->path), 0);
    assert_int_equal(mkdir(lab->path, 0700), 0);
    assert_int_equal(gp_tape_open(lab->path, &tape, &err), GP_EFORMAT);
    assert_int_equal(rmdir(lab->path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_read_as_written),
        cmocka_unit_test(too_large_numbers_are_refused),
        cmocka_unit_test(too_long_texts_are_refused),
        cmocka_unit_test(the_axis_never_goes_back),
        cmocka_unit_test(times_as_people_type_them),
        cmocka_unit_test_setup_teardown(what_is_shown_is_what_was_recorded, set_up, lab_tear_down),
        cmocka_unit_test_setup_teardown(every_sample_is_found, set_up, lab_tear_down),
        cmocka_unit_test_setup_teardown(summaries_remain, set_up, lab_tear_down),
        cmocka_unit_test_setup_teardown(usage_is_summed_up, set_up, lab_tear_down),
        cmocka_unit_test_setup_teardown(without_a_list_of_processes, set_up, lab_tear_down),
        cmocka_unit_test_setup_teardown(nothing_is_lost_by_a_crash, set_up, lab_tear_down),
        cmocka_unit_test_setup_teardown(very_many_processes_go, set_up, lab_tear_down),
        cmocka_unit_test_setup_teardown(a_crash_after_ten_minutes, set_up, lab_tear_down),
        cmocka_unit_test(a_clock_that_is_ahead_at_boot),
        cmocka_unit_test_setup_teardown(only_one_records, set_up, lab_tear_down),
        cmocka_unit_test_setup_teardown(what_is_no_recording_is_refused, set_up, lab_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
