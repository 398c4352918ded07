/* The queries. Most are generated from the rows of answers.def; the special ones are written out,
 * like in nvml.c. If several fill a slot, the first one whose function the driver has is used. */
#include "sim/record.h"

#include <stdio.h>
#include <string.h>

static void put_word(void *out, unsigned int version)
{
    memcpy(out, &version, sizeof(version));
}

static void take_words(struct rec_call *c, const void *from, size_t skip, size_t count)
{
    unsigned int word;
    for (size_t i = 0; i < count; i++) {
        memcpy(&word, (const char *)from + (i + skip) * sizeof(word), sizeof(word));
        c->numbers[i] = word;
    }
}

#define SIM_TEXT(function, slot)                                                                   \
    static nvmlReturn_t ask_##function(struct rec_call *c)                                         \
    {                                                                                              \
        return c->api->function(c->device, c->text, sizeof(c->text));                              \
    }
#define SIM_OUT(function, slot, type)                                                              \
    static nvmlReturn_t ask_##function(struct rec_call *c)                                         \
    {                                                                                              \
        type out = (type)0;                                                                        \
        nvmlReturn_t code = c->api->function(c->device, &out);                                     \
        c->numbers[0] = (uint64_t)out;                                                             \
        return code;                                                                               \
    }
#define SIM_OUT2(function, slot, slot2, type)                                                      \
    _Static_assert(SIM_##slot2 == SIM_##slot + 1, "the slots of a call are consecutive");          \
    static nvmlReturn_t ask_##function(struct rec_call *c)                                         \
    {                                                                                              \
        type out = (type)0, out2 = (type)0;                                                        \
        nvmlReturn_t code = c->api->function(c->device, &out, &out2);                              \
        c->numbers[0] = (uint64_t)out;                                                             \
        c->numbers[1] = (uint64_t)out2;                                                            \
        return code;                                                                               \
    }
#define SIM_KEYED(function, arg, count, slot, type)                                                \
    static nvmlReturn_t ask_##function(struct rec_call *c)                                         \
    {                                                                                              \
        type out = (type)0;                                                                        \
        nvmlReturn_t code = c->api->function(c->device, (arg)c->key, &out);                        \
        c->numbers[0] = (uint64_t)out;                                                             \
        return code;                                                                               \
    }
#define SIM_ENGINE(function, slot)                                                                 \
    static nvmlReturn_t ask_##function(struct rec_call *c)                                         \
    {                                                                                              \
        unsigned int out = 0, period = 0;                                                          \
        nvmlReturn_t code = c->api->function(c->device, &out, &period);                            \
        c->numbers[0] = out;                                                                       \
        return code;                                                                               \
    }
#define SIM_TEXT_KEYED(function, arg, count, slot)                                                 \
    static nvmlReturn_t ask_##function(struct rec_call *c)                                         \
    {                                                                                              \
        return c->api->function(c->device, (arg)c->key, c->text, sizeof(c->text));                 \
    }
#define SIM_WORDS(function, type, version, first, last)                                            \
    static nvmlReturn_t ask_##function(struct rec_call *c)                                         \
    {                                                                                              \
        type out;                                                                                  \
        memset(&out, 0, sizeof(out));                                                              \
        put_word(&out, version);                                                                   \
        nvmlReturn_t code = c->api->function(c->device, &out);                                     \
        take_words(c, &out, (version) != 0, SIM_##last - SIM_##first + 1);                         \
        return code;                                                                               \
    }
#include "sim/answers.def"

/* ------------------------------------------------------------------------- special cases */

static nvmlReturn_t ask_nvmlDeviceGetGspFirmwareVersion(struct rec_call *c)
{
    return c->api->nvmlDeviceGetGspFirmwareVersion(c->device, c->text);
}

static nvmlReturn_t ask_nvmlDeviceGetMemoryInfo_v2(struct rec_call *c)
{
    nvmlMemory_v2_t m = {.version = nvmlMemory_v2};
    nvmlReturn_t code = c->api->nvmlDeviceGetMemoryInfo_v2(c->device, &m);
    c->numbers[0] = m.total;
    c->numbers[1] = m.reserved;
    c->numbers[2] = m.used;
    c->numbers[3] = m.free;
    return code;
}

static nvmlReturn_t ask_nvmlDeviceGetMemoryInfo(struct rec_call *c)
{
    nvmlMemory_t m = {0};
    nvmlReturn_t code = c->api->nvmlDeviceGetMemoryInfo(c->device, &m);
    c->numbers[0] = m.total;
    c->unknown = 1u << 1;
    c->numbers[2] = m.used;
    c->numbers[3] = m.free;
    return code;
}

static nvmlReturn_t ask_nvmlDeviceGetBAR1MemoryInfo(struct rec_call *c)
{
    nvmlBAR1Memory_t m = {0};
    nvmlReturn_t code = c->api->nvmlDeviceGetBAR1MemoryInfo(c->device, &m);
    c->numbers[0] = m.bar1Total;
    c->numbers[1] = m.bar1Used;
    c->numbers[2] = m.bar1Free;
    return code;
}

static nvmlReturn_t ask_nvmlDeviceGetUtilizationRates(struct rec_call *c)
{
    nvmlUtilization_t u = {0};
    nvmlReturn_t code = c->api->nvmlDeviceGetUtilizationRates(c->device, &u);
    c->numbers[0] = u.gpu;
    c->numbers[1] = u.memory;
    return code;
}

static nvmlReturn_t ask_nvmlDeviceGetEncoderStats(struct rec_call *c)
{
    unsigned int sessions = 0, fps = 0, latency_us = 0;
    nvmlReturn_t code = c->api->nvmlDeviceGetEncoderStats(c->device, &sessions, &fps, &latency_us);
    c->numbers[0] = sessions;
    c->numbers[1] = fps;
    c->numbers[2] = latency_us;
    return code;
}

static nvmlReturn_t ask_nvmlDeviceGetTemperatureV(struct rec_call *c)
{
    nvmlTemperature_t t = {.version = nvmlTemperature_v1, .sensorType = NVML_TEMPERATURE_GPU};
    nvmlReturn_t code = c->api->nvmlDeviceGetTemperatureV(c->device, &t);
    c->numbers[0] = (uint64_t)t.temperature;
    return code;
}

static nvmlReturn_t ask_nvmlDeviceGetMarginTemperature(struct rec_call *c)
{
    nvmlMarginTemperature_t t = {.version = nvmlMarginTemperature_v1};
    nvmlReturn_t code = c->api->nvmlDeviceGetMarginTemperature(c->device, &t);
    c->numbers[0] = (uint64_t)t.marginTemperature;
    return code;
}

static nvmlReturn_t ask_nvmlDeviceGetTotalEccErrors(struct rec_call *c)
{
    unsigned long long n = 0;
    nvmlReturn_t code = c->api->nvmlDeviceGetTotalEccErrors(
        c->device, (nvmlMemoryErrorType_t)(c->key / 2), (nvmlEccCounterType_t)(c->key % 2), &n);
    c->numbers[0] = n;
    return code;
}

static nvmlReturn_t ask_nvmlDeviceGetMemoryErrorCounter(struct rec_call *c)
{
    unsigned long long n = 0;
    unsigned int counter = c->key / NVML_MEMORY_LOCATION_COUNT;
    nvmlReturn_t code = c->api->nvmlDeviceGetMemoryErrorCounter(
        c->device, (nvmlMemoryErrorType_t)(counter / 2), (nvmlEccCounterType_t)(counter % 2),
        (nvmlMemoryLocation_t)(c->key % NVML_MEMORY_LOCATION_COUNT), &n);
    c->numbers[0] = n;
    return code;
}

static nvmlReturn_t ask_nvmlDeviceGetAttributes_v2(struct rec_call *c)
{
    nvmlDeviceAttributes_t a = {0};
    nvmlReturn_t code = c->api->nvmlDeviceGetAttributes_v2(c->device, &a);
    const uint64_t numbers[] = {
        a.multiprocessorCount,   a.sharedCopyEngineCount,     a.sharedDecoderCount,
        a.sharedEncoderCount,    a.sharedJpegCount,           a.sharedOfaCount,
        a.gpuInstanceSliceCount, a.computeInstanceSliceCount, a.memorySizeMB,
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(numbers); i++)
        c->numbers[i] = numbers[i];
    return code;
}

/* The range of a clock offset; its current value is a setting. */
static nvmlReturn_t ask_nvmlDeviceGetClockOffsets(struct rec_call *c)
{
    nvmlClockOffset_t offset = {.version = nvmlClockOffset_v1,
                                .type = c->key ? NVML_CLOCK_MEM : NVML_CLOCK_GRAPHICS,
                                .pstate = NVML_PSTATE_0};
    nvmlReturn_t code = c->api->nvmlDeviceGetClockOffsets(c->device, &offset);
    c->numbers[0] = (uint64_t)offset.minClockOffsetMHz;
    c->numbers[1] = (uint64_t)offset.maxClockOffsetMHz;
    return code;
}

/* Same for a driver before R555. */
#define ASK_OFFSET_RANGE(function)                                                                 \
    static nvmlReturn_t ask_##function(struct rec_call *c)                                         \
    {                                                                                              \
        int min = 0, max = 0;                                                                      \
        nvmlReturn_t code = c->api->function(c->device, &min, &max);                               \
        c->numbers[0] = (uint64_t)min;                                                             \
        c->numbers[1] = (uint64_t)max;                                                             \
        return code;                                                                               \
    }
ASK_OFFSET_RANGE(nvmlDeviceGetGpcClkMinMaxVfOffset)
ASK_OFFSET_RANGE(nvmlDeviceGetMemClkMinMaxVfOffset)

static nvmlReturn_t ask_nvmlDeviceValidateInforom(struct rec_call *c)
{
    return c->api->nvmlDeviceValidateInforom(c->device);
}

static nvmlReturn_t ask_nvmlDeviceGetLastBBXFlushTime(struct rec_call *c)
{
    unsigned long long stamp = 0;
    unsigned long duration_us = 0;
    nvmlReturn_t code = c->api->nvmlDeviceGetLastBBXFlushTime(c->device, &stamp, &duration_us);
    c->numbers[0] = stamp;
    c->numbers[1] = duration_us;
    return code;
}

static nvmlReturn_t ask_nvmlDeviceGetPdi(struct rec_call *c)
{
    nvmlPdi_t pdi = {.version = nvmlPdi_v1};
    nvmlReturn_t code = c->api->nvmlDeviceGetPdi(c->device, &pdi);
    (void)snprintf(c->text, sizeof(c->text), "0x%016llx", (unsigned long long)pdi.value);
    return code;
}

static nvmlReturn_t ask_nvmlDeviceGetHostname_v1(struct rec_call *c)
{
    nvmlHostname_v1_t name = {0};
    nvmlReturn_t code = c->api->nvmlDeviceGetHostname_v1(c->device, &name);
    (void)snprintf(c->text, sizeof(c->text), "%.*s", (int)sizeof(name.value), name.value);
    return code;
}

static nvmlReturn_t ask_nvmlDeviceGetPciInfoExt(struct rec_call *c)
{
    nvmlPciInfoExt_t pci = {.version = nvmlPciInfoExt_v1};
    nvmlReturn_t code = c->api->nvmlDeviceGetPciInfoExt(c->device, &pci);
    c->numbers[0] = pci.baseClass;
    c->numbers[1] = pci.subClass;
    return code;
}

static nvmlReturn_t ask_nvmlDeviceGetBridgeChipInfo(struct rec_call *c)
{
    nvmlBridgeChipHierarchy_t chips = {0};
    nvmlReturn_t code = c->api->nvmlDeviceGetBridgeChipInfo(c->device, &chips);
    c->numbers[0] = chips.bridgeChipInfo[0].type;
    c->numbers[1] = chips.bridgeChipInfo[0].fwVersion;
    c->unknown = chips.bridgeCount == 0 ? 3u : chips.bridgeChipInfo[0].fwVersion == 0 ? 2u : 0;
    return code;
}

static nvmlReturn_t ask_nvmlDeviceGetConfComputeProtectedMemoryUsage(struct rec_call *c)
{
    nvmlMemory_t m = {0};
    nvmlReturn_t code = c->api->nvmlDeviceGetConfComputeProtectedMemoryUsage(c->device, &m);
    c->numbers[0] = m.total;
    c->numbers[1] = m.used;
    c->numbers[2] = m.free;
    return code;
}

static nvmlReturn_t ask_nvmlDeviceGetConfComputeMemSizeInfo(struct rec_call *c)
{
    nvmlConfComputeMemSizeInfo_t sizes = {0};
    nvmlReturn_t code = c->api->nvmlDeviceGetConfComputeMemSizeInfo(c->device, &sizes);
    c->numbers[0] = sizes.protectedMemSizeKib;
    c->numbers[1] = sizes.unprotectedMemSizeKib;
    return code;
}

static nvmlReturn_t ask_nvmlDeviceGetSramEccErrorStatus(struct rec_call *c)
{
    enum { COUNTERS = SIM_SRAM_THRESHOLD - SIM_SRAM_AGG_PARITY };
    nvmlEccSramErrorStatus_t status = {.version = nvmlEccSramErrorStatus_v1};
    nvmlReturn_t code = c->api->nvmlDeviceGetSramEccErrorStatus(c->device, &status);
    memcpy(c->numbers,
           (const char *)&status + offsetof(nvmlEccSramErrorStatus_t, aggregateUncParity),
           COUNTERS * sizeof(c->numbers[0]));
    c->numbers[COUNTERS] = status.bThresholdExceeded;
    return code;
}

static nvmlReturn_t ask_nvmlDeviceGetRemappedRows(struct rec_call *c)
{
    unsigned int cor = 0, unc = 0, pending = 0, failure = 0;
    nvmlReturn_t code =
        c->api->nvmlDeviceGetRemappedRows(c->device, &cor, &unc, &pending, &failure);
    c->numbers[0] = cor;
    c->numbers[2] = unc;
    c->numbers[4] = pending;
    c->numbers[5] = failure;
    c->unknown = 1u << 1 | 1u << 3; /* inactive ones */
    return code;
}

static nvmlReturn_t ask_nvmlDeviceGetDramEncryptionMode(struct rec_call *c)
{
    nvmlDramEncryptionInfo_t current = {.version = nvmlDramEncryptionInfo_v1};
    nvmlDramEncryptionInfo_t pending = {.version = nvmlDramEncryptionInfo_v1};
    nvmlReturn_t code = c->api->nvmlDeviceGetDramEncryptionMode(c->device, &current, &pending);
    c->numbers[0] = current.encryptionState;
    c->numbers[1] = pending.encryptionState;
    return code;
}

/* Bytes in nvidia-smi's format, with a dash before those whose bit is set. */
static void put_hex(char *out, const unsigned char *bytes, size_t size, unsigned int dashes)
{
    for (size_t i = 0; i < size; i++)
        out += snprintf(out, 4, "%s%02x", dashes >> i & 1 ? "-" : "", bytes[i]);
}

enum { UUID_DASHES = 1 << 4 | 1 << 6 | 1 << 8 | 1 << 10 };

static void take_fabric(struct rec_call *c, const nvmlGpuFabricInfo_v3_t *info)
{
    put_hex(c->text, info->clusterUuid, sizeof(info->clusterUuid), UUID_DASHES);
    c->numbers[1] = (uint64_t)info->status;
    c->numbers[2] = info->cliqueId;
    c->numbers[3] = info->state;
    c->numbers[4] = info->healthMask;
    c->numbers[5] = info->healthSummary;
}

static nvmlReturn_t ask_nvmlDeviceGetGpuFabricInfoV(struct rec_call *c)
{
    nvmlGpuFabricInfo_v3_t info = {.version = nvmlGpuFabricInfo_v3};
    nvmlReturn_t code = c->api->nvmlDeviceGetGpuFabricInfoV(c->device, &info);
    if (code == NVML_ERROR_ARGUMENT_VERSION_MISMATCH) {
        info.version = nvmlGpuFabricInfo_v2;
        code = c->api->nvmlDeviceGetGpuFabricInfoV(c->device, &info);
        c->unknown = 1u << 5;
    }
    take_fabric(c, &info);
    return code;
}

static nvmlReturn_t ask_nvmlDeviceGetGpuFabricInfo(struct rec_call *c)
{
    nvmlGpuFabricInfo_t old = {0};
    nvmlReturn_t code = c->api->nvmlDeviceGetGpuFabricInfo(c->device, &old);
    nvmlGpuFabricInfo_v3_t info = {
        .status = old.status, .cliqueId = old.cliqueId, .state = old.state};
    memcpy(info.clusterUuid, old.clusterUuid, sizeof(info.clusterUuid));
    take_fabric(c, &info);
    c->unknown = 1u << 4 | 1u << 5;
    return code;
}

static nvmlReturn_t ask_nvmlDeviceGetPlatformInfo(struct rec_call *c)
{
    nvmlPlatformInfo_t info = {.version = nvmlPlatformInfo_v2};
    nvmlReturn_t code = c->api->nvmlDeviceGetPlatformInfo(c->device, &info);
    if (code == NVML_ERROR_ARGUMENT_VERSION_MISMATCH) {
        info = (nvmlPlatformInfo_t){.version = nvmlPlatformInfo_v1};
        code = c->api->nvmlDeviceGetPlatformInfo(c->device, &info);
        c->unknown = 1u << 0; /* its place had another id */
    }
    (void)snprintf(c->text, sizeof(c->text), "%.*s", (int)sizeof(info.chassisSerialNumber),
                   (const char *)info.chassisSerialNumber);
    c->text_at[1] = sizeof(info.chassisSerialNumber) + 1;
    (void)snprintf(c->text + c->text_at[1], 3, "0x");
    put_hex(c->text + c->text_at[1] + 2, info.ibGuid, sizeof(info.ibGuid), 0);
    const unsigned char bytes[] = {info.slotNumber, info.trayIndex, info.hostId, info.peerType,
                                   info.moduleId};
    for (size_t i = 0; i < GP_ARRAY_LEN(bytes); i++)
        c->numbers[2 + i] = bytes[i];
    return code;
}

static nvmlReturn_t ask_nvmlDeviceWorkloadPowerProfileGetCurrentProfiles(struct rec_call *c)
{
    nvmlWorkloadPowerProfileCurrentProfiles_t p = {.version =
                                                       nvmlWorkloadPowerProfileCurrentProfiles_v1};
    nvmlReturn_t code = c->api->nvmlDeviceWorkloadPowerProfileGetCurrentProfiles(c->device, &p);
    const nvmlMask255_t *masks[] = {&p.perfProfilesMask, &p.requestedProfilesMask,
                                    &p.enforcedProfilesMask};
    for (size_t i = 0; i < GP_ARRAY_LEN(masks); i++) {
        c->text_at[i] = (uint16_t)(i * (2 * sizeof(masks[i]->mask) + 1));
        put_hex(c->text + c->text_at[i], (const unsigned char *)masks[i]->mask,
                sizeof(masks[i]->mask), 0);
    }
    return code;
}

/* Only its return code; record.c reads the lists themselves. */
#define ASK_LIST(function, entry)                                                                  \
    static nvmlReturn_t ask_##function(struct rec_call *c)                                         \
    {                                                                                              \
        unsigned int count = 0;                                                                    \
        nvmlReturn_t code = c->api->function(c->device, &count, NULL);                             \
        return code == NVML_ERROR_INSUFFICIENT_SIZE ? NVML_SUCCESS : code;                         \
    }
ASK_LIST(nvmlDeviceGetComputeRunningProcesses_v3, 3)
ASK_LIST(nvmlDeviceGetComputeRunningProcesses_v2, 2)
ASK_LIST(nvmlDeviceGetComputeRunningProcesses, 1)
ASK_LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, 3)
ASK_LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, 2)
ASK_LIST(nvmlDeviceGetGraphicsRunningProcesses, 1)
ASK_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, 3)
ASK_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, 2)
ASK_LIST(nvmlDeviceGetMPSComputeRunningProcesses, 1)

/* It returns NOT_FOUND without samples: an empty list. */
static nvmlReturn_t ask_nvmlDeviceGetProcessUtilization(struct rec_call *c)
{
    unsigned int count = 0;
    nvmlReturn_t code = c->api->nvmlDeviceGetProcessUtilization(c->device, NULL, &count, 0);
    bool works = code == NVML_ERROR_INSUFFICIENT_SIZE || code == NVML_ERROR_NOT_FOUND;
    return works ? NVML_SUCCESS : code;
}

/* Whether there are series at all; the kinds are queried separately. */
static nvmlReturn_t ask_nvmlDeviceGetSamples(struct rec_call *c)
{
    nvmlValueType_t type;
    unsigned int count = 0;
    nvmlReturn_t code = c->api->nvmlDeviceGetSamples(c->device, NVML_GPU_UTILIZATION_SAMPLES, 0,
                                                     &type, &count, NULL);
    return code == NVML_ERROR_NOT_FOUND ? NVML_SUCCESS : code;
}

static nvmlReturn_t ask_nvmlGpmSampleGet(struct rec_call *c)
{
    nvmlGpmSupport_t support = {.version = NVML_GPM_SUPPORT_VERSION};
    nvmlGpmSample_t sample;
    if (!c->api->nvmlGpmQueryDeviceSupport || !c->api->nvmlGpmSampleAlloc ||
        !c->api->nvmlGpmSampleFree)
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    nvmlReturn_t code = c->api->nvmlGpmQueryDeviceSupport(c->device, &support);
    if (code == NVML_SUCCESS && !support.isSupportedDevice)
        code = NVML_ERROR_NOT_SUPPORTED;
    if (code == NVML_SUCCESS)
        code = c->api->nvmlGpmSampleAlloc(&sample);
    if (code != NVML_SUCCESS)
        return code;
    code = c->api->nvmlGpmSampleGet(c->device, sample);
    (void)c->api->nvmlGpmSampleFree(sample);
    return code;
}

/* ------------------------------------------------------------------------- the table */

#define ROW(function, slot, values, keys)                                                          \
    {                                                                                              \
        SIM_FN_##function, SIM_##slot, values, keys, ask_##function                                \
    }

const struct rec_probe rec_probes[] = {
#define SIM_TEXT(function, slot) ROW(function, slot, 1, 1),
#define SIM_OUT(function, slot, type) ROW(function, slot, 1, 1),
#define SIM_OUT2(function, slot, slot2, type) ROW(function, slot, 2, 1),
#define SIM_KEYED(function, arg, count, slot, type) ROW(function, slot, 1, (unsigned int)(count)),
#define SIM_ENGINE(function, slot) ROW(function, slot, 1, 1),
#define SIM_TEXT_KEYED(function, arg, count, slot) ROW(function, slot, 1, (unsigned int)(count)),
#define SIM_WORDS(function, type, version, first, last)                                            \
    ROW(function, first, SIM_##last - SIM_##first + 1, 1),
#include "sim/answers.def"
    ROW(nvmlDeviceGetGspFirmwareVersion, GSP, 1, 1),
    ROW(nvmlDeviceGetMemoryInfo_v2, MEM_TOTAL, 4, 1),
    ROW(nvmlDeviceGetMemoryInfo, MEM_TOTAL, 4, 1),
    ROW(nvmlDeviceGetBAR1MemoryInfo, BAR1_TOTAL, 3, 1),
    ROW(nvmlDeviceGetUtilizationRates, UTIL_GPU, 2, 1),
    ROW(nvmlDeviceGetEncoderStats, ENC_SESSIONS, 3, 1),
    ROW(nvmlDeviceGetTemperatureV, TEMP, 1, 1),
    ROW(nvmlDeviceGetMarginTemperature, MARGIN, 1, 1),
    ROW(nvmlDeviceGetTotalEccErrors, ECC_TOTAL, 1, 4),
    ROW(nvmlDeviceGetMemoryErrorCounter, ECC_AT, 1, 4 * NVML_MEMORY_LOCATION_COUNT),
    ROW(nvmlDeviceGetAttributes_v2, ATTR_SM, 9, 1),
    ROW(nvmlDeviceGetClockOffsets, OFFSET_GRAPHICS_MIN, 2, 2),
    ROW(nvmlDeviceGetGpcClkMinMaxVfOffset, OFFSET_GRAPHICS_MIN, 2, 1),
    ROW(nvmlDeviceGetMemClkMinMaxVfOffset, OFFSET_MEMORY_MIN, 2, 1),
    ROW(nvmlDeviceValidateInforom, INFOROM_VALID, 1, 1),
    ROW(nvmlDeviceGetLastBBXFlushTime, BBX_STAMP, 2, 1),
    ROW(nvmlDeviceGetPdi, PDI, 1, 1),
    ROW(nvmlDeviceGetHostname_v1, HOSTNAME, 1, 1),
    ROW(nvmlDeviceGetPciInfoExt, PCI_BASE_CLASS, 2, 1),
    ROW(nvmlDeviceGetBridgeChipInfo, BRIDGE_TYPE, 2, 1),
    ROW(nvmlDeviceGetConfComputeProtectedMemoryUsage, PROTECTED_TOTAL, 3, 1),
    ROW(nvmlDeviceGetConfComputeMemSizeInfo, CC_PROTECTED, 2, 1),
    ROW(nvmlDeviceGetSramEccErrorStatus, SRAM_AGG_PARITY, 12, 1),
    ROW(nvmlDeviceGetRemappedRows, REMAPPED_COR, 6, 1),
    ROW(nvmlDeviceGetDramEncryptionMode, DRAM_ENC, 2, 1),
    ROW(nvmlDeviceGetGpuFabricInfoV, FABRIC_UUID, 6, 1),
    ROW(nvmlDeviceGetGpuFabricInfo, FABRIC_UUID, 6, 1),
    ROW(nvmlDeviceGetPlatformInfo, PLATFORM_CHASSIS, 7, 1),
    ROW(nvmlDeviceWorkloadPowerProfileGetCurrentProfiles, PROFILES_VALID, 3, 1),
    ROW(nvmlDeviceGetComputeRunningProcesses_v3, LIST_COMPUTE, 1, 1),
    ROW(nvmlDeviceGetComputeRunningProcesses_v2, LIST_COMPUTE, 1, 1),
    ROW(nvmlDeviceGetComputeRunningProcesses, LIST_COMPUTE, 1, 1),
    ROW(nvmlDeviceGetGraphicsRunningProcesses_v3, LIST_GRAPHICS, 1, 1),
    ROW(nvmlDeviceGetGraphicsRunningProcesses_v2, LIST_GRAPHICS, 1, 1),
    ROW(nvmlDeviceGetGraphicsRunningProcesses, LIST_GRAPHICS, 1, 1),
    ROW(nvmlDeviceGetMPSComputeRunningProcesses_v3, LIST_MPS, 1, 1),
    ROW(nvmlDeviceGetMPSComputeRunningProcesses_v2, LIST_MPS, 1, 1),
    ROW(nvmlDeviceGetMPSComputeRunningProcesses, LIST_MPS, 1, 1),
    ROW(nvmlDeviceGetProcessUtilization, PROCESS_UTIL, 1, 1),
    ROW(nvmlDeviceGetSamples, SAMPLES, 1, 1),
    ROW(nvmlGpmSampleGet, GPM, 1, 1),
};
const size_t rec_probe_count = GP_ARRAY_LEN(rec_probes);
