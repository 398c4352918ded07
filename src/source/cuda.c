#include "source/cuda.h"

#include "abi/cuda.h"
#include "base/err.h"
#include "base/library.h"

#include <dlfcn.h>
#include <string.h>

/* One library per process. */
static struct {
    void *library;
#define X(name, args) CUresult(*name) args;
    CUDA_FUNCTIONS(X)
#undef X
} cuda;

static const char *result_text(CUresult result)
{
    static const struct {
        CUresult code;
        const char *text;
    } texts[] = {
#define X(name, code, text) {name, text},
        CUDA_RESULTS(X)
#undef X
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(texts); i++)
        if (texts[i].code == result)
            return texts[i].text;
    return "unknown error";
}

/* Stores the address of a function; false if the library does not have it. */
static bool find(const char *name, void *function, size_t size)
{
    void *symbol = dlsym(cuda.library, name);
    memcpy(function, &symbol, size);
    return symbol != NULL;
}

int gp_cuda_load(const char *path, struct gp_err *err)
{
    static const char *const places[] = {CUDA_LIBRARY_PLACES};
    const char *missing = NULL;
    char reason[GP_LIBRARY_REASON] = "";
    if (!cuda.library)
        cuda.library = gp_library_open(path, places, GP_ARRAY_LEN(places), reason);
    if (!cuda.library)
        return gp_err_set(err, GP_EDRIVER, "cannot load %s: %s", path ? path : "libcuda.so.1",
                          *reason ? reason : "not found");
#define X(name, args)                                                                              \
    if (!find(#name, &cuda.name, sizeof(cuda.name)) && !missing)                                   \
        missing = #name;
    CUDA_FUNCTIONS(X)
#undef X
    return missing
               ? gp_err_set(
                     err, GP_EDRIVER,
                     "the driver is too old to suspend processes: it does not have %s (since 570)",
                     missing)
               : 0;
}

const char *gp_cuda_call_text(enum gp_cuda_call call)
{
    static const char *const texts[] = {
        [GP_CUDA_INIT] = "initializing CUDA",
        [GP_CUDA_STATE] = "querying its state",
        [GP_CUDA_LOCK] = "stopping its CUDA calls",
        [GP_CUDA_SAVE] = "moving its GPU memory to host memory",
        [GP_CUDA_RESTORE] = "moving its memory back to the GPU",
        [GP_CUDA_UNLOCK] = "resuming its CUDA calls",
    };
    return texts[call];
}

static CUresult make(enum gp_cuda_call call, struct gp_cuda_args *args)
{
    int pid = (int)args->pid;
    CUcheckpointLockArgs lock = {.timeoutMs = args->lock_timeout_ms};
    CUprocessState state = CU_PROCESS_STATE_FAILED;
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    switch (call) {
    case GP_CUDA_INIT:
        return cuda.cuInit(0);
    case GP_CUDA_STATE:
        result = cuda.cuCheckpointProcessGetState(pid, &state);
        args->state = (enum gp_cuda_state)state;
        return result;
    case GP_CUDA_LOCK:
        return cuda.cuCheckpointProcessLock(pid, &lock);
    case GP_CUDA_SAVE:
        return cuda.cuCheckpointProcessCheckpoint(pid, NULL);
    case GP_CUDA_RESTORE:
        return cuda.cuCheckpointProcessRestore(pid, NULL);
    case GP_CUDA_UNLOCK:
        return cuda.cuCheckpointProcessUnlock(pid, NULL);
    }
    return result;
}

int gp_cuda_call(enum gp_cuda_call call, struct gp_cuda_args *args, struct gp_err *err)
{
    CUresult result = make(call, args);
    if (result == CUDA_SUCCESS)
        return 0;
    bool is_unmovable = call == GP_CUDA_SAVE && result == CUDA_ERROR_NOT_SUPPORTED;
    return gp_err_set(
        err, GP_EDRIVER, "%s: %s (CUDA error %d)%s", gp_cuda_call_text(call), result_text(result),
        (int)result,
        is_unmovable ? "; it may use managed memory, or share memory with another process" : "");
}
