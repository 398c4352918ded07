#include "sampler_bench.h"

#include <errno.h>
#include <stdatomic.h>

/* ---- all is well ---- */

static void every_gpu_is_read_at_every_tick(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 8);
    start(&b);
    for (unsigned n = 1; n <= 3; n++) {
        b.fake.gpus[5].temperature = 70 + n;
        tick(&b);
        assert_int_equal(b.snapshot->device_count, 8);
        assert_false(b.snapshot->partial);
        for (unsigned i = 0; i < 8; i++) {
            check_well(&b, i, i == 5 ? 70 + n : 50 + i);
            assert_int_equal(value(&b, i, GP_INDEX)->i, i);
            assert_int_equal(value(&b, i, GP_UUID)->status, GP_STATUS_NONE); /* nobody asked */
        }
        /* what lasts is read first, once */
        assert_int_equal(b.fake.reads, 8 + 8 * n);
    }
    assert_string_equal(b.snapshot->host[GP_DRIVER_VERSION].s, "1.0");
    assert_int_equal(b.snapshot->host[GP_COUNT].i, 8);
    assert_non_null(b.snapshot->host[GP_TIMESTAMP].s);
    assert_int_equal(b.fake.opens, 1);
    assert_int_equal(b.fake.attaches, 8);
    finish(&b);
}

static void a_snapshot_outlives_its_sampler(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 2);
    start(&b);
    tick(&b);
    struct gp_snapshot *kept = b.snapshot;
    b.snapshot = NULL;
    tick(&b);
    finish(&b);
    assert_string_equal(kept->devices[1].values[GP_NAME - GP_DEVICE__FIRST].s, "b");
    assert_string_equal(kept->host[GP_DRIVER_VERSION].s, "1.0");
    gp_snapshot_free(kept);
}

static void a_reading_that_nobody_else_has_is_filled_again(void **state)
{
    (void)state;
    struct gp_reading *reading = gp_reading_new();
    reading->process_count = 3;
    assert_non_null(gp_arena_strdup(&reading->arena, "text"));
    assert_ptr_equal(gp_reading_recycle(reading), reading);
    assert_int_equal(reading->process_count, 0);
    const char *text = gp_arena_strdup(&reading->arena, "kept");
    struct gp_reading *same = gp_reading_ref(reading);
    assert_null(gp_reading_recycle(reading));
    assert_string_equal(text, "kept");
    assert_null(gp_reading_unref(same));
    assert_null(gp_reading_recycle(NULL));
}

static void slow_gpus_are_read_side_by_side(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 8);
    b.fake.gather = 8; /* nobody comes back before all are inside */
    start(&b);
    tick(&b);
    assert_false(b.snapshot->partial);
    assert_int_equal(b.fake.most_inside, 8);
    finish(&b);
}

static void only_what_is_wanted_is_asked_for(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 1);
    start(&b);
    tick(&b);
    assert_true(gp_metric_set_has(&b.fake.want.metrics, GP_TEMPERATURE_GPU));
    assert_false(gp_metric_set_has(&b.fake.want.metrics, GP_UUID));
    assert_false(gp_metric_set_has(&b.fake.want.metrics, GP_POWER_DRAW));
    assert_false(b.fake.want.processes);
    assert_false(b.fake.want.process_names);
    assert_false(b.fake.want.mig);
    assert_int_equal(value(&b, 0, GP_POWER_DRAW)->status, GP_STATUS_NONE);
    finish(&b);
}

/* ---- the driver does not start ---- */

static void a_driver_that_refuses(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 4);
    b.fake.open_result = GP_EPERM;
    check_no_start(&b, GP_EPERM, "the fake driver refuses");
}

static void a_driver_without_gpus(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 0);
    check_no_start(&b, GP_ENODEV, "found no GPU");
}

static void a_driver_that_hangs_while_it_starts(void **state)
{
    (void)state;
    /* The stuck thread uses it until this program ends. */
    static struct bench b;
    struct gp_err err = {0};
    bench_init(&b, 4);
    b.fake.open_hangs = true;
    b.config.timeout_ns = PATIENCE_NS;
    uint64_t before = gp_clock_mono_ns();
    assert_int_equal(gp_sampler_new(&b.config, &b.sampler, &err), GP_ETIMEOUT);
    assert_true(gp_clock_mono_ns() - before >= PATIENCE_NS);
    assert_non_null(strstr(err.text, "did not start within 0.2 s (nvmlInit)"));
    (void)pthread_mutex_lock(&b.fake.lock);
    assert_int_equal(b.fake.frees, 0);
    assert_int_equal(b.fake.closes, 1); /* the one before the start */
    (void)pthread_mutex_unlock(&b.fake.lock);
}

/* ---- a GPU that hangs ---- */

static void a_gpu_that_hangs_holds_nobody_up(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 8);
    fake_set_mode(&b.fake, 3, FAKE_HANGS);
    b.config.timeout_ns = PATIENCE_NS;
    start(&b);
    tick_until_others(&b, 3);
    assert_true(b.snapshot->partial);
    assert_int_equal(b.snapshot->device_count, 8);
    for (unsigned i = 0; i < 8; i++)
        if (i != 3)
            check_well(&b, i, 50 + i);
    check_silent(&b, 3);
    assert_int_equal(value(&b, 3, GP_TEMPERATURE_GPU)->status, GP_STATUS_TIMEOUT);
    assert_int_equal(value(&b, 3, GP_NAME)->status, GP_STATUS_TIMEOUT);
    assert_int_equal(value(&b, 3, GP_INDEX)->i, 3);
    release(&b, 3);
    tick_until(&b, 3, GP_STATUS_OK);
    check_well(&b, 3, 53);
    assert_false(b.snapshot->partial);
    finish(&b);
}

/* Whoever watches sees the others at once, and the late one in the same tick. */
static void the_first_look_has_what_there_is(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 8);
    fake_set_mode(&b.fake, 3, FAKE_HANGS);
    b.config.first_look_ns = GP_NS_PER_S;
    start(&b);
    tick(&b);
    assert_true(gp_sampler_goes_on(b.sampler));
    assert_true(b.snapshot->partial);
    for (unsigned i = 0; i < 8; i++)
        if (i != 3)
            check_well(&b, i, 50 + i);
    assert_int_equal(b.snapshot->devices[3].status, GP_STATUS_TIMEOUT);
    assert_string_equal(b.snapshot->devices[3].status_text, "no answer yet (fakeRead)");
    unsigned reads = b.fake.reads;
    release(&b, 3);
    tick(&b);
    assert_false(gp_sampler_goes_on(b.sampler));
    assert_int_equal(b.fake.reads, reads + 1); /* its own */
    for (unsigned i = 0; i < 8; i++)
        check_well(&b, i, 50 + i);
    tick(&b);
    assert_int_equal(b.fake.reads, reads + 9);
    finish(&b);
}

static void behind_the_first_look_nobody_waits_for_long(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 2);
    fake_set_mode(&b.fake, 1, FAKE_HANGS);
    b.config.first_look_ns = 1;
    b.config.later_timeout_ns = PATIENCE_NS;
    start(&b);
    tick(&b);
    assert_true(gp_sampler_goes_on(b.sampler));
    tick(&b);
    assert_false(gp_sampler_goes_on(b.sampler));
    tick_until(&b, 0, GP_STATUS_OK);
    check_silent(&b, 1);
    release(&b, 1);
    tick_until(&b, 1, GP_STATUS_OK);
    finish(&b);
}

/* Also while it is between the first look and what follows. */
static void nobody_comes_behind_the_first_look(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 2);
    b.config.first_look_ns = LONG_S * GP_NS_PER_S;
    start(&b);
    tick(&b);
    assert_false(gp_sampler_goes_on(b.sampler));
    finish(&b);
    bench_init(&b, 2);
    fake_set_mode(&b.fake, 1, FAKE_HANGS);
    b.config.first_look_ns = PATIENCE_NS;
    start(&b);
    tick(&b);
    assert_false(gp_sampler_free(b.sampler));
    release(&b, 1);
    while (!gp_sampler_free(b.sampler))
        (void)usleep(1000);
    b.sampler = NULL;
    finish(&b);
}

static void a_silent_gpu_keeps_its_last_values(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 2);
    start(&b);
    tick(&b);
    uint64_t seen_ns = value(&b, 1, GP_TEMPERATURE_GPU)->time_us;
    finish(&b);

    bench_init(&b, 2);
    b.config.timeout_ns = PATIENCE_NS;
    start(&b);
    tick_until(&b, 1, GP_STATUS_OK);
    fake_set_mode(&b.fake, 1, FAKE_HANGS);
    double silent_s = 0;
    for (int i = 0; i < 3; i++) {
        tick_until(&b, 0, GP_STATUS_OK);
        assert_int_equal(b.snapshot->devices[1].status, GP_STATUS_TIMEOUT);
        assert_true(b.snapshot->devices[1].silent_s > silent_s);
        silent_s = b.snapshot->devices[1].silent_s;
        check_text(&b, 1, GP_NAME, "b"); /* what it is does not age */
        assert_int_equal(value(&b, 1, GP_TEMPERATURE_GPU)->status, GP_STATUS_STALE);
        assert_int_equal(value(&b, 1, GP_TEMPERATURE_GPU)->i, 51);
        assert_true(value(&b, 1, GP_TEMPERATURE_GPU)->time_us > seen_ns);
        assert_true(value(&b, 1, GP_TEMPERATURE_GPU)->time_us < b.snapshot->mono_ns);
        check_text(&b, 1, GP_STATUS, "timeout");
        assert_string_equal(value(&b, 1, GP_STATUS_TEXT)->s, b.snapshot->devices[1].status_text);
    }
    (void)pthread_mutex_lock(&b.fake.lock);
    assert_int_equal(b.fake.inside, 1); /* it was never asked a second time */
    (void)pthread_mutex_unlock(&b.fake.lock);
    release(&b, 1);
    tick_until(&b, 1, GP_STATUS_OK);
    finish(&b);
}

static void all_gpus_hang(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 4);
    for (unsigned i = 0; i < 4; i++)
        fake_set_mode(&b.fake, i, FAKE_HANGS);
    b.config.timeout_ns = PATIENCE_NS;
    start(&b);
    for (int n = 0; n < 2; n++) {
        tick(&b);
        assert_int_equal(b.snapshot->device_count, 4);
        for (unsigned i = 0; i < 4; i++)
            assert_int_equal(b.snapshot->devices[i].status, GP_STATUS_TIMEOUT);
    }
    for (unsigned i = 0; i < 4; i++)
        fake_set_mode(&b.fake, i, FAKE_WELL);
    release(&b, 0);
    for (unsigned i = 0; i < 4; i++)
        tick_until(&b, i, GP_STATUS_OK);
    finish(&b);
}

static void nothing_is_freed_beside_a_call_that_hangs(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 2);
    b.config.timeout_ns = PATIENCE_NS;
    start(&b);
    tick_until(&b, 1, GP_STATUS_OK);
    fake_set_mode(&b.fake, 1, FAKE_HANGS);
    tick(&b);
    gp_snapshot_free(b.snapshot);
    b.snapshot = NULL;
    assert_false(gp_sampler_free(b.sampler));
    (void)pthread_mutex_lock(&b.fake.lock);
    assert_int_equal(b.fake.frees, 0);
    assert_int_equal(b.fake.closes, 1); /* the one before the start */
    assert_int_equal(b.fake.held, 2);
    (void)pthread_mutex_unlock(&b.fake.lock);
    /* a program would end here; a test wants its memory back */
    release(&b, 1);
    bool freed = false;
    for (int i = 0; !freed && i < 2000; i++) {
        freed = gp_sampler_free(b.sampler);
        (void)usleep(freed ? 0 : 5000);
    }
    assert_true(freed);
    assert_int_equal(b.fake.breaches, 0);
}

/* ---- no more threads ---- */

static atomic_int threads_left = 1000;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
                          void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
                          void *arg);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
                          void *arg)
{
    if (atomic_load(&threads_left) <= 0)
        return EAGAIN;
    atomic_fetch_sub(&threads_left, 1);
    return __real_pthread_create(thread, attr, run, arg);
}

static void without_a_thread_there_is_no_start(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 2);
    atomic_store(&threads_left, 0);
    check_no_start(&b, GP_ENOMEM, "cannot start a thread for the driver");
    atomic_store(&threads_left, 1000);
}

static void with_too_few_threads_the_others_go_on(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 4);
    b.config.timeout_ns = PATIENCE_NS;
    atomic_store(&threads_left, 2);
    start(&b);
    for (unsigned i = 0; i < 4; i++)
        tick_until(&b, i, GP_STATUS_OK);
    fake_set_mode(&b.fake, 1, FAKE_HANGS);
    for (int64_t n = 1; n <= 3; n++) {
        (void)pthread_mutex_lock(&b.fake.lock);
        b.fake.gpus[3].temperature = 60 + n;
        (void)pthread_mutex_unlock(&b.fake.lock);
        tick_until(&b, 3, GP_STATUS_OK);
        check_well(&b, 3, 60 + n);
        assert_int_equal(b.snapshot->devices[1].status, GP_STATUS_TIMEOUT);
    }
    /* the second thread is gone too: the rest is told so, and nothing looks fresh */
    fake_set_mode(&b.fake, 0, FAKE_HANGS);
    tick(&b);
    tick(&b);
    for (size_t i = 2; i < 4; i++) {
        assert_int_equal(b.snapshot->devices[i].status, GP_STATUS_TIMEOUT);
        assert_string_equal(b.snapshot->devices[i].status_text,
                            "not queried for 0 s: no thread is free");
        assert_int_equal(value(&b, i, GP_TEMPERATURE_GPU)->status, GP_STATUS_STALE);
    }
    atomic_store(&threads_left, 1000);
    tick_until(&b, 2, GP_STATUS_OK);
    tick_until(&b, 3, GP_STATUS_OK);
    assert_int_equal(b.snapshot->devices[0].status, GP_STATUS_TIMEOUT);
    fake_set_mode(&b.fake, 0, FAKE_WELL);
    release(&b, 1);
    tick_until(&b, 0, GP_STATUS_OK);
    tick_until(&b, 1, GP_STATUS_OK);
    finish(&b);
}

/* ---- a GPU that is lost ---- */

static void a_lost_gpu_comes_back_in_a_new_session(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 3);
    start(&b);
    tick(&b);
    fake_set_mode(&b.fake, 1, FAKE_LOST);
    tick(&b);
    assert_true(b.snapshot->partial);
    check_well(&b, 0, 50);
    check_well(&b, 2, 52);
    assert_int_equal(b.snapshot->devices[1].status, GP_STATUS_LOST);
    assert_string_equal(b.snapshot->devices[1].status_text, "lost at read");
    check_text(&b, 1, GP_NAME, "b");
    assert_int_equal(value(&b, 1, GP_TEMPERATURE_GPU)->status, GP_STATUS_LOST);
    assert_int_equal(b.fake.opens, 1); /* not at once */
    fake_set_mode(&b.fake, 1, FAKE_WELL);
    b.fake.gpus[1].temperature = 61;
    tick_until(&b, 1, GP_STATUS_OK);
    check_well(&b, 0, 50);
    check_well(&b, 1, 61);
    assert_false(b.snapshot->partial);
    assert_true(b.fake.opens >= 2);
    assert_string_equal(b.snapshot->host[GP_DRIVER_VERSION].s, "2.0");
    finish(&b);
}

/* The first time after a second, then after twice as long, and so on. */
static void a_gpu_that_stays_lost_is_looked_for_ever_more_rarely(void **state)
{
    (void)state;
    static const unsigned later_ms[] = {1000, 1000, 2000, 4000, 8000, 16000, 32000, 64000, 64000};
    struct bench b;
    bench_init(&b, 2);
    set_clock_speed(0);
    start(&b);
    tick(&b);
    fake_set_mode(&b.fake, 1, FAKE_LOST);
    tick(&b);
    for (unsigned i = 0; i < GP_ARRAY_LEN(later_ms); i++) {
        skip_ms(later_ms[i] - 1);
        tick(&b);
        tick(&b);
        assert_int_equal(b.fake.opens, 1 + i);
        skip_ms(1);
        tick(&b);
        assert_int_equal(b.fake.opens, 2 + i);
    }
    set_clock_speed(1);
    finish(&b);
}

static void a_gpu_lost_before_the_start(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 2);
    b.fake.gpus[0].mode = FAKE_LOST;
    start(&b);
    tick(&b);
    assert_int_equal(b.snapshot->devices[0].status, GP_STATUS_LOST);
    assert_string_equal(b.snapshot->devices[0].status_text, "lost at attach");
    assert_int_equal(value(&b, 0, GP_NAME)->status, GP_STATUS_LOST);
    check_well(&b, 1, 51);
    fake_set_mode(&b.fake, 0, FAKE_WELL);
    tick_until(&b, 0, GP_STATUS_OK);
    check_well(&b, 0, 50);
    finish(&b);
}

/* Without a session there is no number that looks fresh, and no GPU that looks well. */
static void check_no_session(const struct bench *b, size_t row, enum gp_status status,
                             const char *words)
{
    assert_int_equal(b->snapshot->devices[row].status, status);
    assert_string_equal(b->snapshot->devices[row].status_text, words);
    check_text(b, row, GP_STATUS_TEXT, words);
    for (int m = GP_DEVICE__FIRST; m < GP_PROCESS__FIRST; m++)
        if (gp_metric_table[m].tier != GP_TIER_STATIC && m != GP_STATUS && m != GP_STATUS_TEXT)
            assert_int_not_equal(value(b, row, (enum gp_metric)m)->status, GP_STATUS_OK);
}

static void tick_until_opened(struct bench *b, unsigned opens)
{
    for (int i = 0; i < 2000; i++) {
        tick(b);
        (void)pthread_mutex_lock(&b->fake.lock);
        bool done = b->fake.opens >= opens;
        (void)pthread_mutex_unlock(&b->fake.lock);
        if (done)
            return;
        pause_between_ticks();
    }
    fail_msg("the driver was never opened %u times", opens);
}

static void a_driver_that_does_not_come_back_at_once(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 2);
    start(&b);
    tick(&b);
    fake_set_mode(&b.fake, 0, FAKE_LOST);
    b.fake.open_result = GP_EDRIVER;
    tick_until_opened(&b, 2);
    tick(&b);
    /* there is no session: nobody answers, what they are is still known */
    assert_int_equal(b.snapshot->device_count, 2);
    assert_true(b.snapshot->partial);
    for (size_t i = 0; i < 2; i++) {
        check_no_session(&b, i, GP_STATUS_LOST, "the fake driver refuses");
        assert_int_equal(value(&b, i, GP_TEMPERATURE_GPU)->status, GP_STATUS_LOST);
        check_text(&b, i, GP_NAME, i == 0 ? "a" : "b");
    }
    b.fake.open_result = 0;
    fake_set_mode(&b.fake, 0, FAKE_WELL);
    tick_until(&b, 0, GP_STATUS_OK);
    tick_until(&b, 1, GP_STATUS_OK);
    finish(&b);
}

static void a_driver_that_starts_again_slowly_is_started_once(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 2);
    b.config.timeout_ns = PATIENCE_NS;
    start(&b);
    tick_until(&b, 1, GP_STATUS_OK);
    (void)pthread_mutex_lock(&b.fake.lock);
    b.fake.gpus[0].mode = FAKE_LOST;
    b.fake.open_hangs = true;
    b.fake.count = 4;
    (void)pthread_mutex_unlock(&b.fake.lock);
    tick_until_opened(&b, 2);
    /* longer than the time after which another attempt would be made */
    uint64_t until = gp_clock_mono_ns() + 5 * GP_NS_PER_S / 2;
    while (gp_clock_mono_ns() < until) {
        tick(&b);
        assert_int_equal(b.snapshot->device_count, 2);
        assert_true(b.snapshot->partial);
        for (size_t i = 0; i < 2; i++)
            check_no_session(&b, i, GP_STATUS_TIMEOUT, "the driver is being reopened");
        assert_int_equal(value(&b, 1, GP_TEMPERATURE_GPU)->status, GP_STATUS_STALE);
        skip_ms(500);
    }
    (void)pthread_mutex_lock(&b.fake.lock);
    b.fake.gpus[0].mode = FAKE_WELL;
    b.fake.open_hangs = false;
    (void)pthread_cond_broadcast(&b.fake.changed);
    (void)pthread_mutex_unlock(&b.fake.lock);
    for (unsigned i = 0; i < 4; i++)
        tick_until(&b, i, GP_STATUS_OK);
    for (int n = 0; n < 3; n++)
        tick(&b);
    assert_int_equal(b.snapshot->device_count, 4);
    assert_int_equal(b.fake.opens, 2);
    assert_false(b.snapshot->partial);
    finish(&b);
}

static void identity_is_the_uuid_when_the_driver_counts_differently(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 3);
    gp_metric_set_add(&b.config.want.metrics, GP_UUID);
    start(&b);
    tick(&b);
    fake_set_mode(&b.fake, 1, FAKE_LOST);
    tick(&b);
    assert_int_equal(b.snapshot->devices[1].status, GP_STATUS_LOST);
    /* GPU-b is gone, GPU-c moves up */
    (void)pthread_mutex_lock(&b.fake.lock);
    b.fake.order[1] = 2;
    b.fake.count = 2;
    (void)pthread_mutex_unlock(&b.fake.lock);
    for (int i = 0; i < 2000 && b.fake.opens < 2; i++) {
        tick(&b);
        pause_between_ticks();
    }
    tick(&b);
    assert_int_equal(b.snapshot->device_count, 3);
    check_well(&b, 0, 50);
    check_well(&b, 2, 52);
    check_text(&b, 2, GP_UUID, "GPU-c");
    assert_int_equal(value(&b, 2, GP_INDEX)->i, 2);
    assert_int_equal(b.snapshot->devices[1].status, GP_STATUS_LOST);
    assert_string_equal(b.snapshot->devices[1].status_text, "the driver no longer lists this GPU");
    /* and it returns at the end of the list */
    (void)pthread_mutex_lock(&b.fake.lock);
    b.fake.order[2] = 1;
    b.fake.gpus[1].mode = FAKE_WELL;
    b.fake.count = 3;
    (void)pthread_mutex_unlock(&b.fake.lock);
    tick_until(&b, 1, GP_STATUS_OK);
    check_well(&b, 1, 51);
    check_text(&b, 1, GP_UUID, "GPU-b");
    check_text(&b, 2, GP_UUID, "GPU-c");
    assert_int_equal(b.snapshot->device_count, 3);
    finish(&b);
}

static void who_refuses_after_another_order_is_not_who_stood_there(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 3);
    gp_metric_set_add(&b.config.want.metrics, GP_UUID);
    start(&b);
    tick(&b);
    fake_set_mode(&b.fake, 0, FAKE_LOST);
    tick(&b);
    /* GPU-b and GPU-c change places, and GPU-b refuses */
    (void)pthread_mutex_lock(&b.fake.lock);
    b.fake.order[1] = 2;
    b.fake.order[2] = 1;
    b.fake.gpus[0].mode = FAKE_WELL;
    b.fake.gpus[1].mode = FAKE_DENIED;
    (void)pthread_mutex_unlock(&b.fake.lock);
    tick_until(&b, 0, GP_STATUS_OK);
    tick(&b);
    check_well(&b, 2, 52);
    check_text(&b, 2, GP_UUID, "GPU-c");
    assert_int_equal(b.snapshot->devices[1].status, GP_STATUS_NO_PERMISSION);
    check_text(&b, 1, GP_UUID, "GPU-b");
    finish(&b);
}

static void gpus_that_are_added_are_shown(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 2);
    start(&b);
    tick(&b);
    (void)pthread_mutex_lock(&b.fake.lock);
    b.fake.gpus[0].mode = FAKE_LOST;
    b.fake.count = 5;
    (void)pthread_mutex_unlock(&b.fake.lock);
    tick(&b);
    assert_int_equal(b.snapshot->device_count, 2); /* not before there is a new session */
    fake_set_mode(&b.fake, 0, FAKE_WELL);
    tick_until(&b, 4, GP_STATUS_OK);
    assert_int_equal(b.snapshot->device_count, 5);
    for (unsigned i = 0; i < 5; i++)
        check_well(&b, i, 50 + i);
    assert_int_equal(b.snapshot->host[GP_COUNT].i, 5);
    finish(&b);
}

static void no_new_session_beside_a_call_that_hangs(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 3);
    b.config.timeout_ns = PATIENCE_NS;
    start(&b);
    for (unsigned i = 0; i < 3; i++)
        tick_until(&b, i, GP_STATUS_OK);
    fake_set_mode(&b.fake, 0, FAKE_HANGS);
    fake_set_mode(&b.fake, 1, FAKE_LOST);
    uint64_t until = gp_clock_mono_ns() + 2 * GP_NS_PER_S;
    while (gp_clock_mono_ns() < until) {
        tick(&b);
        pause_between_ticks();
    }
    assert_int_equal(b.fake.opens, 1);
    tick_until(&b, 1, GP_STATUS_LOST);
    tick_until(&b, 2, GP_STATUS_OK);
    fake_set_mode(&b.fake, 1, FAKE_WELL);
    release(&b, 0);
    tick_until(&b, 1, GP_STATUS_OK);
    tick_until(&b, 0, GP_STATUS_OK);
    finish(&b);
}

/* GPU 1 is lost and GPU 0 hangs while another one demands a new session: there, GPU 1 is looked for
 * at index 0, too, which hangs. */
static void a_lost_gpu_is_lost_while_the_search_for_it_hangs(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 3);
    b.config.timeout_ns = PATIENCE_NS;
    start(&b);
    for (unsigned i = 0; i < 3; i++)
        tick_until(&b, i, GP_STATUS_OK);
    fake_set_mode(&b.fake, 2, FAKE_LOST);
    tick_until(&b, 2, GP_STATUS_LOST);
    skip_ms(5000);
    const unsigned opens = b.fake.opens;
    fake_set_mode(&b.fake, 0, FAKE_STUCK);
    fake_set_mode(&b.fake, 1, FAKE_LOST);
    tick_until(&b, 1, GP_STATUS_LOST);
    assert_int_equal(b.fake.opens, opens + 1);
    for (int n = 0; n < 3; n++) {
        pause_between_ticks();
        tick(&b);
        assert_int_equal(b.snapshot->devices[1].status, GP_STATUS_LOST);
    }
    assert_int_equal(b.snapshot->devices[0].status, GP_STATUS_TIMEOUT);
    release(&b, 0);
    tick_until(&b, 0, GP_STATUS_OK); /* the searches go on through the other GPUs, and end */
    for (int n = 0; n < 2000 && gp_sampler_is_busy(b.sampler); n++)
        pause_between_ticks();
    finish(&b);
}

/* A wait for it would last an hour. */
static void a_gpu_that_begins_to_hang_holds_nobody_up(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 2);
    b.config.first_look_ns = PATIENCE_NS / 5;
    b.config.timeout_ns = b.config.later_timeout_ns = 3600 * GP_NS_PER_S;
    start(&b);
    set_clock_speed(0); /* both ticks are quick ones, on a busy machine too */
    tick_until(&b, 0, GP_STATUS_OK);
    tick(&b);
    set_clock_speed(1);
    fake_set_mode(&b.fake, 0, FAKE_HANGS);
    tick(&b);
    assert_int_equal(b.snapshot->devices[0].status, GP_STATUS_TIMEOUT);
    check_well(&b, 1, 51);
    release(&b, 0);
    finish(&b);
}

static void a_lost_gpu_that_hangs_is_lost(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 2);
    b.config.timeout_ns = PATIENCE_NS;
    start(&b);
    tick_until(&b, 0, GP_STATUS_OK);
    fake_set_mode(&b.fake, 0, FAKE_LOST);
    tick_until(&b, 0, GP_STATUS_LOST);
    fake_set_mode(&b.fake, 0, FAKE_HANGS);
    for (int n = 0; n < 2; n++) {
        tick_until(&b, 1, GP_STATUS_OK);
        assert_int_equal(b.snapshot->devices[0].status, GP_STATUS_LOST);
    }
    release(&b, 0);
    finish(&b);
}

/* GPU 0 hangs in the first tick. In the second it answers while GPU 1 is still being read. */
static void *answer_in_turn(void *arg)
{
    struct bench *b = arg;
    for (unsigned inside = 0; inside < 2; (void)usleep(500)) {
        (void)pthread_mutex_lock(&b->fake.lock);
        inside = b->fake.inside;
        (void)pthread_mutex_unlock(&b->fake.lock);
    }
    fake_set_mode(&b->fake, 0, FAKE_WELL);
    (void)usleep(5000); /* its thread is done with it then, or the test tries again */
    fake_set_mode(&b->fake, 1, FAKE_WELL);
    return NULL;
}

static bool try_too_late(void)
{
    struct bench b;
    pthread_t helper;
    bench_init(&b, 2);
    fake_set_mode(&b.fake, 0, FAKE_HANGS);
    b.config.timeout_ns = PATIENCE_NS;
    b.config.later_timeout_ns = LONG_S * GP_NS_PER_S;
    start(&b);
    tick(&b);
    assert_int_equal(b.snapshot->devices[0].status, GP_STATUS_TIMEOUT);
    fake_set_mode(&b.fake, 1, FAKE_HANGS);
    assert_int_equal(pthread_create(&helper, NULL, answer_in_turn, &b), 0);
    tick(&b);
    assert_int_equal(pthread_join(helper, NULL), 0);
    const struct gp_device *device = &b.snapshot->devices[0];
    bool late = strcmp(device->status_text, "responded too late for this sample") == 0;
    if (late) {
        assert_int_equal(device->status, GP_STATUS_TIMEOUT);
        assert_int_equal(value(&b, 0, GP_TEMPERATURE_GPU)->status, GP_STATUS_STALE);
        check_well(&b, 1, 51);
    }
    tick_until(&b, 0, GP_STATUS_OK);
    finish(&b);
    return late;
}

static void an_answer_to_an_earlier_tick_is_not_one_of_this(void **state)
{
    (void)state;
    bool late = false;
    for (int n = 0; n < 50 && !late; n++)
        late = try_too_late();
    assert_true(late);
}

/* ---- refusals ---- */

static void a_sleeping_gpu_is_no_failure(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 2);
    b.fake.gpus[0].mode = FAKE_ASLEEP;
    start(&b);
    tick(&b);
    assert_false(b.snapshot->partial);
    assert_int_equal(b.snapshot->devices[0].status, GP_STATUS_ASLEEP);
    check_text(&b, 0, GP_NAME, "sleepy");
    assert_int_equal(value(&b, 0, GP_TEMPERATURE_GPU)->status, GP_STATUS_ASLEEP);
    check_well(&b, 1, 51);
    fake_set_mode(&b.fake, 0, FAKE_WELL);
    tick(&b);
    check_well(&b, 0, 50);
    assert_int_equal(b.fake.opens, 1);
    finish(&b);
}

static void a_gpu_that_is_forbidden(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 2);
    b.fake.gpus[1].mode = FAKE_DENIED;
    start(&b);
    tick(&b);
    assert_true(b.snapshot->partial);
    assert_int_equal(b.snapshot->devices[1].status, GP_STATUS_NO_PERMISSION);
    assert_string_equal(b.snapshot->devices[1].status_text, "denied");
    check_well(&b, 0, 50);
    finish(&b);
}

/* ---- a single tick ---- */

static void wait_for_closes(struct bench *b, unsigned closes)
{
    for (int i = 0; i < 2000; i++) {
        (void)pthread_mutex_lock(&b->fake.lock);
        bool closed = b->fake.closes == closes && !b->fake.busy;
        (void)pthread_mutex_unlock(&b->fake.lock);
        if (closed)
            return;
        (void)usleep(5000);
    }
    fail_msg("the session was not closed");
}

static void a_single_tick_begins_and_ends_by_itself(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 8);
    b.config.once = true;
    start(&b);
    wait_for_closes(&b, 2); /* before the start, and behind the reads: nobody has come for them */
    tick(&b);
    assert_false(b.snapshot->partial);
    assert_int_equal(b.snapshot->device_count, 8);
    for (unsigned i = 0; i < 8; i++)
        check_well(&b, i, 50 + i);
    finish(&b);
    assert_int_equal(b.fake.reads, 16); /* who it is, and what it does */
    assert_int_equal(b.fake.opens, 1);
    assert_int_equal(b.fake.closes, 2);
}

static void a_single_tick_whose_session_does_not_end(void **state)
{
    (void)state;
    /* The stuck thread uses it until this program ends. */
    static struct bench benches[20];
    for (size_t i = 0; i < GP_ARRAY_LEN(benches); i++) {
        struct bench *b = &benches[i];
        bench_init(b, 2);
        b->fake.close_hangs = true;
        b->config.once = true;
        b->config.timeout_ns = PATIENCE_NS;
        start(b);
        tick(b);
        check_well(b, 0, 50);
        check_well(b, 1, 51);
        gp_snapshot_free(b->snapshot);
        set_clock_speed(50); /* nothing comes that would have to come in time */
        assert_false(gp_sampler_free(b->sampler));
        set_clock_speed(1);
    }
}

static void a_single_tick_that_nobody_takes(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 2);
    b.config.once = true;
    start(&b);
    finish(&b);
}

static void a_single_tick_of_gpus_that_are_not_there(void **state)
{
    (void)state;
    struct bench b;
    struct gp_err err = {0};
    bench_init(&b, 2);
    b.config.once = true;
    assert_int_equal(gp_selection_parse("7", &b.selection, &err), 0);
    check_no_start(&b, GP_ENODEV, "7");
    assert_int_equal(b.fake.reads, 0);
}

static void a_single_tick_with_a_gpu_that_hangs(void **state)
{
    (void)state;
    /* The stuck thread uses it until this program ends. */
    static struct bench b;
    bench_init(&b, 2);
    fake_set_mode(&b.fake, 1, FAKE_HANGS);
    b.config.once = true;
    b.config.timeout_ns = PATIENCE_NS;
    start(&b);
    tick(&b);
    check_well(&b, 0, 50);
    assert_int_equal(b.snapshot->devices[1].status, GP_STATUS_TIMEOUT);
    gp_snapshot_free(b.snapshot);
    assert_false(gp_sampler_free(b.sampler));
    assert_int_equal(b.fake.closes, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_gpu_is_read_at_every_tick),
        cmocka_unit_test(a_snapshot_outlives_its_sampler),
        cmocka_unit_test(a_reading_that_nobody_else_has_is_filled_again),
        cmocka_unit_test(slow_gpus_are_read_side_by_side),
        cmocka_unit_test(only_what_is_wanted_is_asked_for),
        cmocka_unit_test(a_driver_that_refuses),
        cmocka_unit_test(a_driver_without_gpus),
        cmocka_unit_test(a_driver_that_hangs_while_it_starts),
        cmocka_unit_test(a_gpu_that_hangs_holds_nobody_up),
        cmocka_unit_test(the_first_look_has_what_there_is),
        cmocka_unit_test(behind_the_first_look_nobody_waits_for_long),
        cmocka_unit_test(nobody_comes_behind_the_first_look),
        cmocka_unit_test(a_silent_gpu_keeps_its_last_values),
        cmocka_unit_test(all_gpus_hang),
        cmocka_unit_test(nothing_is_freed_beside_a_call_that_hangs),
        cmocka_unit_test(without_a_thread_there_is_no_start),
        cmocka_unit_test(with_too_few_threads_the_others_go_on),
        cmocka_unit_test(a_lost_gpu_comes_back_in_a_new_session),
        cmocka_unit_test(a_gpu_that_stays_lost_is_looked_for_ever_more_rarely),
        cmocka_unit_test(a_gpu_lost_before_the_start),
        cmocka_unit_test(a_driver_that_does_not_come_back_at_once),
        cmocka_unit_test(a_driver_that_starts_again_slowly_is_started_once),
        cmocka_unit_test(identity_is_the_uuid_when_the_driver_counts_differently),
        cmocka_unit_test(who_refuses_after_another_order_is_not_who_stood_there),
        cmocka_unit_test(gpus_that_are_added_are_shown),
        cmocka_unit_test(no_new_session_beside_a_call_that_hangs),
        cmocka_unit_test(a_gpu_that_begins_to_hang_holds_nobody_up),
        cmocka_unit_test(a_lost_gpu_that_hangs_is_lost),
        cmocka_unit_test(a_lost_gpu_is_lost_while_the_search_for_it_hangs),
        cmocka_unit_test(an_answer_to_an_earlier_tick_is_not_one_of_this),
        cmocka_unit_test(a_sleeping_gpu_is_no_failure),
        cmocka_unit_test(a_gpu_that_is_forbidden),
        cmocka_unit_test(a_single_tick_begins_and_ends_by_itself),
        cmocka_unit_test(a_single_tick_whose_session_does_not_end),
        cmocka_unit_test(a_single_tick_that_nobody_takes),
        cmocka_unit_test(a_single_tick_of_gpus_that_are_not_there),
        cmocka_unit_test(a_single_tick_with_a_gpu_that_hangs),
    };
    return cmocka_run_group_tests_name("sampler", tests, NULL, NULL);
}
