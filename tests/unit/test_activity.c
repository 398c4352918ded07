/* When processes were last active: ticks by hand. */
#include "unit.h"

#include "sample/activity.h"

static struct gp_activity activity;

static int forget(void **state)
{
    (void)state;
    gp_activity_fini(&activity);
    return 0;
}

static struct gp_activity_entry see(unsigned gpu, uint32_t pid, bool is_active, uint64_t now_ns)
{
    return gp_activity_see(&activity, gpu, pid, is_active, now_ns - 1, now_ns);
}

static void the_last_time_is_kept(void **state)
{
    (void)state;
    static const struct {
        uint64_t now_ns;
        bool is_active;
        uint64_t active_ns;
    } ticks[] = {{10, false, 0}, {20, true, 20}, {30, false, 20}, {40, true, 40}, {50, false, 40}};
    for (size_t i = 0; i < GP_ARRAY_LEN(ticks); i++) {
        assert_int_equal(gp_activity_begin(&activity, 3), 0);
        (void)see(1, 9, true, ticks[i].now_ns); /* others, out of order */
        struct gp_activity_entry entry = see(0, 7, ticks[i].is_active, ticks[i].now_ns);
        (void)see(0, 3, true, ticks[i].now_ns);
        gp_activity_end(&activity);
        assert_int_equal(entry.since_ns, 9);
        assert_int_equal(entry.active_ns, ticks[i].active_ns);
        assert_int_equal(activity.count, 3);
    }
}

static void each_gpu_counts_for_itself(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(gp_activity_begin(&activity, 2), 0);
        assert_int_equal(see(0, 7, i == 0, 10).active_ns, 10);
        assert_int_equal(see(1, 7, false, 10).active_ns, 0);
        gp_activity_end(&activity);
    }
}

/* Its pid may be another process's when it comes back. */
static void who_is_gone_is_forgotten(void **state)
{
    (void)state;
    for (uint64_t now_ns = 10; now_ns <= 30; now_ns += 10) {
        assert_int_equal(gp_activity_begin(&activity, 1), 0);
        if (now_ns != 20)
            assert_int_equal(see(0, 7, now_ns == 10, now_ns).active_ns, now_ns == 10 ? 10 : 0);
        gp_activity_end(&activity);
    }
    assert_int_equal(activity.items[0].since_ns, 29);
}

static void no_more_than_there_is_room_for(void **state)
{
    (void)state;
    assert_int_equal(gp_activity_begin(&activity, 1), 0);
    (void)see(0, 7, true, 10);
    (void)see(0, 8, true, 10);
    gp_activity_end(&activity);
    assert_int_equal(activity.count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_last_time_is_kept, forget),
        cmocka_unit_test_teardown(each_gpu_counts_for_itself, forget),
        cmocka_unit_test_teardown(who_is_gone_is_forgotten, forget),
        cmocka_unit_test_teardown(no_more_than_there_is_room_for, forget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
