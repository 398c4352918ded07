/* Steps that a job reports in its output. */
#include "unit.h"

#include "base/clock.h"
#include "jobs/pace.h"
#include "jobs/watch.h"

/* The steps in these lines, one a second. */
static struct gp_pace pace_of(const char *pattern, const char *const *lines)
{
    regex_t step;
    struct gp_pace pace = {0};
    assert_int_equal(regcomp(&step, pattern, REG_EXTENDED), 0);
    for (uint64_t i = 0; lines[i]; i++)
        gp_pace_add(&pace, &step, lines[i], (i + 1) * GP_NS_PER_S);
    regfree(&step);
    return pace;
}

static void expect(const char *pattern, const char *const *lines, double steps, double seconds)
{
    const struct gp_pace pace = pace_of(pattern, lines);
    assert_true(pace.steps > steps - 0.01 && pace.steps < steps + 0.01);
    assert_true(pace.last_ns - pace.first_ns == (uint64_t)seconds * GP_NS_PER_S);
}

static void lines_are_counted(void **state)
{
    (void)state;
    expect("loss", (const char *[]){"start", "loss 3", "loss 2", "saved", "loss 1", "end", NULL}, 2,
           3);
    expect("loss", (const char *[]){"loss 3", NULL}, 0, 0);
    expect("loss", (const char *[]){"x", NULL}, 0, 0);
}

static void numbers_say_more(void **state)
{
    (void)state;
    static const char number[] = "step ([0-9]+)";
    expect(number, (const char *[]){"step 10", "step 20", "step 40 of 100", NULL}, 30, 2);
    /* several processes of a job print the same step */
    expect(number,
           (const char *[]){"step 10", "step 10", "step 11", "step 10", "step 11", "step 12", NULL},
           2, 5);
    /* the next epoch */
    expect(number, (const char *[]){"step 80", "step 90", "step 10", "step 20", NULL}, 30, 3);
    expect(number, (const char *[]){"step 0", "step 1", "step 0", "step 1", NULL}, 1, 1);
    /* and independent ones another */
    expect(
        number,
        (const char *[]){"step 100", "step 40", "step 101", "step 41", "step 102", "step 42", NULL},
        2, 4);
    expect(number, (const char *[]){"step 90", "step 90", "step 0", "step 0", "step 1", NULL}, 1,
           4);
    /* a group without a number */
    expect("(loss)", (const char *[]){"loss", "loss", NULL}, 1, 1);
    /* or with an identifier */
    expect("id ([0-9]+)",
           (const char *[]){"id 7", "id 9007199254740993000", "id 20261127220959001122", NULL}, 2,
           2);
    expect("step(.*)", (const char *[]){"step: 7 of 9", "step: 9 of 9", NULL}, 2, 1);
}

static void the_first_does_not_count(void **state)
{
    (void)state;
    /* its time, with loading and compilation, is not known either */
    const struct gp_pace pace = pace_of("step ([0-9]+)", (const char *[]){"step 500", NULL});
    assert_true(pace.steps <= 0);
    assert_int_equal(pace.reports, 1);
}

static char told[500];

static void tell(const struct gp_watch *watch, enum gp_watch_topic topic, const char *text)
{
    (void)watch;
    (void)topic;
    (void)snprintf(told, sizeof(told), "%s", text);
}

static void expect_end(const struct gp_pace_plan *plan, struct gp_pace pace, const char *message)
{
    const struct gp_watch watch = {.tell = tell};
    told[0] = '\0';
    json_decref(gp_pace_end(&pace, plan, &watch));
    assert_string_equal(told, message);
}

static void what_is_said_without_gpus(void **state)
{
    (void)state;
    static const struct gp_pace_plan none = {.precision = "bf16"};
    static const struct gp_pace_plan flops = {.flops = 1e12, .precision = "bf16"};
    const struct gp_pace one = {.reports = 1, .first_ns = 7, .last_ns = 7};
    const struct gp_pace ten = {
        .reports = 11, .steps = 10, .first_ns = 1, .last_ns = 1 + 4 * GP_NS_PER_S};
    expect_end(&none, (struct gp_pace){0}, "");
    expect_end(&none, one, "");
    expect_end(&none, ten, "2.5 steps/s (10 steps in 4.0 s)");
    expect_end(
        &flops, ten,
        "2.5 steps/s (10 steps in 4.0 s), 2.5 TFLOP/s; no MFU: the job was not seen to use a GPU");
    const struct gp_pace quick = {
        .reports = 2, .steps = 1, .first_ns = 1, .last_ns = 1 + GP_NS_PER_S / 4};
    expect_end(&none, quick, "4 steps/s (1 step in 0.250 s)");
    expect_end(&flops, one,
               "no MFU: it reported 1 step; call gpulse.step() in each step of the program, or "
               "count lines of its output with --step-match");
}

static void numbers_that_do_not_grow(void **state)
{
    (void)state;
    regex_t step;
    assert_int_equal(regcomp(&step, "of ([0-9]+)", REG_EXTENDED), 0);
    const struct gp_pace_plan plan = {.step = &step, .precision = "bf16"};
    expect_end(&plan, pace_of("of ([0-9]+)", (const char *[]){"1 of 9", "2 of 9", "3 of 9", NULL}),
               "3 lines of its output matched --step-match, but the numbers in (…) did not grow");
    expect_end(&plan, pace_of("of ([0-9]+)", (const char *[]){"1 of 9", NULL}),
               "1 line of its output matched --step-match, too few to measure its pace");
    regfree(&step);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_counted),        cmocka_unit_test(numbers_say_more),
        cmocka_unit_test(the_first_does_not_count), cmocka_unit_test(what_is_said_without_gpus),
        cmocka_unit_test(numbers_that_do_not_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
