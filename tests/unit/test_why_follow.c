/* What held for how long in a job: each minute is judged by itself, and the first one counts only
 * if there is no other. */
#include "unit.h"

#include "base/clock.h"
#include "snapshot_fixture.h"
#include "why/follow.h"
#include "why_fixture.h"

enum { EVERY_S = 5, PID = 100 };

/* Samples of one GPU over some seconds, with this utilization. */
static void follow_for(struct gp_why_follow *follow, unsigned *second, unsigned seconds,
                       int64_t busy)
{
    static struct fixture f;
    for (unsigned until = *second + seconds; *second <= until; *second += EVERY_S) {
        fixture_init(&f);
        f.snapshot.device_count = 1;
        f.snapshot.process_count = 1;
        f.snapshot.mono_ns = (100 + *second) * GP_NS_PER_S;
        f.devices[0].process_count = 0;
        *fixture_value(&f, 0, GP_UTILIZATION_GPU) = fixture_int(busy);
        *fixture_value(&f, 0, GP_REASONS_ACTIVE) = fixture_int(0);
        fixture_fill_process(&f, 0, 0, PID);
        *fixture_process(&f, 0, GP_PROCESS_SM) = fixture_int(busy);
        gp_why_follow_add(follow, &f.snapshot);
    }
}

static int end(struct gp_why_follow *follow, struct gp_why_finding found[GP_WHY_RULE__COUNT])
{
    int n = gp_why_follow_end(follow, found);
    gp_why_follow_free(follow);
    return n;
}

static void a_short_run_is_not_judged(void **state)
{
    (void)state;
    struct gp_why_finding found[GP_WHY_RULE__COUNT];
    unsigned second = 0;
    struct gp_why_follow *follow = gp_why_follow_new(NULL, false, PID);
    follow_for(follow, &second, 25, 20);
    assert_int_equal(end(follow, found), -1);
    assert_int_equal(end(gp_why_follow_new(NULL, false, PID), found), -1);
    second = 0;
    follow = gp_why_follow_new(NULL, false, 4711); /* uses no GPU */
    follow_for(follow, &second, 50, 20);
    assert_int_equal(end(follow, found), -1);
    gp_why_follow_free(NULL);
}

static void one_minute_is_better_than_none(void **state)
{
    (void)state;
    struct gp_why_finding found[GP_WHY_RULE__COUNT];
    unsigned second = 0;
    struct gp_why_follow *follow = gp_why_follow_new(NULL, false, PID);
    follow_for(follow, &second, 40, 20);
    assert_int_equal(end(follow, found), 1);
    assert_int_equal(found[0].verdict.rule, GP_WHY_RULE_LOW_USE);
    assert_true(found[0].share > 0.99);
    assert_string_equal(found[0].gpu, "0");
    assert_non_null(strstr(found[0].verdict.advice, "py-spy dump --pid PID shows"));
    assert_true(found[0].verdict.gain > 4.9 && found[0].verdict.gain < 5.1);
}

/* A number that is equal to its pid is none. */
static void its_pid_is_not_named(void **state)
{
    (void)state;
    struct gp_why_case c = why_healthy();
    struct gp_why_verdict verdicts[GP_WHY_RULE__COUNT];
    why_starve(&c);
    c.pid = 38; /* as the utilization */
    assert_true(gp_why_judge(&c, verdicts) > 0);
    assert_non_null(strstr(verdicts[0].advice, "--pid 38"));
    c.is_over = true;
    assert_true(gp_why_judge(&c, verdicts) > 0);
    assert_non_null(strstr(verdicts[0].advice, "--pid PID"));
    assert_non_null(strstr(verdicts[0].seen, "GPU busy 38 %"));
}

static void the_first_minute_is_the_start(void **state)
{
    (void)state;
    struct gp_why_finding found[GP_WHY_RULE__COUNT];
    unsigned second = 0;
    struct gp_why_follow *follow = gp_why_follow_new(NULL, false, PID);
    follow_for(follow, &second, 60, 5); /* loads */
    follow_for(follow, &second, 130, 95);
    assert_int_equal(end(follow, found), 0);
}

static void what_held_for_a_part_of_the_time(void **state)
{
    (void)state;
    struct gp_why_finding found[GP_WHY_RULE__COUNT];
    unsigned second = 0;
    struct gp_why_follow *follow = gp_why_follow_new(NULL, false, PID);
    for (int i = 0; i < 5; i++) /* the first one does not count */
        follow_for(follow, &second, 60, i == 3 || i == 4 ? 30 : 95);
    assert_int_equal(end(follow, found), 1);
    assert_true(found[0].share > 0.49 && found[0].share < 0.51);

    second = 0;
    follow = gp_why_follow_new(NULL, false, PID);
    for (int i = 0; i < 6; i++)
        follow_for(follow, &second, 60, i == 3 ? 30 : 95); /* a fifth */
    assert_int_equal(end(follow, found), 0);
}

static void without_memory(void **state)
{
    (void)state;
    struct gp_why_finding found[GP_WHY_RULE__COUNT];
    unsigned second = 0;
    alloc_fail_from(0);
    assert_null(gp_why_follow_new(NULL, false, PID));
    alloc_fail_from(-1);
    struct gp_why_follow *follow = gp_why_follow_new(NULL, false, PID);
    alloc_fail_from(1);
    follow_for(follow, &second, 50, 20);
    alloc_fail_from(-1);
    assert_int_equal(end(follow, found), -1);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_short_run_is_not_judged),
        cmocka_unit_test(one_minute_is_better_than_none),
        cmocka_unit_test(its_pid_is_not_named),
        cmocka_unit_test(the_first_minute_is_the_start),
        cmocka_unit_test(what_held_for_a_part_of_the_time),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
