/* The driver calls that move the GPU memory of a running process to host memory and back
 * (libcuda.so.1, since driver 570). The process does not notice: its CUDA calls wait.
 *
 * A call may take any time. To avoid blocking, make it on another thread. */
#ifndef GP_SOURCE_CUDA_H
#define GP_SOURCE_CUDA_H

#include "base/util.h"

struct gp_err;

/* The driver's values. */
enum gp_cuda_state {
    GP_CUDA_RUNNING,
    GP_CUDA_LOCKED,       /* its CUDA calls wait; its memory is still on the GPU */
    GP_CUDA_CHECKPOINTED, /* its memory is in host memory */
    GP_CUDA_FAILED,       /* it can only be killed */
    GP_CUDA_SAVING,
    GP_CUDA_RESTORING,
};

enum gp_cuda_call {
    GP_CUDA_INIT,
    GP_CUDA_STATE,
    GP_CUDA_LOCK, /* and wait until its GPU work is done */
    GP_CUDA_SAVE,
    GP_CUDA_RESTORE, /* if its GPUs have no room for it, it can never be retried */
    GP_CUDA_UNLOCK,
};

/* Loads the library: `path`, or NULL to search for it. It stays loaded. GP_EDRIVER says what is
 * missing. */
int gp_cuda_load(const char *path, struct gp_err *err) GP_MUST_CHECK;

struct gp_cuda_args {
    int64_t pid;
    unsigned lock_timeout_ms; /* for GP_CUDA_LOCK; after it, the process continues to run */
    enum gp_cuda_state state; /* result of GP_CUDA_STATE */
};

/* GP_EDRIVER has the driver's error. GP_CUDA_INIT must come first. */
int gp_cuda_call(enum gp_cuda_call call, struct gp_cuda_args *args,
                 struct gp_err *err) GP_MUST_CHECK;

/* The description of a call, for messages. */
const char *gp_cuda_call_text(enum gp_cuda_call call);

#endif
