/* A test double of libnccl.so.2: it adds on the CPU, when a group is complete.
 *
 * DOUBLE_FAULT   "sum": the sums of one GPU lack a summand; "nosum": nothing is added; "nccl": the
 *                GPUs cannot be connected */
#include "abi/nccl.h"

#include "double.h"

#define X(name, args) __attribute__((visibility("default"))) ncclResult_t name args;
NCCL_FUNCTIONS(X)
#undef X

enum { CALLS = 16, INVALID = 4, SYSTEM = 2 };

struct ncclComm {
    int rank, count;
};

static struct {
    int is_open;
    int calls;
    const float *from[CALLS];
    float *to[CALLS];
    size_t count;
} group;

ncclResult_t ncclGetVersion(int *version)
{
    *version = 22703;
    return ncclSuccess;
}

ncclResult_t ncclCommInitAll(ncclComm_t *comms, int count, const int *devices)
{
    if (getenv("NCCL_DEBUG"))
        (void)fputs("NCCL INFO\n", stdout); /* as NCCL does */
    if (double_has_fault("nccl"))
        return (ncclResult_t)SYSTEM;
    for (int i = 0; i < count; i++) {
        comms[i] = devices[i] == i ? malloc(sizeof(*comms[i])) : NULL;
        if (!comms[i])
            return (ncclResult_t)INVALID;
        *comms[i] = (struct ncclComm){i, count};
    }
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    free(comm);
    return ncclSuccess;
}

ncclResult_t ncclGroupStart(void)
{
    group.is_open = 1;
    group.calls = 0;
    return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t comm, struct CUstream_st *stream)
{
    if (!group.is_open || comm->rank != group.calls || group.calls == CALLS ||
        type != ncclFloat32 || operation != ncclSum || !stream || stream->device != comm->rank ||
        (group.calls > 0 && count != group.count))
        return (ncclResult_t)INVALID;
    double_work(stream);
    group.from[group.calls] = from;
    group.to[group.calls++] = to;
    group.count = count;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    for (size_t k = 0; k < group.count && !double_has_fault("nosum"); k++)
        for (int to = 0; to < group.calls; to++) {
            float sum = 0;
            for (int from = to == 1 && double_has_fault("sum") ? 1 : 0; from < group.calls; from++)
                sum += group.from[from][k];
            group.to[to][k] = sum;
        }
    group.is_open = 0;
    return ncclSuccess;
}
