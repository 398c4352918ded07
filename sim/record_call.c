/* Loads the driver to record, and makes calls that may never return. */
#include "sim/record.h"

#include "abi/nvml_library.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

int rec_load(struct rec_api *api, const char *path, struct gp_err *err)
{
    static const char *const places[] = {NVML_LIBRARY_PLACES};
    memset(api, 0, sizeof(*api));
    char reason[GP_LIBRARY_REASON];
    api->library = gp_library_open(path, places, GP_ARRAY_LEN(places), reason);
    if (!api->library && *reason)
        return gp_err_set(err, GP_EDRIVER, "cannot load %s: %s", path ? path : "libnvidia-ml.so.1",
                          reason);
    if (!api->library)
        return gp_err_set(err, GP_EDRIVER,
                          "cannot load libnvidia-ml.so.1: not found; give its path with --library, "
                          "or a simulated machine with -m");
    for (size_t i = 0; i < SIM_SYMBOL_COUNT; i++)
        api->present[i] = dlsym(api->library, sim_symbols[i].name) != NULL;
    void *symbol;
#define X(branch, type, name, args)                                                                \
    symbol = dlsym(api->library, #name);                                                           \
    memcpy(&api->name, &symbol, sizeof(symbol));
    NVML_FUNCTIONS(X)
#undef X
    symbol = dlsym(api->library, "gpulse_sim_error");
    memcpy(&api->gpulse_sim_error, &symbol, sizeof(symbol));
    if (!api->nvmlInit_v2 || !api->nvmlDeviceGetCount_v2 || !api->nvmlDeviceGetHandleByIndex_v2)
        return gp_err_set(
            err, GP_EDRIVER,
            "the library has no nvmlInit_v2: it is not libnvidia-ml, or from a driver before R450");
    return GP_OK;
}

/* ------------------------------------------------------------------------- threads */

struct worker {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct rec_call call;
    bool asked, done;
    bool ending;
};

struct rec_runner {
    uint64_t timeout_ns;
    struct worker *worker;
    pthread_t thread;
    bool stuck;
};

static void *work(void *arg)
{
    struct worker *w = arg;
    (void)pthread_mutex_lock(&w->lock);
    for (;;) {
        while (!w->asked && !w->ending)
            (void)pthread_cond_wait(&w->changed, &w->lock);
        if (w->ending)
            break;
        w->asked = false;
        (void)pthread_mutex_unlock(&w->lock);
        uint64_t start_ns = gp_clock_mono_ns();
        w->call.code = w->call.ask(&w->call);
        w->call.ns = gp_clock_mono_ns() - start_ns;
        (void)pthread_mutex_lock(&w->lock);
        w->done = true;
        (void)pthread_cond_broadcast(&w->changed);
    }
    (void)pthread_mutex_unlock(&w->lock);
    return NULL;
}

static bool start_worker(struct rec_runner *runner)
{
    struct worker *w = calloc(1, sizeof(*w));
    if (!w)
        return false;
    pthread_condattr_t attr;
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&w->changed, &attr);
    (void)pthread_condattr_destroy(&attr);
    (void)pthread_mutex_init(&w->lock, NULL);
    if (pthread_create(&runner->thread, NULL, work, w) != 0) {
        free(w);
        return false;
    }
    runner->worker = w;
    return true;
}

struct rec_runner *rec_runner_new(uint64_t timeout_ns)
{
    struct rec_runner *runner = calloc(1, sizeof(*runner));
    if (runner)
        runner->timeout_ns = timeout_ns;
    return runner;
}

bool rec_runner_is_stuck(const struct rec_runner *runner)
{
    return runner->stuck;
}

bool rec_runner_free(struct rec_runner *runner)
{
    if (!runner)
        return true;
    struct worker *w = runner->worker;
    if (w) {
        (void)pthread_mutex_lock(&w->lock);
        w->ending = true;
        (void)pthread_cond_broadcast(&w->changed);
        (void)pthread_mutex_unlock(&w->lock);
        (void)pthread_join(runner->thread, NULL);
        (void)pthread_cond_destroy(&w->changed);
        (void)pthread_mutex_destroy(&w->lock);
        free(w);
    }
    bool idle = !runner->stuck;
    free(runner);
    return idle;
}

bool rec_run(struct rec_runner *runner, struct rec_call *call)
{
    if (!runner->worker && !start_worker(runner))
        return false;
    struct worker *w = runner->worker;
    struct timespec until = gp_clock_timespec(gp_clock_mono_ns() + runner->timeout_ns);
    (void)pthread_mutex_lock(&w->lock);
    w->call = *call;
    w->done = false;
    w->asked = true;
    (void)pthread_cond_broadcast(&w->changed);
    int late = 0;
    while (!w->done && !late)
        late = pthread_cond_timedwait(&w->changed, &w->lock, &until);
    if (w->done)
        *call = w->call;
    bool done = w->done;
    (void)pthread_mutex_unlock(&w->lock);
    if (done)
        return true;
    /* The driver may still use the thread and its memory, so they are not freed. */
    (void)pthread_detach(runner->thread);
    runner->worker = NULL;
    runner->stuck = true;
    call->code = NVML_ERROR_TIMEOUT;
    call->ns = runner->timeout_ns;
    return true;
}
