/* When the sampler closes the driver's session and opens it again. */
#include "sampler_bench.h"

#include "sample/release.h"

static void the_driver_is_let_go_and_taken_again(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 2);
    start(&b);
    tick(&b);
    gp_sampler_release(b.sampler, true);
    assert_false(b.fake.is_open);
    assert_int_equal(b.fake.held, 0);
    tick(&b);
    assert_false(b.fake.is_open);
    assert_int_equal(b.snapshot->devices[1].status, GP_STATUS_RELEASED);
    assert_string_equal(b.snapshot->devices[1].status_text,
                        "released: gpulse closed the driver; SIGUSR1 reopens it");
    assert_false(b.snapshot->partial);
    assert_int_equal(value(&b, 1, GP_TEMPERATURE_GPU)->status, GP_STATUS_RELEASED);
    check_text(&b, 1, GP_NAME, "b");
    gp_sampler_release(b.sampler, false);
    tick(&b);
    check_well(&b, 1, 51);
    assert_int_equal(b.fake.opens, 2);
    finish(&b);
}

/* A GPU that could sleep and has no work keeps the driver awake for nothing. */
static void the_driver_is_let_go_when_nothing_is_going_on(void **state)
{
    (void)state;
    for (int power = GP_POWER_FIXED; power <= GP_POWER_AWAKE; power++) {
        struct bench b;
        bench_init(&b, 1);
        b.config.release_when_idle = true;
        b.fake.power = (enum gp_power)power;
        set_clock_speed(0);
        start(&b);
        tick(&b);
        skip_ms(GP_RELEASE_IDLE_S * 1000 - 1);
        tick(&b);
        check_well(&b, 0, 50);
        assert_true(gp_metric_set_has(&b.fake.want.metrics, GP_UTILIZATION_GPU));
        assert_true(b.fake.want.processes);
        skip_ms(1);
        tick(&b);
        assert_int_equal(b.fake.is_open, power == GP_POWER_FIXED);
        if (power == GP_POWER_AWAKE)
            assert_string_equal(b.snapshot->devices[0].status_text,
                                "released: gpulse closed the driver so that the GPU can sleep");
        set_clock_speed(1);
        finish(&b);
    }
}

/* Who computes is working, whatever the utilization says. */
static void the_driver_is_kept_while_somebody_works(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 1);
    b.config.release_when_idle = true;
    b.fake.power = GP_POWER_AWAKE;
    b.fake.gpus[0].processes[0] = (struct gp_source_process){.pid = 1, .types = GP_PROCESS_COMPUTE};
    b.fake.gpus[0].process_count = 1;
    set_clock_speed(0);
    start(&b);
    for (int n = 0; n < 5; n++) {
        tick(&b);
        check_well(&b, 0, 50);
        skip_ms(GP_RELEASE_IDLE_S * 1000);
    }
    check_well(&b, 0, 50);
    set_clock_speed(1);
    finish(&b);
}

static void nothing_is_let_go_beside_a_call_that_hangs(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 2);
    b.config.timeout_ns = PATIENCE_NS;
    start(&b);
    fake_set_mode(&b.fake, 1, FAKE_HANGS);
    tick(&b);
    gp_sampler_release(b.sampler, true);
    assert_true(b.fake.is_open);
    tick(&b);
    assert_int_equal(b.snapshot->devices[0].status, GP_STATUS_RELEASED);
    assert_string_equal(b.snapshot->devices[0].status_text,
                        "closing the driver is delayed by a call that hangs");
    release(&b, 1);
    tick_until(&b, 1, GP_STATUS_RELEASED);
    for (int i = 0; i < 400 && b.fake.is_open; i++)
        tick(&b);
    assert_false(b.fake.is_open);
    finish(&b);
}

static void an_end_while_it_is_let_go(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 1);
    start(&b);
    gp_sampler_release(b.sampler, true);
    finish(&b);
}

/* A tick on a thread of its own. */
struct shift {
    struct bench *b;
    pthread_t thread;
    bool began;
    int result;
    struct gp_snapshot *snapshot;
};

static void *take_shift(void *ctx)
{
    struct shift *shift = ctx;
    struct gp_err err = {0};
    shift->result = gp_sampler_tick(shift->b->sampler, &shift->snapshot, &err);
    return NULL;
}

static int start_shift(void *ctx)
{
    struct shift *shift = ctx;
    shift->began = pthread_create(&shift->thread, NULL, take_shift, shift) == 0;
    return shift->began ? 0 : GP_ENOMEM;
}

static int start_nothing(void *ctx)
{
    (void)ctx;
    return GP_ENOMEM;
}

/* Whoever waits for a quick driver reads it, and another one goes on with the tick if it hangs. */
static void a_consumer_that_hangs_is_relieved(void **state)
{
    (void)state;
    struct bench b;
    struct shift first = {.b = &b};
    struct shift second = {.b = &b};
    bench_init(&b, 3);
    b.config.later_timeout_ns = PATIENCE_NS;
    b.config.is_relieved = true;
    start(&b);
    set_clock_speed(0); /* no read is slow, but for a wait that comes back early */
    tick(&b);
    for (int i = 0; i < 1000 && !pthread_equal(b.fake.reader, pthread_self()); i++)
        tick(&b);
    assert_true(pthread_equal(b.fake.reader, pthread_self()));
    skip_ms(60);
    gp_sampler_relieve(b.sampler, 50 * GP_NS_PER_MS, start_shift, &second);
    assert_false(second.began); /* nobody hangs */
    fake_set_mode(&b.fake, 1, FAKE_HANGS);
    assert_int_equal(start_shift(&first), 0);
    for (int i = 0; i < 10000 && !second.began; i++) {
        (void)usleep(1000);
        gp_sampler_relieve(b.sampler, 50 * GP_NS_PER_MS, start_shift, &second);
        skip_ms(60);
        gp_sampler_relieve(b.sampler, 50 * GP_NS_PER_MS, start_nothing, NULL);
    }
    set_clock_speed(1);
    assert_true(second.began);
    assert_int_equal(pthread_join(second.thread, NULL), 0);
    assert_int_equal(second.result, 0);
    gp_snapshot_free(b.snapshot);
    b.snapshot = second.snapshot;
    check_silent(&b, 1);
    tick_until_others(&b, 1);
    check_well(&b, 0, 50);
    check_well(&b, 2, 52);
    check_silent(&b, 1);
    release(&b, 1);
    assert_int_equal(pthread_join(first.thread, NULL), 0);
    assert_int_equal(first.result, GP_EINTR);
    assert_null(first.snapshot);
    tick_until(&b, 1, GP_STATUS_OK);
    finish(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_consumer_that_hangs_is_relieved),
        cmocka_unit_test(the_driver_is_let_go_and_taken_again),
        cmocka_unit_test(the_driver_is_let_go_when_nothing_is_going_on),
        cmocka_unit_test(the_driver_is_kept_while_somebody_works),
        cmocka_unit_test(nothing_is_let_go_beside_a_call_that_hangs),
        cmocka_unit_test(an_end_while_it_is_let_go),
    };
    return cmocka_run_group_tests_name("sampler_release", tests, NULL, NULL);
}
