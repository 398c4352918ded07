#include "jobs/steps.h"

static const struct {
    bool is_satisfied;
    const char *word;
} states[] = {
#define X(id, is_satisfied, word) [GP_STEP_##id] = {is_satisfied, word},
    GP_STEP_STATES(X)
#undef X
};

const char *gp_step_state_word(enum gp_step_state state)
{
    return states[state].word;
}

/* Extends the chains by one link: adds the predecessors of all known predecessors. */
static uint64_t with_predecessors(const struct gp_steps *steps, uint64_t set)
{
    uint64_t more = set;
    for (size_t i = 0; i < steps->count; i++)
        if (gp_steps_has(set, i))
            more |= steps->after[i];
    return more;
}

/* Each step that depends on itself, together with the steps that are both before and after it. */
static uint64_t find_cycle(const struct gp_steps *steps)
{
    for (size_t i = 0; i < steps->count; i++) {
        uint64_t cycle = 0;
        for (size_t k = 0; k < steps->count; k++)
            if (gp_steps_has(steps->before[i], k) && gp_steps_has(steps->before[k], i))
                cycle |= gp_step_bit(k);
        if (cycle)
            return cycle;
    }
    return 0;
}

bool gp_steps_close(struct gp_steps *steps, uint64_t *ret_cycle)
{
    for (size_t i = 0; i < steps->count; i++) {
        uint64_t before = steps->after[i];
        for (uint64_t more; (more = with_predecessors(steps, before)) != before;)
            before = more;
        steps->before[i] = before;
    }
    *ret_cycle = find_cycle(steps);
    return *ret_cycle == 0;
}

static uint64_t all_of(const struct gp_steps *steps)
{
    return UINT64_MAX >> (GP_STEPS_MAX - steps->count);
}

uint64_t gp_steps_in(const struct gp_steps *steps, enum gp_step_state state)
{
    uint64_t set = 0;
    for (size_t i = 0; i < steps->count; i++)
        if (steps->states[i] == state)
            set |= gp_step_bit(i);
    return set;
}

uint64_t gp_steps_ready(const struct gp_steps *steps)
{
    uint64_t satisfied = 0;
    uint64_t ready = 0;
    for (size_t i = 0; i < steps->count; i++)
        if (states[steps->states[i]].is_satisfied)
            satisfied |= gp_step_bit(i);
    for (size_t i = 0; i < steps->count; i++)
        if (steps->states[i] == GP_STEP_WAITING && (steps->before[i] & ~satisfied) == 0)
            ready |= gp_step_bit(i);
    return ready;
}

uint64_t gp_steps_later(const struct gp_steps *steps, size_t step)
{
    uint64_t set = 0;
    for (size_t i = 0; i < steps->count; i++)
        if (gp_steps_has(steps->before[i], step))
            set |= gp_step_bit(i);
    return set;
}

uint64_t gp_steps_parallel(const struct gp_steps *steps, size_t step)
{
    return all_of(steps) & ~gp_step_bit(step) & ~steps->before[step] & ~gp_steps_later(steps, step);
}

void gp_steps_end(struct gp_steps *steps, size_t step, bool succeeded)
{
    uint64_t later = gp_steps_later(steps, step);
    steps->states[step] = succeeded ? GP_STEP_OK : GP_STEP_FAILED;
    for (size_t i = 0; i < steps->count && !succeeded; i++) {
        if (!gp_steps_has(later, i) || steps->states[i] != GP_STEP_WAITING)
            continue;
        steps->states[i] = GP_STEP_BLOCKED;
        steps->causes[i] = step;
    }
}

static uint64_t still_done(const struct gp_steps *steps, uint64_t succeeded)
{
    uint64_t done = 0;
    for (size_t i = 0; i < steps->count; i++)
        if (gp_steps_has(succeeded, i) && (steps->before[i] & ~succeeded) == 0)
            done |= gp_step_bit(i);
    return done;
}

void gp_steps_continue(struct gp_steps *steps, uint64_t succeeded, size_t from)
{
    bool has_from = from < GP_STEPS_MAX;
    uint64_t done = still_done(steps, succeeded);
    uint64_t again = has_from ? gp_steps_later(steps, from) | gp_step_bit(from) : 0;
    uint64_t passed = has_from ? steps->before[from] : 0;
    if (!has_from && done == all_of(steps))
        done = 0;
    for (size_t i = 0; i < steps->count; i++)
        steps->states[i] = gp_steps_has(again, i)    ? GP_STEP_WAITING
                           : gp_steps_has(done, i)   ? GP_STEP_OK_BEFORE
                           : gp_steps_has(passed, i) ? GP_STEP_PASSED_OVER
                                                     : GP_STEP_WAITING;
}

static size_t place_of(const struct gp_steps *steps, size_t step)
{
    return (size_t)__builtin_popcountll(steps->before[step]);
}

void gp_steps_order(const struct gp_steps *steps, size_t order[GP_STEPS_MAX])
{
    for (size_t i = 0; i < steps->count; i++) {
        size_t at = i;
        for (; at > 0 && place_of(steps, order[at - 1]) > place_of(steps, i); at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}
