#include "bench/measure.h"

#include "base/clock.h"
#include "base/err.h"

#include <math.h>

enum { GROUP = 5 };

/* A block of `count` calls: the time of one. */
struct block {
    double ns, host_ns;
};

static int time_block(const struct gp_bench_work *work, uint64_t count, struct block *ret,
                      struct gp_err *err)
{
    struct gp_bench_device *device = work->device;
    uint64_t device_ns = 0;
    if (device)
        gp_bench_wait_begin(device);
    int r = device ? device->ops->start(device, err) : 0;
    uint64_t begin = gp_clock_mono_ns();
    for (uint64_t i = 0; r == 0 && i < count; i++)
        r = work->run(work->context, err);
    if (device) { /* whatever happened, nothing may go on */
        int stopped = device->ops->stop(device, &device_ns, r == 0 ? err : NULL);
        r = r < 0 ? r : stopped;
        gp_bench_wait_end(device);
    }
    ret->host_ns = (double)(gp_clock_mono_ns() - begin) / (double)count;
    ret->ns = device_ns ? (double)device_ns / (double)count : ret->host_ns;
    return r;
}

static bool is_cancelled(const struct gp_bench_pace *pace)
{
    return pace->is_cancelled && pace->is_cancelled();
}

static int cancel(struct gp_err *err)
{
    return gp_err_set(err, GP_EINTR, "interrupted");
}

/* How many calls fill a block, if one takes this time. */
static uint64_t calls_for(const struct gp_bench_pace *pace, double ns)
{
    return ns > 0 && ns < (double)pace->block_ns ? (uint64_t)((double)pace->block_ns / ns) + 1 : 1;
}

/* Whether the medians of the first and the second half differ by less than 1 %. Sorts the halves.
 */
static bool is_level(double *times, size_t count)
{
    const size_t half = count / 2;
    const double before = gp_bench_stats_of(times, half).median;
    const double last = gp_bench_stats_of(times + count - half, half).median;
    return fabs(last - before) < 0.01 * before;
}

/* The last times of the warm-up. */
struct recent {
    double times[2 * GROUP];
    size_t taken;
};

static bool is_steady(const struct recent *recent)
{
    double times[2 * GROUP];
    for (size_t i = 0; i < 2 * GROUP; i++) /* the oldest is the next to be replaced */
        times[i] = recent->times[(recent->taken + i) % (2 * GROUP)];
    return recent->taken >= 2 * GROUP && is_level(times, 2 * GROUP);
}

/* Whether the warm-up was long enough: steady, or four times as long as it must be, though with
 * enough blocks to tell, unless these take very long. */
static bool is_warm(const struct recent *recent, uint64_t warm_ns, uint64_t passed_ns)
{
    const double passed = (double)passed_ns;
    const double least = (double)warm_ns;
    if (passed < least)
        return false;
    return is_steady(recent) || passed >= 16 * least ||
           (passed >= 4 * least && recent->taken >= 2 * GROUP);
}

/* The first call alone may compile kernels, and says little about the next ones. */
static int warm_up(const struct gp_bench_work *work, const struct gp_bench_pace *pace,
                   uint64_t *ret_count, struct recent *recent, struct gp_err *err)
{
    *recent = (struct recent){.taken = 0};
    struct block block;
    uint64_t begin = gp_clock_mono_ns();
    int r = time_block(work, 1, &block, err);
    if (r == 0 && block.ns < (double)pace->block_ns)
        r = time_block(work, 1, &block, err);
    *ret_count = r == 0 ? calls_for(pace, block.ns) : 1;
    while (r == 0 && !is_warm(recent, pace->warm_ns, gp_clock_mono_ns() - begin)) {
        if (is_cancelled(pace))
            return cancel(err);
        r = time_block(work, *ret_count, &block, err);
        recent->times[recent->taken++ % (2 * GROUP)] = block.ns;
        *ret_count = calls_for(pace, block.ns);
    }
    return r;
}

int gp_bench_measure(const struct gp_bench_work *work, const struct gp_bench_pace *pace,
                     struct gp_bench_timing *ret, struct gp_err *err)
{
    double times[GP_BENCH_RUNS_MAX];
    struct recent recent;
    uint64_t count;
    size_t runs = pace->runs < GP_BENCH_RUNS_MAX ? pace->runs : GP_BENCH_RUNS_MAX;
    size_t taken = 0;
    double ns = 0;
    double host_ns = 0;
    *ret = (struct gp_bench_timing){0};
    int r = warm_up(work, pace, &count, &recent, err);
    ret->begin_ns = ret->end_ns = gp_clock_mono_ns();
    while (r == 0 && taken < runs) {
        struct block block;
        if (is_cancelled(pace))
            return cancel(err);
        r = time_block(work, count, &block, err);
        times[taken++] = block.ns;
        ns += block.ns;
        host_ns += block.host_ns;
        ret->end_ns = gp_clock_mono_ns();
        if (taken >= GP_BENCH_RUNS_LEAST && ret->end_ns - ret->begin_ns > pace->most_ns)
            break;
    }
    if (r < 0)
        return r;
    ret->by_device = ns < host_ns;
    ret->host_ratio = ns > 0 ? host_ns / ns : 0;
    /* a warm-up of few blocks says nothing */
    ret->is_steady = recent.taken >= 2 * GROUP ? is_steady(&recent) : is_level(times, taken);
    ret->ns = gp_bench_stats_of(times, taken);
    return 0;
}

static struct gp_bench_stats map(const struct gp_bench_stats *s, double (*f)(double, double),
                                 double by)
{
    return (struct gp_bench_stats){s->count,      f(s->median, by), f(s->min, by),
                                   f(s->max, by), f(s->low, by),    f(s->high, by)};
}

static double rate(double ns, double amount)
{
    return ns > 0 ? amount / ns : 0;
}

static double quotient(double ns, double unit)
{
    return ns / unit;
}

struct gp_bench_stats gp_bench_rate(const struct gp_bench_stats *ns, double amount)
{
    struct gp_bench_stats s = map(ns, rate, amount);
    return (struct gp_bench_stats){s.count, s.median, s.max, s.min, s.high, s.low};
}

struct gp_bench_stats gp_bench_times(const struct gp_bench_stats *ns, double unit_ns)
{
    return map(ns, quotient, unit_ns);
}
