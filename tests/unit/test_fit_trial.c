/* When a trial of gpulse fit-batch is over, by looks at invented programs. */
#include "unit.h"

#include "base/clock.h"
#include "jobs/fit_trial.h"

#include <math.h>

#define MIB 1048576.0

enum { LOOK_MS = 100, LOOKS_MAX = 36000, STEADY_S = 20, HANG_S = 60 };

/* What a program does, by the second. */
struct program {
    double works_at;     /* 0: it never does */
    double rises_until;  /* so long its memory rises, by MIB_S in a second */
    double leak_mib;     /* and after that, in a second */
    double step_s;       /* the leak comes in steps of this length; 0: smoothly */
    double prints_until; /* a line at each look */
    double cpu_until;    /* a CPU is in use */
    double idle_from;    /* the GPU is; 0: never */
    double swings_mib;   /* up and down from look to look */
    unsigned gpu;        /* the one that leaks */
};

enum { RISE_MIB = 500, GPUS = 2 };

static const struct gp_fit_rules short_rules = {.steady_ns = STEADY_S * GP_NS_PER_S,
                                                .hang_ns = HANG_S * GP_NS_PER_S};
static const struct gp_fit_rules line_rules = {
    .has_line = true, .steady_ns = STEADY_S * GP_NS_PER_S, .hang_ns = HANG_S * GP_NS_PER_S};
static const struct gp_fit_rules long_rules = {.is_confirming = true,
                                               .steady_ns = STEADY_S * GP_NS_PER_S,
                                               .confirm_ns = 60 * GP_NS_PER_S,
                                               .settle_ns = 40 * GP_NS_PER_S,
                                               .hang_ns = HANG_S * GP_NS_PER_S};

static double memory_at(const struct program *p, double s, unsigned gpu, unsigned look)
{
    double rise = fmin(s, p->rises_until) * RISE_MIB;
    double since = fmax(0, s - p->rises_until);
    double leak = p->step_s > 0 ? floor(since / p->step_s) * p->step_s : since;
    double swing = look % 2 ? p->swings_mib : 0;
    return (rise + (gpu == p->gpu ? leak * p->leak_mib : 0) + swing) * MIB;
}

static struct gp_fit_look look_at(const struct program *p, unsigned look)
{
    static const uint64_t boot_ns = 1000 * GP_NS_PER_S;
    double s = look * (LOOK_MS / 1e3);
    struct gp_fit_look l = {
        .now_ns = boot_ns + look * (uint64_t)LOOK_MS * GP_NS_PER_MS,
        .printed_bytes = (uint64_t)fmin(look, p->prints_until * 1000 / LOOK_MS),
        .cpu_ns = (uint64_t)(fmin(s, p->cpu_until) * 1e9),
        .works = p->works_at > 0 && s >= p->works_at,
        .gpu_count = GPUS,
    };
    l.is_busy = l.works && (p->idle_from <= 0 || s < p->idle_from);
    for (unsigned i = 0; i < GPUS; i++)
        l.bytes[i] = memory_at(p, s, i, look);
    return l;
}

/* How it ended, and after how many seconds. */
static enum gp_fit_stop play(struct gp_fit_watch *w, const struct program *p,
                             const struct gp_fit_rules *rules, double *ret_s)
{
    enum gp_fit_stop stop = GP_FIT_GO_ON;
    const struct gp_fit_look first = look_at(p, 0);
    unsigned look = 0;
    gp_fit_watch_begin(w, rules, first.now_ns);
    for (; stop == GP_FIT_GO_ON && look < LOOKS_MAX; look++) {
        const struct gp_fit_look l = look_at(p, look);
        stop = gp_fit_watch_take(w, &l);
    }
    *ret_s = (look - 1) * (LOOK_MS / 1e3);
    return stop;
}

static const struct {
    const char *name;
    const struct gp_fit_rules *rules;
    struct program program;
    enum gp_fit_stop stop;
    double least_s, most_s; /* when */
} cases[] = {
    {"trains", &short_rules, {.works_at = 2, .rises_until = 10}, GP_FIT_STEADY, 30, 30.2},
    {"is steady before it works", &short_rules, {.works_at = 30}, GP_FIT_STEADY, 50, 50.2},
    {"leaks",
     &short_rules,
     {.works_at = 2, .rises_until = 10, .leak_mib = 5},
     GP_FIT_GROWING,
     82,
     85},
    {"leaks on the other GPU",
     &short_rules,
     {.works_at = 2, .rises_until = 10, .leak_mib = 5, .gpu = 1},
     GP_FIT_GROWING,
     82,
     85},
    {"leaks in rare steps",
     &short_rules,
     {.works_at = 2, .rises_until = 5, .leak_mib = 5, .step_s = 25},
     GP_FIT_STEADY,
     25,
     25.2},
    {"deadlocks before it works", &short_rules, {.cpu_until = 3}, GP_FIT_STALLED, 63, 64.1},
    {"deadlocks at once", &short_rules, {.works_at = 0}, GP_FIT_STALLED, 60, 60.1},
    {"prints, then deadlocks", &short_rules, {.prints_until = 50}, GP_FIT_STALLED, 110, 110.1},
    {"deadlocks when it has its memory",
     &short_rules,
     {.works_at = 2, .rises_until = 10, .idle_from = 10},
     GP_FIT_STALLED,
     70,
     70.1},
    {"loads on a CPU",
     &short_rules,
     {.cpu_until = 400, .works_at = 400},
     GP_FIT_STEADY,
     420,
     420.2},
    {"trains without a word, until a line",
     &line_rules,
     {.works_at = 2, .rises_until = 10, .cpu_until = 1e9},
     GP_FIT_GO_ON,
     3599,
     3600},
    {"waits on the GPU, until a line",
     &line_rules,
     {.works_at = 2, .rises_until = 10},
     GP_FIT_STALLED,
     70,
     70.1},
    {"long run: trains",
     &long_rules,
     {.works_at = 2, .rises_until = 30},
     GP_FIT_CONFIRMED,
     100,
     100.1},
    {"long run: loads as long as before",
     &long_rules,
     {.works_at = 2, .rises_until = 40},
     GP_FIT_CONFIRMED,
     100,
     100.1},
    {"long run: leaks, and is stopped early",
     &long_rules,
     {.works_at = 2, .rises_until = 30, .leak_mib = 1},
     GP_FIT_GROWING,
     60,
     62},
    {"long run: leaks in steps",
     &long_rules,
     {.works_at = 2, .rises_until = 30, .leak_mib = 1, .step_s = 1},
     GP_FIT_GROWING,
     60,
     80},
    {"long run: swings",
     &long_rules,
     {.works_at = 2, .rises_until = 30, .swings_mib = 900},
     GP_FIT_CONFIRMED,
     100,
     100.1},
    {"long run: warms up, then is level",
     &long_rules,
     {.works_at = 2, .rises_until = 45},
     GP_FIT_CONFIRMED,
     100,
     100.1},
    {"long run: deadlocks",
     &long_rules,
     {.works_at = 2, .rises_until = 30, .idle_from = 31},
     GP_FIT_STALLED,
     90,
     91.1},
};

static void when_it_is_over(void **state)
{
    (void)state;
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_fit_watch w;
        double s;
        enum gp_fit_stop stop = play(&w, &cases[i].program, cases[i].rules, &s);
        if (stop != cases[i].stop || s < cases[i].least_s - 1e-6 || s > cases[i].most_s + 1e-6)
            fail_msg("%s: %s after %.1f s", cases[i].name,
                     stop == GP_FIT_GO_ON ? "goes on" : gp_fit_stop_word(stop), s);
    }
}

static void the_slope_is_the_leak(void **state)
{
    (void)state;
    struct gp_fit_watch w;
    double s;
    const struct program leak = {.works_at = 2, .rises_until = 30, .leak_mib = 3};
    assert_int_equal(play(&w, &leak, &long_rules, &s), GP_FIT_GROWING);
    assert_true(fabs(gp_fit_watch_growth(&w) / MIB - 3) < 0.01);
    /* it is stopped, and frees its memory bit by bit */
    struct gp_fit_look look = w.last;
    for (int i = 0; i < 40; i++) {
        look.now_ns += GP_NS_PER_S;
        look.bytes[0] *= 0.8;
        (void)gp_fit_watch_take(&w, &look);
    }
    assert_true(fabs(gp_fit_watch_growth(&w) / MIB - 3) < 0.01);
    const struct program level = {.works_at = 2, .rises_until = 30};
    (void)play(&w, &level, &long_rules, &s);
    assert_true(gp_fit_watch_growth(&w) <= 0);
}

/* Windows widen: a leak with long steps is found by a run that is long enough. */
static void slow_steps_need_a_long_run(void **state)
{
    (void)state;
    struct gp_fit_watch w;
    double s;
    const struct program leak = {.works_at = 2, .rises_until = 30, .leak_mib = 1, .step_s = 10};
    struct gp_fit_rules rules = long_rules;
    assert_int_equal(play(&w, &leak, &rules, &s), GP_FIT_CONFIRMED);
    rules.confirm_ns = 600 * GP_NS_PER_S;
    assert_int_equal(play(&w, &leak, &rules, &s), GP_FIT_GROWING);
    assert_true(s < 500);
    rules.confirm_ns = 0; /* to its end */
    assert_int_equal(play(&w, &leak, &rules, &s), GP_FIT_GROWING);
}

static void limits_follow_from_earlier_trials(void **state)
{
    (void)state;
    const uint64_t most_ns = 600 * GP_NS_PER_S;
    assert_int_equal(gp_fit_hang_ns(0), 300 * GP_NS_PER_S);
    assert_int_equal(gp_fit_hang_ns(1), 60 * GP_NS_PER_S);
    assert_int_equal(gp_fit_hang_ns(40 * GP_NS_PER_S), 200 * GP_NS_PER_S);
    assert_int_equal(gp_fit_limit_ns(0, most_ns), most_ns);
    assert_int_equal(gp_fit_limit_ns(1, most_ns), 120 * GP_NS_PER_S);
    assert_int_equal(gp_fit_limit_ns(40 * GP_NS_PER_S, most_ns), 400 * GP_NS_PER_S);
    assert_int_equal(gp_fit_limit_ns(90 * GP_NS_PER_S, most_ns), most_ns);
}

static void every_stop_has_a_word(void **state)
{
    (void)state;
    assert_null(gp_fit_stop_word(GP_FIT_GO_ON));
    assert_string_equal(gp_fit_stop_word(GP_FIT_STALLED), "stalled");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(when_it_is_over),
        cmocka_unit_test(the_slope_is_the_leak),
        cmocka_unit_test(slow_steps_need_a_long_run),
        cmocka_unit_test(limits_follow_from_earlier_trials),
        cmocka_unit_test(every_stop_has_a_word),
    };
    return cmocka_run_group_tests_name("fit_trial", tests, NULL, NULL);
}
