/* The parts of the CUDA driver API (libcuda.so.1) that suspend processes, since driver R570, and
 * that compute. Source: the documentation of CUDA 13: "CUDA Checkpointing", "CUDA Driver API". */
#ifndef GPULSE_ABI_CUDA_H
#define GPULSE_ABI_CUDA_H

/* Places of libcuda.so.1. WSL has a second copy that does not work, so its own directory comes
 * first. */
#define CUDA_LIBRARY_PLACES                                                                        \
    "/usr/lib/wsl/lib/libcuda.so.1", "libcuda.so.1",                                               \
        "/run/opengl-driver/lib/libcuda.so.1", /* NixOS */                                         \
        "/usr/lib64/libcuda.so.1", "/usr/lib/x86_64-linux-gnu/libcuda.so.1",                       \
        "/usr/lib/aarch64-linux-gnu/libcuda.so.1",                                                 \
        "/usr/local/nvidia/lib64/libcuda.so.1" /* container images of some cloud providers */

/* X(name, code, meaning here) */
#define CUDA_RESULTS(X)                                                                            \
    X(CUDA_SUCCESS, 0, "success")                                                                  \
    X(CUDA_ERROR_INVALID_VALUE, 1, "no process that uses CUDA")                                    \
    X(CUDA_ERROR_OUT_OF_MEMORY, 2, "out of memory")                                                \
    X(CUDA_ERROR_NOT_INITIALIZED, 3, "no process that uses CUDA")                                  \
    X(CUDA_ERROR_NO_DEVICE, 100, "no GPU that CUDA can use")                                       \
    X(CUDA_ERROR_OPERATING_SYSTEM, 304, "the operating system refused")                            \
    X(CUDA_ERROR_ILLEGAL_STATE, 401, "not possible in the state that it is in")                    \
    X(CUDA_ERROR_NOT_READY, 600, "its GPU work did not come to an end in time")                    \
    X(CUDA_ERROR_NOT_PERMITTED, 800, "not permitted")                                              \
    X(CUDA_ERROR_NOT_SUPPORTED, 801, "not supported for this process, or on this machine")         \
    X(CUDA_ERROR_SYSTEM_NOT_READY, 802, "the system is not ready: is nvidia-fabricmanager up?")    \
    X(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803, "library and kernel driver do not fit")              \
    X(CUDA_ERROR_UNKNOWN, 999, "unknown error")

typedef enum {
#define X(name, code, text) name = code,
    CUDA_RESULTS(X)
#undef X
} CUresult;

typedef enum {
    CU_PROCESS_STATE_RUNNING = 0,
    CU_PROCESS_STATE_LOCKED = 1,        /* its CUDA calls wait */
    CU_PROCESS_STATE_CHECKPOINTED = 2,  /* its GPU memory is in host memory */
    CU_PROCESS_STATE_FAILED = 3,        /* permanently */
    CU_PROCESS_STATE_CHECKPOINTING = 4, /* since CUDA 13.4, like the next */
    CU_PROCESS_STATE_RESTORING = 5,
} CUprocessState;

typedef struct {
    unsigned int timeoutMs; /* 0: none; after it the process continues to run */
    unsigned int reserved0;
    unsigned long long reserved1[7];
} CUcheckpointLockArgs;

/* NULL is sufficient for those of the other calls. */
typedef struct CUcheckpointCheckpointArgs CUcheckpointCheckpointArgs;
typedef struct CUcheckpointRestoreArgs CUcheckpointRestoreArgs;
typedef struct CUcheckpointUnlockArgs CUcheckpointUnlockArgs;

/* X(name, (parameters)); all return CUresult. */
#define CUDA_FUNCTIONS(X)                                                                          \
    X(cuInit, (unsigned int flags))                                                                \
    X(cuCheckpointProcessGetState, (int pid, CUprocessState *state))                               \
    X(cuCheckpointProcessLock, (int pid, CUcheckpointLockArgs *args))                              \
    X(cuCheckpointProcessCheckpoint, (int pid, CUcheckpointCheckpointArgs *args))                  \
    X(cuCheckpointProcessRestore, (int pid, CUcheckpointRestoreArgs *args))                        \
    X(cuCheckpointProcessUnlock, (int pid, CUcheckpointUnlockArgs *args))

/* ---- computing ---- */

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct {
    char bytes[16];
} CUuuid;

typedef enum {
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
} CUdevice_attribute;

typedef enum {
    CU_JIT_ERROR_LOG_BUFFER = 5,
    CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
} CUjit_option;

enum {
    CU_STREAM_NON_BLOCKING = 1,
    CUDA_ERROR_PEER_ACCESS_UNSUPPORTED = 217,
    CUDA_ERROR_TOO_MANY_PEERS = 711,
};

/* As CUDA_FUNCTIONS. Those with a number are the current versions of functions that have older
 * ones. */
#define CUDA_COMPUTE_FUNCTIONS(X)                                                                  \
    X(cuInit, (unsigned int flags))                                                                \
    X(cuDriverGetVersion, (int *version))                                                          \
    X(cuGetErrorName, (CUresult error, const char **name))                                         \
    X(cuDeviceGetCount, (int *count))                                                              \
    X(cuDeviceGet, (CUdevice * device, int ordinal))                                               \
    X(cuDeviceGetName, (char *name, int length, CUdevice device))                                  \
    X(cuDeviceGetUuid, (CUuuid * uuid, CUdevice device))                                           \
    X(cuDeviceGetPCIBusId, (char *address, int length, CUdevice device))                           \
    X(cuDeviceTotalMem_v2, (size_t *bytes, CUdevice device))                                       \
    X(cuDeviceGetAttribute, (int *value, CUdevice_attribute attribute, CUdevice device))           \
    X(cuDeviceCanAccessPeer, (int *can, CUdevice device, CUdevice peer))                           \
    X(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device))                            \
    X(cuDevicePrimaryCtxRelease_v2, (CUdevice device))                                             \
    X(cuCtxCreate_v2, (CUcontext * context, unsigned int flags, CUdevice device))                  \
    X(cuCtxDestroy_v2, (CUcontext context))                                                        \
    X(cuCtxSetCurrent, (CUcontext context))                                                        \
    X(cuCtxEnablePeerAccess, (CUcontext peer, unsigned int flags))                                 \
    X(cuCtxDisablePeerAccess, (CUcontext peer))                                                    \
    X(cuMemAlloc_v2, (CUdeviceptr * address, size_t bytes))                                        \
    X(cuMemFree_v2, (CUdeviceptr address))                                                         \
    X(cuMemHostAlloc, (void **address, size_t bytes, unsigned int flags))                          \
    X(cuMemFreeHost, (void *address))                                                              \
    X(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream))     \
    X(cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t bytes, CUstream stream))           \
    X(cuMemcpyPeerAsync, (CUdeviceptr to, CUcontext to_context, CUdeviceptr from,                  \
                          CUcontext from_context, size_t bytes, CUstream stream))                  \
    X(cuStreamCreate, (CUstream * stream, unsigned int flags))                                     \
    X(cuStreamDestroy_v2, (CUstream stream))                                                       \
    X(cuStreamSynchronize, (CUstream stream))                                                      \
    X(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned int flags))                     \
    X(cuEventCreate, (CUevent * event, unsigned int flags))                                        \
    X(cuEventDestroy_v2, (CUevent event))                                                          \
    X(cuEventRecord, (CUevent event, CUstream stream))                                             \
    X(cuEventElapsedTime, (float *milliseconds, CUevent start, CUevent end))                       \
    X(cuModuleLoadDataEx, (CUmodule * module, const void *image, unsigned int option_count,        \
                           CUjit_option *options, void **values))                                  \
    X(cuModuleUnload, (CUmodule module))                                                           \
    X(cuModuleGetFunction, (CUfunction * function, CUmodule module, const char *name))             \
    X(cuLaunchKernel,                                                                              \
      (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,         \
       unsigned int block_x, unsigned int block_y, unsigned int block_z,                           \
       unsigned int shared_bytes, CUstream stream, void **parameters, void **extra))

#endif
