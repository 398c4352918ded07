/* Memory over time, as jobs have it, and whether it is a leak. */
#include "unit.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "jobs/leak.h"
#include "snapshot_fixture.h"

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

/* Of 780 pairs of windows 95 in 100 must rise: 39 may not. */
static void how_many_pairs_rise(void **state)
{
    (void)state;
    double times_s[WINDOWS];
    double values[WINDOWS];
    for (int i = 0; i < WINDOWS; i++) {
        times_s[i] = 10.0 * i;
        values[i] = 20e9 + 2.0 * MIB * i;
    }
    values[WINDOWS - 1] = 0; /* below all others */
    assert_true(gp_leak_trend(times_s, values, WINDOWS).rises);
    values[3] = values[4]; /* one more that does not */
    assert_false(gp_leak_trend(times_s, values, WINDOWS).rises);
}

static void the_middle_of_the_slopes(void **state)
{
    (void)state;
    double times_s[GP_LEAK_WINDOWS_MIN + 1] = {0};
    double values[GP_LEAK_WINDOWS_MIN + 1] = {0};
    for (int n = 19; n <= 20; n++) {
        size_t last = (size_t)GP_LEAK_WINDOWS_MIN;
        for (size_t i = 0; i <= last; i++) {
            times_s[i] = 0;
            values[i] = (double)(MIB * (int)i);
        }
        times_s[last] = 1; /* so there are as many slopes as windows before it: 20, or 19 */
        values[last] = 100.0 * MIB;
        const size_t skipped = n == 19;
        double per_s =
            gp_leak_trend(times_s + skipped, values + skipped, last + 1 - skipped).bytes_per_s;
        /* of 100 to 81 without MiB 90 and 91 are in the middle, of 99 to 81 it is 90 */
        double expected = n == 19 ? 90.0 * MIB : 90.5 * MIB;
        assert_true(per_s > expected - 1 && per_s < expected + 1);
    }
}

/* ---- samples ---- */

static struct fixture machine;
static struct gp_leaks *leaks;
static unsigned step_s; /* between two samples */

static int begin(void **state)
{
    (void)state;
    fixture_init(&machine);
    machine.snapshot.process_count = 1;
    machine.snapshot.mono_ns = 0;
    *fixture_value(&machine, FIXTURE_WELL, GP_MEMORY_FREE) = fixture_int(INT64_C(10) << 30);
    step_s = 2;
    leaks = gp_leaks_new();
    return leaks ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    gp_leaks_free(leaks);
    return 0;
}

static void set_memory(int process, int64_t bytes)
{
    *fixture_process(&machine, process, GP_PROCESS_MEMORY) = fixture_int(bytes);
}

/* A sample, two seconds behind the last: five of them make a window of 10 s. */
static void sample(void)
{
    machine.snapshot.mono_ns += step_s * GP_NS_PER_S;
    assert_int_equal(gp_leaks_take(leaks, &machine.snapshot), 0);
}

/* Whole windows, at the end of which each has grown. */
static void watch(int windows, int64_t bytes, int64_t growth)
{
    for (int i = 0; i < windows * GP_LEAK_SAMPLES; i++) {
        set_memory(0, bytes + growth * (i / GP_LEAK_SAMPLES));
        sample();
    }
}

static void lines_are(bool csv, bool header, const char *expected)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 16);
    gp_leaks_add(&sb, leaks, &machine.snapshot, csv, header);
    assert_string_equal(sb.buf ? sb.buf : "", expected);
    gp_strbuf_fini(&sb);
}

/* 2 MiB in each window of 10 s; 10 GiB are free, which does for 51200 s. */
#define LEAKING(memory) "48448,0," memory ",209715,yes,51200\n"

static void as_many_windows_as_are_needed(void **state)
{
    (void)state;
    watch(GP_LEAK_WINDOWS_MIN - 1, 100 * MIB, 2 * MIB);
    for (int i = 1; i < GP_LEAK_SAMPLES; i++)
        sample();
    lines_are(true, true, "pid,gpu,memory,growth,rises,full_in\n48448,0,142606336,,,\n");
    set_memory(0, 138 * MIB);
    sample();
    lines_are(true, false, LEAKING("144703488"));
}

/* Another process with the pid of one that leaked has not leaked. */
static void a_pid_that_is_used_again(void **state)
{
    (void)state;
    watch(GP_LEAK_WINDOWS_MIN, 100 * MIB, 2 * MIB);
    lines_are(true, false, LEAKING("144703488"));
    *fixture_process(&machine, 0, GP_PROCESS_START) = fixture_text("2026-11-20T15:00:00.000+01:00");
    lines_are(true, false, "48448,0,144703488,,,\n");
    sample();
    lines_are(true, false, "48448,0,144703488,,,\n");
    *fixture_process(&machine, 0, GP_PROCESS_START) = fixture_text("2026-11-20T09:00:00.000+01:00");
    lines_are(true, false, "48448,0,144703488,,,\n"); /* the first is forgotten */
}

static void one_that_is_gone_is_forgotten(void **state)
{
    (void)state;
    watch(GP_LEAK_WINDOWS_MIN, 100 * MIB, 2 * MIB);
    machine.snapshot.process_count = 0;
    sample();
    lines_are(true, false, "");
    machine.snapshot.process_count = 1;
    sample();
    lines_are(true, false, "48448,0,144703488,,,\n");
}

static void each_gpu_and_each_process_for_itself(void **state)
{
    (void)state;
    machine.snapshot.process_count = 2;
    fixture_fill_process(&machine, 1, FIXTURE_POOR, 48448);
    *fixture_process(&machine, 1, GP_PROCESS_START) =
        *fixture_process(&machine, 0, GP_PROCESS_START);
    set_memory(1, 5 * MIB);
    watch(GP_LEAK_WINDOWS_MIN, 100 * MIB, 2 * MIB);
    lines_are(true, false, LEAKING("144703488") "48448,1,5242880,0,no,\n");
    *fixture_process(&machine, 1, GP_PID) = fixture_int(7);
    lines_are(true, false, LEAKING("144703488") "7,1,5242880,,,\n");
}

static void the_least_of_a_window_counts(void **state)
{
    (void)state;
    for (int i = 0; i < GP_LEAK_WINDOWS_MIN * GP_LEAK_SAMPLES; i++) {
        bool is_trough = i % GP_LEAK_SAMPLES == 2;
        set_memory(0, is_trough ? 100 * MIB : (INT64_C(200) + i) * MIB);
        sample();
    }
    set_memory(0, 0);
    lines_are(true, false, "48448,0,0,0,no,\n");
}

/* Neither a 0 nor the value of before. */
static void a_sample_that_is_not_known_is_none(void **state)
{
    (void)state;
    watch(GP_LEAK_WINDOWS_MIN - 1, 100 * MIB, 2 * MIB);
    *fixture_process(&machine, 0, GP_PROCESS_MEMORY) = fixture_absent(GP_STATUS_TIMEOUT);
    for (int i = 0; i < 2 * GP_LEAK_SAMPLES; i++)
        sample();
    lines_are(true, false, "48448,0,0,,,\n");
    watch(1, 138 * MIB, 0);
    lines_are(true, false, "48448,0,144703488,209715,yes,51200\n");
}

static void only_the_last_windows_are_kept(void **state)
{
    (void)state;
    watch(GP_LEAK_WINDOWS, 100 * MIB, 2 * MIB);
    watch(GP_LEAK_WINDOWS - 1, 400 * MIB, 0);
    lines_are(true, false, "48448,0,419430400,0,no,\n");
    step_s *= 2; /* with their times */
    watch(GP_LEAK_WINDOWS, 400 * MIB, 2 * MIB);
    lines_are(true, false, "48448,0,551550976,104858,yes,102400\n");
}

/* Of 2016 pairs 101 do not rise, which is too many; without the oldest window it would be 38. */
static void the_oldest_window_counts(void **state)
{
    (void)state;
    watch(1, 2000 * MIB, 0);
    watch(GP_LEAK_WINDOWS - 2, 100 * MIB, 2 * MIB);
    watch(1, (100 + 2 * 24) * MIB, 0);
    lines_are(true, false, "48448,0,155189248,209715,no,\n");
    watch(1, 400 * MIB, 0);
    lines_are(true, false, "48448,0,419430400,209715,yes,51200\n");
}

static void those_that_rise_come_first(void **state)
{
    (void)state;
    static const struct {
        int64_t pid, growth;
    } processes[] = {{11, -4 * MIB}, {12, 2 * MIB}, {13, 4 * MIB}};
    machine.snapshot.process_count = 3;
    machine.devices[FIXTURE_WELL].process_count = 0;
    for (int i = 0; i < 3; i++)
        fixture_fill_process(&machine, i, FIXTURE_WELL, processes[i].pid);
    for (int n = 0; n < GP_LEAK_WINDOWS_MIN * GP_LEAK_SAMPLES; n++) {
        for (int i = 0; i < 3; i++)
            set_memory(i, 100 * MIB + processes[i].growth * (n / GP_LEAK_SAMPLES));
        sample();
    }
    lines_are(true, false,
              "13,0,184549376,419430,yes,25600\n12,0,144703488,209715,yes,51200\n"
              "11,0,25165824,-419430,no,\n");
}

static void lines_for_people(void **state)
{
    (void)state;
    static const char header[] =
        "     PID USER       GPU  GPU-MiB      MiB/min   FULL IN  COMMAND\n";
    static const char command[] = "/usr/bin/python train.py --name \"a, b\"";
    char expected[512];
    watch(1, 100 * MIB, 0);
    (void)snprintf(expected, sizeof(expected),
                   "%s   48448 alice        0      100            …            %s\n", header,
                   command);
    lines_are(false, true, expected);
    watch(GP_LEAK_WINDOWS_MIN, 102 * MIB, 2 * MIB);
    (void)snprintf(expected, sizeof(expected),
                   "   48448 alice        0      140        +12.0   14h13m  %s\n", command);
    lines_are(false, false, expected);
    *fixture_value(&machine, FIXTURE_WELL, GP_MEMORY_FREE) = fixture_int(0); /* it is full */
    (void)snprintf(expected, sizeof(expected),
                   "   48448 alice        0      140        +12.0    0h00m  %s\n", command);
    lines_are(false, false, expected);
    lines_are(true, false, "48448,0,146800640,209715,yes,0\n");
    /* free memory of an earlier sample says nothing of when it is full */
    fixture_value(&machine, FIXTURE_WELL, GP_MEMORY_FREE)->status = GP_STATUS_STALE;
    (void)snprintf(expected, sizeof(expected),
                   "   48448 alice        0      140        +12.0         -  %s\n", command);
    lines_are(false, false, expected);
    *fixture_process(&machine, 0, GP_PROCESS_USER) = fixture_absent(GP_STATUS_NO_PERMISSION);
    *fixture_process(&machine, 0, GP_PROCESS_COMMAND) = fixture_absent(GP_STATUS_NO_PERMISSION);
    watch(GP_LEAK_WINDOWS, 102 * MIB, 0);
    lines_are(false, false, "   48448 -            0      102         +0.0         -  ?\n");
}

/* Ten minutes long caches may still fill. */
static void one_that_is_young(void **state)
{
    (void)state;
    uint64_t start_ns;
    assert_true(gp_clock_parse_rfc3339("2026-11-20T09:00:00.000+01:00", &start_ns));
    *fixture_process(&machine, 0, GP_PROCESS_COMMAND) = fixture_text("x");
    watch(GP_LEAK_WINDOWS_MIN, 102 * MIB, 2 * MIB);
    machine.snapshot.wall_ns = start_ns + GP_LEAK_YOUNG_S * GP_NS_PER_S;
    lines_are(false, false, "   48448 alice        0      140        +12.0   14h13m  x\n");
    machine.snapshot.wall_ns--;
    lines_are(false, false,
              "   48448 alice        0      140        +12.0   14h13m  x"
              "  (young: caches may still fill)\n");
    watch(GP_LEAK_WINDOWS, 102 * MIB, 0);
    lines_are(false, false, "   48448 alice        0      102         +0.0         -  x\n");
}

static void without_memory(void **state)
{
    (void)state;
    alloc_fail_from(0);
    struct gp_leaks *none = gp_leaks_new();
    int r = gp_leaks_take(leaks, &machine.snapshot);
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 16);
    gp_leaks_add(&sb, leaks, &machine.snapshot, true, true);
    alloc_fail_from(-1);
    assert_null(none);
    gp_leaks_free(none);
    assert_int_equal(r, GP_ENOMEM);
    assert_int_equal(sb.len, 0);
    gp_strbuf_fini(&sb);
    sample(); /* nothing of it has stayed */
}

#define SAMPLES(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_a_leak),
        cmocka_unit_test(the_slope_is_the_jobs_own),
        cmocka_unit_test(too_little_is_not_known),
        cmocka_unit_test(how_many_pairs_rise),
        cmocka_unit_test(the_middle_of_the_slopes),
        SAMPLES(as_many_windows_as_are_needed),
        SAMPLES(a_pid_that_is_used_again),
        SAMPLES(one_that_is_gone_is_forgotten),
        SAMPLES(each_gpu_and_each_process_for_itself),
        SAMPLES(the_least_of_a_window_counts),
        SAMPLES(a_sample_that_is_not_known_is_none),
        SAMPLES(only_the_last_windows_are_kept),
        SAMPLES(the_oldest_window_counts),
        SAMPLES(those_that_rise_come_first),
        SAMPLES(lines_for_people),
        SAMPLES(one_that_is_young),
        SAMPLES(without_memory),
    };
    return cmocka_run_group_tests_name("leak", tests, NULL, NULL);
}
