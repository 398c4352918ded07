#include "unit.h"

#include "base/clock.h"
#include "sample/errand.h"

#include <pthread.h>
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

static void all_are_done(void **state)
{
    (void)state;
    bool done[COUNT] = {false};
    set_up(-1);
    assert_true(gp_errands_run(errand, &work, COUNT, 60 * GP_NS_PER_S, done));
    for (int i = 0; i < COUNT; i++) {
        assert_true(done[i]);
        assert_int_equal(atomic_load(&work.begun[i]), 1);
    }
}

static void none_is_nothing_to_wait_for(void **state)
{
    (void)state;
    bool done[1];
    assert_true(gp_errands_run(errand, &work, 0, 0, done));
}

/* The others are done, and the one that hangs is not waited for. */
static void one_that_hangs_holds_nobody_up(void **state)
{
    (void)state;
    bool done[COUNT];
    set_up(2);
    (void)pthread_mutex_lock(&work.gate);
    bool free_of_threads = gp_errands_run(errand, &work, COUNT, 200 * GP_NS_PER_MS, done);
    assert_false(free_of_threads);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(done[i], i != 2);
    (void)pthread_mutex_unlock(&work.gate);
    while (atomic_load(&work.ended) < COUNT)
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void without_memory_nothing_is_done(void **state)
{
    (void)state;
    bool done[COUNT];
    set_up(-1);
    alloc_fail_from(0);
    assert_true(gp_errands_run(errand, &work, COUNT, GP_NS_PER_S, done));
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
