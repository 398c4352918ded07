/* Full load, with every result compared: finds GPUs that compute wrongly when they are hot. */
#include "bench/bench.h"

#include "base/clock.h"
#include "base/err.h"
#include "bench/ptx.h"
#include "bench/team.h"
#include "bench/watch.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK_MS = 500,     /* how often results and temperatures are looked at */
    SILENT_S = 5,       /* a temperature that is older is none */
    STEP = GP_PTX_TILE, /* the number of rows is a multiple of it: each kernel of ours can multiply
                           them, and results are whole pieces of 16 bytes, which are compared */
};

struct burn {
    struct gp_bench *bench;
    const struct gp_bench_burn *plan;
    struct gp_bench_matrices shared; /* of the host */
    struct gp_bench_result *results[GP_BENCH_DEVICES];
    struct fire *fires; /* of each device */
};

/* One device: its product, the first result, and the counters of what differed. */
struct fire {
    struct burn *burn;
    size_t i;
    struct gp_bench_device *device;
    struct gp_bench_matrices m;
    struct gp_bench_buffer first, counts;
    uint64_t products, begin_ns;
    double rates[GP_BENCH_RUNS_MAX], sorted[GP_BENCH_RUNS_MAX];
    size_t taken;
    struct gp_bench_result result; /* its own, until it is published */
    uint64_t blocks, stride;       /* every strideth block has its rate in `rates` */
};

/* The first product, checked on the CPU. It stays on the device: all others must be its equal, bit
 * by bit. */
static int light(struct fire *f, struct gp_err *err)
{
    const struct gp_bench_ops *ops = f->device->ops;
    const uint32_t none[2] = {0, UINT32_MAX};
    int r = gp_bench_check(f->burn->bench, &f->m, &f->result, err);
    r = r < 0 ? r : ops->alloc(f->device, f->m.out_bytes, &f->first, err);
    r = r < 0 ? r : ops->alloc(f->device, sizeof(none), &f->counts, err);
    if (r < 0)
        return r;
    struct gp_bench_buffer other = f->m.gemm.c;
    f->m.gemm.c = f->first;
    f->first = other;
    return ops->upload(f->device, &f->counts, none, sizeof(none), err);
}

static int block(struct fire *f, uint64_t count, double *ret_ns, struct gp_err *err)
{
    const struct gp_bench_ops *ops = f->device->ops;
    uint64_t ns = 0;
    gp_bench_wait_begin(f->device);
    /* so that a kernel that does nothing is noticed */
    int r = ops->stream(f->device, GP_BENCH_WRITE, NULL, NULL, &f->m.gemm.c, err);
    r = r < 0 ? r : ops->start(f->device, err);
    uint64_t begin = gp_clock_mono_ns();
    for (uint64_t k = 0; r == 0 && k < count; k++) {
        r = gp_bench_multiply(&f->m, err);
        r = r < 0 ? r : ops->compare(f->device, &f->first, &f->m.gemm.c, &f->counts, err);
    }
    int stopped = ops->stop(f->device, &ns, r == 0 ? err : NULL);
    gp_bench_wait_end(f->device);
    *ret_ns = ns ? (double)ns : (double)(gp_clock_mono_ns() - begin);
    f->products += count;
    return r < 0 ? r : stopped;
}

/* Whether anything differed. */
static int look(struct fire *f, bool *ret_wrong, struct gp_err *err)
{
    struct gp_bench_result *result = &f->result;
    uint32_t counts[2];
    int r = f->device->ops->download(f->device, counts, &f->counts, 0, sizeof(counts), err);
    *ret_wrong = r == 0 && (counts[0] > 0 || counts[1] != UINT32_MAX); /* the count may wrap */
    if (!*ret_wrong)
        return r;
    const struct gp_bench_gemm *g = &f->m.gemm;
    size_t out_bytes = gp_bench_format(g->precision)->out_bytes;
    size_t element = (size_t)counts[1] * 16 / out_bytes;
    result->outcome = GP_BENCH_WRONG;
    (void)snprintf(result->note, sizeof(result->note),
                   "wrong: %u pieces of 16 bytes differ in %llu products, the first at row %zu, "
                   "column %zu",
                   counts[0], (unsigned long long)f->products, element % g->n, element / g->n);
    return 0;
}

static void fail(struct gp_bench_result *result, const char *format, ...) GP_PRINTF(2, 3);

static void fail(struct gp_bench_result *result, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    result->outcome = GP_BENCH_FAILED;
    (void)vsnprintf(result->note, sizeof(result->note), format, arguments);
    va_end(arguments);
}

/* Whether the GPU is hotter than allowed, or may be. */
static bool is_too_hot(struct fire *f)
{
    const uint64_t most = f->burn->plan->most_celsius;
    struct gp_bench_result *result = &f->result;
    double celsius;
    uint64_t age_ns;
    if (!most)
        return false;
    if (!gp_bench_watch_celsius(f->burn->bench->watch, f->i, &celsius, &age_ns))
        fail(result, "ended: its temperature is unknown, and there is a limit");
    else if (age_ns > SILENT_S * GP_NS_PER_S)
        fail(result, "ended: the driver has not reported a temperature for %.0f s",
             (double)age_ns / 1e9);
    else if (celsius > (double)most)
        fail(result, "ended: %.0f °C, above the limit of %llu", celsius, (unsigned long long)most);
    else
        return false;
    return true;
}

/* Notes the rate of a block. When the list is full, every second one is dropped, and only every
 * second one is noted from then on. */
static void note_rate(struct fire *f, double rate)
{
    if (f->blocks++ % f->stride)
        return;
    if (f->taken == GP_BENCH_RUNS_MAX) {
        f->taken /= 2;
        f->stride *= 2;
        for (size_t i = 0; i < f->taken; i++)
            f->rates[i] = f->rates[2 * i];
    }
    f->rates[f->taken++] = rate;
}

static void tell(const struct fire *f, uint64_t passed_ns)
{
    char text[80];
    if (f->i != 0 || !f->burn->bench->tell)
        return;
    (void)snprintf(text, sizeof(text), "burn, %.0f of %.0f s", (double)passed_ns / 1e9,
                   (double)f->burn->plan->for_ns / 1e9);
    f->burn->bench->tell(text);
}

static void publish(const struct fire *f)
{
    (void)pthread_mutex_lock(&f->burn->bench->lock);
    *f->burn->results[f->i] = f->result;
    (void)pthread_mutex_unlock(&f->burn->bench->lock);
}

/* What it has done so far. It is published after each block: if another GPU hangs, that is all that
 * is left of it. */
static void sum_up(struct fire *f)
{
    struct gp_bench_result *result = &f->result;
    const double seconds = (double)(gp_clock_mono_ns() - f->begin_ns) / 1e9;
    memcpy(f->sorted, f->rates, f->taken * sizeof(f->rates[0]));
    result->value = gp_bench_stats_of(f->sorted, f->taken);
    result->is_steady = true;
    if (f->burn->bench->watch)
        gp_bench_watch_since(f->burn->bench->watch, f->i, &result->conditions);
    if (result->outcome == GP_BENCH_MEASURED)
        (void)snprintf(result->note, sizeof(result->note), "%llu products in %.0f s, all equal",
                       (unsigned long long)f->products, seconds);
}

static int burn_on(struct fire *f, struct gp_err *err)
{
    const struct gp_bench_burn *plan = f->burn->plan;
    const struct gp_bench_pace *pace = &f->burn->bench->pace;
    const double block_ns = BLOCK_MS * (double)GP_NS_PER_MS;
    uint64_t count = 1;
    bool is_wrong = false;
    int r = 0;
    uint64_t passed = 0;
    f->begin_ns = gp_clock_mono_ns();
    if (f->burn->bench->watch)
        gp_bench_watch_mark(f->burn->bench->watch, f->i);
    if (is_too_hot(f))
        return 0;
    do { /* one block in any case: then it has a result */
        double ns = 0;
        r = block(f, count, &ns, err);
        if (r < 0 || ns <= 0)
            continue;
        note_rate(f, (double)count * gp_bench_flop(&f->m) / 1000 / ns);
        count = 1 + (uint64_t)((double)count * block_ns / ns);
        r = look(f, &is_wrong, err);
        if (r == 0) {
            sum_up(f);
            publish(f);
        }
        passed = gp_clock_mono_ns() - f->begin_ns;
        tell(f, passed);
    } while (r == 0 && !is_wrong && passed < plan->for_ns &&
             !(pace->is_cancelled && pace->is_cancelled()) && !is_too_hot(f));
    return r;
}

static void conclude(struct fire *f)
{
    struct gp_bench_result *result = &f->result;
    sum_up(f);
    if (result->outcome != GP_BENCH_MEASURED)
        return;
    if (result->conditions.ecc_uncorrected > 0)
        fail(result, "%.0f uncorrected errors of the GPU's memory",
             result->conditions.ecc_uncorrected);
    else if (f->products == 0)
        fail(result, "ended before the first product");
}

static int member(struct gp_bench_team *team, size_t i, void *context, struct gp_err *err)
{
    struct burn *burn = context;
    struct fire *f = &burn->fires[i];
    *f = (struct fire){
        .burn = burn,
        .i = i,
        .device = burn->bench->devices[i],
        .m = burn->shared,
        .stride = 1,
        .result = *burn->results[i],
    };
    int r = f->device->ops->bind(f->device, err);
    r = r < 0 ? r : gp_bench_matrices_load(&f->m, f->device, err);
    memcpy(f->result.kernel, f->m.gemm.kernel, sizeof(f->result.kernel));
    r = r < 0 ? r : light(f, err);
    gp_bench_team_begin(team);
    if (r == 0 && f->result.outcome == GP_BENCH_MEASURED)
        r = burn_on(f, err);
    if (r == 0)
        conclude(f);
    else if (r != GP_EINTR)
        fail(&f->result, "%.190s", err->text);
    publish(f);
    gp_bench_team_end(team);
    f->device->ops->release(f->device, &f->first);
    f->device->ops->release(f->device, &f->counts);
    gp_bench_matrices_unload(&f->m);
    return r == GP_EDRIVER || r == GP_ENOMEM || r == GP_ENODEV ? 0 : r; /* is a result */
}

/* The first of these precisions that all devices can do: what heats them most comes first. */
static int choose(struct gp_bench *bench, unsigned precisions, uint64_t n,
                  enum gp_bench_precision *ret, struct gp_err *err)
{
    static const enum gp_bench_precision order[] = {GP_BENCH_BF16, GP_BENCH_FP16, GP_BENCH_FP8,
                                                    GP_BENCH_TF32, GP_BENCH_FP32, GP_BENCH_INT8,
                                                    GP_BENCH_FP64};
    int r = GP_ENODEV;
    for (size_t k = 0; k < GP_ARRAY_LEN(order) && r == GP_ENODEV; k++) {
        struct gp_bench_matrices m;
        if (!(precisions >> order[k] & 1))
            continue;
        *ret = order[k];
        r = gp_bench_matrices_open(bench, &m, *ret, n, err);
        for (size_t i = 0; r == 0 && i < bench->count; i++) {
            r = bench->devices[i]->ops->bind(bench->devices[i], err);
            r = r < 0 ? r : gp_bench_matrices_load(&m, bench->devices[i], err);
            if (r == 0)
                gp_bench_matrices_unload(&m);
        }
        gp_bench_matrices_close(&m);
    }
    return r;
}

int gp_bench_burn_all(struct gp_bench *bench, const struct gp_bench_burn *plan, struct gp_err *err)
{
    enum gp_bench_precision precision = GP_BENCH_FP32;
    size_t devices[GP_BENCH_DEVICES];
    struct burn *burn = calloc(1, sizeof(*burn));
    struct fire *fires = calloc(bench->count, sizeof(*fires));
    if (!burn || !fires || (plan->most_celsius && !bench->watch)) {
        const bool has_memory = burn && fires;
        free(burn);
        free(fires);
        return has_memory
                   ? gp_err_set(err, GP_EUSAGE, "--max-temp: OpenCL does not report temperatures")
                   : gp_err_set(err, GP_ENOMEM, "out of memory");
    }
    *burn = (struct burn){.bench = bench, .plan = plan, .fires = fires};
    int r = choose(bench, plan->precisions, STEP, &precision, err);
    const uint64_t n = plan->rows ? (plan->rows + STEP - 1) / STEP * STEP
                                  : gp_bench_rows_for_all(bench, precision);
    r = r < 0 ? r : gp_bench_matrices_open(bench, &burn->shared, precision, n, err);
    /* all first results are checked at once */
    r = r < 0 ? r : gp_bench_ask_host(bench->count * burn->shared.out_bytes, err);
    for (size_t i = 0; r == 0 && i < bench->count; i++) {
        devices[i] = i;
        if (!gp_bench_add(bench, "burn", gp_bench_format(precision)->word, i, n,
                          gp_bench_rate_unit(precision)))
            r = gp_err_set(err, GP_ENOMEM, "out of memory");
    }
    if (r == 0 && bench->watch)
        gp_bench_watch_begin(bench->watch, UINT64_MAX, "burn", gp_bench_format(precision)->word);
    for (size_t i = 0; r == 0 && i < bench->count; i++)
        burn->results[i] = &bench->results.list[bench->results.count - bench->count + i];
    r = r < 0 ? r : gp_bench_team_run(devices, bench->count, member, burn, err);
    gp_bench_matrices_close(&burn->shared);
    free(fires);
    free(burn);
    return r;
}
