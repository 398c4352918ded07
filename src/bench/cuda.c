/* GPUs of NVIDIA, through the driver's libcuda.so.1. Products of matrices come from cuBLASLt or, in
 * FP32 and FP64, from kernels of our own; the other kernels are ours. */
#include "bench/device.h"

#include "abi/cuda.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "bench/cublas.h"
#include "bench/library.h"
#include "bench/near.h"
#include "bench/ptx.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WORKSPACE_BYTES = 32 << 20, /* as NVIDIA recommends for Hopper */
    BLOCKS_PER_UNIT = 32,       /* of a stream kernel: enough to fill a multiprocessor */
};

/* One library per process. */
static struct {
    void *library;
#define X(name, args) CUresult(*name) args;
    CUDA_COMPUTE_FUNCTIONS(X)
#undef X
} cu;

static const struct gp_bench_symbol symbols[] = {
#define X(name, args) {#name, offsetof(__typeof__(cu), name)},
    CUDA_COMPUTE_FUNCTIONS(X)
#undef X
};

/* X(id, name) */
#define KERNELS(X)                                                                                 \
    X(READ, "k_read") /* the streams in the order of GP_BENCH_STREAMS */                           \
    X(WRITE, "k_write")                                                                            \
    X(COPY, "k_copy")                                                                              \
    X(TRIAD, "k_triad")                                                                            \
    X(COMPARE, "k_compare")                                                                        \
    X(EMPTY, "k_empty")                                                                            \
    X(GEMM_F32, "k_gemm_f32")                                                                      \
    X(GEMM_F64, "k_gemm_f64")                                                                      \
    X(MMA_F16, "k_mma_f16") /* from here on in the module of tensor cores */                       \
    X(MMA_BF16, "k_mma_bf16")

enum kernel {
#define X(id, name) KERNEL_##id,
    KERNELS(X)
#undef X
        KERNEL__COUNT,
};

struct cuda {
    CUdevice id;
    int ordinal;
    char address[32]; /* on the PCI bus, as in /sys; "": unknown */
    CUcontext context;
    CUstream stream, to_host; /* copies to the host run beside everything else */
    CUevent begin, end, side;
    CUmodule modules[2]; /* the second: of tensor cores; loaded when first used, like the next */
    CUfunction kernels[KERNEL__COUNT];
    struct gp_cublas *cublas;
    struct gp_err no_cublas; /* why there is none */
    CUdeviceptr workspace;
};

static int check(CUresult code, const char *what, struct gp_err *err)
{
    const char *name = NULL;
    if (code == CUDA_SUCCESS)
        return 0;
    if (cu.cuGetErrorName(code, &name) != CUDA_SUCCESS || !name)
        name = "unknown error";
    return gp_err_set(err, code == CUDA_ERROR_OUT_OF_MEMORY ? GP_ENOMEM : GP_EDRIVER, "%s: %s (%d)",
                      what, name, (int)code);
}

/* Calls the functions in turn, up to the first one that fails. */
#define FIRST(r, code, what, err) ((r) < 0 ? (r) : check(code, what, err))

static CUresult end_wait(struct gp_bench_device *device, CUresult code)
{
    gp_bench_wait_end(device);
    return code;
}

/* A call that may wait for the GPU: one that hangs does so here. */
#define WAIT(device, call) (gp_bench_wait_begin(device), end_wait(device, call))

static int bind(struct cuda *self, struct gp_err *err)
{
    static const char what[] = "cannot open the GPU";
    if (self->side)
        return check(cu.cuCtxSetCurrent(self->context), what, err);
    int r =
        self->context ? 0 : check(cu.cuDevicePrimaryCtxRetain(&self->context, self->id), what, err);
    r = FIRST(r, cu.cuCtxSetCurrent(self->context), what, err);
    r = FIRST(r, cu.cuStreamCreate(&self->stream, CU_STREAM_NON_BLOCKING), what, err);
    r = FIRST(r, cu.cuStreamCreate(&self->to_host, CU_STREAM_NON_BLOCKING), what, err);
    r = FIRST(r, cu.cuEventCreate(&self->begin, 0), what, err);
    r = FIRST(r, cu.cuEventCreate(&self->end, 0), what, err);
    return FIRST(r, cu.cuEventCreate(&self->side, 0), what, err);
}

static int op_bind(struct gp_bench_device *device, struct gp_err *err)
{
    gp_bench_wait_begin(device);
    int r = bind(device->self, err);
    gp_bench_wait_end(device);
    return r;
}

static CUresult synchronize(struct gp_bench_device *device, CUstream stream)
{
    return WAIT(device, cu.cuStreamSynchronize(stream));
}

/* ---- memory ---- */

static int op_alloc(struct gp_bench_device *device, size_t bytes, struct gp_bench_buffer *ret,
                    struct gp_err *err)
{
    CUdeviceptr address;
    *ret = (struct gp_bench_buffer){0};
    int r = check(WAIT(device, cu.cuMemAlloc_v2(&address, bytes)),
                  "cannot allocate memory of the GPU", err);
    if (r == 0)
        *ret = (struct gp_bench_buffer){.at = {.address = address}, .bytes = bytes};
    return r;
}

static void op_release(struct gp_bench_device *device, struct gp_bench_buffer *buffer)
{
    if (buffer->bytes)
        (void)WAIT(device, cu.cuMemFree_v2(buffer->at.address));
    *buffer = (struct gp_bench_buffer){0};
}

static int op_host_alloc(struct gp_bench_device *device, size_t bytes, void **ret,
                         struct gp_err *err)
{
    const struct cuda *self = device->self;
    cpu_set_t before;
    *ret = NULL;
    /* its pages are allocated here, on the memory node of this thread */
    const bool has_moved = gp_bench_near_begin(self->address, &before);
    CUresult code = WAIT(device, cu.cuMemHostAlloc(ret, bytes, 0));
    if (has_moved)
        gp_bench_near_end(&before);
    return check(code, "cannot allocate pinned memory", err);
}

static void op_host_release(struct gp_bench_device *device, void *host, size_t bytes)
{
    (void)bytes;
    if (host)
        (void)WAIT(device, cu.cuMemFreeHost(host));
}

static int op_upload(struct gp_bench_device *device, const struct gp_bench_buffer *to,
                     const void *host, size_t bytes, struct gp_err *err)
{
    static const char what[] = "cannot copy to the GPU";
    struct cuda *self = device->self;
    gp_bench_wait_begin(device); /* memory that is not pinned is copied before the call returns */
    int r = check(cu.cuMemcpyHtoDAsync_v2(to->at.address, host, bytes, self->stream), what, err);
    r = FIRST(r, synchronize(device, self->stream), what, err);
    gp_bench_wait_end(device);
    return r;
}

static int op_download(struct gp_bench_device *device, void *host,
                       const struct gp_bench_buffer *from, size_t offset, size_t bytes,
                       struct gp_err *err)
{
    static const char what[] = "cannot copy from the GPU";
    struct cuda *self = device->self;
    gp_bench_wait_begin(device);
    int r = check(cu.cuMemcpyDtoHAsync_v2(host, from->at.address + offset, bytes, self->stream),
                  what, err);
    r = FIRST(r, synchronize(device, self->stream), what, err);
    gp_bench_wait_end(device);
    return r;
}

static int op_transfer(struct gp_bench_device *device, enum gp_bench_way way,
                       const struct gp_bench_buffer *buffer, void *host, struct gp_err *err)
{
    struct cuda *self = device->self;
    return way == GP_BENCH_TO_DEVICE ? check(cu.cuMemcpyHtoDAsync_v2(buffer->at.address, host,
                                                                     buffer->bytes, self->stream),
                                             "cannot copy to the GPU", err)
                                     : check(cu.cuMemcpyDtoHAsync_v2(host, buffer->at.address,
                                                                     buffer->bytes, self->to_host),
                                             "cannot copy from the GPU", err);
}

/* ---- kernels ---- */

static int load_module(struct gp_bench_device *device, bool is_tensor, CUmodule *ret,
                       struct gp_err *err)
{
    char log[300] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)(sizeof(log) - 1)};
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    if (is_tensor)
        gp_ptx_add_tensor_module(&sb);
    else
        gp_ptx_add_module(&sb);
    if (sb.error)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    int r = check(
        WAIT(device, cu.cuModuleLoadDataEx(ret, sb.buf, GP_ARRAY_LEN(options), options, values)),
        "the driver cannot compile our kernels", err);
    gp_strbuf_fini(&sb);
    if (r < 0 && log[0] && err) {
        const struct gp_err before = *err;
        (void)gp_err_set(err, r, "%.200s: %.*s", before.text, (int)strcspn(log, "\n"), log);
    }
    return r;
}

static int kernel_of(struct gp_bench_device *device, enum kernel kernel, CUfunction *ret,
                     struct gp_err *err)
{
    struct cuda *self = device->self;
    static const char *const names[] = {
#define X(id, name) name,
        KERNELS(X)
#undef X
    };
    const bool is_tensor = kernel >= KERNEL_MMA_F16;
    CUmodule *module = &self->modules[is_tensor];
    int r = *module ? 0 : load_module(device, is_tensor, module, err);
    if (r == 0 && !self->kernels[kernel])
        r = check(cu.cuModuleGetFunction(&self->kernels[kernel], *module, names[kernel]),
                  names[kernel], err);
    *ret = self->kernels[kernel];
    return r;
}

static int launch(struct gp_bench_device *device, enum kernel kernel, unsigned x, unsigned y,
                  unsigned threads, void **parameters, struct gp_err *err)
{
    const struct cuda *self = device->self;
    CUfunction function;
    int r = kernel_of(device, kernel, &function, err);
    return FIRST(
        r, cu.cuLaunchKernel(function, x, y, 1, threads, 1, 1, 0, self->stream, parameters, NULL),
        "cannot start a kernel", err);
}

static uint64_t address_of(const struct gp_bench_buffer *buffer)
{
    return buffer ? buffer->at.address : 0;
}

static int op_stream(struct gp_bench_device *device, enum gp_bench_stream stream,
                     const struct gp_bench_buffer *a, const struct gp_bench_buffer *b,
                     const struct gp_bench_buffer *c, struct gp_err *err)
{
    uint64_t at[] = {address_of(a), address_of(b), address_of(c)};
    uint64_t n = c->bytes / 16;
    void *parameters[] = {&at[0], &at[1], &at[2], &n};
    return launch(device, (enum kernel)stream, device->units * BLOCKS_PER_UNIT, 1, GP_PTX_THREADS,
                  parameters, err);
}

static int op_compare(struct gp_bench_device *device, const struct gp_bench_buffer *a,
                      const struct gp_bench_buffer *b, const struct gp_bench_buffer *counts,
                      struct gp_err *err)
{
    uint64_t at[] = {a->at.address, b->at.address, counts->at.address};
    uint64_t n = a->bytes / 16;
    void *parameters[] = {&at[0], &at[1], &at[2], &n};
    return launch(device, KERNEL_COMPARE, device->units * BLOCKS_PER_UNIT, 1, GP_PTX_THREADS,
                  parameters, err);
}

static int op_empty(struct gp_bench_device *device, struct gp_err *err)
{
    uint64_t none = 0;
    void *parameters[] = {&none, &none, &none, &none};
    return launch(device, KERNEL_EMPTY, 1, 1, 1, parameters, err);
}

static int op_context(struct gp_bench_device *device, struct gp_err *err)
{
    static const char what[] = "cannot create a context";
    struct cuda *self = device->self;
    CUcontext context;
    int r = check(WAIT(device, cu.cuCtxCreate_v2(&context, 0, self->id)), what, err);
    r = FIRST(r, WAIT(device, cu.cuCtxDestroy_v2(context)), what, err);
    return FIRST(r, cu.cuCtxSetCurrent(self->context), what, err);
}

/* ---- products ---- */

static int open_cublas(struct gp_bench_device *device, struct gp_err *err)
{
    struct cuda *self = device->self;
    if (self->no_cublas.code)
        return gp_err_copy(err, &self->no_cublas);
    if (self->cublas)
        return 0;
    int r = gp_cublas_open(device, &self->cublas, &self->no_cublas);
    if (r == 0)
        r = check(cu.cuMemAlloc_v2(&self->workspace, WORKSPACE_BYTES), "cannot allocate memory",
                  &self->no_cublas);
    return r < 0 ? gp_err_copy(err, &self->no_cublas) : 0;
}

/* Our own kernel for a product, and its threads; KERNEL__COUNT: there is none. */
static enum kernel own_kernel(const struct gp_bench_device *device,
                              const struct gp_bench_gemm *gemm, unsigned *ret_threads)
{
    static const struct {
        enum gp_bench_precision precision;
        enum kernel kernel;
        unsigned threads, capability, multiple; /* multiple: of rows */
    } own[] = {
        {GP_BENCH_FP32, KERNEL_GEMM_F32, GP_PTX_THREADS, GP_PTX_CAPABILITY, 1},
        {GP_BENCH_FP64, KERNEL_GEMM_F64, GP_PTX_THREADS, GP_PTX_CAPABILITY, 1},
        {GP_BENCH_FP16, KERNEL_MMA_F16, GP_PTX_TENSOR_THREADS, GP_PTX_TENSOR_CAPABILITY,
         GP_PTX_TILE},
        {GP_BENCH_BF16, KERNEL_MMA_BF16, GP_PTX_TENSOR_THREADS, GP_PTX_TENSOR_CAPABILITY,
         GP_PTX_TILE},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(own); i++)
        if (own[i].precision == gemm->precision && device->capability >= own[i].capability &&
            gemm->n % own[i].multiple == 0) {
            *ret_threads = own[i].threads;
            return own[i].kernel;
        }
    return KERNEL__COUNT;
}

static int op_gemm_open(struct gp_bench_device *device, struct gp_bench_gemm *gemm,
                        struct gp_err *err)
{
    struct cuda *self = device->self;
    const struct gp_bench_format *format = gp_bench_format(gemm->precision);
    unsigned threads;
    if (device->capability < format->capability) /* cuBLAS would emulate it */
        return gp_err_set(err, GP_ENODEV, "GPUs have %s from compute capability %u.%u on",
                          format->title, format->capability / 10, format->capability % 10);
    gp_bench_wait_begin(device);
    int r = open_cublas(device, err);
    if (r == 0)
        r = gp_cublas_prepare(self->cublas, gemm, WORKSPACE_BYTES, err);
    gp_bench_wait_end(device);
    enum kernel kernel = own_kernel(device, gemm, &threads);
    if (r != GP_ENODEV || kernel == KERNEL__COUNT)
        return r;
    (void)snprintf(gemm->kernel, sizeof(gemm->kernel), "gpulse's own kernel%s",
                   kernel >= KERNEL_MMA_F16 ? ", mma.sync" : "");
    return 0;
}

static int op_gemm(struct gp_bench_device *device, const struct gp_bench_gemm *gemm,
                   struct gp_err *err)
{
    struct cuda *self = device->self;
    unsigned threads = 0;
    if (gemm->inner)
        return gp_cublas_multiply(self->cublas, gemm, self->workspace, WORKSPACE_BYTES,
                                  self->stream, err);
    uint64_t at[] = {gemm->c.at.address, gemm->a.at.address, gemm->b.at.address};
    uint32_t n = (uint32_t)gemm->n;
    void *parameters[] = {&at[0], &at[1], &at[2], &n};
    unsigned tiles = (n + GP_PTX_TILE - 1) / GP_PTX_TILE;
    enum kernel kernel = own_kernel(device, gemm, &threads);
    return launch(device, kernel, tiles, tiles, threads, parameters, err);
}

static void op_gemm_close(struct gp_bench_device *device, struct gp_bench_gemm *gemm)
{
    (void)device;
    gp_cublas_forget(gemm);
}

/* ---- time ---- */

static int op_wait(struct gp_bench_device *device, struct gp_err *err)
{
    static const char what[] = "the GPU failed";
    struct cuda *self = device->self;
    int r = check(synchronize(device, self->stream), what, err);
    return FIRST(r, synchronize(device, self->to_host), what, err);
}

static int op_start(struct gp_bench_device *device, struct gp_err *err)
{
    static const char what[] = "the GPU failed";
    struct cuda *self = device->self;
    int r = check(synchronize(device, self->stream), what, err);
    r = FIRST(r, cu.cuEventRecord(self->begin, self->stream), what, err);
    return FIRST(r, cu.cuStreamWaitEvent(self->to_host, self->begin, 0), what, err);
}

static int op_stop(struct gp_bench_device *device, uint64_t *ret_ns, struct gp_err *err)
{
    static const char what[] = "the GPU failed";
    struct cuda *self = device->self;
    float milliseconds = 0;
    int r = check(cu.cuEventRecord(self->side, self->to_host), what, err);
    r = FIRST(r, cu.cuStreamWaitEvent(self->stream, self->side, 0), what, err);
    r = FIRST(r, cu.cuEventRecord(self->end, self->stream), what, err);
    r = FIRST(r, synchronize(device, self->stream), what, err);
    r = FIRST(r, cu.cuEventElapsedTime(&milliseconds, self->begin, self->end), what, err);
    *ret_ns = (uint64_t)((double)milliseconds * 1e6);
    return r;
}

/* ---- several GPUs ---- */

static void op_native(struct gp_bench_device *device, int *ret_ordinal, void **ret_stream)
{
    const struct cuda *self = device->self;
    *ret_ordinal = self->ordinal;
    *ret_stream = self->stream;
}

static int op_peer_open(struct gp_bench_device *from, struct gp_bench_device *to, bool *ret_direct,
                        struct gp_err *err)
{
    struct cuda *self = from->self;
    const struct cuda *other = to->self;
    int can = 0;
    int r = check(cu.cuDeviceCanAccessPeer(&can, self->id, other->id), "no peer access", err);
    *ret_direct = false;
    if (r < 0 || !can)
        return r;
    CUresult code = WAIT(from, cu.cuCtxEnablePeerAccess(other->context, 0));
    *ret_direct = code == CUDA_SUCCESS;
    /* a GPU can have 8 peers; copies to others go over the host */
    return (int)code == CUDA_ERROR_TOO_MANY_PEERS || (int)code == CUDA_ERROR_PEER_ACCESS_UNSUPPORTED
               ? 0
               : check(code, "cannot enable peer access", err);
}

static void op_peer_close(struct gp_bench_device *from, struct gp_bench_device *to)
{
    (void)WAIT(from, cu.cuCtxDisablePeerAccess(((const struct cuda *)to->self)->context));
}

static int op_peer_copy(struct gp_bench_device *from, const struct gp_bench_buffer *source,
                        struct gp_bench_device *to, const struct gp_bench_buffer *target,
                        size_t bytes, struct gp_err *err)
{
    const struct cuda *self = from->self;
    const struct cuda *other = to->self;
    return check(cu.cuMemcpyPeerAsync(target->at.address, other->context, source->at.address,
                                      self->context, bytes, self->stream),
                 "cannot copy between the GPUs", err);
}

static const struct gp_bench_ops cuda_ops = {
    .bind = op_bind,
    .alloc = op_alloc,
    .release = op_release,
    .host_alloc = op_host_alloc,
    .host_release = op_host_release,
    .upload = op_upload,
    .download = op_download,
    .transfer = op_transfer,
    .gemm_open = op_gemm_open,
    .gemm = op_gemm,
    .gemm_close = op_gemm_close,
    .stream = op_stream,
    .compare = op_compare,
    .empty = op_empty,
    .context = op_context,
    .wait = op_wait,
    .start = op_start,
    .stop = op_stop,
    .native = op_native,
    .peer_open = op_peer_open,
    .peer_close = op_peer_close,
    .peer_copy = op_peer_copy,
};

/* ---- the list of devices ---- */

static int load(const char *path, struct gp_err *err)
{
    static const char *const places[] = {CUDA_LIBRARY_PLACES, NULL};
    const char *const given[] = {path, NULL};
    if (!cu.library)
        cu.library = gp_bench_library_open(path ? given : places);
    if (!cu.library)
        return gp_err_set(err, GP_EDRIVER, "cannot load libcuda.so.1: not found");
    const char *missing = gp_bench_library_find(cu.library, symbols, GP_ARRAY_LEN(symbols), &cu);
    return missing ? gp_err_set(err, GP_EDRIVER, "libcuda.so.1 has no function %s", missing) : 0;
}

static void close_device(struct cuda *self)
{
    if (self->context)
        (void)cu.cuCtxSetCurrent(self->context);
    gp_cublas_close(self->cublas);
    if (self->workspace)
        (void)cu.cuMemFree_v2(self->workspace);
    for (size_t i = 0; i < GP_ARRAY_LEN(self->modules); i++)
        if (self->modules[i])
            (void)cu.cuModuleUnload(self->modules[i]);
    CUevent events[] = {self->begin, self->end, self->side};
    for (size_t i = 0; i < GP_ARRAY_LEN(events); i++)
        if (events[i])
            (void)cu.cuEventDestroy_v2(events[i]);
    CUstream streams[] = {self->stream, self->to_host};
    for (size_t i = 0; i < GP_ARRAY_LEN(streams); i++)
        if (streams[i])
            (void)cu.cuStreamDestroy_v2(streams[i]);
    if (self->context)
        (void)cu.cuDevicePrimaryCtxRelease_v2(self->id);
    free(self);
}

static void close_all(struct gp_bench_devices *devices)
{
    for (size_t i = 0; i < devices->count; i++)
        close_device(devices->list[i].self);
}

static void format_uuid(const CUuuid *uuid, char ret[48])
{
    const unsigned char *b = (const unsigned char *)uuid->bytes;
    (void)snprintf(ret, 48,
                   "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
                   b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
                   b[14], b[15]);
}

static int add_device(struct gp_bench_devices *devices, int ordinal, int version,
                      struct gp_err *err)
{
    static const char what[] = "cannot query a GPU";
    struct cuda *self = calloc(1, sizeof(*self));
    char name[128] = "";
    CUuuid uuid = {{0}};
    int units = 0;
    int cache = 0;
    int major = 0;
    int minor = 0;
    if (!self)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    struct gp_bench_device *device = &devices->list[devices->count++];
    *device = (struct gp_bench_device){.ops = &cuda_ops, .is_gpu = true, .self = self};
    self->ordinal = ordinal;
    int r = check(cu.cuDeviceGet(&self->id, ordinal), what, err);
    r = FIRST(r, cu.cuDeviceGetName(name, sizeof(name) - 1, self->id), what, err);
    r = FIRST(r, cu.cuDeviceGetUuid(&uuid, self->id), what, err);
    r = FIRST(r, cu.cuDeviceTotalMem_v2(&device->memory_bytes, self->id), what, err);
    const struct {
        CUdevice_attribute attribute;
        int *value;
    } wanted[] = {{CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &units},
                  {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &cache},
                  {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major},
                  {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor}};
    for (size_t i = 0; i < GP_ARRAY_LEN(wanted); i++)
        r = FIRST(r, cu.cuDeviceGetAttribute(wanted[i].value, wanted[i].attribute, self->id), what,
                  err);
    if (r == 0 &&
        cu.cuDeviceGetPCIBusId(self->address, sizeof(self->address), self->id) != CUDA_SUCCESS)
        self->address[0] = '\0';
    for (char *p = self->address; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    gp_utf8_copy_safe(device->name, sizeof(device->name), name);
    format_uuid(&uuid, device->uuid);
    (void)snprintf(device->library, sizeof(device->library), "CUDA %d.%d", version / 1000,
                   version % 1000 / 10);
    device->units = (unsigned)units;
    device->cache_bytes = (size_t)cache;
    device->capability = (unsigned)(10 * major + minor);
    return r;
}

int gp_bench_cuda_open(const char *path, struct gp_bench_devices *ret, struct gp_err *err)
{
    int count = 0;
    int version = 0;
    *ret = (struct gp_bench_devices){.close = close_all};
    int r = load(path, err);
    r = FIRST(r, cu.cuInit(0), "CUDA does not start", err);
    r = FIRST(r, cu.cuDriverGetVersion(&version), "CUDA does not start", err);
    r = FIRST(r, cu.cuDeviceGetCount(&count), "CUDA does not start", err);
    for (int i = 0; r == 0 && i < count && i < GP_BENCH_DEVICES; i++)
        r = add_device(ret, i, version, err);
    if (r == 0 && ret->count == 0)
        return gp_err_set(err, GP_ENODEV, "CUDA sees no GPU");
    return r;
}
