/* The NVML source: what a GPU is, how its memory fares, the fabric: structs in several versions,
 * numbers with names, fields of strange types. */
#include "nvml_rig.h"

#include <malloc.h>
#include <sys/stat.h>

static void want_range(enum gp_metric first, enum gp_metric last)
{
    for (enum gp_metric m = first; m <= last; m++)
        want(m);
}

static void check_text(enum gp_metric m, const char *expected)
{
    if (value(m)->status != GP_STATUS_OK)
        fail_msg("%s is absent: %d", GP_METRIC_NAME(m), value(m)->status);
    assert_string_equal(value(m)->s, expected);
}

static void check_text_or_none(enum gp_metric m, const char *expected)
{
    if (expected)
        check_text(m, expected);
    else
        check_absent(m, GP_STATUS_UNSUPPORTED);
}

static void check_real(enum gp_metric m, double expected)
{
    assert_int_equal(value(m)->status, GP_STATUS_OK);
    if (value(m)->f < expected - 1e-9 || value(m)->f > expected + 1e-9)
        fail_msg("%s is %f, expected %f", GP_METRIC_NAME(m), value(m)->f, expected);
}

/* Slow values are asked again, refused ones too. */
static void read_anew(void)
{
    after_ms(120000);
    read_ok();
}

/* ---- fabric ---- */

enum { COMPLETED = 3 };

static void start_with_fabric(unsigned newest, nvmlReturn_t refusal)
{
    rig.fake->fabric = (nvmlGpuFabricInfo_v3_t){
        .clusterUuid = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xfe, 0xdc, 0xba, 0x98,
                        0x76, 0x54, 0x32, 0x10},
        .cliqueId = 7,
        .state = COMPLETED,
        .healthMask = 0x2 | 0x2 << 2 | 0x1 << 4 | 0x2 << 6 | 0x5 << 8 | 0x1 << 12,
        .healthSummary = 3,
    };
    rig.fake->fabric_version = newest;
    rig.fake->version_refusal = refusal;
    want_range(GP_FABRIC_STATE, GP_FABRIC_PARTITION);
    start();
    read_ok();
}

static void check_registration(void)
{
    check_text(GP_FABRIC_STATE, "Completed");
    check_text(GP_FABRIC_STATUS, "Success");
    check_number(GP_FABRIC_CLIQUE, 7);
    check_text(GP_FABRIC_CLUSTER, "01234567-89ab-cdef-fedc-ba9876543210");
}

static void check_health(void)
{
    check_text(GP_FABRIC_BANDWIDTH, "Full");
    check_text(GP_FABRIC_RECOVERY, "False");
    check_text(GP_FABRIC_UNHEALTHY, "True");
    check_text(GP_FABRIC_TIMEOUT, "False");
    check_text(GP_FABRIC_CONFIGURATION, "Insufficient Nvlinks");
    check_text(GP_FABRIC_PARTITION, "True");
}

static void the_fabric_in_its_newest_form(void **state)
{
    (void)state;
    start_with_fabric(3, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    check_registration();
    check_health();
    check_text(GP_FABRIC_HEALTH, "Limited Capacity");
    assert_int_equal(CALLS(nvmlDeviceGetGpuFabricInfoV), 1);
}

static void the_fabric_of_a_driver_that_knows_the_second_form(void **state)
{
    (void)state;
    /* some calls refuse a version in the older way */
    start_with_fabric(2, NVML_ERROR_INVALID_ARGUMENT);
    check_registration();
    check_health();
    check_absent(GP_FABRIC_HEALTH, GP_STATUS_UNSUPPORTED);
    assert_int_equal(CALLS(nvmlDeviceGetGpuFabricInfoV), 2);
    assert_int_equal(CALLS(nvmlDeviceGetGpuFabricInfo), 0);
}

static void the_fabric_of_a_driver_that_knows_the_first_form(void **state)
{
    (void)state;
    start_with_fabric(0, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    check_registration();
    for (enum gp_metric m = GP_FABRIC_HEALTH; m <= GP_FABRIC_PARTITION; m++)
        check_absent(m, GP_STATUS_UNSUPPORTED);
    assert_int_equal(CALLS(nvmlDeviceGetGpuFabricInfo), 1);
    ANSWERS(nvmlDeviceGetGpuFabricInfoV, NVML_ERROR_FUNCTION_NOT_FOUND);
    read_anew();
    check_registration();
    assert_int_equal(CALLS(nvmlDeviceGetGpuFabricInfo), 2);
    /* a GPU without a fabric is not asked twice */
    ANSWERS(nvmlDeviceGetGpuFabricInfoV, NVML_ERROR_NOT_SUPPORTED);
    read_anew();
    check_absent(GP_FABRIC_STATE, GP_STATUS_UNSUPPORTED);
    assert_int_equal(CALLS(nvmlDeviceGetGpuFabricInfo), 2);
}

static void an_outcome_needs_an_end(void **state)
{
    (void)state;
    start_with_fabric(3, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    rig.fake->fabric.state = 2;
    read_anew();
    check_text(GP_FABRIC_STATE, "In Progress");
    for (enum gp_metric m = GP_FABRIC_STATUS; m <= GP_FABRIC_CLUSTER; m++)
        check_absent(m, GP_STATUS_UNSUPPORTED);
    rig.fake->fabric.state = COMPLETED;
    rig.fake->fabric.status = NVML_ERROR_NOT_READY;
    rig.fake->fabric.healthMask = 0x3 | 0xf << 8;
    rig.fake->fabric.healthSummary = 200;
    read_anew();
    check_text(GP_FABRIC_STATUS, "Not Ready");
    /* numbers of a driver to come, and parts that the driver does not tell */
    for (enum gp_metric m = GP_FABRIC_HEALTH; m <= GP_FABRIC_PARTITION; m++)
        check_absent(m, m == GP_FABRIC_HEALTH || m == GP_FABRIC_BANDWIDTH ||
                                m == GP_FABRIC_CONFIGURATION
                            ? GP_STATUS_ERROR
                            : GP_STATUS_UNSUPPORTED);
}

/* ---- platform ---- */

static void the_platform_in_both_forms(void **state)
{
    (void)state;
    want_range(GP_PLATFORM_CHASSIS, GP_PLATFORM_GUID);
    rig.fake->platform = (nvmlPlatformInfo_t){.ibGuid = {0, 0, 0, 0, 0, 0, 0xa, 0x1b, 0xff},
                                              .slotNumber = 14,
                                              .trayIndex = UINT8_MAX,
                                              .hostId = 0,
                                              .peerType = 1,
                                              .moduleId = 3};
    memcpy(rig.fake->platform.chassisSerialNumber, "0123456789abcdef", 16); /* without an end */
    start();
    read_ok();
    check_text(GP_PLATFORM_CHASSIS, "0123456789abcdef");
    check_number(GP_PLATFORM_SLOT, 14);
    check_absent(GP_PLATFORM_TRAY, GP_STATUS_UNSUPPORTED);
    check_number(GP_PLATFORM_HOST, 0);
    check_text(GP_PLATFORM_PEER, "Switch Connected");
    check_number(GP_PLATFORM_MODULE, 3);
    check_text(GP_PLATFORM_GUID, "0x0000000000000a1b");
    leave();
    rig.fake->platform_v1 = true;
    rig.fake->platform.ibGuid[6] = rig.fake->platform.ibGuid[7] = 0;
    start();
    read_ok();
    check_absent(GP_PLATFORM_CHASSIS, GP_STATUS_UNSUPPORTED); /* there stands the rack's identity */
    check_number(GP_PLATFORM_SLOT, 14);
    check_absent(GP_PLATFORM_GUID, GP_STATUS_UNSUPPORTED);
}

/* ---- identity ---- */

static void the_pci_class_comes_from_the_newer_call(void **state)
{
    (void)state;
    want_range(GP_PCI_BUS_ID, GP_PCI_SUB_DEVICE_ID);
    rig.fake->pci = (nvmlPciInfoExt_t){.domain = 15,
                                       .bus = 1,
                                       .pciDeviceId = 0x2e1210de,
                                       .baseClass = 3,
                                       .subClass = 2,
                                       .busId = "0000000F:01:00.0"};
    start();
    read_ok();
    check_text(GP_PCI_BUS_ID, "0000000F:01:00.0");
    check_text(GP_PCI_DOMAIN, "0x000F");
    check_text(GP_PCI_BASE_CLASS, "0x3");
    check_text(GP_PCI_SUB_CLASS, "0x2");
    assert_int_equal(CALLS(nvmlDeviceGetPciInfo_v3), 0);
    static const nvmlReturn_t codes[] = {NVML_ERROR_FUNCTION_NOT_FOUND,
                                         NVML_ERROR_ARGUMENT_VERSION_MISMATCH};
    for (size_t i = 0; i < GP_ARRAY_LEN(codes); i++) {
        leave();
        ANSWERS(nvmlDeviceGetPciInfoExt, codes[i]);
        start();
        read_ok();
        check_text(GP_PCI_BUS_ID, "0000000F:01:00.0");
        check_text(GP_PCI_DEVICE_ID, "0x2E1210DE");
        check_absent(GP_PCI_BASE_CLASS, GP_STATUS_UNSUPPORTED);
        check_absent(GP_PCI_SUB_CLASS, GP_STATUS_UNSUPPORTED);
    }
}

static void the_generation_of_the_slot_comes_from_the_kernel(void **state)
{
    (void)state;
    char path[256];
    want(GP_PCIE_GEN_HOST_MAX);
    rig.fake->pci = (nvmlPciInfoExt_t){.bus = 1};
    start();
    read_ok();
    check_absent(GP_PCIE_GEN_HOST_MAX, GP_STATUS_UNSUPPORTED);
    static const char *const folders[] = {"sys", "sys/bus", "sys/bus/pci", "sys/bus/pci/devices",
                                          "sys/bus/pci/devices/0000:01:00.0"};
    for (size_t i = 0; i < GP_ARRAY_LEN(folders); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", rig.root, folders[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    static const struct {
        const char *text;
        int64_t generation; /* 0: none */
    } speeds[] = {{"Unknown\n", 0},        {"2.5 GT/s PCIe\n", 1},  {"16.0 GT/s PCIe\n", 4},
                  {"32.0 GT/s PCIe\n", 5}, {"64.0 GT/s PCIe\n", 6}, {"1000 GT/s\n", 0}};
    (void)snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/max_link_speed", rig.root);
    for (size_t i = 0; i < GP_ARRAY_LEN(speeds); i++) {
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        assert_true(fputs(speeds[i].text, file) >= 0);
        assert_int_equal(fclose(file), 0);
        leave();
        start();
        read_ok();
        if (speeds[i].generation)
            check_number(GP_PCIE_GEN_HOST_MAX, speeds[i].generation);
        else
            check_absent(GP_PCIE_GEN_HOST_MAX, GP_STATUS_UNSUPPORTED);
    }
}

static void the_bridge_next_to_the_gpu(void **state)
{
    (void)state;
    static const struct {
        unsigned words[5]; /* number of bridges, their types, their firmware */
        const char *type, *firmware;
    } boards[] = {
        {{0, 0, 0, 7, 7}, NULL, NULL},
        {{1, NVML_BRIDGE_CHIP_PLX, 0, 0xf0472900, 0}, "PLX", "0xF0472900"},
        {{2, NVML_BRIDGE_CHIP_BRO4, NVML_BRIDGE_CHIP_PLX, 0, 7}, "BRO4", NULL},
    };
    want_range(GP_BRIDGE_TYPE, GP_BRIDGE_FIRMWARE);
    start();
    for (size_t i = 0; i < GP_ARRAY_LEN(boards); i++) {
        leave();
        memcpy(rig.fake->words, boards[i].words, sizeof(boards[i].words));
        start();
        read_ok();
        check_text_or_none(GP_BRIDGE_TYPE, boards[i].type);
        check_text_or_none(GP_BRIDGE_FIRMWARE, boards[i].firmware);
    }
}

static void a_damaged_inforom_is_an_answer(void **state)
{
    (void)state;
    want_range(GP_INFOROM_OEM, GP_INFOROM_CHECKSUM);
    rig.fake->text = "7.16";
    start();
    read_ok();
    check_absent(GP_INFOROM_OEM, GP_STATUS_UNSUPPORTED);
    check_text(GP_INFOROM_ECC, "7.16");
    check_text(GP_INFOROM_CHECKSUM, "valid");
    leave();
    ANSWERS(nvmlDeviceValidateInforom, NVML_ERROR_CORRUPTED_INFOROM);
    start();
    read_ok();
    check_text(GP_INFOROM_CHECKSUM, "invalid");
    leave();
    ANSWERS(nvmlDeviceValidateInforom, NVML_ERROR_NOT_SUPPORTED);
    start();
    read_ok();
    check_absent(GP_INFOROM_CHECKSUM, GP_STATUS_UNSUPPORTED);
}

static void text_that_stays_the_same_takes_no_memory(void **state)
{
    (void)state;
    want(GP_BBX_FLUSH_TIME);
    want_range(GP_FABRIC_STATE, GP_FABRIC_CLUSTER);
    rig.fake->count = 1787237943740000;
    rig.fake->fabric.state = COMPLETED;
    rig.fake->fabric_version = 3;
    start();
    for (int i = 0; i < 10; i++)
        read_anew();
    size_t before = mallinfo2().uordblks;
    for (int i = 0; i < 2000; i++)
        read_anew();
    size_t after = mallinfo2().uordblks; /* 0 with a sanitizer */
    assert_int_equal(CALLS(nvmlDeviceGetLastBBXFlushTime), 2010);
    if (after > before + 4096)
        fail_msg("%zu bytes more", after - before);
}

static void the_recorder_and_the_factory(void **state)
{
    (void)state;
    want_range(GP_BBX_FLUSH_TIME, GP_BBX_FLUSH_DURATION);
    want(GP_PDI);
    want(GP_GSP_FIRMWARE);
    rig.fake->count = 0xd52bae2e458244e2;
    rig.fake->words[0] = 93088;
    rig.fake->text = "";
    start();
    read_ok();
    check_text(GP_PDI, "0xd52bae2e458244e2");
    check_impossible(GP_BBX_FLUSH_TIME); /* microseconds of a far future */
    check_number(GP_BBX_FLUSH_DURATION, 93088);
    check_absent(GP_GSP_FIRMWARE, GP_STATUS_UNSUPPORTED); /* an empty text is none */
    rig.fake->count = 1787237943740000;
    read_anew();
    assert_memory_equal(value(GP_BBX_FLUSH_TIME)->s, "2026-08-2", 9); /* in the zone of the test */
    assert_non_null(strstr(value(GP_BBX_FLUSH_TIME)->s, ":03.740"));
    ANSWERS(nvmlDeviceGetLastBBXFlushTime, NVML_ERROR_NOT_READY);
    read_anew();
    check_absent(GP_BBX_FLUSH_TIME, GP_STATUS_UNSUPPORTED);
    check_absent(GP_BBX_FLUSH_DURATION, GP_STATUS_UNSUPPORTED);
}

/* ---- the forms of a row ---- */

static void numbers_in_pairs_triples_and_structs(void **state)
{
    (void)state;
    want_range(GP_DRIVER_MODEL, GP_DRIVER_MODEL_PENDING);
    want_range(GP_ENCODER_SESSIONS, GP_ENCODER_LATENCY);
    want_range(GP_ECC_CHANNEL_REPAIR, GP_ECC_TPC_REPAIR);
    want_range(GP_HISTOGRAM_MAX, GP_HISTOGRAM_NONE);
    for (unsigned i = 0; i < 5; i++)
        rig.fake->words[i] = i;
    start();
    read_ok();
    check_text(GP_DRIVER_MODEL, "WDDM");
    check_text(GP_DRIVER_MODEL_PENDING, "TCC");
    check_number(GP_ENCODER_SESSIONS, 0);
    check_number(GP_ENCODER_FPS, 1);
    check_number(GP_ENCODER_LATENCY, 2);
    check_text(GP_ECC_CHANNEL_REPAIR, "No");
    check_text(GP_ECC_TPC_REPAIR, "Yes");
    for (int i = 0; i < 5; i++)
        check_number((enum gp_metric)(GP_HISTOGRAM_MAX + i), i);
    rig.fake->words[1] = 9;
    rig.fake->words[4] = UINT32_MAX;
    read_anew();
    check_absent(GP_DRIVER_MODEL_PENDING, GP_STATUS_ERROR);
    assert_string_equal(value(GP_DRIVER_MODEL_PENDING)->s, "a number without a known name");
    check_impossible(GP_HISTOGRAM_NONE);
    check_number(GP_HISTOGRAM_HIGH, 9);
}

static void what_newer_drivers_call_deprecated(void **state)
{
    (void)state;
    want_range(GP_CLOCK_APP_GRAPHICS, GP_CLOCK_APP_MEMORY);
    rig.fake->clock_mhz = 1980;
    start();
    read_ok();
    check_number(GP_CLOCK_APP_GRAPHICS, 1980);
    ANSWERS(nvmlDeviceGetApplicationsClock, NVML_ERROR_DEPRECATED);
    read_anew();
    check_absent(GP_CLOCK_APP_GRAPHICS, GP_STATUS_UNSUPPORTED);
    check_absent(GP_CLOCK_APP_MEMORY, GP_STATUS_UNSUPPORTED);
}

/* Others may come. */
static void capabilities_are_bits(void **state)
{
    (void)state;
    static const char *const words[] = {"disabled", "enabled", "disabled", "enabled"};
    want(GP_EGM);
    start();
    for (unsigned mask = 0; mask < GP_ARRAY_LEN(words); mask++) {
        leave();
        rig.fake->words[0] = mask;
        start();
        read_ok();
        check_text(GP_EGM, words[mask]);
    }
}

/* ---- memory errors ---- */

static void errors_by_place(void **state)
{
    (void)state;
    want(GP_ECC_UNCORRECTED_AGGREGATE_DEVICE_MEMORY);
    want(GP_ECC_UNCORRECTED_AGGREGATE_DRAM);
    rig.fake->count = 5;
    start();
    read_ok();
    /* two names of one place are one call */
    check_number(GP_ECC_UNCORRECTED_AGGREGATE_DEVICE_MEMORY, 115);
    check_number(GP_ECC_UNCORRECTED_AGGREGATE_DRAM, 115);
    assert_int_equal(rig.fake->asked_location, NVML_MEMORY_LOCATION_DRAM);
    assert_int_equal(CALLS(nvmlDeviceGetMemoryErrorCounter), 1);
    rig.fake->count = UINT64_MAX - 110;
    read_anew();
    check_impossible(GP_ECC_UNCORRECTED_AGGREGATE_DRAM);
}

static void errors_of_the_memories_on_the_chip(void **state)
{
    (void)state;
    want_range(GP_ECC_SRAM_VOLATILE_PARITY, GP_ECC_SRAM_OTHER);
    rig.fake->sram = (nvmlEccSramErrorStatus_t){.aggregateUncParity = 1,
                                                .aggregateUncSecDed = 2,
                                                .volatileUncParity = 3,
                                                .volatileUncSecDed = 4,
                                                .aggregateUncBucketL2 = 5,
                                                .aggregateUncBucketSm = 6,
                                                .aggregateUncBucketPcie = 7,
                                                .aggregateUncBucketMcu = 8,
                                                .aggregateUncBucketOther = UINT64_MAX,
                                                .bThresholdExceeded = 1};
    start();
    read_ok();
    static const int expected[] = {3, 4, 1, 2, 0, 5, 6, 8, 7};
    for (int i = 0; i < (int)GP_ARRAY_LEN(expected); i++)
        if (GP_ECC_SRAM_VOLATILE_PARITY + i != GP_ECC_SRAM_THRESHOLD)
            check_number((enum gp_metric)(GP_ECC_SRAM_VOLATILE_PARITY + i), expected[i]);
    check_text(GP_ECC_SRAM_THRESHOLD, "Yes");
    check_impossible(GP_ECC_SRAM_OTHER);
    ANSWERS(nvmlDeviceGetSramEccErrorStatus, NVML_ERROR_NO_PERMISSION);
    read_anew();
    check_absent(GP_ECC_SRAM_L2, GP_STATUS_NO_PERMISSION);
}

static void rows_replaced_and_encryption(void **state)
{
    (void)state;
    want_range(GP_REMAPPED_CORRECTABLE, GP_REMAPPED_FAILURE);
    want_range(GP_DRAM_ENCRYPTION, GP_DRAM_ENCRYPTION_PENDING);
    rig.fake->words[0] = 0;
    rig.fake->words[1] = 2;
    rig.fake->words[3] = 1;
    start();
    read_ok();
    check_number(GP_REMAPPED_CORRECTABLE, 0);
    check_number(GP_REMAPPED_UNCORRECTABLE, 2);
    check_text(GP_REMAPPED_PENDING, "No");
    check_text(GP_REMAPPED_FAILURE, "Yes");
    check_text(GP_DRAM_ENCRYPTION, "Disabled");
    check_text(GP_DRAM_ENCRYPTION_PENDING, "Enabled");
}

/* ---- fields ---- */

static void set_field(nvmlValueType_t type, nvmlValue_t v)
{
    rig.fake->field = (nvmlFieldValue_t){.valueType = type, .value = v};
}

/* With ECC off some drivers leave the type unset, which reads as "double". */
static void counters_whose_type_was_not_set(void **state)
{
    (void)state;
    want(GP_RETIRED_DBE);
    want(GP_RETIRED_PENDING);
    set_field(NVML_VALUE_TYPE_DOUBLE, (nvmlValue_t){.ullVal = 1});
    start();
    read_ok();
    check_number(GP_RETIRED_DBE, 1);
    check_text(GP_RETIRED_PENDING, "Yes");
    set_field(NVML_VALUE_TYPE_DOUBLE, (nvmlValue_t){.dVal = 0});
    read_anew();
    check_number(GP_RETIRED_DBE, 0);
    check_text(GP_RETIRED_PENDING, "No");
}

static void fields_become_the_unit_of_the_metric(void **state)
{
    (void)state;
    want(GP_COUNTER_HW_THERMAL);
    want(GP_EDPP_MULTIPLIER);
    want(GP_SMOOTHING_PROFILE_RAMP_UP);
    set_field(NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, (nvmlValue_t){.ullVal = 99999});
    start();
    read_ok();
    check_number(GP_COUNTER_HW_THERMAL, 99); /* nanoseconds, whole microseconds */
    check_impossible(GP_EDPP_MULTIPLIER);
    check_real(GP_SMOOTHING_PROFILE_RAMP_UP, 99.999);
    set_field(NVML_VALUE_TYPE_DOUBLE, (nvmlValue_t){.dVal = 97.5});
    read_anew();
    check_real(GP_EDPP_MULTIPLIER, 97.5);
    set_field(NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, (nvmlValue_t){.ullVal = UINT64_MAX});
    read_anew();
    check_impossible(GP_COUNTER_HW_THERMAL);
    check_impossible(GP_EDPP_MULTIPLIER);
    check_impossible(GP_SMOOTHING_PROFILE_RAMP_UP);
}

static void each_power_has_its_scope(void **state)
{
    (void)state;
    static const struct {
        enum gp_metric metric;
        unsigned scope;
    } scopes[] = {{GP_POWER_DRAW_INSTANT, NVML_POWER_SCOPE_GPU},
                  {GP_MODULE_DRAW_AVERAGE, NVML_POWER_SCOPE_MODULE},
                  {GP_GPU_MEMORY_DRAW_AVERAGE, NVML_POWER_SCOPE_MEMORY},
                  {GP_BASE_CURRENT, NVML_POWER_SCOPE_GPU_BASE}};
    rig.fake->limit_max_mw = 1200000;
    set_field(NVML_VALUE_TYPE_UNSIGNED_INT, (nvmlValue_t){.uiVal = 2500000});
    start();
    for (size_t i = 0; i < GP_ARRAY_LEN(scopes); i++) {
        memset(&rig.want, 0, sizeof(rig.want));
        want(GP_POWER_LIMIT_MAX);
        want(scopes[i].metric);
        read_ok();
        assert_int_equal(rig.fake->asked_scope, scopes[i].scope);
        /* the limit of the board says nothing about the module around it */
        if (scopes[i].scope == NVML_POWER_SCOPE_GPU)
            check_impossible(scopes[i].metric);
        else
            check_real(scopes[i].metric, 2500);
    }
}

static void bits_have_names(void **state)
{
    (void)state;
    want(GP_PCIE_ATOMICS_IN);
    set_field(NVML_VALUE_TYPE_UNSIGNED_INT, (nvmlValue_t){.uiVal = 0x7f});
    start();
    read_ok();
    check_text(GP_PCIE_ATOMICS_IN, "FETCHADD_32 FETCHADD_64 SWAP_32 SWAP_64 CAS_32 CAS_64 CAS_128");
    leave();
    set_field(NVML_VALUE_TYPE_UNSIGNED_INT, (nvmlValue_t){.uiVal = 0});
    start();
    read_ok();
    check_absent(GP_PCIE_ATOMICS_IN, GP_STATUS_UNSUPPORTED);
}

static void links_between_chips_that_cannot_be_counted(void **state)
{
    (void)state;
    want_range(GP_C2C_LINKS_ACTIVE, GP_C2C_BANDWIDTH);
    set_field(NVML_VALUE_TYPE_UNSIGNED_INT, (nvmlValue_t){.uiVal = 1});
    start();
    read_ok();
    check_number(GP_C2C_LINKS_ACTIVE, 1);
    check_real(GP_C2C_BANDWIDTH, 1e6);
    set_field(NVML_VALUE_TYPE_UNSIGNED_INT, (nvmlValue_t){.uiVal = UINT32_MAX});
    read_anew();
    check_absent(GP_C2C_LINKS_ACTIVE, GP_STATUS_ERROR);
}

static void all_fields_in_few_calls(void **state)
{
    (void)state;
    want_range(GP_SMOOTHING_ENABLED, GP_SMOOTHING_ADMIN_ACT_OFFSET);
    start();
    read_ok();
    assert_int_equal(CALLS(nvmlDeviceGetFieldValues), 1);
}

/* ---- the host ---- */

static const char *host_text(const struct gp_value host[GP_HOST__COUNT], enum gp_metric m)
{
    return host[m].status == GP_STATUS_OK ? host[m].s : "-";
}

static void confidential_computing_is_asked_where_it_is_wanted(void **state)
{
    (void)state;
    struct gp_value host[GP_HOST__COUNT] = {{{0}, 0, 0}};
    struct gp_metric_set set = {{0}};
    start();
    rig.source->ops->read_host(rig.source, &set, host);
    assert_int_equal(CALLS(nvmlSystemGetConfComputeSettings), 0);
    assert_string_equal(host_text(host, GP_DRIVER_VERSION), "580.95.05");
    assert_string_equal(host_text(host, GP_KMD_VERSION), "580.95.05");
    for (enum gp_metric m = GP_CC_CPU; m <= GP_CC_READY; m++)
        gp_metric_set_add(&set, m);
    memcpy(rig.fake->words, (const unsigned[]){2, 1, 0, 1}, 4 * sizeof(unsigned));
    rig.source->ops->read_host(rig.source, &set, host);
    assert_string_equal(host_text(host, GP_CC_CPU), "Intel TDX");
    assert_string_equal(host_text(host, GP_CC_GPU), "Yes");
    assert_string_equal(host_text(host, GP_CC_FEATURE), "Enabled");
    assert_string_equal(host_text(host, GP_CC_ENVIRONMENT), "Production");
    assert_string_equal(host_text(host, GP_CC_DEVTOOLS), "Disabled");
    assert_string_equal(host_text(host, GP_CC_MULTI_GPU), "Protected PCIe");
    assert_string_equal(host_text(host, GP_CC_READY), "-"); /* 2 has no name */
    /* the older call knows nothing of several GPUs */
    ANSWERS(nvmlSystemGetConfComputeSettings, NVML_ERROR_FUNCTION_NOT_FOUND);
    rig.source->ops->read_host(rig.source, &set, host);
    assert_int_equal(CALLS(nvmlSystemGetConfComputeState), 1);
    assert_string_equal(host_text(host, GP_CC_ENVIRONMENT), "Production");
    assert_string_equal(host_text(host, GP_CC_MULTI_GPU), "-");
    ANSWERS(nvmlSystemGetConfComputeState, NVML_ERROR_UNKNOWN);
    rig.source->ops->read_host(rig.source, &set, host);
    assert_int_equal(host[GP_CC_FEATURE].status, GP_STATUS_ERROR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(the_fabric_in_its_newest_form),
        RIG_TEST(the_fabric_of_a_driver_that_knows_the_second_form),
        RIG_TEST(the_fabric_of_a_driver_that_knows_the_first_form),
        RIG_TEST(an_outcome_needs_an_end),
        RIG_TEST(the_platform_in_both_forms),
        RIG_TEST(the_pci_class_comes_from_the_newer_call),
        RIG_TEST(the_generation_of_the_slot_comes_from_the_kernel),
        RIG_TEST(the_bridge_next_to_the_gpu),
        RIG_TEST(a_damaged_inforom_is_an_answer),
        RIG_TEST(text_that_stays_the_same_takes_no_memory),
        RIG_TEST(the_recorder_and_the_factory),
        RIG_TEST(numbers_in_pairs_triples_and_structs),
        RIG_TEST(what_newer_drivers_call_deprecated),
        RIG_TEST(capabilities_are_bits),
        RIG_TEST(errors_by_place),
        RIG_TEST(errors_of_the_memories_on_the_chip),
        RIG_TEST(rows_replaced_and_encryption),
        RIG_TEST(counters_whose_type_was_not_set),
        RIG_TEST(fields_become_the_unit_of_the_metric),
        RIG_TEST(each_power_has_its_scope),
        RIG_TEST(bits_have_names),
        RIG_TEST(links_between_chips_that_cannot_be_counted),
        RIG_TEST(all_fields_in_few_calls),
        RIG_TEST(confidential_computing_is_asked_where_it_is_wanted),
    };
    return cmocka_run_group_tests_name("nvml_health", tests, NULL, NULL);
}
