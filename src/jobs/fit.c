#include "jobs/fit.h"

#include "base/err.h"

/* The rules, in percent. */
enum {
    NEAR_PCT = 3,       /* of what fits: so near to what does not is near enough */
    KEEP_PCT = 10,      /* of the interval: so far from both ends of it */
    STEP_DOWN_PCT = 93, /* behind a confirming run that failed */
    NOISE_PCT = 50,     /* R^2 below that: the peaks differ by chance */
};

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
    bool has_answer;
    const char *text;
} ends[GP_FIT_END__COUNT] = {
#define X(id, has_answer, text) [GP_FIT_END_##id] = {(has_answer), (text)},
    GP_FIT_ENDS(X)
#undef X
};

const char *gp_fit_verdict_word(enum gp_fit_verdict verdict)
{
    return verdicts[verdict].word;
}

const char *gp_fit_end_text(enum gp_fit_end end)
{
    return ends[end].text;
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

static int check(const struct gp_fit_request *r, struct gp_err *err)
{
    const uint64_t largest = GP_FIT_BATCH_MAX;
    const struct {
        bool is_wrong;
        const char *why;
    } rules[] = {
        {r->min == 0, "the smallest batch size must be at least 1"},
        {r->multiple == 0, "batch sizes must be multiples of at least 1"},
        {most(most(r->min, r->max), most(r->start, r->multiple)) > largest,
         "batch sizes are at most 2147483647"},
        {r->max > 0 && r->max < r->min, "the largest batch size is below the smallest"},
        {r->start > 0 && r->start < r->min, "the first batch size is below the smallest"},
        {r->max > 0 && r->start > r->max, "the first batch size is above the largest"},
        {r->trials > GP_FIT_TRIALS_MAX, "the search has at most 64 trials"},
        {r->capacity_bytes == 0, "the GPU has no free memory"},
        {r->capacity_bytes > r->total_bytes, "more memory is free than the GPU has"},
        {!(r->margin >= 0 && r->margin < 1), "the margin must be from 0 to below 100 %"},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(rules); i++)
        if (rules[i].is_wrong)
            return gp_err_set(err, GP_EUSAGE, "%s", rules[i].why);
    if (r->capacity_bytes <= margin_bytes(r))
        return gp_err_set(err, GP_EUSAGE,
                          "of %llu MiB of free GPU memory nothing is left behind a margin of %llu",
                          (unsigned long long)(r->capacity_bytes >> 20),
                          (unsigned long long)(margin_bytes(r) >> 20));
    return 0;
}

/* Down to a multiple. */
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

int gp_fit_init(struct gp_fit *ret, const struct gp_fit_request *request, struct gp_err *err)
{
    int rc = check(request, err);
    if (rc < 0)
        return rc;
    struct gp_fit_request r = *request;
    r.min = up(&r, r.min);
    r.max = down(&r, r.max);
    if (r.min > top(&r) || (request->max > 0 && r.max == 0))
        return gp_err_set(err, GP_EUSAGE, "no multiple of %llu is among the batch sizes allowed",
                          (unsigned long long)r.multiple);
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

/* What a peak says of a batch: not of one that the end of the memory has cut, nor of a longer run.
 */
static bool is_point(const struct gp_fit_trial *t)
{
    return t->verdict == GP_FIT_OK && !t->is_confirming;
}

/* By least squares, of the newest `count` points. Sums about the means, so that sizes far from 0
 * lose no digits. */
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

/* For the answer: the few newest lie near each other, so that chance alone can tilt their line. */
static struct gp_fit_line line_of_all(const struct gp_fit *fit)
{
    return line_of(fit, GP_FIT_TRIALS_MAX);
}

/* Where the line of the newest points meets the goal, 0 if below all sizes; false: nowhere. */
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

/* Whether the peaks say nothing of the batch. By chance every second slope of a program that does
 * not use it is above 0, so they must lie near the line, too. */
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

/* Nothing was too large yet. From few points, or without a line, no guess is made. */
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

/* Between what fits and what does not, which are two multiples apart at least: so the result is
 * none of both, and no size is tried twice. */
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

static uint64_t next_batch(const struct gp_fit *fit)
{
    if (fit->fits == 0)
        return most(fit->request.min, down(&fit->request, fit->fails / 2));
    return fit->fails == 0 ? next_above(fit) : next_between(fit);
}

/* SEARCHING while there is something to try. */
static enum gp_fit_end search_end(const struct gp_fit *fit)
{
    const struct gp_fit_request *r = &fit->request;
    uint64_t width = fit->fails - fit->fits; /* where both are known */
    if (fit->fits == 0 && fit->fails == r->min)
        return GP_FIT_END_NOTHING;
    if (fit->fits > 0 && fit->fits == r->max)
        return GP_FIT_END_AT_MAX;
    if (fit->fits > 0 && fit->fails > 0 &&
        (width <= r->multiple || width * 100 < fit->fits * NEAR_PCT))
        return GP_FIT_END_FOUND;
    if (fit->trial_count < r->trials && fit->fits < top(r))
        return GP_FIT_END_SEARCHING;
    return r->max == 0 && is_independent(fit) ? GP_FIT_END_INDEPENDENT : GP_FIT_END_AT_BUDGET;
}

/* Too large is what does not run, or above the goal; a TIGHT one below it runs. */
static void take_trial(struct gp_fit *fit, const struct gp_fit_trial *t)
{
    if (verdicts[t->verdict].ran && t->peak_bytes <= fit->goal_bytes)
        fit->fits = t->batch;
    else
        fit->fails = t->batch;
    fit->searched = search_end(fit);
    if (fit->searched == GP_FIT_END_SEARCHING)
        fit->next.batch = next_batch(fit);
    else if (fit->request.confirm && ends[fit->searched].has_answer && fit->fits > 0)
        fit->next = (struct gp_fit_trial){.batch = fit->fits, .is_confirming = true};
    else
        fit->end = fit->searched;
}

/* A long run may take what it finds, to the last byte: only its death counts. These runs have a
 * bound of their own, so that a search that has used up its trials is confirmed, too. */
static void take_confirming(struct gp_fit *fit, const struct gp_fit_trial *t, size_t runs)
{
    const struct gp_fit_request *r = &fit->request;
    if (verdicts[t->verdict].ran)
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

void gp_fit_take(struct gp_fit *fit, enum gp_fit_verdict verdict, uint64_t peak_bytes)
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
    if (verdicts[verdict].end != GP_FIT_END_SEARCHING)
        fit->end = verdicts[verdict].end;
    else if (t->is_confirming)
        take_confirming(fit, t, count_confirming(fit));
    else
        take_trial(fit, t);
}

/* ---- the answer ---- */

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
        if (fit->trials[i].batch == answer.batch)
            answer.peak_bytes = most(answer.peak_bytes, fit->trials[i].peak_bytes);
    answer.free_bytes =
        fit->request.capacity_bytes - least(fit->request.capacity_bytes, answer.peak_bytes);
    return answer;
}

uint64_t gp_fit_need(const struct gp_fit *fit, uint64_t batch)
{
    struct gp_fit_line line = line_of_all(fit);
    double bytes = line.fixed_bytes + line.sample_bytes * (double)batch;
    return line.known && line.sample_bytes > 0 && bytes > 0 ? (uint64_t)bytes : 0;
}
