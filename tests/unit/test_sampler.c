#include "unit.h"

#include "base/clock.h"
#include "fake_source.h"
#include "model/select.h"
#include "model/snapshot.h"
#include "sample/sampler.h"

#include <unistd.h>

enum {
    PATIENCE_NS = 60 * 1000 * 1000, /* of a tick that meets a GPU which hangs */
    LONG_S = 30,                    /* of a tick that meets none: only a failing test waits */
};

/* One sampler over one fake, with what it is asked for. */
struct bench {
    struct fake fake;
    struct gp_selection selection;
    struct gp_sampler_config config;
    struct gp_sampler *sampler;
    struct gp_snapshot *snapshot;
};

static void bench_init(struct bench *b, unsigned gpus)
{
    memset(b, 0, sizeof(*b));
    fake_init(&b->fake, gpus);
    b->config = (struct gp_sampler_config){
        .source = &b->fake.source,
        .root = "/nonexistent",
        .timeout_ns = LONG_S * GP_NS_PER_S,
        .selection = &b->selection,
    };
    gp_metric_set_add(&b->config.want.metrics, GP_NAME);
    gp_metric_set_add(&b->config.want.metrics, GP_STATUS);
    gp_metric_set_add(&b->config.want.metrics, GP_TEMPERATURE_GPU);
}

static void start(struct bench *b)
{
    struct gp_err err = {0};
    if (gp_sampler_new(&b->config, &b->sampler, &err) < 0)
        fail_msg("cannot start: %s", err.text);
}

static const struct gp_snapshot *tick(struct bench *b)
{
    struct gp_err err = {0};
    gp_snapshot_free(b->snapshot);
    b->snapshot = NULL;
    if (gp_sampler_tick(b->sampler, &b->snapshot, &err) < 0)
        fail_msg("no sample: %s", err.text);
    return b->snapshot;
}

/* The sampler ends, with everything given back and no rule of source.h broken. */
static void finish(struct bench *b)
{
    gp_snapshot_free(b->snapshot);
    assert_true(gp_sampler_free(b->sampler));
    assert_int_equal(b->fake.frees, 1);
    assert_int_equal(b->fake.held, 0);
    assert_int_equal(b->fake.inside, 0);
    assert_false(b->fake.is_open);
    assert_int_equal(b->fake.breaches, 0);
}

static const struct gp_value *value(const struct bench *b, size_t row, enum gp_metric m)
{
    assert_true(row < b->snapshot->device_count);
    return gp_snapshot_value(b->snapshot, &b->snapshot->devices[row], NULL, m);
}

static void check_text(const struct bench *b, size_t row, enum gp_metric m, const char *expected)
{
    assert_int_equal(value(b, row, m)->status, GP_STATUS_OK);
    assert_string_equal(value(b, row, m)->s, expected);
}

static void check_well(const struct bench *b, size_t row, int64_t temperature)
{
    assert_int_equal(b->snapshot->devices[row].status, GP_STATUS_OK);
    check_text(b, row, GP_STATUS, "ok");
    assert_int_equal(value(b, row, GP_TEMPERATURE_GPU)->status, GP_STATUS_OK);
    assert_int_equal(value(b, row, GP_TEMPERATURE_GPU)->i, temperature);
}

/* Samples until the device has this status; lost GPUs are looked for again after a second. */
static void tick_until(struct bench *b, size_t row, enum gp_status status)
{
    for (int i = 0; i < 400; i++) {
        tick(b);
        if (row < b->snapshot->device_count && b->snapshot->devices[row].status == status)
            return;
        (void)usleep(25000);
    }
    fail_msg("GPU %zu never became %d", row, status);
}

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
        assert_int_equal(b.fake.reads, 8 * n);
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
    assert_false(b.fake.want.mig);
    assert_int_equal(value(&b, 0, GP_POWER_DRAW)->status, GP_STATUS_NONE);
    finish(&b);
}

/* ---- which GPUs ---- */

static void choose(struct bench *b, const char *list)
{
    assert_int_equal(gp_selection_parse(list, &b->selection, NULL), 0);
}

static void chosen_by_index_the_others_are_left_alone(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 8);
    fake_set_mode(&b.fake, 0, FAKE_HANGS);
    choose(&b, "2,5-6");
    start(&b);
    tick(&b);
    assert_int_equal(b.snapshot->device_count, 3);
    check_well(&b, 0, 52);
    check_well(&b, 1, 55);
    check_well(&b, 2, 56);
    assert_int_equal(b.fake.attaches, 3);
    assert_int_equal(b.snapshot->host[GP_COUNT].i, 8);
    finish(&b);
}

static void chosen_by_uuid_or_name(void **state)
{
    (void)state;
    static const char *const lists[] = {"GPU-c", "c", "gpu-C"};
    for (size_t i = 0; i < GP_ARRAY_LEN(lists); i++) {
        struct bench b;
        bench_init(&b, 4);
        choose(&b, lists[i]);
        start(&b);
        tick(&b);
        assert_int_equal(b.snapshot->device_count, 1);
        check_well(&b, 0, 52);
        finish(&b);
    }
}

static void check_no_start(struct bench *b, int code, const char *words)
{
    struct gp_err err = {0};
    assert_int_equal(gp_sampler_new(&b->config, &b->sampler, &err), code);
    assert_null(b->sampler);
    if (!strstr(err.text, words))
        fail_msg("'%s' does not say '%s'", err.text, words);
    assert_int_equal(b->fake.frees, 1);
    assert_int_equal(b->fake.held, 0);
    assert_int_equal(b->fake.breaches, 0);
    assert_false(b->fake.is_open);
}

static void a_choice_that_matches_nothing(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 4);
    choose(&b, "0,7");
    check_no_start(&b, GP_ENODEV, "no GPU matches '7'; this machine has 4 (0 to 3)");

    struct gp_err err = {0};
    struct gp_snapshot *snapshot = NULL;
    bench_init(&b, 4);
    choose(&b, "GPU-c,GPU-z");
    start(&b); /* what it is called is only known once it has been read */
    assert_int_equal(gp_sampler_tick(b.sampler, &snapshot, &err), GP_ENODEV);
    assert_null(snapshot);
    assert_non_null(strstr(err.text, "no GPU matches 'GPU-z'"));
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
    check_no_start(&b, GP_ENODEV, "it has no GPU");
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
    assert_non_null(strstr(err.text, "did not answer within 0.1 s while starting (nvmlInit)"));
    (void)pthread_mutex_lock(&b.fake.lock);
    assert_int_equal(b.fake.frees, 0);
    assert_int_equal(b.fake.closes, 1); /* the one before the start */
    (void)pthread_mutex_unlock(&b.fake.lock);
}

/* ---- a GPU that hangs ---- */

static void release(struct bench *b, unsigned index)
{
    fake_set_mode(&b->fake, index, FAKE_WELL);
    for (int i = 0; i < 2000; i++) {
        (void)pthread_mutex_lock(&b->fake.lock);
        bool out = b->fake.inside == 0;
        (void)pthread_mutex_unlock(&b->fake.lock);
        if (out)
            return;
        (void)usleep(5000);
    }
    fail_msg("the call never came back");
}

static void a_gpu_that_hangs_holds_nobody_up(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 8);
    fake_set_mode(&b.fake, 3, FAKE_HANGS);
    b.config.timeout_ns = PATIENCE_NS;
    start(&b);
    tick(&b);
    assert_true(b.snapshot->partial);
    assert_int_equal(b.snapshot->device_count, 8);
    for (unsigned i = 0; i < 8; i++)
        if (i != 3)
            check_well(&b, i, 50 + i);
    assert_int_equal(b.snapshot->devices[3].status, GP_STATUS_TIMEOUT);
    assert_string_equal(b.snapshot->devices[3].status_text, "no answer for 0 s (fakeRead)");
    assert_int_equal(value(&b, 3, GP_TEMPERATURE_GPU)->status, GP_STATUS_TIMEOUT);
    assert_int_equal(value(&b, 3, GP_NAME)->status, GP_STATUS_TIMEOUT);
    assert_int_equal(value(&b, 3, GP_INDEX)->i, 3);
    release(&b, 3);
    tick_until(&b, 3, GP_STATUS_OK);
    check_well(&b, 3, 53);
    assert_false(b.snapshot->partial);
    finish(&b);
}

static void a_silent_gpu_keeps_its_last_values(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 2);
    start(&b);
    tick(&b);
    uint64_t seen_ns = value(&b, 1, GP_TEMPERATURE_GPU)->time_ns;
    finish(&b);

    bench_init(&b, 2);
    b.config.timeout_ns = PATIENCE_NS;
    start(&b);
    tick_until(&b, 1, GP_STATUS_OK);
    fake_set_mode(&b.fake, 1, FAKE_HANGS);
    double silent_s = 0;
    for (int i = 0; i < 3; i++) {
        tick(&b);
        check_well(&b, 0, 50);
        assert_int_equal(b.snapshot->devices[1].status, GP_STATUS_TIMEOUT);
        assert_true(b.snapshot->devices[1].silent_s > silent_s);
        silent_s = b.snapshot->devices[1].silent_s;
        check_text(&b, 1, GP_NAME, "b"); /* what it is does not age */
        assert_int_equal(value(&b, 1, GP_TEMPERATURE_GPU)->status, GP_STATUS_STALE);
        assert_int_equal(value(&b, 1, GP_TEMPERATURE_GPU)->i, 51);
        assert_true(value(&b, 1, GP_TEMPERATURE_GPU)->time_ns > seen_ns);
        assert_true(value(&b, 1, GP_TEMPERATURE_GPU)->time_ns < b.snapshot->mono_ns);
        assert_string_equal(value(&b, 1, GP_STATUS)->s, b.snapshot->devices[1].status_text);
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

static void a_driver_that_does_not_come_back_at_once(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 2);
    start(&b);
    tick(&b);
    fake_set_mode(&b.fake, 0, FAKE_LOST);
    b.fake.open_result = GP_EDRIVER;
    unsigned opens = b.fake.opens;
    for (int i = 0; i < 400 && b.fake.opens == opens; i++) {
        tick(&b);
        (void)usleep(25000);
    }
    tick(&b);
    /* there is no session: nobody answers, what they are is still known */
    assert_int_equal(b.snapshot->device_count, 2);
    assert_true(b.snapshot->partial);
    check_text(&b, 0, GP_NAME, "a");
    b.fake.open_result = 0;
    fake_set_mode(&b.fake, 0, FAKE_WELL);
    tick_until(&b, 0, GP_STATUS_OK);
    tick_until(&b, 1, GP_STATUS_OK);
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
    for (int i = 0; i < 400 && b.fake.opens < 2; i++) {
        tick(&b);
        (void)usleep(25000);
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
    while (gp_clock_mono_ns() < until)
        tick(&b);
    assert_int_equal(b.fake.opens, 1);
    assert_int_equal(b.snapshot->devices[1].status, GP_STATUS_LOST);
    check_well(&b, 2, 52);
    fake_set_mode(&b.fake, 1, FAKE_WELL);
    release(&b, 0);
    tick_until(&b, 1, GP_STATUS_OK);
    tick_until(&b, 0, GP_STATUS_OK);
    finish(&b);
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

/* ---- processes and MIG instances ---- */

static struct gp_source_process process(uint32_t pid, const char *name, int instance)
{
    struct gp_source_process p = {.pid = pid, .types = GP_PROCESS_COMPUTE, .driver_name = name};
    p.memory = (struct gp_value){.i = pid, .status = GP_STATUS_OK};
    p.gpu_instance = p.compute_instance = (struct gp_value){
        .i = instance,
        .status = instance < 0 ? GP_STATUS_UNSUPPORTED : GP_STATUS_OK,
    };
    return p;
}

static void want_processes(struct bench *b)
{
    b->config.want.processes = b->config.want.mig = true;
    for (int m = GP_PROCESS__FIRST; m < GP_METRIC__COUNT; m++)
        gp_metric_set_add(&b->config.want.metrics, (enum gp_metric)m);
    b->fake.gpus[0].mig_count = 2;
    b->fake.gpus[0].processes[0] = process(100, "/opt/bin/train --data /mnt/x", 1);
    b->fake.gpus[0].processes[1] = process(200, NULL, -1);
    b->fake.gpus[0].processes[2] = process(300, NULL, 9);
    b->fake.gpus[0].process_count = 3;
    b->fake.gpus[1].processes[0] = process(200, NULL, -1);
    b->fake.gpus[1].processes[0].types = GP_PROCESS_COMPUTE | GP_PROCESS_GRAPHICS;
    b->fake.gpus[1].process_count = 1;
}

static const struct gp_value *process_value(const struct bench *b, size_t i, enum gp_metric m)
{
    return gp_snapshot_value(b->snapshot, NULL, &b->snapshot->processes[i], m);
}

static void check_processes(const struct bench *b)
{
    /* the GPU, its two instances, the other GPU */
    static const unsigned counts[] = {2, 0, 1, 1};
    static const unsigned pids[] = {200, 300, 100, 200};
    static const size_t devices[] = {0, 0, 2, 3};
    assert_int_equal(b->snapshot->device_count, 4);
    assert_int_equal(b->snapshot->process_count, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(b->snapshot->devices[i].is_mig, i == 1 || i == 2);
        assert_int_equal(b->snapshot->devices[i].process_count, counts[i]);
        assert_int_equal(process_value(b, i, GP_PID)->i, pids[i]);
        assert_int_equal(b->snapshot->processes[i].device, devices[i]);
        /* none of them is in /proc */
        assert_int_equal(process_value(b, i, GP_PROCESS_USER)->status, GP_STATUS_UNSUPPORTED);
        assert_int_equal(process_value(b, i, GP_PROCESS_RSS)->status, GP_STATUS_UNSUPPORTED);
    }
    assert_int_equal(b->snapshot->devices[2].mig_index, 1);
    assert_string_equal(process_value(b, 2, GP_PROCESS_NAME)->s, "train");
    assert_string_equal(process_value(b, 2, GP_PROCESS_COMMAND)->s, "/opt/bin/train --data /mnt/x");
    assert_int_equal(process_value(b, 0, GP_PROCESS_NAME)->status, GP_STATUS_UNSUPPORTED);
    assert_string_equal(process_value(b, 3, GP_PROCESS_TYPE)->s, "C+G");
    assert_int_equal(process_value(b, 2, GP_PROCESS_GI)->i, 1);
}

static void processes_stand_with_their_gpu_or_instance(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 2);
    want_processes(&b);
    start(&b);
    tick(&b);
    check_processes(&b);
    assert_int_equal(process_value(&b, 2, GP_PROCESS_MEMORY)->status, GP_STATUS_OK);
    finish(&b);
}

static void processes_of_a_silent_gpu_are_old_ones(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 2);
    want_processes(&b);
    b.config.timeout_ns = PATIENCE_NS;
    start(&b);
    tick_until(&b, 0, GP_STATUS_OK);
    fake_set_mode(&b.fake, 0, FAKE_HANGS);
    tick(&b);
    check_processes(&b);
    assert_int_equal(process_value(&b, 2, GP_PROCESS_MEMORY)->status, GP_STATUS_STALE);
    assert_int_equal(b.snapshot->devices[2].status, GP_STATUS_TIMEOUT);
    assert_int_equal(value(&b, 2, GP_MEMORY_USED)->status, GP_STATUS_STALE);
    release(&b, 0);
    tick_until(&b, 0, GP_STATUS_OK);
    finish(&b);
}

static void a_choice_by_uuid_takes_the_instances_too(void **state)
{
    (void)state;
    struct bench b;
    bench_init(&b, 2);
    want_processes(&b);
    choose(&b, "GPU-a");
    start(&b);
    tick(&b);
    assert_int_equal(b.snapshot->device_count, 3);
    assert_int_equal(b.snapshot->process_count, 3);
    finish(&b);
}

/* ---- no memory ---- */

/* One run with all allocations from the n-th on failing; true if none was missed. */
static bool run_without_memory(long n)
{
    struct bench b;
    struct gp_err err = {0};
    bench_init(&b, 3);
    want_processes(&b);
    alloc_fail_from(n);
    int r = gp_sampler_new(&b.config, &b.sampler, &err);
    for (int i = 0; r == 0 && i < 2; i++) {
        r = gp_sampler_tick(b.sampler, &b.snapshot, &err);
        gp_snapshot_free(b.snapshot);
        b.snapshot = NULL;
    }
    bool complete = alloc_count() <= n;
    alloc_fail_from(-1);
    if (r < 0) {
        assert_int_equal(r, GP_ENOMEM);
        assert_int_equal(err.code, GP_ENOMEM);
    }
    /* the next tick is well again */
    if (b.sampler) {
        tick(&b);
        tick(&b);
        assert_int_equal(b.snapshot->device_count, 5);
        assert_false(b.snapshot->partial);
        gp_snapshot_free(b.snapshot);
        assert_true(gp_sampler_free(b.sampler));
    }
    assert_int_equal(b.fake.frees, 1);
    assert_int_equal(b.fake.held, 0);
    assert_int_equal(b.fake.breaches, 0);
    return complete && r == 0;
}

static void whichever_allocation_fails_nothing_is_lost(void **state)
{
    (void)state;
    bool complete = false;
    long n = 0;
    for (; !complete && n < 500; n++)
        complete = run_without_memory(n);
    assert_true(complete);
    assert_true(n > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_gpu_is_read_at_every_tick),
        cmocka_unit_test(a_snapshot_outlives_its_sampler),
        cmocka_unit_test(slow_gpus_are_read_side_by_side),
        cmocka_unit_test(only_what_is_wanted_is_asked_for),
        cmocka_unit_test(chosen_by_index_the_others_are_left_alone),
        cmocka_unit_test(chosen_by_uuid_or_name),
        cmocka_unit_test(a_choice_that_matches_nothing),
        cmocka_unit_test(a_driver_that_refuses),
        cmocka_unit_test(a_driver_without_gpus),
        cmocka_unit_test(a_driver_that_hangs_while_it_starts),
        cmocka_unit_test(a_gpu_that_hangs_holds_nobody_up),
        cmocka_unit_test(a_silent_gpu_keeps_its_last_values),
        cmocka_unit_test(all_gpus_hang),
        cmocka_unit_test(nothing_is_freed_beside_a_call_that_hangs),
        cmocka_unit_test(a_lost_gpu_comes_back_in_a_new_session),
        cmocka_unit_test(a_gpu_lost_before_the_start),
        cmocka_unit_test(a_driver_that_does_not_come_back_at_once),
        cmocka_unit_test(identity_is_the_uuid_when_the_driver_counts_differently),
        cmocka_unit_test(gpus_that_are_added_are_shown),
        cmocka_unit_test(no_new_session_beside_a_call_that_hangs),
        cmocka_unit_test(a_sleeping_gpu_is_no_failure),
        cmocka_unit_test(a_gpu_that_is_forbidden),
        cmocka_unit_test(processes_stand_with_their_gpu_or_instance),
        cmocka_unit_test(processes_of_a_silent_gpu_are_old_ones),
        cmocka_unit_test(a_choice_by_uuid_takes_the_instances_too),
        cmocka_unit_test(whichever_allocation_fails_nothing_is_lost),
    };
    return cmocka_run_group_tests_name("sampler", tests, NULL, NULL);
}
