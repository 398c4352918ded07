/* A test double of libcublasLt.so: it multiplies on the CPU, in double precision, and refuses what
 * cuBLASLt would not accept.
 *
 * Its version is 13 if its file is called so, and 12 otherwise.
 *
 * DOUBLE_FAULT   "flip": from the 5th product on, one has a wrong bit; "nan": likewise; "nocublas":
 *                it does not start
 * DOUBLE_LOG     a file for the names of the calls */
#include "abi/cublaslt.h"

#include "bench/precision.h"
#include "double.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define X(name, args) __attribute__((visibility("default"))) cublasStatus_t name args;
CUBLASLT_FUNCTIONS(X)
#undef X

enum { INVALID = 7, FAULTY_PRODUCT = 5 };

struct cublasLtContext {
    unsigned products;
};
struct cublasLtMatmulDescOpaque_t {
    cublasComputeType_t compute;
    cudaDataType scale;
    cublasOperation_t a, b;
};
struct cublasLtMatrixLayoutOpaque_t {
    cudaDataType type;
    size_t n;
};
struct cublasLtMatmulPreferenceOpaque_t {
    size_t workspace;
    uint32_t reduction;
};

static cublasStatus_t created(const void *object)
{
    return object ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

__attribute__((visibility("default"))) size_t cublasLtGetVersion(void);

size_t cublasLtGetVersion(void)
{
    Dl_info info;
    return dladdr(__func__, &info) && strstr(info.dli_fname, ".so.13") ? 130100 : 120804;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    double_note(__func__);
    *handle = calloc(1, sizeof(**handle));
    if (!double_has_fault("nocublas"))
        return created(*handle);
    free(*handle);
    return (cublasStatus_t)1; /* not initialized */
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    double_note(__func__);
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute,
                                        cudaDataType scale)
{
    *desc = calloc(1, sizeof(**desc));
    if (*desc)
        **desc = (struct cublasLtMatmulDescOpaque_t){.compute = compute, .scale = scale};
    return created(*desc);
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
    free(desc);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t size)
{
    if (size != sizeof(cublasOperation_t))
        return (cublasStatus_t)INVALID;
    memcpy(attribute == CUBLASLT_MATMUL_DESC_TRANSA ? &desc->a : &desc->b, value, size);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t leading)
{
    if (rows != columns || (uint64_t)leading != rows)
        return (cublasStatus_t)INVALID;
    *layout = calloc(1, sizeof(**layout));
    if (*layout)
        **layout = (struct cublasLtMatrixLayoutOpaque_t){.type = type, .n = rows};
    return created(*layout);
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    free(layout);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
    *preference = calloc(1, sizeof(**preference));
    return created(*preference);
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    free(preference);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t size)
{
    if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK &&
        size == sizeof(preference->reduction))
        memcpy(&preference->reduction, value, size);
    else if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES &&
             size == sizeof(preference->workspace))
        memcpy(&preference->workspace, value, size);
    else
        return CUBLAS_STATUS_INVALID_VALUE;
    return CUBLAS_STATUS_SUCCESS;
}

/* The types that may be combined, by the documentation of cublasLtMatmul(). FP8 wants dimensions
 * that are multiples of 16, INT8 of 4, and both A transposed. */
static const struct {
    cudaDataType in, out, scale;
    cublasComputeType_t compute;
    enum gp_number in_number, out_number;
    size_t multiple;
} kinds[] = {
    {CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, GP_NUMBER_F64, GP_NUMBER_F64, 1},
    {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, GP_NUMBER_F32, GP_NUMBER_F32, 1},
    {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, GP_NUMBER_F32, GP_NUMBER_F32,
     1},
    {CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F, GP_NUMBER_F16, GP_NUMBER_F16, 1},
    {CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, GP_NUMBER_BF16, GP_NUMBER_BF16, 1},
    {CUDA_R_8F_E4M3, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, GP_NUMBER_E4M3, GP_NUMBER_BF16,
     16},
    {CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUBLAS_COMPUTE_32I, GP_NUMBER_I8, GP_NUMBER_I32, 4},
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static size_t kind_of(cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t in,
                      cublasLtMatrixLayout_t out)
{
    for (size_t i = 0; i < KINDS; i++)
        if (kinds[i].in == in->type && kinds[i].out == out->type && kinds[i].scale == desc->scale &&
            kinds[i].compute == desc->compute && in->n % kinds[i].multiple == 0 &&
            (desc->a == CUBLAS_OP_T) == (kinds[i].multiple > 1) && desc->b == CUBLAS_OP_N)
            return i;
    return KINDS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t *results, int *found)
{
    double_note(__func__);
    (void)handle;
    *found = 0;
    if (a->n != b->n || c != d || wanted < 1 || !preference->workspace ||
        preference->reduction != CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)
        return (cublasStatus_t)INVALID;
    if (kind_of(desc, a, c) == KINDS)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    results[0].state = CUBLAS_STATUS_SUCCESS;
    results[0].algo.data[0] = 66;
    *found = 1;
    return CUBLAS_STATUS_SUCCESS;
}

static size_t bytes_of(enum gp_number number)
{
    static const size_t bytes[] = {
#define X(id, bytes) bytes,
        GP_NUMBERS(X)
#undef X
    };
    return bytes[number];
}

static void multiply(size_t kind, size_t n, const void *a, const void *b, void *c)
{
    size_t in = bytes_of(kinds[kind].in_number);
    size_t out = bytes_of(kinds[kind].out_number);
    int is_transposed = kinds[kind].multiple > 1;
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < n; i++) {
            double sum = 0;
            for (size_t k = 0; k < n; k++)
                sum +=
                    gp_number_load(kinds[kind].in_number,
                                   (const char *)a + in * (is_transposed ? k + i * n : i + k * n)) *
                    gp_number_load(kinds[kind].in_number, (const char *)b + in * (k + j * n));
            gp_number_store(kinds[kind].out_number, sum, (char *)c + out * (i + j * n));
        }
}

/* Damages an element in the middle. */
static void damage(size_t kind, size_t n, void *c)
{
    size_t out = bytes_of(kinds[kind].out_number);
    char *at = (char *)c + out * (n / 2 + n / 2 * n);
    if (double_has_fault("flip"))
        at[out - 1] ^= 0x40; /* the highest bit of the exponent */
    if (double_has_fault("nan"))
        gp_number_store(kinds[kind].out_number, (double)NAN, at);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                              cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                              cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo,
                              void *workspace, size_t workspace_size, struct CUstream_st *stream)
{
    static const double wide = 1;
    static const float single = 1;
    static const int32_t whole = 1;
    size_t kind = kind_of(desc, a_layout, c_layout);
    if (kind == KINDS || b_layout->n != a_layout->n || c != d || c_layout != d_layout ||
        algo->data[0] != 66 || !workspace || !workspace_size || !stream)
        return (cublasStatus_t)INVALID;
    const void *one = desc->scale == CUDA_R_64F   ? (const void *)&wide
                      : desc->scale == CUDA_R_32F ? (const void *)&single
                                                  : &whole;
    static const char zero[8];
    size_t size = desc->scale == CUDA_R_64F ? 8 : 4;
    if (memcmp(alpha, one, size) != 0 || memcmp(beta, zero, size) != 0)
        return (cublasStatus_t)INVALID;
    double_work(stream);
    multiply(kind, a_layout->n, a, b, d);
    if (++handle->products == FAULTY_PRODUCT)
        double_note("fifth product");
    if (handle->products >= FAULTY_PRODUCT)
        damage(kind, a_layout->n, d);
    return CUBLAS_STATUS_SUCCESS;
}
