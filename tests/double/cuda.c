/* A test double of libcuda.so.1: it computes on the CPU, and refuses what a real driver would not
 * accept. What it does not do: run anything at the same time.
 *
 * DOUBLE_UUIDS        the GPUs: "GPU-…,GPU-…"
 * DOUBLE_CAPABILITY   their compute capabilities: "90,70"; the last one is that of all others, and
 *                     90 without it
 * DOUBLE_FAULT        "lost": the 20th launch fails; "jit": the module does not compile; "peer":
 *                     copies between GPUs do nothing; "peerbit": they damage a byte in the middle;
 *                     "hang": after a copy of more than 1 KiB to the host, nothing ends; "hang1":
 *                     only GPU 1 hangs then, in its next copy, which does not return
 * DOUBLE_FULL         index of a GPU on which allocations above 1 MiB fail; "1:4096": above 4096
 *                     bytes
 * DOUBLE_SLOW         index of a GPU whose time passes twice as fast
 * DOUBLE_LOG          a file for the names of the calls */
#include "abi/cuda.h"

#include "double.h"
#include "ptx.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define X(name, args) EXPORT CUresult name args;
CUDA_COMPUTE_FUNCTIONS(X)
#undef X

enum {
    GPUS = 16,
    ALLOCATIONS = 256,
    INVALID_PTX = 218,
    INVALID_HANDLE = 400,
    PEER_NOT_ENABLED = 705,
    ILLEGAL_ADDRESS = 700,
    LAUNCH_FAILED = 719
};

struct CUctx_st {
    int device;
};
struct CUmod_st {
    struct ptx_module *ptx;
};
struct CUevent_st {
    double ms;
    int device;
    bool is_recorded;
};

static struct {
    char uuids[GPUS][48];
    int count;
    struct CUctx_st primary[GPUS];
    int references[GPUS];
    struct {
        uint64_t at;
        size_t bytes;
    } allocations[ALLOCATIONS];
    atomic_uint launches;
    atomic_bool is_hanging;
    bool is_peer[GPUS][GPUS];
    double ms[GPUS]; /* of work, so far */
    bool is_started;
} gpu;
static _Thread_local CUcontext current;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the allocations */

static bool may_access(uint64_t address, size_t size)
{
    bool is_good = false;
    (void)pthread_mutex_lock(&lock);
    for (size_t i = 0; i < ALLOCATIONS && !is_good; i++)
        is_good = gpu.allocations[i].at && address >= gpu.allocations[i].at &&
                  address - gpu.allocations[i].at + size <= gpu.allocations[i].bytes;
    (void)pthread_mutex_unlock(&lock);
    return is_good;
}

/* A stream must be one of the current context. */
static bool may_use(const struct CUstream_st *stream)
{
    return stream && current && stream->device == current->device;
}

/* ---- devices and contexts ---- */

CUresult cuInit(unsigned int flags)
{
    const char *uuids = getenv("DOUBLE_UUIDS");
    double_note(__func__);
    if (getenv("CUDA_LAUNCH_BLOCKING") || getenv("NVIDIA_TF32_OVERRIDE"))
        return CUDA_ERROR_INVALID_VALUE; /* they spoil what is measured */
    gpu.count = 0;
    while (uuids && *uuids && gpu.count < GPUS) {
        size_t n = strcspn(uuids, ",");
        (void)snprintf(gpu.uuids[gpu.count], sizeof(gpu.uuids[0]), "%.*s", (int)n, uuids);
        gpu.primary[gpu.count].device = gpu.count;
        gpu.count++;
        uuids += n + (uuids[n] == ',');
    }
    gpu.is_started = true;
    return flags ? CUDA_ERROR_INVALID_VALUE : gpu.count ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

CUresult cuDriverGetVersion(int *version)
{
    *version = 13000;
    return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
    *name = (int)error == INVALID_PTX       ? "CUDA_ERROR_INVALID_PTX"
            : (int)error == ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
            : (int)error == LAUNCH_FAILED   ? "CUDA_ERROR_LAUNCH_FAILED"
                                            : "CUDA_ERROR";
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
    *count = gpu.count;
    return gpu.is_started ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    *device = ordinal;
    return ordinal < gpu.count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
    (void)device;
    (void)snprintf(name, (size_t)length, "test double");
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    const char *p = gpu.uuids[device] + strlen("GPU-");
    for (size_t i = 0; i < sizeof(uuid->bytes); i++) {
        char byte[3] = {0};
        p += *p == '-';
        memcpy(byte, p, 2);
        uuid->bytes[i] = (char)strtoul(byte, NULL, 16);
        p += 2;
    }
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *address, int length, CUdevice device)
{
    (void)snprintf(address, (size_t)length, "0000:A%d:00.0", device % 10);
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    (void)device;
    *bytes = (size_t)1 << 30;
    return CUDA_SUCCESS;
}

static int capability_of(CUdevice device)
{
    const char *list = getenv("DOUBLE_CAPABILITY");
    for (int i = 0; list && i < device && strchr(list, ','); i++)
        list = strchr(list, ',') + 1;
    return list ? atoi(list) : 90;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    int capability = capability_of(device);
    *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? capability / 10
             : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? capability % 10
             : attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT     ? 1
                                                                         : 4096;
    return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    *can = device != peer;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    double_note(__func__);
    gpu.references[device]++;
    *context = &gpu.primary[device];
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    double_note(__func__);
    return gpu.references[device]-- > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
    *context = flags ? NULL : malloc(sizeof(**context));
    if (!*context)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*context)->device = device;
    current = *context;
    return CUDA_SUCCESS;
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
    free(context);
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    current = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
    if (peer == current || flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (gpu.is_peer[current->device][peer->device])
        return (CUresult)704;
    gpu.is_peer[current->device][peer->device] = true;
    return CUDA_SUCCESS;
}

CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
    if (!gpu.is_peer[current->device][peer->device])
        return (CUresult)PEER_NOT_ENABLED;
    gpu.is_peer[current->device][peer->device] = false;
    return CUDA_SUCCESS;
}

/* ---- memory ---- */

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    if (!current)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    const char *full = getenv("DOUBLE_FULL");
    const char *colon = full ? strchr(full, ':') : NULL;
    const size_t most = colon ? (size_t)atoi(colon + 1) : 1 << 20;
    void *memory = full && atoi(full) == current->device && bytes > most
                       ? NULL
                       : aligned_alloc(256, (bytes + 255) / 256 * 256);
    *address = 0;
    (void)pthread_mutex_lock(&lock);
    for (size_t i = 0; i < ALLOCATIONS && memory && !*address; i++)
        if (!gpu.allocations[i].at) {
            gpu.allocations[i].at = (uintptr_t)memory;
            gpu.allocations[i].bytes = bytes;
            *address = (uintptr_t)memory;
        }
    (void)pthread_mutex_unlock(&lock);
    return *address ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemFree_v2(CUdeviceptr address)
{
    bool is_found = false;
    (void)pthread_mutex_lock(&lock);
    for (size_t i = 0; i < ALLOCATIONS && !is_found; i++)
        if (gpu.allocations[i].at == address) {
            gpu.allocations[i].at = 0;
            is_found = true;
        }
    (void)pthread_mutex_unlock(&lock);
    if (is_found)
        free((void *)(uintptr_t)address);
    return is_found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned int flags)
{
    cpu_set_t cpus;
    if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0 && CPU_COUNT(&cpus) == 1)
        double_note(CPU_ISSET(1, &cpus) ? "pinned-near-1" : "pinned-near-other");
    *address = flags ? NULL : malloc(bytes);
    return *address ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemFreeHost(void *address)
{
    free(address);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    if (!may_use(stream) || !may_access(to, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    double_work(stream);
    memcpy((void *)(uintptr_t)to, from, bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    if (!may_use(stream) || !may_access(from, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    double_work(stream);
    while (double_has_fault("hang1") && stream->device == 1 && atomic_load(&gpu.is_hanging))
        (void)pause();
    if (double_has_fault("hang") && bytes > 1024)
        atomic_store(&gpu.is_hanging, true);
    if (double_has_fault("hang1") && stream->device == 1 && bytes > 1024)
        atomic_store(&gpu.is_hanging, true);
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                           CUcontext from_context, size_t bytes, CUstream stream)
{
    if (!may_use(stream) || to_context == from_context || !may_access(to, bytes) ||
        !may_access(from, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    double_work(stream);
    if (!double_has_fault("peer"))
        memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
    if (double_has_fault("peerbit"))
        ((unsigned char *)(uintptr_t)to)[bytes / 2] ^= 1;
    return CUDA_SUCCESS;
}

/* ---- streams and events ---- */

CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
    (void)flags;
    *stream = current ? malloc(sizeof(**stream)) : NULL;
    if (!*stream)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*stream)->device = current->device;
    (*stream)->ms = &gpu.ms[current->device];
    return CUDA_SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
    free(stream);
    return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream)
{
    while (atomic_load(&gpu.is_hanging) && !double_has_fault("hang1")) {
        double_note("hangs");
        (void)pause();
    }
    return may_use(stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
    return may_use(stream) && event && event->is_recorded && !flags ? CUDA_SUCCESS
                                                                    : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
    *event = flags || !current ? NULL : calloc(1, sizeof(**event));
    if (!*event)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*event)->device = current->device;
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event)
{
    free(event);
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    if (!may_use(stream) || event->device != stream->device)
        return CUDA_ERROR_INVALID_VALUE;
    event->is_recorded = true;
    event->ms = *stream->ms;
    return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
    if (!start->is_recorded || !end->is_recorded)
        return (CUresult)INVALID_HANDLE;
    *milliseconds = (float)(end->ms - start->ms);
    return CUDA_SUCCESS;
}

/* ---- kernels ---- */

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int option_count,
                            CUjit_option *options, void **values)
{
    char *log = NULL;
    size_t size = 0;
    double_note(__func__);
    for (unsigned int i = 0; i < option_count; i++) {
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
            log = values[i];
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
            size = (size_t)(uintptr_t)values[i];
    }
    *module = calloc(1, sizeof(**module));
    if (!*module || !log)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*module)->ptx = ptx_load(double_has_fault("jit") ? "nonsense" : image, log, size);
    if ((*module)->ptx)
        return CUDA_SUCCESS;
    free(*module);
    *module = NULL;
    return (CUresult)INVALID_PTX;
}

CUresult cuModuleUnload(CUmodule module)
{
    double_note(__func__);
    ptx_free(module->ptx);
    free(module);
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    *function = (CUfunction)(void *)ptx_find(module->ptx, name);
    return *function ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                        unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                        unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                        void **parameters, void **extra)
{
    if (!may_use(stream) || grid_z != 1 || block_y != 1 || block_z != 1 || shared_bytes || extra)
        return CUDA_ERROR_INVALID_VALUE;
    if (atomic_fetch_add(&gpu.launches, 1) == 19 && double_has_fault("lost"))
        return (CUresult)LAUNCH_FAILED;
    double_work(stream);
    return ptx_run((const void *)function, grid_x, grid_y, block_x, parameters, may_access)
               ? CUDA_SUCCESS
               : (CUresult)ILLEGAL_ADDRESS;
}
