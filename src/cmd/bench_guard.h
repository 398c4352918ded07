/* Ends gpulse bench when a GPU hangs: the thread that waits for it cannot be interrupted. */
#ifndef GP_CMD_BENCH_GUARD_H
#define GP_CMD_BENCH_GUARD_H

#include "bench/bench.h"

#include <pthread.h>

struct gp_bench_guard {
    struct gp_bench *bench;
    void (*tell)(const char *text);
    /* Prints the results so far, of which it is given a copy, while other devices may still work.
     * The process ends afterwards. */
    void (*print)(void *context, const struct gp_bench_results *results);
    void *context;
    pthread_t thread; /* the guard's own, like the next */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool is_stopping;
    struct gp_bench_patience patience;
    bool is_stopped; /* by a signal, which was seen at that time of `patience` */
    uint64_t stopped_ns;
    bool has_told;
};

/* Starts the thread. When a GPU has not answered for longer than the pace allows, or ten seconds
 * after a signal that asks for the end, it prints the results and ends the process. Time in which
 * the process is stopped does not count. GP_EFAIL. */
int gp_bench_guard_start(struct gp_bench_guard *guard, struct gp_err *err) GP_MUST_CHECK;
void gp_bench_guard_stop(struct gp_bench_guard *guard);

#endif
