#include "unit.h"

#include "base/err.h"
#include "model/select.h"
#include "own_clock.h"
#include "sample/changer.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>

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
    struct gp_want wants[GPUS]; /* of the last reading */
    struct gp_mig_reading migs[GPUS];
    size_t mig_counts[GPUS];
    struct gp_source_device instances[GPUS];
    struct gp_control_value others[GP_CONTROL__COUNT]; /* of all GPUs: what has no limits */
    struct gp_control_value others_pending[GP_CONTROL__COUNT];
    atomic_uint other_applied[GP_CONTROL__COUNT];
    uint32_t reads[GPUS]; /* controls that were read, as bits */
    atomic_uint parted[GPUS];
    bool refuses_part;
    unsigned detached;
    uint64_t patience_ms; /* what passes when a silent one is asked and the others have answered */
    atomic_uint answered; /* GPUs that were read */
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
        while (fake.patience_ms > 0 && atomic_load(&fake.answered) < GPUS - 1)
            (void)sched_yield();
        skip_ms(fake.patience_ms);
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
    assert_non_null(device);
    fake.detached++;
}

static void fake_read(struct gp_source_device *device, const struct gp_want *want,
                      struct gp_reading *reading)
{
    static const char *const uuids[GPUS] = {"GPU-0", "GPU-1", LONG_UUID};
    static const char *const buses[GPUS] = {"00000000:01:00.0", "00000000:02:00.0",
                                            "00000000:03:00.0"};
    static const char *const serials[GPUS] = {"1650522003820", "1650522003821", "1650522003822"};
    fake.wants[device->index] = *want;
    reading->mig = &fake.migs[device->index];
    reading->mig_count = fake.mig_counts[device->index];
    reading->status = GP_STATUS_OK;
    gp_value_set_text(gp_device_value(reading->values, GP_PCI_BUS_ID), buses[device->index], 1);
    gp_value_set_text(gp_device_value(reading->values, GP_SERIAL), serials[device->index], 1);
    gp_value_set_text(gp_device_value(reading->values, GP_UUID), uuids[device->index], 1);
    gp_value_set_text(gp_device_value(reading->values, GP_NAME), "NVIDIA Fake", 1);
    atomic_fetch_add(&fake.answered, 1);
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
    if (device->index < GPUS)
        fake.reads[device->index] |= 1u << id;
    if (id != GP_CONTROL_POWER_LIMIT) {
        *ret = (struct gp_setting){.status = GP_STATUS_OK,
                                   .known = true,
                                   .has_pending = fake.others_pending[id].count > 0,
                                   .value = fake.others[id],
                                   .pending = fake.others_pending[id]};
        return;
    }
    *ret = (struct gp_setting){.status = GP_STATUS_OK,
                               .known = fake.obedience[device->index] != KEEPS_SILENT,
                               .has_pending = fake.waiting[device->index],
                               .value = {.n = {fake.limits[device->index]}},
                               .pending = {.n = {fake.pending[device->index]}}};
}

static int control_check(struct gp_source_device *device, enum gp_control_id id,
                         const struct gp_control_value *value, struct gp_err *err)
{
    (void)id;
    if (value->n[0] == 667)
        return device->index == 2 ? gp_err_set(err, GP_EPERM, "only root") : 0;
    return value->n[0] == 666 ? gp_err_set(err, GP_EUSAGE, "not this one") : 0;
}

static int control_apply(struct gp_source_device *device, enum gp_control_id id,
                         const struct gp_control_value *value, struct gp_err *err)
{
    unsigned i = device->index;
    if (id != GP_CONTROL_POWER_LIMIT) {
        fake.other_applied[id]++;
        return 0;
    }
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

static int control_part(struct gp_source_device *device, struct gp_part *part, struct gp_err *err)
{
    fake.parted[device->index]++;
    if (fake.refuses_part)
        return gp_err_set(err, GP_EPERM, "only root may part a GPU");
    part->gpu_instance = 5;
    return 0;
}

static struct gp_source_device *control_instance(struct gp_source_device *device, size_t n)
{
    assert_int_equal(n, 0);
    return &fake.instances[device->index];
}

static const struct gp_control_ops control_ops = {.instance = control_instance,
                                                  .read = control_read,
                                                  .check = control_check,
                                                  .apply = control_apply,
                                                  .part = control_part};
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

static void set_text(struct gp_mig_reading *mig, enum gp_metric m, const char *text)
{
    gp_value_set_text(gp_device_value(mig->values, m), text, 1);
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
        fake.mig_counts[i] = 0;
        fake.reads[i] = 0;
        atomic_store(&fake.parted[i], 0);
        atomic_store(&fake.applied[i], 0);
    }
    fake.opened = fake.closed = fake.freed = false;
    fake.opens = true;
    atomic_store(&fake.threads_left, LONG_MAX);
    selection.count = 0;
    fake.refuses_part = false;
    fake.detached = 0;
    fake.patience_ms = 0;
    atomic_store(&fake.answered, 0);
    memset(fake.others, 0, sizeof(fake.others));
    memset(fake.others_pending, 0, sizeof(fake.others_pending));
    memset(fake.other_applied, 0, sizeof(fake.other_applied));
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
    check_outcome(0, GP_OUTCOME_FAILED,
                  "the driver accepted the change, but reports another value");
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
    assert_int_equal(fake.detached, 2); /* those that were had */
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

/* ---- what is read of a GPU, and who is chosen ---- */

static size_t metrics_of(const struct gp_metric_set *set)
{
    size_t n = 0;
    for (int m = 0; m < GP_METRIC__COUNT; m++)
        n += gp_metric_set_has(set, (enum gp_metric)m);
    return n;
}

static void only_what_tells_who_it_is_is_read(void **state)
{
    static const struct {
        const char *choice; /* NULL: all */
        bool serial, mig, more;
    } cases[] = {
        {NULL, false, false, false},
        {NULL, false, false, true},
        {"2", false, false, false},
        {LONG_UUID, false, false, false},
        {"1650522003822", true, false, false},
        {"MIG-2", false, true, false},
    };
    (void)state;
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_err err = {0};
        struct gp_want more = {.processes = true};
        gp_metric_set_add(&more.metrics, GP_POWER_DRAW);
        const struct gp_changer_config config = {.source = &fake.source,
                                                 .timeout_ns = 60 * GP_NS_PER_S,
                                                 .selection = &selection,
                                                 .want = cases[i].more ? &more : NULL};
        (void)set_up(NULL);
        set_text(&fake.migs[2], GP_UUID, "MIG-2");
        fake.mig_counts[2] = 1;
        if (cases[i].choice)
            assert_int_equal(gp_selection_parse(cases[i].choice, &selection, &err), 0);
        assert_int_equal(gp_changer_new(&config, &changer, &err), 0);
        const struct gp_want *asked = &fake.wants[2];
        assert_true(gp_metric_set_has(&asked->metrics, GP_NAME));
        assert_true(gp_metric_set_has(&asked->metrics, GP_UUID));
        assert_true(gp_metric_set_has(&asked->metrics, GP_PCI_BUS_ID));
        assert_int_equal(gp_metric_set_has(&asked->metrics, GP_SERIAL), cases[i].serial);
        assert_int_equal(gp_metric_set_has(&asked->metrics, GP_POWER_DRAW), cases[i].more);
        assert_int_equal(metrics_of(&asked->metrics), 3 + cases[i].serial + cases[i].more);
        assert_int_equal(asked->processes, cases[i].more);
        assert_int_equal(asked->mig, cases[i].mig);
        finish();
    }
}

static void an_instance_is_a_target_of_its_own(void **state)
{
    static const char *const choices[] = {"MIG-a", "MIG-a,0", "MIG-a,NVIDIA", NULL};
    static const size_t counts[] = {1, 2, 3, 3}; /* not beside its GPU */
    (void)state;
    for (size_t i = 0; i < GP_ARRAY_LEN(choices); i++) {
        (void)set_up(NULL);
        fake.mig_counts[1] = 1;
        fake.migs[1] = (struct gp_mig_reading){.index = 4};
        set_text(&fake.migs[1], GP_UUID, "MIG-a");
        if (i == 1)
            set_text(&fake.migs[1], GP_NAME, "MIG 1g.5gb");
        fake.instances[1] = (struct gp_source_device){.index = 1};
        if (choices[i])
            assert_int_equal(gp_selection_parse(choices[i], &selection, NULL), 0);
        start(200);
        assert_int_equal(count, counts[i]);
        for (size_t t = 0; t < count; t++) {
            const struct gp_target *target = &targets[t];
            bool is_mig = counts[i] < 3 && t == count - 1;
            char bus[32];
            (void)snprintf(bus, sizeof(bus), "00000000:%02u:00.0", target->index + 1);
            assert_string_equal(target->bus, bus);
            assert_int_equal(target->is_mig, is_mig);
            assert_string_equal(target->name, is_mig && i == 1 ? "MIG 1g.5gb" : "NVIDIA Fake");
            assert_int_equal(target->reading != NULL, !is_mig);
            if (is_mig) {
                assert_int_equal(target->index, 1);
                assert_int_equal(target->mig_index, 4);
                assert_string_equal(target->uuid, "MIG-a");
                assert_ptr_equal(target->device, &fake.instances[1]);
            } else {
                assert_ptr_equal(target->device, &fake.devices[target->index]);
            }
        }
        finish();
    }
}

/* ---- other controls ---- */

static void want_of_all(enum gp_control_id id, int64_t number)
{
    gp_changer_read(changer, 1u << id);
    for (size_t t = 0; t < count; t++)
        targets[t].changes[id] =
            (struct gp_change){.wanted = true, .value = {false, 1, {number}, ""}};
}

static void open_all(void)
{
    struct gp_err err = {0};
    assert_int_equal(open_changer(60 * GP_NS_PER_S, &err), 0);
    targets = gp_changer_targets(changer, &count);
}

static void only_these_controls_are_read(void **state)
{
    (void)state;
    for (unsigned id = 0; id < GP_CONTROL__COUNT; id++) {
        (void)set_up(NULL);
        open_all();
        gp_changer_read(changer, 1u << id);
        for (unsigned i = 0; i < GPUS; i++)
            assert_int_equal(fake.reads[i], 1u << id);
        finish();
    }
}

/* What is cleared cannot be read back. */
static void counters_are_cleared_each_time(void **state)
{
    (void)state;
    open_all();
    want_of_all(GP_CONTROL_ECC_COUNTERS, 1);
    gp_changer_apply(changer);
    for (size_t t = 0; t < count; t++)
        assert_int_equal(gp_target_outcome(&targets[t], GP_CONTROL_ECC_COUNTERS), GP_OUTCOME_DONE);
    assert_int_equal(fake.other_applied[GP_CONTROL_ECC_COUNTERS], GPUS);
    finish();
}

static void what_is_so_already_is_set_anew_on_demand(void **state)
{
    (void)state;
    fake.limits[0] = fake.limits[1] = 200;
    start(200);
    targets[0].changes[GP_CONTROL_POWER_LIMIT].anew = true;
    want_of_all(GP_CONTROL_ECC_COUNTERS, 1);
    gp_changer_apply(changer);
    check_outcome(0, GP_OUTCOME_DONE, "");
    check_outcome(1, GP_OUTCOME_SAME, "");
    /* and what comes behind it is set too */
    assert_int_equal(gp_target_outcome(&targets[1], GP_CONTROL_ECC_COUNTERS), GP_OUTCOME_DONE);
    assert_int_equal(fake.applied[0], 1);
    assert_int_equal(fake.applied[1], 0);
    assert_int_equal(targets[1].changes[GP_CONTROL_POWER_LIMIT].after.value.n[0], 200);
    finish();
}

/* What the driver says of MIG mode, and whether a GPU can be parted then. */
static void a_gpu_whose_mig_mode_waits_cannot_be_parted(void **state)
{
    static const struct {
        int64_t mode, pending; /* −1: none waits */
        bool waits;
    } cases[] = {{0, 1, true},  {0, -1, false}, {1, -1, false},
                 {1, 1, false}, {1, 0, false},  {0, 0, false}};
    static const char words[] = "MIG mode takes effect after a GPU reset; set this again then";
    (void)state;
    for (size_t i = 0; i < 2 * GP_ARRAY_LEN(cases); i++) {
        bool waits = cases[i / 2].waits;
        bool changes = i % 2; /* it was off before, and is being switched on */
        (void)set_up(NULL);
        open_all();
        fake.others[GP_CONTROL_PERSISTENCE] = (struct gp_control_value){.count = 1};
        fake.others_pending[GP_CONTROL_PERSISTENCE] =
            (struct gp_control_value){.count = 1, .n = {1}}; /* nothing hangs on it */
        gp_changer_read(changer, 1u << GP_CONTROL_PERSISTENCE);
        if (changes)
            want_of_all(GP_CONTROL_MIG_MODE, 1);
        want_of_all(GP_CONTROL_MIG_INSTANCES, 1);
        for (size_t t = 0; t < count; t++)
            targets[t].changes[GP_CONTROL_MIG_INSTANCES].anew = true;
        fake.others[GP_CONTROL_MIG_MODE] =
            (struct gp_control_value){.count = 1, .n = {cases[i / 2].mode}};
        if (cases[i / 2].pending >= 0)
            fake.others_pending[GP_CONTROL_MIG_MODE] =
                (struct gp_control_value){.count = 1, .n = {cases[i / 2].pending}};
        if (!changes)
            gp_changer_read(changer, 1u << GP_CONTROL_MIG_MODE);
        gp_changer_apply(changer);
        const struct gp_change *mode = &targets[0].changes[GP_CONTROL_MIG_MODE];
        const struct gp_change *parts = &targets[0].changes[GP_CONTROL_MIG_INSTANCES];
        unsigned applied = fake.other_applied[GP_CONTROL_MIG_INSTANCES];
        if (changes && mode->outcome == GP_OUTCOME_FAILED) {
            assert_int_equal(parts->outcome, GP_OUTCOME_NONE);
            assert_int_equal(applied, 0);
        } else if (waits) {
            assert_int_equal(parts->outcome, GP_OUTCOME_FAILED);
            assert_int_equal(parts->code, GP_EFAIL);
            assert_string_equal(parts->words, words);
            assert_int_equal(applied, 0);
        } else {
            assert_int_equal(applied, GPUS);
        }
        finish();
    }
}

static void an_instance_is_not_its_gpu(void **state)
{
    (void)state;
    open_all();
    fake.others_pending[GP_CONTROL_MIG_MODE] = (struct gp_control_value){.count = 1, .n = {1}};
    gp_changer_read(changer, 1u << GP_CONTROL_MIG_MODE);
    want_of_all(GP_CONTROL_MIG_INSTANCES, 1);
    for (size_t t = 0; t < count; t++)
        targets[t].changes[GP_CONTROL_MIG_INSTANCES].anew = true;
    targets[1].is_mig = true;
    gp_changer_apply(changer);
    assert_int_equal(fake.other_applied[GP_CONTROL_MIG_INSTANCES], 1);
    finish();
}

static void the_first_refusal_of_a_check_is_told(void **state)
{
    (void)state;
    struct gp_err err = {0};
    fake.lost[0] = true;
    start(667);
    assert_int_equal(gp_changer_check(changer, &err), GP_EPERM);
    assert_string_equal(err.text, "GPU 2: only root");
    assert_int_equal(targets[1].changes[GP_CONTROL_POWER_LIMIT].code, 0);
    assert_string_equal(targets[2].changes[GP_CONTROL_POWER_LIMIT].words, "only root");
    finish();
}

/* ---- parting ---- */

static void one_gpu_is_parted(void **state)
{
    (void)state;
    struct gp_err err = {0};
    struct gp_part part = {.step = GP_PART_CREATE_GPU};
    fake.lost[2] = true;
    open_all();
    (void)snprintf(err.text, sizeof(err.text), "of something else");
    assert_int_equal(gp_changer_part(changer, &targets[1], &part, &err), 0);
    assert_int_equal(part.gpu_instance, 5);
    assert_string_equal(err.text, "of something else");
    assert_int_equal(fake.parted[0], 0);
    assert_int_equal(fake.parted[1], 1);
    part.gpu_instance = 9;
    fake.refuses_part = true;
    assert_int_equal(gp_changer_part(changer, &targets[0], &part, &err), GP_EPERM);
    assert_string_equal(err.text, "only root may part a GPU");
    assert_int_equal(fake.parted[0], 1);
    assert_int_equal(part.gpu_instance, 9);
    fake.refuses_part = false;
    assert_int_equal(gp_changer_part(changer, &targets[0], &part, &err), 0);
    assert_int_equal(gp_changer_part(changer, &targets[2], &part, &err), GP_EDRIVER);
    assert_string_equal(err.text, "GPU 2: GPU is lost");
    assert_int_equal(fake.parted[2], 0);
    assert_int_equal(fake.parted[1], 1);
    finish();
}

static void outcomes(void **state)
{
    static const bool changed[] = {
        [GP_OUTCOME_NONE] = false,   [GP_OUTCOME_SAME] = false,      [GP_OUTCOME_DONE] = true,
        [GP_OUTCOME_PENDING] = true, [GP_OUTCOME_UNVERIFIED] = true, [GP_OUTCOME_FAILED] = false,
        [GP_OUTCOME_HUNG] = true,
    };
    struct gp_target target = {0};
    (void)state;
    for (int i = GP_OUTCOME_NONE; i <= GP_OUTCOME_HUNG; i++) {
        assert_int_equal(gp_outcome_may_have_changed((enum gp_outcome)i), changed[i]);
        target.changes[GP_CONTROL_ECC_MODE].outcome = (enum gp_outcome)i;
        target.code = 0;
        target.tried = i & 1;
        assert_int_equal(gp_target_outcome(&target, GP_CONTROL_ECC_MODE), i);
        target.code = GP_ETIMEOUT;
        assert_int_equal(gp_target_outcome(&target, GP_CONTROL_ECC_MODE),
                         i & 1 ? GP_OUTCOME_HUNG : GP_OUTCOME_FAILED);
    }
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
        assert_true((changer != NULL) == (r == GP_ETIMEOUT));
        finish();
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
        for (long i = 0; i < GPUS; i++) {
            assert_int_equal(targets[i].code, i < n - 1 ? 0 : GP_ENOMEM);
            if (i >= n - 1)
                assert_string_equal(targets[i].words, "out of memory for a thread");
        }
        assert_false(gp_changer_free(changer));
        assert_false(fake.closed || fake.freed);
        atomic_store(&fake.threads_left, LONG_MAX);
        finish();
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
    fake.silent[0] = fake.silent[1] = true;
    (void)pthread_mutex_lock(&fake.door);
    assert_int_equal(gp_changer_new(&config, &changer, &err), 0);
    /* on a busy machine others are named, too, or these have not started */
    if (strncmp(waited_for, "GPU 0 (", 7) != 0 || !strstr(waited_for, "), GPU 1 ("))
        fail_msg("waited for '%s'", waited_for);
    targets = gp_changer_targets(changer, &count);
    assert_int_equal(targets[1].code, 0);
    finish();
}

static void finish_when_answered(void)
{
    while (!gp_changer_free(changer))
        (void)sched_yield();
    assert_true(fake.closed && fake.freed);
}

/* Nothing is freed before it has answered. */
static void one_that_was_not_asked_for_is_not_waited_for(void **state)
{
    (void)state;
    static const char *const lists[] = {LONG_UUID, LONG_UUID ",0"};
    for (size_t i = 0; i < GP_ARRAY_LEN(lists); i++) {
        struct gp_err err = {0};
        (void)set_up(NULL);
        fake.silent[1] = true;
        (void)pthread_mutex_lock(&fake.door);
        assert_int_equal(gp_selection_parse(lists[i], &selection, &err), 0);
        uint64_t begun_ns = gp_clock_mono_ns();
        assert_int_equal(open_changer(600 * GP_NS_PER_S, &err), 0);
        assert_true(gp_clock_mono_ns() - begun_ns < 300 * GP_NS_PER_S);
        targets = gp_changer_targets(changer, &count);
        assert_int_equal(count, i + 1);
        for (size_t t = 0; t < count; t++)
            assert_int_equal(targets[t].code, 0);
        assert_false(gp_changer_free(changer));
        assert_false(fake.closed || fake.freed);
        (void)pthread_mutex_unlock(&fake.door);
        finish_when_answered();
        assert_int_equal(fake.detached, GPUS);
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

/* The first is always one of those that do not answer. */
static void one_that_does_not_answer_may_be_meant(void **state)
{
    (void)state;
    struct gp_err err = {0};
    fake.silent[0] = true;
    fake.patience_ms = 600 * 1000;
    (void)pthread_mutex_lock(&fake.door);
    assert_int_equal(gp_selection_parse("GPU-7", &selection, &err), 0);
    assert_int_equal(open_changer(600 * GP_NS_PER_S, &err), GP_ETIMEOUT);
    assert_string_equal(err.text, "no GPU matches 'GPU-7'; this machine has 3 (0 to 2); it may be "
                                  "GPU 0, which does not respond");
    assert_false(fake.freed);
    (void)pthread_mutex_unlock(&fake.door);
    finish_when_answered();
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
    assert_string_equal(targets[1].words, "no response within 1.0 s (call)");
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
        cmocka_unit_test_setup(only_what_tells_who_it_is_is_read, set_up),
        cmocka_unit_test_setup(an_instance_is_a_target_of_its_own, set_up),
        cmocka_unit_test_setup(only_these_controls_are_read, set_up),
        cmocka_unit_test_setup(counters_are_cleared_each_time, set_up),
        cmocka_unit_test_setup(what_is_so_already_is_set_anew_on_demand, set_up),
        cmocka_unit_test_setup(a_gpu_whose_mig_mode_waits_cannot_be_parted, set_up),
        cmocka_unit_test_setup(an_instance_is_not_its_gpu, set_up),
        cmocka_unit_test_setup(the_first_refusal_of_a_check_is_told, set_up),
        cmocka_unit_test_setup(one_gpu_is_parted, set_up),
        cmocka_unit_test_setup(outcomes, set_up),
        cmocka_unit_test_setup(a_driver_that_does_not_start, set_up),
        cmocka_unit_test_setup(no_memory_at_any_point, set_up),
        cmocka_unit_test_setup(no_memory_at_one_point, set_up),
        cmocka_unit_test_setup(no_thread_at_any_point, set_up),
        cmocka_unit_test_setup(an_index_that_is_not_there, set_up),
        cmocka_unit_test_setup(who_is_waited_for_is_told, set_up),
        cmocka_unit_test_setup(one_that_was_not_asked_for_is_not_waited_for, set_up),
        cmocka_unit_test_setup(one_that_does_not_answer_may_be_meant, set_up),
        cmocka_unit_test_setup(one_that_hangs_is_named_and_the_others_are_done, set_up),
    };
    fake.source.ops = &ops;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
