/* The NVML source: the values of a GPU, how often they are asked, and sessions that end. */
#include "nvml_rig.h"

/* ---- memory ---- */

static void want_memory(void)
{
    want(GP_MEMORY_TOTAL);
    want(GP_MEMORY_RESERVED);
    want(GP_MEMORY_USED);
    want(GP_MEMORY_FREE);
}

static void memory_is_told_by_the_newer_call(void **state)
{
    (void)state;
    want_memory();
    start();
    read_ok();
    check_number(GP_MEMORY_TOTAL, 1000);
    check_number(GP_MEMORY_RESERVED, 100);
    check_number(GP_MEMORY_USED, 300);
    check_number(GP_MEMORY_FREE, 600);
    assert_int_equal(CALLS(nvmlDeviceGetMemoryInfo), 0);
}

static void memory_is_told_by_the_older_call_where_there_is_no_newer(void **state)
{
    (void)state;
    want_memory();
    start();
    static const nvmlReturn_t codes[] = {NVML_ERROR_FUNCTION_NOT_FOUND,
                                         NVML_ERROR_ARGUMENT_VERSION_MISMATCH};
    for (unsigned i = 0; i < GP_ARRAY_LEN(codes); i++) {
        ANSWERS(nvmlDeviceGetMemoryInfo_v2, codes[i]);
        read_ok();
        check_number(GP_MEMORY_TOTAL, 1000);
        check_absent(GP_MEMORY_RESERVED, GP_STATUS_UNSUPPORTED);
        check_number(GP_MEMORY_USED, 400); /* it counts the reservation */
        check_number(GP_MEMORY_FREE, 600);
        assert_int_equal(CALLS(nvmlDeviceGetMemoryInfo), i + 1);
    }
    /* only a missing call is replaced: another failure is one */
    ANSWERS(nvmlDeviceGetMemoryInfo_v2, NVML_ERROR_UNKNOWN);
    read_ok();
    check_absent(GP_MEMORY_USED, GP_STATUS_ERROR);
    assert_int_equal(CALLS(nvmlDeviceGetMemoryInfo), 2);
}

static void absurd_memory(void **state)
{
    (void)state;
    want_memory();
    start();
    rig.fake->memory = (nvmlMemory_v2_t){.total = 1000, .used = 1001, .free = UINT64_MAX};
    read_ok();
    check_number(GP_MEMORY_TOTAL, 1000);
    check_number(GP_MEMORY_RESERVED, 0);
    check_impossible(GP_MEMORY_USED);
    check_impossible(GP_MEMORY_FREE);
    rig.fake->memory = (nvmlMemory_v2_t){0};
    read_ok();
    for (int m = GP_MEMORY_TOTAL; m <= GP_MEMORY_FREE; m++)
        check_impossible((enum gp_metric)m);
    rig.fake->memory = (nvmlMemory_v2_t){.total = UINT64_MAX, .used = 5};
    read_ok();
    check_impossible(GP_MEMORY_TOTAL);
}

/* ---- what a driver lacks, and how often it is asked ---- */

static void functions_that_a_driver_lacks(void **state)
{
    (void)state;
    want(GP_UTILIZATION_JPEG); /* not exported */
    want(GP_FAN_SPEED);
    want(GP_TEMPERATURE_GPU);
    ANSWERS(nvmlDeviceGetFanSpeed, NVML_ERROR_FUNCTION_NOT_FOUND);
    rig.fake->temperature = 40;
    start();
    read_ok();
    check_absent(GP_UTILIZATION_JPEG, GP_STATUS_UNSUPPORTED);
    check_absent(GP_FAN_SPEED, GP_STATUS_UNSUPPORTED);
    check_number(GP_TEMPERATURE_GPU, 40);
}

static void static_values_are_asked_once(void **state)
{
    (void)state;
    want(GP_NAME);
    want(GP_UUID);
    ANSWERS(nvmlDeviceGetName, NVML_ERROR_UNKNOWN);
    start();
    /* a failure is no answer: it is asked again */
    for (unsigned i = 1; i <= 2; i++) {
        read_ok();
        check_absent(GP_NAME, GP_STATUS_ERROR);
        assert_int_equal(CALLS(nvmlDeviceGetName), i);
    }
    ANSWERS(nvmlDeviceGetName, NVML_SUCCESS);
    for (int i = 0; i < 3; i++) {
        after_ms(600000);
        read_ok();
        assert_string_equal(value(GP_NAME)->s, "NVIDIA A");
        assert_string_equal(value(GP_UUID)->s, "GPU-a");
        assert_int_equal(CALLS(nvmlDeviceGetName), 3);
        assert_int_equal(CALLS(nvmlDeviceGetUUID), 1); /* while it was attached */
    }
    /* in the next session anew */
    leave();
    start();
    read_ok();
    assert_int_equal(CALLS(nvmlDeviceGetName), 4);
    assert_int_equal(CALLS(nvmlShutdown), 1);
}

static void slow_values_are_asked_every_five_seconds(void **state)
{
    (void)state;
    want(GP_ECC_MODE);
    want(GP_TEMPERATURE_GPU);
    start();
    static const struct {
        uint64_t ms;
        unsigned slow;
    } steps[] = {{0, 1}, {1000, 1}, {3999, 1}, {1, 2}, {4999, 2}, {1, 3}};
    for (unsigned i = 0; i < GP_ARRAY_LEN(steps); i++) {
        after_ms(steps[i].ms);
        read_ok();
        assert_string_equal(value(GP_ECC_MODE)->s, "Enabled");
        assert_int_equal(CALLS(nvmlDeviceGetEccMode), steps[i].slow);
        assert_int_equal(CALLS(nvmlDeviceGetTemperature), i + 1);
    }
}

static void what_was_refused_is_left_alone_for_two_minutes(void **state)
{
    (void)state;
    want(GP_POWER_DRAW);
    want(GP_FAN_SPEED);
    want(GP_ECC_MODE);
    want(GP_TEMPERATURE_GPU);
    ANSWERS(nvmlDeviceGetPowerUsage, NVML_ERROR_NO_PERMISSION);
    ANSWERS(nvmlDeviceGetFanSpeed, NVML_ERROR_NOT_SUPPORTED);
    ANSWERS(nvmlDeviceGetEccMode, NVML_ERROR_NOT_SUPPORTED);
    ANSWERS(nvmlDeviceGetTemperature, NVML_ERROR_UNKNOWN);
    start();
    for (unsigned i = 1; i <= 3; i++) {
        read_ok();
        check_absent(GP_POWER_DRAW, GP_STATUS_NO_PERMISSION);
        check_absent(GP_FAN_SPEED, GP_STATUS_UNSUPPORTED);
        check_absent(GP_ECC_MODE, GP_STATUS_UNSUPPORTED);
        check_absent(GP_TEMPERATURE_GPU, GP_STATUS_ERROR);
        assert_int_equal(CALLS(nvmlDeviceGetPowerUsage), 1);
        assert_int_equal(CALLS(nvmlDeviceGetFanSpeed), 1);
        assert_int_equal(CALLS(nvmlDeviceGetEccMode), 1);
        assert_int_equal(CALLS(nvmlDeviceGetTemperature), i); /* a failure is no refusal */
        after_ms(i == 3 ? 1 : 59999);
    }
    /* 119.999 s: one more millisecond */
    read_ok();
    assert_int_equal(CALLS(nvmlDeviceGetPowerUsage), 1);
    after_ms(1);
    ANSWERS(nvmlDeviceGetPowerUsage, NVML_SUCCESS);
    rig.fake->power_mw = 5000;
    read_ok();
    assert_int_equal(CALLS(nvmlDeviceGetPowerUsage), 2);
    assert_int_equal(CALLS(nvmlDeviceGetFanSpeed), 2);
    assert_int_equal(value(GP_POWER_DRAW)->status, GP_STATUS_OK);
    assert_true(value(GP_POWER_DRAW)->f > 4.99 && value(GP_POWER_DRAW)->f < 5.01);
}

/* ---- numbers that no GPU has ---- */

static void check_limit(enum gp_metric m, unsigned *answer, unsigned last_good, unsigned absurd)
{
    *answer = last_good;
    read_ok();
    if (value(m)->status != GP_STATUS_OK)
        fail_msg("%s: %u is refused", GP_METRIC_NAME(m), last_good);
    const unsigned bad[] = {absurd, UINT32_MAX};
    for (size_t i = 0; i < GP_ARRAY_LEN(bad); i++) {
        *answer = bad[i];
        read_ok();
        check_impossible(m);
    }
    *answer = 0;
    read_ok();
    check_number(m, 0);
}

static void absurd_numbers_of_each_unit(void **state)
{
    (void)state;
    static const enum gp_metric metrics[] = {
        GP_UTILIZATION_GPU, GP_UTILIZATION_MEMORY, GP_FAN_SPEED, GP_TEMPERATURE_GPU,
        GP_POWER_DRAW,      GP_CLOCK_SM,           GP_PCIE_WIDTH};
    for (size_t i = 0; i < GP_ARRAY_LEN(metrics); i++)
        want(metrics[i]);
    rig.want.fresh = true; /* the PCIe width, too */
    start();
    check_limit(GP_UTILIZATION_GPU, &rig.fake->utilization.gpu, 100, 101);
    check_limit(GP_UTILIZATION_MEMORY, &rig.fake->utilization.memory, 100, 101);
    check_limit(GP_FAN_SPEED, &rig.fake->fan, 255, 256);
    check_limit(GP_TEMPERATURE_GPU, &rig.fake->temperature, 150, 151);
    check_limit(GP_CLOCK_SM, &rig.fake->clock_mhz, 100000, 100001);
    check_limit(GP_PCIE_WIDTH, &rig.fake->pcie_width, 16, UINT32_MAX);
    /* milliwatts */
    check_limit(GP_POWER_DRAW, &rig.fake->power_mw, 10000000, 10000001);
}

/* Where the board's limit is known, twice of it is the most that is believed. */
static void absurd_power_by_the_limit_of_the_board(void **state)
{
    (void)state;
    want(GP_POWER_LIMIT_MAX);
    want(GP_POWER_DRAW);
    rig.fake->limit_max_mw = 80000;
    start();
    read_ok();
    check_limit(GP_POWER_DRAW, &rig.fake->power_mw, 160000, 160001);
    rig.fake->power_mw = 593000; /* of an idle laptop */
    read_ok();
    check_impossible(GP_POWER_DRAW);
}

static void absurd_bytes(void **state)
{
    (void)state;
    want(GP_BAR1_TOTAL);
    want(GP_BAR1_USED);
    want(GP_BAR1_FREE);
    rig.fake->bar1 = (nvmlBAR1Memory_t){UINT64_MAX, UINT64_C(1) << 52, UINT64_C(1) << 63};
    start();
    read_ok();
    check_impossible(GP_BAR1_TOTAL);
    check_impossible(GP_BAR1_FREE);
    check_impossible(GP_BAR1_USED);
    rig.fake->bar1 = (nvmlBAR1Memory_t){0, 5, (UINT64_C(1) << 52) - 1};
    read_ok();
    check_number(GP_BAR1_TOTAL, 0);
    check_number(GP_BAR1_FREE, 5);
    check_number(GP_BAR1_USED, (INT64_C(1) << 52) - 1);
}

/* ---- fields ---- */

static void set_field(unsigned type, nvmlValue_t v)
{
    rig.fake->field = (nvmlFieldValue_t){.valueType = (nvmlValueType_t)type, .value = v};
}

static void fields_are_of_the_type_that_the_driver_says(void **state)
{
    (void)state;
    want(GP_TEMPERATURE_MEMORY);
    start();
    static const struct {
        unsigned type;
        nvmlValue_t value;
        int64_t expected;
    } fields[] = {
        {NVML_VALUE_TYPE_DOUBLE, {.dVal = 61.0}, 61},
        {NVML_VALUE_TYPE_UNSIGNED_INT, {.uiVal = 62}, 62},
        {NVML_VALUE_TYPE_UNSIGNED_LONG, {.ulVal = 63}, 63},
        {NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, {.ullVal = 64}, 64},
        {NVML_VALUE_TYPE_SIGNED_LONG_LONG, {.sllVal = -3}, -3},
        {NVML_VALUE_TYPE_SIGNED_INT, {.siVal = -1}, -1},
        {NVML_VALUE_TYPE_UNSIGNED_SHORT, {.usVal = 65}, 65},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(fields); i++) {
        set_field(fields[i].type, fields[i].value);
        read_ok();
        check_number(GP_TEMPERATURE_MEMORY, fields[i].expected);
    }
    set_field(NVML_VALUE_TYPE_UNSIGNED_INT, (nvmlValue_t){.uiVal = 200});
    read_ok();
    check_impossible(GP_TEMPERATURE_MEMORY);
}

static void fields_that_are_no_number(void **state)
{
    (void)state;
    want(GP_TEMPERATURE_MEMORY);
    want(GP_RECOVERY_ACTION); /* a number with a name */
    start();
    static const double doubles[] = {1e300, -1e300};
    for (size_t i = 0; i < GP_ARRAY_LEN(doubles); i++) {
        set_field(NVML_VALUE_TYPE_DOUBLE, (nvmlValue_t){.dVal = doubles[i]});
        after_ms(5000);
        read_ok();
        check_impossible(GP_TEMPERATURE_MEMORY);
        check_impossible(GP_RECOVERY_ACTION);
    }
    set_field(NVML_VALUE_TYPE_DOUBLE, (nvmlValue_t){.ullVal = UINT64_MAX}); /* not a number */
    read_ok();
    check_impossible(GP_TEMPERATURE_MEMORY);
    set_field(77, (nvmlValue_t){.uiVal = 40}); /* a type of a driver to come */
    read_ok();
    check_impossible(GP_TEMPERATURE_MEMORY);
}

static void a_board_without_a_memory_sensor_answers_0(void **state)
{
    (void)state;
    want(GP_TEMPERATURE_MEMORY);
    start();
    set_field(NVML_VALUE_TYPE_UNSIGNED_INT, (nvmlValue_t){.uiVal = 0});
    read_ok();
    check_absent(GP_TEMPERATURE_MEMORY, GP_STATUS_UNSUPPORTED);
    read_ok();
    assert_int_equal(CALLS(nvmlDeviceGetFieldValues), 1); /* as any refusal */
}

static void fields_are_asked_together(void **state)
{
    (void)state;
    want(GP_TEMPERATURE_MEMORY);
    want(GP_POWER_DRAW_AVERAGE);
    want(GP_POWER_DRAW_INSTANT);
    set_field(NVML_VALUE_TYPE_UNSIGNED_INT, (nvmlValue_t){.uiVal = 90});
    start();
    read_ok();
    assert_int_equal(CALLS(nvmlDeviceGetFieldValues), 1);
    check_number(GP_TEMPERATURE_MEMORY, 90);
    assert_int_equal(value(GP_POWER_DRAW_INSTANT)->status, GP_STATUS_OK);
    ANSWERS(nvmlDeviceGetFieldValues, NVML_ERROR_FUNCTION_NOT_FOUND);
    read_ok();
    check_absent(GP_TEMPERATURE_MEMORY, GP_STATUS_UNSUPPORTED);
    check_absent(GP_POWER_DRAW_AVERAGE, GP_STATUS_UNSUPPORTED);
}

/* ---- a session that ends ---- */

static void codes_that_end_the_session(void **state)
{
    (void)state;
    static const nvmlReturn_t codes[] = {
        NVML_ERROR_GPU_IS_LOST, NVML_ERROR_UNINITIALIZED, NVML_ERROR_DRIVER_NOT_LOADED,
        NVML_ERROR_LIB_RM_VERSION_MISMATCH, NVML_ERROR_GPU_NOT_FOUND};
    want(GP_TEMPERATURE_GPU);
    want(GP_POWER_DRAW);
    start();
    for (unsigned i = 0; i < GP_ARRAY_LEN(codes); i++) {
        ANSWERS(nvmlDeviceGetTemperature, codes[i]);
        read_once();
        assert_int_equal(rig.reading->status, GP_STATUS_LOST);
        assert_true(rig.reading->needs_reinit);
        assert_non_null(strstr(rig.reading->status_text, "(nvmlDeviceGetTemperature)"));
        assert_int_equal(CALLS(nvmlDeviceGetPowerUsage), 0); /* nothing more is asked */
    }
    ANSWERS(nvmlDeviceGetTemperature, NVML_SUCCESS);
    rig.want.processes = true;
    ANSWERS(nvmlDeviceGetComputeRunningProcesses_v3, NVML_ERROR_GPU_IS_LOST);
    read_once();
    assert_int_equal(rig.reading->status, GP_STATUS_LOST);
    assert_true(rig.reading->needs_reinit);
}

static void gpus_that_cannot_be_taken_hold_of(void **state)
{
    (void)state;
    static const struct {
        nvmlReturn_t code;
        enum gp_status status;
        bool needs_reinit;
    } cases[] = {
        {NVML_ERROR_NO_PERMISSION, GP_STATUS_NO_PERMISSION, false},
        {NVML_ERROR_UNKNOWN, GP_STATUS_ERROR, true}, /* it fell off the bus */
        {NVML_ERROR_GPU_IS_LOST, GP_STATUS_LOST, true},
        {NVML_ERROR_NOT_SUPPORTED, GP_STATUS_ERROR, false},
        {NVML_ERROR_IRQ_ISSUE, GP_STATUS_ERROR, false},
    };
    open_source();
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        ANSWERS(nvmlDeviceGetHandleByIndex_v2, cases[i].code);
        assert_true(attach(0) < 0);
        assert_null(rig.device);
        assert_int_equal(rig.reading->status, cases[i].status);
        assert_int_equal(rig.reading->needs_reinit, cases[i].needs_reinit);
        assert_non_null(strstr(rig.reading->status_text, "(nvmlDeviceGetHandleByIndex_v2)"));
    }
    ANSWERS(nvmlDeviceGetHandleByIndex_v2, NVML_SUCCESS);
    ANSWERS(nvmlDeviceGetUUID, NVML_ERROR_GPU_IS_LOST);
    assert_true(attach(0) < 0);
    assert_int_equal(rig.reading->status, GP_STATUS_LOST);
    /* some have no UUID */
    ANSWERS(nvmlDeviceGetUUID, NVML_ERROR_NOT_SUPPORTED);
    assert_int_equal(attach(0), 0);
    assert_string_equal(rig.source->ops->uuid(rig.device), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(memory_is_told_by_the_newer_call),
        RIG_TEST(memory_is_told_by_the_older_call_where_there_is_no_newer),
        RIG_TEST(absurd_memory),
        RIG_TEST(functions_that_a_driver_lacks),
        RIG_TEST(static_values_are_asked_once),
        RIG_TEST(slow_values_are_asked_every_five_seconds),
        RIG_TEST(what_was_refused_is_left_alone_for_two_minutes),
        RIG_TEST(absurd_numbers_of_each_unit),
        RIG_TEST(absurd_power_by_the_limit_of_the_board),
        RIG_TEST(absurd_bytes),
        RIG_TEST(fields_are_of_the_type_that_the_driver_says),
        RIG_TEST(fields_that_are_no_number),
        RIG_TEST(a_board_without_a_memory_sensor_answers_0),
        RIG_TEST(fields_are_asked_together),
        RIG_TEST(codes_that_end_the_session),
        RIG_TEST(gpus_that_cannot_be_taken_hold_of),
    };
    return cmocka_run_group_tests_name("nvml", tests, NULL, NULL);
}
