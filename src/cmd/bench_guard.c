#include "cmd/bench_guard.h"

#include "base/clock.h"
#include "base/err.h"
#include "cmd/app.h"
#include "sample/thread.h"

#include <signal.h>
#include <unistd.h>

enum { EVERY_MS = 100, TELL_AFTER_S = 1, END_AFTER_S = 10, PRINT_S = 10 };

static void print(struct gp_bench_guard *guard, struct gp_bench_results *results)
{
    gp_bench_results_drop_unfinished(results);
    guard->print(guard->context, results);
    gp_bench_results_fini(results);
}

/* Other threads may still measure, so it prints a copy. */
static _Noreturn void end_by_signal(struct gp_bench_guard *guard)
{
    struct gp_bench_results copy;
    sigset_t none;
    (void)alarm(PRINT_S); /* whatever printing waits for */
    if (gp_bench_copy_results(guard->bench, &copy) == 0)
        print(guard, &copy);
    (void)sigemptyset(&none);
    (void)pthread_sigmask(SIG_SETMASK, &none, NULL);
    gp_app_end_by_signal();
}

/* After a signal: measurements end after a block, so it helps to know how not to wait for it. */
static void look_at_signals(struct gp_bench_guard *guard)
{
    const uint64_t awake_ns = guard->patience.awake_ns;
    if (!gp_app_is_stopped())
        return;
    if (!guard->is_stopped) {
        guard->is_stopped = true;
        guard->stopped_ns = awake_ns;
    }
    const uint64_t passed_ns = awake_ns - guard->stopped_ns;
    if (!guard->has_told && passed_ns >= TELL_AFTER_S * GP_NS_PER_S) {
        guard->has_told = true;
        (void)alarm(END_AFTER_S + PRINT_S); /* if it cannot be told */
        guard->tell("ending; press Ctrl-C again to end at once");
        (void)alarm(0);
    }
    if (passed_ns >= END_AFTER_S * GP_NS_PER_S)
        end_by_signal(guard);
}

static void look_at_devices(struct gp_bench_guard *guard)
{
    struct gp_bench *bench = guard->bench;
    struct gp_bench_results copy;
    uint64_t waited_ns = 0;
    char why[160];
    const size_t i = gp_bench_overdue(bench, &guard->patience, gp_clock_mono_ns(), &waited_ns);
    if (i == GP_BENCH_ALL)
        return;
    (void)alarm(PRINT_S); /* whatever telling and printing wait for */
    const bool has_copy = gp_bench_copy_results(bench, &copy) == 0;
    gp_bench_mark_failed(&copy, bench->names[i], waited_ns, why, sizeof(why));
    guard->tell(why);
    if (has_copy)
        print(guard, &copy);
    _exit(gp_err_exit_status(GP_EDRIVER));
}

static void *run(void *context)
{
    struct gp_bench_guard *guard = context;
    /* While it ends the process, it keeps the lock, and gp_bench_guard_stop() does not return. */
    (void)pthread_mutex_lock(&guard->lock);
    while (!guard->is_stopping) {
        look_at_devices(guard);
        look_at_signals(guard);
        struct timespec until = gp_clock_timespec(gp_clock_mono_ns() + EVERY_MS * GP_NS_PER_MS);
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
