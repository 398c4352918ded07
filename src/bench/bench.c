#include "bench/bench.h"

#include "base/err.h"
#include "base/utf8.h"
#include "bench/verify.h"
#include "bench/watch.h"
#include "proc/cgroup.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS_MOST = 1 << 20 }; /* the product of sizes fits in 64 bits */

int gp_bench_ask_host(uint64_t bytes, struct gp_err *err)
{
    const uint64_t room = gp_cgroup_memory_room(NULL, (uint32_t)getpid());
    return bytes <= room
               ? 0
               : gp_err_set(err, GP_ENOMEM,
                            "not enough host memory: %llu MiB needed, %llu MiB available",
                            (unsigned long long)(bytes >> 20), (unsigned long long)(room >> 20));
}

int gp_bench_matrices_open(const struct gp_bench *bench, struct gp_bench_matrices *m,
                           enum gp_bench_precision precision, size_t n, struct gp_err *err)
{
    bool (*const cancelled)(void) = bench->pace.is_cancelled;
    const struct gp_bench_format *f = gp_bench_format(precision);
    *m = (struct gp_bench_matrices){.gemm = {.precision = precision, .n = n},
                                    .in_bytes = n * n * f->in_bytes,
                                    .out_bytes = n * n * f->out_bytes};
    bool has_room = n <= ROWS_MOST && gp_bench_ask_host(2 * m->in_bytes + m->out_bytes, NULL) == 0;
    m->a = has_room ? malloc(m->in_bytes) : NULL;
    m->b = has_room ? malloc(m->in_bytes) : NULL;
    if (!m->a || !m->b) {
        gp_bench_matrices_close(m);
        return gp_err_set(err, GP_ENOMEM, "not enough host memory for matrices of %zu rows", n);
    }
    int r = gp_bench_fill(precision, n, bench->seed, cancelled, m->a);
    r = r < 0 ? r : gp_bench_fill(precision, n, bench->seed + 1, cancelled, m->b);
    if (r < 0)
        gp_bench_matrices_close(m);
    return r < 0 ? gp_err_set(err, r, "interrupted") : 0;
}

void gp_bench_matrices_close(struct gp_bench_matrices *m)
{
    free(m->a);
    free(m->b);
    m->a = m->b = NULL;
}

int gp_bench_matrices_load(struct gp_bench_matrices *m, struct gp_bench_device *device,
                           struct gp_err *err)
{
    struct gp_bench_gemm *g = &m->gemm;
    m->device = device;
    int r = device->ops->alloc(device, m->in_bytes, &g->a, err);
    r = r < 0 ? r : device->ops->alloc(device, m->in_bytes, &g->b, err);
    r = r < 0 ? r : device->ops->alloc(device, m->out_bytes, &g->c, err);
    r = r < 0 ? r : device->ops->upload(device, &g->a, m->a, m->in_bytes, err);
    r = r < 0 ? r : device->ops->upload(device, &g->b, m->b, m->in_bytes, err);
    r = r < 0 ? r : device->ops->gemm_open(device, g, err);
    if (r < 0)
        gp_bench_matrices_unload(m);
    return r;
}

void gp_bench_matrices_unload(struct gp_bench_matrices *m)
{
    struct gp_bench_gemm *g = &m->gemm;
    if (!m->device)
        return;
    m->device->ops->gemm_close(m->device, g);
    m->device->ops->release(m->device, &g->a);
    m->device->ops->release(m->device, &g->b);
    m->device->ops->release(m->device, &g->c);
    m->device = NULL;
}

int gp_bench_multiply(void *matrices, struct gp_err *err)
{
    const struct gp_bench_matrices *m = matrices;
    return m->device->ops->gemm(m->device, &m->gemm, err);
}

double gp_bench_flop(const struct gp_bench_matrices *m)
{
    const double n = (double)m->gemm.n;
    return 2 * n * n * n;
}

int gp_bench_check_product(const struct gp_bench *bench, const struct gp_bench_matrices *m,
                           const void *c, struct gp_bench_result *result, struct gp_err *err)
{
    struct gp_bench_fault fault;
    const struct gp_bench_product product = {m->gemm.precision,       m->gemm.n, m->a, m->b, c,
                                             bench->pace.is_cancelled};
    int r = gp_bench_verify(&product, bench->seed, &fault);
    if (r < 0)
        return gp_err_set(err, r, "%s",
                          r == GP_EINTR ? "interrupted"
                                        : "not enough host memory to check a product");
    if (!fault.is_found)
        return 0;
    result->outcome = GP_BENCH_WRONG;
    (void)snprintf(result->note, sizeof(result->note),
                   "wrong: element %zu, %zu is %.9g, must be %.9g within %.2g (%zu of %zu rows)",
                   fault.row, fault.column, fault.got, fault.expected, fault.tolerance, fault.rows,
                   m->gemm.n);
    return 0;
}

int gp_bench_check(const struct gp_bench *bench, struct gp_bench_matrices *m,
                   struct gp_bench_result *result, struct gp_err *err)
{
    const struct gp_bench_ops *ops = m->device->ops;
    void *c = malloc(m->out_bytes);
    int r = c ? 0 : gp_err_set(err, GP_ENOMEM, "not enough host memory to check a product");
    r = r < 0 ? r : ops->stream(m->device, GP_BENCH_WRITE, NULL, NULL, &m->gemm.c, err);
    r = r < 0 ? r : gp_bench_multiply(m, err);
    r = r < 0 ? r : ops->wait(m->device, err);
    r = r < 0 ? r : ops->download(m->device, c, &m->gemm.c, 0, m->out_bytes, err);
    r = r < 0 ? r : gp_bench_check_product(bench, m, c, result, err);
    free(c);
    return r;
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

static struct gp_bench_result *add(struct gp_bench *bench, const char *test, const char *what,
                                   size_t i, uint64_t devices, uint64_t size, const char *unit)
{
    const char *name = i == GP_BENCH_CPU ? "cpu" : i == GP_BENCH_ALL ? "all" : bench->names[i];
    char text[120];
    (void)pthread_mutex_lock(&bench->lock);
    struct gp_bench_result *result = gp_bench_results_add(&bench->results, test, what, name);
    (void)pthread_mutex_unlock(&bench->lock);
    if (!result)
        return NULL;
    result->size = size;
    result->unit = unit;
    if (bench->watch)
        gp_bench_watch_begin(bench->watch, devices, test, what);
    if (bench->tell) {
        char title[GP_BENCH_TITLE_SIZE];
        gp_bench_title(bench, i, title);
        (void)snprintf(text, sizeof(text), "%s, %s, %s", test, what, title);
        bench->tell(text);
    }
    return result;
}

struct gp_bench_result *gp_bench_add(struct gp_bench *bench, const char *test, const char *what,
                                     size_t i, uint64_t size, const char *unit)
{
    const uint64_t devices = i < GP_BENCH_ALL    ? UINT64_C(1) << i
                             : i == GP_BENCH_ALL ? UINT64_MAX
                                                 : 0;
    return add(bench, test, what, i, devices, size, unit);
}

struct gp_bench_result *gp_bench_add_of(struct gp_bench *bench, const char *test, const char *what,
                                        uint64_t devices, uint64_t size, const char *unit)
{
    return add(bench, test, what, GP_BENCH_ALL, devices, size, unit);
}

int gp_bench_copy_results(struct gp_bench *bench, struct gp_bench_results *ret)
{
    *ret = (struct gp_bench_results){0};
    (void)pthread_mutex_lock(&bench->lock);
    const size_t count = bench->results.count;
    if (count > 0)
        ret->list = calloc(count, sizeof(*ret->list));
    if (ret->list) {
        memcpy(ret->list, bench->results.list, count * sizeof(*ret->list));
        ret->count = ret->room = count;
    }
    (void)pthread_mutex_unlock(&bench->lock);
    return count == ret->count ? 0 : GP_ENOMEM;
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

size_t gp_bench_overdue(const struct gp_bench *bench, struct gp_bench_patience *patience,
                        uint64_t now_ns, uint64_t *ret_ns)
{
    enum { STEP_MOST_MS = 500 }; /* more has passed if the process was stopped */
    const uint64_t most_ns = STEP_MOST_MS * GP_NS_PER_MS;
    const uint64_t passed_ns = patience->looked_ns ? now_ns - patience->looked_ns : 0;
    const uint64_t step_ns = passed_ns < most_ns ? passed_ns : most_ns;
    size_t overdue = GP_BENCH_ALL;
    patience->looked_ns = now_ns;
    patience->awake_ns += step_ns;
    for (size_t i = 0; i < bench->count; i++) {
        const uint64_t wait = bench->devices[i]->wait;
        const bool goes_on = wait && wait == patience->seen[i].wait;
        const uint64_t ns = goes_on ? patience->seen[i].ns + step_ns : 0;
        patience->seen[i].wait = wait;
        patience->seen[i].ns = ns;
        if (overdue == GP_BENCH_ALL && bench->devices[i]->is_gpu && ns > bench->pace.answer_ns) {
            overdue = i;
            *ret_ns = ns;
        }
    }
    return overdue;
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
