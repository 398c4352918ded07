/* Steps as a graph: what can start, what follows from a failure, and where a new run continues. */
#include "unit.h"

#include "jobs/steps.h"

enum { ROUNDS = 500 };

/* prepare → (a, b) → join; alone. */
enum { PREPARE, A, B, JOIN, ALONE, COUNT };

static struct gp_steps diamond(void)
{
    struct gp_steps steps = {.count = COUNT};
    uint64_t cycle;
    steps.after[A] = steps.after[B] = gp_step_bit(PREPARE);
    steps.after[JOIN] = gp_step_bit(A) | gp_step_bit(B);
    assert_true(gp_steps_close(&steps, &cycle));
    assert_int_equal(cycle, 0);
    return steps;
}

static void in_order(void **state)
{
    (void)state;
    struct gp_steps steps = diamond();
    size_t order[GP_STEPS_MAX];
    assert_int_equal(gp_steps_ready(&steps), gp_step_bit(PREPARE) | gp_step_bit(ALONE));
    steps.states[PREPARE] = GP_STEP_RUNNING;
    assert_int_equal(gp_steps_ready(&steps), gp_step_bit(ALONE));
    gp_steps_end(&steps, PREPARE, true);
    gp_steps_end(&steps, ALONE, true);
    assert_int_equal(gp_steps_ready(&steps), gp_step_bit(A) | gp_step_bit(B));
    gp_steps_end(&steps, A, true);
    assert_int_equal(gp_steps_ready(&steps), gp_step_bit(B));
    gp_steps_end(&steps, B, true);
    assert_int_equal(gp_steps_ready(&steps), gp_step_bit(JOIN));
    gp_steps_order(&steps, order);
    const size_t expected[] = {PREPARE, ALONE, A, B, JOIN};
    assert_memory_equal(order, expected, sizeof(expected));
}

static void parallel(void **state)
{
    (void)state;
    struct gp_steps steps = diamond();
    assert_int_equal(gp_steps_parallel(&steps, A), gp_step_bit(B) | gp_step_bit(ALONE));
    assert_int_equal(gp_steps_parallel(&steps, JOIN), gp_step_bit(ALONE));
    assert_int_equal(gp_steps_later(&steps, PREPARE),
                     gp_step_bit(A) | gp_step_bit(B) | gp_step_bit(JOIN));
    steps = (struct gp_steps){.count = GP_STEPS_MAX};
    assert_int_equal(gp_steps_parallel(&steps, 0), UINT64_MAX - 1);
}

static void a_failure(void **state)
{
    (void)state;
    struct gp_steps steps = diamond();
    gp_steps_end(&steps, PREPARE, true);
    steps.states[B] = GP_STEP_RUNNING;
    gp_steps_end(&steps, A, false);
    assert_int_equal(steps.states[JOIN], GP_STEP_BLOCKED);
    assert_int_equal(steps.causes[JOIN], A);
    assert_int_equal(steps.states[B], GP_STEP_RUNNING); /* it finishes */
    assert_int_equal(gp_steps_ready(&steps), gp_step_bit(ALONE));
    gp_steps_end(&steps, B, false);
    assert_int_equal(steps.causes[JOIN], A); /* the first one */
    assert_string_equal(gp_step_state_word(GP_STEP_BLOCKED), "not started");
}

/* Which of them are not run again. */
static uint64_t done_in(uint64_t succeeded, size_t from)
{
    struct gp_steps steps = diamond();
    gp_steps_continue(&steps, succeeded, from);
    return gp_steps_in(&steps, GP_STEP_OK_BEFORE);
}

static void a_later_run(void **state)
{
    (void)state;
    const uint64_t all = gp_step_bit(COUNT) - 1;
    assert_int_equal(done_in(0, GP_STEPS_MAX), 0);
    assert_int_equal(done_in(all, GP_STEPS_MAX), 0); /* from the beginning */
    assert_int_equal(done_in(all & ~gp_step_bit(A), GP_STEPS_MAX),
                     all & ~gp_step_bit(A) & ~gp_step_bit(JOIN));
    assert_int_equal(done_in(all & ~gp_step_bit(PREPARE), GP_STEPS_MAX), gp_step_bit(ALONE));
}

static void from_a_step(void **state)
{
    (void)state;
    const uint64_t all = gp_step_bit(COUNT) - 1;
    struct gp_steps steps = diamond();
    gp_steps_continue(&steps, 0, A);
    assert_int_equal(gp_steps_in(&steps, GP_STEP_PASSED_OVER), gp_step_bit(PREPARE));
    /* b has not run, and the join needs it */
    assert_int_equal(gp_steps_ready(&steps), gp_step_bit(A) | gp_step_bit(B) | gp_step_bit(ALONE));
    assert_int_equal(done_in(all, A), all & ~gp_step_bit(A) & ~gp_step_bit(JOIN));
    assert_int_equal(done_in(all, PREPARE), gp_step_bit(ALONE));
    steps = diamond();
    gp_steps_continue(&steps, gp_step_bit(PREPARE) | gp_step_bit(B), JOIN);
    assert_int_equal(gp_steps_in(&steps, GP_STEP_PASSED_OVER), gp_step_bit(A));
    assert_int_equal(gp_steps_ready(&steps), gp_step_bit(JOIN) | gp_step_bit(ALONE));
}

static void cycles(void **state)
{
    (void)state;
    struct gp_steps steps = {.count = 4};
    uint64_t cycle;
    steps.after[0] = gp_step_bit(2);
    steps.after[1] = gp_step_bit(0);
    steps.after[2] = gp_step_bit(1);
    steps.after[3] = gp_step_bit(2); /* comes after the cycle, and is not of it */
    assert_false(gp_steps_close(&steps, &cycle));
    assert_int_equal(cycle, 7);
    steps = (struct gp_steps){.count = 2};
    steps.after[1] = gp_step_bit(1);
    assert_false(gp_steps_close(&steps, &cycle));
    assert_int_equal(cycle, 2);
}

static uint64_t seed = 3;

static size_t below(size_t bound)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (size_t)(seed >> 33) % bound;
}

/* Whatever the graph: a step starts after all that it names, and all come to an end. */
static void any_graph(void **state)
{
    (void)state;
    for (size_t round = 0; round < ROUNDS; round++) {
        struct gp_steps steps = {.count = 1 + below(GP_STEPS_MAX)};
        uint64_t ended = 0;
        uint64_t cycle;
        for (size_t i = 1; i < steps.count; i++)
            for (size_t k = below(4); k > 0; k--)
                steps.after[i] |= gp_step_bit(below(i));
        assert_true(gp_steps_close(&steps, &cycle));
        for (uint64_t ready; (ready = gp_steps_ready(&steps));) {
            size_t at = below(steps.count);
            if (!gp_steps_has(ready, at))
                continue;
            assert_int_equal(steps.after[at] & ~ended, 0);
            gp_steps_end(&steps, at, below(10) > 0);
            ended |= steps.states[at] == GP_STEP_OK ? gp_step_bit(at) : 0;
        }
        assert_int_equal(gp_steps_in(&steps, GP_STEP_WAITING), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_order),    cmocka_unit_test(parallel),    cmocka_unit_test(a_failure),
        cmocka_unit_test(a_later_run), cmocka_unit_test(from_a_step), cmocka_unit_test(cycles),
        cmocka_unit_test(any_graph),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
