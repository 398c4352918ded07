/* The curve that everybody measures once: a product of matrices on the CPU and on the GPU. */
#include "bench/bench.h"

#include "base/err.h"

#include <stdlib.h>
#include <string.h>

struct product {
    struct gp_bench *bench;
    struct gp_bench_matrices m;
    struct gp_bench_device *device; /* NULL: the CPU */
    void *pinned[3];                /* copies of a, b, and room for c */
    void *c;                        /* room for the CPU's */
};

static int on_cpu(void *context, struct gp_err *err)
{
    const struct product *p = context;
    (void)err;
    gp_blas_gemm(&p->bench->blas, p->m.gemm.precision, p->m.gemm.n, p->m.a, p->m.b, p->c);
    return 0;
}

static int on_gpu(void *context, struct gp_err *err)
{
    struct product *p = context;
    return gp_bench_multiply(&p->m, err);
}

/* As a program does it: the result is needed, and each step waits for the one before. */
static int with_transfers(void *context, struct gp_err *err)
{
    const struct product *p = context;
    const struct gp_bench_ops *ops = p->device->ops;
    const struct gp_bench_gemm *g = &p->m.gemm;
    int r = ops->upload(p->device, &g->a, p->pinned[0], p->m.in_bytes, err);
    r = r < 0 ? r : ops->upload(p->device, &g->b, p->pinned[1], p->m.in_bytes, err);
    r = r < 0 ? r : ops->gemm(p->device, g, err);
    return r < 0 ? r : ops->download(p->device, p->pinned[2], &g->c, 0, p->m.out_bytes, err);
}

/* Measures one of the three ways; `i`: the GPU, or GP_BENCH_CPU. */
static int measure(struct product *p, const char *what, size_t i,
                   int (*run)(void *context, struct gp_err *err), struct gp_err *err)
{
    struct gp_bench *bench = p->bench;
    struct gp_bench_timing timing;
    struct gp_bench_result *result = gp_bench_add(bench, "matmul", what, i, p->m.gemm.n, "GFLOP/s");
    if (!result)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    const struct gp_bench_work work = {p->device, run, p};
    int r = gp_bench_measure(&work, &bench->pace, &timing, err);
    if (r < 0)
        return gp_bench_set_aside(r, result, err);
    result->value = gp_bench_rate(&timing.ns, gp_bench_flop(&p->m));
    memcpy(result->kernel, p->m.gemm.kernel, sizeof(result->kernel));
    gp_bench_note(bench, i, &timing, result);
    return run == on_gpu ? gp_bench_check(bench, &p->m, result, err)
                         : gp_bench_check_product(bench, &p->m, run == on_cpu ? p->c : p->pinned[2],
                                                  result, err);
}

static int skip(struct product *p, const char *what, size_t i, const char *why, struct gp_err *err)
{
    struct gp_bench_result *result =
        gp_bench_add(p->bench, "matmul", what, i, p->m.gemm.n, "GFLOP/s");
    struct gp_err reason = {0};
    if (!result)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    (void)gp_err_set(&reason, GP_ENODEV, "%s", why);
    return gp_bench_set_aside(GP_ENODEV, result, &reason);
}

static int open_pinned(struct product *p, struct gp_err *err)
{
    const size_t bytes[3] = {p->m.in_bytes, p->m.in_bytes, p->m.out_bytes};
    const void *sources[3] = {p->m.a, p->m.b, NULL};
    int r = gp_bench_ask_host(2 * p->m.in_bytes + p->m.out_bytes, err);
    for (size_t i = 0; r == 0 && i < 3; i++) {
        r = p->device->ops->host_alloc(p->device, bytes[i], &p->pinned[i], err);
        if (r == 0 && sources[i])
            memcpy(p->pinned[i], sources[i], bytes[i]);
    }
    return r;
}

static void close_pinned(struct product *p)
{
    const size_t bytes[3] = {p->m.in_bytes, p->m.in_bytes, p->m.out_bytes};
    for (size_t i = 0; i < 3; i++) {
        p->device->ops->host_release(p->device, p->pinned[i], bytes[i]);
        p->pinned[i] = NULL;
    }
}

static int on_device(struct product *p, size_t i, struct gp_err *err)
{
    struct gp_err reason = {0};
    p->device = p->bench->devices[i];
    int r = p->device->ops->bind(p->device, err);
    if (r < 0)
        return r;
    r = gp_bench_matrices_load(&p->m, p->device, &reason);
    if (r == GP_ENODEV || r == GP_ENOMEM)
        return skip(p, "gpu", i, reason.text, err);
    if (r < 0)
        return gp_err_copy(err, &reason);
    r = measure(p, "gpu", i, on_gpu, err);
    if (r == 0) {
        r = open_pinned(p, &reason);
        if (r == GP_ENOMEM)
            r = skip(p, "gpu+copies", i, reason.text, err);
        else
            r = r < 0 ? gp_err_copy(err, &reason)
                      : measure(p, "gpu+copies", i, with_transfers, err);
        close_pinned(p);
    }
    gp_bench_matrices_unload(&p->m);
    return r;
}

static int on_the_cpu(struct product *p, struct gp_err *err)
{
    p->c = malloc(p->m.out_bytes);
    int r = p->c ? measure(p, "cpu", GP_BENCH_CPU, on_cpu, err)
                 : skip(p, "cpu", GP_BENCH_CPU, "not enough host memory for the result", err);
    free(p->c);
    p->c = NULL;
    return r;
}

/* `no_blas`: why there is no BLAS. */
static int one_size(struct gp_bench *bench, size_t n, const char *no_blas, struct gp_err *err)
{
    struct product p = {.bench = bench};
    struct gp_err reason = {0};
    int r = gp_bench_matrices_open(bench, &p.m, GP_BENCH_FP32, n, &reason);
    if (r == GP_EINTR)
        return gp_err_copy(err, &reason);
    const char *cannot = r < 0 ? reason.text : bench->has_blas ? NULL : no_blas;
    int told = cannot ? skip(&p, "cpu", GP_BENCH_CPU, cannot, err) : on_the_cpu(&p, err);
    for (size_t i = 0; told == 0 && i < bench->count; i++)
        told = r < 0 ? skip(&p, "gpu", i, reason.text, err)
                     : gp_bench_conclude(bench, "matmul", i, on_device(&p, i, err), err);
    gp_bench_matrices_close(&p.m);
    return told;
}

int gp_bench_matmul(struct gp_bench *bench, const uint64_t *sizes, size_t count, struct gp_err *err)
{
    struct gp_err reason = {0};
    int r = 0;
    bench->has_blas = gp_blas_open(&bench->blas, &reason) == 0;
    for (size_t i = 0; r == 0 && i < count; i++)
        r = one_size(bench, sizes[i], reason.text, err);
    return r;
}
