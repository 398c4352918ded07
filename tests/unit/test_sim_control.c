/* The setters of the simulated driver: what each takes at the ends of its range, what it refuses
 * and with which code, and what is there afterwards. What gpulse makes of them is in
 * test_nvml_control. */
#include "sim_rig.h"

#include "base/util.h"

static int as_root(void **state)
{
    (void)state;
    return setenv("GPULSE_SIM_ROOT", "1", 1);
}

static unsigned clock_of(nvmlClockType_t type)
{
    unsigned mhz = 0;
    OK(nvmlDeviceGetClockInfo(gpu(0), type, &mhz));
    return mhz;
}

static void who_is_root(void **state)
{
    (void)state;
    start("h100");
    const bool is_root = geteuid() == 0;
    static const struct {
        const char *value; /* NULL: not set */
        bool root, by_user;
    } cases[] = {{"1", true, false},
                 {"0", false, false},
                 {"yes", true, false},
                 {"", true, true},
                 {NULL, true, true}};
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        bool root = cases[i].by_user ? is_root : cases[i].root;
        if (cases[i].value)
            assert_int_equal(setenv("GPULSE_SIM_ROOT", cases[i].value, 1), 0);
        else
            assert_int_equal(unsetenv("GPULSE_SIM_ROOT"), 0);
        assert_int_equal(nv.nvmlDeviceSetPersistenceMode(gpu(0), NVML_FEATURE_ENABLED),
                         root ? NVML_SUCCESS : NVML_ERROR_NO_PERMISSION);
    }
}

/* In the order of real drivers: handle, pointers and range, what the GPU has, who asks. */
static void switches_are_on_or_off(void **state)
{
    (void)state;
    nvmlEnableState_t mode;
    start("h100");
    REFUSED(nvmlDeviceSetPersistenceMode(NULL, NVML_FEATURE_ENABLED), INVALID_ARGUMENT);
    REFUSED(nvmlDeviceSetPersistenceMode(gpu(0), (nvmlEnableState_t)2), INVALID_ARGUMENT);
    REFUSED(nvmlDeviceSetEccMode(gpu(0), (nvmlEnableState_t)2), INVALID_ARGUMENT);
    REFUSED(nvmlDeviceSetAccountingMode(gpu(0), (nvmlEnableState_t)2), INVALID_ARGUMENT);
    assert_int_equal(setenv("GPULSE_SIM_ROOT", "0", 1), 0);
    REFUSED(nvmlDeviceSetPersistenceMode(gpu(0), (nvmlEnableState_t)2), INVALID_ARGUMENT);
    REFUSED(nvmlDeviceSetPersistenceMode(gpu(0), NVML_FEATURE_DISABLED), NO_PERMISSION);
    OK(nvmlDeviceGetPersistenceMode(gpu(0), &mode));
    assert_int_equal(mode, NVML_FEATURE_ENABLED);
    REFUSED(nvmlDeviceSetGpuOperationMode(gpu(0), NVML_GOM_COMPUTE), NOT_SUPPORTED);
    REFUSED(nvmlDeviceSetGpuOperationMode(gpu(0), (nvmlGpuOperationMode_t)3), INVALID_ARGUMENT);
    REFUSED(nvmlDeviceSetComputeMode(gpu(0), (nvmlComputeMode_t)1), INVALID_ARGUMENT);
    REFUSED(nvmlDeviceSetComputeMode(gpu(0), (nvmlComputeMode_t)4), INVALID_ARGUMENT);
    REFUSED(nvmlDeviceSetVirtualizationMode(gpu(0), (nvmlGpuVirtualizationMode_t)5),
            INVALID_ARGUMENT);
}

static void power_limits(void **state)
{
    (void)state;
    unsigned mw;
    static const struct {
        unsigned mw;
        bool fits;
    } limits[] = {{200000, true}, {199999, false}, {700000, true}, {700001, false}};
    start("h100");
    for (size_t i = 0; i < GP_ARRAY_LEN(limits); i++) {
        nvmlPowerValue_v2_t value = {.version = nvmlPowerValue_v2,
                                     .powerScope = NVML_POWER_SCOPE_GPU,
                                     .powerValueMw = limits[i].mw};
        nvmlReturn_t code = limits[i].fits ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
        OK(nvmlDeviceSetPowerManagementLimit(gpu(0), 500000));
        assert_int_equal(nv.nvmlDeviceSetPowerManagementLimit(gpu(0), limits[i].mw), code);
        OK(nvmlDeviceGetPowerManagementLimit(gpu(0), &mw));
        assert_int_equal(mw, limits[i].fits ? limits[i].mw : 500000);
        OK(nvmlDeviceSetPowerManagementLimit(gpu(0), 500000));
        assert_int_equal(nv.nvmlDeviceSetPowerManagementLimit_v2(gpu(0), &value), code);
        OK(nvmlDeviceGetPowerManagementLimit(gpu(0), &mw));
        assert_int_equal(mw, limits[i].fits ? limits[i].mw : 500000);
    }
    nvmlPowerValue_v2_t value = {.version = 1, .powerValueMw = 300000};
    REFUSED(nvmlDeviceSetPowerManagementLimit_v2(gpu(0), &value), ARGUMENT_VERSION_MISMATCH);
    REFUSED(nvmlDeviceSetPowerManagementLimit_v2(gpu(0), NULL), INVALID_ARGUMENT);
    value = (nvmlPowerValue_v2_t){.version = nvmlPowerValue_v2,
                                  .powerScope = NVML_POWER_SCOPE_MODULE,
                                  .powerValueMw = 300000};
    REFUSED(nvmlDeviceSetPowerManagementLimit_v2(gpu(0), &value), NOT_SUPPORTED);
    value.powerScope = NVML_POWER_SCOPE_MEMORY;
    REFUSED(nvmlDeviceSetPowerManagementLimit_v2(gpu(0), &value), NOT_SUPPORTED);
}

static void limits_of_a_module(void **state)
{
    (void)state;
    static const struct {
        unsigned mw;
        bool fits;
    } limits[] = {{500000, true}, {499999, false}, {2500000, true}, {2500001, false}};
    start("gb200");
    for (size_t i = 0; i < GP_ARRAY_LEN(limits); i++) {
        nvmlFieldValue_t field = {.fieldId = NVML_FI_DEV_POWER_REQUESTED_LIMIT,
                                  .scopeId = NVML_POWER_SCOPE_MODULE};
        nvmlPowerValue_v2_t value = {.version = nvmlPowerValue_v2,
                                     .powerScope = NVML_POWER_SCOPE_MODULE,
                                     .powerValueMw = 600000};
        OK(nvmlDeviceSetPowerManagementLimit_v2(gpu(0), &value));
        value.powerValueMw = limits[i].mw;
        assert_int_equal(nv.nvmlDeviceSetPowerManagementLimit_v2(gpu(0), &value),
                         limits[i].fits ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT);
        OK(nvmlDeviceGetFieldValues(gpu(0), 1, &field));
        assert_int_equal(field.nvmlReturn, NVML_SUCCESS);
        assert_int_equal(field.value.uiVal, limits[i].fits ? limits[i].mw : 600000);
    }
}

/* A lock is seen in the clock that it holds. */
static void clocks_are_locked_within_what_there_is(void **state)
{
    (void)state;
    static const unsigned names[] = {NVML_CLOCK_LIMIT_ID_TDP, NVML_CLOCK_LIMIT_ID_UNLIMITED};
    start("h100");
    const unsigned graphics = clock_of(NVML_CLOCK_GRAPHICS);
    const unsigned memory = clock_of(NVML_CLOCK_MEM);
    OK(nvmlDeviceSetGpuLockedClocks(gpu(0), 400, 500));
    assert_in_range(clock_of(NVML_CLOCK_GRAPHICS), 400, 500);
    assert_int_equal(clock_of(NVML_CLOCK_MEM), memory);
    OK(nvmlDeviceSetGpuLockedClocks(gpu(0), 1980, 1980));
    assert_int_equal(clock_of(NVML_CLOCK_GRAPHICS), 1980);
    REFUSED(nvmlDeviceSetGpuLockedClocks(gpu(0), 1981, 1981), INVALID_ARGUMENT);
    REFUSED(nvmlDeviceSetGpuLockedClocks(gpu(0), 501, 500), INVALID_ARGUMENT);
    for (size_t i = 0; i < 2; i++) {
        REFUSED(nvmlDeviceSetGpuLockedClocks(gpu(0), names[i], 500), INVALID_ARGUMENT);
        REFUSED(nvmlDeviceSetGpuLockedClocks(gpu(0), 500, names[i]), INVALID_ARGUMENT);
        OK(nvmlDeviceSetGpuLockedClocks(gpu(0), 500, 500));
        assert_int_equal(clock_of(NVML_CLOCK_GRAPHICS), 500);
        OK(nvmlDeviceSetGpuLockedClocks(gpu(0), names[i], names[i]));
        assert_int_equal(clock_of(NVML_CLOCK_GRAPHICS), graphics);
    }
    OK(nvmlDeviceSetGpuLockedClocks(gpu(0), 1900, 1900));
    OK(nvmlDeviceSetMemoryLockedClocks(gpu(0), 1593, 1593));
    assert_int_equal(clock_of(NVML_CLOCK_MEM), 1593);
    assert_int_equal(clock_of(NVML_CLOCK_GRAPHICS), 1900);
    OK(nvmlDeviceSetMemoryLockedClocks(gpu(0), 2619, 2619));
    REFUSED(nvmlDeviceSetMemoryLockedClocks(gpu(0), 2620, 2620), INVALID_ARGUMENT);
    OK(nvmlDeviceResetGpuLockedClocks(gpu(0)));
    assert_int_equal(clock_of(NVML_CLOCK_GRAPHICS), graphics);
    OK(nvmlDeviceResetMemoryLockedClocks(gpu(0)));
    assert_int_equal(clock_of(NVML_CLOCK_MEM), memory);
}

static void clocks_of_applications(void **state)
{
    (void)state;
    unsigned mhz;
    start("p100");
    OK(nvmlDeviceSetApplicationsClocks(gpu(0), 715, 1328));
    REFUSED(nvmlDeviceSetApplicationsClocks(gpu(0), 716, 544), INVALID_ARGUMENT);
    REFUSED(nvmlDeviceSetApplicationsClocks(gpu(0), 715, 1329), INVALID_ARGUMENT);
    OK(nvmlDeviceGetApplicationsClock(gpu(0), NVML_CLOCK_GRAPHICS, &mhz));
    assert_int_equal(mhz, 1328);
    OK(nvmlDeviceSetApplicationsClocks(gpu(0), 400, 544));
    OK(nvmlDeviceGetApplicationsClock(gpu(0), NVML_CLOCK_MEM, &mhz));
    assert_int_equal(mhz, 400);
    OK(nvmlDeviceResetApplicationsClocks(gpu(0)));
    OK(nvmlDeviceGetApplicationsClock(gpu(0), NVML_CLOCK_MEM, &mhz));
    assert_int_equal(mhz, 715);
    OK(nvmlDeviceGetApplicationsClock(gpu(0), NVML_CLOCK_GRAPHICS, &mhz));
    assert_int_equal(mhz, 1189);
}

static void check_offset(nvmlClockType_t type, int mhz)
{
    nvmlClockOffset_t info = {.version = nvmlClockOffset_v1, .type = type};
    int old = 0;
    OK(nvmlDeviceGetClockOffsets(gpu(0), &info));
    assert_int_equal(info.clockOffsetMHz, mhz);
    assert_int_equal(info.minClockOffsetMHz, type == NVML_CLOCK_MEM ? -2000 : -1000);
    assert_int_equal(info.maxClockOffsetMHz, type == NVML_CLOCK_MEM ? 6000 : 1000);
    if (type == NVML_CLOCK_MEM)
        OK(nvmlDeviceGetMemClkVfOffset(gpu(0), &old));
    else
        OK(nvmlDeviceGetGpcClkVfOffset(gpu(0), &old));
    assert_int_equal(old, mhz);
}

/* The RTX 4090 with a driver that has the call for all offsets; returns its path. */
static const char *newer_machine(void)
{
    static const char old[] = "\"535.86.05\"";
    static char path[192], text[65536];
    char from[600];
    (void)snprintf(from, sizeof(from), "%s/machines/rtx4090.json", build);
    (void)snprintf(path, sizeof(path), "%s/newer.json", folder);
    FILE *file = fopen(from, "re");
    assert_non_null(file);
    size_t n = fread(text, 1, sizeof(text) - 1, file);
    (void)fclose(file);
    text[n] = '\0';
    char *version = strstr(text, old);
    assert_non_null(version);
    memcpy(version, "\"590.48.01\"", sizeof(old) - 1);
    file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
    return path;
}

/* By the call for all, and by those for each. */
static void offsets_of_clocks(void **state)
{
    (void)state;
    static const struct {
        nvmlClockType_t type;
        int mhz;
        bool fits;
    } cases[] = {
        {NVML_CLOCK_GRAPHICS, -1000, true}, {NVML_CLOCK_GRAPHICS, -1001, false},
        {NVML_CLOCK_GRAPHICS, 1000, true},  {NVML_CLOCK_GRAPHICS, 1001, false},
        {NVML_CLOCK_MEM, -2000, true},      {NVML_CLOCK_MEM, -2001, false},
        {NVML_CLOCK_MEM, 6000, true},       {NVML_CLOCK_MEM, 6001, false},
    };
    start(newer_machine());
    int min, max;
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        bool memory = cases[i].type == NVML_CLOCK_MEM;
        nvmlReturn_t code = cases[i].fits ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
        nvmlClockOffset_t info = {.version = nvmlClockOffset_v1, .type = cases[i].type};
        info.clockOffsetMHz = cases[i].mhz;
        OK(nvmlDeviceSetGpcClkVfOffset(gpu(0), 11));
        OK(nvmlDeviceSetMemClkVfOffset(gpu(0), 22));
        assert_int_equal(nv.nvmlDeviceSetClockOffsets(gpu(0), &info), code);
        check_offset(cases[i].type, cases[i].fits ? cases[i].mhz : memory ? 22 : 11);
        check_offset(memory ? NVML_CLOCK_GRAPHICS : NVML_CLOCK_MEM, memory ? 11 : 22);
        assert_int_equal(memory ? nv.nvmlDeviceSetMemClkVfOffset(gpu(0), cases[i].mhz)
                                : nv.nvmlDeviceSetGpcClkVfOffset(gpu(0), cases[i].mhz),
                         code);
    }
    nvmlClockOffset_t info = {.version = nvmlClockOffset_v1 + 1, .type = NVML_CLOCK_MEM};
    REFUSED(nvmlDeviceGetClockOffsets(gpu(0), &info), ARGUMENT_VERSION_MISMATCH);
    REFUSED(nvmlDeviceSetClockOffsets(gpu(0), &info), ARGUMENT_VERSION_MISMATCH);
    info = (nvmlClockOffset_t){.version = nvmlClockOffset_v1, .type = NVML_CLOCK_SM};
    REFUSED(nvmlDeviceGetClockOffsets(gpu(0), &info), INVALID_ARGUMENT);
    info = (nvmlClockOffset_t){.version = nvmlClockOffset_v1, .pstate = NVML_PSTATE_15};
    OK(nvmlDeviceGetClockOffsets(gpu(0), &info));
    info.pstate = NVML_PSTATE_15 + 1;
    REFUSED(nvmlDeviceGetClockOffsets(gpu(0), &info), INVALID_ARGUMENT);
    REFUSED(nvmlDeviceGetClockOffsets(gpu(0), NULL), INVALID_ARGUMENT);
    OK(nvmlDeviceGetGpcClkMinMaxVfOffset(gpu(0), &min, &max));
    assert_true(min == -1000 && max == 1000);
    OK(nvmlDeviceGetMemClkMinMaxVfOffset(gpu(0), &min, &max));
    assert_true(min == -2000 && max == 6000);
    REFUSED(nvmlDeviceGetMemClkMinMaxVfOffset(gpu(0), NULL, &max), INVALID_ARGUMENT);
    REFUSED(nvmlDeviceGetMemClkMinMaxVfOffset(gpu(0), &min, NULL), INVALID_ARGUMENT);
    REFUSED(nvmlDeviceGetMemClkVfOffset(gpu(0), NULL), INVALID_ARGUMENT);
}

static void fans_within_their_range(void **state)
{
    (void)state;
    unsigned speed;
    nvmlFanControlPolicy_t policy;
    start("rtx4090");
    OK(nvmlDeviceGetFanControlPolicy_v2(gpu(0), 1, &policy));
    assert_int_equal(policy, 0);
    OK(nvmlDeviceSetFanSpeed_v2(gpu(0), 1, 30));
    OK(nvmlDeviceSetFanSpeed_v2(gpu(0), 1, 100));
    REFUSED(nvmlDeviceSetFanSpeed_v2(gpu(0), 1, 29), INVALID_ARGUMENT);
    REFUSED(nvmlDeviceSetFanSpeed_v2(gpu(0), 1, 101), INVALID_ARGUMENT);
    REFUSED(nvmlDeviceSetFanSpeed_v2(gpu(0), 2, 50), INVALID_ARGUMENT);
    OK(nvmlDeviceGetFanControlPolicy_v2(gpu(0), 1, &policy));
    assert_int_equal(policy, 1);
    OK(nvmlDeviceGetTargetFanSpeed(gpu(0), 1, &speed));
    assert_int_equal(speed, 100);
    OK(nvmlDeviceGetFanControlPolicy_v2(gpu(0), 0, &policy));
    assert_int_equal(policy, 0);
    REFUSED(nvmlDeviceGetFanControlPolicy_v2(gpu(0), 2, &policy), INVALID_ARGUMENT);
    REFUSED(nvmlDeviceGetTargetFanSpeed(gpu(0), 2, &speed), INVALID_ARGUMENT);
    REFUSED(nvmlDeviceGetTargetFanSpeed(gpu(0), 0, NULL), INVALID_ARGUMENT);
    OK(nvmlDeviceSetDefaultFanSpeed_v2(gpu(0), 1));
    OK(nvmlDeviceGetFanControlPolicy_v2(gpu(0), 1, &policy));
    assert_int_equal(policy, 0);
    REFUSED(nvmlDeviceSetDefaultFanSpeed_v2(gpu(0), 2), INVALID_ARGUMENT);
}

static void a_target_temperature(void **state)
{
    (void)state;
    unsigned now;
    static const struct {
        int celsius;
        bool fits;
    } cases[] = {{65, true}, {64, false}, {90, true}, {91, false}, {-1, false}};
    start("rtx3060");
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        int celsius = 80;
        OK(nvmlDeviceSetTemperatureThreshold(gpu(0), NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_CURR,
                                             &celsius));
        celsius = cases[i].celsius;
        assert_int_equal(nv.nvmlDeviceSetTemperatureThreshold(
                             gpu(0), NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_CURR, &celsius),
                         cases[i].fits ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT);
        OK(nvmlDeviceGetTemperatureThreshold(gpu(0), NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_CURR,
                                             &now));
        assert_int_equal(now, cases[i].fits ? cases[i].celsius : 80);
    }
    int celsius = 80;
    REFUSED(
        nvmlDeviceSetTemperatureThreshold(gpu(0), NVML_TEMPERATURE_THRESHOLD_SHUTDOWN, &celsius),
        NOT_SUPPORTED);
    REFUSED(nvmlDeviceSetTemperatureThreshold(gpu(0), NVML_TEMPERATURE_THRESHOLD_COUNT, &celsius),
            INVALID_ARGUMENT);
    REFUSED(
        nvmlDeviceSetTemperatureThreshold(gpu(0), NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_CURR, NULL),
        INVALID_ARGUMENT);
}

static void what_may_be_restricted(void **state)
{
    (void)state;
    start("p100");
    REFUSED(nvmlDeviceSetAPIRestriction(gpu(0), NVML_RESTRICTED_API_COUNT, NVML_FEATURE_ENABLED),
            INVALID_ARGUMENT);
    REFUSED(nvmlDeviceSetAPIRestriction(gpu(0), NVML_RESTRICTED_API_SET_APPLICATION_CLOCKS,
                                        (nvmlEnableState_t)2),
            INVALID_ARGUMENT);
    nvmlReturn_t activation;
    REFUSED(nvmlDeviceSetMigMode(gpu(0), 2, &activation), INVALID_ARGUMENT);
    REFUSED(nvmlDeviceSetMigMode(gpu(0), 1, NULL), INVALID_ARGUMENT);
    REFUSED(nvmlDeviceSetMigMode(gpu(0), 1, &activation), NOT_SUPPORTED);
    REFUSED(nvmlDeviceClearEccErrorCounts(gpu(0), NVML_ECC_COUNTER_TYPE_COUNT), INVALID_ARGUMENT);
    OK(nvmlDeviceClearEccErrorCounts(gpu(0), NVML_AGGREGATE_ECC));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, as_root, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(who_is_root),
        TEST(switches_are_on_or_off),
        TEST(power_limits),
        TEST(limits_of_a_module),
        TEST(clocks_are_locked_within_what_there_is),
        TEST(clocks_of_applications),
        TEST(offsets_of_clocks),
        TEST(fans_within_their_range),
        TEST(a_target_temperature),
        TEST(what_may_be_restricted),
    };
    return cmocka_run_group_tests_name("sim_control", tests, load_library, remove_folder);
}
