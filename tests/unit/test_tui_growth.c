/* Memory that will be full soon, and memory that only looks so: histories made by chance. */
#include "unit.h"

#include "tui/growth.h"

#include <math.h>

enum { LENGTH_S = 2400, HISTORIES = 40, SOON_S = 600, WARNING_S = 120 };

static const double total = 80;

static uint64_t chance_state;

static double chance(double from, double to)
{
    chance_state ^= chance_state << 13;
    chance_state ^= chance_state >> 7;
    chance_state ^= chance_state << 17;
    return from + (to - from) * ((double)(chance_state >> 11) / 9007199254740992.0);
}

/* Each fills LENGTH_S seconds, the oldest first; after what is full nothing counts. */
typedef void make(double *ret);

/* Up now and then, as a job allocates what it needs. */
static void steps(double *ret)
{
    double level = chance(1, 20);
    for (int t = 0; t < LENGTH_S; t++) {
        if (chance(0, 1) < 1 / chance(60, 300))
            level = fmin(level + chance(0.2, 16), total);
        ret[t] = level;
    }
}

/* Two steps, a few seconds apart: what a training job does when it starts. */
static void two_steps(double *ret)
{
    const double at[] = {chance(100, 200), chance(202, 260)};
    const double by[] = {chance(5, 35), chance(5, 35)};
    for (int t = 0; t < LENGTH_S; t++)
        ret[t] = 2 + (t >= at[0] ? by[0] : 0) + (t >= at[1] ? by[1] : 0);
}

/* Jobs one after the other, each larger than the one before. */
static void jobs(double *ret)
{
    double size = chance(5, 12);
    double left = 0;
    bool runs = false;
    for (int t = 0; t < LENGTH_S; t++) {
        if (left-- <= 0) {
            runs = !runs;
            left = chance(3, runs ? 90 : 20);
            size = fmin(size + chance(2, 12), 76);
        }
        ret[t] = runs ? size : 0;
    }
}

/* Buffers that fill steadily and are freed at once. */
static void saw_teeth(double *ret)
{
    const double low = chance(2, 20);
    const double high = chance(low + 5, 78);
    const double period_s = chance(5, 58);
    for (int t = 0; t < LENGTH_S; t++)
        ret[t] = low + (high - low) * fmod(t, period_s) / period_s;
}

/* A model is loaded for up to two minutes, in which the GPU computes nothing. */
static void loads(double *ret)
{
    const double size = chance(20, 76);
    const double takes_s = chance(5, 120);
    for (int t = 0; t < LENGTH_S; t++)
        ret[t] = 1 + fmin(fmax(t - 30.0, 0) / takes_s, 1) * size + chance(0, 0.5);
}

static void noise(double *ret)
{
    const double level = chance(5, 70);
    const double wide = chance(0.01, 8);
    double x = 0;
    for (int t = 0; t < LENGTH_S; t++) {
        x = 0.9 * x + chance(-wide, wide) * 0.4;
        ret[t] = fmin(fmax(level + x, 0), total);
    }
}

/* A few MiB, or many, in each step of a job; with what it needs for a moment. */
static void leaks(double *ret)
{
    const double begins_s = chance(20, 300);
    const double per_s = (total - 20) / chance(240, 1800);
    const double block = chance(0.002, 0.5);
    const double wide = chance(0, 1);
    double level = chance(5, 20);
    double due = 0;
    for (int t = 0; t < LENGTH_S; t++) {
        due += t > begins_s ? per_s : 0;
        for (; due >= block; due -= block)
            level += block;
        ret[t] = fmin(level + chance(0, wide), total);
    }
}

/* When it is foretold, in seconds before it is full; −1: never. */
static double foretold(const double *history, bool is_at_work)
{
    float values[GP_GROWTH_S];
    struct gp_growth growth;
    int full_at = 0;
    while (full_at < LENGTH_S && history[full_at] < total)
        full_at++;
    for (int now = 0; now < full_at; now++) {
        for (int i = 0; i < GP_GROWTH_S; i++)
            values[i] = i <= now ? (float)history[now - i] : -1;
        const bool is_found = gp_growth_find(values, GP_GROWTH_S, total, is_at_work, &growth);
        assert_true(!is_found || gp_growth_is_possible(values));
        if (is_found && growth.full_s < SOON_S)
            return full_at - now;
    }
    return -1;
}

static void only_leaks_are_foretold(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        make *make;
        bool is_leak;
    } kinds[] = {{"steps", steps, false}, {"two steps", two_steps, false},
                 {"jobs", jobs, false},   {"saw-teeth", saw_teeth, false},
                 {"loads", loads, false}, {"noise", noise, false},
                 {"leaks", leaks, true}};
    static double history[LENGTH_S];
    for (size_t k = 0; k < GP_ARRAY_LEN(kinds); k++)
        for (unsigned seed = 1; seed <= HISTORIES; seed++) {
            chance_state = 88172645463325252 + UINT64_C(2654435761) * (seed + 100 * k);
            kinds[k].make(history);
            const double before_s = foretold(history, kinds[k].make != loads);
            if (kinds[k].is_leak ? before_s < WARNING_S : before_s >= 0)
                fail_msg("%s, seed %u: foretold %.0f s before it is full", kinds[k].name, seed,
                         before_s);
        }
}

static void rising(float *ret, size_t count, double gib, double per_s)
{
    for (size_t i = 0; i < count; i++)
        ret[i] = (float)(gib - per_s * (double)i);
}

static void how_fast_and_how_long(void **state)
{
    (void)state;
    struct gp_growth growth;
    float values[GP_GROWTH_S];
    rising(values, 60, 50, 0.5);
    assert_true(gp_growth_find(values, 60, total, true, &growth));
    assert_float_equal(growth.per_s, 0.5, 1e-6);
    assert_float_equal(growth.full_s, 60, 1e-6);
    assert_int_equal(growth.for_s, 60);
    assert_false(gp_growth_find(values, 59, total, true, &growth));
    assert_false(gp_growth_find(values, 60, total, false, &growth)); /* it may be a model */
    assert_false(gp_growth_find(values, 60, 200, true, &growth));    /* in 300 s: too far ahead */
    rising(values, 180, 60, 0.25);
    assert_true(gp_growth_find(values, 180, total, false, &growth));
    assert_int_equal(growth.for_s, 180);
}

static void what_ends_a_rise(void **state)
{
    (void)state;
    struct gp_growth growth;
    float values[GP_GROWTH_S];
    rising(values, 60, 50, 0.5);
    values[0] = 20; /* it was freed */
    assert_false(gp_growth_find(values, 60, total, true, &growth));
    rising(values, 60, 50, 0.5);
    for (int i = 0; i < 30; i++)
        values[i] = values[29]; /* it stands */
    assert_false(gp_growth_find(values, 60, total, true, &growth));
    rising(values, 61, 50, 0.5);
    values[60] = 51; /* it was there before */
    assert_false(gp_growth_find(values, 61, total, true, &growth));
    rising(values, 60, 50, 0.5);
    for (int i = 20; i < 25; i++)
        values[i] = -1; /* not seen */
    assert_false(gp_growth_find(values, 60, total, true, &growth));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_leaks_are_foretold),
        cmocka_unit_test(how_fast_and_how_long),
        cmocka_unit_test(what_ends_a_rise),
    };
    return cmocka_run_group_tests_name("tui_growth", tests, NULL, NULL);
}
