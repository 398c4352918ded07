/* What every metric of a GPU or MIG instance is read with, and the readers that do more than hand
 * over one number. */
#include "source/nvml/readers.h"

#include <stdio.h>

static nvmlReturn_t read_pci(struct nvml_device *device, const struct reader *reader,
                             struct gp_value *out)
{
    (void)reader;
    nvmlPciInfo_t pci = {0};
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetPciInfo_v3, device->handle, &pci);
    if (rc != NVML_SUCCESS)
        return rc;
    char text[6][NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE];
    (void)snprintf(text[0], sizeof(text[0]), "%s", pci.busId);
    (void)snprintf(text[1], sizeof(text[1]), "0x%04X", pci.domain);
    (void)snprintf(text[2], sizeof(text[2]), "0x%02X", pci.bus);
    (void)snprintf(text[3], sizeof(text[3]), "0x%02X", pci.device);
    (void)snprintf(text[4], sizeof(text[4]), "0x%08X", pci.pciDeviceId);
    (void)snprintf(text[5], sizeof(text[5]), "0x%08X", pci.pciSubSystemId);
    for (size_t i = 0; i < GP_ARRAY_LEN(text); i++)
        nvml_keep_text(device, &out[i], text[i]);
    return rc;
}

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

/* Since R510 the first version of the call counts the driver's reservation as used, so the second
 * one goes first; without it, `reserved` is unknown. */
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

static nvmlReturn_t read_limits(struct nvml_device *device, const struct reader *reader,
                                struct gp_value *out)
{
    (void)reader;
    unsigned min_mw = 0;
    unsigned max_mw = 0;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetPowerManagementLimitConstraints,
                                device->handle, &min_mw, &max_mw);
    gp_value_set_int(&out[0], min_mw, 0);
    gp_value_set_int(&out[1], max_mw, 0);
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

/* The older name of the call is exported by every driver. */
static nvmlReturn_t read_reasons(struct nvml_device *device, const struct reader *reader,
                                 struct gp_value *out)
{
    (void)reader;
    static const uint64_t bits[] = {
        /* in the order of metric.def */
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

const char *nvml_enabled_text(unsigned state)
{
    return state ? "Enabled" : "Disabled";
}

static nvmlReturn_t read_ecc_mode(struct nvml_device *device, const struct reader *reader,
                                  struct gp_value *out)
{
    (void)reader;
    nvmlEnableState_t current = NVML_FEATURE_DISABLED;
    nvmlEnableState_t pending = NVML_FEATURE_DISABLED;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetEccMode, device->handle, &current, &pending);
    gp_value_set_text(&out[0], nvml_enabled_text(current), 0);
    gp_value_set_text(&out[1], nvml_enabled_text(pending), 0);
    return rc;
}

static nvmlReturn_t read_mig_mode(struct nvml_device *device, const struct reader *reader,
                                  struct gp_value *out)
{
    (void)reader;
    unsigned current = 0;
    unsigned pending = 0;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetMigMode, device->handle, &current, &pending);
    gp_value_set_text(&out[0], nvml_enabled_text(current), 0);
    gp_value_set_text(&out[1], nvml_enabled_text(pending), 0);
    return rc;
}

static nvmlReturn_t read_energy(struct nvml_device *device, const struct reader *reader,
                                struct gp_value *out)
{
    (void)reader;
    unsigned long long mj = 0;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetTotalEnergyConsumption, device->handle, &mj);
    gp_value_set_int(&out[0], (int64_t)mj, 0);
    return rc;
}

/* Which of the four ECC totals: the argument of its row in the table. */
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

/* "3g.40gb": GPU slices and memory, which the profile's name rounds up to whole GiB; "1c.3g.40gb"
 * where the compute instance has only a part of the slices. */
static nvmlReturn_t read_mig_profile(struct nvml_device *device, const struct reader *reader,
                                     struct gp_value *out)
{
    (void)reader;
    nvmlDeviceAttributes_t a = {0};
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetAttributes_v2, device->handle, &a);
    if (rc != NVML_SUCCESS)
        return rc;
    char part[16] = "";
    char text[64];
    if (a.computeInstanceSliceCount < a.gpuInstanceSliceCount)
        (void)snprintf(part, sizeof(part), "%uc.", a.computeInstanceSliceCount);
    (void)snprintf(text, sizeof(text), "%s%ug.%llugb", part, a.gpuInstanceSliceCount,
                   (a.memorySizeMB + 1023) / 1024);
    nvml_keep_text(device, &out[0], text);
    return rc;
}

/* ---- numbers with names; nvidia-smi's words ---- */

static const struct code_name enabled_names[] = {{0, "Disabled"}, {1, "Enabled"}, {0, NULL}};

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

const struct reader nvml_readers[] = {
    TEXT(nvmlDeviceGetName, GP_NAME, ON_BOTH),
    TEXT(nvmlDeviceGetUUID, GP_UUID, ON_BOTH),
    CUSTOM(read_pci, GP_PCI_BUS_ID, GP_PCI_SUB_DEVICE_ID, ON_GPU),
    TEXT(nvmlDeviceGetSerial, GP_SERIAL, ON_GPU),
    U32(nvmlDeviceGetMinorNumber, GP_MINOR_NUMBER, ON_GPU),
    NAMED(nvmlDeviceGetBrand, brand_names, GP_BRAND, ON_GPU),
    NAMED(nvmlDeviceGetArchitecture, architecture_names, GP_ARCHITECTURE, ON_GPU),
    CUSTOM(read_compute_cap, GP_COMPUTE_CAP, GP_COMPUTE_CAP, ON_GPU),
    TEXT(nvmlDeviceGetVbiosVersion, GP_VBIOS_VERSION, ON_GPU),
    CUSTOM(read_memory, GP_MEMORY_TOTAL, GP_MEMORY_FREE, ON_BOTH),
    CUSTOM(read_bar1, GP_BAR1_TOTAL, GP_BAR1_FREE, ON_BOTH),
    CUSTOM(read_utilization, GP_UTILIZATION_GPU, GP_UTILIZATION_MEMORY, ON_GPU),
    PERIOD(nvmlDeviceGetEncoderUtilization, GP_UTILIZATION_ENCODER),
    PERIOD(nvmlDeviceGetDecoderUtilization, GP_UTILIZATION_DECODER),
    PERIOD(nvmlDeviceGetJpgUtilization, GP_UTILIZATION_JPEG),
    PERIOD(nvmlDeviceGetOfaUtilization, GP_UTILIZATION_OFA),
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
    U32(nvmlDeviceGetFanSpeed, GP_FAN_SPEED, ON_GPU),
    U32(nvmlDeviceGetPowerUsage, GP_POWER_DRAW, ON_GPU),
    FIELD(NVML_FI_DEV_POWER_AVERAGE, NULL, GP_POWER_DRAW_AVERAGE),
    FIELD(NVML_FI_DEV_POWER_INSTANT, NULL, GP_POWER_DRAW_INSTANT),
    U32(nvmlDeviceGetPowerManagementLimit, GP_POWER_LIMIT, ON_GPU),
    U32(nvmlDeviceGetEnforcedPowerLimit, GP_POWER_LIMIT_ENFORCED, ON_GPU),
    U32(nvmlDeviceGetPowerManagementDefaultLimit, GP_POWER_LIMIT_DEFAULT, ON_GPU),
    CUSTOM(read_limits, GP_POWER_LIMIT_MIN, GP_POWER_LIMIT_MAX, ON_GPU),
    CUSTOM(read_energy, GP_ENERGY, GP_ENERGY, ON_GPU),
    U32_ARG(nvmlDeviceGetClockInfo, NVML_CLOCK_GRAPHICS, GP_CLOCK_GRAPHICS),
    U32_ARG(nvmlDeviceGetClockInfo, NVML_CLOCK_SM, GP_CLOCK_SM),
    U32_ARG(nvmlDeviceGetClockInfo, NVML_CLOCK_MEM, GP_CLOCK_MEMORY),
    U32_ARG(nvmlDeviceGetClockInfo, NVML_CLOCK_VIDEO, GP_CLOCK_VIDEO),
    U32_ARG(nvmlDeviceGetMaxClockInfo, NVML_CLOCK_GRAPHICS, GP_CLOCK_MAX_GRAPHICS),
    U32_ARG(nvmlDeviceGetMaxClockInfo, NVML_CLOCK_SM, GP_CLOCK_MAX_SM),
    U32_ARG(nvmlDeviceGetMaxClockInfo, NVML_CLOCK_MEM, GP_CLOCK_MAX_MEMORY),
    U32_ARG(nvmlDeviceGetMaxClockInfo, NVML_CLOCK_VIDEO, GP_CLOCK_MAX_VIDEO),
    CUSTOM(read_reasons_supported, GP_REASONS_SUPPORTED, GP_REASONS_SUPPORTED, ON_GPU),
    CUSTOM(read_reasons, GP_REASONS_ACTIVE, GP_REASON_DISPLAY_CLOCKS, ON_GPU),
    U32(nvmlDeviceGetCurrPcieLinkGeneration, GP_PCIE_GEN, ON_GPU),
    U32(nvmlDeviceGetMaxPcieLinkGeneration, GP_PCIE_GEN_MAX, ON_GPU),
    U32(nvmlDeviceGetGpuMaxPcieLinkGeneration, GP_PCIE_GEN_GPU_MAX, ON_GPU),
    U32(nvmlDeviceGetCurrPcieLinkWidth, GP_PCIE_WIDTH, ON_GPU),
    U32(nvmlDeviceGetMaxPcieLinkWidth, GP_PCIE_WIDTH_MAX, ON_GPU),
    CUSTOM(read_ecc_mode, GP_ECC_MODE, GP_ECC_MODE_PENDING, ON_GPU),
    ECC(CORRECTED, VOLATILE, GP_ECC_CORRECTED_VOLATILE),
    ECC(CORRECTED, AGGREGATE, GP_ECC_CORRECTED_AGGREGATE),
    ECC(UNCORRECTED, VOLATILE, GP_ECC_UNCORRECTED_VOLATILE),
    ECC(UNCORRECTED, AGGREGATE, GP_ECC_UNCORRECTED_AGGREGATE),
    NAMED(nvmlDeviceGetPersistenceMode, enabled_names, GP_PERSISTENCE_MODE, ON_GPU),
    NAMED(nvmlDeviceGetComputeMode, compute_mode_names, GP_COMPUTE_MODE, ON_BOTH),
    CUSTOM(read_mig_mode, GP_MIG_MODE, GP_MIG_MODE_PENDING, ON_GPU),
    FIELD(NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, recovery_names, GP_RECOVERY_ACTION),
    U32(nvmlDeviceGetGpuInstanceId, GP_MIG_GPU_INSTANCE, ON_MIG),
    U32(nvmlDeviceGetComputeInstanceId, GP_MIG_COMPUTE_INSTANCE, ON_MIG),
    CUSTOM(read_mig_profile, GP_MIG_PROFILE, GP_MIG_PROFILE, ON_MIG),
};
_Static_assert(GP_ARRAY_LEN(nvml_readers) <= NVML_READERS_MAX, "NVML_READERS_MAX is too small");
const size_t nvml_reader_count = GP_ARRAY_LEN(nvml_readers);
