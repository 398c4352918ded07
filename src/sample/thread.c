#include "sample/thread.h"

#include "base/err.h"

#include <signal.h>

enum { STACK_BYTES = 512 * 1024 };

int gp_thread_start(pthread_t *ret, void *(*main)(void *ctx), void *ctx)
{
    pthread_attr_t attr;
    sigset_t all;
    sigset_t before;
    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setstacksize(&attr, STACK_BYTES);
    (void)sigfillset(&all);
    /* Signals are for the thread that runs the command. */
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int r = pthread_create(ret, &attr, main, ctx);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attr);
    return r == 0 ? 0 : GP_ENOMEM;
}

void gp_thread_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t monotonic;
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(cond, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
}

int gp_thread_no_start(int code, uint64_t timeout_ns, struct gp_err *err)
{
    if (code == GP_ETIMEOUT)
        return gp_err_set(err, code,
                          "the driver did not start within %.1f s (nvmlInit); the kernel log may "
                          "show the reason: dmesg | grep -i nvrm",
                          (double)timeout_ns / 1e9);
    return gp_err_set(
        err, code, "%s",
        code == GP_ENODEV
            ? "the driver is running, but found no GPU; see the kernel log: dmesg | grep -i nvrm"
            : "cannot start a thread for the driver");
}
