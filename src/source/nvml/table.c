/* The readers of all metrics of GPUs and MIG instances, including those that do more than store one
 * number. */
#include "source/nvml/readers.h"

#include <stdio.h>
#include <string.h>

static nvmlReturn_t read_compute_cap(struct nvml_device *device, const struct reader *reader,
                                     struct gp_value *out)
{
    (void)reader;
    int major = 0;
    int minor = 0;
    nvmlReturn_t rc =
        NVML_CALL(device, nvmlDeviceGetCudaComputeCapability, device->handle, &major, &minor);
    if (rc != NVML_SUCCESS)
        return rc;
    char text[32];
    (void)snprintf(text, sizeof(text), "%d.%d", major, minor);
    nvml_keep_text(device, &out[0], text);
    return rc;
}

/* Since R510, the first version of the call counts the driver's reservation as used, so the second
 * version is preferred; without it, `reserved` is unknown. */
static nvmlReturn_t read_memory(struct nvml_device *device, const struct reader *reader,
                                struct gp_value *out)
{
    (void)reader;
    nvmlMemory_v2_t v2 = {.version = nvmlMemory_v2};
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetMemoryInfo_v2, device->handle, &v2);
    bool have_v2 = rc == NVML_SUCCESS;
    if (rc == NVML_ERROR_FUNCTION_NOT_FOUND || rc == NVML_ERROR_ARGUMENT_VERSION_MISMATCH) {
        nvmlMemory_t v1 = {0};
        rc = NVML_CALL(device, nvmlDeviceGetMemoryInfo, device->handle, &v1);
        v2 = (nvmlMemory_v2_t){.total = v1.total, .used = v1.used, .free = v1.free};
    }
    if (rc != NVML_SUCCESS)
        return rc;
    const unsigned long long numbers[4] = {v2.total, v2.reserved, v2.used, v2.free};
    for (size_t i = 0; i < 4; i++)
        if (v2.total == 0 || numbers[i] > v2.total)
            gp_value_set_absent(&out[i], GP_STATUS_ERROR, "impossible value", 0);
        else
            gp_value_set_int(&out[i], (int64_t)numbers[i], 0);
    if (!have_v2)
        gp_value_set_absent(&out[1], GP_STATUS_UNSUPPORTED, NULL, 0);
    return rc;
}

static nvmlReturn_t read_bar1(struct nvml_device *device, const struct reader *reader,
                              struct gp_value *out)
{
    (void)reader;
    nvmlBAR1Memory_t bar1 = {0};
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetBAR1MemoryInfo, device->handle, &bar1);
    gp_value_set_int(&out[0], (int64_t)bar1.bar1Total, 0);
    gp_value_set_int(&out[1], (int64_t)bar1.bar1Used, 0);
    gp_value_set_int(&out[2], (int64_t)bar1.bar1Free, 0);
    return rc;
}

static nvmlReturn_t read_utilization(struct nvml_device *device, const struct reader *reader,
                                     struct gp_value *out)
{
    (void)reader;
    nvmlUtilization_t utilization = {0};
    nvmlReturn_t rc =
        NVML_CALL(device, nvmlDeviceGetUtilizationRates, device->handle, &utilization);
    gp_value_set_int(&out[0], utilization.gpu, 0);
    gp_value_set_int(&out[1], utilization.memory, 0);
    return rc;
}

static nvmlReturn_t read_margin(struct nvml_device *device, const struct reader *reader,
                                struct gp_value *out)
{
    (void)reader;
    nvmlMarginTemperature_t margin = {.version = nvmlMarginTemperature_v1};
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetMarginTemperature, device->handle, &margin);
    gp_value_set_int(&out[0], margin.marginTemperature, 0);
    return rc;
}

static nvmlReturn_t read_capabilities(struct nvml_device *device, const struct reader *reader,
                                      struct gp_value *out)
{
    (void)reader;
    nvmlDeviceCapabilities_t caps = {.version = nvmlDeviceCapabilities_v1};
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetCapabilities, device->handle, &caps);
    gp_value_set_text(&out[0], caps.capMask & NVML_DEV_CAP_EGM ? "enabled" : "disabled", 0);
    return rc;
}

static nvmlReturn_t read_reasons_supported(struct nvml_device *device, const struct reader *reader,
                                           struct gp_value *out)
{
    (void)reader;
    unsigned long long mask = 0;
    nvmlReturn_t rc =
        NVML_CALL(device, nvmlDeviceGetSupportedClocksThrottleReasons, device->handle, &mask);
    gp_value_set_int(&out[0], (int64_t)mask, 0);
    return rc;
}

/* The older name of the call exists in every driver. */
static nvmlReturn_t read_reasons(struct nvml_device *device, const struct reader *reader,
                                 struct gp_value *out)
{
    (void)reader;
    static const uint64_t bits[] = {
        /* In the order of metric.def. */
        NVML_CLOCKS_EVENT_GPU_IDLE,       NVML_CLOCKS_EVENT_APPLICATIONS_CLOCKS,
        NVML_CLOCKS_EVENT_SW_POWER_CAP,   NVML_CLOCKS_EVENT_HW_SLOWDOWN,
        NVML_CLOCKS_EVENT_HW_THERMAL,     NVML_CLOCKS_EVENT_HW_POWER_BRAKE,
        NVML_CLOCKS_EVENT_SW_THERMAL,     NVML_CLOCKS_EVENT_SYNC_BOOST,
        NVML_CLOCKS_EVENT_DISPLAY_CLOCKS,
    };
    _Static_assert(GP_REASON_DISPLAY_CLOCKS - GP_REASONS_ACTIVE == GP_ARRAY_LEN(bits), "reasons");
    unsigned long long mask = 0;
    nvmlReturn_t rc =
        NVML_CALL(device, nvmlDeviceGetCurrentClocksThrottleReasons, device->handle, &mask);
    gp_value_set_int(&out[0], (int64_t)mask, 0);
    for (size_t i = 0; i < GP_ARRAY_LEN(bits); i++)
        gp_value_set_text(&out[i + 1], mask & bits[i] ? "Active" : "Not Active", 0);
    return rc;
}

static nvmlReturn_t read_pstate(struct nvml_device *device, const struct reader *reader,
                                struct gp_value *out)
{
    (void)reader;
    static const char *const names[] = {"P0", "P1", "P2",  "P3",  "P4",  "P5",  "P6",  "P7",
                                        "P8", "P9", "P10", "P11", "P12", "P13", "P14", "P15"};
    nvmlPstates_t state = NVML_PSTATE_UNKNOWN;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetPerformanceState, device->handle, &state);
    if ((unsigned)state < GP_ARRAY_LEN(names))
        gp_value_set_text(&out[0], names[state], 0);
    else
        gp_value_set_absent(&out[0], GP_STATUS_UNSUPPORTED, NULL, 0);
    return rc;
}

static nvmlReturn_t read_energy(struct nvml_device *device, const struct reader *reader,
                                struct gp_value *out)
{
    (void)reader;
    unsigned long long mj = 0;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetTotalEnergyConsumption, device->handle, &mj);
    gp_value_set_real(&out[0], mj == NVML_NOT_AVAILABLE_U64 ? -1 : (double)mj / 1000.0, 0);
    return rc;
}

/* Selects one of the four ECC totals: the argument of its row in the table. */
#define ECC_TOTAL(type, counter) ((unsigned)(type) << 1 | (unsigned)(counter))

static nvmlReturn_t read_ecc_total(struct nvml_device *device, const struct reader *reader,
                                   struct gp_value *out)
{
    unsigned long long count = 0;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetTotalEccErrors, device->handle,
                                (nvmlMemoryErrorType_t)(reader->arg >> 1),
                                (nvmlEccCounterType_t)(reader->arg & 1), &count);
    gp_value_set_int(&out[0], (int64_t)count, 0);
    return rc;
}

/* "3g.40gb" of "NVIDIA H100 80GB HBM3 MIG 3g.40gb", as nvidia-smi lists it: of an H200, an instance
 * of 16 GiB is 1g.18gb. Otherwise GPU slices and memory, which is rounded up to whole GiB;
 * "1c.3g.40gb" if the compute instance has only some of the slices. */
static void keep_mig_profile(struct nvml_device *device, const nvmlDeviceAttributes_t *a,
                             struct gp_value *v)
{
    static const char mark[] = " MIG ";
    char part[16] = "";
    char text[64];
    char name[NVML_DEVICE_NAME_V2_BUFFER_SIZE] = "";
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetName, device->handle, name, sizeof(name));
    name[sizeof(name) - 1] = '\0';
    const char *profile = rc == NVML_SUCCESS ? strstr(name, mark) : NULL;
    if (profile && strchr("0123456789", profile[strlen(mark)]) && profile[strlen(mark)]) {
        nvml_keep_text(device, v, profile + strlen(mark));
        return;
    }
    if (a->gpuInstanceSliceCount == 0 || a->computeInstanceSliceCount == 0) {
        gp_value_set_absent(v, GP_STATUS_UNSUPPORTED, NULL, 0);
        return;
    }
    if (a->computeInstanceSliceCount < a->gpuInstanceSliceCount)
        (void)snprintf(part, sizeof(part), "%uc.", a->computeInstanceSliceCount);
    (void)snprintf(text, sizeof(text), "%s%ug.%llugb", part, a->gpuInstanceSliceCount,
                   (a->memorySizeMB + 1023) / 1024);
    nvml_keep_text(device, v, text);
}

static nvmlReturn_t read_mig_attributes(struct nvml_device *device, const struct reader *reader,
                                        struct gp_value *out)
{
    (void)reader;
    nvmlDeviceAttributes_t a = {0};
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetAttributes_v2, device->handle, &a);
    const unsigned counts[] = {
        /* In the order of metric.def. */
        a.multiprocessorCount, a.sharedCopyEngineCount, a.sharedEncoderCount,
        a.sharedDecoderCount,  a.sharedOfaCount,        a.sharedJpegCount,
    };
    _Static_assert(GP_MIG_JPEG - GP_MIG_PROFILE == GP_ARRAY_LEN(counts), "MIG attributes");
    keep_mig_profile(device, &a, &out[0]);
    for (size_t i = 0; i < GP_ARRAY_LEN(counts); i++)
        gp_value_set_int(&out[i + 1], counts[i], 0);
    return rc;
}

/* ---- names of numbers, in nvidia-smi's words ---- */

static const struct code_name enabled_names[] = {{0, "Disabled"}, {1, "Enabled"}, {0, NULL}};

static const struct code_name on_names[] = {{0, "Off"}, {1, "On"}, {0, NULL}};

static const struct code_name yes_names[] = {{0, "No"}, {1, "Yes"}, {0, NULL}};

static const struct code_name supported_names[] = {
    {0, "Not Supported"}, {1, "Supported"}, {0, NULL}};

static const struct code_name brand_names[] = {
    {NVML_BRAND_QUADRO, "Quadro"},
    {NVML_BRAND_TESLA, "Tesla"},
    {NVML_BRAND_NVS, "NVS"},
    {NVML_BRAND_GRID, "Grid"},
    {NVML_BRAND_GEFORCE, "GeForce"},
    {NVML_BRAND_TITAN, "Titan"},
    {NVML_BRAND_NVIDIA_VAPPS, "NVIDIA Virtual Applications"},
    {NVML_BRAND_NVIDIA_VPC, "NVIDIA Virtual PC"},
    {NVML_BRAND_NVIDIA_VCS, "NVIDIA Virtual Compute Server"},
    {NVML_BRAND_NVIDIA_VWS, "NVIDIA RTX Virtual Workstation"},
    {NVML_BRAND_NVIDIA_CLOUD_GAMING, "NVIDIA Cloud Gaming"},
    {NVML_BRAND_QUADRO_RTX, "Quadro RTX"},
    {NVML_BRAND_NVIDIA_RTX, "NVIDIA RTX"},
    {NVML_BRAND_NVIDIA, "NVIDIA"},
    {NVML_BRAND_GEFORCE_RTX, "GeForce RTX"},
    {NVML_BRAND_TITAN_RTX, "Titan RTX"},
    {0, NULL},
};

static const struct code_name architecture_names[] = {
    {NVML_DEVICE_ARCH_KEPLER, "Kepler"},
    {NVML_DEVICE_ARCH_MAXWELL, "Maxwell"},
    {NVML_DEVICE_ARCH_PASCAL, "Pascal"},
    {NVML_DEVICE_ARCH_VOLTA, "Volta"},
    {NVML_DEVICE_ARCH_TURING, "Turing"},
    {NVML_DEVICE_ARCH_AMPERE, "Ampere"},
    {NVML_DEVICE_ARCH_ADA, "Ada Lovelace"},
    {NVML_DEVICE_ARCH_HOPPER, "Hopper"},
    {NVML_DEVICE_ARCH_BLACKWELL, "Blackwell"},
    {NVML_DEVICE_ARCH_RUBIN, "Rubin"},
    {0, NULL},
};

static const struct code_name compute_mode_names[] = {
    {NVML_COMPUTEMODE_DEFAULT, "Default"},
    {NVML_COMPUTEMODE_EXCLUSIVE_THREAD, "Exclusive_Thread"},
    {NVML_COMPUTEMODE_PROHIBITED, "Prohibited"},
    {NVML_COMPUTEMODE_EXCLUSIVE_PROCESS, "Exclusive_Process"},
    {0, NULL},
};

static const struct code_name driver_model_names[] = {
    {NVML_DRIVER_WDDM, "WDDM"}, {NVML_DRIVER_WDM, "TCC"}, {NVML_DRIVER_MCDM, "MCDM"}, {0, NULL}};

static const struct code_name operation_mode_names[] = {
    {NVML_GOM_ALL_ON, "All On"},
    {NVML_GOM_COMPUTE, "Compute"},
    {NVML_GOM_LOW_DP, "Low Double Precision"},
    {0, NULL},
};

static const struct code_name addressing_names[] = {
    {NVML_DEVICE_ADDRESSING_MODE_NONE, "None"},
    {NVML_DEVICE_ADDRESSING_MODE_HMM, "HMM"},
    {NVML_DEVICE_ADDRESSING_MODE_ATS, "ATS"},
    {0, NULL},
};

static const struct code_name virtualization_names[] = {
    {NVML_GPU_VIRTUALIZATION_MODE_NONE, "None"},
    {NVML_GPU_VIRTUALIZATION_MODE_PASSTHROUGH, "Pass-Through"},
    {NVML_GPU_VIRTUALIZATION_MODE_VGPU, "VGPU"},
    {NVML_GPU_VIRTUALIZATION_MODE_HOST_VGPU, "Host VGPU"},
    {NVML_GPU_VIRTUALIZATION_MODE_HOST_VSGA, "Host VSGA"},
    {0, NULL},
};

static const struct code_name host_vgpu_names[] = {{NVML_HOST_VGPU_MODE_NON_SRIOV, "Non SR-IOV"},
                                                   {NVML_HOST_VGPU_MODE_SRIOV, "SR-IOV"},
                                                   {0, NULL}};

static const struct code_name power_source_names[] = {
    {0, "AC"}, {1, "Battery"}, {2, "Undersized"}, {0, NULL}};

static const struct code_name atomics_names[] = {
    {0x01, "FETCHADD_32"}, {0x02, "FETCHADD_64"}, {0x04, "SWAP_32"}, {0x08, "SWAP_64"},
    {0x10, "CAS_32"},      {0x20, "CAS_64"},      {0x40, "CAS_128"}, {0, NULL},
};

static const struct code_name recovery_names[] = {
    {NVML_GPU_RECOVERY_ACTION_NONE, "None"},
    {NVML_GPU_RECOVERY_ACTION_GPU_RESET, "Reset"},
    {NVML_GPU_RECOVERY_ACTION_NODE_REBOOT, "Reboot"},
    {NVML_GPU_RECOVERY_ACTION_DRAIN_P2P, "Drain P2P"},
    {NVML_GPU_RECOVERY_ACTION_DRAIN_AND_RESET, "Drain and Reset"},
    {NVML_GPU_RECOVERY_ACTION_RECOVER_IMEX_DOMAIN, "Recover IMEX Domain"},
    {0, NULL},
};

/* ---- the table ---- */

#define ECC(type, counter, metric)                                                                 \
    {                                                                                              \
        .kind = KIND_CUSTOM, .where = ON_GPU, .custom = read_ecc_total, .first = metric,           \
        .outs = 1, .arg = ECC_TOTAL(NVML_MEMORY_ERROR_TYPE_##type, NVML_##counter##_ECC)           \
    }

#define ECC_AT(type, counter, location, metric, last, on)                                          \
    {                                                                                              \
        .kind = KIND_CUSTOM, .where = on, .custom = nvml_read_ecc_place, .first = metric,          \
        .outs = last - metric + 1,                                                                 \
        .arg = ECC_PLACE(NVML_MEMORY_ERROR_TYPE_##type, NVML_##counter##_ECC,                      \
                         NVML_MEMORY_LOCATION_##location)                                          \
    }
#define ECC_ONE(type, counter, location, metric, on)                                               \
    ECC_AT(type, counter, location, GP_ECC_##type##_##counter##_##metric,                          \
           GP_ECC_##type##_##counter##_##metric, on)
#define ECC_PLACES(type, counter, sram_on)                                                         \
    ECC_AT(type, counter, DRAM, GP_ECC_##type##_##counter##_DEVICE_MEMORY,                         \
           GP_ECC_##type##_##counter##_DRAM, ON_GPU),                                              \
        ECC_ONE(type, counter, REGISTER_FILE, REGISTER_FILE, ON_GPU),                              \
        ECC_ONE(type, counter, L1_CACHE, L1, ON_GPU),                                              \
        ECC_ONE(type, counter, L2_CACHE, L2, ON_GPU),                                              \
        ECC_ONE(type, counter, TEXTURE_MEMORY, TEXTURE, ON_GPU),                                   \
        ECC_ONE(type, counter, TEXTURE_SHM, SHARED, ON_GPU),                                       \
        ECC_ONE(type, counter, CBU, CBU, ON_GPU), ECC_ONE(type, counter, SRAM, SRAM, sram_on)

const struct reader nvml_readers[] = {
    TEXT(nvmlDeviceGetName, GP_NAME, ON_BOTH),
    TEXT(nvmlDeviceGetUUID, GP_UUID, ON_BOTH),
    CUSTOM(nvml_read_pci, GP_PCI_BUS_ID, GP_PCI_SUB_DEVICE_ID, ON_GPU),
    TEXT(nvmlDeviceGetSerial, GP_SERIAL, ON_GPU),
    U32(nvmlDeviceGetMinorNumber, GP_MINOR_NUMBER, ON_GPU),
    NAMED(nvmlDeviceGetBrand, brand_names, GP_BRAND, ON_GPU),
    NAMED(nvmlDeviceGetArchitecture, architecture_names, GP_ARCHITECTURE, ON_GPU),
    CUSTOM(read_compute_cap, GP_COMPUTE_CAP, GP_COMPUTE_CAP, ON_GPU),
    TEXT(nvmlDeviceGetVbiosVersion, GP_VBIOS_VERSION, ON_GPU),
    CUSTOM(nvml_read_board_id, GP_BOARD_ID, GP_BOARD_ID, ON_GPU),
    NAMED(nvmlDeviceGetMultiGpuBoard, yes_names, GP_BOARD_MULTI_GPU, ON_GPU),
    TEXT(nvmlDeviceGetBoardPartNumber, GP_BOARD_PART_NUMBER, ON_GPU),
    CUSTOM(nvml_read_pdi, GP_PDI, GP_PDI, ON_GPU),
    U32(nvmlDeviceGetModuleId, GP_MODULE_ID, ON_GPU),
    U32(nvmlDeviceGetNumGpuCores, GP_CORES, ON_GPU),
    U32(nvmlDeviceGetIrqNum, GP_IRQ, ON_GPU),
    CUSTOM(nvml_read_hostname, GP_HOSTNAME, GP_HOSTNAME, ON_GPU),
    TEXT(nvmlDeviceGetInforomImageVersion, GP_INFOROM_IMAGE, ON_GPU),
    TEXT_ARG(nvmlDeviceGetInforomVersion, NVML_INFOROM_OEM, GP_INFOROM_OEM),
    TEXT_ARG(nvmlDeviceGetInforomVersion, NVML_INFOROM_ECC, GP_INFOROM_ECC),
    TEXT_ARG(nvmlDeviceGetInforomVersion, NVML_INFOROM_POWER, GP_INFOROM_POWER),
    CUSTOM(nvml_read_inforom_check, GP_INFOROM_CHECKSUM, GP_INFOROM_CHECKSUM, ON_GPU),
    CUSTOM(nvml_read_bbx_flush, GP_BBX_FLUSH_TIME, GP_BBX_FLUSH_DURATION, ON_GPU),
    WORDS(nvmlDeviceGetBBXTimeData_v1, 0, NULL, GP_BBX_TIME_RUN, GP_BBX_TIME_RUN),
    CUSTOM(nvml_read_gsp_version, GP_GSP_FIRMWARE, GP_GSP_FIRMWARE, ON_GPU),
    PAIR(nvmlDeviceGetGspFirmwareMode, enabled_names, GP_GSP_MODE),
    U32(nvmlDeviceGetNumaNodeId, GP_NUMA_NODE, ON_GPU),
    CUSTOM(read_memory, GP_MEMORY_TOTAL, GP_MEMORY_FREE, ON_BOTH),
    CUSTOM(read_bar1, GP_BAR1_TOTAL, GP_BAR1_FREE, ON_BOTH),
    U32(nvmlDeviceGetMemoryBusWidth, GP_MEMORY_BUS_WIDTH, ON_GPU),
    CUSTOM(nvml_read_protected_memory, GP_PROTECTED_TOTAL, GP_PROTECTED_FREE, ON_GPU),
    CUSTOM(read_utilization, GP_UTILIZATION_GPU, GP_UTILIZATION_MEMORY, ON_GPU),
    PERIOD(nvmlDeviceGetEncoderUtilization, GP_UTILIZATION_ENCODER),
    PERIOD(nvmlDeviceGetDecoderUtilization, GP_UTILIZATION_DECODER),
    PERIOD(nvmlDeviceGetJpgUtilization, GP_UTILIZATION_JPEG),
    PERIOD(nvmlDeviceGetOfaUtilization, GP_UTILIZATION_OFA),
    TRIPLE(nvmlDeviceGetEncoderStats, GP_ENCODER_SESSIONS),
    WORDS(nvmlDeviceGetFBCStats, 0, NULL, GP_FBC_SESSIONS, GP_FBC_LATENCY),
    CUSTOM(read_pstate, GP_PSTATE, GP_PSTATE, ON_GPU),
    U32_ARG(nvmlDeviceGetTemperature, NVML_TEMPERATURE_GPU, GP_TEMPERATURE_GPU),
    CUSTOM(read_margin, GP_TEMPERATURE_TLIMIT, GP_TEMPERATURE_TLIMIT, ON_GPU),
    FIELD(NVML_FI_DEV_MEMORY_TEMP, NULL, GP_TEMPERATURE_MEMORY),
    U32_ARG(nvmlDeviceGetTemperatureThreshold, NVML_TEMPERATURE_THRESHOLD_SHUTDOWN,
            GP_THRESHOLD_SHUTDOWN),
    U32_ARG(nvmlDeviceGetTemperatureThreshold, NVML_TEMPERATURE_THRESHOLD_SLOWDOWN,
            GP_THRESHOLD_SLOWDOWN),
    U32_ARG(nvmlDeviceGetTemperatureThreshold, NVML_TEMPERATURE_THRESHOLD_GPU_MAX,
            GP_THRESHOLD_GPU_MAX),
    U32_ARG(nvmlDeviceGetTemperatureThreshold, NVML_TEMPERATURE_THRESHOLD_MEM_MAX,
            GP_THRESHOLD_MEMORY_MAX),
    FIELD(NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT, NULL, GP_TLIMIT_SHUTDOWN),
    FIELD(NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT, NULL, GP_TLIMIT_SLOWDOWN),
    FIELD(NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT, NULL, GP_TLIMIT_GPU_MAX),
    FIELD(NVML_FI_DEV_TEMPERATURE_MEM_MAX_TLIMIT, NULL, GP_TLIMIT_MEMORY_MAX),
    U32_ARG(nvmlDeviceGetTemperatureThreshold, NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_CURR,
            GP_TARGET_TEMPERATURE),
    U32_ARG(nvmlDeviceGetTemperatureThreshold, NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_MIN,
            GP_TARGET_TEMPERATURE_MIN),
    U32_ARG(nvmlDeviceGetTemperatureThreshold, NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_MAX,
            GP_TARGET_TEMPERATURE_MAX),
    U32(nvmlDeviceGetFanSpeed, GP_FAN_SPEED, ON_GPU),
    U32(nvmlDeviceGetPowerUsage, GP_POWER_DRAW, ON_GPU),
    FIELD(NVML_FI_DEV_POWER_AVERAGE, NULL, GP_POWER_DRAW_AVERAGE),
    FIELD(NVML_FI_DEV_POWER_INSTANT, NULL, GP_POWER_DRAW_INSTANT),
    U32(nvmlDeviceGetPowerManagementLimit, GP_POWER_LIMIT, ON_GPU),
    U32(nvmlDeviceGetEnforcedPowerLimit, GP_POWER_LIMIT_ENFORCED, ON_GPU),
    U32(nvmlDeviceGetPowerManagementDefaultLimit, GP_POWER_LIMIT_DEFAULT, ON_GPU),
    PAIR(nvmlDeviceGetPowerManagementLimitConstraints, NULL, GP_POWER_LIMIT_MIN),
    CUSTOM(read_energy, GP_ENERGY, GP_ENERGY, ON_GPU),
    NAMED(nvmlDeviceGetPowerManagementMode, supported_names, GP_POWER_MANAGEMENT, ON_GPU),
    NAMED(nvmlDeviceGetPowerSource, power_source_names, GP_POWER_SOURCE, ON_GPU),
    FIELD(NVML_FI_DEV_EDPP_MULTIPLIER, NULL, GP_EDPP_MULTIPLIER),
    FIELD_SCOPE(NVML_FI_DEV_POWER_AVERAGE, NVML_POWER_SCOPE_MODULE, GP_MODULE_DRAW_AVERAGE),
    FIELD_SCOPE(NVML_FI_DEV_POWER_INSTANT, NVML_POWER_SCOPE_MODULE, GP_MODULE_DRAW_INSTANT),
    FIELD_SCOPE(NVML_FI_DEV_POWER_REQUESTED_LIMIT, NVML_POWER_SCOPE_MODULE, GP_MODULE_LIMIT),
    FIELD_SCOPE(NVML_FI_DEV_POWER_CURRENT_LIMIT, NVML_POWER_SCOPE_MODULE, GP_MODULE_LIMIT_ENFORCED),
    FIELD_SCOPE(NVML_FI_DEV_POWER_DEFAULT_LIMIT, NVML_POWER_SCOPE_MODULE, GP_MODULE_LIMIT_DEFAULT),
    FIELD_SCOPE(NVML_FI_DEV_POWER_MIN_LIMIT, NVML_POWER_SCOPE_MODULE, GP_MODULE_LIMIT_MIN),
    FIELD_SCOPE(NVML_FI_DEV_POWER_MAX_LIMIT, NVML_POWER_SCOPE_MODULE, GP_MODULE_LIMIT_MAX),
    FIELD_SCOPE(NVML_FI_DEV_POWER_AVERAGE, NVML_POWER_SCOPE_MEMORY, GP_GPU_MEMORY_DRAW_AVERAGE),
    FIELD_SCOPE(NVML_FI_DEV_POWER_INSTANT, NVML_POWER_SCOPE_MEMORY, GP_GPU_MEMORY_DRAW_INSTANT),
    FIELD_SCOPE(NVML_FI_DEV_POWER_CURRENT_LIMIT, NVML_POWER_SCOPE_GPU_BASE, GP_BASE_CURRENT),
    FIELD_SCOPE(NVML_FI_DEV_POWER_REQUESTED_LIMIT, NVML_POWER_SCOPE_GPU_BASE, GP_BASE_REQUESTED),
    FIELD_SCOPE(NVML_FI_DEV_POWER_DEFAULT_LIMIT, NVML_POWER_SCOPE_GPU_BASE, GP_BASE_DEFAULT),
    FIELD_SCOPE(NVML_FI_DEV_POWER_MIN_LIMIT, NVML_POWER_SCOPE_GPU_BASE, GP_BASE_MIN),
    FIELD_SCOPE(NVML_FI_DEV_POWER_MAX_LIMIT, NVML_POWER_SCOPE_GPU_BASE, GP_BASE_MAX),
    FIELD(NVML_FI_PWR_SMOOTHING_ENABLED, yes_names, GP_SMOOTHING_ENABLED),
    FIELD(NVML_FI_PWR_SMOOTHING_PRIV_LVL, NULL, GP_SMOOTHING_PRIV_LEVEL),
    FIELD(NVML_FI_PWR_SMOOTHING_IMM_RAMP_DOWN_ENABLED, enabled_names, GP_SMOOTHING_IMM_RAMP_DOWN),
    FIELD(NVML_FI_PWR_SMOOTHING_APPLIED_TMP_CEIL, NULL, GP_SMOOTHING_TMP_CEIL),
    FIELD(NVML_FI_PWR_SMOOTHING_APPLIED_TMP_FLOOR, NULL, GP_SMOOTHING_TMP_FLOOR),
    FIELD(NVML_FI_PWR_SMOOTHING_MAX_PERCENT_TMP_FLOOR_SETTING, NULL,
          GP_SMOOTHING_MAX_PERCENT_FLOOR),
    FIELD(NVML_FI_PWR_SMOOTHING_MIN_PERCENT_TMP_FLOOR_SETTING, NULL,
          GP_SMOOTHING_MIN_PERCENT_FLOOR),
    FIELD(NVML_FI_PWR_SMOOTHING_HW_CIRCUITRY_PERCENT_LIFETIME_REMAINING, NULL,
          GP_SMOOTHING_LIFETIME),
    FIELD(NVML_FI_PWR_SMOOTHING_MAX_NUM_PRESET_PROFILES, NULL, GP_SMOOTHING_PROFILES),
    FIELD(NVML_FI_PWR_SMOOTHING_DELAYED_PWR_SMOOTHING_SUPPORTED, yes_names, GP_SMOOTHING_DELAYED),
    FIELD(NVML_FI_PWR_SMOOTHING_SOC_POWER_SMOOTHING_ENABLED, enabled_names, GP_SMOOTHING_SOC),
    FIELD(NVML_FI_PWR_SMOOTHING_PRIMARY_POWER_FLOOR, NULL, GP_SMOOTHING_PRIMARY_FLOOR),
    FIELD(NVML_FI_PWR_SMOOTHING_SECONDARY_POWER_FLOOR, NULL, GP_SMOOTHING_SECONDARY_FLOOR),
    FIELD(NVML_FI_PWR_SMOOTHING_MIN_PRIMARY_FLOOR_ACT_OFFSET, NULL, GP_SMOOTHING_MIN_ACT_OFFSET),
    FIELD(NVML_FI_PWR_SMOOTHING_MIN_PRIMARY_FLOOR_ACT_POINT, NULL, GP_SMOOTHING_MIN_ACT_POINT),
    FIELD(NVML_FI_PWR_SMOOTHING_WINDOW_MULTIPLIER, NULL, GP_SMOOTHING_WINDOW),
    FIELD(NVML_FI_PWR_SMOOTHING_ACTIVE_PRESET_PROFILE, NULL, GP_SMOOTHING_ACTIVE),
    FIELD(NVML_FI_PWR_SMOOTHING_PROFILE_PERCENT_TMP_FLOOR, NULL, GP_SMOOTHING_PROFILE_FLOOR),
    FIELD(NVML_FI_PWR_SMOOTHING_PROFILE_RAMP_UP_RATE, NULL, GP_SMOOTHING_PROFILE_RAMP_UP),
    FIELD(NVML_FI_PWR_SMOOTHING_PROFILE_RAMP_DOWN_RATE, NULL, GP_SMOOTHING_PROFILE_RAMP_DOWN),
    FIELD(NVML_FI_PWR_SMOOTHING_PROFILE_RAMP_DOWN_HYST_VAL, NULL, GP_SMOOTHING_PROFILE_HYSTERESIS),
    FIELD(NVML_FI_PWR_SMOOTHING_PROFILE_SECONDARY_POWER_FLOOR, NULL,
          GP_SMOOTHING_PROFILE_SECONDARY_FLOOR),
    FIELD(NVML_FI_PWR_SMOOTHING_PROFILE_PRIMARY_FLOOR_ACT_WIN_MULT, NULL,
          GP_SMOOTHING_PROFILE_ACT_WINDOW),
    FIELD(NVML_FI_PWR_SMOOTHING_PROFILE_PRIMARY_FLOOR_TAR_WIN_MULT, NULL,
          GP_SMOOTHING_PROFILE_TAR_WINDOW),
    FIELD(NVML_FI_PWR_SMOOTHING_PROFILE_PRIMARY_FLOOR_ACT_OFFSET, NULL,
          GP_SMOOTHING_PROFILE_ACT_OFFSET),
    FIELD(NVML_FI_PWR_SMOOTHING_ADMIN_OVERRIDE_PERCENT_TMP_FLOOR, NULL, GP_SMOOTHING_ADMIN_FLOOR),
    FIELD(NVML_FI_PWR_SMOOTHING_ADMIN_OVERRIDE_RAMP_UP_RATE, NULL, GP_SMOOTHING_ADMIN_RAMP_UP),
    FIELD(NVML_FI_PWR_SMOOTHING_ADMIN_OVERRIDE_RAMP_DOWN_RATE, NULL, GP_SMOOTHING_ADMIN_RAMP_DOWN),
    FIELD(NVML_FI_PWR_SMOOTHING_ADMIN_OVERRIDE_RAMP_DOWN_HYST_VAL, NULL,
          GP_SMOOTHING_ADMIN_HYSTERESIS),
    FIELD(NVML_FI_PWR_SMOOTHING_ADMIN_OVERRIDE_SECONDARY_POWER_FLOOR, NULL,
          GP_SMOOTHING_ADMIN_SECONDARY_FLOOR),
    FIELD(NVML_FI_PWR_SMOOTHING_ADMIN_OVERRIDE_PRIMARY_FLOOR_ACT_WIN_MULT, NULL,
          GP_SMOOTHING_ADMIN_ACT_WINDOW),
    FIELD(NVML_FI_PWR_SMOOTHING_ADMIN_OVERRIDE_PRIMARY_FLOOR_TAR_WIN_MULT, NULL,
          GP_SMOOTHING_ADMIN_TAR_WINDOW),
    FIELD(NVML_FI_PWR_SMOOTHING_ADMIN_OVERRIDE_PRIMARY_FLOOR_ACT_OFFSET, NULL,
          GP_SMOOTHING_ADMIN_ACT_OFFSET),
    CUSTOM(nvml_read_power_profiles, GP_POWER_PROFILES_REQUESTED, GP_POWER_PROFILES_ENFORCED,
           ON_GPU),
    U32_ARG(nvmlDeviceGetClockInfo, NVML_CLOCK_GRAPHICS, GP_CLOCK_GRAPHICS),
    U32_ARG(nvmlDeviceGetClockInfo, NVML_CLOCK_SM, GP_CLOCK_SM),
    U32_ARG(nvmlDeviceGetClockInfo, NVML_CLOCK_MEM, GP_CLOCK_MEMORY),
    U32_ARG(nvmlDeviceGetClockInfo, NVML_CLOCK_VIDEO, GP_CLOCK_VIDEO),
    U32_ARG(nvmlDeviceGetMaxClockInfo, NVML_CLOCK_GRAPHICS, GP_CLOCK_MAX_GRAPHICS),
    U32_ARG(nvmlDeviceGetMaxClockInfo, NVML_CLOCK_SM, GP_CLOCK_MAX_SM),
    U32_ARG(nvmlDeviceGetMaxClockInfo, NVML_CLOCK_MEM, GP_CLOCK_MAX_MEMORY),
    U32_ARG(nvmlDeviceGetMaxClockInfo, NVML_CLOCK_VIDEO, GP_CLOCK_MAX_VIDEO),
    U32_ARG(nvmlDeviceGetApplicationsClock, NVML_CLOCK_GRAPHICS, GP_CLOCK_APP_GRAPHICS),
    U32_ARG(nvmlDeviceGetApplicationsClock, NVML_CLOCK_MEM, GP_CLOCK_APP_MEMORY),
    U32_ARG(nvmlDeviceGetDefaultApplicationsClock, NVML_CLOCK_GRAPHICS,
            GP_CLOCK_DEFAULT_APP_GRAPHICS),
    U32_ARG(nvmlDeviceGetDefaultApplicationsClock, NVML_CLOCK_MEM, GP_CLOCK_DEFAULT_APP_MEMORY),
    U32_ARG(nvmlDeviceGetMaxCustomerBoostClock, NVML_CLOCK_GRAPHICS, GP_CLOCK_CUSTOMER_BOOST),
    PAIR(nvmlDeviceGetAutoBoostedClocksEnabled, on_names, GP_AUTO_BOOST),
    CUSTOM(read_reasons_supported, GP_REASONS_SUPPORTED, GP_REASONS_SUPPORTED, ON_GPU),
    CUSTOM(read_reasons, GP_REASONS_ACTIVE, GP_REASON_DISPLAY_CLOCKS, ON_GPU),
    FIELD_NS(NVML_FI_DEV_PERF_POLICY_POWER, GP_COUNTER_SW_POWER_CAP),
    FIELD_NS(NVML_FI_DEV_PERF_POLICY_SYNC_BOOST, GP_COUNTER_SYNC_BOOST),
    FIELD_NS(NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN, GP_COUNTER_SW_THERMAL),
    FIELD_NS(NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN, GP_COUNTER_HW_THERMAL),
    FIELD_NS(NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN, GP_COUNTER_HW_POWER_BRAKE),
    CUSTOM(nvml_read_bridge, GP_BRIDGE_TYPE, GP_BRIDGE_FIRMWARE, ON_GPU),
    U32(nvmlDeviceGetCurrPcieLinkGeneration, GP_PCIE_GEN, ON_GPU),
    U32(nvmlDeviceGetMaxPcieLinkGeneration, GP_PCIE_GEN_MAX, ON_GPU),
    U32(nvmlDeviceGetGpuMaxPcieLinkGeneration, GP_PCIE_GEN_GPU_MAX, ON_GPU),
    CUSTOM(nvml_read_slot_generation, GP_PCIE_GEN_HOST_MAX, GP_PCIE_GEN_HOST_MAX, ON_GPU),
    U32(nvmlDeviceGetCurrPcieLinkWidth, GP_PCIE_WIDTH, ON_GPU),
    U32(nvmlDeviceGetMaxPcieLinkWidth, GP_PCIE_WIDTH_MAX, ON_GPU),
    FIELD(NVML_FI_DEV_PCIE_REPLAY_COUNTER, NULL, GP_PCIE_REPLAYS),
    FIELD(NVML_FI_DEV_PCIE_REPLAY_ROLLOVER_COUNTER, NULL, GP_PCIE_REPLAY_ROLLOVERS),
    FIELD(NVML_FI_DEV_PCIE_L0_TO_RECOVERY_COUNTER, NULL, GP_PCIE_L0_RECOVERIES),
    FIELD(NVML_FI_DEV_PCIE_COUNT_CORRECTABLE_ERRORS, NULL, GP_PCIE_ERRORS_CORRECTABLE),
    FIELD(NVML_FI_DEV_PCIE_COUNT_NAKS_RECEIVED, NULL, GP_PCIE_ERRORS_NAKS_RECEIVED),
    FIELD(NVML_FI_DEV_PCIE_COUNT_RECEIVER_ERROR, NULL, GP_PCIE_ERRORS_RECEIVER),
    FIELD(NVML_FI_DEV_PCIE_COUNT_BAD_TLP, NULL, GP_PCIE_ERRORS_BAD_TLP),
    FIELD(NVML_FI_DEV_PCIE_COUNT_NAKS_SENT, NULL, GP_PCIE_ERRORS_NAKS_SENT),
    FIELD(NVML_FI_DEV_PCIE_COUNT_BAD_DLLP, NULL, GP_PCIE_ERRORS_BAD_DLLP),
    FIELD(NVML_FI_DEV_PCIE_COUNT_NON_FATAL_ERROR, NULL, GP_PCIE_ERRORS_NON_FATAL),
    FIELD(NVML_FI_DEV_PCIE_COUNT_FATAL_ERROR, NULL, GP_PCIE_ERRORS_FATAL),
    FIELD(NVML_FI_DEV_PCIE_COUNT_UNSUPPORTED_REQ, NULL, GP_PCIE_ERRORS_UNSUPPORTED_REQUEST),
    FIELD(NVML_FI_DEV_PCIE_COUNT_LCRC_ERROR, NULL, GP_PCIE_ERRORS_LCRC),
    FIELD(NVML_FI_DEV_PCIE_COUNT_LANE_ERROR, NULL, GP_PCIE_ERRORS_LANE),
    FIELD_BITS(NVML_FI_DEV_PCIE_OUTBOUND_ATOMICS_MASK, atomics_names, GP_PCIE_ATOMICS_OUT),
    FIELD_BITS(NVML_FI_DEV_PCIE_INBOUND_ATOMICS_MASK, atomics_names, GP_PCIE_ATOMICS_IN),
    PAIR(nvmlDeviceGetEccMode, enabled_names, GP_ECC_MODE),
    NAMED(nvmlDeviceGetDefaultEccMode, enabled_names, GP_ECC_MODE_DEFAULT, ON_GPU),
    ECC(CORRECTED, VOLATILE, GP_ECC_CORRECTED_VOLATILE),
    ECC(CORRECTED, AGGREGATE, GP_ECC_CORRECTED_AGGREGATE),
    ECC(UNCORRECTED, VOLATILE, GP_ECC_UNCORRECTED_VOLATILE),
    ECC(UNCORRECTED, AGGREGATE, GP_ECC_UNCORRECTED_AGGREGATE),
    ECC_PLACES(CORRECTED, VOLATILE, ON_GPU),
    ECC_PLACES(CORRECTED, AGGREGATE, ON_GPU),
    /* The only counters that are also available for MIG instances. */
    ECC_PLACES(UNCORRECTED, VOLATILE, ON_BOTH),
    ECC_PLACES(UNCORRECTED, AGGREGATE, ON_GPU),
    CUSTOM(nvml_read_sram_status, GP_ECC_SRAM_VOLATILE_PARITY, GP_ECC_SRAM_OTHER, ON_GPU),
    WORDS(nvmlDeviceGetRepairStatus, nvmlRepairStatus_v1, yes_names, GP_ECC_CHANNEL_REPAIR,
          GP_ECC_TPC_REPAIR),
    WORDS(nvmlDeviceGetUnrepairableMemoryFlag_v1, 0, yes_names, GP_ECC_UNREPAIRABLE,
          GP_ECC_UNREPAIRABLE),
    FIELD(NVML_FI_DEV_RETIRED_SBE, NULL, GP_RETIRED_SBE),
    FIELD(NVML_FI_DEV_RETIRED_DBE, NULL, GP_RETIRED_DBE),
    FIELD(NVML_FI_DEV_RETIRED_PENDING, yes_names, GP_RETIRED_PENDING),
    CUSTOM(nvml_read_remapped_rows, GP_REMAPPED_CORRECTABLE, GP_REMAPPED_FAILURE, ON_GPU),
    FIELD(NVML_FI_DEV_REMAPPED_ROWS_COR_INACTIVE, NULL, GP_REMAPPED_CORRECTABLE_INACTIVE),
    FIELD(NVML_FI_DEV_REMAPPED_ROWS_UNC_INACTIVE, NULL, GP_REMAPPED_UNCORRECTABLE_INACTIVE),
    WORDS(nvmlDeviceGetRowRemapperHistogram, 0, NULL, GP_HISTOGRAM_MAX, GP_HISTOGRAM_NONE),
    NAMED(nvmlDeviceGetPersistenceMode, enabled_names, GP_PERSISTENCE_MODE, ON_GPU),
    NAMED(nvmlDeviceGetComputeMode, compute_mode_names, GP_COMPUTE_MODE, ON_BOTH),
    PAIR(nvmlDeviceGetMigMode, enabled_names, GP_MIG_MODE),
    FIELD(NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, recovery_names, GP_RECOVERY_ACTION),
    FIELD(NVML_FI_DEV_RESET_STATUS, yes_names, GP_RESET_REQUIRED),
    FIELD(NVML_FI_DEV_DRAIN_AND_RESET_STATUS, yes_names, GP_RESET_DRAIN),
    NAMED(nvmlDeviceGetDisplayMode, enabled_names, GP_DISPLAY_MODE, ON_GPU),
    NAMED(nvmlDeviceGetDisplayMode, yes_names, GP_DISPLAY_ATTACHED, ON_GPU),
    NAMED(nvmlDeviceGetDisplayActive, enabled_names, GP_DISPLAY_ACTIVE, ON_GPU),
    NAMED(nvmlDeviceGetAccountingMode, enabled_names, GP_ACCOUNTING_MODE, ON_GPU),
    U32(nvmlDeviceGetAccountingBufferSize, GP_ACCOUNTING_BUFFER, ON_GPU),
    PAIR(nvmlDeviceGetDriverModel, driver_model_names, GP_DRIVER_MODEL),
    PAIR(nvmlDeviceGetGpuOperationMode, operation_mode_names, GP_GOM),
    WORDS(nvmlDeviceGetAddressingMode, nvmlDeviceAddressingMode_v1, addressing_names,
          GP_ADDRESSING_MODE, GP_ADDRESSING_MODE),
    CUSTOM(read_capabilities, GP_EGM, GP_EGM, ON_GPU),
    FIELD(NVML_FI_DEV_IS_RESETLESS_MIG_SUPPORTED, yes_names, GP_MIG_RESETLESS),
    CUSTOM(nvml_read_dram_encryption, GP_DRAM_ENCRYPTION, GP_DRAM_ENCRYPTION_PENDING, ON_GPU),
    NAMED(nvmlDeviceGetVirtualizationMode, virtualization_names, GP_VIRTUALIZATION_MODE, ON_GPU),
    NAMED(nvmlDeviceGetHostVgpuMode, host_vgpu_names, GP_HOST_VGPU_MODE, ON_GPU),
    WORDS(nvmlDeviceGetVgpuHeterogeneousMode, nvmlVgpuHeterogeneousMode_v1, enabled_names,
          GP_VGPU_HETEROGENEOUS_MODE, GP_VGPU_HETEROGENEOUS_MODE),
    CUSTOM(nvml_read_vgpu_driver, GP_VGPU_HETEROGENEOUS, GP_VGPU_HETEROGENEOUS, ON_GPU),
    NAMED_ARG(nvmlDeviceGetVgpuCapabilities, NVML_DEVICE_VGPU_CAP_FRACTIONAL_MULTI_VGPU,
              supported_names, GP_VGPU_FRACTIONAL),
    NAMED_ARG(nvmlDeviceGetVgpuCapabilities, NVML_DEVICE_VGPU_CAP_HETEROGENEOUS_TIMESLICE_PROFILES,
              supported_names, GP_VGPU_TIMESLICE_PROFILES),
    NAMED_ARG(nvmlDeviceGetVgpuCapabilities, NVML_DEVICE_VGPU_CAP_HETEROGENEOUS_TIMESLICE_SIZES,
              supported_names, GP_VGPU_TIMESLICE_SIZES),
    NAMED_ARG(nvmlDeviceGetVgpuCapabilities, NVML_DEVICE_VGPU_CAP_HOMOGENEOUS_PLACEMENTS,
              supported_names, GP_VGPU_PLACEMENTS),
    NAMED_ARG(nvmlDeviceGetVgpuCapabilities, NVML_DEVICE_VGPU_CAP_MIG_TIMESLICING_SUPPORTED,
              supported_names, GP_VGPU_MIG_TIMESLICING),
    NAMED_ARG(nvmlDeviceGetVgpuCapabilities, NVML_DEVICE_VGPU_CAP_MIG_TIMESLICING_ENABLED,
              enabled_names, GP_VGPU_MIG_TIMESLICING_MODE),
    WORDS(nvmlDeviceGetC2cModeInfoV, 0, enabled_names, GP_C2C_MODE, GP_C2C_MODE),
    FIELD(NVML_FI_DEV_C2C_LINK_COUNT, NULL, GP_C2C_LINKS),
    CUSTOM(nvml_read_c2c_links, GP_C2C_LINKS_ACTIVE, GP_C2C_BANDWIDTH, ON_GPU),
    CUSTOM(nvml_read_fabric, GP_FABRIC_STATE, GP_FABRIC_PARTITION, ON_GPU),
    CUSTOM(nvml_read_platform, GP_PLATFORM_CHASSIS, GP_PLATFORM_GUID, ON_GPU),
    FIELD(NVML_FI_DEV_NVLINK_LINK_COUNT, NULL, GP_NVLINK_COUNT),
    CUSTOM(nvml_read_active_links, GP_NVLINK_ACTIVE, GP_NVLINK_ACTIVE, ON_GPU),
    FIELD(NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL, NULL, GP_NVLINK_CRC_FLIT),
    FIELD(NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL, NULL, GP_NVLINK_CRC_DATA),
    FIELD(NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL, NULL, GP_NVLINK_REPLAY),
    FIELD(NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL, NULL, GP_NVLINK_RECOVERY),
    CUSTOM(nvml_read_cpu_affinity, GP_AFFINITY_CPU, GP_AFFINITY_CPU, ON_GPU),
    CUSTOM(nvml_read_memory_affinity, GP_AFFINITY_MEMORY, GP_AFFINITY_MEMORY, ON_GPU),
    U32(nvmlDeviceGetGpuInstanceId, GP_MIG_GPU_INSTANCE, ON_MIG),
    U32(nvmlDeviceGetComputeInstanceId, GP_MIG_COMPUTE_INSTANCE, ON_MIG),
    CUSTOM(read_mig_attributes, GP_MIG_PROFILE, GP_MIG_JPEG, ON_MIG),
};
_Static_assert(GP_ARRAY_LEN(nvml_readers) <= NVML_READERS_MAX, "NVML_READERS_MAX is too small");
const size_t nvml_reader_count = GP_ARRAY_LEN(nvml_readers);
