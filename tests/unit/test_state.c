/* The shared state of a simulated machine, from its inside: writers that die, waiters that come
 * early. */
#include "unit.h"

#include "base/clock.h"
#include "base/err.h"
#include "sim/state_internal.h"

static int make_state(void **state)
{
    *state = sim_state_new_private();
    return *state ? 0 : -1;
}

static int close_state(void **state)
{
    sim_state_close(*state);
    return 0;
}

static void a_slot_outlives_a_writer_that_was_killed(void **state)
{
    struct sim_state *machine = *state;
    const struct sim_fault first = {.kind = SIM_FAULT_HANG, .value = 1};
    const struct sim_fault second = {.kind = SIM_FAULT_SLOW, .value = 2};
    struct sim_fault seen;
    struct gp_err err;
    /* it was killed behind its first store */
    atomic_fetch_add(&machine->map->faults[0].sequence, 1);
    assert_false(sim_state_fault(machine, 0, &seen));

    assert_int_equal(sim_state_add_fault(machine, &first, &err), GP_OK);
    assert_true(sim_state_fault(machine, 0, &seen));
    assert_int_equal(seen.value, 1);
    sim_state_clear_faults(machine, SIM_ALL_GPUS);
    assert_false(sim_state_fault(machine, 0, &seen));
    assert_int_equal(sim_state_add_fault(machine, &second, &err), GP_OK);
    assert_true(sim_state_fault(machine, 0, &seen));
    assert_int_equal(seen.value, 2);
}

static void what_happens_between_looking_and_waiting_wakes(void **state)
{
    struct sim_state *machine = *state;
    const struct sim_event event = {.type = 1};
    const struct sim_fault fault = {.kind = SIM_FAULT_LOST, .gpu = SIM_ALL_GPUS};
    struct gp_err err;
    uint64_t until_ns = gp_clock_mono_ns() + 600 * GP_NS_PER_S;
    unsigned int bell = sim_state_bell(machine);
    sim_state_post_event(machine, &event);
    sim_state_await_bell(machine, bell, until_ns);
    bell = sim_state_bell(machine);
    assert_int_equal(sim_state_add_fault(machine, &fault, &err), GP_OK);
    sim_state_await_bell(machine, bell, until_ns);
    assert_true(gp_clock_mono_ns() < until_ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slot_outlives_a_writer_that_was_killed),
        cmocka_unit_test(what_happens_between_looking_and_waiting_wakes),
    };
    return cmocka_run_group_tests_name("state", tests, make_state, close_state);
}
