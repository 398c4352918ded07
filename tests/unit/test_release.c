/* When the driver is let go so that idle GPUs can sleep. */
#include "unit.h"

#include "sample/release.h"

static uint64_t now_ns;

static bool after(struct gp_release *r, unsigned seconds, enum gp_power power, bool busy)
{
    now_ns += seconds * GP_NS_PER_S;
    return gp_release_update(r, power, busy, now_ns);
}

static void let_go(struct gp_release *r)
{
    *r = (struct gp_release){0};
    now_ns = 1000 * GP_NS_PER_S;
    assert_false(after(r, 0, GP_POWER_AWAKE, false));
    assert_false(after(r, GP_RELEASE_IDLE_S - 1, GP_POWER_AWAKE, false));
    assert_true(after(r, 1, GP_POWER_AWAKE, false));
}

static void idle_gpus_are_let_go(void **state)
{
    (void)state;
    struct gp_release r;
    let_go(&r);
}

static void work_begins_the_time_anew(void **state)
{
    (void)state;
    struct gp_release r = {0};
    now_ns = 1000 * GP_NS_PER_S;
    (void)after(&r, 0, GP_POWER_AWAKE, false);
    assert_false(after(&r, GP_RELEASE_IDLE_S, GP_POWER_AWAKE, true));
    assert_false(after(&r, 1, GP_POWER_AWAKE, false));
    assert_false(after(&r, GP_RELEASE_IDLE_S - 1, GP_POWER_AWAKE, false));
    assert_true(after(&r, 1, GP_POWER_AWAKE, false));
}

static void gpus_that_may_not_sleep_are_kept(void **state)
{
    (void)state;
    struct gp_release r = {0};
    now_ns = 1000 * GP_NS_PER_S;
    for (int i = 0; i < 5; i++)
        assert_false(after(&r, 100, GP_POWER_FIXED, false));
    let_go(&r);
    assert_false(after(&r, 1, GP_POWER_FIXED, false)); /* somebody forbade it meanwhile */
}

static void asleep_they_are_the_sources_to_leave_alone(void **state)
{
    (void)state;
    struct gp_release r;
    let_go(&r);
    assert_false(after(&r, 5, GP_POWER_ASLEEP, false));
    assert_false(after(&r, 1000, GP_POWER_ASLEEP, false));
    /* awake again: it is watched until it is idle */
    assert_false(after(&r, 1, GP_POWER_AWAKE, true));
    assert_false(after(&r, 1, GP_POWER_AWAKE, false));
    assert_true(after(&r, GP_RELEASE_IDLE_S, GP_POWER_AWAKE, false));
}

static void those_that_stay_awake_are_watched_again(void **state)
{
    (void)state;
    struct gp_release r;
    let_go(&r);
    assert_true(after(&r, GP_RELEASE_WAIT_S - 1, GP_POWER_AWAKE, false));
    assert_false(after(&r, 1, GP_POWER_AWAKE, false));
    (void)after(&r, 1, GP_POWER_AWAKE, false);
    assert_false(after(&r, GP_RELEASE_AGAIN_S - 2, GP_POWER_AWAKE, false));
    assert_true(after(&r, 1, GP_POWER_AWAKE, false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idle_gpus_are_let_go),
        cmocka_unit_test(work_begins_the_time_anew),
        cmocka_unit_test(gpus_that_may_not_sleep_are_kept),
        cmocka_unit_test(asleep_they_are_the_sources_to_leave_alone),
        cmocka_unit_test(those_that_stay_awake_are_watched_again),
    };
    return cmocka_run_group_tests_name("release", tests, NULL, NULL);
}
