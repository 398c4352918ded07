/* The part of the CUDA driver API (libcuda.so.1) that suspends processes: since driver R570.
 * Source: the documentation of CUDA 13, "CUDA Checkpointing". */
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

#endif
