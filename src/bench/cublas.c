#include "bench/cublas.h"

#include "abi/cublaslt.h"
#include "base/err.h"
#include "bench/library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TURING_VERSION = 130000, TURING_CAPABILITY = 75 }; /* CUDA 13 begins with Turing */

/* One library per process. */
static struct {
    void *library;
#define X(name, args) cublasStatus_t(*name) args;
    CUBLASLT_FUNCTIONS(X)
#undef X
} lt;

static const struct gp_bench_symbol symbols[] = {
#define X(name, args) {#name, offsetof(__typeof__(lt), name)},
    CUBLASLT_FUNCTIONS(X)
#undef X
};

static struct {
    size_t (*cublasLtGetVersion)(void); /* NULL: it has none */
} lt_version;

struct gp_cublas {
    cublasLtHandle_t handle;
};

/* While a library is looked for. */
struct opening {
    unsigned capability; /* of the GPU */
    cublasLtHandle_t handle;
    struct gp_err reason; /* why the last one cannot be used */
};

/* What cuBLASLt calls a precision. */
static const struct recipe {
    cudaDataType in, out, scale;
    cublasComputeType_t compute;
} recipes[] = {
    [GP_BENCH_FP64] = {CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F},
    [GP_BENCH_FP32] = {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F},
    [GP_BENCH_TF32] = {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32},
    [GP_BENCH_FP16] = {CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F},
    [GP_BENCH_BF16] = {CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F},
    [GP_BENCH_FP8] = {CUDA_R_8F_E4M3, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F},
    [GP_BENCH_INT8] = {CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUBLAS_COMPUTE_32I},
};

/* A prepared product. */
struct prepared {
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t in, out;
    cublasLtMatmulHeuristicResult_t choice;
};

static int check(cublasStatus_t status, const char *what, struct gp_err *err)
{
    return status == CUBLAS_STATUS_SUCCESS
               ? 0
               : gp_err_set(err, status == CUBLAS_STATUS_ALLOC_FAILED ? GP_ENOMEM : GP_EDRIVER,
                            "cuBLASLt: %s: error %d", what, (int)status);
}

static size_t version(void)
{
    return lt_version.cublasLtGetVersion ? lt_version.cublasLtGetVersion() : 0;
}

/* Whether a library can be used: it has all functions and code for the GPU, and starts. Its start
 * alone says nothing about the GPU. */
static bool start(void *library, void *context)
{
    static const struct gp_bench_symbol optional[] = {{"cublasLtGetVersion", 0}};
    struct opening *o = context;
    const char *missing = gp_bench_library_find(library, symbols, GP_ARRAY_LEN(symbols), &lt);
    if (gp_bench_library_find(library, optional, 1, &lt_version))
        lt_version.cublasLtGetVersion = NULL;
    if (missing) {
        (void)gp_err_set(&o->reason, GP_ENODEV, "cuBLASLt has no function %s", missing);
        return false;
    }
    if (version() >= TURING_VERSION && o->capability < TURING_CAPABILITY) {
        (void)gp_err_set(&o->reason, GP_ENODEV,
                         "cuBLAS %zu does not support this GPU (compute capability %u.%u); "
                         "install cuBLAS 12",
                         version() / 10000, o->capability / 10, o->capability % 10);
        return false;
    }
    cublasStatus_t status = lt.cublasLtCreate(&o->handle);
    if (status == CUBLAS_STATUS_SUCCESS)
        lt.library = library;
    else
        (void)gp_err_set(&o->reason, GP_ENODEV, "cuBLAS does not start: error %d", (int)status);
    return status == CUBLAS_STATUS_SUCCESS;
}

static bool find(unsigned capability, struct opening *o)
{
    static const char *const names[] = {CUBLASLT_NAMES, NULL};
    static const char *const sites[] = {CUBLASLT_SITES, NULL};
    *o = (struct opening){.capability = capability};
    return lt.library ? start(lt.library, o) : gp_bench_library_try(sites, names, start, o);
}

int gp_cublas_open(const struct gp_bench_device *device, struct gp_cublas **ret, struct gp_err *err)
{
    struct opening o;
    *ret = NULL;
    const bool is_open = (!lt.library && device->least_capability < device->capability &&
                          find(device->least_capability, &o)) ||
                         find(device->capability, &o);
    if (!is_open && o.reason.code)
        return gp_err_copy(err, &o.reason);
    if (!is_open)
        return gp_err_set(err, GP_ENODEV,
                          "cuBLAS was not found: activate a Python environment with PyTorch, or "
                          "pip install nvidia-cublas-cu12, or install a CUDA toolkit");
    *ret = calloc(1, sizeof(**ret));
    if (!*ret) {
        (void)lt.cublasLtDestroy(o.handle);
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    }
    (*ret)->handle = o.handle;
    return 0;
}

void gp_cublas_close(struct gp_cublas *cublas)
{
    if (cublas)
        (void)lt.cublasLtDestroy(cublas->handle);
    free(cublas);
}

void gp_cublas_forget(struct gp_bench_gemm *gemm)
{
    struct prepared *p = gemm->inner;
    if (!p)
        return;
    if (p->out)
        (void)lt.cublasLtMatrixLayoutDestroy(p->out);
    if (p->in)
        (void)lt.cublasLtMatrixLayoutDestroy(p->in);
    if (p->desc)
        (void)lt.cublasLtMatmulDescDestroy(p->desc);
    free(p);
    gemm->inner = NULL;
}

static cublasStatus_t describe(const struct gp_bench_gemm *gemm, struct prepared *p)
{
    const struct recipe *recipe = &recipes[gemm->precision];
    const cublasOperation_t op =
        gp_bench_format(gemm->precision)->is_a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasStatus_t s = lt.cublasLtMatmulDescCreate(&p->desc, recipe->compute, recipe->scale);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = lt.cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_TRANSA, &op,
                                              sizeof(op));
    if (s == CUBLAS_STATUS_SUCCESS)
        s = lt.cublasLtMatrixLayoutCreate(&p->in, recipe->in, gemm->n, gemm->n, (int64_t)gemm->n);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = lt.cublasLtMatrixLayoutCreate(&p->out, recipe->out, gemm->n, gemm->n, (int64_t)gemm->n);
    return s;
}

/* The algorithm that the library prefers, of those that add in the precision of the sums. */
static cublasStatus_t choose(struct gp_cublas *cublas, struct prepared *p, size_t workspace_bytes,
                             int *ret_found)
{
    const uint32_t scheme = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    cublasLtMatmulPreference_t preference;
    cublasStatus_t s = lt.cublasLtMatmulPreferenceCreate(&preference);
    *ret_found = 0;
    if (s != CUBLAS_STATUS_SUCCESS)
        return s;
    s = lt.cublasLtMatmulPreferenceSetAttribute(preference,
                                                CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                &workspace_bytes, sizeof(workspace_bytes));
    if (s == CUBLAS_STATUS_SUCCESS)
        s = lt.cublasLtMatmulPreferenceSetAttribute(
            preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &scheme, sizeof(scheme));
    if (s == CUBLAS_STATUS_SUCCESS)
        s = lt.cublasLtMatmulAlgoGetHeuristic(cublas->handle, p->desc, p->in, p->in, p->out, p->out,
                                              preference, 1, &p->choice, ret_found);
    (void)lt.cublasLtMatmulPreferenceDestroy(preference);
    return s;
}

static void describe_library(struct gp_bench_gemm *gemm)
{
    const size_t v = version();
    (void)snprintf(gemm->kernel, sizeof(gemm->kernel), "cuBLASLt %zu.%zu.%zu", v / 10000,
                   v / 100 % 100, v % 100);
}

int gp_cublas_prepare(struct gp_cublas *cublas, struct gp_bench_gemm *gemm, size_t workspace_bytes,
                      struct gp_err *err)
{
    int found = 0;
    struct prepared *p = calloc(1, sizeof(*p));
    if (!p)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    gemm->inner = p;
    cublasStatus_t s = describe(gemm, p);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = choose(cublas, p, workspace_bytes, &found);
    if (s == CUBLAS_STATUS_SUCCESS && found > 0 && p->choice.state == CUBLAS_STATUS_SUCCESS) {
        describe_library(gemm);
        return 0;
    }
    gp_cublas_forget(gemm);
    if (s == CUBLAS_STATUS_SUCCESS || s == CUBLAS_STATUS_NOT_SUPPORTED ||
        s == CUBLAS_STATUS_INVALID_VALUE || s == CUBLAS_STATUS_ARCH_MISMATCH)
        return gp_err_set(err, GP_ENODEV, "cuBLASLt has no %s for this GPU and %zu rows",
                          gp_bench_format(gemm->precision)->title, gemm->n);
    return check(s, "cannot prepare a product", err);
}

int gp_cublas_multiply(struct gp_cublas *cublas, const struct gp_bench_gemm *gemm,
                       uint64_t workspace, size_t workspace_bytes, struct CUstream_st *stream,
                       struct gp_err *err)
{
    static const struct {
        double wide;
        float single;
        int32_t whole;
    } one = {1, 1, 1}, zero = {0, 0, 0};
    const struct prepared *p = gemm->inner;
    const cudaDataType scale = recipes[gemm->precision].scale;
    const size_t at = scale == CUDA_R_64F   ? offsetof(__typeof__(one), wide)
                      : scale == CUDA_R_32F ? offsetof(__typeof__(one), single)
                                            : offsetof(__typeof__(one), whole);
    /* addresses of the device, which this process never dereferences */
    void *a = (void *)(uintptr_t)gemm->a.at.address;
    void *b = (void *)(uintptr_t)gemm->b.at.address;
    void *c = (void *)(uintptr_t)gemm->c.at.address;
    return check(lt.cublasLtMatmul(cublas->handle, p->desc, (const char *)&one + at, a, p->in, b,
                                   p->in, (const char *)&zero + at, c, p->out, c, p->out,
                                   &p->choice.algo, (void *)(uintptr_t)workspace, workspace_bytes,
                                   stream),
                 "cannot multiply", err);
}
