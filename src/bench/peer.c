/* Copies from each device to each other one. */
#include "bench/bench.h"

#include "base/err.h"

#include <stdio.h>

enum { SMALL_BYTES = 4 };

struct pair {
    struct gp_bench_device *from, *to;
    struct gp_bench_buffer source, target;
    size_t bytes; /* to copy */
};

static int copy(void *context, struct gp_err *err)
{
    const struct pair *p = context;
    return p->from->ops->peer_copy(p->from, &p->source, p->to, &p->target, p->bytes, err);
}

static int copy_and_wait(void *context, struct gp_err *err)
{
    const struct pair *p = context;
    int r = copy(context, err);
    return r < 0 ? r : p->from->ops->wait(p->from, err);
}

static int measure(struct gp_bench *bench, size_t i, size_t j, struct pair *p, bool is_direct,
                   bool is_latency, struct gp_err *err)
{
    struct gp_bench_timing timing;
    p->bytes = is_latency ? SMALL_BYTES : p->source.bytes;
    struct gp_bench_result *result = gp_bench_add(bench, is_latency ? "latency" : "memory",
                                                  is_latency  ? "4 bytes to a GPU"
                                                  : is_direct ? "GPU to GPU"
                                                              : "GPU to GPU, by host",
                                                  i, p->bytes, is_latency ? "us" : "GB/s");
    if (!result)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    (void)snprintf(result->device, sizeof(result->device), "%.15s->%.15s", bench->names[i],
                   bench->names[j]);
    result->is_lower_better = is_latency;
    const struct gp_bench_work work = {is_latency ? NULL : p->from,
                                       is_latency ? copy_and_wait : copy, p};
    int r = gp_bench_measure(&work, &bench->pace, &timing, err);
    if (r < 0)
        return gp_bench_set_aside(r, result, err);
    result->value = is_latency ? gp_bench_times(&timing.ns, GP_NS_PER_US)
                               : gp_bench_rate(&timing.ns, (double)p->bytes);
    gp_bench_note(bench, i, &timing, result);
    if (is_latency)
        return 0;
    r = p->to->ops->bind(p->to, err);
    r = r < 0 ? r : gp_bench_check_pattern(p->to, &p->target, 1, result, err);
    return r < 0 ? r : p->from->ops->bind(p->from, err);
}

static int one(struct gp_bench *bench, size_t i, size_t j, size_t bytes, struct gp_err *err)
{
    struct pair p = {.from = bench->devices[i], .to = bench->devices[j]};
    bool is_direct = false;
    int r = p.to->ops->bind(p.to, err);
    r = r < 0 ? r : p.to->ops->alloc(p.to, bytes, &p.target, err);
    r = r < 0 ? r : p.from->ops->bind(p.from, err);
    r = r < 0 ? r : p.from->ops->alloc(p.from, bytes, &p.source, err);
    r = r < 0 ? r : p.from->ops->stream(p.from, GP_BENCH_WRITE, NULL, NULL, &p.source, err);
    r = r < 0 ? r : p.from->ops->wait(p.from, err);
    r = r < 0 ? r : p.from->ops->peer_open(p.from, p.to, &is_direct, err);
    r = r < 0 ? r : measure(bench, i, j, &p, is_direct, false, err);
    r = r < 0 ? r : measure(bench, i, j, &p, is_direct, true, err);
    if (is_direct)
        p.from->ops->peer_close(p.from, p.to);
    p.from->ops->release(p.from, &p.source);
    if (p.to->ops->bind(p.to, NULL) == 0)
        p.to->ops->release(p.to, &p.target);
    return r;
}

int gp_bench_peers(struct gp_bench *bench, size_t bytes, struct gp_err *err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < bench->count; i++)
        for (size_t j = 0; r == 0 && j < bench->count; j++)
            if (i != j && bench->devices[i]->ops->peer_open)
                r = gp_bench_conclude(bench, "memory", i, one(bench, i, j, bytes, err), err);
    return r;
}
