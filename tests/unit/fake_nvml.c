#include "fake_nvml.h"

#include <stdio.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define X(branch, ret, name, args) EXPORT ret name args;
NVML_FUNCTIONS(X)
#undef X

EXPORT struct fake_nvml *gpulse_fake_nvml(void);

static struct fake_nvml fake;

struct fake_nvml *gpulse_fake_nvml(void)
{
    return &fake;
}

/* Counts the call, and answers with the code that was set for it. */
#define ENTER(name)                                                                                \
    do {                                                                                           \
        fake.calls[FAKE_##name]++;                                                                 \
        if (fake.rc[FAKE_##name] != NVML_SUCCESS)                                                  \
            return fake.rc[FAKE_##name];                                                           \
    } while (0)

/* A function of a device with one result, and one with an argument between them. */
#define ANSWER(name, type, value)                                                                  \
    nvmlReturn_t name(nvmlDevice_t device, type *result)                                           \
    {                                                                                              \
        (void)device;                                                                              \
        ENTER(name);                                                                               \
        *result = (value);                                                                         \
        return NVML_SUCCESS;                                                                       \
    }
#define ANSWER_ARG(name, arg_type, type, value)                                                    \
    nvmlReturn_t name(nvmlDevice_t device, arg_type arg, type *result)                             \
    {                                                                                              \
        (void)device;                                                                              \
        (void)arg;                                                                                 \
        ENTER(name);                                                                               \
        *result = (value);                                                                         \
        return NVML_SUCCESS;                                                                       \
    }

static nvmlReturn_t give_text(const char *text, char *out, unsigned size)
{
    return snprintf(out, size, "%s", text) < (int)size ? NVML_SUCCESS
                                                       : NVML_ERROR_INSUFFICIENT_SIZE;
}

nvmlReturn_t nvmlInit_v2(void)
{
    ENTER(nvmlInit_v2);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlShutdown(void)
{
    ENTER(nvmlShutdown);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    ENTER(nvmlSystemGetDriverVersion);
    return give_text(fake.driver_version, version, length);
}

nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int length)
{
    ENTER(nvmlSystemGetProcessName);
    (void)pid;
    return give_text("/opt/job --fast", name, length);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    ENTER(nvmlDeviceGetHandleByIndex_v2);
    if (index >= fake.gpu_count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *device = &fake.gpus[index];
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
    ENTER(nvmlDeviceGetUUID);
    return give_text(device->uuid, uuid, length);
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
    ENTER(nvmlDeviceGetName);
    return give_text(device->name, name, length);
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    (void)device;
    ENTER(nvmlDeviceGetMemoryInfo_v2);
    if (memory->version != nvmlMemory_v2)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    *memory = fake.memory;
    return NVML_SUCCESS;
}

/* The older call counts what is reserved as used. */
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    (void)device;
    ENTER(nvmlDeviceGetMemoryInfo);
    *memory = (nvmlMemory_t){.total = fake.memory.total,
                             .free = fake.memory.free,
                             .used = fake.memory.used + fake.memory.reserved};
    return NVML_SUCCESS;
}

ANSWER(nvmlDeviceGetBAR1MemoryInfo, nvmlBAR1Memory_t, fake.bar1)
ANSWER(nvmlDeviceGetUtilizationRates, nvmlUtilization_t, fake.utilization)
ANSWER_ARG(nvmlDeviceGetTemperature, nvmlTemperatureSensors_t, unsigned int, fake.temperature)
ANSWER(nvmlDeviceGetFanSpeed, unsigned int, fake.fan)
ANSWER(nvmlDeviceGetPowerUsage, unsigned int, fake.power_mw)
ANSWER_ARG(nvmlDeviceGetClockInfo, nvmlClockType_t, unsigned int, fake.clock_mhz)
ANSWER(nvmlDeviceGetCurrPcieLinkWidth, unsigned int, fake.pcie_width)
ANSWER(nvmlDeviceGetMaxMigDeviceCount, unsigned int, FAKE_NVML_MIGS)
ANSWER(nvmlDeviceGetGpuInstanceId, unsigned int, device->gpu_instance)
ANSWER(nvmlDeviceGetComputeInstanceId, unsigned int, device->compute_instance)

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    ENTER(nvmlDeviceGetCount_v2);
    *count = fake.gpu_count;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned int *min_mw,
                                                          unsigned int *max_mw)
{
    (void)device;
    ENTER(nvmlDeviceGetPowerManagementLimitConstraints);
    *min_mw = 100000;
    *max_mw = fake.limit_max_mw;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, nvmlEnableState_t *current,
                                  nvmlEnableState_t *pending)
{
    (void)device;
    ENTER(nvmlDeviceGetEccMode);
    *current = *pending = NVML_FEATURE_ENABLED;
    return NVML_SUCCESS;
}

static void give_link_field(nvmlFieldValue_t *field, unsigned id, unsigned scope)
{
    field->valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
    field->nvmlReturn = NVML_SUCCESS;
    if (id == NVML_FI_DEV_NVLINK_LINK_COUNT)
        field->value.ullVal = fake.links;
    else if (id == NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX && scope < fake.real_links)
        field->value.ullVal = fake.link_kib + scope;
    else
        field->nvmlReturn = NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
    (void)device;
    ENTER(nvmlDeviceGetFieldValues);
    for (int i = 0; i < count; i++) {
        unsigned id = fake.asked_field = values[i].fieldId;
        unsigned scope = fake.asked_scope = values[i].scopeId;
        values[i] = fake.field;
        values[i].fieldId = id;
        values[i].scopeId = 0xdead; /* what comes back of it is not to be relied on */
        if (fake.links)
            give_link_field(&values[i], id, scope);
    }
    return NVML_SUCCESS;
}

/* ---- lists of numbers ---- */

static bool has_room(struct fake_nvml_numbers *list, unsigned int *count)
{
    list->count += list->grows;
    if (list->count > FAKE_NVML_NUMBERS)
        list->count = FAKE_NVML_NUMBERS;
    bool fits = *count >= list->count;
    *count = list->claims ? list->claims : list->count;
    return fits;
}

static nvmlReturn_t give_numbers(struct fake_nvml_numbers *list, unsigned int *count,
                                 unsigned int *out)
{
    if (!has_room(list, count))
        return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(out, list->entries, list->count * sizeof(*out));
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t device, unsigned int *count,
                                                unsigned int *clocks)
{
    (void)device;
    ENTER(nvmlDeviceGetSupportedMemoryClocks);
    return give_numbers(&fake.memory_clocks, count, clocks);
}

nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t device, unsigned int memory,
                                                  unsigned int *count, unsigned int *clocks)
{
    (void)device;
    ENTER(nvmlDeviceGetSupportedGraphicsClocks);
    return memory == fake.unknown_clock ? NVML_ERROR_NOT_FOUND
                                        : give_numbers(&fake.graphics_clocks, count, clocks);
}

ANSWER(nvmlDeviceGetAccountingMode, nvmlEnableState_t, NVML_FEATURE_ENABLED)

nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t device, unsigned int *count,
                                         unsigned int *pids)
{
    (void)device;
    ENTER(nvmlDeviceGetAccountingPids);
    return give_numbers(&fake.pids, count, pids);
}

nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t device, unsigned int pid,
                                          nvmlAccountingStats_t *stats)
{
    (void)device;
    ENTER(nvmlDeviceGetAccountingStats);
    if (pid == fake.forgotten_pid)
        return NVML_ERROR_NOT_FOUND;
    *stats = fake.account;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetRetiredPages_v2(nvmlDevice_t device, nvmlPageRetirementCause_t cause,
                                          unsigned int *count, unsigned long long *addresses,
                                          unsigned long long *times)
{
    (void)device;
    ENTER(nvmlDeviceGetRetiredPages_v2);
    if (cause == NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR) {
        *count = 0;
        return NVML_SUCCESS;
    }
    if (!has_room(&fake.pages, count))
        return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < fake.pages.count; i++) {
        addresses[i] = fake.pages.entries[i];
        times[i] = 1700000000ULL + i;
    }
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link,
                                      nvmlEnableState_t *state)
{
    (void)device;
    ENTER(nvmlDeviceGetNvLinkState);
    if (link >= fake.real_links)
        return NVML_ERROR_INVALID_ARGUMENT;
    *state = NVML_FEATURE_ENABLED;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t device, nvmlDevice_t other,
                                                 nvmlGpuTopologyLevel_t *level)
{
    (void)device;
    (void)other;
    ENTER(nvmlDeviceGetTopologyCommonAncestor);
    *level = NVML_TOPOLOGY_HOSTBRIDGE;
    return NVML_SUCCESS;
}

/* ---- processes ---- */

static nvmlReturn_t give_list(struct fake_nvml_list *list, size_t stride, unsigned int *count,
                              void *out)
{
    list->count += list->grows;
    if (list->count > FAKE_NVML_PROCESSES)
        list->count = FAKE_NVML_PROCESSES;
    bool fits = *count >= list->count;
    *count = list->claims ? list->claims : list->count;
    if (!fits)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < list->count; i++) {
        unsigned char entry[sizeof(nvmlProcessInfo_r535_t)];
        memset(entry, 0xee, sizeof(entry)); /* the fifth member, where there is one */
        memcpy(entry, &list->entries[i], sizeof(list->entries[i]));
        memcpy((char *)out + i * stride, entry, stride);
    }
    return NVML_SUCCESS;
}

static size_t stride_v3(void)
{
    return fake.wide_entries ? sizeof(nvmlProcessInfo_r535_t) : sizeof(nvmlProcessInfo_t);
}

#define LIST(name, list, type, stride)                                                             \
    nvmlReturn_t name(nvmlDevice_t device, unsigned int *count, type *infos)                       \
    {                                                                                              \
        ENTER(name);                                                                               \
        if (device->forbidden)                                                                     \
            return NVML_ERROR_NO_PERMISSION;                                                       \
        return give_list(&fake.list, stride, count, infos);                                        \
    }

LIST(nvmlDeviceGetComputeRunningProcesses_v3, compute, nvmlProcessInfo_t, stride_v3())
LIST(nvmlDeviceGetComputeRunningProcesses_v2, compute, nvmlProcessInfo_v2_t,
     sizeof(nvmlProcessInfo_v2_t))
LIST(nvmlDeviceGetComputeRunningProcesses, compute, nvmlProcessInfo_v1_t,
     sizeof(nvmlProcessInfo_v1_t))
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, graphics, nvmlProcessInfo_t, stride_v3())
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, mps, nvmlProcessInfo_t, stride_v3())

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
                                             nvmlProcessUtilizationSample_t *samples,
                                             unsigned int *count, unsigned long long last_seen)
{
    (void)device;
    ENTER(nvmlDeviceGetProcessUtilization);
    fake.asked_since_us = last_seen;
    unsigned room = *count;
    *count = fake.claimed_samples ? fake.claimed_samples : fake.sample_count;
    if (room < fake.sample_count)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(samples, fake.samples, fake.sample_count * sizeof(*samples));
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device,
                                                   nvmlProcessesUtilizationInfo_t *info)
{
    (void)device;
    ENTER(nvmlDeviceGetProcessesUtilizationInfo);
    if (info->version != nvmlProcessesUtilizationInfo_v1)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    fake.asked_since_us = info->lastSeenTimeStamp;
    unsigned room = info->processSamplesCount;
    info->processSamplesCount = fake.sample_count;
    if (room < fake.sample_count)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < fake.sample_count; i++)
        info->procUtilArray[i] = (nvmlProcessUtilizationInfo_v1_t){
            .timeStamp = fake.samples[i].timeStamp,
            .pid = fake.samples[i].pid,
            .smUtil = fake.samples[i].smUtil,
            .memUtil = fake.samples[i].memUtil,
            .jpgUtil = 7,
            .ofaUtil = 9,
        };
    return NVML_SUCCESS;
}

/* ---- activity ---- */

ANSWER(nvmlDeviceGetTotalEnergyConsumption, unsigned long long, fake.energy_mj)
ANSWER_ARG(nvmlDeviceGetPcieThroughput, nvmlPcieUtilCounter_t, unsigned int, fake.pcie_kb_per_s)

nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, nvmlSamplingType_t type,
                                  unsigned long long last_seen, nvmlValueType_t *value_type,
                                  unsigned int *count, nvmlSample_t *samples)
{
    (void)device;
    (void)type;
    ENTER(nvmlDeviceGetSamples);
    fake.asked_since_us = last_seen;
    *value_type = fake.series_type;
    if (!samples) {
        *count = fake.series_claimed ? fake.series_claimed : fake.series_count;
        return NVML_SUCCESS;
    }
    if (*count < fake.series_count)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(samples, fake.series, fake.series_count * sizeof(*samples));
    *count = fake.series_claimed ? fake.series_claimed : fake.series_count;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t *support)
{
    (void)device;
    ENTER(nvmlGpmQueryDeviceSupport);
    support->isSupportedDevice = !fake.gpm_unsupported;
    return support->version == 1 ? NVML_SUCCESS : NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
}

nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *sample)
{
    ENTER(nvmlGpmSampleAlloc);
    *sample = (nvmlGpmSample_t)&fake.gpm_samples;
    fake.gpm_samples++;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample)
{
    (void)sample;
    ENTER(nvmlGpmSampleFree);
    fake.gpm_samples--;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample)
{
    (void)device;
    (void)sample;
    ENTER(nvmlGpmSampleGet);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t device, unsigned int gpu_instance,
                                 nvmlGpmSample_t sample)
{
    (void)device;
    (void)sample;
    ENTER(nvmlGpmMigSampleGet);
    fake.gpm_instance = gpu_instance;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *get)
{
    ENTER(nvmlGpmMetricsGet);
    if (get->version != 1)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    for (unsigned i = 0; i < get->numMetrics; i++) {
        get->metrics[i].nvmlReturn = fake.gpm_rc;
        get->metrics[i].value = fake.gpm_value;
    }
    return NVML_SUCCESS;
}

/* ---- MIG ---- */

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending)
{
    ENTER(nvmlDeviceGetMigMode);
    *current = *pending = fake.mig_enabled && device == &fake.gpus[0];
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index,
                                                 nvmlDevice_t *mig)
{
    (void)device;
    ENTER(nvmlDeviceGetMigDeviceHandleByIndex);
    if (index >= FAKE_NVML_MIGS || !fake.migs[index].present)
        return NVML_ERROR_NOT_FOUND;
    *mig = &fake.migs[index];
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t *attributes)
{
    ENTER(nvmlDeviceGetAttributes_v2);
    *attributes = (nvmlDeviceAttributes_t){.multiprocessorCount = 60,
                                           .sharedCopyEngineCount = 1,
                                           .sharedDecoderCount = 2,
                                           .sharedEncoderCount = 3,
                                           .sharedJpegCount = 4,
                                           .sharedOfaCount = UINT32_MAX,
                                           .gpuInstanceSliceCount = device->gpu_instance,
                                           .computeInstanceSliceCount = device->gpu_instance,
                                           .memorySizeMB = 20000};
    return NVML_SUCCESS;
}

/* ---- identity and health ---- */

#define REFUSE_VERSION(word, expected)                                                             \
    do {                                                                                           \
        if ((word) != (expected))                                                                  \
            return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;                                           \
    } while (0)

nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, nvmlGpuFabricInfoV_t *info)
{
    (void)device;
    ENTER(nvmlDeviceGetGpuFabricInfoV);
    size_t size = info->version == nvmlGpuFabricInfo_v3   ? sizeof(nvmlGpuFabricInfo_v3_t)
                  : info->version == nvmlGpuFabricInfo_v2 ? sizeof(nvmlGpuFabricInfo_v2_t)
                                                          : 0;
    if (size == 0 || info->version >> 24 > fake.fabric_version)
        return fake.version_refusal;
    fake.fabric.version = info->version;
    memcpy(info, &fake.fabric, size);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device, nvmlGpuFabricInfo_t *info)
{
    (void)device;
    ENTER(nvmlDeviceGetGpuFabricInfo);
    memcpy(info->clusterUuid, fake.fabric.clusterUuid, sizeof(info->clusterUuid));
    info->status = fake.fabric.status;
    info->cliqueId = fake.fabric.cliqueId;
    info->state = fake.fabric.state;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPlatformInfo(nvmlDevice_t device, nvmlPlatformInfo_t *info)
{
    (void)device;
    ENTER(nvmlDeviceGetPlatformInfo);
    REFUSE_VERSION(info->version, fake.platform_v1 ? nvmlPlatformInfo_v1 : nvmlPlatformInfo_v2);
    fake.platform.version = info->version;
    *info = fake.platform;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t device, nvmlPciInfoExt_t *pci)
{
    (void)device;
    ENTER(nvmlDeviceGetPciInfoExt);
    REFUSE_VERSION(pci->version, nvmlPciInfoExt_v1);
    *pci = fake.pci;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    (void)device;
    ENTER(nvmlDeviceGetPciInfo_v3);
    *pci = (nvmlPciInfo_t){.domain = fake.pci.domain,
                           .bus = fake.pci.bus,
                           .device = fake.pci.device,
                           .pciDeviceId = fake.pci.pciDeviceId};
    memcpy(pci->busId, fake.pci.busId, sizeof(pci->busId));
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetInforomVersion(nvmlDevice_t device, nvmlInforomObject_t object,
                                         char *version, unsigned int length)
{
    (void)device;
    ENTER(nvmlDeviceGetInforomVersion);
    return object == NVML_INFOROM_ECC ? give_text(fake.text, version, length)
                                      : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceValidateInforom(nvmlDevice_t device)
{
    (void)device;
    ENTER(nvmlDeviceValidateInforom);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetLastBBXFlushTime(nvmlDevice_t device, unsigned long long *timestamp,
                                           unsigned long *duration_us)
{
    (void)device;
    ENTER(nvmlDeviceGetLastBBXFlushTime);
    *timestamp = fake.count;
    *duration_us = fake.words[0];
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPdi(nvmlDevice_t device, nvmlPdi_t *pdi)
{
    (void)device;
    ENTER(nvmlDeviceGetPdi);
    REFUSE_VERSION(pdi->version, nvmlPdi_v1);
    pdi->value = fake.count;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGspFirmwareVersion(nvmlDevice_t device, char *version)
{
    (void)device;
    ENTER(nvmlDeviceGetGspFirmwareVersion);
    return give_text(fake.text, version, NVML_GSP_FIRMWARE_VERSION_BUF_SIZE);
}

nvmlReturn_t nvmlDeviceGetDriverModel(nvmlDevice_t device, nvmlDriverModel_t *current,
                                      nvmlDriverModel_t *pending)
{
    (void)device;
    ENTER(nvmlDeviceGetDriverModel);
    *current = (nvmlDriverModel_t)fake.words[0];
    *pending = (nvmlDriverModel_t)fake.words[1];
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetBridgeChipInfo(nvmlDevice_t device, nvmlBridgeChipHierarchy_t *chips)
{
    (void)device;
    ENTER(nvmlDeviceGetBridgeChipInfo);
    chips->bridgeCount = (unsigned char)fake.words[0];
    for (unsigned i = 0; i < chips->bridgeCount; i++)
        chips->bridgeChipInfo[i] =
            (nvmlBridgeChipInfo_t){(nvmlBridgeChipType_t)fake.words[1 + i], fake.words[3 + i]};
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCapabilities(nvmlDevice_t device, nvmlDeviceCapabilities_t *caps)
{
    (void)device;
    ENTER(nvmlDeviceGetCapabilities);
    REFUSE_VERSION(caps->version, nvmlDeviceCapabilities_v1);
    caps->capMask = fake.words[0];
    return NVML_SUCCESS;
}

/* ---- the video units ---- */

#define UNIT(name, value)                                                                          \
    nvmlReturn_t name(nvmlDevice_t device, unsigned int *percent, unsigned int *period_us)         \
    {                                                                                              \
        (void)device;                                                                              \
        ENTER(name);                                                                               \
        *percent = (value);                                                                        \
        *period_us = 167000;                                                                       \
        return NVML_SUCCESS;                                                                       \
    }
UNIT(nvmlDeviceGetEncoderUtilization, fake.encoder_pct)
UNIT(nvmlDeviceGetDecoderUtilization, fake.decoder_pct)

nvmlReturn_t nvmlDeviceGetEncoderStats(nvmlDevice_t device, unsigned int *sessions,
                                       unsigned int *fps, unsigned int *latency_us)
{
    (void)device;
    ENTER(nvmlDeviceGetEncoderStats);
    *sessions = fake.words[0];
    *fps = fake.words[1];
    *latency_us = fake.words[2];
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetRepairStatus(nvmlDevice_t device, nvmlRepairStatus_t *status)
{
    (void)device;
    ENTER(nvmlDeviceGetRepairStatus);
    REFUSE_VERSION(status->version, nvmlRepairStatus_v1);
    status->bChannelRepairPending = fake.words[0];
    status->bTpcRepairPending = fake.words[1];
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetRowRemapperHistogram(nvmlDevice_t device,
                                               nvmlRowRemapperHistogramValues_t *values)
{
    (void)device;
    ENTER(nvmlDeviceGetRowRemapperHistogram);
    memcpy(values, fake.words, sizeof(*values));
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *correctable,
                                       unsigned int *uncorrectable, unsigned int *pending,
                                       unsigned int *failure)
{
    (void)device;
    ENTER(nvmlDeviceGetRemappedRows);
    *correctable = fake.words[0];
    *uncorrectable = fake.words[1];
    *pending = fake.words[2];
    *failure = fake.words[3];
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, nvmlMemoryErrorType_t type,
                                             nvmlEccCounterType_t counter,
                                             nvmlMemoryLocation_t location,
                                             unsigned long long *count)
{
    (void)device;
    ENTER(nvmlDeviceGetMemoryErrorCounter);
    fake.asked_location = location;
    *count = fake.count + 100 * (unsigned)type + 10 * (unsigned)counter;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSramEccErrorStatus(nvmlDevice_t device, nvmlEccSramErrorStatus_t *status)
{
    (void)device;
    ENTER(nvmlDeviceGetSramEccErrorStatus);
    REFUSE_VERSION(status->version, nvmlEccSramErrorStatus_v1);
    *status = fake.sram;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetDramEncryptionMode(nvmlDevice_t device, nvmlDramEncryptionInfo_t *current,
                                             nvmlDramEncryptionInfo_t *pending)
{
    (void)device;
    ENTER(nvmlDeviceGetDramEncryptionMode);
    REFUSE_VERSION(current->version, nvmlDramEncryptionInfo_v1);
    REFUSE_VERSION(pending->version, nvmlDramEncryptionInfo_v1);
    current->encryptionState = (nvmlEnableState_t)fake.words[0];
    pending->encryptionState = (nvmlEnableState_t)fake.words[1];
    return NVML_SUCCESS;
}

ANSWER_ARG(nvmlDeviceGetApplicationsClock, nvmlClockType_t, unsigned int, fake.clock_mhz)

/* ---- the host ---- */

nvmlReturn_t nvmlSystemGetConfComputeSettings(nvmlSystemConfComputeSettings_t *settings)
{
    ENTER(nvmlSystemGetConfComputeSettings);
    REFUSE_VERSION(settings->version, nvmlSystemConfComputeSettings_v1);
    settings->environment = fake.words[0];
    settings->ccFeature = fake.words[1];
    settings->devToolsMode = fake.words[2];
    settings->multiGpuMode = fake.words[3];
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetConfComputeState(nvmlConfComputeSystemState_t *state)
{
    ENTER(nvmlSystemGetConfComputeState);
    memcpy(state, fake.words, sizeof(*state));
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetConfComputeCapabilities(nvmlConfComputeSystemCaps_t *caps)
{
    ENTER(nvmlSystemGetConfComputeCapabilities);
    memcpy(caps, fake.words, sizeof(*caps));
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetConfComputeGpusReadyState(unsigned int *ready)
{
    ENTER(nvmlSystemGetConfComputeGpusReadyState);
    *ready = fake.words[0];
    return NVML_SUCCESS;
}

/* ---- events ---- */

struct nvmlEventSet_st {
    char unused;
};

static struct nvmlEventSet_st the_set;

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
    ENTER(nvmlEventSetCreate);
    fake.sets++;
    memset(fake.registered, 0, sizeof(fake.registered));
    *set = &the_set;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
    ENTER(nvmlEventSetFree);
    if (set != &the_set || fake.sets == 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    fake.sets--;
    return NVML_SUCCESS;
}

ANSWER(nvmlDeviceGetSupportedEventTypes, unsigned long long, fake.event_types)

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types,
                                      nvmlEventSet_t set)
{
    ENTER(nvmlDeviceRegisterEvents);
    if (set != &the_set || types == 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (device == fake.unknown_gpu)
        return NVML_ERROR_UNKNOWN;
    if (types & (fake.refused_types | ~fake.event_types))
        return NVML_ERROR_NOT_SUPPORTED;
    fake.registered[device - fake.gpus] |= types;
    return NVML_SUCCESS;
}

static nvmlReturn_t give_event(nvmlEventData_t *data, size_t size, unsigned int timeout_ms)
{
    fake.waited_ms = timeout_ms;
    if (fake.event_next == fake.event_count)
        return NVML_ERROR_TIMEOUT;
    memcpy(data, &fake.events[fake.event_next++], size);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms)
{
    (void)set;
    ENTER(nvmlEventSetWait);
    return give_event(data, offsetof(nvmlEventData_t, gpuInstanceId), timeout_ms);
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms)
{
    (void)set;
    ENTER(nvmlEventSetWait_v2);
    return give_event(data, sizeof(*data), timeout_ms);
}
