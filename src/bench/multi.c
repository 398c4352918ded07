/* The same product on one GPU, two, and so on: what they take from each other. */
#include "bench/bench.h"

#include "base/err.h"
#include "bench/team.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REDUCED_BYTES = 256 << 20 };

/* A phase: the devices that compute at the same time. */
struct phase {
    struct gp_bench *bench;
    struct gp_bench_matrices shared; /* of the host */
    struct gp_bench_timing timings[GP_BENCH_DEVICES];
    struct gp_bench_result checks[GP_BENCH_DEVICES]; /* outcome, note and kernel of each */
};

static int stay_busy(struct gp_bench_team *team, struct gp_bench_matrices *m, struct gp_err *err)
{
    enum { AHEAD = 4 }; /* products, so that the device never waits for the next one */
    int r = 0;
    while (r == 0 && !gp_bench_team_is_over(team)) {
        for (int i = 0; r == 0 && i < AHEAD; i++)
            r = gp_bench_multiply(m, err);
        r = r < 0 ? r : m->device->ops->wait(m->device, err);
    }
    return r;
}

static int member(struct gp_bench_team *team, size_t i, void *context, struct gp_err *err)
{
    struct phase *phase = context;
    struct gp_bench_device *device = phase->bench->devices[i];
    struct gp_bench_matrices m = phase->shared;
    const struct gp_bench_work work = {device, gp_bench_multiply, &m};
    struct gp_bench_result *checked = &phase->checks[i];
    *checked = (struct gp_bench_result){.outcome = GP_BENCH_MEASURED};
    int r = device->ops->bind(device, err);
    r = r < 0 ? r : gp_bench_matrices_load(&m, device, err);
    gp_bench_team_begin(team);
    if (r == 0)
        r = gp_bench_measure(&work, &phase->bench->pace, &phase->timings[i], err);
    gp_bench_team_end(team);
    if (r == 0)
        r = stay_busy(team, &m, err);
    memcpy(checked->kernel, m.gemm.kernel, sizeof(checked->kernel));
    r = r < 0 ? r : gp_bench_check(phase->bench, &m, checked, err);
    gp_bench_matrices_unload(&m);
    return r;
}

/* TFLOP/s of the device. */
static struct gp_bench_stats rate_of(const struct phase *phase, size_t i)
{
    return gp_bench_rate(&phase->timings[i].ns, gp_bench_flop(&phase->shared) / 1000);
}

/* What the check of device i's product said. */
static void take_check(const struct phase *phase, size_t i, struct gp_bench_result *result)
{
    const struct gp_bench_result *checked = &phase->checks[i];
    memcpy(result->kernel, checked->kernel, sizeof(result->kernel));
    if (checked->outcome != GP_BENCH_WRONG)
        return;
    result->outcome = checked->outcome;
    (void)snprintf(result->note, sizeof(result->note), "GPU %s: %.180s", phase->bench->names[i],
                   checked->note);
}

/* Each GPU alone, which is what the others are compared with. One that has no room has no rate. */
static int alone(struct phase *phase, struct gp_bench_stats *rates, struct gp_err *err)
{
    struct gp_bench *bench = phase->bench;
    int r = 0;
    for (size_t i = 0; r == 0 && i < bench->count; i++) {
        struct gp_bench_result *result =
            gp_bench_add(bench, "multi", "alone", i, phase->shared.gemm.n, "TFLOP/s");
        if (!result)
            return gp_err_set(err, GP_ENOMEM, "out of memory");
        r = gp_bench_team_run(&i, 1, member, phase, err);
        if (r < 0) {
            r = gp_bench_set_aside(r, result, err);
            continue;
        }
        rates[i] = rate_of(phase, i);
        result->value = rates[i];
        gp_bench_note(bench, i, &phase->timings[i], result);
        take_check(phase, i, result);
    }
    return r;
}

/* These GPUs together: the sum, what part that is of the sum alone, the slowest, and the one that
 * loses most. */
static int together(struct phase *phase, const struct gp_bench_stats *rates, const size_t *devices,
                    size_t count, struct gp_err *err)
{
    struct gp_bench *bench = phase->bench;
    uint64_t bits = 0;
    double sum_alone = 0;
    double least = 0;
    double lowest = 0;
    size_t loser = 0;
    size_t slowest = 0;
    char what[32];
    (void)snprintf(what, sizeof(what), "%zu together", count);
    for (size_t k = 0; k < count; k++)
        bits |= UINT64_C(1) << devices[k];
    struct gp_bench_result *result =
        gp_bench_add_of(bench, "multi", what, bits, phase->shared.gemm.n, "TFLOP/s");
    if (!result)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    int r = gp_bench_team_run(devices, count, member, phase, err);
    if (r < 0)
        return gp_bench_set_aside(r, result, err);
    result->is_steady = true;
    for (size_t k = 0; k < count; k++) {
        const size_t i = devices[k];
        struct gp_bench_stats rate = rate_of(phase, i);
        sum_alone += rates[i].median;
        result->value.count = rate.count;
        result->value.median += rate.median;
        result->value.low += rate.low;
        result->value.high += rate.high;
        result->value.min += rate.min;
        result->value.max += rate.max;
        result->is_steady &= phase->timings[i].is_steady;
        if (k == 0 || rate.median / rates[i].median < least) {
            least = rate.median / rates[i].median;
            loser = i;
        }
        if (k == 0 || rate.median < lowest) {
            lowest = rate.median;
            slowest = i;
        }
    }
    (void)snprintf(result->note, sizeof(result->note),
                   "%.0f %% of their sum alone; GPU %s is the slowest, with %.3g; GPU %s loses "
                   "most: %.0f %% of its own rate",
                   100 * result->value.median / sum_alone, bench->names[slowest], lowest,
                   bench->names[loser], 100 * least);
    for (size_t k = 0; k < count; k++)
        take_check(phase, devices[k], result);
    return 0;
}

/* Those that have a rate: two, three, and so on. */
static int grow(struct phase *phase, const struct gp_bench_stats *rates, struct gp_err *err)
{
    size_t devices[GP_BENCH_DEVICES];
    size_t count = 0;
    int r = 0;
    for (size_t i = 0; i < phase->bench->count; i++)
        if (rates[i].count > 0)
            devices[count++] = i;
    for (size_t k = 2; r == 0 && k <= count; k++)
        r = together(phase, rates, devices, k, err);
    return r;
}

int gp_bench_multi(struct gp_bench *bench, uint64_t n, uint64_t bytes, struct gp_err *err)
{
    struct gp_bench_stats rates[GP_BENCH_DEVICES] = {{0}};
    struct phase *phase = calloc(1, sizeof(*phase));
    if (!phase)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    phase->bench = bench;
    n = n ? n : gp_bench_rows_for_all(bench, GP_BENCH_FP32);
    int r = gp_bench_matrices_open(bench, &phase->shared, GP_BENCH_FP32, n, err);
    /* all results are checked at once */
    r = r < 0 ? r : gp_bench_ask_host(bench->count * phase->shared.out_bytes, err);
    r = r < 0 ? r : alone(phase, rates, err);
    r = r < 0 ? r : grow(phase, rates, err);
    gp_bench_matrices_close(&phase->shared);
    free(phase);
    if (r == GP_EDRIVER) /* is a result; others cannot be compared any more */
        return 0;
    if (r == 0 && bench->devices[0]->ops->native)
        r = gp_bench_reduce(bench, bytes ? bytes / 16 * 16 : REDUCED_BYTES, err);
    return r;
}
