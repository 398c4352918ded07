/* A short look at all devices: what gpulse bench check compares. */
#include "bench/bench.h"

#include "base/err.h"

static size_t count_skipped(const struct gp_bench *bench, size_t from)
{
    size_t count = 0;
    for (size_t i = from; i < bench->results.count; i++)
        count += bench->results.list[i].outcome == GP_BENCH_SKIPPED;
    return count;
}

/* The product that uses the tensor cores, if there are any, and one in FP32. The second precision
 * is for devices that lack the first. */
static int products(struct gp_bench *bench, uint64_t rows, struct gp_err *err)
{
    static const enum gp_bench_precision order[] = {GP_BENCH_BF16, GP_BENCH_FP16};
    int r = 0;
    for (size_t i = 0; r == 0 && i < GP_ARRAY_LEN(order); i++) {
        size_t before = bench->results.count;
        r = gp_bench_gemms(bench, 1U << order[i], rows, err);
        size_t skipped = count_skipped(bench, before);
        if (skipped == 0)
            break;
        if (skipped < bench->count)
            continue;
        (void)pthread_mutex_lock(&bench->lock);
        bench->results.count = before; /* no device has it */
        (void)pthread_mutex_unlock(&bench->lock);
    }
    return r < 0 ? r : gp_bench_gemms(bench, 1U << GP_BENCH_FP32, rows, err);
}

int gp_bench_check_all(struct gp_bench *bench, uint64_t rows, uint64_t bytes, struct gp_err *err)
{
    bench->is_brief = true;
    int r = products(bench, rows, err);
    r = r < 0 ? r : gp_bench_memory(bench, bytes, err);
    return r < 0 ? r : gp_bench_latency(bench, err);
}
