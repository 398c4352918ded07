/* Products of matrices in each precision: what the device computes at most. */
#include "bench/bench.h"

#include "base/err.h"
#include "bench/peak.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ROWS_LEAST = 256, ROWS_MOST = 16384, ROWS_STEP = 256 };

struct product {
    struct gp_bench_matrices m;
    struct gp_bench_device *device;
};

static int multiply(void *context, struct gp_err *err)
{
    const struct product *p = context;
    return p->device->ops->gemm(p->device, &p->m.gemm, err);
}

/* 8192 for a GPU, if there is room; 1024 for a CPU, which computes a thousandth of that. */
uint64_t gp_bench_rows_for(const struct gp_bench_device *device, enum gp_bench_precision precision)
{
    const struct gp_bench_format *f = gp_bench_format(precision);
    double room = (double)device->memory_bytes / 4 / (double)(2 * f->in_bytes + f->out_bytes);
    double side = sqrt(room);
    uint64_t most = (uint64_t)side / ROWS_STEP * ROWS_STEP;
    uint64_t rows = !device->is_gpu ? 1024 : precision == GP_BENCH_FP64 ? 4096 : 8192;
    rows = rows < most ? rows : most;
    return rows > ROWS_LEAST ? rows : ROWS_LEAST;
}

static int compute(struct gp_bench *bench, struct product *p, size_t i,
                   struct gp_bench_result *result, struct gp_err *err)
{
    struct gp_bench_timing timing;
    if (p->device->memory_bytes < 2 * p->m.in_bytes + p->m.out_bytes)
        return gp_err_set(err, GP_ENOMEM, "the device has no room for matrices of %zu rows",
                          p->m.gemm.n);
    int r = gp_bench_matrices_load(&p->m, p->device, err);
    if (r < 0)
        return r;
    const struct gp_bench_work work = {p->device, multiply, p};
    r = gp_bench_measure(&work, &bench->pace, &timing, err);
    if (r == 0) {
        double n = (double)p->m.gemm.n;
        result->value = gp_bench_rate(&timing.ns, 2 * n * n * n / 1000); /* per ns: TFLOP/s */
        memcpy(result->kernel, p->m.gemm.kernel, sizeof(result->kernel));
        gp_bench_note(bench, i, &timing, result);
        result->peak = gp_bench_peak_of(bench->cards[i], p->m.gemm.precision);
        result->peak_at_clock =
            gp_bench_peak_at(bench->cards[i], p->m.gemm.precision, result->conditions.clock_mhz);
        r = gp_bench_check(bench, &p->m, p->device, result, err);
    }
    gp_bench_matrices_unload(&p->m, p->device);
    return r;
}

/* One precision on one device. The matrices stay for the next device, if it wants as many rows. */
static int one(struct gp_bench *bench, size_t i, enum gp_bench_precision precision, uint64_t n,
               struct product *p, struct gp_err *err)
{
    p->device = bench->devices[i];
    n = n ? n : gp_bench_rows_for(p->device, precision);
    struct gp_bench_result *result =
        gp_bench_add(bench, "gemm", gp_bench_format(precision)->word, i, n, "TFLOP/s");
    if (!result)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    if (precision == GP_BENCH_INT8)
        result->unit = "TOP/s";
    int r = p->device->ops->bind(p->device, err);
    if (r == 0 && (!p->m.a || p->m.gemm.n != n)) {
        gp_bench_matrices_close(&p->m);
        r = gp_bench_matrices_open(&p->m, precision, n, bench->seed, err);
    }
    r = r < 0 ? r : compute(bench, p, i, result, err);
    return gp_bench_set_aside(r, result, err);
}

int gp_bench_gemms(struct gp_bench *bench, unsigned precisions, uint64_t n, struct gp_err *err)
{
    int r = 0;
    for (unsigned k = 0; r == 0 && k < GP_BENCH_PRECISION__COUNT; k++) {
        struct product p = {.device = NULL};
        for (size_t i = 0; r == 0 && (precisions >> k & 1) && i < bench->count; i++)
            r = gp_bench_conclude(bench, "gemm", i,
                                  one(bench, i, (enum gp_bench_precision)k, n, &p, err), err);
        gp_bench_matrices_close(&p.m);
    }
    return r;
}
