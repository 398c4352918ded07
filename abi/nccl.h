/* The part of NCCL (libnccl.so.2) that adds arrays of several GPUs.
 * Source: the documentation of NCCL 2, "NCCL API". */
#ifndef GPULSE_ABI_NCCL_H
#define GPULSE_ABI_NCCL_H

#include <stddef.h>

#define NCCL_NAMES "libnccl.so.2"
#define NCCL_SITES "nvidia/nccl/lib/libnccl.so.2" /* as PyTorch's wheels bring it */

struct CUstream_st;
typedef struct ncclComm *ncclComm_t;

typedef enum {
    ncclSuccess = 0,
} ncclResult_t;

typedef enum {
    ncclFloat32 = 7,
} ncclDataType_t;

typedef enum {
    ncclSum = 0,
} ncclRedOp_t;

/* X(name, (parameters)); all return ncclResult_t. */
#define NCCL_FUNCTIONS(X)                                                                          \
    X(ncclGetVersion, (int *version))                                                              \
    X(ncclCommInitAll, (ncclComm_t * comms, int count, const int *devices))                        \
    X(ncclCommDestroy, (ncclComm_t comm))                                                          \
    X(ncclGroupStart, (void))                                                                      \
    X(ncclGroupEnd, (void))                                                                        \
    X(ncclAllReduce, (const void *from, void *to, size_t count, ncclDataType_t type,               \
                      ncclRedOp_t operation, ncclComm_t comm, struct CUstream_st *stream))

#endif
