/* The part of cuBLASLt (libcublasLt.so) that multiplies matrices.
 * Source: the documentation of cuBLAS 12, "Using the cuBLASLt API". */
#ifndef GPULSE_ABI_CUBLASLT_H
#define GPULSE_ABI_CUBLASLT_H

#include <stddef.h>
#include <stdint.h>

/* In the system, or in a toolkit; the newest first. */
#define CUBLASLT_NAMES                                                                             \
    "libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11",                                 \
        "/usr/local/cuda/lib64/libcublasLt.so", "/opt/cuda/lib64/libcublasLt.so"
/* In Python packages, as PyTorch's wheels bring it. */
#define CUBLASLT_SITES                                                                             \
    "nvidia/cu13/lib/libcublasLt.so.13", "nvidia/cublas/lib/libcublasLt.so.12",                    \
        "nvidia/cublas/lib/libcublasLt.so.11"

struct CUstream_st;
typedef struct cublasLtContext *cublasLtHandle_t;
typedef struct cublasLtMatmulDescOpaque_t *cublasLtMatmulDesc_t;
typedef struct cublasLtMatrixLayoutOpaque_t *cublasLtMatrixLayout_t;
typedef struct cublasLtMatmulPreferenceOpaque_t *cublasLtMatmulPreference_t;

typedef enum {
    CUBLAS_STATUS_SUCCESS = 0,
    CUBLAS_STATUS_ALLOC_FAILED = 3,
    CUBLAS_STATUS_INVALID_VALUE = 7,
    CUBLAS_STATUS_ARCH_MISMATCH = 8,
    CUBLAS_STATUS_NOT_SUPPORTED = 15,
} cublasStatus_t;

typedef enum {
    CUDA_R_32F = 0,
    CUDA_R_64F = 1,
    CUDA_R_16F = 2,
    CUDA_R_8I = 3,
    CUDA_R_32I = 10,
    CUDA_R_16BF = 14,
    CUDA_R_8F_E4M3 = 28,
} cudaDataType;

typedef enum {
    CUBLAS_COMPUTE_32F = 68,
    CUBLAS_COMPUTE_64F = 70,
    CUBLAS_COMPUTE_32I = 72,
    CUBLAS_COMPUTE_32F_FAST_TF32 = 77,
} cublasComputeType_t;

typedef enum {
    CUBLAS_OP_N = 0,
    CUBLAS_OP_T = 1,
} cublasOperation_t;

typedef enum {
    CUBLASLT_MATMUL_DESC_TRANSA = 3,
    CUBLASLT_MATMUL_DESC_TRANSB = 4,
} cublasLtMatmulDescAttributes_t;

typedef enum {
    CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1,
    CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK = 3,
} cublasLtMatmulPreferenceAttributes_t;

typedef enum {
    CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE = 2, /* partial sums are not rounded to the type of C */
} cublasLtReductionScheme_t;

typedef struct {
    uint64_t data[8];
} cublasLtMatmulAlgo_t;

typedef struct {
    cublasLtMatmulAlgo_t algo;
    size_t workspaceSize;
    cublasStatus_t state;
    float wavesCount;
    int reserved[4];
} cublasLtMatmulHeuristicResult_t;

/* X(name, (parameters)); all return cublasStatus_t. Streams are those of the driver API. */
#define CUBLASLT_FUNCTIONS(X)                                                                      \
    X(cublasLtCreate, (cublasLtHandle_t * handle))                                                 \
    X(cublasLtDestroy, (cublasLtHandle_t handle))                                                  \
    X(cublasLtMatmulDescCreate,                                                                    \
      (cublasLtMatmulDesc_t * desc, cublasComputeType_t compute, cudaDataType scale))              \
    X(cublasLtMatmulDescDestroy, (cublasLtMatmulDesc_t desc))                                      \
    X(cublasLtMatmulDescSetAttribute,                                                              \
      (cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute, const void *value,     \
       size_t size))                                                                               \
    X(cublasLtMatrixLayoutCreate, (cublasLtMatrixLayout_t * layout, cudaDataType type,             \
                                   uint64_t rows, uint64_t columns, int64_t leading))              \
    X(cublasLtMatrixLayoutDestroy, (cublasLtMatrixLayout_t layout))                                \
    X(cublasLtMatmulPreferenceCreate, (cublasLtMatmulPreference_t * preference))                   \
    X(cublasLtMatmulPreferenceDestroy, (cublasLtMatmulPreference_t preference))                    \
    X(cublasLtMatmulPreferenceSetAttribute,                                                        \
      (cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,      \
       const void *value, size_t size))                                                            \
    X(cublasLtMatmulAlgoGetHeuristic,                                                              \
      (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,               \
       cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,               \
       cublasLtMatmulPreference_t preference, int wanted,                                          \
       cublasLtMatmulHeuristicResult_t *results, int *found))                                      \
    X(cublasLtMatmul,                                                                              \
      (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *a,       \
       cublasLtMatrixLayout_t a_layout, const void *b, cublasLtMatrixLayout_t b_layout,            \
       const void *beta, const void *c, cublasLtMatrixLayout_t c_layout, void *d,                  \
       cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo, void *workspace,         \
       size_t workspace_size, struct CUstream_st *stream))

#endif
