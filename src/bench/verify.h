/* Whether a product of matrices is right. Pure functions.
 *
 * Every element of the result takes part: for a random vector x of ±1, the rows of C·x must be
 * those of A·(B·x), which costs n² operations instead of n³ (Freivalds' check). An error that is
 * smaller than what rounding does to a row stays hidden there; so some elements are compared one by
 * one as well. A NaN never passes. */
#ifndef GP_BENCH_VERIFY_H
#define GP_BENCH_VERIFY_H

#include "bench/precision.h"

/* Square matrices of n rows, stored by columns: element (i, j) is at i + j·n; A by rows if the
 * precision says so. */
struct gp_bench_product {
    enum gp_bench_precision precision;
    size_t n;
    const void *a, *b, *c;      /* in the formats of the precision */
    bool (*is_cancelled)(void); /* asked for each column; NULL: never */
};

struct gp_bench_fault {
    bool is_found;
    size_t row, column;   /* of a wrong element, the worst of its row */
    double got, expected; /* expected: within `tolerance` */
    double tolerance;
    size_t rows; /* that do not agree */
};

/* GP_ENOMEM; GP_EINTR: cancelled. */
int gp_bench_verify(const struct gp_bench_product *product, uint64_t seed,
                    struct gp_bench_fault *ret) GP_MUST_CHECK;

/* Random numbers with a normal distribution, for operands: real data, because GPUs are faster with
 * zeros. */
struct gp_bench_random {
    uint64_t state;
};
uint64_t gp_bench_random(struct gp_bench_random *random);
double gp_bench_normal(struct gp_bench_random *random);

/* Fills an operand of n×n elements. GP_EINTR: cancelled, which it asks for each column (NULL:
 * never). */
int gp_bench_fill(enum gp_bench_precision precision, size_t n, uint64_t seed,
                  bool (*is_cancelled)(void), void *operand) GP_MUST_CHECK;

#endif
