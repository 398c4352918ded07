#include "bench/bench.h"

#include "base/err.h"
#include "base/io.h"
#include "base/utf8.h"
#include "bench/verify.h"
#include "bench/watch.h"
#include "proc/files.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MOST = 1 << 20 }; /* the product of sizes fits in 64 bits */

/* Of the host, without swapping; SIZE_MAX: unknown. */
static size_t available_bytes(void)
{
    char text[4096];
    uint64_t kib;
    return gp_io_read("/proc/meminfo", text, sizeof(text)) > 0 &&
                   gp_proc_find_number(text, "MemAvailable:", &kib)
               ? kib << 10
               : SIZE_MAX;
}

int gp_bench_matrices_open(struct gp_bench_matrices *m, enum gp_bench_precision precision, size_t n,
                           uint64_t seed, struct gp_err *err)
{
    const struct gp_bench_format *f = gp_bench_format(precision);
    *m = (struct gp_bench_matrices){.gemm = {.precision = precision, .n = n},
                                    .in_bytes = n * n * f->in_bytes,
                                    .out_bytes = n * n * f->out_bytes};
    bool has_room = n <= ROWS_MOST && 2 * m->in_bytes + m->out_bytes <= available_bytes();
    m->a = has_room ? malloc(m->in_bytes) : NULL;
    m->b = has_room ? malloc(m->in_bytes) : NULL;
    m->c = has_room ? malloc(m->out_bytes) : NULL;
    if (!m->a || !m->b || !m->c) {
        gp_bench_matrices_close(m);
        return gp_err_set(err, GP_ENOMEM, "not enough memory for matrices of %zu rows", n);
    }
    gp_bench_fill(precision, n, seed, m->a);
    gp_bench_fill(precision, n, seed + 1, m->b);
    return 0;
}

void gp_bench_matrices_close(struct gp_bench_matrices *m)
{
    free(m->a);
    free(m->b);
    free(m->c);
    m->a = m->b = m->c = NULL;
}

int gp_bench_matrices_load(struct gp_bench_matrices *m, struct gp_bench_device *device,
                           struct gp_err *err)
{
    struct gp_bench_gemm *g = &m->gemm;
    int r = device->ops->alloc(device, m->in_bytes, &g->a, err);
    r = r < 0 ? r : device->ops->alloc(device, m->in_bytes, &g->b, err);
    r = r < 0 ? r : device->ops->alloc(device, m->out_bytes, &g->c, err);
    r = r < 0 ? r : device->ops->upload(device, &g->a, m->a, m->in_bytes, err);
    r = r < 0 ? r : device->ops->upload(device, &g->b, m->b, m->in_bytes, err);
    r = r < 0 ? r : device->ops->gemm_open(device, g, err);
    if (r < 0)
        gp_bench_matrices_unload(m, device);
    return r;
}

void gp_bench_matrices_unload(struct gp_bench_matrices *m, struct gp_bench_device *device)
{
    struct gp_bench_gemm *g = &m->gemm;
    device->ops->gemm_close(device, g);
    device->ops->release(device, &g->a);
    device->ops->release(device, &g->b);
    device->ops->release(device, &g->c);
}

static int recompute(struct gp_bench_matrices *m, struct gp_bench_device *device,
                     struct gp_err *err)
{
    const struct gp_bench_ops *ops = device->ops;
    int r = ops->stream(device, GP_BENCH_WRITE, NULL, NULL, &m->gemm.c, err);
    r = r < 0 ? r : ops->gemm(device, &m->gemm, err);
    r = r < 0 ? r : ops->wait(device, err);
    return r < 0 ? r : ops->download(device, m->c, &m->gemm.c, 0, m->out_bytes, err);
}

int gp_bench_check(const struct gp_bench *bench, struct gp_bench_matrices *m,
                   struct gp_bench_device *device, struct gp_bench_result *result,
                   struct gp_err *err)
{
    struct gp_bench_fault fault;
    const struct gp_bench_product product = {m->gemm.precision, m->gemm.n, m->a, m->b, m->c};
    int r = device ? recompute(m, device, err) : 0;
    if (r == 0 && gp_bench_verify(&product, bench->seed, &fault) < 0)
        r = gp_err_set(err, GP_ENOMEM, "not enough memory to check a product");
    if (r < 0 || !fault.is_found)
        return r;
    result->outcome = GP_BENCH_WRONG;
    (void)snprintf(result->note, sizeof(result->note),
                   "wrong: element %zu, %zu is %.9g, must be %.9g within %.2g (%zu of %zu rows)",
                   fault.row, fault.column, fault.got, fault.expected, fault.tolerance, fault.rows,
                   m->gemm.n);
    return 0;
}

void gp_bench_check_part(const float *got, size_t count, size_t first, float factor,
                         struct gp_bench_result *result)
{
    for (size_t i = 0; i < count; i++) {
        float wanted = factor * (float)((first + i) & GP_BENCH_PATTERN);
        if (fabsf(got[i] - wanted) <= 0) /* a NaN is wrong */
            continue;
        result->outcome = GP_BENCH_WRONG;
        (void)snprintf(result->note, sizeof(result->note),
                       "wrong: element %zu is %.9g, must be %.9g", first + i, (double)got[i],
                       (double)wanted);
        return;
    }
}

int gp_bench_check_pattern(struct gp_bench_device *device, const struct gp_bench_buffer *buffer,
                           float factor, struct gp_bench_result *result, struct gp_err *err)
{
    enum { PART = 4 << 20 };
    float *got = malloc(PART);
    int r = got ? 0 : gp_err_set(err, GP_ENOMEM, "out of memory");
    for (size_t at = 0; r == 0 && result->outcome != GP_BENCH_WRONG && at < buffer->bytes;
         at += PART) {
        size_t bytes = buffer->bytes - at < PART ? buffer->bytes - at : PART;
        r = device->ops->download(device, got, buffer, at, bytes, err);
        if (r == 0)
            gp_bench_check_part(got, bytes / sizeof(*got), at / sizeof(*got), factor, result);
    }
    free(got);
    return r;
}

int gp_bench_check_equal(struct gp_bench_device *device, const struct gp_bench_buffer *wanted,
                         const struct gp_bench_buffer *got, const struct gp_bench_buffer *counts,
                         struct gp_bench_result *result, struct gp_err *err)
{
    const struct gp_bench_ops *ops = device->ops;
    uint32_t found[2] = {0, UINT32_MAX};
    int r = ops->upload(device, counts, found, sizeof(found), err);
    r = r < 0 ? r : ops->compare(device, wanted, got, counts, err);
    r = r < 0 ? r : ops->wait(device, err);
    r = r < 0 ? r : ops->download(device, found, counts, 0, sizeof(found), err);
    if (r < 0 || found[1] == UINT32_MAX)
        return r;
    result->outcome = GP_BENCH_WRONG;
    (void)snprintf(result->note, sizeof(result->note),
                   "wrong: %u pieces of 16 bytes, the first at byte %llu", found[0],
                   (unsigned long long)found[1] * 16);
    return 0;
}

void gp_bench_title(const struct gp_bench *bench, size_t i, char ret[GP_BENCH_TITLE_SIZE])
{
    if (i >= GP_BENCH_ALL)
        (void)snprintf(ret, GP_BENCH_TITLE_SIZE, "%s", i == GP_BENCH_ALL ? "all GPUs" : "CPU");
    else
        (void)snprintf(ret, GP_BENCH_TITLE_SIZE, "%s %s",
                       bench->devices[i]->is_gpu ? "GPU" : "OpenCL", bench->names[i]);
}

struct gp_bench_result *gp_bench_add(struct gp_bench *bench, const char *test, const char *what,
                                     size_t i, uint64_t size, const char *unit)
{
    const char *name = i == GP_BENCH_CPU ? "cpu" : i == GP_BENCH_ALL ? "all" : bench->names[i];
    struct gp_bench_result *result = gp_bench_results_add(&bench->results, test, what, name);
    char text[120];
    if (!result)
        return NULL;
    result->size = size;
    result->unit = unit;
    if (bench->watch)
        gp_bench_watch_begin(bench->watch, i, test, what);
    if (bench->tell) {
        char title[GP_BENCH_TITLE_SIZE];
        gp_bench_title(bench, i, title);
        (void)snprintf(text, sizeof(text), "%s, %s, %s", test, what, title);
        bench->tell(text);
    }
    return result;
}

void gp_bench_note(struct gp_bench *bench, size_t i, const struct gp_bench_timing *timing,
                   struct gp_bench_result *result)
{
    result->is_steady = timing->is_steady;
    if (i < GP_BENCH_ALL && bench->watch)
        gp_bench_watch_between(bench->watch, i, timing->begin_ns, timing->end_ns,
                               &result->conditions);
    if (timing->by_device && timing->host_ratio > 1.05 && !result->note[0])
        (void)snprintf(result->note, sizeof(result->note),
                       "the host's clock measured %.0f %% more than the GPU's",
                       100 * (timing->host_ratio - 1));
}

size_t gp_bench_overdue(const struct gp_bench *bench, uint64_t now_ns)
{
    for (size_t i = 0; i < bench->count; i++)
        if (bench->devices[i]->is_gpu &&
            gp_bench_waits_ns(bench->devices[i], now_ns) > bench->pace.answer_ns)
            return i;
    return GP_BENCH_ALL;
}

int gp_bench_set_aside(int r, struct gp_bench_result *result, struct gp_err *err)
{
    if (r != GP_ENODEV && r != GP_ENOMEM && r != GP_EDRIVER)
        return r;
    result->outcome = r == GP_EDRIVER ? GP_BENCH_FAILED : GP_BENCH_SKIPPED;
    gp_utf8_copy_safe(result->note, sizeof(result->note), err->text);
    if (r == GP_EDRIVER)
        return r;
    *err = (struct gp_err){0};
    return 0;
}

int gp_bench_conclude(struct gp_bench *bench, const char *test, size_t i, int r, struct gp_err *err)
{
    const struct gp_bench_results *results = &bench->results;
    const struct gp_bench_result *last = results->count ? &results->list[results->count - 1] : NULL;
    if (r != GP_EDRIVER && r != GP_ENODEV && r != GP_ENOMEM)
        return r;
    const size_t length = last ? strcspn(last->device, "-") : 0; /* "0->1" is of device 0, too */
    const bool is_told = last && last->outcome == GP_BENCH_FAILED &&
                         length == strlen(bench->names[i]) &&
                         memcmp(last->device, bench->names[i], length) == 0;
    const struct gp_err reason = *err;
    *err = (struct gp_err){0};
    if (is_told)
        return 0;
    struct gp_bench_result *result = gp_bench_add(bench, test, "-", i, 0, "");
    if (!result)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    result->outcome = r == GP_EDRIVER ? GP_BENCH_FAILED : GP_BENCH_SKIPPED;
    gp_utf8_copy_safe(result->note, sizeof(result->note), reason.text);
    return 0;
}
