/* The simulated driver, call by call. */
#include "sim_rig.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

/* ------------------------------------------------------------------------- lifecycle */

static void nothing_works_before_init_or_after_shutdown(void **state)
{
    (void)state;
    unsigned int count;
    REFUSED(nvmlDeviceGetCount_v2(&count), UNINITIALIZED);
    REFUSED(nvmlShutdown(), UNINITIALIZED);
    start("t4");
    OK(nvmlInit_v2());
    OK(nvmlShutdown());
    OK(nvmlDeviceGetCount_v2(&count));
    OK(nvmlShutdown());
    REFUSED(nvmlDeviceGetCount_v2(&count), UNINITIALIZED);
    assert_string_equal(nv.nvmlErrorString(NVML_ERROR_GPU_IS_LOST), "GPU is lost");
    assert_string_equal(nv.nvmlErrorString((nvmlReturn_t)12345), "Unknown Error");
}

static void handles_of_an_earlier_init_are_refused(void **state)
{
    (void)state;
    unsigned int power;
    start("t4");
    nvmlDevice_t old = gpu(0);
    OK(nvmlShutdown());
    start("t4");
    REFUSED(nvmlDeviceGetPowerUsage(old, &power), INVALID_ARGUMENT);
    OK(nvmlDeviceGetPowerUsage(gpu(0), &power));
}

static void a_wrong_machine_is_explained(void **state)
{
    (void)state;
    assert_int_equal(setenv("GPULSE_SIM", "h1000", 1), 0);
    REFUSED(nvmlInit_v2(), UNKNOWN);
    assert_non_null(strstr(nv.gpulse_sim_error(), "unknown simulated machine 'h1000'"));
    assert_int_equal(setenv("GPULSE_SIM", "h100x0", 1), 0);
    REFUSED(nvmlInit_v2(), UNKNOWN);
    start("h100x2");
    assert_string_equal(nv.gpulse_sim_error(), "");
}

/* ------------------------------------------------------------------------- strictness */

static void bad_arguments_are_refused(void **state)
{
    (void)state;
    char text[4];
    unsigned int value;
    start("h100");
    nvmlDevice_t device = gpu(0);
    int here;
    REFUSED(nvmlDeviceGetPowerUsage(NULL, &value), INVALID_ARGUMENT);
    REFUSED(nvmlDeviceGetPowerUsage((nvmlDevice_t)&here, &value), INVALID_ARGUMENT);
    REFUSED(nvmlDeviceGetPowerUsage(device, NULL), INVALID_ARGUMENT);
    REFUSED(nvmlDeviceGetClockInfo(device, NVML_CLOCK_COUNT, &value), INVALID_ARGUMENT);
    REFUSED(nvmlDeviceGetTemperature(device, (nvmlTemperatureSensors_t)7, &value),
            INVALID_ARGUMENT);
    REFUSED(nvmlDeviceGetHandleByIndex_v2(8, &device), INVALID_ARGUMENT);
    device = gpu(0);
    REFUSED(nvmlDeviceGetName(device, NULL, 96), INVALID_ARGUMENT);
    REFUSED(nvmlDeviceGetName(device, text, sizeof(text)), INSUFFICIENT_SIZE);
    REFUSED(nvmlDeviceGetFieldValues(device, 0, NULL), INVALID_ARGUMENT);
}

static void version_words_are_checked_before_anything_is_written(void **state)
{
    (void)state;
    start("h100");
    nvmlDevice_t device = gpu(0);
    nvmlMemory_v2_t memory = {.version = 2, .total = 77};
    REFUSED(nvmlDeviceGetMemoryInfo_v2(device, &memory), ARGUMENT_VERSION_MISMATCH);
    assert_int_equal(memory.total, 77);
    memory.version = nvmlMemory_v2;
    OK(nvmlDeviceGetMemoryInfo_v2(device, &memory));
    assert_int_equal(memory.reserved + memory.used + memory.free, memory.total);

    nvmlTemperature_t temperature = {.version = 1};
    REFUSED(nvmlDeviceGetTemperatureV(device, &temperature), ARGUMENT_VERSION_MISMATCH);
    temperature.version = nvmlTemperature_v1;
    OK(nvmlDeviceGetTemperatureV(device, &temperature));
    unsigned int celsius;
    OK(nvmlDeviceGetTemperature(device, NVML_TEMPERATURE_GPU, &celsius));
    assert_int_equal(temperature.temperature, celsius);
}

/* The fabric has three forms, each a beginning of the next one. */
static void forms_of_the_fabric(void **state)
{
    (void)state;
    start("gb200");
    nvmlDevice_t device = gpu(0);
    union {
        nvmlGpuFabricInfo_t v1;
        nvmlGpuFabricInfo_v2_t v2;
        nvmlGpuFabricInfo_v3_t v3;
        unsigned char bytes[64];
    } info;
    memset(&info, 0x55, sizeof(info));
    OK(nvmlDeviceGetGpuFabricInfo(device, &info.v1));
    assert_int_equal(info.v1.state, 3);
    assert_int_equal(info.v1.cliqueId, 2);
    assert_int_equal(info.bytes[sizeof(info.v1)], 0x55);
    memset(&info, 0x55, sizeof(info));
    info.v2.version = nvmlGpuFabricInfo_v2;
    OK(nvmlDeviceGetGpuFabricInfoV(device, &info.v3));
    assert_int_equal(info.v2.clusterUuid[3], 1);
    assert_int_equal(info.v2.healthMask, 0xaa);
    assert_int_equal(info.bytes[sizeof(info.v2)], 0x55);
    info.v3.version = nvmlGpuFabricInfo_v3;
    OK(nvmlDeviceGetGpuFabricInfoV(device, &info.v3));
    assert_int_equal(info.v3.healthSummary, 1);
    assert_int_equal(info.bytes[sizeof(info.v3)], 0x55);
    info.v3.version = 3;
    REFUSED(nvmlDeviceGetGpuFabricInfoV(device, &info.v3), ARGUMENT_VERSION_MISMATCH);
    stop(NULL);
    /* the newest form came with R580 */
    start("a100");
    info.v3.version = nvmlGpuFabricInfo_v3;
    REFUSED(nvmlDeviceGetGpuFabricInfoV(gpu(0), &info.v3), ARGUMENT_VERSION_MISMATCH);
    info.v3.version = nvmlGpuFabricInfo_v2;
    REFUSED(nvmlDeviceGetGpuFabricInfoV(gpu(0), &info.v3), NOT_SUPPORTED);
}

static void structs_of_identity_and_health(void **state)
{
    (void)state;
    start("gb200");
    nvmlDevice_t device = gpu(0);
    nvmlPlatformInfo_t platform = {.version = 2};
    REFUSED(nvmlDeviceGetPlatformInfo(device, &platform), ARGUMENT_VERSION_MISMATCH);
    platform.version = nvmlPlatformInfo_v2;
    OK(nvmlDeviceGetPlatformInfo(device, &platform));
    assert_memory_equal(platform.chassisSerialNumber, "1820000000001", 14);
    assert_int_equal(platform.ibGuid[7], 1);
    assert_int_equal(platform.slotNumber, 14);
    platform.version = nvmlPlatformInfo_v1;
    OK(nvmlDeviceGetPlatformInfo(device, &platform));
    assert_int_equal(platform.chassisSerialNumber[0], 0); /* the rack's identity there */

    nvmlEccSramErrorStatus_t sram = {.version = 1, .aggregateUncBucketSm = 77};
    REFUSED(nvmlDeviceGetSramEccErrorStatus(device, &sram), ARGUMENT_VERSION_MISMATCH);
    assert_int_equal(sram.aggregateUncBucketSm, 77);
    sram.version = nvmlEccSramErrorStatus_v1;
    OK(nvmlDeviceGetSramEccErrorStatus(device, &sram));
    assert_int_equal(sram.aggregateUncBucketSm, 0);
    nvmlRowRemapperHistogramValues_t banks;
    OK(nvmlDeviceGetRowRemapperHistogram(device, &banks));
    assert_int_equal(banks.max, 3968);
    nvmlRepairStatus_t repair = {.version = 0, .bTpcRepairPending = 77};
    REFUSED(nvmlDeviceGetRepairStatus(device, &repair), ARGUMENT_VERSION_MISMATCH);
    assert_int_equal(repair.bTpcRepairPending, 77);
    repair.version = nvmlRepairStatus_v1;
    OK(nvmlDeviceGetRepairStatus(device, &repair));
    assert_int_equal(repair.bTpcRepairPending, 0);
    nvmlPciInfoExt_t pci = {.version = nvmlPciInfoExt_v1};
    OK(nvmlDeviceGetPciInfoExt(device, &pci));
    assert_int_equal(pci.baseClass << 8 | pci.subClass, 0x302);
    nvmlPdi_t pdi = {.version = nvmlPdi_v1};
    OK(nvmlDeviceGetPdi(device, &pdi));
    assert_int_equal(pdi.value, 1);
    char version[NVML_DEVICE_INFOROM_VERSION_BUFFER_SIZE];
    OK(nvmlDeviceGetInforomVersion(device, NVML_INFOROM_ECC, version, sizeof(version)));
    assert_string_equal(version, "7.16");
    REFUSED(nvmlDeviceGetInforomVersion(device, NVML_INFOROM_COUNT, version, sizeof(version)),
            INVALID_ARGUMENT);
}

/* What newer drivers no longer tell, and what older ones do not know. */
static void rows_by_driver(void **state)
{
    (void)state;
    unsigned int mhz;
    nvmlUnrepairableMemoryStatus_v1_t flag;
    start("t4"); /* 595 */
    REFUSED(nvmlDeviceGetApplicationsClock(gpu(0), NVML_CLOCK_MEM, &mhz), DEPRECATED);
    REFUSED(nvmlDeviceGetUnrepairableMemoryFlag_v1(gpu(0), &flag), NOT_SUPPORTED);
    stop(NULL);
    start("h100"); /* 580 */
    OK(nvmlDeviceGetApplicationsClock(gpu(0), NVML_CLOCK_MEM, &mhz));
    assert_int_equal(mhz, 2619);
    REFUSED(nvmlDeviceGetUnrepairableMemoryFlag_v1(gpu(0), &flag), FUNCTION_NOT_FOUND);
}

static void older_pci_calls_write_less(void **state)
{
    (void)state;
    start("h100");
    nvmlPciInfo_t pci;
    memset(&pci, 0x55, sizeof(pci));
    OK(nvmlDeviceGetPciInfo(gpu(0), &pci));
    assert_int_equal(pci.pciDeviceId, 0x233010de);
    assert_int_equal(pci.pciSubSystemId, 0x55555555);
    OK(nvmlDeviceGetPciInfo_v2(gpu(0), &pci));
    assert_int_equal(pci.pciSubSystemId, 0x16c110de);
    assert_int_equal(pci.busId[0], 0x55);
    OK(nvmlDeviceGetPciInfo_v3(gpu(0), &pci));
    assert_string_equal(pci.busId, "00000000:53:00.0");
    assert_string_equal(pci.busIdLegacy, "0000:53:00.0");
}

static void devices_are_found_by_every_name(void **state)
{
    (void)state;
    start("h100x16");
    nvmlDevice_t device;
    unsigned int index;
    char uuid[96], serial[30];
    static const char *const spellings[] = {"00000000:53:00.0", "0000:53:00.0", "53:00.0"};
    for (size_t i = 0; i < 3; i++) {
        OK(nvmlDeviceGetHandleByPciBusId_v2(spellings[i], &device));
        OK(nvmlDeviceGetIndex(device, &index));
        assert_int_equal(index, 0);
    }
    REFUSED(nvmlDeviceGetHandleByPciBusId_v2("53:00", &device), NOT_FOUND);
    for (unsigned int i = 0; i < 16; i++) {
        OK(nvmlDeviceGetUUID(gpu(i), uuid, sizeof(uuid)));
        OK(nvmlDeviceGetHandleByUUID(uuid, &device));
        OK(nvmlDeviceGetIndex(device, &index));
        assert_int_equal(index, i);
        OK(nvmlDeviceGetSerial(gpu(i), serial, sizeof(serial)));
        OK(nvmlDeviceGetHandleBySerial(serial, &device));
        OK(nvmlDeviceGetIndex(device, &index));
        assert_int_equal(index, i);
    }
}

/* ------------------------------------------------------------------------- process lists */

static void lists_follow_the_capacity_protocol(void **state)
{
    (void)state;
    start(machine_file("580.105.08", ""));
    nvmlProcessInfo_t infos[4];
    unsigned int count = 0;
    REFUSED(nvmlDeviceGetComputeRunningProcesses_v3(gpu(0), &count, NULL), INSUFFICIENT_SIZE);
    assert_int_equal(count, 2);
    count = 1;
    REFUSED(nvmlDeviceGetComputeRunningProcesses_v3(gpu(0), &count, infos), INSUFFICIENT_SIZE);
    assert_int_equal(count, 2);
    count = 1;
    REFUSED(nvmlDeviceGetComputeRunningProcesses_v3(gpu(0), &count, NULL), INVALID_ARGUMENT);
    count = 4;
    OK(nvmlDeviceGetComputeRunningProcesses_v3(gpu(0), &count, infos));
    assert_int_equal(count, 2);
    assert_int_equal(infos[0].pid, 11);
    assert_int_equal(infos[0].usedGpuMemory, 1000);
    assert_int_equal(infos[0].gpuInstanceId, UINT32_MAX);
    assert_int_equal(infos[1].usedGpuMemory, UINT64_MAX);
    count = 4;
    OK(nvmlDeviceGetGraphicsRunningProcesses_v3(gpu(0), &count, infos));
    assert_int_equal(count, 1);
    count = 0;
    OK(nvmlDeviceGetMPSComputeRunningProcesses_v3(gpu(0), &count, NULL));

    nvmlProcessInfo_v1_t old[2];
    count = 2;
    OK(nvmlDeviceGetComputeRunningProcesses(gpu(0), &count, old));
    assert_int_equal(old[1].pid, 12);

    char name[4];
    OK(nvmlSystemGetProcessName(13, name, sizeof(name)));
    assert_string_equal(name, "thr");
    REFUSED(nvmlSystemGetProcessName(99, name, sizeof(name)), NOT_FOUND);
}

static void process_entries_were_wider_in_early_535(void **state)
{
    (void)state;
    nvmlProcessInfo_r535_t wide[4];
    unsigned int count = 4;
    start(machine_file("535.86.05", ""));
    OK(nvmlDeviceGetComputeRunningProcesses_v3(gpu(0), &count, (nvmlProcessInfo_t *)wide));
    assert_int_equal(wide[1].pid, 12);
    OK(nvmlShutdown());
    start(machine_file("535.98", ""));
    REFUSED(nvmlDeviceGetComputeRunningProcesses_v3(gpu(0), &count, (nvmlProcessInfo_t *)wide),
            FUNCTION_NOT_FOUND);
    OK(nvmlShutdown());
    start(machine_file("535.104.05", ""));
    count = 4;
    OK(nvmlDeviceGetComputeRunningProcesses_v3(gpu(0), &count, (nvmlProcessInfo_t *)wide));
    assert_int_equal(((nvmlProcessInfo_t *)wide)[1].pid, 12);
}

static void process_utilization_needs_the_whole_buffer(void **state)
{
    (void)state;
    start("h100");
    static nvmlProcessUtilizationSample_t samples[128];
    unsigned int count = 0;
    REFUSED(nvmlDeviceGetProcessUtilization(gpu(0), NULL, &count, 0), INSUFFICIENT_SIZE);
    assert_int_equal(count, 100);
    OK(nvmlDeviceGetProcessUtilization(gpu(0), samples, &count, 0));
    assert_int_equal(count, 1);
    assert_int_equal(samples[0].smUtil, 97);
    count = 128;
    REFUSED(nvmlDeviceGetProcessUtilization(gpu(7), samples, &count, 0), NOT_FOUND);
}

/* ------------------------------------------------------------------------- versions */

static void old_drivers_lack_new_functions(void **state)
{
    (void)state;
    start(machine_file("470.1", ", \"missing\": [\"nvmlDeviceGetSerial\"]"));
    nvmlMemory_v2_t memory = {.version = nvmlMemory_v2};
    unsigned long long reasons;
    char serial[30];
    REFUSED(nvmlDeviceGetMemoryInfo_v2(gpu(0), &memory), FUNCTION_NOT_FOUND);
    REFUSED(nvmlDeviceGetCurrentClocksEventReasons(gpu(0), &reasons), FUNCTION_NOT_FOUND);
    REFUSED(nvmlDeviceGetCurrentClocksThrottleReasons(gpu(0), &reasons), NOT_SUPPORTED);
    REFUSED(nvmlDeviceGetSerial(gpu(0), serial, sizeof(serial)), FUNCTION_NOT_FOUND);
}

/* ------------------------------------------------------------------------- values */

static void a_still_machine_answers_its_capture(void **state)
{
    (void)state;
    start("h100");
    nvmlDevice_t idle = gpu(7);
    unsigned int value;
    for (int i = 0; i < 2; i++) {
        OK(nvmlDeviceGetClockInfo(idle, NVML_CLOCK_SM, &value));
        assert_int_equal(value, 345);
        OK(nvmlDeviceGetPcieReplayCounter(idle, &value));
        assert_int_equal(value, 106);
    }
    REFUSED(nvmlDeviceGetFanSpeed(idle, &value), NOT_SUPPORTED);
    nvmlEnableState_t mode;
    OK(nvmlDeviceGetDisplayMode(idle, &mode));
    assert_int_equal(mode, NVML_FEATURE_ENABLED);

    nvmlFieldValue_t fields[] = {{.fieldId = NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT},
                                 {.fieldId = NVML_FI_DEV_POWER_INSTANT, .scopeId = 1},
                                 {.fieldId = NVML_FI_DEV_MEMORY_TEMP},
                                 {.fieldId = 60000}};
    OK(nvmlDeviceGetFieldValues(gpu(0), 4, fields));
    assert_int_equal(fields[0].valueType, NVML_VALUE_TYPE_SIGNED_INT);
    assert_int_equal(fields[0].value.siVal, -8);
    assert_int_equal(fields[1].nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
    assert_int_equal(fields[2].nvmlReturn, NVML_SUCCESS);
    assert_int_equal(fields[3].nvmlReturn, NVML_ERROR_INVALID_ARGUMENT);
}

static void moving_values_stay_believable(void **state)
{
    (void)state;
    assert_int_equal(unsetenv("GPULSE_SIM_STILL"), 0);
    start("h100");
    unsigned long long energy = 0, before = 0;
    for (int i = 0; i < 50; i++) {
        for (unsigned int g = 0; g < 8; g++) {
            nvmlDevice_t device = gpu(g);
            nvmlUtilization_t util;
            unsigned int power, limit, celsius;
            OK(nvmlDeviceGetUtilizationRates(device, &util));
            OK(nvmlDeviceGetPowerUsage(device, &power));
            OK(nvmlDeviceGetEnforcedPowerLimit(device, &limit));
            OK(nvmlDeviceGetTemperature(device, NVML_TEMPERATURE_GPU, &celsius));
            assert_in_range(util.gpu, 0, 100);
            assert_in_range(util.memory, 0, 100);
            assert_in_range(power, 1, limit);
            assert_in_range(celsius, 10, 87);
        }
        OK(nvmlDeviceGetTotalEnergyConsumption(gpu(0), &energy));
        assert_true(energy >= before);
        before = energy;
    }
    assert_int_equal(setenv("GPULSE_SIM_STILL", "1", 1), 0);
}

/* ------------------------------------------------------------------------- MIG */

static void mig_devices_have_values_of_their_own(void **state)
{
    (void)state;
    start("a100-mig");
    nvmlDevice_t parent = gpu(0), mig, back;
    unsigned int current, pending, value, is_mig;
    OK(nvmlDeviceGetMigMode(parent, &current, &pending));
    assert_int_equal(current, 1);
    OK(nvmlDeviceGetMaxMigDeviceCount(parent, &value));
    assert_int_equal(value, 7);
    OK(nvmlDeviceGetMigDeviceHandleByIndex(parent, 0, &mig));
    REFUSED(nvmlDeviceGetMigDeviceHandleByIndex(parent, 4, &back), NOT_FOUND);
    OK(nvmlDeviceIsMigDeviceHandle(mig, &is_mig));
    assert_int_equal(is_mig, 1);
    OK(nvmlDeviceGetDeviceHandleFromMigDeviceHandle(mig, &back));
    assert_ptr_equal(back, parent);
    OK(nvmlDeviceGetGpuInstanceId(mig, &value));
    assert_int_equal(value, 3);
    REFUSED(nvmlDeviceGetGpuInstanceId(parent, &value), NOT_SUPPORTED);
    REFUSED(nvmlDeviceGetPowerUsage(mig, &value), NOT_SUPPORTED);
    nvmlUtilization_t util;
    REFUSED(nvmlDeviceGetUtilizationRates(parent, &util), NOT_SUPPORTED);

    char name[96], uuid[96];
    OK(nvmlDeviceGetName(mig, name, sizeof(name)));
    assert_string_equal(name, "NVIDIA A100-SXM4-80GB MIG 1g.20gb");
    OK(nvmlDeviceGetUUID(mig, uuid, sizeof(uuid)));
    OK(nvmlDeviceGetHandleByUUID(uuid, &back));
    assert_ptr_equal(back, mig);
    nvmlDeviceAttributes_t attributes;
    OK(nvmlDeviceGetAttributes_v2(mig, &attributes));
    assert_int_equal(attributes.multiprocessorCount, 14);
    assert_int_equal(attributes.gpuInstanceSliceCount, 1);
}

/* ------------------------------------------------------------------------- faults */

static void a_lost_gpu_stays_lost_until_init(void **state)
{
    (void)state;
    unsigned int value;
    start("h100x4");
    nvmlDevice_t third = gpu(3), second = gpu(2);
    assert_int_equal(tool("fault -m h100x4 --gpu 3 lost"), 0);
    REFUSED(nvmlDeviceGetPowerUsage(third, &value), GPU_IS_LOST);
    REFUSED(nvmlDeviceGetHandleByIndex_v2(3, &third), GPU_IS_LOST);
    OK(nvmlDeviceGetPowerUsage(second, &value));
    OK(nvmlDeviceGetCount_v2(&value));
    assert_int_equal(value, 4);
    assert_int_equal(tool("fault -m h100x4 --gpu 3 clear"), 0);
    REFUSED(nvmlDeviceGetPowerUsage(third, &value), GPU_IS_LOST);
    OK(nvmlShutdown());
    start("h100x4");
    OK(nvmlDeviceGetPowerUsage(gpu(3), &value));
}

static void faults_are_limited_to_gpu_and_function(void **state)
{
    (void)state;
    unsigned int value;
    start("h100x4");
    assert_int_equal(
        tool("fault -m h100x4 -g 1 deny:nvmlDeviceGetPowerUsage error=TIMEOUT:nvmlDeviceGetTemp"),
        0);
    OK(nvmlDeviceGetPowerUsage(gpu(0), &value));
    REFUSED(nvmlDeviceGetPowerUsage(gpu(1), &value), NO_PERMISSION);
    REFUSED(nvmlDeviceGetTemperature(gpu(1), NVML_TEMPERATURE_GPU, &value), TIMEOUT);
    OK(nvmlDeviceGetEnforcedPowerLimit(gpu(1), &value));
    assert_int_equal(tool("fault -m h100x4 clear"), 0);
    OK(nvmlDeviceGetPowerUsage(gpu(1), &value));

    assert_int_equal(tool("fault -m h100x4 nogpu"), 0);
    OK(nvmlDeviceGetCount_v2(&value));
    assert_int_equal(value, 0);
    nvmlDevice_t device;
    REFUSED(nvmlDeviceGetHandleByIndex_v2(0, &device), INVALID_ARGUMENT);
    assert_int_equal(tool("fault -m h100x4 clear unloaded"), 0);
    OK(nvmlShutdown());
    REFUSED(nvmlInit_v2(), DRIVER_NOT_LOADED);
    assert_int_equal(tool("fault -m h100x4 clear mismatch"), 0);
    REFUSED(nvmlInit_v2(), LIB_RM_VERSION_MISMATCH);
    assert_int_equal(tool("fault -m h100x4 clear"), 0);
}

static void wrong_faults_are_refused_as_a_whole(void **state)
{
    (void)state;
    assert_int_equal(tool("fault -m h100x4 lost nonsense 2>/dev/null"), 2);
    assert_int_equal(tool("fault -m h100x4 slow 2>/dev/null"), 2);
    assert_int_equal(tool("fault -m h100x4 deny:nvmlNothing 2>/dev/null"), 2);
    assert_int_equal(tool("fault -m h100x4 --gpu 4 lost 2>/dev/null"), 2);
    unsigned int value;
    start("h100x4");
    OK(nvmlDeviceGetPowerUsage(gpu(0), &value));
}

static void absurd_values_and_growing_lists(void **state)
{
    (void)state;
    start(machine_file("580.105.08",
                       ", \"faults\": [\"0:grow\", \"0:absurd:nvmlDeviceGetPowerUsage\","
                       "\"0:absurd:nvmlDeviceGetTemperature\"]"));
    unsigned int value;
    OK(nvmlDeviceGetPowerUsage(gpu(0), &value));
    assert_int_equal(value, 593000000);
    OK(nvmlDeviceGetTemperature(gpu(0), NVML_TEMPERATURE_GPU, &value));
    assert_int_equal(value, 4294967288u);
    nvmlProcessInfo_t infos[64];
    unsigned int count = 2, refusals = 0;
    while (nv.nvmlDeviceGetComputeRunningProcesses_v3(gpu(0), &count, infos) ==
           NVML_ERROR_INSUFFICIENT_SIZE)
        refusals++;
    assert_int_equal(refusals, 3);
    assert_int_equal(count, 2);
}

static uint64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static atomic_int caller; /* the thread that is to be found sleeping */

/* Until the thread sleeps in the driver. */
static void await_sleep(void)
{
    enum { TRIES = 60000 };
    char path[64];
    char text[32] = "";
    char sleeps[32];
    (void)snprintf(sleeps, sizeof(sleeps), "%d ", (int)SYS_clock_nanosleep);
    for (int i = 0; i < TRIES; i++) {
        (void)snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", atomic_load(&caller));
        FILE *file = fopen(path, "re");
        if (file && !fgets(text, sizeof(text), file))
            text[0] = '\0';
        if (file)
            (void)fclose(file);
        if (strncmp(text, sleeps, strlen(sleeps)) == 0)
            return;
        (void)usleep(1000);
    }
    fail_msg("nobody sleeps in the driver");
}

static void *read_power(void *device)
{
    unsigned int power;
    atomic_store(&caller, (int)syscall(SYS_gettid));
    return (void *)(uintptr_t)nv.nvmlDeviceGetPowerUsage(device, &power);
}

static void slow_calls_do_not_wait_for_each_other(void **state)
{
    (void)state;
    pthread_t threads[8];
    start(machine_file("580.105.08", ", \"latency_us\": {\"nvmlDeviceGetPowerUsage\": 1000000}"));
    nvmlDevice_t device = gpu(0);
    uint64_t begin = now_ms();
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_power, device), 0);
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_in_range(now_ms() - begin, 1000, 4000);
}

static void shutdown_beside_a_hanging_call_is_survived(void **state)
{
    (void)state;
    pthread_t thread;
    atomic_store(&caller, 0);
    start(machine_file("580.105.08", ", \"faults\": [\"0:hang=300ms:nvmlDeviceGetPowerUsage\"]"));
    assert_int_equal(pthread_create(&thread, NULL, read_power, gpu(0)), 0);
    await_sleep();
    OK(nvmlShutdown());
    start("t4");
    void *result;
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_int_equal((uintptr_t)result, NVML_SUCCESS);
}

static void *shut_down(void *unused)
{
    (void)unused;
    atomic_store(&caller, (int)syscall(SYS_gettid));
    return (void *)(uintptr_t)nv.nvmlShutdown();
}

static void a_hanging_shutdown_keeps_its_session(void **state)
{
    (void)state;
    pthread_t thread;
    start("h100x2");
    OK(nvmlInit_v2());
    assert_int_equal(tool("fault -m h100x2 slow=2s:nvmlShutdown"), 0);
    atomic_store(&caller, 0);
    assert_int_equal(pthread_create(&thread, NULL, shut_down, NULL), 0);
    await_sleep();
    assert_int_equal(tool("fault -m h100x2 clear"), 0);
    OK(nvmlShutdown());
    OK(nvmlShutdown());
    void *result;
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_int_equal((uintptr_t)result, NVML_ERROR_UNINITIALIZED);
}

static void *call_until_told(void *stop_flag)
{
    atomic_bool *stopped = stop_flag;
    while (!atomic_load(stopped)) {
        nvmlDevice_t device;
        unsigned int value, count = 8;
        char name[96];
        nvmlProcessInfo_t infos[8];
        if (nv.nvmlDeviceGetHandleByIndex_v2(1, &device) != NVML_SUCCESS)
            continue;
        (void)nv.nvmlDeviceGetPowerUsage(device, &value);
        (void)nv.nvmlDeviceGetName(device, name, sizeof(name));
        (void)nv.nvmlDeviceGetComputeRunningProcesses_v3(device, &count, infos);
    }
    return NULL;
}

static void calls_survive_init_and_shutdown_beside_them(void **state)
{
    (void)state;
    static atomic_bool stopped;
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_until_told, &stopped), 0);
    for (int i = 0; i < 30; i++) {
        start("h100x2");
        OK(nvmlShutdown());
    }
    atomic_store(&stopped, true);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

static void a_state_directory_open_to_others_is_refused(void **state)
{
    (void)state;
    assert_int_equal(chmod(folder, 0755), 0);
    assert_int_equal(tool("fault -m t4 lost 2>/dev/null"), 5);
    start("t4"); /* works, without anything shared */
    unsigned int value;
    OK(nvmlDeviceGetPowerUsage(gpu(0), &value));
    assert_int_equal(chmod(folder, 0700), 0);
}

/* ------------------------------------------------------------------------- jobs */

static pid_t start_job(const char *arguments, const char *output)
{
    char command[1200];
    (void)snprintf(command, sizeof(command), "exec '%s/gpulse-sim' load %s > '%s/%s' 2>&1", build,
                   arguments, folder, output);
    pid_t pid = fork();
    if (pid == 0) {
        (void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    return pid;
}

static void read_output(const char *name, char *text, size_t size)
{
    char path[192];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    text[fread(text, 1, size - 1, f)] = '\0';
    (void)fclose(f);
}

static void wait_for_output(const char *name)
{
    char text[512] = "";
    char path[192];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    for (int i = 0; i < 1000 && !strstr(text, "holds"); i++) {
        (void)usleep(10000);
        if (access(path, F_OK) == 0) /* on a busy machine it comes late */
            read_output(name, text, sizeof(text));
    }
    assert_non_null(strstr(text, "holds"));
}

static unsigned int compute_processes(nvmlDevice_t device, nvmlProcessInfo_t *infos)
{
    unsigned int count = 16;
    OK(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, infos));
    return count;
}

static void jobs_appear_hold_memory_and_go(void **state)
{
    (void)state;
    nvmlProcessInfo_t infos[16];
    nvmlMemory_v2_t before = {.version = nvmlMemory_v2}, during = before;
    nvmlUtilization_t util;
    char text[2048];
    int status;
    start("h100");
    OK(nvmlDeviceGetMemoryInfo_v2(gpu(7), &before));
    pid_t pid = start_job("-m h100 --gpu 7 --mem 60GiB --util 70 --name big", "job");
    wait_for_output("job");
    assert_int_equal(compute_processes(gpu(7), infos), 1);
    assert_int_equal(infos[0].pid, pid);
    assert_int_equal(infos[0].usedGpuMemory, UINT64_C(60) << 30);
    OK(nvmlSystemGetProcessName((unsigned int)pid, text, sizeof(text)));
    assert_string_equal(text, "big");
    OK(nvmlDeviceGetMemoryInfo_v2(gpu(7), &during));
    assert_int_equal(during.used - before.used, UINT64_C(60) << 30);
    OK(nvmlDeviceGetUtilizationRates(gpu(7), &util));
    assert_int_equal(util.gpu, 70);

    assert_int_equal(waitpid(start_job("-m h100 --gpu 7 --mem 30GiB", "oom"), &status, 0) > 0, 1);
    assert_int_equal(WEXITSTATUS(status), 1);
    read_output("oom", text, sizeof(text));
    assert_non_null(strstr(text,
                           "CUDA out of memory. Tried to allocate 30.00 GiB. GPU 7 has a "
                           "total capacity of 79.65 GiB of which 19.18 GiB is free. Process "));

    assert_int_equal(kill(pid, SIGTERM), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(compute_processes(gpu(7), infos), 0);

    pid = start_job("-m h100 --gpu 7 --mem 1GiB", "killed");
    wait_for_output("killed");
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    (void)usleep(150000);
    assert_int_equal(compute_processes(gpu(7), infos), 0);
}

static void jobs_run_on_mig_devices(void **state)
{
    (void)state;
    nvmlProcessInfo_t infos[16];
    nvmlDevice_t mig, other;
    int status;
    start("a100-mig");
    OK(nvmlDeviceGetMigDeviceHandleByIndex(gpu(0), 1, &mig));
    OK(nvmlDeviceGetMigDeviceHandleByIndex(gpu(0), 3, &other));
    assert_int_equal(setenv("CUDA_VISIBLE_DEVICES", "MIG-00000400", 1), 0);
    pid_t pid = start_job("-m a100-mig --mem 12GiB", "mig");
    wait_for_output("mig");
    assert_int_equal(compute_processes(other, infos), 0);
    assert_int_equal(compute_processes(mig, infos), 1);
    assert_int_equal(infos[0].pid, pid);
    assert_int_equal(infos[0].gpuInstanceId, 4);
    nvmlMemory_v2_t memory = {.version = nvmlMemory_v2};
    OK(nvmlDeviceGetMemoryInfo_v2(mig, &memory));
    assert_true(memory.used >= UINT64_C(12) << 30);
    assert_int_equal(waitpid(start_job("-m a100-mig --mem 12GiB", "migoom"), &status, 0) > 0, 1);
    assert_int_equal(WEXITSTATUS(status), 1);
    assert_int_equal(kill(pid, SIGTERM), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(unsetenv("CUDA_VISIBLE_DEVICES"), 0);
}

static void jobs_obey_cuda_visible_devices(void **state)
{
    (void)state;
    nvmlProcessInfo_t infos[16];
    char text[512];
    int status;
    start("h100");
    assert_int_equal(setenv("CUDA_VISIBLE_DEVICES", "GPU-00000007,6,99,0", 1), 0);
    pid_t pid = start_job("-m h100 --gpu 0 --for 30s", "visible");
    wait_for_output("visible");
    assert_int_equal(compute_processes(gpu(7), infos), 1);
    assert_int_equal(kill(pid, SIGINT), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(waitpid(start_job("-m h100 --gpu 2", "beyond"), &status, 0) > 0, 1);
    assert_int_equal(WEXITSTATUS(status), 1);
    read_output("beyond", text, sizeof(text));
    assert_non_null(strstr(text, "invalid device ordinal"));
    assert_int_equal(setenv("CUDA_VISIBLE_DEVICES", "", 1), 0);
    assert_int_equal(waitpid(start_job("-m h100", "none"), &status, 0) > 0, 1);
    read_output("none", text, sizeof(text));
    assert_non_null(strstr(text, "no CUDA-capable device"));
    assert_int_equal(unsetenv("CUDA_VISIBLE_DEVICES"), 0);
}

/* ------------------------------------------------------------------------- counting, errors */

static void calls_are_counted(void **state)
{
    (void)state;
    char text[512], path[192];
    unsigned int value;
    (void)snprintf(path, sizeof(path), "%s/counts", folder);
    assert_int_equal(setenv("GPULSE_SIM_COUNT", path, 1), 0);
    start("t4");
    nvmlDevice_t device = gpu(0);
    for (int i = 0; i < 3; i++)
        OK(nvmlDeviceGetPowerUsage(device, &value));
    OK(nvmlShutdown());
    assert_int_equal(unsetenv("GPULSE_SIM_COUNT"), 0);
    read_output("counts", text, sizeof(text));
    assert_string_equal(text, "nvmlInit_v2 1\nnvmlShutdown 1\nnvmlDeviceGetHandleByIndex_v2 1\n"
                              "nvmlDeviceGetPowerUsage 3\n");
}

static void broken_machine_files_say_where(void **state)
{
    (void)state;
    static const struct {
        const char *rest, *words;
    } cases[] = {
        {", \"workload\": [{\"pid\": 1, \"gpus\": [1]}]",
         "workload[0]: gpus: expected numbers from 0 to 0"},
        {", \"missing\": [\"nvmlX\"]", "missing[0]: 'nvmlX' is not a function"},
        {", \"faults\": [\"0:sleepy\"]", "faults[0]: unknown fault 'sleepy'"},
        {", \"sed\": 1", "unknown key 'sed' (did you mean 'seed'?)"},
        {", \"seed\": -1", "seed: expected a number from 0"},
        {", \"seed\": 1,,", ":1:"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(setenv("GPULSE_SIM", machine_file("580.1", cases[i].rest), 1), 0);
        REFUSED(nvmlInit_v2(), UNKNOWN);
        if (!strstr(nv.gpulse_sim_error(), cases[i].words))
            fail_msg("'%s' is not in '%s'", cases[i].words, nv.gpulse_sim_error());
    }
}

#define TEST(function) cmocka_unit_test_teardown(function, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_works_before_init_or_after_shutdown),
        TEST(handles_of_an_earlier_init_are_refused),
        TEST(a_wrong_machine_is_explained),
        TEST(bad_arguments_are_refused),
        TEST(version_words_are_checked_before_anything_is_written),
        TEST(forms_of_the_fabric),
        TEST(structs_of_identity_and_health),
        TEST(rows_by_driver),
        TEST(older_pci_calls_write_less),
        TEST(devices_are_found_by_every_name),
        TEST(lists_follow_the_capacity_protocol),
        TEST(process_entries_were_wider_in_early_535),
        TEST(process_utilization_needs_the_whole_buffer),
        TEST(old_drivers_lack_new_functions),
        TEST(a_still_machine_answers_its_capture),
        TEST(moving_values_stay_believable),
        TEST(mig_devices_have_values_of_their_own),
        TEST(a_lost_gpu_stays_lost_until_init),
        TEST(faults_are_limited_to_gpu_and_function),
        TEST(wrong_faults_are_refused_as_a_whole),
        TEST(absurd_values_and_growing_lists),
        TEST(slow_calls_do_not_wait_for_each_other),
        TEST(shutdown_beside_a_hanging_call_is_survived),
        TEST(a_hanging_shutdown_keeps_its_session),
        TEST(calls_survive_init_and_shutdown_beside_them),
        TEST(a_state_directory_open_to_others_is_refused),
        TEST(jobs_appear_hold_memory_and_go),
        TEST(jobs_run_on_mig_devices),
        TEST(jobs_obey_cuda_visible_devices),
        TEST(calls_are_counted),
        TEST(broken_machine_files_say_where),
    };
    return cmocka_run_group_tests_name("sim", tests, load_library, remove_folder);
}
