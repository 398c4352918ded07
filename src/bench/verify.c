#include "bench/verify.h"

#include "base/err.h"

#include <math.h>
#include <stdlib.h>

enum { SAMPLES = 1024, SAFETY = 4 };

/* splitmix64: passes BigCrush, and any seed will do. */
uint64_t gp_bench_random(struct gp_bench_random *random)
{
    uint64_t z = random->state += 0x9E3779B97F4A7C15U;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9U;
    z = (z ^ z >> 27) * 0x94D049BB133111EBU;
    return z ^ z >> 31;
}

/* The sum of four uniform numbers: nearly normal, bounded, and ten times as fast as Box-Muller. */
double gp_bench_normal(struct gp_bench_random *random)
{
    uint64_t bits = gp_bench_random(random);
    double sum = 0;
    for (int i = 0; i < 4; i++)
        sum += (double)(bits >> 16 * i & 0xFFFF) + 0.5;
    return (sum / 65536 - 2) * sqrt(3); /* mean 0, variance 1 */
}

static bool is_cancelled(bool (*ask)(void))
{
    return ask && ask();
}

int gp_bench_fill(enum gp_bench_precision precision, size_t n, uint64_t seed,
                  bool (*cancelled)(void), void *operand)
{
    const struct gp_bench_format *f = gp_bench_format(precision);
    double scale = precision == GP_BENCH_INT8 ? 32 : 1;
    struct gp_bench_random random = {seed};
    for (size_t i = 0; i < n * n; i++) {
        if (i % n == 0 && is_cancelled(cancelled))
            return GP_EINTR;
        gp_number_store(f->in, scale * gp_bench_normal(&random), (char *)operand + i * f->in_bytes);
    }
    return 0;
}

struct work {
    const struct gp_bench_product *p;
    const struct gp_bench_format *format;
    double *x, *bx;             /* the vector, and B·x */
    double *abx, *cx;           /* A·(B·x), and C·x */
    double *a_rows, *b_columns; /* their norms */
};

static double operand_at(const struct work *w, const void *operand, size_t i, size_t j)
{
    return gp_number_load(w->format->in,
                          (const char *)operand + (i + j * w->p->n) * w->format->in_bytes);
}

static double a_at(const struct work *w, size_t i, size_t j)
{
    return w->format->is_a_transposed ? operand_at(w, w->p->a, j, i) : operand_at(w, w->p->a, i, j);
}

static double result_at(const struct work *w, size_t i, size_t j)
{
    return gp_number_load(w->format->out,
                          (const char *)w->p->c + (i + j * w->p->n) * w->format->out_bytes);
}

/* How far an element may be from the exact value: the errors of its sum and of its operands, in
 * units of |row of A| · |column of B|, since the sums of random numbers are about that divided by
 * √n, as are the errors of rounding their terms; and its own rounding. */
static double tolerance_of(const struct work *w, size_t i, size_t j, double expected)
{
    const struct gp_bench_format *f = w->format;
    double factor = f->of_sum + 2 * f->of_in / sqrt((double)w->p->n);
    return SAFETY * factor * w->a_rows[i] * w->b_columns[j] + 2 * f->of_out * fabs(expected);
}

static double exact_at(const struct work *w, size_t i, size_t j)
{
    double sum = 0;
    for (size_t k = 0; k < w->p->n; k++)
        sum += a_at(w, i, k) * operand_at(w, w->p->b, k, j);
    return sum;
}

/* Written so that a NaN is wrong. */
static bool is_right(double got, double expected, double tolerance)
{
    return fabs(got - expected) <= tolerance;
}

/* False: cancelled. */
static bool compute(const struct work *w)
{
    size_t n = w->p->n;
    for (size_t j = 0; j < n; j++) {
        if (is_cancelled(w->p->is_cancelled))
            return false;
        for (size_t i = 0; i < n; i++) {
            double a = a_at(w, i, j);
            double b = operand_at(w, w->p->b, i, j);
            w->bx[i] += b * w->x[j];
            w->cx[i] += result_at(w, i, j) * w->x[j];
            w->a_rows[i] += a * a;
            w->b_columns[j] += b * b;
        }
    }
    for (size_t j = 0; j < n; j++) {
        if (is_cancelled(w->p->is_cancelled))
            return false;
        for (size_t i = 0; i < n; i++)
            w->abx[i] += a_at(w, i, j) * w->bx[j];
    }
    for (size_t i = 0; i < n; i++) {
        w->a_rows[i] = sqrt(w->a_rows[i]);
        w->b_columns[i] = sqrt(w->b_columns[i]);
    }
    return true;
}

static void blame(const struct work *w, size_t i, size_t j, double expected,
                  struct gp_bench_fault *ret)
{
    *ret = (struct gp_bench_fault){.is_found = true,
                                   .row = i,
                                   .column = j,
                                   .got = result_at(w, i, j),
                                   .expected = expected,
                                   .tolerance = tolerance_of(w, i, j, expected),
                                   .rows = ret->rows};
}

/* The worst element of a row that does not agree. */
static void search_row(const struct work *w, size_t i, struct gp_bench_fault *ret)
{
    double worst = -1;
    for (size_t j = 0; j < w->p->n; j++) {
        double expected = exact_at(w, i, j);
        double off = fabs(result_at(w, i, j) - expected);
        if (!(off <= worst)) { /* a NaN is the worst */
            worst = isnan(off) ? (double)INFINITY : off;
            blame(w, i, j, expected, ret);
        }
    }
}

static void check_rows(const struct work *w, struct gp_bench_fault *ret)
{
    size_t n = w->p->n;
    double columns = 0;
    size_t first = 0;
    for (size_t j = 0; j < n; j++)
        columns += w->b_columns[j] * w->b_columns[j];
    /* The errors of a row, with random signs, add like the steps of a random walk; so do those of
     * this check. */
    const struct gp_bench_format *f = w->format;
    double factor = SAFETY * (f->of_sum + (2 * f->of_in + f->of_out) / sqrt((double)n));
    factor += 1e-16 * sqrt((double)n);
    for (size_t i = 0; i < n; i++) {
        double tolerance = factor * w->a_rows[i] * sqrt(columns);
        if (!is_right(w->cx[i], w->abx[i], tolerance) && ret->rows++ == 0)
            first = i;
    }
    if (ret->rows > 0)
        search_row(w, first, ret);
}

static void check_samples(const struct work *w, struct gp_bench_random *random,
                          struct gp_bench_fault *ret)
{
    for (size_t k = 0; k < SAMPLES; k++) {
        size_t i = gp_bench_random(random) % w->p->n;
        size_t j = gp_bench_random(random) % w->p->n;
        double expected = exact_at(w, i, j);
        if (!is_right(result_at(w, i, j), expected, tolerance_of(w, i, j, expected))) {
            ret->rows = 1;
            blame(w, i, j, expected, ret);
            return;
        }
    }
}

int gp_bench_verify(const struct gp_bench_product *product, uint64_t seed,
                    struct gp_bench_fault *ret)
{
    size_t n = product->n;
    double *room = calloc(6 * n, sizeof(*room));
    struct gp_bench_random random = {seed};
    *ret = (struct gp_bench_fault){0};
    if (!room)
        return GP_ENOMEM;
    struct work w = {
        .p = product,
        .format = gp_bench_format(product->precision),
        .x = room,
        .bx = room + n,
        .abx = room + 2 * n,
        .cx = room + 3 * n,
        .a_rows = room + 4 * n,
        .b_columns = room + 5 * n,
    };
    for (size_t i = 0; i < n; i++)
        w.x[i] = gp_bench_random(&random) & 1 ? 1 : -1;
    const bool is_complete = compute(&w);
    if (is_complete)
        check_rows(&w, ret);
    if (is_complete && !ret->is_found)
        check_samples(&w, &random, ret);
    free(room);
    return is_complete ? 0 : GP_EINTR;
}
