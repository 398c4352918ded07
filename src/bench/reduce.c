/* The sum of an array of each GPU, on all of them, by NCCL: the step at the end of each step of a
 * training on several GPUs. */
#include "bench/bench.h"

#include "abi/nccl.h"
#include "base/err.h"
#include "bench/library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One library per process. */
static struct {
    void *library;
#define X(name, args) ncclResult_t(*name) args;
    NCCL_FUNCTIONS(X)
#undef X
} nccl;

static const struct gp_bench_symbol symbols[] = {
#define X(name, args) {#name, offsetof(__typeof__(nccl), name)},
    NCCL_FUNCTIONS(X)
#undef X
};

/* All devices of the benchmark. */
struct group {
    struct gp_bench *bench;
    ncclComm_t comms[GP_BENCH_DEVICES];
    struct CUstream_st *streams[GP_BENCH_DEVICES];
    struct gp_bench_buffer from[GP_BENCH_DEVICES], to[GP_BENCH_DEVICES];
    size_t bytes;
    bool has_comms;
};

static int check(ncclResult_t result, const char *what, struct gp_err *err)
{
    return result == ncclSuccess
               ? 0
               : gp_err_set(err, GP_EDRIVER, "NCCL: %s: error %d", what, (int)result);
}

static bool take(void *library, void *context)
{
    (void)context;
    if (!gp_bench_library_find(library, symbols, GP_ARRAY_LEN(symbols), &nccl))
        nccl.library = library;
    return nccl.library;
}

static int load(struct gp_err *err)
{
    static const char *const names[] = {NCCL_NAMES, NULL};
    static const char *const sites[] = {NCCL_SITES, NULL};
    return nccl.library || gp_bench_library_try(sites, names, take, NULL)
               ? 0
               : gp_err_set(err, GP_ENODEV,
                            "NCCL was not found: activate a Python environment with PyTorch, or "
                            "install libnccl2");
}

static int reduce(void *context, struct gp_err *err)
{
    const struct group *g = context;
    int r = check(nccl.ncclGroupStart(), "cannot add", err);
    for (size_t i = 0; r == 0 && i < g->bench->count; i++)
        r = check(nccl.ncclAllReduce((const void *)(uintptr_t)g->from[i].at.address,
                                     (void *)(uintptr_t)g->to[i].at.address,
                                     g->bytes / sizeof(float), ncclFloat32, ncclSum, g->comms[i],
                                     g->streams[i]),
                  "cannot add", err);
    int ended = check(nccl.ncclGroupEnd(), "cannot add", r == 0 ? err : NULL);
    return r < 0 ? r : ended;
}

static int open_group(struct group *g, struct gp_err *err)
{
    int ordinals[GP_BENCH_DEVICES];
    int r = load(err);
    for (size_t i = 0; r == 0 && i < g->bench->count; i++) {
        struct gp_bench_device *device = g->bench->devices[i];
        void *stream = NULL;
        r = device->ops->bind(device, err);
        r = r < 0 ? r : device->ops->alloc(device, g->bytes, &g->from[i], err);
        r = r < 0 ? r : device->ops->alloc(device, g->bytes, &g->to[i], err);
        r = r < 0 ? r : device->ops->stream(device, GP_BENCH_WRITE, NULL, NULL, &g->from[i], err);
        /* what the sum must replace */
        r = r < 0 ? r : device->ops->stream(device, GP_BENCH_WRITE, NULL, NULL, &g->to[i], err);
        r = r < 0 ? r : device->ops->wait(device, err);
        device->ops->native(device, &ordinals[i], &stream);
        g->streams[i] = stream;
    }
    if (r < 0)
        return r;
    gp_bench_wait_begin(g->bench->devices[0]);
    r = check(nccl.ncclCommInitAll(g->comms, (int)g->bench->count, ordinals),
              "cannot connect the GPUs", err);
    gp_bench_wait_end(g->bench->devices[0]);
    g->has_comms = r == 0;
    return r;
}

static void close_group(struct group *g)
{
    for (size_t i = 0; i < g->bench->count; i++) {
        struct gp_bench_device *device = g->bench->devices[i];
        gp_bench_wait_begin(device);
        if (g->has_comms)
            (void)nccl.ncclCommDestroy(g->comms[i]);
        gp_bench_wait_end(device);
        if (device->ops->bind(device, NULL) < 0)
            continue;
        device->ops->release(device, &g->from[i]);
        device->ops->release(device, &g->to[i]);
    }
}

static int verify(struct group *g, struct gp_bench_result *result, struct gp_err *err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < g->bench->count; i++) {
        struct gp_bench_device *device = g->bench->devices[i];
        r = device->ops->bind(device, err);
        r = r < 0 ? r
                  : gp_bench_check_pattern(device, &g->to[i], (float)g->bench->count, result, err);
    }
    return r;
}

/* The rate at which each link would have to carry the data, as NCCL's own tests count it: it does
 * not depend on the number of GPUs. */
static double bus_bytes(const struct group *g)
{
    double n = (double)g->bench->count;
    return 2 * (n - 1) / n * (double)g->bytes;
}

static int measure(struct group *g, struct gp_bench_result *result, struct gp_err *err)
{
    struct gp_bench_timing timing;
    struct gp_bench_device *first = g->bench->devices[0];
    int version = 0;
    int r = open_group(g, err);
    r = r < 0 ? r : first->ops->bind(first, err);
    const struct gp_bench_work work = {first, reduce, g};
    r = r < 0 ? r : gp_bench_measure(&work, &g->bench->pace, &timing, err);
    if (r < 0)
        return r;
    if (nccl.ncclGetVersion(&version) == ncclSuccess)
        (void)snprintf(result->kernel, sizeof(result->kernel), "NCCL %d.%d.%d", version / 10000,
                       version / 100 % 100, version % 100);
    result->value = gp_bench_rate(&timing.ns, bus_bytes(g));
    gp_bench_note(g->bench, 0, &timing, result);
    return verify(g, result, err);
}

int gp_bench_reduce(struct gp_bench *bench, size_t bytes, struct gp_err *err)
{
    struct gp_bench_result *result =
        gp_bench_add(bench, "multi", "all-reduce", GP_BENCH_ALL, bytes, "GB/s");
    struct group *g = calloc(1, sizeof(*g));
    int r = result && g ? 0 : gp_err_set(err, GP_ENOMEM, "out of memory");
    if (r == 0) {
        result->is_joint = true;
        *g = (struct group){.bench = bench, .bytes = bytes};
        r = gp_bench_set_aside(measure(g, result, err), result, err);
        r = r == GP_EDRIVER ? 0 : r;
        close_group(g);
    }
    free(g);
    return r;
}
