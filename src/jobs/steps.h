/* The steps of a pipeline as a graph: their order, which can start now, and which are blocked by a
 * failed one. Steps are numbers here; a set of steps has one bit for each. No clock, no process and
 * no output. */
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
    X(PASSED_OVER, true, "passed over") /* the user started from a later one */                    \
    X(FAILED, false, "failed")                                                                     \
    X(BLOCKED, false, "not started") /* a step that it depends on has failed */

enum gp_step_state {
#define X(id, is_satisfied, word) GP_STEP_##id,
    GP_STEP_STATES(X)
#undef X
        GP_STEP_STATE__COUNT,
};

struct gp_steps {
    size_t count;
    uint64_t after[GP_STEPS_MAX];  /* the steps that this one names */
    uint64_t before[GP_STEPS_MAX]; /* those, and everything they depend on in turn */
    enum gp_step_state states[GP_STEPS_MAX];
    size_t causes[GP_STEPS_MAX]; /* of a BLOCKED one: the step that failed */
};

static inline uint64_t gp_step_bit(size_t step)
{
    return UINT64_C(1) << step;
}

static inline bool gp_steps_has(uint64_t set, size_t step)
{
    return (set >> step) & 1;
}

/* Fills `before` from `after`. If there is a cycle: false, with its steps in *ret_cycle. */
bool gp_steps_close(struct gp_steps *steps, uint64_t *ret_cycle) GP_MUST_CHECK;

/* Waiting steps whose predecessors are all satisfied. */
uint64_t gp_steps_ready(const struct gp_steps *steps);

/* All in this state. */
uint64_t gp_steps_in(const struct gp_steps *steps, enum gp_step_state state);

/* The steps that may run at the same time as this one: neither before nor after it. */
uint64_t gp_steps_parallel(const struct gp_steps *steps, size_t step);

/* All steps that depend on this one. */
uint64_t gp_steps_later(const struct gp_steps *steps, size_t step);

/* Records a success or a failure; after a failure, everything that depends on the step is
 * BLOCKED. */
void gp_steps_end(struct gp_steps *steps, size_t step, bool succeeded);

/* Continues after an earlier run in which these steps have succeeded. A success counts only if all
 * its predecessors' do, too; if all steps have succeeded, all run again. `from` and everything
 * after it always run, and everything before it does not; GP_STEPS_MAX: no step was named. */
void gp_steps_continue(struct gp_steps *steps, uint64_t succeeded, size_t from);

/* An order in which they can start, by the number of their predecessors; ties keep the order of the
 * file. */
void gp_steps_order(const struct gp_steps *steps, size_t order[GP_STEPS_MAX]);

const char *gp_step_state_word(enum gp_step_state state);

#endif
