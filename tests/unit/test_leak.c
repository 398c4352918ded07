/* Memory over time, as jobs have it, and whether it is a leak. */
#include "unit.h"

#include "jobs/leak.h"

enum { MIB = 1 << 20, WINDOWS = 40 };

static struct gp_leak_trend trend_of(double (*bytes)(int window), size_t count)
{
    double times_s[GP_LEAK_WINDOWS];
    double values[GP_LEAK_WINDOWS];
    for (size_t i = 0; i < count; i++) {
        times_s[i] = 10.0 * (double)i;
        values[i] = bytes((int)i);
    }
    return gp_leak_trend(times_s, values, count);
}

static double level(int window)
{
    (void)window;
    return 20e9;
}

/* 2 MiB in each window of 10 s. */
static double leak(int window)
{
    return 20e9 + 2.0 * MIB * window;
}

/* A block of 20 MiB in every third window. */
static double staircase(int window)
{
    return 20e9 + 20.0 * MIB * (window / 3);
}

/* Up and down with the batches, and a leak below that. */
static double noisy_leak(int window)
{
    return leak(window) * 1.0 + 0.7 * MIB * ((window * 7919) % 11 - 5) / 5;
}

static double noise(int window)
{
    return 20e9 + 500.0 * MIB * ((window * 7919) % 11);
}

/* Caches fill at the beginning and stay. */
static double warm_up(int window)
{
    return 20e9 + 1000.0 * MIB * (window < 8 ? window : 8);
}

/* One step only, as a validation run makes it. */
static double one_step(int window)
{
    return 20e9 + (window > 20 ? 4000.0 * MIB : 0);
}

static double shrinks(int window)
{
    return 20e9 - 2.0 * MIB * window;
}

static double slowly(int window)
{
    return 20e9 + 0.1 * MIB * window; /* 0.6 MiB in a minute */
}

static void what_is_a_leak(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double (*bytes)(int window);
        bool rises;
    } cases[] = {
        {"level", level, false},        {"leak", leak, true},
        {"staircase", staircase, true}, {"noisy leak", noisy_leak, true},
        {"noise", noise, false},        {"warm-up", warm_up, false},
        {"one step", one_step, false},  {"shrinks", shrinks, false},
        {"slowly", slowly, false},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_leak_trend trend = trend_of(cases[i].bytes, WINDOWS);
        assert_true(trend.known);
        if (trend.rises != cases[i].rises)
            fail_msg("%s: %s, %.0f bytes/s", cases[i].name, trend.rises ? "rises" : "does not rise",
                     trend.bytes_per_s);
    }
}

static void the_slope_is_the_jobs_own(void **state)
{
    (void)state;
    double per_s = trend_of(leak, WINDOWS).bytes_per_s;
    assert_true(per_s > 0.199 * MIB && per_s < 0.201 * MIB);
    per_s = trend_of(noisy_leak, WINDOWS).bytes_per_s;
    assert_true(per_s > 0.18 * MIB && per_s < 0.22 * MIB);
}

static void too_little_is_not_known(void **state)
{
    (void)state;
    assert_false(trend_of(leak, GP_LEAK_WINDOWS_MIN - 1).known);
    assert_true(trend_of(leak, GP_LEAK_WINDOWS_MIN).known);
    assert_true(trend_of(leak, GP_LEAK_WINDOWS).rises);
    assert_false(trend_of(leak, 0).known);
    /* a clock that stands still */
    static const double times_s[GP_LEAK_WINDOWS_MIN];
    static const double bytes[GP_LEAK_WINDOWS_MIN];
    assert_false(gp_leak_trend(times_s, bytes, GP_LEAK_WINDOWS_MIN).known);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_a_leak),
        cmocka_unit_test(the_slope_is_the_jobs_own),
        cmocka_unit_test(too_little_is_not_known),
    };
    return cmocka_run_group_tests_name("leak", tests, NULL, NULL);
}
