/* Copies from each device to each other one. */
#include "bench/bench.h"

#include "base/err.h"

#include <stdio.h>

enum { SMALL_BYTES = 4 };

/* `target`, `wanted` and `counts` are memory of `to`. Both `source` and `wanted` hold the pattern
 * that `write` stores. */
struct pair {
    struct gp_bench *bench;
    size_t i, j; /* the numbers of `from` and `to` */
    struct gp_bench_device *from, *to;
    struct gp_bench_buffer source, target, wanted, counts;
    size_t bytes; /* to copy */
    bool is_direct;
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

static struct gp_bench_result *add(struct pair *p, const char *test, const char *what, size_t bytes,
                                   const char *unit)
{
    struct gp_bench_result *result = gp_bench_add(p->bench, test, what, p->i, bytes, unit);
    if (!result)
        return NULL;
    (void)pthread_mutex_lock(&p->bench->lock); /* who hangs is read from it */
    (void)snprintf(result->device, sizeof(result->device), "%.15s->%.15s", p->bench->names[p->i],
                   p->bench->names[p->j]);
    (void)pthread_mutex_unlock(&p->bench->lock);
    return result;
}

/* Fills the buffers; the target with something else than what is to be copied there. Ends with
 * `from` bound. */
static int prepare(struct pair *p, size_t bytes, struct gp_err *err)
{
    const struct gp_bench_ops *ops = p->to->ops;
    int r = ops->bind(p->to, err);
    r = r < 0 ? r : ops->alloc(p->to, bytes, &p->target, err);
    r = r < 0 ? r : ops->alloc(p->to, bytes, &p->wanted, err);
    r = r < 0 ? r : ops->alloc(p->to, GP_BENCH_COUNTS_BYTES, &p->counts, err);
    r = r < 0 ? r : ops->stream(p->to, GP_BENCH_WRITE, NULL, NULL, &p->wanted, err);
    r = r < 0 ? r : ops->stream(p->to, GP_BENCH_TRIAD, &p->wanted, &p->wanted, &p->target, err);
    r = r < 0 ? r : ops->wait(p->to, err);
    r = r < 0 ? r : p->from->ops->bind(p->from, err);
    r = r < 0 ? r : p->from->ops->alloc(p->from, bytes, &p->source, err);
    r = r < 0 ? r : p->from->ops->stream(p->from, GP_BENCH_WRITE, NULL, NULL, &p->source, err);
    return r < 0 ? r : p->from->ops->wait(p->from, err);
}

static int measure_rate(struct pair *p, struct gp_bench_result *result, struct gp_err *err)
{
    const struct gp_bench_work work = {p->from, copy, p};
    struct gp_bench_timing timing;
    p->bytes = p->source.bytes;
    int r = gp_bench_measure(&work, &p->bench->pace, &timing, err);
    if (r < 0)
        return r;
    result->value = gp_bench_rate(&timing.ns, (double)p->bytes);
    gp_bench_note(p->bench, p->i, &timing, result);
    r = p->to->ops->bind(p->to, err);
    r = r < 0 ? r : gp_bench_check_equal(p->to, &p->wanted, &p->target, &p->counts, result, err);
    return r < 0 ? r : p->from->ops->bind(p->from, err);
}

static int measure_latency(struct pair *p, struct gp_err *err)
{
    const struct gp_bench_work work = {NULL, copy_and_wait, p};
    struct gp_bench_timing timing;
    struct gp_bench_result *result = add(p, "latency", "4 bytes to a GPU", SMALL_BYTES, "us");
    if (!result)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    result->is_lower_better = true;
    p->bytes = SMALL_BYTES;
    int r = gp_bench_measure(&work, &p->bench->pace, &timing, err);
    if (r < 0)
        return gp_bench_set_aside(r, result, err);
    result->value = gp_bench_times(&timing.ns, GP_NS_PER_US);
    gp_bench_note(p->bench, p->i, &timing, result);
    return 0;
}

static int measure(struct pair *p, size_t bytes, struct gp_err *err)
{
    struct gp_bench_result *result =
        add(p, "memory", p->is_direct ? "GPU to GPU" : "GPU to GPU, by host", bytes, "GB/s");
    if (!result)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    int r = prepare(p, bytes, err);
    r = r < 0 ? r : measure_rate(p, result, err);
    if (r < 0)
        return gp_bench_set_aside(r, result, err);
    return measure_latency(p, err);
}

static void close_pair(struct pair *p)
{
    if (p->from->ops->bind(p->from, NULL) == 0) {
        if (p->is_direct)
            p->from->ops->peer_close(p->from, p->to);
        p->from->ops->release(p->from, &p->source);
    }
    if (p->to->ops->bind(p->to, NULL) < 0)
        return;
    p->to->ops->release(p->to, &p->target);
    p->to->ops->release(p->to, &p->wanted);
    p->to->ops->release(p->to, &p->counts);
}

static int one(struct gp_bench *bench, size_t i, size_t j, size_t bytes, struct gp_err *err)
{
    struct pair p = {
        .bench = bench, .i = i, .j = j, .from = bench->devices[i], .to = bench->devices[j]};
    int r = p.to->ops->bind(p.to, err);
    r = r < 0 ? r : p.from->ops->bind(p.from, err);
    r = r < 0 ? r : p.from->ops->peer_open(p.from, p.to, &p.is_direct, err);
    r = r < 0 ? r : measure(&p, bytes, err);
    close_pair(&p);
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
