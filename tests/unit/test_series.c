/* Reading a recording in one pass: each moment once, and every number as it was. */
#include "unit.h"

#include "snapshot_fixture.h"

#include "base/err.h"
#include "tape/recorder.h"
#include "tape/series.h"
#include "tape/tape.h"

#include <math.h>
#include <unistd.h>

#define S INT64_C(1000000)
#define START (INT64_C(1795800000) * S + 400 * S) /* in the middle of a step of ten minutes */

struct lab {
    char folder[256];
    char path[300];
    struct fixture machine;
    char uuids[FIXTURE_DEVICES][16];
    struct gp_recorder *recorder;
    struct gp_axis_clocks clocks;
    /* what was read */
    int64_t first, end, us, summary_us;
    double watts; /* times seconds */
    double least, most;
    unsigned pieces, begins;
    int fails_at; /* the piece that fails; 0: none */
};

static void read_clocks(void *ctx, struct gp_axis_clocks *ret)
{
    const struct lab *lab = ctx;
    *ret = lab->clocks;
}

static int set_up(void **state)
{
    struct lab *lab = calloc(1, sizeof(*lab));
    assert_non_null(lab);
    temporary_name(lab->folder, sizeof(lab->folder), "series");
    assert_non_null(mkdtemp(lab->folder));
    (void)snprintf(lab->path, sizeof(lab->path), "%s/a.tape", lab->folder);
    lab->clocks = (struct gp_axis_clocks){START, 1000 * S, "boot"};
    fixture_init(&lab->machine);
    for (int i = 0; i < FIXTURE_DEVICES; i++) {
        (void)snprintf(lab->uuids[i], sizeof(lab->uuids[i]), "GPU-%d", i);
        *fixture_value(&lab->machine, i, GP_UUID) = fixture_text(lab->uuids[i]);
    }
    *state = lab;
    return 0;
}

static int tear_down(void **state)
{
    struct lab *lab = *state;
    char command[400];
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", lab->folder);
    assert_int_equal(system(command), 0);
    free(lab);
    return 0;
}

/* Records for some time; the power in watts is the number of seconds since the start. */
static void record(struct lab *lab, int64_t seconds, int64_t step_s)
{
    struct gp_err err = {0};
    const struct gp_recorder_config config = {.path = lab->path,
                                              .interval_ns = (uint64_t)step_s * GP_NS_PER_S,
                                              .keep_ns = 1200 * GP_NS_PER_S,
                                              .clocks = read_clocks,
                                              .ctx = lab};
    if (gp_recorder_open(&config, &lab->recorder, &err) < 0)
        fail_msg("%s", err.text);
    for (int64_t s = 0; s < seconds; s += step_s) {
        gp_value_set_real(fixture_value(&lab->machine, FIXTURE_WELL, GP_POWER_DRAW),
                          (double)(lab->clocks.wall_us - START) / S, FIXTURE_NOW_NS);
        if (gp_recorder_sample(lab->recorder, &lab->machine.snapshot, &err) < 0)
            fail_msg("%s", err.text);
        lab->clocks.wall_us += step_s * S;
        lab->clocks.boottime_us += step_s * S;
    }
    if (gp_recorder_close(lab->recorder, &err) < 0)
        fail_msg("%s", err.text);
}

static void pass(struct lab *lab, int64_t seconds)
{
    lab->clocks.wall_us += seconds * S;
    lab->clocks.boottime_us += seconds * S;
}

static void begin(void *ctx)
{
    struct lab *lab = ctx;
    lab->begins++;
    lab->first = -1;
    lab->us = lab->summary_us = lab->end = 0;
    lab->watts = 0;
    lab->pieces = 0;
}

static int on_piece(void *ctx, const struct gp_series_piece *piece, struct gp_err *err)
{
    struct lab *lab = ctx;
    struct gp_series_number n;
    const struct gp_tape_rows *rows = &piece->scene->scopes[GP_TAPE_DEVICE];
    assert_int_equal(rows->count, FIXTURE_DEVICES);
    const struct gp_tape_row *row = &rows->rows[FIXTURE_WELL];
    assert_true(piece->us > 0);
    assert_true(piece->t >= lab->end);
    if (++lab->pieces == (unsigned)lab->fails_at)
        return gp_err_set(err, GP_EPERM, "enough");
    assert_true(gp_series_number(piece, row, GP_POWER_DRAW, &n));
    assert_true(n.min <= n.mean && n.mean <= n.max);
    if (!piece->is_summary)
        assert_true(n.min >= n.max);
    assert_string_equal(gp_series_text(piece, row, GP_UUID), "GPU-0");
    assert_null(gp_series_text(piece, row, GP_POWER_DRAW));
    assert_false(gp_series_number(piece, row, GP_UUID, &n));
    assert_false(gp_series_number(piece, &rows->rows[FIXTURE_LOST], GP_MEMORY_USED, &n));
    assert_true(gp_series_number(piece, row, GP_POWER_DRAW, &n));
    lab->first = lab->first < 0 ? piece->t : lab->first;
    lab->end = piece->t + piece->us;
    lab->us += piece->us;
    lab->summary_us += piece->is_summary ? piece->us : 0;
    lab->watts += n.mean * (double)piece->us / S;
    return 0;
}

static int read_from(struct lab *lab, int64_t from, int64_t to)
{
    struct gp_tape *tape;
    struct gp_err err = {0};
    const struct gp_series_reader reader = {.begin = begin, .piece = on_piece, .ctx = lab};
    if (gp_tape_open(lab->path, &tape, &err) < 0)
        fail_msg("%s", err.text);
    int r = gp_series_read(tape, from, to, &reader, &err);
    gp_tape_close(tape);
    return r;
}

/* The sum of the numbers of seconds from a to b. */
static double sum_of(double a, double b)
{
    return (b - a) * (a + b - 1) / 2;
}

static void samples_are_read(void **state)
{
    struct lab *lab = *state;
    record(lab, 300, 1);
    assert_int_equal(read_from(lab, 0, INT64_MAX), 0);
    assert_int_equal(lab->pieces, 300);
    assert_int_equal(lab->us, 300 * S);
    assert_int_equal(lab->summary_us, 0);
    assert_true(fabs(lab->watts - sum_of(0, 300)) < 1);
    assert_int_equal(read_from(lab, START + 100 * S, START + 200 * S), 0);
    assert_int_equal(lab->pieces, 100);
    assert_int_equal(lab->first, START + 100 * S);
    assert_int_equal(lab->end, START + 200 * S);
    assert_true(fabs(lab->watts - sum_of(100, 200)) < 1);
    assert_int_equal(read_from(lab, START + 900 * S, INT64_MAX), 0);
    assert_int_equal(lab->pieces, 0);
    assert_int_equal(read_from(lab, INT64_MIN, INT64_MIN), 0);
    assert_int_equal(lab->pieces, 0);
}

static void then_summaries(void **state)
{
    struct lab *lab = *state;
    enum { SECONDS = 3 * 3600 };
    record(lab, SECONDS, 1);
    record(lab, 2, 1); /* drops what is too old */
    assert_int_equal(read_from(lab, 0, INT64_MAX), 0);
    assert_int_equal(lab->first, START);
    assert_int_equal(lab->us, (SECONDS + 2) * S);
    assert_true(lab->summary_us > 0 && lab->summary_us < SECONDS * S);
    assert_true(fabs(lab->watts / sum_of(0, SECONDS + 2) - 1) < 1e-3);
}

/* Steps of ten minutes reach into a pause; it is none of what was recorded. */
static void pauses_are_not_filled(void **state)
{
    struct lab *lab = *state;
    record(lab, 900, 1);
    pass(lab, 7200 + 123);
    record(lab, 3600, 1);
    pass(lab, 4000);
    record(lab, 2000, 10);
    record(lab, 10, 10);
    assert_int_equal(read_from(lab, 0, INT64_MAX), 0);
    const int64_t recorded_us = (900 + 3600 + 2010) * S;
    if (lab->us > recorded_us + 10 * S || lab->us < recorded_us - 30 * S)
        fail_msg("%g s of %g s", (double)lab->us / S, (double)recorded_us / S);
    const double expected = sum_of(0, 900) + sum_of(8223, 11823) + sum_of(15823, 17833);
    assert_true(fabs(lab->watts / expected - 1) < 0.01);
}

static void a_reader_can_stop(void **state)
{
    struct lab *lab = *state;
    record(lab, 100, 1);
    lab->fails_at = 10;
    assert_int_equal(read_from(lab, 0, INT64_MAX), GP_EPERM);
    assert_int_equal(lab->pieces, 10);
    assert_int_equal(lab->begins, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(samples_are_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(then_summaries, set_up, tear_down),
        cmocka_unit_test_setup_teardown(pauses_are_not_filled, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_reader_can_stop, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
