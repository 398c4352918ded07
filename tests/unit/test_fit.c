/* The search for a batch size: what it tries under known laws of memory, and how good its answers
 * are for random jobs. */
#include "unit.h"

#include "base/err.h"
#include "jobs/fit.h"

#include <math.h>

#define MIB (UINT64_C(1) << 20)

enum { TRIES_MAX = GP_FIT_TRIALS_MAX + GP_FIT_CONFIRMS };

/* ---- known laws ---- */

enum { CAPACITY_MIB = 40000, TOTAL_MIB = 41000, GOAL_MIB = TOTAL_MIB - 3050 };

/* In MiB. */
struct law {
    double fixed;
    double sample;
    double square;    /* for each pair of samples */
    uint64_t step_at; /* from this batch on `step` more */
    double step;
    double longer;     /* the whole run needs so many times as much; 0: as much */
    bool always_tight; /* the allocator retries from the beginning */
    uint64_t hangs_at; /* from this batch on; 0: never */
    bool hangs_long;   /* the long run does */
    double leak;       /* in a second */
};

static double need_mib(const struct law *law, const struct gp_fit_trial *t)
{
    double batch = (double)t->batch;
    double mib = law->fixed + law->sample * batch + law->square * batch * batch;
    mib += law->step_at && t->batch >= law->step_at ? law->step : 0;
    return t->is_confirming && law->longer > 0 ? mib * law->longer : mib;
}

/* Near the end an allocator takes all there is. */
static void try_law(struct gp_fit *fit, const struct law *law, const struct gp_fit_trial *t)
{
    double mib = need_mib(law, t);
    bool hangs = t->is_confirming ? law->hangs_long : law->hangs_at && t->batch >= law->hangs_at;
    if (hangs)
        gp_fit_take(fit, GP_FIT_HUNG, 0, 0);
    else if (mib > CAPACITY_MIB)
        gp_fit_take(fit, GP_FIT_OOM, CAPACITY_MIB * MIB, 0);
    else if (law->leak > 0)
        gp_fit_take(fit, GP_FIT_GROWS, (uint64_t)(mib * (double)MIB), law->leak * (double)MIB);
    else
        gp_fit_take(fit, law->always_tight ? GP_FIT_TIGHT : GP_FIT_OK,
                    (uint64_t)((mib > 0.985 * CAPACITY_MIB ? CAPACITY_MIB : mib) * (double)MIB), 0);
}

static struct gp_fit_request request_of(struct gp_fit_request r)
{
    r.min = r.min ? r.min : 1;
    r.multiple = r.multiple ? r.multiple : 1;
    r.capacity_bytes = CAPACITY_MIB * MIB;
    r.total_bytes = TOTAL_MIB * MIB;
    r.margin = 0.05;
    return r;
}

static void start(struct gp_fit *fit, const struct gp_fit_request *request)
{
    struct gp_err err = {0};
    if (gp_fit_init(fit, request, &err) != 0)
        fail_msg("%s", err.text);
}

static void run_law(struct gp_fit *fit, const struct law *law, const struct gp_fit_request *request)
{
    struct gp_fit_trial t;
    start(fit, request);
    for (size_t i = 0; gp_fit_next(fit, &t); i++) {
        assert_true(i < TRIES_MAX);
        try_law(fit, law, &t);
    }
}

/* "16 64+ 40~ 48x 56! 20^ 32?": + above the goal, ~ TIGHT, x did not run, ! hung, ^ grows,
 * ? confirming. */
static const char *tries_of(const struct gp_fit *fit)
{
    static char text[2000];
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < fit->trial_count; i++) {
        const struct gp_fit_trial *t = &fit->trials[i];
        const char *mark = t->verdict == GP_FIT_HUNG         ? "!"
                           : t->verdict == GP_FIT_GROWS      ? "^"
                           : t->verdict >= GP_FIT_OOM        ? "x"
                           : t->verdict == GP_FIT_TIGHT      ? "~"
                           : t->peak_bytes > fit->goal_bytes ? "+"
                                                             : "";
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%llu%s%s", i ? " " : "",
                                 (unsigned long long)t->batch, t->is_confirming ? "?" : "", mark);
    }
    return text;
}

static const struct law linear = {.fixed = 2000, .sample = 100};
static const struct law flat = {.fixed = 2000};
static const struct law flat_then_wall = {.fixed = 2000, .step_at = 50, .step = 1e6};
static const struct law jump = {.fixed = 2000, .sample = 100, .step_at = 300, .step = 6000};
static const struct law curved = {.fixed = 2000, .sample = 10, .square = 1};
static const struct law flattens = {.fixed = 2000, .sample = 300, .square = -0.3};
static const struct law too_large = {.fixed = 50000, .sample = 100};
static const struct law above_goal = {.fixed = 38000, .sample = 100};
static const struct law takes_all = {.fixed = 39000};
static const struct law takes_most = {.fixed = 30000, .sample = 0.5};
static const struct law takes_most_then_wall = {.fixed = 30000, .step_at = 12, .step = 1e6};
static const struct law hangs = {.fixed = 2000, .sample = 100, .hangs_at = 200};
static const struct law hangs_at_once = {.fixed = 2000, .hangs_at = 1};
static const struct law hangs_above_wall = {.fixed = 2000, .sample = 100, .hangs_at = 1000};
static const struct law hangs_long = {.fixed = 2000, .sample = 100, .hangs_long = true};
static const struct law leaks = {.fixed = 2000, .sample = 100, .leak = 5};
static const struct law retries = {.fixed = 2000, .sample = 100, .always_tight = true};
static const struct law grows = {.fixed = 2000, .sample = 100, .longer = 1.04};
static const struct law doubles = {.fixed = 2000, .sample = 100, .longer = 1.2};
static const struct law explodes = {.fixed = 2000, .sample = 100, .longer = 3};

static const struct {
    const char *name;
    const struct law *law;
    struct gp_fit_request request; /* what differs from request_of() */
    const char *tries;
    uint64_t batch;
    enum gp_fit_end end;
} cases[] = {
    {"linear", &linear, {0}, "1 4 16 64 256 359 360+", 359, GP_FIT_END_FOUND},
    {"from 100", &linear, {.min = 100}, "100 400x 250 359 379~ 369+", 359, GP_FIT_END_FOUND},
    {"multiple", &linear, {.multiple = 8}, "8 32 128 352 360+", 352, GP_FIT_END_FOUND},
    {"odd bounds",
     &linear,
     {.min = 9, .max = 107, .multiple = 8},
     "16 64 104",
     104,
     GP_FIT_END_AT_MAX},
    {"halving",
     &linear,
     {.start = 1000},
     "1000x 500x 250 375~ 312 359 367+",
     359,
     GP_FIT_END_FOUND},
    {"tight at once", &linear, {.start = 375}, "375~ 187 281 359 367+", 359, GP_FIT_END_FOUND},
    {"max", &linear, {.max = 100}, "1 4 16 64 100", 100, GP_FIT_END_AT_MAX},
    {"max is min", &linear, {.min = 7, .max = 7}, "7", 7, GP_FIT_END_AT_MAX},
    {"max too large", &linear, {.max = 360}, "1 4 16 64 256 359 360+", 359, GP_FIT_END_FOUND},
    {"few trials", &linear, {.trials = 5}, "1 4 16 64 256", 256, GP_FIT_END_AT_BUDGET},
    {"too few",
     &linear,
     {.start = 1000, .trials = 2, .confirm = true},
     "1000x 500x",
     0,
     GP_FIT_END_AT_BUDGET},
    {"jump", &jump, {0}, "1 4 16 64 256 359x 307+ 281 294 300+", 294, GP_FIT_END_FOUND},
    {"curved", &curved, {0}, "1 4 16 64 256x 160 210x 185+ 172 183", 183, GP_FIT_END_FOUND},
    {"flattens", &flattens, {.min = 100}, "100 400x 250x 175x 137 141+", 137, GP_FIT_END_FOUND},
    {"nothing", &too_large, {.confirm = true}, "1x", 0, GP_FIT_END_NOTHING},
    {"nothing, halved", &too_large, {.min = 4, .start = 10}, "10x 5x 4x", 0, GP_FIT_END_NOTHING},
    {"nothing below the goal", &above_goal, {0}, "1+ 4+", 0, GP_FIT_END_NOTHING},
    {"nothing below the goal, one size", &takes_all, {.max = 1}, "1+", 0, GP_FIT_END_NOTHING},
    {"takes all", &takes_all, {.confirm = true}, "1+ 4+ 16+ 64+", 0, GP_FIT_END_PREALLOCATES},
    {"takes all, max", &takes_all, {.max = 9}, "1+ 4+ 9+", 0, GP_FIT_END_PREALLOCATES},
    {"takes all, few trials", &takes_all, {.trials = 2}, "1+ 4+", 0, GP_FIT_END_NOTHING},
    {"takes most", &takes_most, {0}, "1 4 16 64", 0, GP_FIT_END_PREALLOCATES},
    {"takes most, max", &takes_most, {.max = 4}, "1 4", 4, GP_FIT_END_AT_MAX},
    {"takes most, higher max", &takes_most, {.max = 32}, "1 4 16 32", 32, GP_FIT_END_AT_MAX},
    {"takes most, highest max", &takes_most, {.max = 64}, "1 4 16 64", 0, GP_FIT_END_PREALLOCATES},
    {"takes most, then a wall",
     &takes_most_then_wall,
     {0},
     "1 4 16x 10 13x 11 12x",
     0,
     GP_FIT_END_PREALLOCATES},
    {"hangs", &hangs, {.confirm = true}, "1 4 16 64 256! 160 208! 160?", 160, GP_FIT_END_HUNG},
    {"hangs at once", &hangs_at_once, {0}, "1!", 0, GP_FIT_END_ALL_HUNG},
    {"hangs twice", &hangs_at_once, {.start = 64}, "64! 32!", 0, GP_FIT_END_ALL_HUNG},
    {"hangs above the wall",
     &hangs_above_wall,
     {.start = 1000},
     "1000! 500x 250 375~ 312 359 367+",
     359,
     GP_FIT_END_FOUND},
    {"hangs in the long run",
     &hangs_long,
     {.max = 64, .confirm = true},
     "1 4 16 64 64?!",
     64,
     GP_FIT_END_HUNG_LONG},
    {"leaks", &leaks, {.max = 64, .confirm = true}, "1^ 4^ 16^ 64^ 64?^", 64, GP_FIT_END_GROWS},
    {"retries",
     &retries,
     {0},
     "1~ 4~ 16~ 64~ 256~ 1024x 640x 448x 352~ 400x 376~ 364~ 358~",
     358,
     GP_FIT_END_FOUND},
    {"independent",
     &flat,
     {.confirm = true},
     "1 4 16 32 64 128 256 512 1024 2048 4096 8192 16384 32768",
     0,
     GP_FIT_END_INDEPENDENT},
    {"independent, max", &flat, {.max = 100}, "1 4 16 32 64 100", 100, GP_FIT_END_AT_MAX},
    {"independent, far max",
     &flat,
     {.max = 100000, .trials = 5},
     "1 4 16 32 64",
     64,
     GP_FIT_END_AT_BUDGET},
    {"no line", &flat_then_wall, {0}, "1 4 16 32 64x 48 56x 52x 50x 49", 49, GP_FIT_END_FOUND},
    {"confirmed", &grows, {.confirm = true}, "1 4 16 64 256 359 360+ 359?~", 359, GP_FIT_END_FOUND},
    {"stepped down",
     &doubles,
     {.confirm = true},
     "1 4 16 64 256 359 360+ 359?x 333?x 309?~",
     309,
     GP_FIT_END_FOUND},
    {"max, stepped down",
     &doubles,
     {.max = 350, .confirm = true},
     "1 4 16 64 256 350 350?x 325?x 302?+",
     302,
     GP_FIT_END_FOUND},
    {"stepped down to min",
     &doubles,
     {.min = 350, .confirm = true},
     "350 1400x 875x 612x 481x 415x 382x 366+ 359 359?x 350?x",
     0,
     GP_FIT_END_UNCONFIRMED},
    {"never confirmed",
     &explodes,
     {.confirm = true},
     "1 4 16 64 256 359 360+ 359?x 333?x 309?x 287?x 266?x",
     0,
     GP_FIT_END_UNCONFIRMED},
};

static void what_is_tried(void **state)
{
    (void)state;
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_fit fit;
        struct gp_fit_request request = request_of(cases[i].request);
        run_law(&fit, cases[i].law, &request);
        struct gp_fit_answer answer = gp_fit_answer(&fit);
        if (strcmp(tries_of(&fit), cases[i].tries) != 0 || answer.batch != cases[i].batch ||
            answer.end != cases[i].end)
            fail_msg("%s: tried %s, chose %llu: %s", cases[i].name, tries_of(&fit),
                     (unsigned long long)answer.batch, gp_fit_end_text(answer.end));
    }
}

/* ---- the answer ---- */

static void assert_near(double value, double wanted, double most_off)
{
    if (!(fabs(value - wanted) <= most_off))
        fail_msg("%.17g is not %.17g", value, wanted);
}

static void a_line_is_found_exactly(void **state)
{
    (void)state;
    struct gp_fit fit;
    struct gp_fit_request request = request_of((struct gp_fit_request){.confirm = true});
    struct law law = linear;
    law.longer = 1.02;
    run_law(&fit, &law, &request);
    struct gp_fit_answer answer = gp_fit_answer(&fit);
    assert_int_equal(fit.trial_count, 8);
    assert_true(answer.line.known);
    assert_int_equal(answer.line.points, 7); /* not the confirming run, which needs more */
    assert_near(answer.line.fixed_bytes, 2000.0 * MIB, 1);
    assert_near(answer.line.sample_bytes, 100.0 * MIB, 0.01);
    assert_near(answer.line.r2, 1, 1e-12);
    assert_near((double)gp_fit_need(&fit, 512), 53200.0 * MIB, 2);
    assert_false(answer.is_independent);

    request.confirm = false;
    run_law(&fit, &law, &request);
    answer = gp_fit_answer(&fit);
    assert_int_equal(answer.peak_bytes, 37900 * MIB);
    assert_int_equal(answer.free_bytes, 2100 * MIB);
}

static void what_the_end_cut_is_no_point(void **state)
{
    (void)state;
    struct gp_fit fit;
    struct gp_fit_request request = request_of((struct gp_fit_request){.start = 1000});
    run_law(&fit, &linear, &request);
    assert_string_equal(tries_of(&fit), "1000x 500x 250 375~ 312 359 367+");
    assert_int_equal(gp_fit_answer(&fit).line.points, 4);
}

static void the_larger_peak_counts(void **state)
{
    (void)state;
    struct gp_fit fit;
    struct gp_fit_request request = request_of((struct gp_fit_request){.confirm = true});
    struct law law = linear;
    law.longer = 1.02;
    run_law(&fit, &law, &request);
    struct gp_fit_answer answer = gp_fit_answer(&fit);
    assert_int_equal(answer.batch, 359);
    assert_near((double)answer.peak_bytes, 37900 * 1.02 * MIB, 1);
    assert_near((double)answer.free_bytes, (40000 - 37900 * 1.02) * MIB, 1);
    law.longer = 0.9;
    run_law(&fit, &law, &request);
    assert_int_equal(gp_fit_answer(&fit).peak_bytes, 37900 * MIB);
}

static void growth_says_when_the_gpu_is_full(void **state)
{
    (void)state;
    struct gp_fit fit;
    struct gp_fit_request request = request_of((struct gp_fit_request){.max = 80, .confirm = true});
    run_law(&fit, &leaks, &request);
    struct gp_fit_answer answer = gp_fit_answer(&fit);
    assert_near(answer.growth_bytes_s, 5.0 * MIB, 1);
    assert_near(answer.full_in_s, 30000.0 / 5, 0.01);
    run_law(&fit, &linear, &request);
    assert_near(gp_fit_answer(&fit).full_in_s, 0, 0);
}

/* What an interrupted search may say of the sizes so far. */
static void the_best_so_far(void **state)
{
    (void)state;
    static const struct {
        const struct law *law;
        uint64_t best[9]; /* before each trial, and in the end */
    } runs[] = {
        {&linear, {0, 1, 4, 16, 64, 80, 80}},
        {&leaks, {0, 0, 0, 0, 0, 0, 0}},
        {&too_large, {0, 0}},
        {&explodes, {0, 1, 4, 16, 64, 80, 80}},
        {&hangs_long, {0, 1, 4, 16, 64, 80, 64}},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(runs); i++) {
        struct gp_fit fit;
        struct gp_fit_trial t;
        struct gp_fit_request request =
            request_of((struct gp_fit_request){.max = 80, .confirm = true});
        start(&fit, &request);
        size_t at = 0;
        for (; gp_fit_next(&fit, &t); at++) {
            assert_int_equal(gp_fit_best(&fit), runs[i].best[at]);
            try_law(&fit, runs[i].law, &t);
        }
        assert_int_equal(gp_fit_best(&fit), runs[i].best[at]);
    }
}

static void memory_that_does_not_depend_is_told(void **state)
{
    (void)state;
    struct gp_fit fit;
    struct gp_fit_request request = request_of((struct gp_fit_request){.max = 100});
    run_law(&fit, &flat, &request);
    struct gp_fit_answer answer = gp_fit_answer(&fit);
    assert_true(answer.is_independent);
    assert_int_equal(answer.batch, 100);
    assert_int_equal(gp_fit_need(&fit, 200), 0);
    run_law(&fit, &linear, &request);
    assert_false(gp_fit_answer(&fit).is_independent);
    assert_near((double)gp_fit_need(&fit, 200), 22000.0 * MIB, 2);
    request.max = 0;
    run_law(&fit, &flat_then_wall, &request);
    assert_false(gp_fit_answer(&fit).is_independent);
    /* one point says nothing of it */
    request.max = 1;
    run_law(&fit, &flat, &request);
    assert_false(gp_fit_answer(&fit).is_independent);
    assert_false(gp_fit_answer(&fit).line.known);
    assert_int_equal(gp_fit_need(&fit, 200), 0);
}

/* ---- the state ---- */

static void one_that_fails_otherwise_ends_it(void **state)
{
    (void)state;
    static const struct {
        enum gp_fit_verdict verdict;
        enum gp_fit_end end;
    } ends[] = {{GP_FIT_CRASH, GP_FIT_END_CRASHED}, {GP_FIT_HOST, GP_FIT_END_AT_HOST}};
    for (size_t i = 0; i < GP_ARRAY_LEN(ends); i++)
        for (size_t at = 0; at < 8; at++) { /* the last is the confirming run */
            struct gp_fit fit;
            struct gp_fit_trial t;
            struct gp_fit_request request = request_of((struct gp_fit_request){.confirm = true});
            start(&fit, &request);
            for (size_t k = 0; k < at; k++) {
                assert_true(gp_fit_next(&fit, &t));
                try_law(&fit, &linear, &t);
            }
            assert_true(gp_fit_next(&fit, &t));
            assert_int_equal(t.is_confirming, at == 7);
            gp_fit_take(&fit, ends[i].verdict, 7 * MIB, 0);
            assert_false(gp_fit_next(&fit, &t));
            assert_int_equal(gp_fit_answer(&fit).end, ends[i].end);
            assert_int_equal(gp_fit_answer(&fit).batch, 0);
            assert_int_equal(fit.trial_count, at + 1);
            assert_int_equal(fit.trials[at].verdict, ends[i].verdict);
            assert_int_equal(fit.trials[at].peak_bytes, 7 * MIB);
            static const uint64_t fits[] = {0, 1, 4, 16, 64, 256, 359, 359};
            assert_int_equal(fit.fits, fits[at]);
        }
}

static void it_waits_for_a_result(void **state)
{
    (void)state;
    struct gp_fit fit;
    struct gp_fit_trial t;
    struct gp_fit_request request = request_of((struct gp_fit_request){.start = 5, .max = 5});
    start(&fit, &request);
    for (int i = 0; i < 3; i++) {
        assert_true(gp_fit_next(&fit, &t));
        assert_int_equal(t.batch, 5);
    }
    assert_int_equal(gp_fit_answer(&fit).end, GP_FIT_END_SEARCHING);
    assert_int_equal(gp_fit_answer(&fit).batch, 0);
    gp_fit_take(&fit, GP_FIT_OK, MIB, 0);
    assert_false(gp_fit_next(&fit, &t));
    gp_fit_take(&fit, GP_FIT_CRASH, MIB, 0); /* too late */
    assert_int_equal(fit.trial_count, 1);
    assert_int_equal(gp_fit_answer(&fit).end, GP_FIT_END_AT_MAX);
    assert_int_equal(gp_fit_answer(&fit).batch, 5);
}

static void the_margin_has_a_floor(void **state)
{
    (void)state;
    static const struct {
        double margin;
        double goal_mib;
    } margins[] = {{0, 39488}, {0.01, 39488}, {0.05, 37950}, {0.5, 19500}};
    for (size_t i = 0; i < GP_ARRAY_LEN(margins); i++) {
        struct gp_fit fit;
        struct gp_fit_request request = request_of((struct gp_fit_request){0});
        request.margin = margins[i].margin;
        start(&fit, &request);
        assert_near((double)fit.goal_bytes, margins[i].goal_mib * MIB, 1);
    }
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    const uint64_t much = CAPACITY_MIB * MIB;
    const struct gp_fit_request good = {
        .min = 8, .multiple = 8, .capacity_bytes = much, .total_bytes = much, .margin = 0.05};
    struct gp_fit_request bad[16];
    size_t count = 0;
#define BAD(change) bad[count] = good, bad[count++].change
    BAD(min = 0);
    BAD(multiple = 0);
    BAD(max = 7);
    BAD(start = 7);
    BAD(min = UINT64_MAX);
    BAD(max = UINT64_MAX);
    BAD(multiple = UINT64_MAX);
    BAD(min = GP_FIT_BATCH_MAX); /* its multiple is larger */
    BAD(trials = GP_FIT_TRIALS_MAX + 1);
    BAD(capacity_bytes = 0);
    BAD(capacity_bytes = 2000 * MIB); /* as large as the margin */
    BAD(total_bytes = much - 1);
    BAD(margin = -0.01);
    BAD(margin = 1);
    BAD(margin = (double)NAN);
#undef BAD
    bad[count] = good; /* no multiple of 8 between them */
    bad[count].min = 9;
    bad[count++].max = 15;
    for (size_t i = 0; i < count; i++) {
        struct gp_fit fit = {.goal_bytes = 7};
        struct gp_err err = {0};
        if (gp_fit_init(&fit, &bad[i], &err) != GP_EUSAGE)
            fail_msg("request %zu is not refused", i);
        assert_true(err.text[0] != '\0');
        assert_int_equal(fit.goal_bytes, 7);
    }
    struct gp_fit fit;
    assert_int_equal(gp_fit_init(&fit, &good, NULL), 0);
}

static void everything_has_a_name(void **state)
{
    (void)state;
    assert_string_equal(gp_fit_verdict_word(GP_FIT_TIGHT), "tight");
    for (int i = 0; i < GP_FIT_VERDICT__COUNT; i++)
        assert_non_null(gp_fit_verdict_word((enum gp_fit_verdict)i));
    for (int i = 0; i < GP_FIT_END__COUNT; i++) {
        assert_non_null(gp_fit_end_word((enum gp_fit_end)i));
        assert_non_null(gp_fit_end_text((enum gp_fit_end)i));
    }
    assert_int_equal(gp_fit_end_code(GP_FIT_END_AT_MAX), GP_OK);
    assert_int_equal(gp_fit_end_code(GP_FIT_END_GROWS), GP_EPARTIAL);
}

/* ---- by chance ---- */

static uint64_t seed;

static double chance(double from, double to)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return from + (to - from) * ((double)(seed >> 11) / (double)(UINT64_C(1) << 53));
}

static size_t pick(size_t count)
{
    return (size_t)chance(0, (double)count);
}

/* Whatever the trials do, it ends in time, within the bounds, and tries nothing twice. */
static void it_always_ends(void **state)
{
    (void)state;
    seed = 3;
    for (int run = 0; run < 20000; run++) {
        struct gp_fit fit;
        struct gp_fit_trial t;
        struct gp_fit_request r = request_of((struct gp_fit_request){
            .min = 1 + pick(40), .multiple = 1 + pick(20), .confirm = pick(2)});
        r.start = pick(2) ? r.min + 20 + pick(100000) : 0;
        r.max = pick(2) ? r.min + r.start + 20 + pick(1000) : 0;
        r.trials = (unsigned)pick(GP_FIT_TRIALS_MAX + 1);
        start(&fit, &r);
        double death = chance(0, 1);
        size_t confirming = 0;
        while (gp_fit_next(&fit, &t)) {
            confirming += t.is_confirming;
            assert_true(confirming <= GP_FIT_CONFIRMS);
            assert_true(fit.trial_count - confirming + t.is_confirming <= fit.request.trials);
            assert_true(t.batch >= r.min && t.batch % r.multiple == 0);
            assert_true(t.batch <= (r.max ? r.max : GP_FIT_BATCH_MAX));
            for (size_t i = 0; i < fit.trial_count; i++)
                if (t.is_confirming == fit.trials[i].is_confirming)
                    assert_true(t.batch != fit.trials[i].batch);
            gp_fit_take(&fit,
                        chance(0, 1) < death ? GP_FIT_OOM
                                             : (enum gp_fit_verdict)pick(GP_FIT_HUNG + 1),
                        (uint64_t)chance(0, 1.1 * CAPACITY_MIB) * MIB, 0);
        }
        struct gp_fit_answer answer = gp_fit_answer(&fit);
        assert_true(answer.end != GP_FIT_END_SEARCHING);
        assert_true(fit.trial_count <= fit.request.trials + confirming);
        if (answer.batch)
            assert_true(answer.batch >= fit.request.min && answer.peak_bytes > 0);
    }
}

/* A program that does not use the batch, with an allocator that takes more or less. */
static void noise_is_no_law(void **state)
{
    (void)state;
    int independent = 0;
    seed = 5;
    for (int run = 0; run < 200; run++) {
        struct gp_fit fit;
        struct gp_fit_trial t;
        struct gp_fit_request request = request_of((struct gp_fit_request){0});
        start(&fit, &request);
        while (gp_fit_next(&fit, &t))
            gp_fit_take(&fit, GP_FIT_OK, (uint64_t)chance(20000, 22000) * MIB, 0);
        independent += gp_fit_answer(&fit).end == GP_FIT_END_INDEPENDENT;
    }
    print_message("# noise: %d of 200 are told to be independent\n", independent);
    assert_true(independent >= 190);
}

/* A training job as the driver sees it, in MiB. */
struct job {
    double capacity;
    double context;
    double fixed, sample, square;
    double step_at, step; /* a workspace */
    double growth;        /* of what is alive, in the long run */
    double slack;         /* that an allocator cannot give back */
};

static struct job draw_job(void)
{
    static const double gib[] = {11, 24, 40, 80, 141};
    struct job j = {.capacity = gib[pick(GP_ARRAY_LEN(gib))] * 1024 * 0.985};
    j.context = chance(400, 1200);
    j.fixed = j.capacity * chance(0.02, 0.6);
    double fills = pow(10, chance(0.7, 3.2)); /* batch at which a line is at the end */
    j.sample = (j.capacity - j.context - j.fixed) / fills;
    j.square = chance(0, 1) < 0.15 ? j.sample / fills * chance(0, 0.5) : 0;
    j.step_at = fills * chance(0.05, 0.6);
    j.step = chance(0, 1) < 0.35 ? j.capacity * chance(0.01, 0.06) : 0;
    j.growth = chance(1, 1.04);
    j.slack = chance(0, 0.04);
    return j;
}

static double alive(const struct job *j, double batch, bool long_run)
{
    double step = batch >= j->step_at ? j->step : 0;
    return (j->fixed + j->sample * batch + j->square * batch * batch + step) *
           (long_run ? j->growth : 1);
}

static bool survives(const struct job *j, uint64_t batch, bool long_run)
{
    return j->context + alive(j, (double)batch, long_run) * (1 + j->slack) <= j->capacity;
}

/* The largest batch whose long run survives. */
static uint64_t best_of(const struct job *j)
{
    uint64_t batch = 0;
    for (uint64_t step = 1 << 20; step > 0; step /= 2)
        if (survives(j, batch + step, true))
            batch += step;
    return batch;
}

static void try_job(struct gp_fit *fit, const struct job *j, const struct gp_fit_trial *t)
{
    if (!survives(j, t->batch, t->is_confirming)) {
        gp_fit_take(fit, GP_FIT_OOM, (uint64_t)j->capacity * MIB, 0);
        return;
    }
    double peak = j->context + alive(j, (double)t->batch, t->is_confirming) *
                                   (1 + fmax(j->slack, chance(0.01, 0.10)));
    gp_fit_take(fit, GP_FIT_OK, (uint64_t)(fmin(j->capacity, ceil(peak / 20) * 20) * MIB), 0);
}

static int compare(const void *a, const void *b)
{
    const double *x = a;
    const double *y = b;
    return (*x > *y) - (*x < *y);
}

static double quantile(double *values, size_t count, double part)
{
    qsort(values, count, sizeof(*values), compare);
    return values[(size_t)(part * (double)(count - 1))];
}

enum { JOBS = 200 };

static void check_jobs(double margin, bool confirm)
{
    double share[JOBS];
    double trials[JOBS];
    double off[JOBS]; /* what twice the best batch would need */
    size_t died = 0;
    seed = 1;
    for (size_t n = 0; n < JOBS;) {
        struct job j = draw_job();
        uint64_t best = best_of(&j);
        if (best < 2)
            continue;
        struct gp_fit fit;
        struct gp_fit_trial t;
        struct gp_fit_request request = {.min = 1,
                                         .multiple = 1,
                                         .capacity_bytes = (uint64_t)(j.capacity * MIB),
                                         .total_bytes = (uint64_t)(j.capacity / 0.985 * MIB),
                                         .margin = margin,
                                         .confirm = confirm};
        start(&fit, &request);
        while (gp_fit_next(&fit, &t))
            try_job(&fit, &j, &t);
        uint64_t batch = gp_fit_answer(&fit).batch;
        bool dies = batch > 0 && !survives(&j, batch, true);
        double need = j.context + alive(&j, 2.0 * (double)best, false) * 1.055;
        died += dies;
        share[n] = dies ? 0 : (double)batch / (double)best;
        trials[n] = (double)fit.trial_count;
        off[n++] = fabs((double)gp_fit_need(&fit, 2 * best) / MIB / need - 1);
    }
    double median = quantile(share, JOBS, 0.5);
    double median_trials = quantile(trials, JOBS, 0.5);
    double median_off = quantile(off, JOBS, 0.5);
    print_message(
        "# margin %.0f %%, %sconfirmed: %.1f %% die, %.2f of the safe maximum (worst tenth "
        "%.2f), %.0f trials (most %.0f), twice the batch is %.1f %% off\n",
        margin * 100, confirm ? "" : "not ", 100.0 * (double)died / JOBS, median,
        quantile(share, JOBS, 0.1), median_trials, quantile(trials, JOBS, 1), median_off * 100);
    assert_true(died * 100 <= JOBS);
    assert_true(median >= 0.85);
    assert_true(median_trials <= 10);
    assert_true(median_off <= 0.04);
}

static void random_jobs_live(void **state)
{
    (void)state;
    check_jobs(0.05, false);
    check_jobs(0.02, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_tried),
        cmocka_unit_test(a_line_is_found_exactly),
        cmocka_unit_test(what_the_end_cut_is_no_point),
        cmocka_unit_test(the_larger_peak_counts),
        cmocka_unit_test(growth_says_when_the_gpu_is_full),
        cmocka_unit_test(the_best_so_far),
        cmocka_unit_test(memory_that_does_not_depend_is_told),
        cmocka_unit_test(one_that_fails_otherwise_ends_it),
        cmocka_unit_test(it_waits_for_a_result),
        cmocka_unit_test(the_margin_has_a_floor),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(everything_has_a_name),
        cmocka_unit_test(it_always_ends),
        cmocka_unit_test(noise_is_no_law),
        cmocka_unit_test(random_jobs_live),
    };
    return cmocka_run_group_tests_name("fit", tests, NULL, NULL);
}
