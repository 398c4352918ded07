#include "unit.h"

#include "base/clock.h"
#include "base/err.h"
#include "model/select.h"
#include "sample/changer.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>

/* A source of three GPUs with one control each, which does what the test says. */

enum { GPUS = 3 };

#define LONG_UUID "GPU-22222222-2222-2222-2222-222222222222"

struct gp_source_device {
    unsigned index;
    gp_call_name *call;
};

enum obedience { OBEYS, IGNORES, REFUSES, LOSES, WAITS_FOR_RESET, KEEPS_SILENT, HANGS };

static struct {
    struct gp_source source;
    struct gp_source_device devices[GPUS];
    int64_t limits[GPUS];
    int64_t pending[GPUS];
    bool waiting[GPUS];
    enum obedience obedience[GPUS];
    atomic_uint applied[GPUS]; /* one thread may be stuck for good */
    bool lost[GPUS];
    atomic_bool silent[GPUS]; /* hangs before it says who it is */
    atomic_uint asked[GPUS];
    bool closed;
    bool freed;
    bool opens;
    bool opened;
    atomic_long threads_left; /* that can be started */
    pthread_mutex_t gate;     /* what HANGS waits for */
    pthread_mutex_t door;     /* what the silent ones wait for */
} fake = {.gate = PTHREAD_MUTEX_INITIALIZER, .door = PTHREAD_MUTEX_INITIALIZER};

static int fake_open(struct gp_source *source, unsigned *ret_count, struct gp_err *err)
{
    (void)source;
    *ret_count = GPUS;
    fake.opened = fake.opens;
    return fake.opens ? 0 : gp_err_set(err, GP_EDRIVER, "no driver");
}

static void fake_close(struct gp_source *source)
{
    (void)source;
    fake.closed = true;
}

static void fake_read_host(struct gp_source *source, const struct gp_metric_set *want,
                           struct gp_value host[GP_HOST__COUNT])
{
    (void)source;
    assert_true(gp_metric_set_has(want, GP_DRIVER_VERSION));
    gp_value_set_text(&host[GP_DRIVER_VERSION], "1.2", 1);
}

static int fake_attach(struct gp_source *source, unsigned index, gp_call_name *call,
                       struct gp_source_device **ret, struct gp_reading *reading)
{
    (void)source;
    fake.asked[index]++;
    if (fake.silent[index]) {
        atomic_store(call, "who");
        (void)pthread_mutex_lock(&fake.door);
        (void)pthread_mutex_unlock(&fake.door);
    }
    if (fake.lost[index]) {
        reading->status = GP_STATUS_LOST;
        (void)snprintf(reading->status_text, sizeof(reading->status_text), "GPU is lost");
        return GP_EDRIVER;
    }
    fake.devices[index] = (struct gp_source_device){index, call};
    *ret = &fake.devices[index];
    return 0;
}

static void fake_detach(struct gp_source_device *device)
{
    (void)device;
}

static void fake_read(struct gp_source_device *device, const struct gp_want *want,
                      struct gp_reading *reading)
{
    static const char *const uuids[GPUS] = {"GPU-0", "GPU-1", LONG_UUID};
    (void)want;
    reading->status = GP_STATUS_OK;
    gp_value_set_text(gp_device_value(reading->values, GP_UUID), uuids[device->index], 1);
    gp_value_set_text(gp_device_value(reading->values, GP_NAME), "NVIDIA Fake", 1);
}

static void fake_free(struct gp_source *source)
{
    (void)source;
    assert_true(fake.closed || !fake.opened);
    fake.freed = true;
}

static void control_read(struct gp_source_device *device, enum gp_control_id id,
                         struct gp_setting *ret)
{
    assert_int_equal(id, GP_CONTROL_POWER_LIMIT);
    *ret = (struct gp_setting){.status = GP_STATUS_OK,
                               .known = fake.obedience[device->index] != KEEPS_SILENT,
                               .has_pending = fake.waiting[device->index],
                               .value = {.n = {fake.limits[device->index]}},
                               .pending = {.n = {fake.pending[device->index]}}};
}

static int control_check(struct gp_source_device *device, enum gp_control_id id,
                         const struct gp_control_value *value, struct gp_err *err)
{
    (void)device;
    (void)id;
    return value->n[0] == 666 ? gp_err_set(err, GP_EUSAGE, "not this one") : 0;
}

static int control_apply(struct gp_source_device *device, enum gp_control_id id,
                         const struct gp_control_value *value, struct gp_err *err)
{
    unsigned i = device->index;
    (void)id;
    fake.applied[i]++;
    switch (fake.obedience[i]) {
    case OBEYS:
    case KEEPS_SILENT:
        fake.limits[i] = value->n[0];
        return 0;
    case IGNORES:
        return 0;
    case REFUSES:
        return gp_err_set(err, GP_EPERM, "no permission (call)");
    case LOSES:
        return gp_err_set(err, GP_EDRIVER, "GPU is lost (call)");
    case WAITS_FOR_RESET:
        fake.pending[i] = value->n[0];
        fake.waiting[i] = true;
        (void)snprintf(err->text, sizeof(err->text), "in use");
        return 0;
    case HANGS:
        atomic_store(device->call, "call");
        (void)pthread_mutex_lock(&fake.gate);
        (void)pthread_mutex_unlock(&fake.gate);
        return 0;
    }
    return 0;
}

static const struct gp_control_ops control_ops = {
    .read = control_read, .check = control_check, .apply = control_apply};
static const struct gp_source_ops ops = {.open = fake_open,
                                         .close = fake_close,
                                         .read_host = fake_read_host,
                                         .attach = fake_attach,
                                         .detach = fake_detach,
                                         .read = fake_read,
                                         .free = fake_free,
                                         .controls = &control_ops};

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
                          void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
                          void *arg);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
                          void *arg)
{
    return atomic_fetch_sub(&fake.threads_left, 1) > 0
               ? __real_pthread_create(thread, attr, run, arg)
               : EAGAIN;
}

static struct gp_selection selection;
static struct gp_changer *changer;
static struct gp_target *targets;
static size_t count;

static int set_up(void **state)
{
    (void)state;
    for (unsigned i = 0; i < GPUS; i++) {
        fake.limits[i] = 100;
        fake.waiting[i] = fake.lost[i] = false;
        atomic_store(&fake.silent[i], false);
        atomic_store(&fake.asked[i], 0);
        fake.obedience[i] = OBEYS;
        atomic_store(&fake.applied[i], 0);
    }
    fake.opened = fake.closed = fake.freed = false;
    fake.opens = true;
    atomic_store(&fake.threads_left, LONG_MAX);
    selection.count = 0;
    return 0;
}

static int open_changer(uint64_t timeout_ns, struct gp_err *err)
{
    const struct gp_changer_config config = {
        .source = &fake.source, .timeout_ns = timeout_ns, .selection = &selection};
    return gp_changer_new(&config, &changer, err);
}

/* Opens, reads, and wants this limit of all chosen GPUs. */
static void start(int64_t limit)
{
    struct gp_err err = {0};
    if (open_changer(60 * GP_NS_PER_S, &err) < 0)
        fail_msg("%s", err.text);
    targets = gp_changer_targets(changer, &count);
    gp_changer_read(changer, 1u << GP_CONTROL_POWER_LIMIT);
    for (size_t t = 0; t < count; t++)
        targets[t].changes[GP_CONTROL_POWER_LIMIT] =
            (struct gp_change){.wanted = true, .value = {.n = {limit}}};
}

static void finish(void)
{
    assert_true(gp_changer_free(changer));
    assert_true(fake.freed);
}

static void check_outcome(unsigned i, enum gp_outcome outcome, const char *words)
{
    assert_int_equal(gp_target_outcome(&targets[i], GP_CONTROL_POWER_LIMIT), outcome);
    assert_string_equal(targets[i].code ? targets[i].words
                                        : targets[i].changes[GP_CONTROL_POWER_LIMIT].words,
                        words);
}

static void changes_are_applied_and_read_back(void **state)
{
    (void)state;
    struct gp_err err = {0};
    fake.limits[1] = 200;
    start(200);
    assert_int_equal(count, GPUS);
    assert_string_equal(targets[2].uuid, LONG_UUID);
    assert_string_equal(targets[2].name, "NVIDIA Fake");
    assert_string_equal(gp_changer_host(changer)[GP_DRIVER_VERSION].s, "1.2");
    assert_int_equal(gp_changer_check(changer, &err), 0);
    gp_changer_apply(changer);
    check_outcome(0, GP_OUTCOME_DONE, "");
    check_outcome(1, GP_OUTCOME_SAME, "");
    check_outcome(2, GP_OUTCOME_DONE, "");
    assert_int_equal(fake.limits[0], 200);
    assert_int_equal(fake.applied[1], 0);
    finish();
}

static void a_driver_that_does_not_obey_is_found_out(void **state)
{
    (void)state;
    fake.obedience[0] = IGNORES;
    fake.obedience[1] = WAITS_FOR_RESET;
    fake.obedience[2] = KEEPS_SILENT;
    start(200);
    gp_changer_apply(changer);
    check_outcome(0, GP_OUTCOME_FAILED, "the driver accepted it, but the value is another one");
    assert_int_equal(targets[0].changes[GP_CONTROL_POWER_LIMIT].code, GP_EFAIL);
    check_outcome(1, GP_OUTCOME_PENDING, "in use");
    check_outcome(2, GP_OUTCOME_UNVERIFIED, "");
    finish();
}

static void a_refusal_is_told_and_not_tried_again(void **state)
{
    (void)state;
    fake.obedience[0] = REFUSES;
    fake.obedience[1] = LOSES;
    start(200);
    gp_changer_apply(changer);
    check_outcome(0, GP_OUTCOME_FAILED, "no permission (call)");
    assert_int_equal(targets[0].changes[GP_CONTROL_POWER_LIMIT].code, GP_EPERM);
    assert_int_equal(targets[0].changes[GP_CONTROL_POWER_LIMIT].after.status, GP_STATUS_OK);
    /* one that is gone is not asked any more */
    check_outcome(1, GP_OUTCOME_FAILED, "GPU is lost (call)");
    assert_int_equal(targets[1].changes[GP_CONTROL_POWER_LIMIT].after.status, GP_STATUS_NONE);
    check_outcome(2, GP_OUTCOME_DONE, "");
    for (unsigned i = 0; i < GPUS; i++)
        assert_int_equal(fake.applied[i], 1);
    finish();
}

static void a_device_may_refuse_before_anything_is_changed(void **state)
{
    (void)state;
    struct gp_err err = {0};
    start(666);
    assert_int_equal(gp_changer_check(changer, &err), GP_EUSAGE);
    assert_string_equal(err.text, "GPU 0: not this one");
    assert_int_equal(fake.applied[0], 0);
    finish();
}

static void a_lost_gpu_is_out(void **state)
{
    (void)state;
    fake.lost[1] = true;
    start(200);
    assert_int_equal(count, GPUS);
    gp_changer_apply(changer);
    check_outcome(1, GP_OUTCOME_FAILED, "GPU is lost");
    assert_int_equal(targets[1].code, GP_EDRIVER);
    assert_int_equal(fake.applied[1], 0);
    check_outcome(2, GP_OUTCOME_DONE, "");
    finish();
}

static void only_the_chosen_ones(void **state)
{
    (void)state;
    struct gp_err err = {0};
    assert_int_equal(gp_selection_parse("GPU-2", &selection, &err), 0);
    start(200);
    assert_int_equal(count, 1);
    assert_int_equal(targets[0].index, 2);
    assert_int_equal(fake.asked[0], 1); /* only it knows its UUID */
    gp_changer_apply(changer);
    assert_int_equal(fake.applied[0] + fake.applied[1], 0);
    assert_int_equal(fake.applied[2], 1);
    finish();
    (void)set_up(NULL);
    assert_int_equal(gp_selection_parse("0-1", &selection, &err), 0);
    start(200);
    assert_int_equal(count, 2);
    assert_int_equal(fake.asked[1], 1);
    assert_int_equal(fake.asked[2], 0);
    finish();
    (void)set_up(NULL);
    assert_int_equal(gp_selection_parse("GPU-7", &selection, &err), 0);
    assert_int_equal(open_changer(60 * GP_NS_PER_S, &err), GP_ENODEV);
    assert_true(fake.freed);
}

static void what_waits_for_a_reset_is_not_set_again(void **state)
{
    (void)state;
    for (unsigned i = 0; i < GPUS; i++) {
        fake.waiting[i] = true;
        fake.pending[i] = i == 0 ? 200 : 300;
    }
    fake.limits[1] = 200; /* so now, but another one waits */
    start(200);
    assert_false(gp_target_needs(&targets[0], GP_CONTROL_POWER_LIMIT));
    assert_true(gp_target_needs(&targets[1], GP_CONTROL_POWER_LIMIT));
    gp_changer_apply(changer);
    check_outcome(0, GP_OUTCOME_SAME, "");
    assert_int_equal(fake.applied[0], 0);
    assert_int_equal(fake.applied[1], 1);
    finish();
}

static void one_that_is_left_alone_is_not_read(void **state)
{
    (void)state;
    struct gp_err err = {0};
    assert_int_equal(open_changer(60 * GP_NS_PER_S, &err), 0);
    targets = gp_changer_targets(changer, &count);
    targets[1].left_alone = true;
    gp_changer_read(changer, 1u << GP_CONTROL_POWER_LIMIT);
    assert_int_equal(targets[0].settings[GP_CONTROL_POWER_LIMIT].status, GP_STATUS_OK);
    assert_int_equal(targets[1].settings[GP_CONTROL_POWER_LIMIT].status, GP_STATUS_NONE);
    finish();
}

static void a_driver_that_does_not_start(void **state)
{
    (void)state;
    struct gp_err err = {0};
    fake.opens = false;
    assert_int_equal(open_changer(60 * GP_NS_PER_S, &err), GP_EDRIVER);
    assert_string_equal(err.text, "no driver");
    assert_true(fake.freed);
}

static void no_memory_at_any_point(void **state)
{
    (void)state;
    for (long n = 0;; n++) {
        struct gp_err err = {0};
        (void)set_up(NULL);
        alloc_fail_from(n);
        int r = open_changer(60 * GP_NS_PER_S, &err);
        alloc_fail_from(-1);
        if (r == 0) {
            finish();
            break;
        }
        /* Without memory for a thread to close it on, the driver's session stays open. */
        assert_true(err.text[0]);
        assert_int_equal(fake.freed, r != GP_ETIMEOUT);
        assert_int_equal(fake.freed, fake.closed || !fake.opened);
    }
}

/* The end finds whatever was not made. */
static void no_memory_at_one_point(void **state)
{
    (void)state;
    bool failed = true;
    for (long n = 0; failed; n++) {
        struct gp_err err = {0};
        (void)set_up(NULL);
        alloc_fail_at(n);
        int r = open_changer(60 * GP_NS_PER_S, &err);
        failed = alloc_count() > n;
        alloc_fail_from(-1);
        if (r == 0)
            finish();
        assert_int_equal(err.text[0] != '\0', r < 0);
        assert_true(fake.freed);
    }
}

static void no_thread_at_any_point(void **state)
{
    (void)state;
    struct gp_err err = {0};
    atomic_store(&fake.threads_left, 0);
    assert_int_equal(open_changer(60 * GP_NS_PER_S, &err), GP_ENOMEM);
    assert_string_equal(err.text, "cannot start a thread for the driver");
    assert_true(fake.freed);
    for (long n = 1; n <= GPUS + 1; n++) {
        (void)set_up(NULL);
        atomic_store(&fake.threads_left, n);
        assert_int_equal(open_changer(60 * GP_NS_PER_S, &err), 0);
        targets = gp_changer_targets(changer, &count);
        for (long i = 0; i < GPUS; i++)
            assert_int_equal(targets[i].code, i < n - 1 ? 0 : GP_ETIMEOUT);
        assert_false(gp_changer_free(changer));
        assert_false(fake.closed || fake.freed);
    }
}

static char waited_for[200];

static void on_wait(const char *whom)
{
    (void)snprintf(waited_for, sizeof(waited_for), "%s", whom);
    (void)pthread_mutex_unlock(&fake.door);
}

static void who_is_waited_for_is_told(void **state)
{
    (void)state;
    struct gp_err err = {0};
    const struct gp_changer_config config = {.source = &fake.source,
                                             .timeout_ns = 600 * GP_NS_PER_S,
                                             .selection = &selection,
                                             .on_wait = on_wait,
                                             .patience_ns = 10 * GP_NS_PER_MS};
    fake.silent[1] = true;
    (void)pthread_mutex_lock(&fake.door);
    assert_int_equal(gp_changer_new(&config, &changer, &err), 0);
    if (!strstr(waited_for, "GPU 1 (")) /* on a busy machine others are named, too */
        fail_msg("waited for '%s'", waited_for);
    targets = gp_changer_targets(changer, &count);
    assert_int_equal(targets[1].code, 0);
    finish();
}

/* Its thread is stuck until the end, and the changers stay. */
static void one_that_was_not_asked_for_is_not_waited_for(void **state)
{
    (void)state;
    static const char *const lists[] = {LONG_UUID, LONG_UUID ",0"};
    static struct gp_changer *stuck[GP_ARRAY_LEN(lists)];
    (void)pthread_mutex_lock(&fake.door);
    for (size_t i = 0; i < GP_ARRAY_LEN(lists); i++) {
        struct gp_err err = {0};
        (void)set_up(NULL);
        fake.silent[1] = true;
        assert_int_equal(gp_selection_parse(lists[i], &selection, &err), 0);
        uint64_t begun_ns = gp_clock_mono_ns();
        assert_int_equal(open_changer(600 * GP_NS_PER_S, &err), 0);
        assert_true(gp_clock_mono_ns() - begun_ns < 300 * GP_NS_PER_S);
        stuck[i] = changer;
        targets = gp_changer_targets(changer, &count);
        assert_int_equal(count, i + 1);
        for (size_t t = 0; t < count; t++)
            assert_int_equal(targets[t].code, 0);
        assert_false(gp_changer_free(stuck[i]));
        assert_false(fake.freed);
    }
}

/* It is refused before anybody is asked, so that nobody is waited for. */
static void an_index_that_is_not_there(void **state)
{
    (void)state;
    struct gp_err err = {0};
    assert_int_equal(gp_selection_parse("1,9", &selection, &err), 0);
    assert_int_equal(open_changer(60 * GP_NS_PER_S, &err), GP_ENODEV);
    assert_string_equal(err.text, "no GPU matches '9'; this machine has 3 (0 to 2)");
    assert_int_equal(fake.asked[1], 0);
    assert_true(fake.freed);
}

/* The last test: the changer is stuck for good. */
static void one_that_hangs_is_named_and_the_others_are_done(void **state)
{
    (void)state;
    struct gp_err err = {0};
    fake.obedience[1] = HANGS;
    assert_int_equal(open_changer(GP_NS_PER_S, &err), 0);
    targets = gp_changer_targets(changer, &count);
    gp_changer_read(changer, 1u << GP_CONTROL_POWER_LIMIT);
    for (size_t t = 0; t < count; t++)
        targets[t].changes[GP_CONTROL_POWER_LIMIT] =
            (struct gp_change){.wanted = true, .value = {.n = {200}}};
    (void)pthread_mutex_lock(&fake.gate);
    gp_changer_apply(changer);
    assert_int_equal(gp_target_outcome(&targets[1], GP_CONTROL_POWER_LIMIT), GP_OUTCOME_HUNG);
    assert_string_equal(targets[1].words, "no answer within 1.0 s (call)");
    check_outcome(0, GP_OUTCOME_DONE, "");
    check_outcome(2, GP_OUTCOME_DONE, "");
    /* It is left alone from then on, and nothing is freed under it. */
    gp_changer_read(changer, 1u << GP_CONTROL_POWER_LIMIT);
    assert_int_equal(fake.applied[1], 1);
    assert_false(gp_changer_free(changer));
    assert_false(fake.freed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(changes_are_applied_and_read_back, set_up),
        cmocka_unit_test_setup(a_driver_that_does_not_obey_is_found_out, set_up),
        cmocka_unit_test_setup(a_refusal_is_told_and_not_tried_again, set_up),
        cmocka_unit_test_setup(a_device_may_refuse_before_anything_is_changed, set_up),
        cmocka_unit_test_setup(a_lost_gpu_is_out, set_up),
        cmocka_unit_test_setup(only_the_chosen_ones, set_up),
        cmocka_unit_test_setup(what_waits_for_a_reset_is_not_set_again, set_up),
        cmocka_unit_test_setup(one_that_is_left_alone_is_not_read, set_up),
        cmocka_unit_test_setup(a_driver_that_does_not_start, set_up),
        cmocka_unit_test_setup(no_memory_at_any_point, set_up),
        cmocka_unit_test_setup(no_memory_at_one_point, set_up),
        cmocka_unit_test_setup(no_thread_at_any_point, set_up),
        cmocka_unit_test_setup(an_index_that_is_not_there, set_up),
        cmocka_unit_test_setup(who_is_waited_for_is_told, set_up),
        cmocka_unit_test_setup(one_that_was_not_asked_for_is_not_waited_for, set_up),
        cmocka_unit_test_setup(one_that_hangs_is_named_and_the_others_are_done, set_up),
    };
    fake.source.ops = &ops;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
