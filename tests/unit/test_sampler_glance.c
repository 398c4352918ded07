/* Brief samples between two ticks: what they read, and that a GPU that hangs in one delays nothing
 * and is missed by no tick. */
#include "sampler_bench.h"

static const uint64_t patience_ns = 50 * GP_NS_PER_MS;

/* A machine whose glances read the temperature. */
static void start_with_brief(struct bench *b, unsigned gpus)
{
    bench_init(b, gpus);
    gp_metric_set_add(&b->config.brief, GP_TEMPERATURE_GPU);
    gp_metric_set_add(&b->config.brief, GP_STATUS);
    gp_metric_set_add(&b->config.want.metrics, GP_CLOCK_SM);
    b->config.want.processes = true;
    start(b);
    tick(b);
}

/* NULL: there was nothing to read. */
static struct gp_snapshot *glance_for(struct bench *b, uint64_t ns)
{
    struct gp_err err = {0};
    struct gp_snapshot *snapshot;
    if (gp_sampler_glance(b->sampler, ns, &snapshot, &err) < 0)
        fail_msg("%s", err.text);
    return snapshot;
}

static void check_glance(const struct gp_snapshot *snapshot, size_t row, enum gp_status status,
                         double temperature)
{
    const struct gp_device *device = &snapshot->devices[row];
    double n;
    assert_true(row < snapshot->device_count);
    assert_int_equal(device->status, status);
    assert_string_equal(gp_device_text(device, GP_STATUS, ""), gp_device_state(status));
    assert_int_equal(gp_device_number(device, GP_TEMPERATURE_GPU, &n), status == GP_STATUS_OK);
    if (status == GP_STATUS_OK)
        assert_true(n >= temperature && n <= temperature);
}

static void only_what_is_brief_is_read(void **state)
{
    (void)state;
    struct bench b;
    start_with_brief(&b, 2);
    assert_true(gp_metric_set_has(&b.fake.want.metrics, GP_CLOCK_SM));
    b.fake.gpus[1].temperature = 77;
    struct gp_snapshot *snapshot = glance_for(&b, LONG_S * GP_NS_PER_S);
    assert_int_equal(snapshot->device_count, 2);
    check_glance(snapshot, 0, GP_STATUS_OK, 50);
    check_glance(snapshot, 1, GP_STATUS_OK, 77);
    assert_string_equal(gp_device_text(&snapshot->devices[0], GP_UUID, ""), b.fake.gpus[0].uuid);
    assert_false(gp_metric_set_has(&b.fake.want.metrics, GP_CLOCK_SM));
    assert_false(b.fake.want.processes);
    gp_snapshot_free(snapshot);
    b.fake.gpus[1].temperature = 51;
    tick(&b); /* and a tick reads all of it again */
    assert_true(gp_metric_set_has(&b.fake.want.metrics, GP_CLOCK_SM));
    assert_true(b.fake.want.processes);
    check_well(&b, 1, 51);
    finish(&b);
}

/* It is waited for once, and the other GPU is there. */
static void a_gpu_that_hangs(void **state)
{
    (void)state;
    struct bench b;
    start_with_brief(&b, 2);
    fake_set_mode(&b.fake, 0, FAKE_HANGS);
    struct gp_snapshot *snapshot = NULL;
    bool is_seen = false;
    for (int i = 0; i < 200 && !is_seen; i++) { /* the other one, when its thread has begun */
        gp_snapshot_free(snapshot);
        snapshot = glance_for(&b, patience_ns);
        check_glance(snapshot, 0, GP_STATUS_TIMEOUT, 0);
        is_seen = snapshot->devices[1].status == GP_STATUS_OK;
    }
    assert_true(is_seen);
    gp_snapshot_free(snapshot);
    release(&b, 0);
    snapshot = glance_for(&b, LONG_S * GP_NS_PER_S);
    check_glance(snapshot, 0, GP_STATUS_OK, 50);
    gp_snapshot_free(snapshot);
    finish(&b);
}

static void *let_it_answer(void *arg)
{
    (void)usleep(20000);
    fake_set_mode(arg, 0, FAKE_WELL);
    return NULL;
}

/* The tick does not take a glance that is late for an answer of its own, nor for silence. */
static void the_next_tick_reads_it_all_the_same(void **state)
{
    (void)state;
    struct bench b;
    pthread_t thread;
    start_with_brief(&b, 1);
    fake_set_mode(&b.fake, 0, FAKE_HANGS);
    gp_snapshot_free(glance_for(&b, patience_ns));
    (void)pthread_mutex_lock(&b.fake.lock); /* it is inside */
    const unsigned reads = b.fake.reads;
    (void)pthread_mutex_unlock(&b.fake.lock);
    assert_int_equal(pthread_create(&thread, NULL, let_it_answer, &b.fake), 0);
    tick(&b);
    assert_int_equal(pthread_join(thread, NULL), 0);
    check_well(&b, 0, 50);
    assert_true(b.fake.reads > reads);
    assert_true(gp_metric_set_has(&b.fake.want.metrics, GP_CLOCK_SM));
    finish(&b);
}

static void what_ticks_found_out_stays(void **state)
{
    (void)state;
    struct bench b;
    start_with_brief(&b, 2);
    fake_set_mode(&b.fake, 1, FAKE_LOST);
    struct gp_snapshot *snapshot = glance_for(&b, LONG_S * GP_NS_PER_S);
    check_glance(snapshot, 0, GP_STATUS_OK, 50);
    check_glance(snapshot, 1, GP_STATUS_LOST, 0);
    gp_snapshot_free(snapshot);
    const unsigned opens = b.fake.opens;
    tick(&b);
    assert_int_equal(b.snapshot->devices[1].status, GP_STATUS_LOST);
    const unsigned reads = b.fake.reads;
    snapshot = glance_for(&b, LONG_S * GP_NS_PER_S); /* what is lost is not asked */
    check_glance(snapshot, 1, GP_STATUS_LOST, 0);
    assert_int_equal(b.fake.reads, reads + 1);
    gp_snapshot_free(snapshot);
    assert_int_equal(b.fake.opens, opens);
    fake_set_mode(&b.fake, 1, FAKE_WELL);
    tick_until(&b, 1, GP_STATUS_OK);
    finish(&b);
}

static void nobody_is_woken(void **state)
{
    (void)state;
    struct bench b;
    start_with_brief(&b, 1);
    b.fake.power = GP_POWER_AWAKE; /* it could sleep */
    assert_null(glance_for(&b, LONG_S * GP_NS_PER_S));
    b.fake.power = GP_POWER_FIXED;
    gp_sampler_release(b.sampler, true);
    assert_null(glance_for(&b, LONG_S * GP_NS_PER_S));
    gp_sampler_release(b.sampler, false);
    tick(&b);
    gp_snapshot_free(glance_for(&b, LONG_S * GP_NS_PER_S));
    finish(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_is_brief_is_read),
        cmocka_unit_test(a_gpu_that_hangs),
        cmocka_unit_test(the_next_tick_reads_it_all_the_same),
        cmocka_unit_test(what_ticks_found_out_stays),
        cmocka_unit_test(nobody_is_woken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
