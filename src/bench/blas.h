/* Products of matrices on the CPU, by the BLAS library of this machine. */
#ifndef GP_BENCH_BLAS_H
#define GP_BENCH_BLAS_H

#include "bench/precision.h"

struct gp_err;

struct gp_blas {
    char name[160]; /* "OpenBLAS 0.3.21, kernels for SkylakeX" */
    unsigned threads;
    void *sgemm, *dgemm; /* cblas functions */
    bool is_wide;        /* their integers have 64 bits */
};

/* GP_ENODEV: there is none; the error says what to install. */
int gp_blas_open(struct gp_blas *ret, struct gp_err *err) GP_MUST_CHECK;

/* C = A·B in FP32 or FP64: square matrices of n rows, stored by columns. */
void gp_blas_gemm(const struct gp_blas *blas, enum gp_bench_precision precision, size_t n,
                  const void *a, const void *b, void *c);

#endif
