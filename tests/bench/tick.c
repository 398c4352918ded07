/* One program, one sampler: how long a tick of everything takes, and what it allocates.
 *
 * tick LIBRARY TICKS: asks the machine in GPULSE_SIM for all metrics, processes and MIG instances,
 * and prints a line for each tick: milliseconds, allocations, bytes. */
#include "base/clock.h"
#include "base/err.h"
#include "model/select.h"
#include "model/snapshot.h"
#include "sample/sampler.h"
#include "source/nvml/nvml.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

static atomic_ulong allocations;
static atomic_ulong bytes;

static void count(size_t size)
{
    atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&bytes, size, memory_order_relaxed);
}

void *__wrap_malloc(size_t size)
{
    count(size);
    return __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    count(n * size);
    return __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    count(size);
    return __real_realloc(old, size);
}

static int fail(const struct gp_err *err)
{
    (void)fprintf(stderr, "tick: %s\n", err->text);
    return 1;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        (void)fprintf(stderr, "usage: tick LIBRARY TICKS\n");
        return 2;
    }
    const struct gp_nvml_config nvml = {.library = argv[1], .simulated = true};
    struct gp_selection everything = {0};
    struct gp_sampler_config config = {.source = gp_nvml_new(&nvml),
                                       .timeout_ns = 60 * GP_NS_PER_S,
                                       .selection = &everything,
                                       .want = {.processes = true, .mig = true}};
    for (int m = 0; m < GP_METRIC__COUNT; m++)
        gp_metric_set_add(&config.want.metrics, (enum gp_metric)m);
    struct gp_sampler *sampler;
    struct gp_err err = {0};
    if (gp_sampler_new(&config, &sampler, &err) < 0)
        return fail(&err);
    for (long i = 0; i < strtol(argv[2], NULL, 10); i++) {
        struct gp_snapshot *snapshot;
        unsigned long allocations_before = allocations;
        unsigned long bytes_before = bytes;
        uint64_t start_ns = gp_clock_mono_ns();
        if (gp_sampler_tick(sampler, &snapshot, &err) < 0)
            return fail(&err);
        (void)printf("%.3f %lu %lu\n", (double)(gp_clock_mono_ns() - start_ns) / 1e6,
                     allocations - allocations_before, bytes - bytes_before);
        gp_snapshot_free(snapshot);
        (void)usleep(120000); /* GPM wants a gap */
    }
    return gp_sampler_free(sampler) ? 0 : 1;
}
