/* How long small things take: what limits a program of many short kernels. */
#include "bench/bench.h"

#include "base/err.h"

enum { BRIEF = 2, BUFFER_BYTES = 1 << 20, SMALL_BYTES = 4 };

struct target {
    struct gp_bench_device *device;
    struct gp_bench_buffer small;
    void *host;
};

static int run_launch(void *context, struct gp_err *err)
{
    const struct target *t = context;
    return t->device->ops->empty(t->device, err);
}

static int run_round_trip(void *context, struct gp_err *err)
{
    const struct target *t = context;
    int r = t->device->ops->empty(t->device, err);
    return r < 0 ? r : t->device->ops->wait(t->device, err);
}

static int run_alloc(void *context, struct gp_err *err)
{
    const struct target *t = context;
    struct gp_bench_buffer buffer;
    int r = t->device->ops->alloc(t->device, BUFFER_BYTES, &buffer, err);
    t->device->ops->release(t->device, &buffer);
    return r;
}

static int run_to_device(void *context, struct gp_err *err)
{
    const struct target *t = context;
    return t->device->ops->upload(t->device, &t->small, t->host, SMALL_BYTES, err);
}

static int run_to_host(void *context, struct gp_err *err)
{
    const struct target *t = context;
    return t->device->ops->download(t->device, t->host, &t->small, 0, SMALL_BYTES, err);
}

static int run_context(void *context, struct gp_err *err)
{
    const struct target *t = context;
    return t->device->ops->context(t->device, err);
}

static const struct {
    const char *what;
    int (*run)(void *context, struct gp_err *err);
    bool is_synchronous; /* it waits itself, and the host's clock measures it */
} things[] = {
    {"launches in a row", run_launch, false}, {"launch and wait", run_round_trip, true},
    {"4 bytes to GPU", run_to_device, true},  {"4 bytes to host", run_to_host, true},
    {"alloc+free 1 MiB", run_alloc, true},    {"create a context", run_context, true},
};

static int one(struct gp_bench *bench, size_t i, struct target *t, struct gp_err *err)
{
    int r = 0;
    for (size_t k = 0; r == 0 && k < (bench->is_brief ? BRIEF : GP_ARRAY_LEN(things)); k++) {
        struct gp_bench_timing timing;
        struct gp_bench_result *result = gp_bench_add(bench, "latency", things[k].what, i, 0, "us");
        if (!result)
            return gp_err_set(err, GP_ENOMEM, "out of memory");
        result->is_lower_better = true;
        const struct gp_bench_work work = {things[k].is_synchronous ? NULL : t->device,
                                           things[k].run, t};
        r = gp_bench_measure(&work, &bench->pace, &timing, err);
        if (r < 0) {
            r = gp_bench_set_aside(r, result, err);
            continue;
        }
        result->value = gp_bench_times(&timing.ns, GP_NS_PER_US);
        gp_bench_note(bench, i, &timing, result);
    }
    return r;
}

int gp_bench_latency(struct gp_bench *bench, struct gp_err *err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < bench->count; i++) {
        struct target t = {.device = bench->devices[i]};
        const struct gp_bench_ops *ops = t.device->ops;
        r = ops->bind(t.device, err);
        r = r < 0 ? r : ops->alloc(t.device, BUFFER_BYTES, &t.small, err);
        r = r < 0 ? r : ops->host_alloc(t.device, BUFFER_BYTES, &t.host, err);
        r = r < 0 ? r : one(bench, i, &t, err);
        r = gp_bench_conclude(bench, "latency", i, r, err);
        ops->release(t.device, &t.small);
        ops->host_release(t.device, t.host, BUFFER_BYTES);
    }
    return r;
}
