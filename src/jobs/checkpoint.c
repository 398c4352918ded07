#include "jobs/checkpoint.h"

#include "base/err.h"
#include "sample/errand.h"

/* The driver gives up a lock by itself; if it does not, gpulse gives up after this margin. */
enum { LATE_S = 5 };

/* Static, because a stuck thread may use it for the rest of the process's life. */
static struct call {
    enum gp_cuda_call call;
    struct gp_cuda_args args;
    struct gp_err err;
    int r;
    bool is_stuck;
} calls[8];

static void work(void *ctx, size_t i)
{
    struct call *call = ctx;
    (void)i;
    call->r = gp_cuda_call(call->call, &call->args, &call->err);
}

static struct call *free_call(void)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(calls); i++)
        if (!calls[i].is_stuck)
            return &calls[i];
    return NULL;
}

bool gp_checkpoint_is_stuck(void)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(calls); i++)
        if (calls[i].is_stuck)
            return true;
    return false;
}

/* Another call for a process that an earlier call is stuck on would get stuck, too. */
static bool is_waited_for(int64_t pid)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(calls); i++)
        if (calls[i].is_stuck && calls[i].args.pid == pid)
            return true;
    return false;
}

static int make_call(enum gp_cuda_call what, int64_t pid, uint64_t timeout_ns,
                     enum gp_cuda_state *ret_state, struct gp_err *err)
{
    struct call *call = free_call();
    bool done = false;
    if (!call || is_waited_for(pid))
        return gp_err_set(err, GP_ETIMEOUT, "the driver has not answered an earlier call");
    *call = (struct call){
        .call = what,
        .args = {.pid = pid, .lock_timeout_ms = (unsigned)(timeout_ns / GP_NS_PER_MS)}};
    if (what == GP_CUDA_LOCK)
        timeout_ns += LATE_S * GP_NS_PER_S;
    const struct gp_errands errands = {work, call, 1, .timeout_ns = timeout_ns};
    call->is_stuck = !gp_errands_run(&errands, &done);
    if (call->is_stuck)
        return gp_err_set(err, GP_ETIMEOUT, "%s: no response within %.1f s",
                          gp_cuda_call_text(what), (double)timeout_ns / 1e9);
    if (!done)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    if (ret_state)
        *ret_state = call->args.state;
    return call->r < 0 ? gp_err_copy(err, &call->err) : 0;
}

int gp_checkpoint_do(enum gp_cuda_call call, int64_t pid, uint64_t timeout_ns, struct gp_err *err)
{
    return make_call(call, pid, timeout_ns, NULL, err);
}

int gp_checkpoint_get_state(int64_t pid, uint64_t timeout_ns, enum gp_cuda_state *ret,
                            struct gp_err *err)
{
    return make_call(GP_CUDA_STATE, pid, timeout_ns, ret, err);
}

int gp_checkpoint_open(const char *path, uint64_t timeout_ns, struct gp_err *err)
{
    int r = gp_cuda_load(path, err);
    return r < 0 ? r : gp_checkpoint_do(GP_CUDA_INIT, 0, timeout_ns, err);
}
