/* The driver's calls that move the GPU memory of a running process into main memory and back
 * (libcuda.so.1, since driver 570). The process need not know: its CUDA calls wait meanwhile.
 *
 * A call may take as long as it likes: whoever must not wait makes it on another thread. */
#ifndef GP_SOURCE_CUDA_H
#define GP_SOURCE_CUDA_H

#include "base/util.h"

struct gp_err;

/* As the driver counts them. */
enum gp_cuda_state {
    GP_CUDA_RUNNING,
    GP_CUDA_LOCKED,       /* its CUDA calls wait; its memory is still on the GPU */
    GP_CUDA_CHECKPOINTED, /* its memory is in main memory */
    GP_CUDA_FAILED,       /* it can only be ended */
    GP_CUDA_SAVING,
    GP_CUDA_RESTORING,
};

enum gp_cuda_call {
    GP_CUDA_INIT,
    GP_CUDA_STATE,
    GP_CUDA_LOCK, /* and wait until its GPU work is done */
    GP_CUDA_SAVE,
    GP_CUDA_RESTORE, /* without room for it on its GPUs, it can never be tried again */
    GP_CUDA_UNLOCK,
};

/* Loads the library: `path`, or NULL to search for it. It stays loaded. GP_EDRIVER says what is
 * missing. */
int gp_cuda_load(const char *path, struct gp_err *err) GP_MUST_CHECK;

struct gp_cuda_args {
    int64_t pid;
    unsigned lock_timeout_ms; /* of GP_CUDA_LOCK; when it is over, the process runs on */
    enum gp_cuda_state state; /* answer of GP_CUDA_STATE */
};

/* GP_EDRIVER says what the driver answered. GP_CUDA_INIT comes first. */
int gp_cuda_call(enum gp_cuda_call call, struct gp_cuda_args *args,
                 struct gp_err *err) GP_MUST_CHECK;

/* What a call does, for messages. */
const char *gp_cuda_call_text(enum gp_cuda_call call);

#endif
