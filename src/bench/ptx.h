/* Kernels of our own for GPUs of NVIDIA, as PTX, which the driver compiles. */
#ifndef GP_BENCH_PTX_H
#define GP_BENCH_PTX_H

#include "base/util.h"

struct gp_strbuf;

/* How the kernels are started. The streams, k_compare and k_empty take (a, b, c, n): addresses, and
 * the number of 16-byte pieces; any grid will do. The products take (c, a, b, n), one block for
 * each tile; those of tensor cores only an n that is a multiple of GP_PTX_TILE. */
enum {
    GP_PTX_THREADS = 256,        /* of a block */
    GP_PTX_TENSOR_THREADS = 128, /* of a block that uses tensor cores */
    GP_PTX_TILE = 64,            /* rows and columns of the result that a block computes */
};

/* The first compute capabilities of the two modules. */
enum { GP_PTX_CAPABILITY = 50, GP_PTX_TENSOR_CAPABILITY = 80 };

/* Appends a module with k_read, k_write, k_copy, k_triad, k_compare, k_empty, k_gemm_f32 and
 * k_gemm_f64. */
void gp_ptx_add_module(struct gp_strbuf *sb);

/* Appends a module with k_mma_f16 and k_mma_bf16: products by mma.sync, with sums in FP32. */
void gp_ptx_add_tensor_module(struct gp_strbuf *sb);

#endif
