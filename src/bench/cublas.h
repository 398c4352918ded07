/* Products of matrices by cuBLASLt, where it is found: in the system, in a CUDA toolkit, or in the
 * packages of the active Python. */
#ifndef GP_BENCH_CUBLAS_H
#define GP_BENCH_CUBLAS_H

#include "bench/device.h"

struct CUstream_st;
struct gp_cublas;

/* For the device, whose context is the current one. Prefers a library that all measured devices can
 * use. GP_ENODEV: there is no such library for it; GP_EDRIVER: it fails. */
int gp_cublas_open(const struct gp_bench_device *device, struct gp_cublas **ret,
                   struct gp_err *err) GP_MUST_CHECK;
void gp_cublas_close(struct gp_cublas *cublas); /* NULL: does nothing */

/* Prepares a product, whose buffers exist; workspace: `workspace_bytes` of the device. GP_ENODEV:
 * neither this GPU nor this library has the precision. */
int gp_cublas_prepare(struct gp_cublas *cublas, struct gp_bench_gemm *gemm, size_t workspace_bytes,
                      struct gp_err *err) GP_MUST_CHECK;
int gp_cublas_multiply(struct gp_cublas *cublas, const struct gp_bench_gemm *gemm,
                       uint64_t workspace, size_t workspace_bytes, struct CUstream_st *stream,
                       struct gp_err *err) GP_MUST_CHECK;
void gp_cublas_forget(struct gp_bench_gemm *gemm);

#endif
