/* Devices of OpenCL. Products of matrices come from CLBlast, the other kernels from here. */
#include "bench/device.h"

#include "abi/opencl.h"
#include "base/err.h"
#include "base/utf8.h"
#include "bench/library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One library per process. */
static struct {
    void *library;
#define X(result, name, args) result(*name) args;
    OPENCL_FUNCTIONS(X)
#undef X
} cl;

static struct {
    void *library;
#define X(result, name, args) result(*name) args;
    CLBLAST_FUNCTIONS(X)
#undef X
} clblast;

static const struct gp_bench_symbol cl_symbols[] = {
#define X(result, name, args) {#name, offsetof(__typeof__(cl), name)},
    OPENCL_FUNCTIONS(X)
#undef X
};

static const struct gp_bench_symbol clblast_symbols[] = {
#define X(result, name, args) {#name, offsetof(__typeof__(clblast), name)},
    CLBLAST_FUNCTIONS(X)
#undef X
};

enum { COMPARE = GP_BENCH_STREAM__COUNT, EMPTY, KERNELS };

/* Each work item handles one float4; `reading` many, since a sum must be kept. Its sum is stored if
 * it is a number that does not occur, so that the reads cannot be left out. */
static const char *const source =
    "kernel void k_read(global const float4 *a, global const float4 *b, global float4 *c,\n"
    "                   const ulong n)\n"
    "{\n"
    "    float4 sum = 0;\n"
    "    for (ulong i = get_global_id(0); i < n; i += get_global_size(0)) sum += a[i];\n"
    "    if (sum.x == -1.5f) c[0] = sum;\n"
    "}\n"
    "kernel void k_write(global const float4 *a, global const float4 *b, global float4 *c,\n"
    "                    const ulong n)\n"
    "{\n"
    "    ulong i = get_global_id(0);\n"
    "    float x = (float)(4 * i & 0xFFFF);\n"
    "    if (i < n) c[i] = (float4)(x, x + 1, x + 2, x + 3);\n"
    "}\n"
    "kernel void k_copy(global const float4 *a, global const float4 *b, global float4 *c,\n"
    "                   const ulong n)\n"
    "{\n"
    "    ulong i = get_global_id(0);\n"
    "    if (i < n) c[i] = a[i];\n"
    "}\n"
    "kernel void k_triad(global const float4 *a, global const float4 *b, global float4 *c,\n"
    "                    const ulong n)\n"
    "{\n"
    "    ulong i = get_global_id(0);\n"
    "    if (i < n) c[i] = a[i] + 3 * b[i];\n"
    "}\n"
    "kernel void k_compare(global const uint4 *a, global const uint4 *b, global uint *c,\n"
    "                      const ulong n)\n"
    "{\n"
    "    ulong i = get_global_id(0);\n"
    "    if (i >= n || all(a[i] == b[i])) return;\n"
    "    atomic_inc(c);\n"
    "    atomic_min(c + 1, (uint)i);\n"
    "}\n"
    "kernel void k_empty(global const float4 *a, global const float4 *b, global float4 *c,\n"
    "                    const ulong n)\n"
    "{\n"
    "}\n";

static const char *const kernel_names[KERNELS] = {
#define X(id, word, arrays) "k_" word,
    GP_BENCH_STREAMS(X)
#undef X
        "k_compare",
    "k_empty",
};

struct opencl {
    cl_device_id id;
    cl_context context;
    cl_command_queue queue;   /* kernels and copies to the device */
    cl_command_queue to_host; /* copies to the host, at the same time */
    cl_program program;
    cl_kernel kernels[KERNELS]; /* built when first used */
    struct pinned {
        cl_mem memory;
        void *address;
    } pinned[8];
};

static int fail(cl_int code, const char *what, struct gp_err *err)
{
    switch (code) {
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_RESOURCES:
    case CL_OUT_OF_HOST_MEMORY:
    case CL_INVALID_BUFFER_SIZE:
        return gp_err_set(err, GP_ENOMEM, "%s: the device is out of memory (OpenCL error %d)", what,
                          code);
    default:
        return gp_err_set(err, GP_EDRIVER, "%s: OpenCL error %d", what, code);
    }
}

static int check(cl_int code, const char *what, struct gp_err *err)
{
    return code == CL_SUCCESS ? 0 : fail(code, what, err);
}

static int op_bind(struct gp_bench_device *device, struct gp_err *err)
{
    struct opencl *self = device->self;
    cl_int code = CL_SUCCESS;
    if (self->context)
        return 0;
    self->context = cl.clCreateContext(NULL, 1, &self->id, NULL, NULL, &code);
    if (self->context)
        self->queue = cl.clCreateCommandQueue(self->context, self->id, 0, &code);
    if (self->queue)
        self->to_host = cl.clCreateCommandQueue(self->context, self->id, 0, &code);
    return check(code, "cannot open the device", err);
}

/* ---- memory ---- */

static int op_alloc(struct gp_bench_device *device, size_t bytes, struct gp_bench_buffer *ret,
                    struct gp_err *err)
{
    struct opencl *self = device->self;
    cl_int code;
    *ret = (struct gp_bench_buffer){.bytes = bytes};
    ret->at.object = cl.clCreateBuffer(self->context, CL_MEM_READ_WRITE, bytes, NULL, &code);
    if (!ret->at.object)
        ret->bytes = 0;
    return check(code, "cannot allocate a buffer", err);
}

static void op_release(struct gp_bench_device *device, struct gp_bench_buffer *buffer)
{
    (void)device;
    if (buffer->bytes)
        (void)cl.clReleaseMemObject(buffer->at.object);
    *buffer = (struct gp_bench_buffer){0};
}

/* OpenCL has no memory of this kind but that of a buffer which the driver allocates in the host's
 * memory, and which stays mapped. */
static int op_host_alloc(struct gp_bench_device *device, size_t bytes, void **ret,
                         struct gp_err *err)
{
    struct opencl *self = device->self;
    struct pinned *slot = NULL;
    cl_int code;
    for (size_t i = 0; i < GP_ARRAY_LEN(self->pinned) && !slot; i++)
        if (!self->pinned[i].memory)
            slot = &self->pinned[i];
    if (!slot)
        return gp_err_set(err, GP_ENOMEM, "too many pinned buffers");
    slot->memory = cl.clCreateBuffer(self->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                                     bytes, NULL, &code);
    if (!slot->memory)
        return fail(code, "cannot allocate pinned memory", err);
    slot->address =
        cl.clEnqueueMapBuffer(self->queue, slot->memory, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                              bytes, 0, NULL, NULL, &code);
    *ret = slot->address;
    if (slot->address)
        return 0;
    (void)cl.clReleaseMemObject(slot->memory);
    *slot = (struct pinned){0};
    return fail(code, "cannot map pinned memory", err);
}

static void op_host_release(struct gp_bench_device *device, void *host, size_t bytes)
{
    struct opencl *self = device->self;
    (void)bytes;
    for (size_t i = 0; host && i < GP_ARRAY_LEN(self->pinned); i++)
        if (self->pinned[i].address == host) {
            (void)cl.clEnqueueUnmapMemObject(self->queue, self->pinned[i].memory, host, 0, NULL,
                                             NULL);
            (void)cl.clFinish(self->queue);
            (void)cl.clReleaseMemObject(self->pinned[i].memory);
            self->pinned[i] = (struct pinned){0};
            return;
        }
}

static int op_upload(struct gp_bench_device *device, const struct gp_bench_buffer *to,
                     const void *host, size_t bytes, struct gp_err *err)
{
    struct opencl *self = device->self;
    return check(
        cl.clEnqueueWriteBuffer(self->queue, to->at.object, CL_TRUE, 0, bytes, host, 0, NULL, NULL),
        "cannot copy to the device", err);
}

static int op_download(struct gp_bench_device *device, void *host,
                       const struct gp_bench_buffer *from, size_t offset, size_t bytes,
                       struct gp_err *err)
{
    struct opencl *self = device->self;
    return check(cl.clEnqueueReadBuffer(self->queue, from->at.object, CL_TRUE, offset, bytes, host,
                                        0, NULL, NULL),
                 "cannot copy from the device", err);
}

static int op_transfer(struct gp_bench_device *device, enum gp_bench_way way,
                       const struct gp_bench_buffer *buffer, void *host, struct gp_err *err)
{
    struct opencl *self = device->self;
    cl_int code = way == GP_BENCH_TO_DEVICE
                      ? cl.clEnqueueWriteBuffer(self->queue, buffer->at.object, CL_FALSE, 0,
                                                buffer->bytes, host, 0, NULL, NULL)
                      : cl.clEnqueueReadBuffer(self->to_host, buffer->at.object, CL_FALSE, 0,
                                               buffer->bytes, host, 0, NULL, NULL);
    if (code == CL_SUCCESS) /* both begin now */
        code = cl.clFlush(way == GP_BENCH_TO_DEVICE ? self->queue : self->to_host);
    return check(code, "cannot copy", err);
}

/* ---- kernels ---- */

static int build(struct opencl *self, struct gp_err *err)
{
    cl_int code;
    const char *text = source;
    cl_program program = cl.clCreateProgramWithSource(self->context, 1, &text, NULL, &code);
    if (!program)
        return fail(code, "cannot create kernels", err);
    code = cl.clBuildProgram(program, 1, &self->id, "", NULL, NULL);
    if (code != CL_SUCCESS) {
        char log[200] = "";
        (void)cl.clGetProgramBuildInfo(program, self->id, CL_PROGRAM_BUILD_LOG, sizeof(log) - 1,
                                       log, NULL);
        (void)cl.clReleaseProgram(program);
        return gp_err_set(err, GP_EDRIVER, "the device's compiler failed (OpenCL error %d) %.*s",
                          code, (int)strcspn(log, "\n"), log);
    }
    self->program = program;
    return 0;
}

static int launch(struct gp_bench_device *device, size_t which,
                  const struct gp_bench_buffer *const buffers[3], size_t items, uint64_t n,
                  struct gp_err *err)
{
    struct opencl *self = device->self;
    cl_int code = CL_SUCCESS;
    int r = self->program ? 0 : build(self, err);
    if (r < 0)
        return r;
    if (!self->kernels[which])
        self->kernels[which] = cl.clCreateKernel(self->program, kernel_names[which], &code);
    cl_kernel kernel = self->kernels[which];
    if (!kernel)
        return fail(code, "cannot create a kernel", err);
    for (cl_uint i = 0; i < 3; i++) {
        cl_mem memory = buffers[i] ? buffers[i]->at.object : NULL;
        code = code ? code : cl.clSetKernelArg(kernel, i, sizeof(memory), &memory);
    }
    code = code ? code : cl.clSetKernelArg(kernel, 3, sizeof(n), &n);
    code =
        code ? code
             : cl.clEnqueueNDRangeKernel(self->queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL);
    return check(code, "cannot start a kernel", err);
}

static int op_stream(struct gp_bench_device *device, enum gp_bench_stream stream,
                     const struct gp_bench_buffer *a, const struct gp_bench_buffer *b,
                     const struct gp_bench_buffer *c, struct gp_err *err)
{
    enum { GROUP = 256, ITEMS_OF_READ = 64 };
    const struct gp_bench_buffer *buffers[3] = {a, b, c};
    uint64_t n = c->bytes / 16;
    size_t items = stream == GP_BENCH_READ ? n / ITEMS_OF_READ + 1 : n;
    items = (items + GROUP - 1) / GROUP * GROUP;
    return launch(device, stream, buffers, items, n, err);
}

static int op_compare(struct gp_bench_device *device, const struct gp_bench_buffer *a,
                      const struct gp_bench_buffer *b, const struct gp_bench_buffer *counts,
                      struct gp_err *err)
{
    const struct gp_bench_buffer *buffers[3] = {a, b, counts};
    uint64_t n = a->bytes / 16;
    return launch(device, COMPARE, buffers, n, n, err);
}

static int op_empty(struct gp_bench_device *device, struct gp_err *err)
{
    return launch(device, EMPTY, (const struct gp_bench_buffer *[3]){NULL, NULL, NULL}, 1, 0, err);
}

static int op_context(struct gp_bench_device *device, struct gp_err *err)
{
    struct opencl *self = device->self;
    cl_int code;
    cl_context context = cl.clCreateContext(NULL, 1, &self->id, NULL, NULL, &code);
    if (context)
        code = cl.clReleaseContext(context);
    return check(code, "cannot create a context", err);
}

/* ---- CLBlast ---- */

static int op_gemm(struct gp_bench_device *device, const struct gp_bench_gemm *gemm,
                   struct gp_err *err)
{
    struct opencl *self = device->self;
    size_t n = gemm->n;
    int code;
#define CALL(name, one)                                                                            \
    clblast.name(CLBLAST_COL_MAJOR, CLBLAST_NO_TRANSPOSE, CLBLAST_NO_TRANSPOSE, n, n, n, one,      \
                 gemm->a.at.object, 0, n, gemm->b.at.object, 0, n, 0, gemm->c.at.object, 0, n,     \
                 &self->queue, NULL)
    if (gemm->precision == GP_BENCH_FP64)
        code = CALL(CLBlastDgemm, 1);
    else
        code = CALL(CLBlastSgemm, 1);
#undef CALL
    return code == CLBLAST_SUCCESS ? 0
                                   : gp_err_set(err, GP_EDRIVER, "CLBlast failed: error %d", code);
}

/* Whether the device and CLBlast have the precision. CLBlast adds FP16 in FP16, which is too
 * inexact to be checked. */
static bool has_precision(const struct gp_bench_device *device, enum gp_bench_precision precision)
{
    const struct opencl *self = device->self;
    char extensions[8192] = "";
    (void)cl.clGetDeviceInfo(self->id, CL_DEVICE_EXTENSIONS, sizeof(extensions) - 1, extensions,
                             NULL);
    return precision == GP_BENCH_FP32 ||
           (precision == GP_BENCH_FP64 && strstr(extensions, "cl_khr_fp64"));
}

/* Devices that compute at the same time have all been used alone before: this is not called by two
 * threads. */
static bool load_clblast(const char *const *names)
{
    void *library = gp_bench_library_open(names);
    if (library &&
        !gp_bench_library_find(library, clblast_symbols, GP_ARRAY_LEN(clblast_symbols), &clblast))
        clblast.library = library;
    return clblast.library;
}

static int op_gemm_open(struct gp_bench_device *device, struct gp_bench_gemm *gemm,
                        struct gp_err *err)
{
    static const char *const names[] = {"libclblast.so.1", "libclblast.so", NULL};
    if (!has_precision(device, gemm->precision))
        return gp_err_set(err, GP_ENODEV, "CLBlast cannot compute it on this device");
    if (!clblast.library && !load_clblast(names))
        return gp_err_set(err, GP_ENODEV,
                          "no CLBlast, which multiplies matrices with OpenCL: install libclblast1 "
                          "on Debian and Ubuntu, clblast on Fedora and Arch");
    (void)snprintf(gemm->kernel, sizeof(gemm->kernel), "CLBlast");
    return 0;
}

static void op_gemm_close(struct gp_bench_device *device, struct gp_bench_gemm *gemm)
{
    (void)device;
    (void)gemm;
}

/* ---- time ---- */

static int op_wait(struct gp_bench_device *device, struct gp_err *err)
{
    struct opencl *self = device->self;
    cl_int code = cl.clFinish(self->queue);
    return check(code ? code : cl.clFinish(self->to_host), "the device failed", err);
}

static int op_stop(struct gp_bench_device *device, uint64_t *ret_ns, struct gp_err *err)
{
    *ret_ns = 0;
    return op_wait(device, err);
}

static const struct gp_bench_ops opencl_ops = {
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
    .start = op_wait,
    .stop = op_stop,
};

/* ---- the list of devices ---- */

static int load(struct gp_err *err)
{
    static const char *const names[] = {"libOpenCL.so.1", "libOpenCL.so", NULL};
    if (!cl.library)
        cl.library = gp_bench_library_open(names);
    if (!cl.library)
        return gp_err_set(
            err, GP_EDRIVER,
            "OpenCL is not installed: libOpenCL.so.1 was not found (ocl-icd-libopencl1 "
            "on Debian and Ubuntu)");
    const char *missing =
        gp_bench_library_find(cl.library, cl_symbols, GP_ARRAY_LEN(cl_symbols), &cl);
    return missing ? gp_err_set(err, GP_EDRIVER, "OpenCL has no function %s", missing) : 0;
}

static uint64_t number_of(cl_device_id id, cl_uint what)
{
    uint64_t value = 0; /* those of 32 bits fill the lower half on our machines */
    return cl.clGetDeviceInfo(id, what, sizeof(value), &value, NULL) == CL_SUCCESS ? value : 0;
}

static void close_all(struct gp_bench_devices *devices)
{
    for (size_t i = 0; i < devices->count; i++) {
        struct opencl *self = devices->list[i].self;
        for (size_t k = 0; k < KERNELS; k++)
            if (self->kernels[k])
                (void)cl.clReleaseKernel(self->kernels[k]);
        if (self->program)
            (void)cl.clReleaseProgram(self->program);
        if (clblast.library && clblast.CLBlastClearCache)
            (void)clblast.CLBlastClearCache();
        if (self->to_host)
            (void)cl.clReleaseCommandQueue(self->to_host);
        if (self->queue)
            (void)cl.clReleaseCommandQueue(self->queue);
        if (self->context)
            (void)cl.clReleaseContext(self->context);
        free(self);
    }
}

static void add_device(struct gp_bench_devices *ret, cl_device_id id, const char *platform)
{
    struct opencl *self = calloc(1, sizeof(*self));
    char name[128] = "";
    if (!self)
        return;
    struct gp_bench_device *device = &ret->list[ret->count++];
    self->id = id;
    *device = (struct gp_bench_device){
        .ops = &opencl_ops,
        .is_gpu = number_of(id, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_GPU,
        .memory_bytes = number_of(id, CL_DEVICE_GLOBAL_MEM_SIZE),
        .largest_bytes = number_of(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE),
        .cache_bytes = number_of(id, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE),
        .units = (unsigned)number_of(id, CL_DEVICE_MAX_COMPUTE_UNITS),
        .self = self,
    };
    (void)cl.clGetDeviceInfo(id, CL_DEVICE_NAME, sizeof(name) - 1, name, NULL);
    gp_utf8_copy_safe(device->name, sizeof(device->name), name);
    (void)snprintf(device->library, sizeof(device->library), "OpenCL (%.80s)", platform);
}

int gp_bench_opencl_open(bool all, struct gp_bench_devices *ret, struct gp_err *err)
{
    enum { PLATFORMS = 16 };
    cl_platform_id platforms[PLATFORMS];
    cl_uint count = 0;
    *ret = (struct gp_bench_devices){.close = close_all};
    int r = load(err);
    if (r < 0)
        return r;
    cl_int code = cl.clGetPlatformIDs(PLATFORMS, platforms, &count);
    if (code != CL_SUCCESS && code != CL_PLATFORM_NOT_FOUND_KHR)
        return fail(code, "cannot list the platforms", err);
    for (cl_uint p = 0; code == CL_SUCCESS && p < count && p < PLATFORMS; p++) {
        cl_device_id ids[GP_BENCH_DEVICES];
        cl_uint found = 0;
        char platform[128] = "";
        char safe[128];
        (void)cl.clGetPlatformInfo(platforms[p], CL_PLATFORM_NAME, sizeof(platform) - 1, platform,
                                   NULL);
        gp_utf8_copy_safe(safe, sizeof(safe), platform);
        if (cl.clGetDeviceIDs(platforms[p], all ? CL_DEVICE_TYPE_ALL : CL_DEVICE_TYPE_GPU,
                              GP_BENCH_DEVICES, ids, &found) != CL_SUCCESS)
            continue;
        for (cl_uint i = 0; i < found && ret->count < GP_BENCH_DEVICES; i++)
            add_device(ret, ids[i], safe);
    }
    return ret->count ? 0
                      : gp_err_set(err, GP_ENODEV, "OpenCL has no %s",
                                   all ? "device: install pocl-opencl-icd or the GPU's driver"
                                       : "GPU; --engine opencl also uses CPUs");
}
