#include "cmd/bench_guard.h"

#include "base/clock.h"
#include "base/err.h"
#include "cmd/app.h"
#include "sample/thread.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { EVERY_MS = 100, PATIENT_S = 1, LEAST_PATIENT_S = 10, PRINT_S = 10 };

/* Other threads may still measure, so it prints a copy. */
static void print(struct gp_bench_guard *guard, size_t overdue, const char *why)
{
    struct gp_bench_results copy;
    if (gp_bench_copy_results(guard->bench, &copy) < 0)
        return;
    if (overdue < GP_BENCH_ALL)
        gp_bench_mark_failed(&copy, guard->bench->names[overdue], why);
    gp_bench_results_drop_unfinished(&copy);
    (void)alarm(PRINT_S); /* whatever printing waits for */
    guard->print(guard->context, &copy);
    gp_bench_results_fini(&copy);
}

static _Noreturn void end_by_signal(struct gp_bench_guard *guard)
{
    sigset_t none;
    print(guard, GP_BENCH_ALL, "");
    (void)sigemptyset(&none);
    (void)pthread_sigmask(SIG_SETMASK, &none, NULL);
    gp_app_end_by_signal();
}

/* After a signal: measurements end after a block, so it helps to know how not to wait for it. */
static void look_at_signals(struct gp_bench_guard *guard, uint64_t now_ns)
{
    if (!gp_app_is_stopped())
        return;
    if (!guard->stopped_ns)
        guard->stopped_ns = now_ns;
    const uint64_t passed_ns = now_ns - guard->stopped_ns;
    if (!guard->has_told && passed_ns >= PATIENT_S * GP_NS_PER_S) {
        guard->has_told = true;
        guard->tell("ending; press Ctrl-C again to end at once");
    }
    if (passed_ns >= LEAST_PATIENT_S * GP_NS_PER_S)
        end_by_signal(guard);
}

static void look_at_devices(struct gp_bench_guard *guard, uint64_t now_ns)
{
    const struct gp_bench *bench = guard->bench;
    const size_t i = gp_bench_overdue(bench, now_ns);
    char why[120];
    if (i == GP_BENCH_ALL)
        return;
    const uint64_t passed_ns = gp_bench_waits_ns(bench->devices[i], now_ns);
    (void)snprintf(why, sizeof(why), "GPU %s has not answered for %.0f s: see gpulse doctor",
                   bench->names[i], (double)passed_ns / 1e9);
    guard->tell(why);
    print(guard, i, why);
    _exit(gp_err_exit_status(GP_EDRIVER));
}

static void *run(void *context)
{
    struct gp_bench_guard *guard = context;
    /* While it ends the process, it keeps the lock, and gp_bench_guard_stop() does not return. */
    (void)pthread_mutex_lock(&guard->lock);
    while (!guard->is_stopping) {
        const uint64_t now_ns = gp_clock_mono_ns();
        look_at_signals(guard, now_ns);
        look_at_devices(guard, now_ns);
        struct timespec until = gp_clock_timespec(now_ns + EVERY_MS * GP_NS_PER_MS);
        (void)pthread_cond_timedwait(&guard->wake, &guard->lock, &until);
    }
    (void)pthread_mutex_unlock(&guard->lock);
    return NULL;
}

int gp_bench_guard_start(struct gp_bench_guard *guard, struct gp_err *err)
{
    (void)pthread_mutex_init(&guard->lock, NULL);
    gp_thread_cond_init(&guard->wake);
    return gp_thread_start(&guard->thread, run, guard) == 0
               ? 0
               : gp_err_set(err, GP_EFAIL, "cannot start a thread");
}

void gp_bench_guard_stop(struct gp_bench_guard *guard)
{
    (void)pthread_mutex_lock(&guard->lock);
    guard->is_stopping = true;
    (void)pthread_cond_signal(&guard->wake);
    (void)pthread_mutex_unlock(&guard->lock);
    (void)pthread_join(guard->thread, NULL);
    (void)pthread_cond_destroy(&guard->wake);
    (void)pthread_mutex_destroy(&guard->lock);
}
