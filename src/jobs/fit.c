#include "jobs/fit.h"

#include "base/err.h"

/* The rules, in percent. */
enum {
    NEAR_PCT = 3,       /* of the size that fits: close enough to the one that does not */
    KEEP_PCT = 10,      /* of the interval: minimum distance from both ends */
    STEP_DOWN_PCT = 93, /* after a failed confirming run */
    NOISE_PCT = 50,     /* R^2 below this: the differences between peaks are noise */
};

/* How to recognize a program that preallocates: for batch sizes whose largest is at least this many
 * times the smallest, its peaks are this close to each other and at least this share of the
 * capacity. JAX takes 75 % of a GPU, TensorFlow all of it; libraries that load more kernels for
 * larger sizes add some MiB. */
enum { ALIKE_MIB = 64, ALIKE_RATIO = 64, ALIKE_TRIALS = 3, ALIKE_LEAST_PCT = 50 };

static const uint64_t margin_least_bytes = UINT64_C(512) << 20;
static const double tight_share = 0.985; /* of the capacity */

static const struct {
    const char *word;
    bool ran;
    enum gp_fit_end end;
} verdicts[GP_FIT_VERDICT__COUNT] = {
#define X(id, word, ran, end) [GP_FIT_##id] = {(word), (ran), GP_FIT_END_##end},
    GP_FIT_VERDICTS(X)
#undef X
};

static const struct {
    const char *word;
    bool has_answer;
    int code;
    const char *text;
} ends[GP_FIT_END__COUNT] = {
#define X(id, word, has_answer, code, text)                                                        \
    [GP_FIT_END_##id] = {(word), (has_answer), (code), (text)},
    GP_FIT_ENDS(X)
#undef X
};

const char *gp_fit_verdict_word(enum gp_fit_verdict verdict)
{
    return verdicts[verdict].word;
}

const char *gp_fit_end_word(enum gp_fit_end end)
{
    return ends[end].word;
}

const char *gp_fit_end_text(enum gp_fit_end end)
{
    return ends[end].text;
}

int gp_fit_end_code(enum gp_fit_end end)
{
    return ends[end].code;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ---- the request ---- */

static uint64_t margin_bytes(const struct gp_fit_request *r)
{
    return most((uint64_t)(r->margin * (double)r->total_bytes), margin_least_bytes);
}

/* Round down to a multiple. */
static uint64_t down(const struct gp_fit_request *r, uint64_t batch)
{
    return batch / r->multiple * r->multiple;
}

static uint64_t up(const struct gp_fit_request *r, uint64_t batch)
{
    return down(r, batch + r->multiple - 1);
}

/* The largest size that may be tried. */
static uint64_t top(const struct gp_fit_request *r)
{
    return r->max ? r->max : down(r, GP_FIT_BATCH_MAX);
}

int gp_fit_check(const struct gp_fit_request *r, struct gp_err *err)
{
    const uint64_t largest = GP_FIT_BATCH_MAX;
    const struct {
        bool is_wrong;
        const char *why; /* with places for the two sizes */
        uint64_t sizes[2];
    } rules[] = {
        {r->min == 0, "the smallest batch size must be at least 1", {0}},
        {r->multiple == 0, "batch sizes must be multiples of at least 1", {0}},
        {most(most(r->min, r->max), most(r->start, r->multiple)) > largest,
         "batch sizes are at most %llu",
         {largest}},
        {r->max > 0 && r->max < r->min,
         "the largest batch size (%llu) is below the smallest (%llu)",
         {r->max, r->min}},
        {r->start > 0 && r->start < r->min,
         "the first batch size (%llu) is below the smallest (%llu)",
         {r->start, r->min}},
        {r->max > 0 && r->start > r->max,
         "the first batch size (%llu) is above the largest (%llu)",
         {r->start, r->max}},
        {r->trials > GP_FIT_TRIALS_MAX, "the search has at most %llu trials", {GP_FIT_TRIALS_MAX}},
        {!(r->margin >= 0 && r->margin < 1), "the margin must be from 0 to below 100 %%", {0}},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(rules); i++)
        if (rules[i].is_wrong)
            return gp_err_set(err, GP_EUSAGE, rules[i].why, (unsigned long long)rules[i].sizes[0],
                              (unsigned long long)rules[i].sizes[1]);
    if (up(r, r->min) > (r->max ? down(r, r->max) : down(r, largest)))
        return gp_err_set(err, GP_EUSAGE,
                          "no multiple of %llu is in the allowed range of batch sizes",
                          (unsigned long long)r->multiple);
    return 0;
}

static int check_memory(const struct gp_fit_request *r, struct gp_err *err)
{
    if (r->capacity_bytes == 0 || r->capacity_bytes > r->total_bytes)
        return gp_err_set(err, GP_EUSAGE,
                          r->capacity_bytes == 0 ? "the GPU has no free memory"
                                                 : "free memory exceeds the GPU's total memory");
    if (r->capacity_bytes <= margin_bytes(r))
        return gp_err_set(err, GP_EUSAGE,
                          "the GPU has %llu MiB free, and the margin of %llu MiB leaves nothing",
                          (unsigned long long)(r->capacity_bytes >> 20),
                          (unsigned long long)(margin_bytes(r) >> 20));
    return 0;
}

int gp_fit_init(struct gp_fit *ret, const struct gp_fit_request *request, struct gp_err *err)
{
    int rc = gp_fit_check(request, err);
    if (rc == 0)
        rc = check_memory(request, err);
    if (rc < 0)
        return rc;
    struct gp_fit_request r = *request;
    r.min = up(&r, r.min);
    r.max = down(&r, r.max);
    r.start = most(r.min, down(&r, r.start));
    r.trials = r.trials ? r.trials : GP_FIT_TRIALS;
    *ret = (struct gp_fit){
        .request = r,
        .goal_bytes = r.capacity_bytes - margin_bytes(&r),
        .next.batch = r.start,
        .searched = GP_FIT_END_SEARCHING,
        .end = GP_FIT_END_SEARCHING,
    };
    return 0;
}

/* ---- the line ---- */

/* Whether its peak shows what the batch needs: not if the memory was full, nor after a longer
 * run. */
static bool is_point(const struct gp_fit_trial *t)
{
    return (t->verdict == GP_FIT_OK || t->verdict == GP_FIT_GROWS) && !t->is_confirming;
}

/* Least squares over the newest `count` points. Sums are taken about the means, so that sizes far
 * from 0 lose no digits. */
static struct gp_fit_line line_of(const struct gp_fit *fit, size_t count)
{
    double x[GP_FIT_TRIALS_MAX];
    double y[GP_FIT_TRIALS_MAX];
    double mean_x = 0, mean_y = 0, sxx = 0, sxy = 0, syy = 0;
    size_t n = 0;
    for (size_t i = fit->trial_count; i > 0 && n < count; i--)
        if (is_point(&fit->trials[i - 1])) {
            mean_x += x[n] = (double)fit->trials[i - 1].batch;
            mean_y += y[n++] = (double)fit->trials[i - 1].peak_bytes;
        }
    if (n < 2)
        return (struct gp_fit_line){.points = n};
    mean_x /= (double)n;
    mean_y /= (double)n;
    for (size_t i = 0; i < n; i++) {
        sxx += (x[i] - mean_x) * (x[i] - mean_x);
        sxy += (x[i] - mean_x) * (y[i] - mean_y);
        syy += (y[i] - mean_y) * (y[i] - mean_y);
    }
    double b = sxy / sxx; /* no size is tried twice */
    return (struct gp_fit_line){
        .known = true,
        .fixed_bytes = mean_y - b * mean_x,
        .sample_bytes = b,
        .r2 = syy > 0 ? b * sxy / syy : 1,
        .points = n,
    };
}

/* For the answer, the few newest points are too close together: noise alone could tilt their
 * line. */
static struct gp_fit_line line_of_all(const struct gp_fit *fit)
{
    return line_of(fit, GP_FIT_TRIALS_MAX);
}

/* The size at which the line of the newest points meets the goal, 0 if below all sizes; false:
 * nowhere. */
static bool meets_goal(const struct gp_fit *fit, uint64_t *ret_batch)
{
    struct gp_fit_line line = line_of(fit, GP_FIT_POINTS);
    if (!line.known || !(line.sample_bytes > 0))
        return false;
    double batch = ((double)fit->goal_bytes - line.fixed_bytes) / line.sample_bytes;
    batch = batch > 0 ? batch : 0;
    *ret_batch =
        batch < GP_FIT_BATCH_MAX ? down(&fit->request, (uint64_t)batch) : top(&fit->request);
    return true;
}

/* Whether the peaks do not depend on the batch. Noise makes every second slope of a program that
 * does not use the batch positive, so the points must be close to the line, too. */
static bool is_independent(const struct gp_fit *fit)
{
    struct gp_fit_line line = line_of_all(fit);
    return fit->fails == 0 && line.known && !(line.sample_bytes > 0 && line.r2 * 100 >= NOISE_PCT);
}

/* ---- the search ---- */

static size_t count_points(const struct gp_fit *fit)
{
    return line_of_all(fit).points;
}

/* Nothing was too large yet. With few points, or without a line, no guess is made. */
static uint64_t next_above(const struct gp_fit *fit)
{
    uint64_t lo = fit->fits;
    uint64_t batch;
    if (count_points(fit) < GP_FIT_POINTS)
        batch = 4 * lo;
    else if (!meets_goal(fit, &batch))
        batch = 2 * lo;
    batch = least(most(batch, lo + fit->request.multiple), 4 * lo);
    return least(batch, top(&fit->request));
}

/* Between a size that fits and one that does not, which are at least two multiples apart: so the
 * result is neither of them, and no size is tried twice. */
static uint64_t next_between(const struct gp_fit *fit)
{
    uint64_t lo = fit->fits;
    uint64_t width = fit->fails - lo;
    uint64_t keep = up(&fit->request, (width * KEEP_PCT + 99) / 100);
    uint64_t batch;
    if (!meets_goal(fit, &batch) || batch <= lo || batch >= fit->fails)
        batch = lo + down(&fit->request, width / 2);
    return most(lo + keep, least(batch, fit->fails - keep));
}

/* ---- preallocated memory ---- */

/* The peaks of the sizes that ran. */
struct alike {
    size_t count, others;       /* the others did not run */
    uint64_t smallest, largest; /* sizes */
    uint64_t least, most;       /* bytes */
};

static struct alike look_alike(const struct gp_fit *fit)
{
    struct alike a = {.smallest = UINT64_MAX, .least = UINT64_MAX};
    for (size_t i = 0; i < fit->trial_count; i++) {
        const struct gp_fit_trial *t = &fit->trials[i];
        if (!verdicts[t->verdict].ran) {
            a.others++;
            continue;
        }
        a.count++;
        a.smallest = least(a.smallest, t->batch);
        a.largest = most(a.largest, t->batch);
        a.least = least(a.least, t->peak_bytes);
        a.most = most(a.most, t->peak_bytes);
    }
    return a;
}

static bool are_alike(const struct gp_fit *fit, const struct alike *a)
{
    return a->count > 0 && a->most - a->least <= (uint64_t)ALIKE_MIB << 20 &&
           a->least >= fit->request.capacity_bytes / 100 * ALIKE_LEAST_PCT;
}

/* `is_over`: no more sizes will be tried, and the ratio that they reached must do. */
static bool preallocates(const struct gp_fit *fit, bool is_over)
{
    const struct alike a = look_alike(fit);
    return are_alike(fit, &a) && a.count >= ALIKE_TRIALS &&
           (is_over || a.largest / a.smallest >= ALIKE_RATIO);
}

/* Even the smallest size exceeded the goal. If larger ones do so with the same amount of memory,
 * the size is not the reason. Returns the next size to test this with; 0: none. */
static uint64_t next_alike(const struct gp_fit *fit)
{
    const struct alike a = look_alike(fit);
    const uint64_t batch = least(4 * a.largest, top(&fit->request));
    bool goes_on = a.others == 0 && are_alike(fit, &a) && a.largest / a.smallest < ALIKE_RATIO;
    return goes_on && batch > a.largest ? batch : 0;
}

/* ---- the steps ---- */

/* Whether all sizes that could fit were tried. */
static bool has_failed_at_min(const struct gp_fit *fit)
{
    return fit->fails == fit->request.min;
}

static uint64_t next_batch(const struct gp_fit *fit)
{
    if (has_failed_at_min(fit))
        return next_alike(fit);
    if (fit->fits == 0)
        return most(fit->request.min, down(&fit->request, fit->fails / 2));
    return fit->fails == 0 ? next_above(fit) : next_between(fit);
}

static size_t count_hung(const struct gp_fit *fit)
{
    size_t n = 0;
    for (size_t i = 0; i < fit->trial_count; i++)
        n += fit->trials[i].verdict == GP_FIT_HUNG;
    return n;
}

/* Whether the smallest size that failed hung. */
static bool is_bound_hung(const struct gp_fit *fit)
{
    for (size_t i = 0; i < fit->trial_count; i++)
        if (fit->trials[i].batch == fit->fails && fit->trials[i].verdict == GP_FIT_HUNG)
            return true;
    return false;
}

/* SEARCHING while there is something left to try, from the bounds alone. */
static enum gp_fit_end end_by_bounds(const struct gp_fit *fit)
{
    const struct gp_fit_request *r = &fit->request;
    uint64_t width = fit->fails - fit->fits; /* if both are known */
    bool may_try = fit->trial_count < r->trials && fit->fits < top(r);
    if (has_failed_at_min(fit))
        return may_try && next_alike(fit) ? GP_FIT_END_SEARCHING : GP_FIT_END_NOTHING;
    if (fit->fits > 0 && fit->fits == r->max)
        return GP_FIT_END_AT_MAX;
    if (fit->fits > 0 && fit->fails > 0 &&
        (width <= r->multiple || width * 100 < fit->fits * NEAR_PCT))
        return GP_FIT_END_FOUND;
    if (may_try)
        return GP_FIT_END_SEARCHING;
    return r->max == 0 && is_independent(fit) ? GP_FIT_END_INDEPENDENT : GP_FIT_END_AT_BUDGET;
}

static enum gp_fit_end search_end(const struct gp_fit *fit)
{
    enum gp_fit_end end = end_by_bounds(fit);
    bool is_over = end != GP_FIT_END_SEARCHING;
    /* the largest size allowed has run: that answers the question, unless the ratio is reached */
    if (preallocates(fit, is_over && end != GP_FIT_END_AT_MAX))
        return GP_FIT_END_PREALLOCATES;
    if (count_hung(fit) >= GP_FIT_HANGS || (is_over && is_bound_hung(fit)))
        return fit->fits ? GP_FIT_END_HUNG : GP_FIT_END_ALL_HUNG;
    return end;
}

/* A size is too large if it does not run or exceeds the goal; a TIGHT one below the goal counts as
 * run. */
static void take_trial(struct gp_fit *fit, const struct gp_fit_trial *t)
{
    bool is_fit = verdicts[t->verdict].ran && t->peak_bytes <= fit->goal_bytes;
    if (is_fit && !has_failed_at_min(fit))
        fit->fits = t->batch;
    else if (!has_failed_at_min(fit))
        fit->fails = t->batch;
    fit->searched = search_end(fit);
    if (fit->searched == GP_FIT_END_SEARCHING)
        fit->next.batch = next_batch(fit);
    else if (fit->request.confirm && ends[fit->searched].has_answer && fit->fits > 0)
        fit->next = (struct gp_fit_trial){.batch = fit->fits, .is_confirming = true};
    else
        fit->end = fit->searched;
}

/* A long run may use all memory, to the last byte: only a crash counts, and growth that will lead
 * to one. These runs have a limit of their own, so that a search that has used up its trials is
 * still confirmed. */
static void take_confirming(struct gp_fit *fit, const struct gp_fit_trial *t, size_t runs)
{
    const struct gp_fit_request *r = &fit->request;
    if (t->verdict == GP_FIT_GROWS || t->verdict == GP_FIT_HUNG)
        fit->end = t->verdict == GP_FIT_GROWS ? GP_FIT_END_GROWS : GP_FIT_END_HUNG_LONG;
    else if (verdicts[t->verdict].ran)
        fit->end = fit->searched;
    else if (t->batch == r->min || runs == GP_FIT_CONFIRMS)
        fit->end = GP_FIT_END_UNCONFIRMED;
    else {
        fit->next.batch = most(r->min, down(r, t->batch * STEP_DOWN_PCT / 100));
        fit->searched = GP_FIT_END_FOUND;
    }
}

bool gp_fit_next(const struct gp_fit *fit, struct gp_fit_trial *ret)
{
    if (fit->end != GP_FIT_END_SEARCHING)
        return false;
    *ret = fit->next;
    return true;
}

static size_t count_confirming(const struct gp_fit *fit)
{
    size_t n = 0;
    for (size_t i = 0; i < fit->trial_count; i++)
        n += fit->trials[i].is_confirming;
    return n;
}

void gp_fit_take(struct gp_fit *fit, enum gp_fit_verdict verdict, uint64_t peak_bytes,
                 double growth_bytes_s)
{
    if (fit->end != GP_FIT_END_SEARCHING)
        return;
    if (verdict == GP_FIT_OK &&
        (double)peak_bytes >= tight_share * (double)fit->request.capacity_bytes)
        verdict = GP_FIT_TIGHT;
    struct gp_fit_trial *t = &fit->trials[fit->trial_count++];
    *t = fit->next;
    t->verdict = verdict;
    t->peak_bytes = peak_bytes;
    t->growth_bytes_s = growth_bytes_s;
    if (verdicts[verdict].end != GP_FIT_END_SEARCHING)
        fit->end = verdicts[verdict].end;
    else if (t->is_confirming)
        take_confirming(fit, t, count_confirming(fit));
    else
        take_trial(fit, t);
}

/* ---- the answer ---- */

static bool has_fitted(const struct gp_fit *fit, const struct gp_fit_trial *t)
{
    return verdicts[t->verdict].ran && t->verdict != GP_FIT_GROWS &&
           (t->is_confirming || t->peak_bytes <= fit->goal_bytes);
}

uint64_t gp_fit_best(const struct gp_fit *fit)
{
    uint64_t best = 0;
    uint64_t bound = UINT64_MAX; /* a long run refuted this size */
    for (size_t i = 0; i < fit->trial_count; i++)
        if (fit->trials[i].is_confirming && !has_fitted(fit, &fit->trials[i]))
            bound = least(bound, fit->trials[i].batch);
    for (size_t i = 0; i < fit->trial_count; i++)
        if (has_fitted(fit, &fit->trials[i]) && fit->trials[i].batch < bound)
            best = most(best, fit->trials[i].batch);
    return best;
}

struct gp_fit_answer gp_fit_answer(const struct gp_fit *fit)
{
    struct gp_fit_answer answer = {
        .end = fit->end,
        .is_independent = is_independent(fit),
        .line = line_of_all(fit),
    };
    if (!ends[fit->end].has_answer || fit->fits == 0)
        return answer;
    answer.batch = fit->next.is_confirming ? fit->next.batch : fit->fits;
    for (size_t i = 0; i < fit->trial_count; i++)
        if (fit->trials[i].batch == answer.batch) {
            answer.peak_bytes = most(answer.peak_bytes, fit->trials[i].peak_bytes);
            answer.growth_bytes_s = fit->trials[i].growth_bytes_s;
        }
    answer.free_bytes =
        fit->request.capacity_bytes - least(fit->request.capacity_bytes, answer.peak_bytes);
    if (answer.growth_bytes_s > 0)
        answer.full_in_s = (double)answer.free_bytes / answer.growth_bytes_s;
    return answer;
}

uint64_t gp_fit_need(const struct gp_fit *fit, uint64_t batch)
{
    struct gp_fit_line line = line_of_all(fit);
    double bytes = line.fixed_bytes + line.sample_bytes * (double)batch;
    return line.known && line.sample_bytes > 0 && bytes > 0 ? (uint64_t)bytes : 0;
}
