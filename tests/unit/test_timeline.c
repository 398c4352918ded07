/* How often a timeline is sampled. */
#include "unit.h"

#include "base/clock.h"
#include "jobs/timeline.h"

static void the_interval_grows_with_the_file(void **state)
{
    (void)state;
    const uint64_t ms = GP_NS_PER_MS;
    const uint64_t hour_ns = 3600 * GP_NS_PER_S;
    const uint64_t step = GP_TIMELINE_STEP;
    assert_int_equal(gp_timeline_interval_ns(0, 0, 0), 500 * ms);
    assert_int_equal(gp_timeline_interval_ns(0, hour_ns - 1, step - 1), 500 * ms);
    assert_int_equal(gp_timeline_interval_ns(0, hour_ns - 1, step), 1000 * ms);
    assert_int_equal(gp_timeline_interval_ns(0, hour_ns, 0), 10000 * ms);
    assert_int_equal(gp_timeline_interval_ns(0, hour_ns, 4 * step), 10000 * ms);
    assert_int_equal(gp_timeline_interval_ns(0, hour_ns, 5 * step), 16000 * ms);
    assert_int_equal(gp_timeline_interval_ns(50 * ms, hour_ns, 0), 50 * ms);
    assert_int_equal(gp_timeline_interval_ns(50 * ms, hour_ns, 3 * step), 400 * ms);
    assert_true(gp_timeline_interval_ns(50 * ms, 0, UINT64_MAX) > hour_ns / 2);
}

/* At 300 kB/s, as 256 processes on 8 GPUs are at first. */
static void a_month_is_bounded(void **state)
{
    (void)state;
    double bytes = 0;
    const double bytes_per_sample = 300e3 * 0.05;
    const double month_ns = 30 * 86400e9;
    for (double now_ns = 0; now_ns < month_ns;) {
        const uint64_t interval_ns =
            gp_timeline_interval_ns(50 * GP_NS_PER_MS, (uint64_t)now_ns, (uint64_t)bytes);
        bytes += bytes_per_sample;
        now_ns += (double)interval_ns;
    }
    assert_true(bytes > 1e9 && bytes < 0x1p31);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_interval_grows_with_the_file),
        cmocka_unit_test(a_month_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
