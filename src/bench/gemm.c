/* Products of matrices in each precision: what the device computes at most. */
#include "bench/bench.h"

#include "base/err.h"
#include "bench/peak.h"

#include <math.h>
#include <string.h>

enum { ROWS_LEAST = 256, ROWS_MOST = 16384, ROWS_STEP = 256 };

/* What a GPU computes per nanosecond, roughly and at least, by its multiprocessors: those of FP64
 * are few, but for the models of data centers. */
static double flop_per_ns(const struct gp_bench_device *device, enum gp_bench_precision precision)
{
    static const unsigned with_fp64[] = {60, 70, 80, 90, 100};
    static const double ghz = 1.5;
    double per_cycle = precision == GP_BENCH_FP64 ? 2 : 64;
    for (size_t i = 0; i < GP_ARRAY_LEN(with_fp64); i++)
        if (device->capability == with_fp64[i] && precision == GP_BENCH_FP64)
            per_cycle = 32;
    return 2 * per_cycle * device->units * ghz;
}

/* 8192 for a GPU, if there is room and it is fast enough; 1024 for a CPU, which computes a
 * thousandth of that. */
uint64_t gp_bench_rows_for(const struct gp_bench_device *device, enum gp_bench_precision precision)
{
    static const double most_ns = 0.4e9; /* of a product, by that rough estimate */
    const struct gp_bench_format *f = gp_bench_format(precision);
    double room = (double)device->memory_bytes / 4 / (double)(2 * f->in_bytes + f->out_bytes);
    double side = sqrt(room);
    uint64_t most = (uint64_t)side / ROWS_STEP * ROWS_STEP;
    uint64_t rows = !device->is_gpu ? 1024 : precision == GP_BENCH_FP64 ? 4096 : 8192;
    const double per_ns = flop_per_ns(device, precision);
    while (device->is_gpu && rows > 1024 && 2 * pow((double)rows, 3) > most_ns * per_ns)
        rows /= 2;
    rows = rows < most ? rows : most;
    return rows > ROWS_LEAST ? rows : ROWS_LEAST;
}

uint64_t gp_bench_rows_for_all(const struct gp_bench *bench, enum gp_bench_precision precision)
{
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < bench->count; i++) {
        const uint64_t rows = gp_bench_rows_for(bench->devices[i], precision);
        least = rows < least ? rows : least;
    }
    return least;
}

static int compute(struct gp_bench *bench, struct gp_bench_matrices *m, size_t i,
                   struct gp_bench_result *result, struct gp_err *err)
{
    struct gp_bench_timing timing;
    struct gp_bench_device *device = bench->devices[i];
    if (device->memory_bytes < 2 * m->in_bytes + m->out_bytes)
        return gp_err_set(err, GP_ENOMEM, "the device has no room for matrices of %zu rows",
                          m->gemm.n);
    int r = gp_bench_matrices_load(m, device, err);
    if (r < 0)
        return r;
    const struct gp_bench_work work = {device, gp_bench_multiply, m};
    r = gp_bench_measure(&work, &bench->pace, &timing, err);
    if (r == 0) {
        result->value = gp_bench_rate(&timing.ns, gp_bench_flop(m) / 1000); /* TFLOP/s */
        memcpy(result->kernel, m->gemm.kernel, sizeof(result->kernel));
        gp_bench_note(bench, i, &timing, result);
        result->peak = gp_bench_peak_of(bench->cards[i], m->gemm.precision);
        result->peak_at_clock =
            gp_bench_peak_at(bench->cards[i], m->gemm.precision, result->conditions.clock_mhz);
        r = gp_bench_check(bench, m, result, err);
    }
    gp_bench_matrices_unload(m);
    return r;
}

/* One precision on one device. The matrices stay for the next device, if it wants as many rows. */
static int one(struct gp_bench *bench, size_t i, enum gp_bench_precision precision, uint64_t n,
               struct gp_bench_matrices *m, struct gp_err *err)
{
    struct gp_bench_device *device = bench->devices[i];
    n = n ? n : gp_bench_rows_for(device, precision);
    struct gp_bench_result *result = gp_bench_add(bench, "gemm", gp_bench_format(precision)->word,
                                                  i, n, gp_bench_rate_unit(precision));
    if (!result)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    int r = device->ops->bind(device, err);
    if (r == 0 && (!m->a || m->gemm.n != n)) {
        gp_bench_matrices_close(m);
        r = gp_bench_matrices_open(bench, m, precision, n, err);
    }
    r = r < 0 ? r : compute(bench, m, i, result, err);
    return gp_bench_set_aside(r, result, err);
}

int gp_bench_gemms(struct gp_bench *bench, unsigned precisions, uint64_t n, struct gp_err *err)
{
    int r = 0;
    for (unsigned k = 0; r == 0 && k < GP_BENCH_PRECISION__COUNT; k++) {
        struct gp_bench_matrices m = {.device = NULL};
        for (size_t i = 0; r == 0 && (precisions >> k & 1) && i < bench->count; i++)
            r = gp_bench_conclude(bench, "gemm", i,
                                  one(bench, i, (enum gp_bench_precision)k, n, &m, err), err);
        gp_bench_matrices_close(&m);
    }
    return r;
}
