/* What the simulated driver keeps of jobs in accounting mode. */
#include "unit.h"

#include "sim/state.h"

#include <unistd.h>

static struct sim_state *state;
static struct sim_job own;

static int open_state(void **ctx)
{
    (void)ctx;
    state = sim_state_new_private();
    own = (struct sim_job){.pid = (uint32_t)getpid(),
                           .start_ticks = sim_process_start((unsigned)getpid()),
                           .bytes = 100};
    return state ? 0 : -1;
}

static int close_state(void **ctx)
{
    (void)ctx;
    sim_state_close(state);
    return 0;
}

/* The accounts of a pid on GPU 0; *ret is one of them. */
static int find(uint32_t pid, struct sim_account *ret)
{
    struct sim_account account;
    int count = 0;
    for (size_t i = 0; i < SIM_MAX_ACCOUNTS; i++)
        if (sim_state_account(state, i, &account) && account.pid == pid && account.gpu == 0) {
            *ret = account;
            count++;
        }
    return count;
}

/* A job with an account; its slot. */
static size_t begin(const struct sim_job *job)
{
    size_t slot;
    assert_int_equal(sim_state_add_job(state, job, &slot, NULL), 0);
    sim_state_begin_account(state, job);
    return slot;
}

static void the_most_that_a_job_had(void **ctx)
{
    (void)ctx;
    struct sim_account account = { 0 };
    size_t slot = begin(&own);
    own.bytes = 300;
    sim_state_update_job(state, slot, &own);
    own.bytes = 200;
    sim_state_update_job(state, slot, &own);
    assert_int_equal(find(own.pid, &account), 1);
    assert_int_equal(account.most_bytes, 300);
    assert_int_equal(account.end_us, 0);
    sim_state_remove_job(state, slot);
    assert_int_equal(find(own.pid, &account), 1);
    assert_int_equal(account.most_bytes, 300);
    assert_true(account.end_us >= account.begin_us && account.begin_us > 0);
}

static void a_later_process_with_the_same_pid(void **ctx)
{
    (void)ctx;
    struct sim_account account;
    sim_state_remove_job(state, begin(&own));
    own.bytes = 50;
    size_t slot = begin(&own);
    assert_int_equal(find(own.pid, &account), 2); /* until it ends */
    sim_state_remove_job(state, slot);
    assert_int_equal(find(own.pid, &account), 1);
    assert_int_equal(account.most_bytes, 50);
}

static void jobs_that_were_killed(void **ctx)
{
    (void)ctx;
    struct sim_account account;
    own.start_ticks++; /* whoever this was is gone */
    (void)begin(&own);
    sim_state_settle_accounts(state);
    assert_int_equal(find(own.pid, &account), 1);
    assert_true(account.end_us > 0);
}

static void the_oldest_make_room_but_not_those_that_run(void **ctx)
{
    (void)ctx;
    struct sim_account account;
    size_t slot = begin(&own);
    const struct sim_job first = {.pid = 1 << 23, .start_ticks = 1, .bytes = 1};
    for (uint32_t i = 0; i < SIM_MAX_ACCOUNTS; i++) {
        struct sim_job job = first;
        job.pid += i;
        sim_state_begin_account(state, &job);
        sim_state_settle_accounts(state);
    }
    assert_int_equal(find(own.pid, &account), 1);
    assert_int_equal(account.end_us, 0);
    assert_int_equal(find(first.pid, &account), 0);
    assert_int_equal(find(first.pid + SIM_MAX_ACCOUNTS - 1, &account), 1);
    sim_state_remove_job(state, slot);
}

static void forgotten(void **ctx)
{
    (void)ctx;
    struct sim_account account;
    const struct sim_job ended = {.pid = 1 << 23, .start_ticks = 1, .bytes = 1};
    (void)begin(&own);
    sim_state_begin_account(state, &ended);
    sim_state_settle_accounts(state);
    sim_state_forget_accounts(state, 1, true);
    assert_int_equal(find(ended.pid, &account), 1);
    sim_state_forget_accounts(state, 0, false);
    assert_int_equal(find(ended.pid, &account), 0);
    assert_int_equal(find(own.pid, &account), 1);
    sim_state_forget_accounts(state, 0, true);
    assert_int_equal(find(own.pid, &account), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_most_that_a_job_had, open_state, close_state),
        cmocka_unit_test_setup_teardown(a_later_process_with_the_same_pid, open_state, close_state),
        cmocka_unit_test_setup_teardown(jobs_that_were_killed, open_state, close_state),
        cmocka_unit_test_setup_teardown(the_oldest_make_room_but_not_those_that_run, open_state,
                                        close_state),
        cmocka_unit_test_setup_teardown(forgotten, open_state, close_state),
    };
    return cmocka_run_group_tests_name("sim_account", tests, NULL, NULL);
}
