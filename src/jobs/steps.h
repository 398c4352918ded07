/* The steps of a pipeline as a graph: which come after which, which can start now, and what follows
 * from one that has failed. Steps are numbers here; a set of them is a bit for each. No clock, no
 * process and no output. */
#ifndef GP_JOBS_STEPS_H
#define GP_JOBS_STEPS_H

#include "base/util.h"

enum { GP_STEPS_MAX = 64 };

/* X(id, is satisfied, word) */
#define GP_STEP_STATES(X)                                                                          \
    X(WAITING, false, "not run")                                                                   \
    X(RUNNING, false, "running")                                                                   \
    X(OK, true, "ok")                                                                              \
    X(OK_BEFORE, true, "done before")   /* by an earlier run of the pipeline */                    \
    X(PASSED_OVER, true, "passed over") /* the user asked for a later one */                       \
    X(FAILED, false, "failed")                                                                     \
    X(BLOCKED, false, "not started") /* one that it comes after has failed */

enum gp_step_state {
#define X(id, is_satisfied, word) GP_STEP_##id,
    GP_STEP_STATES(X)
#undef X
        GP_STEP_STATE__COUNT,
};

struct gp_steps {
    size_t count;
    uint64_t after[GP_STEPS_MAX];  /* the steps that this one names */
    uint64_t before[GP_STEPS_MAX]; /* those, and all that they come after in turn */
    enum gp_step_state states[GP_STEPS_MAX];
    size_t causes[GP_STEPS_MAX]; /* of one that is BLOCKED: the step that failed */
};

static inline uint64_t gp_step_bit(size_t step)
{
    return UINT64_C(1) << step;
}

static inline bool gp_steps_has(uint64_t set, size_t step)
{
    return (set >> step) & 1;
}

/* Fills `before` from `after`. A cycle: false, with the steps of one in *ret_cycle. */
bool gp_steps_close(struct gp_steps *steps, uint64_t *ret_cycle) GP_MUST_CHECK;

/* Those that wait, and all that they come after are satisfied. */
uint64_t gp_steps_ready(const struct gp_steps *steps);

/* All in this state. */
uint64_t gp_steps_in(const struct gp_steps *steps, enum gp_step_state state);

/* What may run at the same time as a step: neither before nor after it. */
uint64_t gp_steps_parallel(const struct gp_steps *steps, size_t step);

/* All that come after a step. */
uint64_t gp_steps_later(const struct gp_steps *steps, size_t step);

/* One has succeeded or failed; then what comes after it is BLOCKED. */
void gp_steps_end(struct gp_steps *steps, size_t step, bool succeeded);

/* After an earlier run in which some have succeeded. Of those, one counts if all that it comes
 * after count, too; if all do, all run again. `from` and what comes after it run in any case, and
 * what it comes after does not; GP_STEPS_MAX: no step is named. */
void gp_steps_continue(struct gp_steps *steps, uint64_t succeeded, size_t from);

/* The order in which they can start, by the number of steps that must come first; steps in one
 * place stay in the order of the file. */
void gp_steps_order(const struct gp_steps *steps, size_t order[GP_STEPS_MAX]);

const char *gp_step_state_word(enum gp_step_state state);

#endif
