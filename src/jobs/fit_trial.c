#include "jobs/fit_trial.h"

#include "base/clock.h"

enum {
    CPU_EVERY_S = 1,
    CPU_PCT = 5,          /* of one CPU; threads that only poll use less */
    GROWING_STEADIES = 4, /* times steady_ns: before that, a program may still load its model */
    HANG_FIRST_S = 300,   /* nothing is known about the program yet: it may download its data */
    HANG_LEAST_S = 60,
    HANG_TIMES = 5, /* times the longest trial; the next size is at most 4 times as large */
};

const char *gp_fit_stop_word(enum gp_fit_stop stop)
{
    static const char *const words[] = {
#define X(id, word) [GP_FIT_##id] = (word),
        GP_FIT_STOPS(X)
#undef X
    };
    return words[stop];
}

uint64_t gp_fit_hang_ns(uint64_t longest_ns)
{
    const uint64_t least_ns = HANG_LEAST_S * GP_NS_PER_S;
    if (longest_ns == 0)
        return HANG_FIRST_S * GP_NS_PER_S;
    return HANG_TIMES * longest_ns > least_ns ? HANG_TIMES * longest_ns : least_ns;
}

uint64_t gp_fit_limit_ns(uint64_t longest_ns, uint64_t most_ns)
{
    const uint64_t limit_ns = 2 * gp_fit_hang_ns(longest_ns);
    return longest_ns > 0 && limit_ns < most_ns ? limit_ns : most_ns;
}

/* ---- growth ---- */

static void halve(struct gp_fit_series *s)
{
    s->count /= 2;
    s->width *= 2;
    for (size_t i = 0; i < s->count; i++) {
        const double a = s->bytes[2 * i];
        const double b = s->bytes[2 * i + 1];
        s->times_s[i] = s->times_s[2 * i + 1];
        s->bytes[i] = a < b ? a : b;
    }
}

static void add_sample(struct gp_fit_series *s, double time_s, double bytes)
{
    s->least = s->samples == 0 || bytes < s->least ? bytes : s->least;
    if (++s->samples < s->width)
        return;
    s->times_s[s->count] = time_s;
    s->bytes[s->count++] = s->least;
    s->samples = 0;
    if (s->count == GP_FIT_WINDOWS)
        halve(s);
}

double gp_fit_watch_growth(const struct gp_fit_watch *watch)
{
    double growth = 0;
    if (watch->growth_bytes_s > 0)
        return watch->growth_bytes_s;
    for (size_t i = 0; i < watch->last.gpu_count; i++) {
        const struct gp_fit_series *s = &watch->series[i];
        const struct gp_leak_trend trend = gp_leak_trend(s->times_s, s->bytes, s->count);
        if (trend.rises && trend.bytes_per_s > growth)
            growth = trend.bytes_per_s;
    }
    return growth;
}

/* ---- signs of life ---- */

static bool has_used_cpu(struct gp_fit_watch *w, const struct gp_fit_look *look)
{
    if (!gp_fit_watch_needs_cpu(w, look->now_ns))
        return false;
    /* lower than before: a process has exited, which is also a sign of life */
    const uint64_t before_ns = w->last.cpu_ns;
    const uint64_t used_ns =
        look->cpu_ns > before_ns ? look->cpu_ns - before_ns : before_ns - look->cpu_ns;
    const uint64_t passed_ns = look->now_ns - w->cpu_at_ns;
    w->cpu_at_ns = look->now_ns;
    return used_ns * 100 >= passed_ns * CPU_PCT;
}

static bool has_moved_memory(const struct gp_fit_watch *w, const struct gp_fit_look *look)
{
    for (size_t i = 0; i < look->gpu_count; i++)
        if (look->bytes[i] < w->last.bytes[i] || look->bytes[i] > w->last.bytes[i])
            return true;
    return false;
}

/* A GPU may stay busy forever in a program that hangs (NCCL waits this way), so it is not a sign of
 * life if a line of output is awaited. */
static bool is_alive(struct gp_fit_watch *w, const struct gp_fit_look *look)
{
    return has_used_cpu(w, look) || look->printed_bytes != w->last.printed_bytes ||
           has_moved_memory(w, look) || (look->is_busy && !w->rules.has_line);
}

/* ---- a sample ---- */

void gp_fit_watch_begin(struct gp_fit_watch *watch, const struct gp_fit_rules *rules,
                        uint64_t now_ns)
{
    *watch = (struct gp_fit_watch){
        .rules = *rules, .began_ns = now_ns, .alive_ns = now_ns, .cpu_at_ns = now_ns};
    for (size_t i = 0; i < GP_FIT_GPUS; i++)
        watch->series[i].width = 1;
}

bool gp_fit_watch_needs_cpu(const struct gp_fit_watch *watch, uint64_t now_ns)
{
    return now_ns - watch->cpu_at_ns >= CPU_EVERY_S * GP_NS_PER_S;
}

/* When growth starts to count: once the program works and, in a confirming run, after the loading
 * phase that earlier trials had as well. */
static void begin_to_count(struct gp_fit_watch *w, uint64_t now_ns)
{
    const uint64_t settled_ns = w->began_ns + w->rules.settle_ns;
    w->since_ns = w->rules.is_confirming && settled_ns > now_ns ? settled_ns : now_ns;
    w->risen_ns = now_ns;
}

static void note(struct gp_fit_watch *w, const struct gp_fit_look *look)
{
    if (is_alive(w, look))
        w->alive_ns = look->now_ns;
    if (look->works && w->since_ns == 0)
        begin_to_count(w, look->now_ns);
    for (size_t i = 0; i < look->gpu_count; i++) {
        if (look->bytes[i] > w->peak) {
            w->peak = look->bytes[i];
            w->risen_ns = look->now_ns;
        }
        if (w->since_ns > 0 && look->now_ns >= w->since_ns)
            add_sample(&w->series[i], (double)look->now_ns / 1e9, look->bytes[i]);
    }
    w->last = *look;
}

static enum gp_fit_stop judge_confirming(const struct gp_fit_watch *w, uint64_t watched_ns)
{
    bool is_over = w->rules.confirm_ns > 0 && watched_ns >= w->rules.confirm_ns;
    if ((is_over || watched_ns >= w->rules.steady_ns) && gp_fit_watch_growth(w) > 0)
        return GP_FIT_GROWING;
    return is_over ? GP_FIT_CONFIRMED : GP_FIT_GO_ON;
}

static enum gp_fit_stop judge_short(const struct gp_fit_watch *w, uint64_t watched_ns)
{
    const uint64_t now_ns = w->last.now_ns;
    const uint64_t steady_ns = w->rules.steady_ns;
    if (w->rules.has_line)
        return GP_FIT_GO_ON;
    if (now_ns - w->risen_ns >= steady_ns && now_ns - w->alive_ns < steady_ns)
        return GP_FIT_STEADY;
    return watched_ns >= GROWING_STEADIES * steady_ns && gp_fit_watch_growth(w) > 0 ? GP_FIT_GROWING
                                                                                    : GP_FIT_GO_ON;
}

enum gp_fit_stop gp_fit_watch_take(struct gp_fit_watch *watch, const struct gp_fit_look *look)
{
    note(watch, look);
    if (look->now_ns - watch->alive_ns >= watch->rules.hang_ns)
        return GP_FIT_STALLED;
    if (watch->since_ns == 0 || look->now_ns < watch->since_ns)
        return GP_FIT_GO_ON;
    const uint64_t watched_ns = look->now_ns - watch->since_ns;
    const enum gp_fit_stop stop = watch->rules.is_confirming ? judge_confirming(watch, watched_ns)
                                                             : judge_short(watch, watched_ns);
    if (stop == GP_FIT_GROWING)
        watch->growth_bytes_s = gp_fit_watch_growth(watch);
    return stop;
}
