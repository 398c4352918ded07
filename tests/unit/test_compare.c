/* Comparisons: values from tables, and false alarms in noise that resembles that of GPUs. */
#include "unit.h"

#include "tape/compare.h"
#include "tape/line.h"

#include <math.h>

enum { COUNT = 1800 };

static uint64_t chance_state = 88172645463325252;

static double chance(void)
{
    chance_state ^= chance_state << 13;
    chance_state ^= chance_state >> 7;
    chance_state ^= chance_state << 17;
    return ((double)(chance_state >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
    return sqrt(-2 * log(chance())) * cos(6.283185307179586 * chance());
}

/* Noise of 2 % in which each value resembles the one before. */
static void make_noise(double *values, size_t count, double resembles, double mean)
{
    double x = normal();
    for (size_t i = 0; i < count; i++) {
        x = resembles * x + sqrt(1 - resembles * resembles) * normal();
        values[i] = mean * (1 + 0.02 * x);
    }
}

static void near(double is, double expected, double by)
{
    if (!(fabs(is - expected) <= by))
        fail_msg("%.9g is not %.9g", is, expected);
}

static struct gp_compare_mean mean_with(double mean, double error, size_t blocks)
{
    return (struct gp_compare_mean){.mean = mean, .error = error, .block = 10, .blocks = blocks};
}

static void students_t_is_that_of_tables(void **state)
{
    (void)state;
    static const struct {
        double t, p;
        size_t blocks; /* of each: 2 (blocks − 1) degrees of freedom */
    } rows[] = {{2.22814, 0.05, 6},  {3.16927, 0.01, 6},   {4.58689, 0.001, 6}, {1.81246, 0.1, 6},
                {2.08596, 0.05, 11}, {3.84952, 0.001, 11}, {0, 1, 6},           {2.77645, 0.05, 3}};
    for (size_t i = 0; i < GP_ARRAY_LEN(rows); i++) {
        const struct gp_compare_mean a = mean_with(100, 1, rows[i].blocks);
        const struct gp_compare_mean b = mean_with(100 + rows[i].t * sqrt(2), 1, rows[i].blocks);
        const struct gp_compare_result r = gp_compare_means(&a, &b);
        near(r.p, rows[i].p, rows[i].p * 1e-4);
        near(gp_compare_means(&b, &a).p, r.p, 1e-12);
        near((r.low + r.high) / 2, b.mean - a.mean, 1e-9);
    }
    /* Welch: unequal errors have fewer degrees of freedom: 5 (1 + 1/16)² / (1 + 1/256) = 5.62 */
    const struct gp_compare_mean a = mean_with(0, 1, 6);
    const struct gp_compare_mean b = mean_with(10, 0.25, 6);
    const struct gp_compare_result r = gp_compare_means(&a, &b);
    near(r.high - r.low, 2 * 2.488 * sqrt(1.0625), 5e-3);
}

static void constants_differ_or_not(void **state)
{
    (void)state;
    const struct gp_compare_mean a = mean_with(1593, 0, 40);
    const struct gp_compare_mean b = mean_with(1500, 0, 40);
    near(gp_compare_means(&a, &a).p, 1, 0);
    near(gp_compare_means(&a, &b).p, 0, 0);
    near(gp_compare_means(&a, &b).low, -93, 0);
}

/* Against R: poisson.test(c(12, 2), c(1, 1)) and others, with both tails doubled. */
static void counts_are_compared_exactly(void **state)
{
    (void)state;
    struct gp_compare_result r = gp_compare_counts(2, 1, 12, 1);
    near(r.p, 2 * 106.0 / 16384, 1e-9);
    near(r.low, 1.33574, 1e-4);
    near(r.high, 55.1971, 1e-3);
    r = gp_compare_counts(0, 1, 5, 1);
    near(r.p, 2 / 32.0, 1e-9);
    assert_true(isinf(r.high) && r.low > 0);
    r = gp_compare_counts(5, 1, 0, 1);
    near(r.p, 2 / 32.0, 1e-9);
    near(r.low, 0, 0);
    r = gp_compare_counts(10, 1, 20, 2); /* the same rate */
    near(r.p, 1, 0.2);
    assert_true(r.low < 1 && r.high > 1);
    r = gp_compare_counts(0, 1, 0, 1);
    near(r.p, 1, 0);
    r = gp_compare_counts(1000000, 1, 1002000, 1); /* about 1.41 standard deviations */
    near(r.p, 0.1575, 1e-3);
}

static void many_tests_are_corrected(void **state)
{
    (void)state;
    double p[] = {0.01, 0.04, 0.03, 0.005, 0.9};
    static const double expected[] = {0.04, 0.09, 0.09, 0.025, 0.9};
    assert_true(gp_compare_holm(p, GP_ARRAY_LEN(p)));
    for (size_t i = 0; i < GP_ARRAY_LEN(p); i++)
        near(p[i], expected[i], 1e-12);
    assert_true(gp_compare_holm(p, 0));
}

static void the_memory_of_noise_is_found(void **state)
{
    (void)state;
    static double values[20000];
    static const double resembles[] = {0, 0.5, 0.9};
    const struct gp_compare_series series = {values, GP_ARRAY_LEN(values)};
    for (size_t i = 0; i < GP_ARRAY_LEN(resembles); i++) {
        const double expected = (1 + resembles[i]) / (1 - resembles[i]);
        make_noise(values, GP_ARRAY_LEN(values), resembles[i], 100);
        near(gp_compare_memory(&series), expected, expected * 0.2);
    }
    for (size_t i = 0; i < GP_ARRAY_LEN(values); i++)
        values[i] = 5;
    near(gp_compare_memory(&series), 1, 0);
    near(gp_compare_memory(&(struct gp_compare_series){values, 0}), 1, 0);
}

static void too_few_values_say_nothing(void **state)
{
    (void)state;
    double values[40];
    struct gp_compare_series series = {values, GP_ARRAY_LEN(values)};
    make_noise(values, GP_ARRAY_LEN(values), 0, 100);
    assert_int_equal(gp_compare_mean_of(&series, 1, 0).blocks, 10);
    assert_int_equal(gp_compare_mean_of(&series, 2, 0).blocks, 0);
    assert_int_equal(gp_compare_mean_of(&series, 1e30, 0).blocks, 0);
    series.count = 0;
    assert_int_equal(gp_compare_mean_of(&series, 1, 0).blocks, 0);
    series.count = GP_ARRAY_LEN(values);
    values[3] = 1e300;
    assert_int_equal(gp_compare_mean_of(&series, 1, 0).blocks, 0);
    for (size_t i = 0; i < GP_ARRAY_LEN(values); i++)
        values[i] = 54; /* °C; it may be 53.5 or 54.5 */
    near(gp_compare_mean_of(&series, 1, 1).error, sqrt(1 / 12.0), 1e-12);
    near(gp_compare_mean_of(&series, 1, 0).error, 0, 0);
}

static double p_of(const double *a, const double *b, size_t count)
{
    const struct gp_compare_series x = {a, count};
    const struct gp_compare_series y = {b, count};
    const double memory = fmax(gp_compare_memory(&x), gp_compare_memory(&y));
    const struct gp_compare_mean m = gp_compare_mean_of(&x, memory, 0);
    const struct gp_compare_mean n = gp_compare_mean_of(&y, memory, 0);
    return m.blocks && n.blocks ? gp_compare_means(&m, &n).p : 1;
}

/* At a chance of 5 %, and far in the tail, where the correction for many comparisons looks. */
static void noise_is_no_difference(void **state)
{
    (void)state;
    static double a[COUNT];
    static double b[COUNT];
    static const double resembles[] = {0, 0.5, 0.9, 0.98};
    enum { PAIRS = 1000 };
    for (size_t i = 0; i < GP_ARRAY_LEN(resembles); i++) {
        unsigned alarms = 0;
        unsigned grave = 0;
        for (unsigned k = 0; k < PAIRS; k++) {
            make_noise(a, COUNT, resembles[i], 100);
            make_noise(b, COUNT, resembles[i], 100);
            const double p = p_of(a, b, COUNT);
            alarms += p < 0.05;
            grave += p < 0.001;
        }
        if (alarms > PAIRS * 65 / 1000 || grave > 6)
            fail_msg("%g: %u alarms at 5 %%, %u at 0.1 %%", resembles[i], alarms, grave);
    }
}

static void a_difference_is_found(void **state)
{
    (void)state;
    static double a[COUNT];
    static double b[COUNT];
    enum { PAIRS = 200 };
    unsigned found = 0;
    for (unsigned k = 0; k < PAIRS; k++) {
        make_noise(a, COUNT, 0.9, 100);
        make_noise(b, COUNT, 0.9, 97);
        found += p_of(a, b, COUNT) < 0.05 / 100;
    }
    if (found < PAIRS * 95 / 100)
        fail_msg("%u of %u", found, (unsigned)PAIRS);
}

static void a_line_is_bounded(void **state)
{
    (void)state;
    struct gp_line line;
    enum { VALUES = 100000 };
    gp_line_init(&line, 1000);
    for (int i = 0; i < VALUES; i++)
        assert_true(gp_line_add(&line, i, 1000));
    assert_true(line.count < GP_LINE_MOST && line.count >= GP_LINE_MOST / 2);
    double sum = 0;
    for (size_t i = 0; i < line.count; i++) {
        assert_true(i == 0 || line.values[i] > line.values[i - 1]);
        sum += line.values[i];
    }
    const double length = (double)line.step_us / 1000;
    near(sum / (double)line.count, (length * (double)line.count - 1) / 2, 1);
    assert_true(gp_line_add(&line, (double)NAN, 1000));
    assert_true(gp_line_add(&line, 1, INT64_MAX / 8)); /* ends */
    assert_true(line.count < GP_LINE_MOST);
    gp_line_fini(&line);
}

/* Pieces of other lengths than the step: time counts, not pieces. */
static void a_line_weighs_by_time(void **state)
{
    (void)state;
    struct gp_line line;
    gp_line_init(&line, 1000);
    assert_true(gp_line_add(&line, 10, 2500));
    assert_true(gp_line_add(&line, 20, 500));
    assert_true(gp_line_add(&line, 30, 250));
    assert_int_equal(line.count, 3);
    near(line.values[0], 10, 1e-12);
    near(line.values[1], 10, 1e-12);
    near(line.values[2], 15, 1e-12);
    assert_int_equal(line.part_us, 250);
    gp_line_fini(&line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(students_t_is_that_of_tables),
        cmocka_unit_test(constants_differ_or_not),
        cmocka_unit_test(counts_are_compared_exactly),
        cmocka_unit_test(many_tests_are_corrected),
        cmocka_unit_test(the_memory_of_noise_is_found),
        cmocka_unit_test(too_few_values_say_nothing),
        cmocka_unit_test(noise_is_no_difference),
        cmocka_unit_test(a_difference_is_found),
        cmocka_unit_test(a_line_is_bounded),
        cmocka_unit_test(a_line_weighs_by_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
