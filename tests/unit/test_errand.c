#include "unit.h"

#include "base/clock.h"
#include "sample/errand.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

enum { COUNT = 5 };

/* One errand waits until the test lets it go. */
static struct {
    pthread_mutex_t gate;
    atomic_int begun[COUNT];
    atomic_int ended;
    int hangs; /* index, −1: none */
} work = {.gate = PTHREAD_MUTEX_INITIALIZER};

static void set_up(int hangs)
{
    for (int i = 0; i < COUNT; i++)
        atomic_store(&work.begun[i], 0);
    atomic_store(&work.ended, 0);
    work.hangs = hangs;
}

static void errand(void *ctx, size_t i)
{
    assert_ptr_equal(ctx, &work);
    atomic_fetch_add(&work.begun[i], 1);
    if ((int)i == work.hangs) {
        (void)pthread_mutex_lock(&work.gate);
        (void)pthread_mutex_unlock(&work.gate);
    }
    atomic_fetch_add(&work.ended, 1);
}

/* Until so many have ended. */
static void wait_until_ended(int count)
{
    while (atomic_load(&work.ended) < count)
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static atomic_uint given_up;

static bool run(size_t count, uint64_t timeout_ns, bool *done)
{
    const struct gp_errands errands = {.work = errand,
                                       .ctx = &work,
                                       .count = count,
                                       .timeout_ns = timeout_ns,
                                       .given_up = &given_up};
    return gp_errands_run(&errands, done);
}

static void all_are_done(void **state)
{
    (void)state;
    bool done[COUNT] = {false};
    set_up(-1);
    assert_true(run(COUNT, 600 * GP_NS_PER_S, done));
    assert_int_equal(atomic_load(&given_up), 0);
    for (int i = 0; i < COUNT; i++) {
        assert_true(done[i]);
        assert_int_equal(atomic_load(&work.begun[i]), 1);
    }
}

static void none_is_nothing_to_wait_for(void **state)
{
    (void)state;
    bool done[1];
    assert_true(run(0, 0, done));
}

/* The others are done, and the one that hangs is not waited for. */
static void one_that_hangs_holds_nobody_up(void **state)
{
    (void)state;
    enum { PATIENCE_MS = 200, TRIES = 10 }; /* a busy machine gets more time at each */
    bool all = false;
    for (int i = 0; !all && i < TRIES; i++) {
        bool done[COUNT];
        set_up(2);
        (void)pthread_mutex_lock(&work.gate);
        assert_false(run(COUNT, (PATIENCE_MS * GP_NS_PER_MS) << i, done));
        assert_false(done[2]);
        assert_int_equal(atomic_load(&given_up), 1);
        all = true;
        for (int k = 0; k < COUNT; k++)
            all = all && (done[k] || k == 2);
        (void)pthread_mutex_unlock(&work.gate);
        wait_until_ended(COUNT);
        while (atomic_load(&given_up) > 0)
            (void)sched_yield();
    }
    assert_true(all);
}

static int times_told;

/* Lets the slow one go. */
static void on_wait(void *ctx, const bool *done)
{
    assert_ptr_equal(ctx, &work);
    assert_false(done[2]);
    times_told++;
    wait_until_ended(COUNT - 1);
    (void)pthread_mutex_unlock(&work.gate);
}

static void who_waits_is_told_once(void **state)
{
    (void)state;
    bool done[COUNT];
    const struct gp_errands errands = {.work = errand,
                                       .ctx = &work,
                                       .count = COUNT,
                                       .timeout_ns = 600 * GP_NS_PER_S,
                                       .on_wait = on_wait,
                                       .patience_ns = 10 * GP_NS_PER_MS};
    set_up(2);
    times_told = 0;
    (void)pthread_mutex_lock(&work.gate);
    assert_true(gp_errands_run(&errands, done));
    assert_int_equal(times_told, 1);
    for (int i = 0; i < COUNT; i++)
        assert_true(done[i]);
}

static bool all_but_one(void *ctx, const bool *done)
{
    size_t count = 0;
    assert_ptr_equal(ctx, &work);
    for (int i = 0; i < COUNT; i++)
        count += done[i];
    return count == COUNT - 1;
}

/* Long before anybody would be told whom one waits for. */
static void the_wait_ends_as_soon_as_enough_are_done(void **state)
{
    (void)state;
    bool done[COUNT];
    const struct gp_errands errands = {.work = errand,
                                       .ctx = &work,
                                       .count = COUNT,
                                       .timeout_ns = 600 * GP_NS_PER_S,
                                       .is_enough = all_but_one,
                                       .on_wait = on_wait,
                                       .patience_ns = 300 * GP_NS_PER_S};
    set_up(2);
    times_told = 0;
    (void)pthread_mutex_lock(&work.gate);
    assert_false(gp_errands_run(&errands, done));
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(done[i], i != 2);
    assert_int_equal(times_told, 0);
    (void)pthread_mutex_unlock(&work.gate);
    wait_until_ended(COUNT);
}

static void without_memory_nothing_is_done(void **state)
{
    (void)state;
    bool done[COUNT];
    set_up(-1);
    alloc_fail_from(0);
    assert_true(run(COUNT, GP_NS_PER_S, done));
    alloc_fail_from(-1);
    for (int i = 0; i < COUNT; i++) {
        assert_false(done[i]);
        assert_int_equal(atomic_load(&work.begun[i]), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_are_done),
        cmocka_unit_test(none_is_nothing_to_wait_for),
        cmocka_unit_test(without_memory_nothing_is_done),
        cmocka_unit_test(one_that_hangs_holds_nobody_up),
        cmocka_unit_test(who_waits_is_told_once),
        cmocka_unit_test(the_wait_ends_as_soon_as_enough_are_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
