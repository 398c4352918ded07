#include "unit.h"

#include "base/clock.h"

static void monotonic_time_does_not_go_back(void **state)
{
    (void)state;
    uint64_t before = gp_clock_mono_ns();
    for (int i = 0; i < 10000; i++) {
        uint64_t now = gp_clock_mono_ns();
        assert_true(now >= before);
        before = now;
    }
}

static void timespecs_are_whole(void **state)
{
    (void)state;
    struct timespec ts = gp_clock_timespec(UINT64_C(5000000007));
    assert_int_equal(ts.tv_sec, 5);
    assert_int_equal(ts.tv_nsec, 7);
}

static void check_rfc3339(const char *zone, uint64_t wall_ns, const char *want)
{
    char text[GP_RFC3339_SIZE];
    assert_int_equal(setenv("TZ", zone, 1), 0);
    tzset();
    gp_clock_rfc3339(wall_ns, text);
    assert_string_equal(text, want);
}

static void writes_rfc3339(void **state)
{
    (void)state;
    check_rfc3339("UTC0", 0, "1970-01-01T00:00:00.000+00:00");
    check_rfc3339("UTC0", UINT64_C(1700000000123999999), "2023-11-14T22:13:20.123+00:00");
    check_rfc3339("CET-1", UINT64_C(1700000000123000000), "2023-11-14T23:13:20.123+01:00");
    check_rfc3339("NST3:30", UINT64_C(1700000000000000000), "2023-11-14T18:43:20.000-03:30");
    check_rfc3339("UTC0", UINT64_MAX, "2554-07-21T23:34:33.709+00:00");
}

static void reads_what_it_writes(void **state)
{
    (void)state;
    static const char *const zones[] = {"UTC0", "CET-1", "NST3:30", "<+1245>-12:45"};
    char text[GP_RFC3339_SIZE];
    uint64_t found;
    for (size_t i = 0; i < GP_ARRAY_LEN(zones); i++) {
        assert_int_equal(setenv("TZ", zones[i], 1), 0);
        tzset();
        /* in steps that meet all days, leap days and ends of years, up to the year 2400 */
        for (uint64_t s = 14 * 3600; s < UINT64_C(13569465600); s += 86399) {
            gp_clock_rfc3339(s * GP_NS_PER_S + 7 * GP_NS_PER_MS, text);
            assert_true(gp_clock_parse_rfc3339(text, &found));
            assert_true(found == s * GP_NS_PER_S + 7 * GP_NS_PER_MS);
        }
    }
    static const char *const wrong[] = {"",
                                        "2026",
                                        "2026-11-20 15:04:05.123+01:00",
                                        "2026-11-20T15:04:05.123Z",
                                        "2026-11-20T15:04:05.123+01:0",
                                        "2026-11-20T15:04:05.123+01:00 ",
                                        "x026-11-20T15:04:05.123+01:00",
                                        "1969-12-31T23:59:59.999+00:00",
                                        "9999-12-31T23:59:59.999+00:00"};
    for (size_t i = 0; i < GP_ARRAY_LEN(wrong); i++)
        assert_false(gp_clock_parse_rfc3339(wrong[i], &found));
}

static void writes_times_for_people(void **state)
{
    (void)state;
    char text[GP_RFC3339_SIZE];
    assert_int_equal(setenv("TZ", "CET-1", 1), 0);
    tzset();
    gp_clock_plain(UINT64_C(1700000000123000000), text);
    assert_string_equal(text, "2023-11-14 23:13:20.123");
}

static void tells_the_time_of_a_monotonic_moment(void **state)
{
    (void)state;
    uint64_t mono_ns = gp_clock_mono_ns() - 5 * GP_NS_PER_S;
    uint64_t age_ns = gp_clock_wall_ns() - gp_clock_wall_at(mono_ns);
    assert_in_range(age_ns, 4 * GP_NS_PER_S, 60 * GP_NS_PER_S);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(monotonic_time_does_not_go_back),
        cmocka_unit_test(timespecs_are_whole),
        cmocka_unit_test(writes_rfc3339),
        cmocka_unit_test(reads_what_it_writes),
        cmocka_unit_test(writes_times_for_people),
        cmocka_unit_test(tells_the_time_of_a_monotonic_moment),
    };
    return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
