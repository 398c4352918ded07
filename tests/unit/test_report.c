/* Reports of recordings: times that overlap, times that are unknown, and the steps of charts.
 * tests/check_report.py compares the sums of whole recordings. */
#include "unit.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "tape/report_internal.h"
#include "tape/report_write.h"
#include "tape/store.h"
#include "tape/tape.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define S INT64_C(1000000)
#define PERIOD (600 * S)
#define START (INT64_C(1795800000) * S) /* a multiple of ten minutes */

struct lab {
    char folder[256];
    char path[300];
    struct gp_store *store;
};

static int set_up(void **state)
{
    struct lab *lab = calloc(1, sizeof(*lab));
    struct gp_err err = {0};
    assert_non_null(lab);
    temporary_name(lab->folder, sizeof(lab->folder), "report");
    assert_non_null(mkdtemp(lab->folder));
    (void)snprintf(lab->path, sizeof(lab->path), "%s/a.tape", lab->folder);
    if (gp_store_create(lab->path, false, &lab->store, &err) < 0)
        fail_msg("%s", err.text);
    *state = lab;
    return 0;
}

static int tear_down(void **state)
{
    struct lab *lab = *state;
    char command[400];
    gp_store_close(lab->store);
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", lab->folder);
    assert_int_equal(system(command), 0);
    free(lab);
    return 0;
}

static void add(struct lab *lab, const char *sql, int64_t t)
{
    struct gp_err err = {0};
    if (gp_store_run(lab->store, &err, sql, "i", t) < 0)
        fail_msg("%s: %s", sql, err.text);
}

/* A GPU, and mia's two processes; what they do in the first ten minutes is up to the test. */
static void add_machine(struct lab *lab)
{
    add(lab, "INSERT INTO clock VALUES(?, 0, 'boot', 0)", START);
    add(lab, "INSERT INTO tick VALUES(?1, ?1, x'00')", START);
    add(lab, "REPLACE INTO meta VALUES('derived', ? + 600000000)", START);
    add(lab, "INSERT INTO gpu VALUES(1, 'GPU-1', 0, -1, 'H100', '', ?1, ?1)", START);
    add(lab,
        "INSERT INTO process VALUES(1, 4711, 0, 'mia', 'python', NULL, 'python a.py', NULL, NULL, "
        "NULL, NULL, ?1, ?1, 0)",
        START);
    add(lab,
        "INSERT INTO process VALUES(2, 4712, 0, 'mia', 'python', NULL, 'python b.py', NULL, NULL, "
        "NULL, NULL, ?1, ?1, 0)",
        START);
}

static void read_report(struct lab *lab, const struct gp_report_query *query, struct gp_report *ret)
{
    struct gp_tape *tape;
    struct gp_err err = {0};
    if (gp_tape_open(lab->path, &tape, &err) < 0 ||
        gp_report_read(tape, query, lab->path, ret, &err) < 0)
        fail_msg("%s", err.text);
    gp_tape_close(tape);
}

static void assert_user(struct lab *lab, int64_t held_s, int64_t idle_s, bool has_load)
{
    const struct gp_report_query query = {.by = {GP_REPORT_USER}, .by_count = 1};
    struct gp_report report;
    read_report(lab, &query, &report);
    assert_int_equal(report.tables[0].count, 1);
    const struct gp_report_row *mia = &report.tables[0].rows[0];
    assert_string_equal(mia->label, "mia");
    assert_int_equal(mia->processes, 2);
    assert_int_equal(mia->sums.held_us, held_s * S);
    assert_int_equal(mia->sums.idle_us, idle_s * S);
    assert_int_equal(gp_report_has_load(GP_REPORT_USER, &mia->sums), has_load);
    gp_report_fini(&report);
}

/* ---- overlapping times ---- */

static void at_the_same_time_a_gpu_is_held_once(void **state)
{
    struct lab *lab = *state;
    add_machine(lab);
    add(lab, "INSERT INTO usage VALUES(?, 1, 600000000, 300000000, 600000000, 0, 0, 9, 9)", START);
    add(lab, "INSERT INTO share VALUES(?, 1, 1, 600000000, 300000000, 0, 9, 9)", START);
    add(lab, "INSERT INTO share VALUES(?, 2, 1, 600000000, 0, 600000000, 0, 9)", START);
    assert_user(lab, 600, 0, true); /* one of them computed */
}

static void one_after_the_other_adds_up(void **state)
{
    struct lab *lab = *state;
    add_machine(lab);
    add(lab, "INSERT INTO usage VALUES(?, 1, 600000000, 200000000, 500000000, 0, 0, 9, 9)", START);
    add(lab, "INSERT INTO share VALUES(?, 1, 1, 200000000, 200000000, 0, 9, 9)", START);
    add(lab, "INSERT INTO share VALUES(?, 2, 1, 300000000, 0, 300000000, 0, 9)", START);
    assert_user(lab, 500, 300, true);
}

/* ---- what is unknown ---- */

static void no_sm_time_is_not_idle(void **state)
{
    struct lab *lab = *state;
    add_machine(lab);
    add(lab, "INSERT INTO usage VALUES(?, 1, 0, 0, 600000000, 0, 0, 0, 0)", START);
    add(lab, "INSERT INTO share VALUES(?, 1, 1, 600000000, 0, 0, 0, 9)", START);
    add(lab, "INSERT INTO share VALUES(?, 2, 1, 600000000, 0, 0, 0, 9)", START);
    assert_user(lab, 600, 0, false);
    const struct gp_report_query query = {.by = {GP_REPORT_GPU}, .by_count = 1};
    struct gp_report report;
    read_report(lab, &query, &report);
    const struct gp_report_sums *gpu = &report.tables[0].rows[0].sums;
    assert_true(gp_report_is_seen(gpu));
    assert_false(gp_report_has_load(GP_REPORT_GPU, gpu));
    assert_false(gp_report_has_energy(GP_REPORT_GPU, gpu));
    assert_false(gp_report_has_memory(gpu));
    gp_report_fini(&report);
}

static void without_usage_nothing_is_known(void **state)
{
    struct lab *lab = *state;
    add_machine(lab);
    struct gp_tape *tape;
    struct gp_report report;
    struct gp_err err = {0};
    const struct gp_report_query query = {.by = {GP_REPORT_GPU}, .by_count = 1};
    assert_int_equal(gp_tape_open(lab->path, &tape, &err), 0);
    assert_int_equal(gp_report_read(tape, &query, lab->path, &report, &err), GP_EUSAGE);
    assert_non_null(strstr(err.text, "nothing was recorded"));
    gp_tape_close(tape);
}

/* ---- charts ---- */

static void steps_cover_the_time(void **state)
{
    (void)state;
    static const int64_t lengths_s[] = {
        1,           60,          3600,         86400,           7 * 86400,        60 * 86400,
        200 * 86400, 365 * 86400, 3650 * 86400, 20000 * 86400LL, 2900000 * 86400LL};
    static const int64_t starts_s[] = {0, 1, 1795800000, 1792886400 /* clocks are set back then */,
                                       1774742400 /* and forward */};
    assert_int_equal(setenv("TZ", "Europe/Berlin", 1), 0);
    for (size_t i = 0; i < GP_ARRAY_LEN(lengths_s); i++)
        for (size_t k = 0; k < GP_ARRAY_LEN(starts_s); k++) {
            static struct gp_report report;
            report = (struct gp_report){.from_us = starts_s[k] * S + 5,
                                        .to_us = (starts_s[k] + lengths_s[i]) * S + 3};
            gp_report_make_steps(&report);
            const size_t count = report.step_count;
            assert_in_range(count, 1, GP_REPORT_STEPS_MAX);
            assert_int_equal(report.steps[0].from_us, report.from_us);
            assert_int_equal(report.steps[count - 1].to_us, report.to_us);
            for (size_t s = 0; s < count; s++) {
                assert_true(report.steps[s].from_us < report.steps[s].to_us);
                assert_true(report.steps[s].to_us - report.steps[s].from_us <=
                            (report.step_s + 3600) * S);
                assert_true(s == 0 || report.steps[s].from_us == report.steps[s - 1].to_us);
            }
            assert_true(count > 20 || lengths_s[i] < 40 * 600);
        }
    assert_int_equal(unsetenv("TZ"), 0);
}

static void days_begin_at_midnight(void **state)
{
    (void)state;
    static struct gp_report report;
    assert_int_equal(setenv("TZ", "Europe/Berlin", 1), 0);
    report =
        (struct gp_report){.from_us = 1792000000 * S, .to_us = (1792000000 + 100 * 86400LL) * S};
    gp_report_make_steps(&report);
    assert_int_equal(report.step_s, 86400);
    for (size_t i = 1; i < report.step_count; i++) {
        struct gp_strbuf sb = GP_STRBUF_INIT(64);
        gp_report_add_time(&sb, report.steps[i].from_us);
        if (strcmp(sb.buf + 11, "00:00") != 0 && strcmp(sb.buf, "2026-10-26 01:00") != 0)
            fail_msg("a day begins at %s", sb.buf);
        gp_strbuf_fini(&sb);
    }
    assert_int_equal(unsetenv("TZ"), 0);
}

/* ---- without memory ---- */

static void without_memory_there_is_an_error(void **state)
{
    struct lab *lab = *state;
    const struct gp_report_query query = {
        .by = {GP_REPORT_GPU, GP_REPORT_USER, GP_REPORT_PROCESS, GP_REPORT_JOB, GP_REPORT_IDLE},
        .by_count = 5,
        .users = "mia",
        .charts = true};
    add_machine(lab);
    add(lab, "INSERT INTO usage VALUES(?, 1, 600000000, 200000000, 500000000, 0, 0, 9, 9)", START);
    add(lab, "INSERT INTO share VALUES(?, 1, 1, 200000000, 200000000, 0, 9, 9)", START);
    add(lab, "INSERT INTO share VALUES(?, 2, 1, 300000000, 0, 300000000, 0, 9)", START);
    long failed = 0;
    for (long n = 0; n < 100000; n++) {
        static struct gp_report report;
        struct gp_strbuf sb = GP_STRBUF_INIT(1 << 24);
        struct gp_tape *tape;
        struct gp_err err = {0};
        assert_int_equal(gp_tape_open(lab->path, &tape, &err), 0);
        alloc_fail_from(n);
        int r = gp_report_read(tape, &query, lab->path, &report, &err);
        if (r == 0) {
            const struct gp_report_look look = {.report = &report, .currency = ""};
            gp_report_add_html(&sb, &look);
            gp_report_add_json(&sb, &look);
            gp_report_add_csv(&sb, &look);
            gp_report_add_text(&sb, &look, 80);
            gp_report_add_markdown(&sb, &look);
            gp_report_fini(&report);
        }
        const bool is_over = alloc_count() <= n;
        alloc_fail_from(-1);
        gp_tape_close(tape);
        assert_true(r == 0 || err.text[0]);
        if (!is_over) {
            assert_true(r < 0 || sb.error); /* nothing may be missing without a word */
            failed++;
        } else {
            assert_int_equal(r, 0);
            assert_int_equal(sb.error, 0);
        }
        gp_strbuf_fini(&sb);
        if (is_over)
            break;
    }
    assert_true(failed > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(at_the_same_time_a_gpu_is_held_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_after_the_other_adds_up, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_sm_time_is_not_idle, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_usage_nothing_is_known, set_up, tear_down),
        cmocka_unit_test(steps_cover_the_time),
        cmocka_unit_test(days_begin_at_midnight),
        cmocka_unit_test_setup_teardown(without_memory_there_is_an_error, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
