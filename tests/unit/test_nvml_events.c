/* The NVML source's events: what is registered, what a wait gives, and what is left when it fails.
 */
#include "nvml_rig.h"

static gp_call_name event_call;
static struct gp_source_event event;

enum { NAME_A = 40, NAME_B = 41 };

#define BIT(kind) gp_event_bit(GP_EVENT_##kind)

static gp_event_kinds watch_kinds(unsigned name, gp_event_kinds wanted, int expected)
{
    gp_event_kinds kinds = UINT64_MAX;
    int r = rig.source->ops->watch(rig.device, name, wanted, &event_call, &kinds);
    assert_int_equal(r, expected);
    return kinds;
}

static gp_event_kinds watch(unsigned name, int expected)
{
    return watch_kinds(name, gp_event_all_kinds(), expected);
}

static int wait_event(void)
{
    return rig.source->ops->wait_event(rig.source, 250, &event_call, &event);
}

static void have_event(unsigned gpu, unsigned long long type, unsigned long long data)
{
    rig.fake->events[rig.fake->event_count++] = (nvmlEventData_t){
        .device = &rig.fake->gpus[gpu],
        .eventType = type,
        .eventData = data,
        .gpuInstanceId = 3,
        .computeInstanceId = NVML_NOT_AVAILABLE_U32,
    };
}

static void only_what_is_supported_is_registered(void **state)
{
    (void)state;
    start();
    rig.fake->event_types = NVML_EVENT_XID_CRITICAL_ERROR | NVML_EVENT_PSTATE | UINT64_C(1) << 40;
    assert_true(watch(NAME_A, 0) == (BIT(XID) | BIT(PSTATE)));
    assert_true(rig.fake->registered[0] == (NVML_EVENT_XID_CRITICAL_ERROR | NVML_EVENT_PSTATE));
    assert_int_equal(CALLS(nvmlDeviceRegisterEvents), 1);
    assert_string_equal(atomic_load(&event_call), "nvmlDeviceRegisterEvents");
}

static void only_what_is_wanted_is_registered(void **state)
{
    (void)state;
    start();
    rig.fake->event_types = NVML_EVENT_XID_CRITICAL_ERROR | NVML_EVENT_CLOCK | NVML_EVENT_PSTATE;
    assert_true(watch_kinds(NAME_A, BIT(XID) | BIT(LOST), 0) == BIT(XID));
    assert_true(rig.fake->registered[0] == NVML_EVENT_XID_CRITICAL_ERROR);
}

static void every_type_has_a_kind(void **state)
{
    (void)state;
    start();
    rig.fake->event_types = NVML_EVENT_ALL;
    (void)watch(NAME_A, 0);
    assert_true(rig.fake->registered[0] == NVML_EVENT_ALL);
    for (unsigned long long bit = 1; bit <= NVML_EVENT_ALL; bit <<= 1) {
        if (!(NVML_EVENT_ALL & bit))
            continue;
        rig.fake->event_count = rig.fake->event_next = 0;
        have_event(0, bit, 94);
        assert_int_equal(wait_event(), 1);
        assert_int_equal(event.device, NAME_A);
        assert_int_equal(event.gpu_instance, 3);
        assert_int_equal(event.compute_instance, GP_EVENT_NO_INSTANCE);
        /* the number is an Xid's, and noise elsewhere */
        assert_int_equal(event.number, bit == NVML_EVENT_XID_CRITICAL_ERROR ? 94 : 0);
        assert_non_null(event.words);
        assert_true(event.mono_ns == now_ns);
    }
    assert_int_equal(rig.fake->waited_ms, 250);
}

static void a_gpu_without_events_is_no_failure(void **state)
{
    (void)state;
    static const nvmlReturn_t codes[] = {NVML_ERROR_NOT_SUPPORTED, NVML_ERROR_FUNCTION_NOT_FOUND,
                                         NVML_ERROR_UNKNOWN, NVML_SUCCESS};
    start();
    for (size_t i = 0; i < GP_ARRAY_LEN(codes); i++) {
        ANSWERS(nvmlDeviceGetSupportedEventTypes, codes[i]);
        assert_true(watch(NAME_A, 0) == 0);
    }
    assert_int_equal(CALLS(nvmlEventSetCreate), 0);
    assert_int_equal(CALLS(nvmlDeviceRegisterEvents), 0);
    /* nobody waits on a set that is not there */
    assert_int_equal(wait_event(), GP_EFAIL);
    assert_int_equal(CALLS(nvmlEventSetWait_v2), 0);
    /* nor without sets, nor if the registration is refused as a whole */
    rig.fake->event_types = NVML_EVENT_XID_CRITICAL_ERROR;
    ANSWERS(nvmlEventSetCreate, NVML_ERROR_NOT_SUPPORTED);
    assert_true(watch(NAME_A, 0) == 0);
    ANSWERS(nvmlEventSetCreate, NVML_SUCCESS);
    ANSWERS(nvmlDeviceRegisterEvents, NVML_ERROR_NOT_SUPPORTED);
    assert_true(watch(NAME_A, 0) == 0);
}

static void types_that_are_refused_together_are_registered_one_by_one(void **state)
{
    (void)state;
    start();
    rig.fake->event_types = NVML_EVENT_XID_CRITICAL_ERROR | NVML_EVENT_PSTATE | NVML_EVENT_CLOCK;
    rig.fake->refused_types = NVML_EVENT_PSTATE;
    assert_true(watch(NAME_A, 0) == (BIT(XID) | BIT(CLOCK)));
    assert_true(rig.fake->registered[0] == (NVML_EVENT_XID_CRITICAL_ERROR | NVML_EVENT_CLOCK));
}

static void a_set_in_an_unknown_state_is_given_up(void **state)
{
    (void)state;
    rig.fake->gpu_count = 2;
    rig.fake->event_types = NVML_EVENT_XID_CRITICAL_ERROR;
    start();
    struct gp_source_device *a = rig.device;
    assert_true(watch(NAME_A, 0) == BIT(XID));
    assert_int_equal(attach(1), 0);
    rig.fake->unknown_gpu = &rig.fake->gpus[1];
    assert_true(watch(NAME_B, 1) == 0);
    /* the first GPU is in a new set, the second one in none */
    assert_int_equal(CALLS(nvmlEventSetCreate), 2);
    assert_int_equal(CALLS(nvmlEventSetFree), 1);
    assert_int_equal(rig.fake->sets, 1);
    assert_true(rig.fake->registered[0] == NVML_EVENT_XID_CRITICAL_ERROR);
    have_event(0, NVML_EVENT_XID_CRITICAL_ERROR, 13);
    assert_int_equal(wait_event(), 1);
    assert_int_equal(event.device, NAME_A);
    rig.source->ops->detach(rig.device);
    rig.device = a;
}

static void a_first_gpu_in_an_unknown_state_leaves_no_set(void **state)
{
    (void)state;
    rig.fake->event_types = NVML_EVENT_XID_CRITICAL_ERROR;
    start();
    rig.fake->unknown_gpu = &rig.fake->gpus[0];
    assert_true(watch(NAME_A, 0) == 0);
    assert_int_equal(rig.fake->sets, 0);
    assert_int_equal(wait_event(), GP_EFAIL);
}

static void start_watched(void)
{
    rig.fake->event_types = NVML_EVENT_XID_CRITICAL_ERROR;
    start();
    assert_true(watch(NAME_A, 0) == BIT(XID));
}

static void what_a_wait_can_answer(void **state)
{
    (void)state;
    static const struct {
        nvmlReturn_t rc;
        int expected;
    } answers[] = {
        {NVML_ERROR_TIMEOUT, 0},
        {NVML_ERROR_UNKNOWN, GP_EFAIL},
        {NVML_ERROR_INVALID_ARGUMENT, GP_EFAIL},
        {NVML_ERROR_NOT_SUPPORTED, GP_EFAIL},
        {NVML_ERROR_GPU_IS_LOST, GP_EDRIVER},
        {NVML_ERROR_UNINITIALIZED, GP_EDRIVER},
        {NVML_ERROR_LIB_RM_VERSION_MISMATCH, GP_EDRIVER},
    };
    start_watched();
    for (size_t i = 0; i < GP_ARRAY_LEN(answers); i++) {
        ANSWERS(nvmlEventSetWait_v2, answers[i].rc);
        assert_int_equal(wait_event(), answers[i].expected);
    }
    assert_int_equal(CALLS(nvmlEventSetWait), 0);
}

static void the_older_wait_where_there_is_no_newer(void **state)
{
    (void)state;
    start_watched();
    ANSWERS(nvmlEventSetWait_v2, NVML_ERROR_FUNCTION_NOT_FOUND);
    have_event(0, NVML_EVENT_XID_CRITICAL_ERROR, 13);
    assert_int_equal(wait_event(), 1);
    assert_int_equal(event.number, 13);
    assert_int_equal(event.gpu_instance, GP_EVENT_NO_INSTANCE);
    assert_int_equal(event.compute_instance, GP_EVENT_NO_INSTANCE);
    assert_int_equal(wait_event(), 0);
    assert_int_equal(CALLS(nvmlEventSetWait), 2);
}

static void events_of_strangers_are_left_alone(void **state)
{
    (void)state;
    start_watched();
    have_event(1, NVML_EVENT_XID_CRITICAL_ERROR, 13); /* a GPU that nobody has registered */
    have_event(0, UINT64_C(1) << 40, 0);
    assert_int_equal(wait_event(), 0);
    assert_int_equal(wait_event(), 0);
}

static void a_session_that_ends_while_registering(void **state)
{
    (void)state;
    rig.fake->event_types = NVML_EVENT_XID_CRITICAL_ERROR;
    start();
    ANSWERS(nvmlDeviceRegisterEvents, NVML_ERROR_GPU_IS_LOST);
    assert_true(watch(NAME_A, GP_EDRIVER) == 0);
    ANSWERS(nvmlDeviceGetSupportedEventTypes, NVML_ERROR_UNINITIALIZED);
    assert_true(watch(NAME_A, GP_EDRIVER) == 0);
}

static void the_set_is_freed_with_the_session_and_made_anew(void **state)
{
    (void)state;
    start_watched();
    leave();
    assert_int_equal(rig.fake->sets, 0);
    assert_int_equal(CALLS(nvmlShutdown), 1);
    start();
    assert_true(watch(NAME_B, 0) == BIT(XID));
    assert_int_equal(CALLS(nvmlEventSetCreate), 2);
    have_event(0, NVML_EVENT_XID_CRITICAL_ERROR, 13);
    assert_int_equal(wait_event(), 1);
    assert_int_equal(event.device, NAME_B);
}

static void fresh_readings_repeat_what_is_slow_but_not_what_is_refused(void **state)
{
    (void)state;
    want(GP_ECC_MODE);
    want(GP_MEMORY_TOTAL);
    rig.want.fresh = true;
    start();
    for (unsigned n = 1; n <= 3; n++) {
        read_ok();
        assert_int_equal(CALLS(nvmlDeviceGetEccMode), n);
    }
    ANSWERS(nvmlDeviceGetEccMode, NVML_ERROR_NOT_SUPPORTED);
    for (unsigned n = 1; n <= 3; n++) {
        read_ok();
        assert_int_equal(CALLS(nvmlDeviceGetEccMode), 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(only_what_is_supported_is_registered),
        RIG_TEST(only_what_is_wanted_is_registered),
        RIG_TEST(every_type_has_a_kind),
        RIG_TEST(a_gpu_without_events_is_no_failure),
        RIG_TEST(types_that_are_refused_together_are_registered_one_by_one),
        RIG_TEST(a_set_in_an_unknown_state_is_given_up),
        RIG_TEST(a_first_gpu_in_an_unknown_state_leaves_no_set),
        RIG_TEST(what_a_wait_can_answer),
        RIG_TEST(the_older_wait_where_there_is_no_newer),
        RIG_TEST(events_of_strangers_are_left_alone),
        RIG_TEST(a_session_that_ends_while_registering),
        RIG_TEST(the_set_is_freed_with_the_session_and_made_anew),
        RIG_TEST(fresh_readings_repeat_what_is_slow_but_not_what_is_refused),
    };
    return cmocka_run_group_tests_name("nvml_events", tests, NULL, NULL);
}
