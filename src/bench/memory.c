/* The bandwidth of the device's memory, and of the copies to and from it. */
#include "bench/bench.h"

#include "base/err.h"
#include "bench/peak.h"

#include <stdio.h>
#include <stdlib.h>

enum { BRIEF = 2, CACHES = 4, ARRAYS = 3 };

static const struct {
    const char *word;
    unsigned arrays;
} streams[] = {
#define X(id, word, arrays) {word, arrays},
    GP_BENCH_STREAMS(X)
#undef X
};

/* Three arrays on a device, and three on the host. The first two on the device, and those that are
 * copied to it, hold the pattern that `write` stores. The third is written. */
struct arrays {
    struct gp_bench *bench;
    size_t i;
    struct gp_bench_device *device;
    struct gp_bench_buffer at[ARRAYS], counts;
    void *pinned[2], *pageable; /* pinned: for each way */
    size_t bytes;
    enum gp_bench_stream stream;
    enum gp_bench_way way;
};

/* Larger than four times the cache, which must not help: 1 GiB on a GPU, if it has room. */
static size_t bytes_for(const struct gp_bench_device *device)
{
    size_t bytes = device->is_gpu ? (size_t)1 << 30 : (size_t)256 << 20;
    size_t most = device->largest_bytes && device->largest_bytes < device->memory_bytes / 8
                      ? device->largest_bytes
                      : device->memory_bytes / 8;
    if (bytes < CACHES * device->cache_bytes)
        bytes = CACHES * device->cache_bytes;
    bytes = bytes < most ? bytes : most;
    return bytes / 4096 * 4096;
}

static int allocate(struct arrays *a, struct gp_err *err)
{
    const struct gp_bench_ops *ops = a->device->ops;
    int r = ops->alloc(a->device, GP_BENCH_COUNTS_BYTES, &a->counts, err);
    for (size_t i = 0; r == 0 && i < ARRAYS; i++)
        r = ops->alloc(a->device, a->bytes, &a->at[i], err);
    return r;
}

static int allocate_on_host(struct arrays *a, struct gp_err *err)
{
    const size_t arrays = a->bench->is_brief ? 2 : ARRAYS; /* the last one is pageable */
    int r = gp_bench_ask_host(arrays * a->bytes, err);
    for (size_t i = 0; r == 0 && i < 2; i++)
        r = a->device->ops->host_alloc(a->device, a->bytes, &a->pinned[i], err);
    if (r == 0 && arrays == ARRAYS && !(a->pageable = malloc(a->bytes)))
        r = gp_err_set(err, GP_ENOMEM, "not enough host memory for %zu MiB", a->bytes >> 20);
    return r;
}

static void release(struct arrays *a)
{
    const struct gp_bench_ops *ops = a->device->ops;
    for (size_t i = 0; i < ARRAYS; i++)
        ops->release(a->device, &a->at[i]);
    for (size_t i = 0; i < 2; i++)
        ops->host_release(a->device, a->pinned[i], a->bytes);
    ops->release(a->device, &a->counts);
    free(a->pageable);
}

static int run_stream(void *context, struct gp_err *err)
{
    const struct arrays *a = context;
    return a->device->ops->stream(a->device, a->stream, &a->at[0], &a->at[1], &a->at[2], err);
}

static int run_pinned(void *context, struct gp_err *err)
{
    const struct arrays *a = context;
    const struct gp_bench_buffer *buffer = &a->at[a->way == GP_BENCH_TO_DEVICE ? 2 : 1];
    return a->device->ops->transfer(a->device, a->way, buffer, a->pinned[a->way], err);
}

static int run_both(void *context, struct gp_err *err)
{
    const struct arrays *a = context;
    const struct gp_bench_ops *ops = a->device->ops;
    int r = ops->transfer(a->device, GP_BENCH_TO_DEVICE, &a->at[2], a->pinned[0], err);
    return r < 0 ? r : ops->transfer(a->device, GP_BENCH_TO_HOST, &a->at[1], a->pinned[1], err);
}

static int run_pageable(void *context, struct gp_err *err)
{
    const struct arrays *a = context;
    return a->way == GP_BENCH_TO_DEVICE
               ? a->device->ops->upload(a->device, &a->at[2], a->pageable, a->bytes, err)
               : a->device->ops->download(a->device, a->pageable, &a->at[1], 0, a->bytes, err);
}

static int measure(struct arrays *a, const char *what, double bytes,
                   int (*run)(void *context, struct gp_err *err), struct gp_bench_result **ret,
                   struct gp_err *err)
{
    struct gp_bench_timing timing;
    struct gp_bench_result *result = gp_bench_add(a->bench, "memory", what, a->i, a->bytes, "GB/s");
    *ret = result;
    if (!result)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    const struct gp_bench_work work = {a->device, run, a};
    int r = gp_bench_measure(&work, &a->bench->pace, &timing, err);
    if (r < 0)
        return gp_bench_set_aside(r, result, err);
    result->value = gp_bench_rate(&timing.ns, bytes);
    gp_bench_note(a->bench, a->i, &timing, result);
    return 0;
}

static void fill(float *array, size_t bytes, float value)
{
    for (size_t i = 0; i < bytes / sizeof(*array); i++)
        array[i] = value < 0 ? value : (float)(i & GP_BENCH_PATTERN);
}

/* Writes the pattern to the sources on the device. */
static int prepare(struct arrays *a, struct gp_err *err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < 2; i++)
        r = a->device->ops->stream(a->device, GP_BENCH_WRITE, NULL, NULL, &a->at[i], err);
    return r < 0 ? r : a->device->ops->wait(a->device, err);
}

/* Writes something else to the third array, which the measurement must replace. */
static int spoil(struct arrays *a, enum gp_bench_stream with, struct gp_err *err)
{
    int r = a->device->ops->stream(a->device, with, &a->at[0], &a->at[1], &a->at[2], err);
    return r < 0 ? r : a->device->ops->wait(a->device, err);
}

/* Whether all of the third array is the pattern. */
static int check_all(struct arrays *a, struct gp_bench_result *result, struct gp_err *err)
{
    return gp_bench_check_equal(a->device, &a->at[1], &a->at[2], &a->counts, result, err);
}

static int streams_of(struct arrays *a, struct gp_err *err)
{
    struct gp_bench_result *result;
    int r = 0;
    for (size_t s = 0; r == 0 && s < GP_ARRAY_LEN(streams); s++) {
        a->stream = (enum gp_bench_stream)s;
        if (a->bench->is_brief && a->stream != GP_BENCH_COPY)
            continue;
        r = spoil(a, a->stream == GP_BENCH_TRIAD ? GP_BENCH_WRITE : GP_BENCH_TRIAD, err);
        r = r < 0 ? r
                  : measure(a, streams[s].word, (double)streams[s].arrays * (double)a->bytes,
                            run_stream, &result, err);
        if (r < 0)
            break;
        if (a->bytes >= CACHES * a->device->cache_bytes)
            result->peak = gp_bench_bandwidth_of(a->bench->cards[a->i]);
        else if (!result->note[0])
            (void)snprintf(result->note, sizeof(result->note),
                           "smaller than %d times the cache of %.3g MiB, which helps", (int)CACHES,
                           (double)a->device->cache_bytes / (1 << 20));
        if (a->stream == GP_BENCH_TRIAD)
            r = gp_bench_check_pattern(a->device, &a->at[2], 4, result, err);
        else if (a->stream != GP_BENCH_READ)
            r = check_all(a, result, err);
    }
    return r;
}

static int transfers_of(struct arrays *a, struct gp_err *err)
{
    static const struct {
        const char *what;
        unsigned copies;
        int (*run)(void *context, struct gp_err *err);
        enum gp_bench_way way;
    } ways[] = {
        {"to GPU", 1, run_pinned, GP_BENCH_TO_DEVICE},
        {"to host", 1, run_pinned, GP_BENCH_TO_HOST},
        {"both ways", 2, run_both, GP_BENCH_TO_DEVICE},
        {"to GPU, pageable", 1, run_pageable, GP_BENCH_TO_DEVICE},
        {"to host, pageable", 1, run_pageable, GP_BENCH_TO_HOST},
    };
    struct gp_bench_result *result;
    int r = allocate_on_host(a, err);
    if (r < 0)
        return r;
    fill(a->pinned[GP_BENCH_TO_DEVICE], a->bytes, 0);
    if (a->pageable)
        fill(a->pageable, a->bytes, 0);
    for (size_t k = 0; r == 0 && k < (a->bench->is_brief ? BRIEF : GP_ARRAY_LEN(ways)); k++) {
        const bool is_both = ways[k].run == run_both;
        float *target = ways[k].run == run_pageable ? a->pageable : a->pinned[GP_BENCH_TO_HOST];
        a->way = ways[k].way;
        if (a->way == GP_BENCH_TO_HOST || is_both)
            fill(target, a->bytes, -1);
        r = spoil(a, GP_BENCH_TRIAD, err);
        r = r < 0 ? r
                  : measure(a, ways[k].what, (double)ways[k].copies * (double)a->bytes, ways[k].run,
                            &result, err);
        if (r == 0 && a->way == GP_BENCH_TO_DEVICE)
            r = check_all(a, result, err);
        if (r == 0 && (a->way == GP_BENCH_TO_HOST || is_both))
            gp_bench_check_part(target, a->bytes / sizeof(*target), 0, 1, result);
    }
    return r;
}

static int one(struct gp_bench *bench, size_t i, uint64_t bytes, struct gp_err *err)
{
    struct arrays a = {.bench = bench, .i = i, .device = bench->devices[i]};
    a.bytes = bytes ? bytes / 4096 * 4096 : bytes_for(a.device);
    int r = a.device->ops->bind(a.device, err);
    r = r < 0 ? r : allocate(&a, err);
    r = r < 0 ? r : prepare(&a, err);
    r = r < 0 ? r : streams_of(&a, err);
    r = r < 0 ? r : transfers_of(&a, err);
    release(&a);
    return gp_bench_conclude(bench, "memory", i, r, err);
}

int gp_bench_memory(struct gp_bench *bench, uint64_t bytes, struct gp_err *err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < bench->count; i++)
        r = one(bench, i, bytes, err);
    if (r == 0 && !bench->is_brief && bench->count > 1)
        r = gp_bench_peers(bench, bytes ? bytes : bytes_for(bench->devices[0]), err);
    return r;
}
