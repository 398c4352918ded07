/* Identity, location and memory health of a simulated GPU: the calls with complex structs. Each
 * writes only what the caller's version of a struct contains. */
#include "sim/driver.h"
#include "sim/setting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------- identity */

SIM_EXPORT nvmlReturn_t nvmlDeviceValidateInforom(nvmlDevice_t device)
{
    static const enum sim_slot slots[] = {SIM_INFOROM_VALID};
    uint64_t v;
    return sim_answer_numbers(SIM_FN_nvmlDeviceValidateInforom, device, true, slots, 1, &v);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetLastBBXFlushTime(nvmlDevice_t device,
                                                      unsigned long long *timestamp,
                                                      unsigned long *duration_us)
{
    static const enum sim_slot slots[] = {SIM_BBX_STAMP, SIM_BBX_DURATION};
    uint64_t v[2];
    nvmlReturn_t code = sim_answer_numbers(SIM_FN_nvmlDeviceGetLastBBXFlushTime, device,
                                           timestamp && duration_us, slots, 2, v);
    if (code == NVML_SUCCESS) {
        *timestamp = v[0];
        *duration_us = (unsigned long)v[1];
    }
    return code;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetPdi(nvmlDevice_t device, nvmlPdi_t *pdi)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter_device(&call, SIM_FN_nvmlDeviceGetPdi, device, pdi != NULL);
    if (code == NVML_SUCCESS && pdi->version != nvmlPdi_v1)
        code = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (code == NVML_SUCCESS) {
        const struct sim_value *v = &call.device->answers[SIM_PDI];
        code = v->code;
        if (code == NVML_SUCCESS)
            pdi->value = strtoull(v->text, NULL, 16);
    }
    return sim_leave(code);
}

/* The hostname set by a client. */
static bool get_hostname(const struct sim_call *call, char name[NVML_HOSTNAME_BUFFER_SIZE])
{
    for (size_t i = 0; i < NVML_HOSTNAME_BUFFER_SIZE / 8; i++) {
        uint64_t letters;
        enum sim_setting setting = (enum sim_setting)(SIM_SET_HOSTNAME + i);
        if (!sim_setting_get(&call->live, call->device, setting, &letters))
            return false;
        memcpy(&name[i * 8], &letters, sizeof(letters));
    }
    return true;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetHostname_v1(nvmlDevice_t device, nvmlHostname_v1_t *hostname)
{
    struct sim_call call;
    nvmlReturn_t code =
        sim_enter_device(&call, SIM_FN_nvmlDeviceGetHostname_v1, device, hostname != NULL);
    if (code == NVML_SUCCESS) {
        const struct sim_value *v = &call.device->answers[SIM_HOSTNAME];
        code = v->code;
        if (code == NVML_SUCCESS && !get_hostname(&call, hostname->value))
            (void)snprintf(hostname->value, sizeof(hostname->value), "%s", v->text);
    }
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t device, nvmlPciInfoExt_t *pci)
{
    struct sim_call call;
    uint64_t base, sub;
    nvmlReturn_t code =
        sim_enter_device(&call, SIM_FN_nvmlDeviceGetPciInfoExt, device, pci != NULL);
    if (code == NVML_SUCCESS && pci->version != nvmlPciInfoExt_v1)
        code = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (code == NVML_SUCCESS)
        code = sim_read(&call, SIM_PCI_BASE_CLASS, &base);
    if (code == NVML_SUCCESS)
        code = sim_read(&call, SIM_PCI_SUB_CLASS, &sub);
    if (code == NVML_SUCCESS) {
        const struct sim_device *d = call.device;
        pci->domain = d->pci_domain;
        pci->bus = d->pci_bus;
        pci->device = d->pci_slot;
        pci->pciDeviceId = d->pci_device_id;
        pci->pciSubSystemId = d->pci_subsystem_id;
        pci->baseClass = (unsigned int)base;
        pci->subClass = (unsigned int)sub;
        (void)snprintf(pci->busId, sizeof(pci->busId), "%08X:%02X:%02X.0", d->pci_domain,
                       d->pci_bus, d->pci_slot);
    }
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetBridgeChipInfo(nvmlDevice_t device,
                                                    nvmlBridgeChipHierarchy_t *chips)
{
    struct sim_call call;
    uint64_t type, firmware = 0;
    nvmlReturn_t code =
        sim_enter_device(&call, SIM_FN_nvmlDeviceGetBridgeChipInfo, device, chips != NULL);
    if (code == NVML_SUCCESS)
        code = sim_read(&call, SIM_BRIDGE_TYPE, &type);
    if (code == NVML_SUCCESS) {
        (void)sim_read(&call, SIM_BRIDGE_FIRMWARE, &firmware);
        chips->bridgeCount = 1;
        chips->bridgeChipInfo[0] = (nvmlBridgeChipInfo_t){.type = (nvmlBridgeChipType_t)type,
                                                          .fwVersion = (unsigned int)firmware};
    }
    return sim_leave(code);
}

/* ------------------------------------------------------------------------- memory */

SIM_EXPORT nvmlReturn_t nvmlDeviceGetConfComputeProtectedMemoryUsage(nvmlDevice_t device,
                                                                     nvmlMemory_t *memory)
{
    static const enum sim_slot slots[] = {SIM_PROTECTED_TOTAL, SIM_PROTECTED_FREE,
                                          SIM_PROTECTED_USED};
    uint64_t v[3];
    nvmlReturn_t code = sim_answer_numbers(SIM_FN_nvmlDeviceGetConfComputeProtectedMemoryUsage,
                                           device, memory != NULL, slots, 3, v);
    if (code == NVML_SUCCESS)
        *memory = (nvmlMemory_t){.total = v[0], .free = v[1], .used = v[2]};
    return code;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetConfComputeMemSizeInfo(nvmlDevice_t device,
                                                            nvmlConfComputeMemSizeInfo_t *sizes)
{
    static const enum sim_slot slots[] = {SIM_CC_PROTECTED, SIM_CC_UNPROTECTED};
    uint64_t v[2];
    nvmlReturn_t code = sim_answer_numbers(SIM_FN_nvmlDeviceGetConfComputeMemSizeInfo, device,
                                           sizes != NULL, slots, 2, v);
    if (code == NVML_SUCCESS)
        *sizes = (nvmlConfComputeMemSizeInfo_t){.protectedMemSizeKib = v[0],
                                                .unprotectedMemSizeKib = v[1]};
    return code;
}

/* Consecutive members of one struct. A capture may have some of them only; the others are 0.
 * Without any, the first one's code. */
static nvmlReturn_t read_any(const struct sim_call *call, enum sim_slot first, unsigned int count,
                             uint64_t *ret)
{
    nvmlReturn_t code = NVML_SUCCESS;
    bool any = false;
    for (unsigned int i = 0; i < count; i++) {
        ret[i] = 0;
        nvmlReturn_t one = sim_read(call, (enum sim_slot)(first + i), &ret[i]);
        any = any || one == NVML_SUCCESS;
        code = code == NVML_SUCCESS ? one : code;
    }
    return any ? NVML_SUCCESS : code;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetSramEccErrorStatus(nvmlDevice_t device,
                                                        nvmlEccSramErrorStatus_t *status)
{
    enum { COUNTERS = SIM_SRAM_THRESHOLD - SIM_SRAM_AGG_PARITY };
    struct sim_call call;
    uint64_t v[COUNTERS + 1];
    nvmlReturn_t code =
        sim_enter_device(&call, SIM_FN_nvmlDeviceGetSramEccErrorStatus, device, status != NULL);
    if (code == NVML_SUCCESS && status->version != nvmlEccSramErrorStatus_v1)
        code = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (code == NVML_SUCCESS)
        code = read_any(&call, SIM_SRAM_AGG_PARITY, COUNTERS + 1, v);
    if (code == NVML_SUCCESS) {
        /* The counters are consecutive, like the slots. */
        memcpy((char *)status + offsetof(nvmlEccSramErrorStatus_t, aggregateUncParity), v,
               COUNTERS * sizeof(v[0]));
        status->bThresholdExceeded = (unsigned int)v[COUNTERS];
    }
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *correctable,
                                                  unsigned int *uncorrectable,
                                                  unsigned int *pending, unsigned int *failure)
{
    static const enum sim_slot slots[] = {SIM_REMAPPED_COR, SIM_REMAPPED_UNC, SIM_REMAPPED_PENDING,
                                          SIM_REMAPPED_FAILURE};
    uint64_t v[4];
    nvmlReturn_t code =
        sim_answer_numbers(SIM_FN_nvmlDeviceGetRemappedRows, device,
                           correctable && uncorrectable && pending && failure, slots, 4, v);
    if (code == NVML_SUCCESS) {
        *correctable = (unsigned int)v[0];
        *uncorrectable = (unsigned int)v[1];
        *pending = (unsigned int)v[2];
        *failure = (unsigned int)v[3];
    }
    return code;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetDramEncryptionMode(nvmlDevice_t device,
                                                        nvmlDramEncryptionInfo_t *current,
                                                        nvmlDramEncryptionInfo_t *pending)
{
    struct sim_call call;
    uint64_t v[2];
    nvmlReturn_t code =
        sim_enter_device(&call, SIM_FN_nvmlDeviceGetDramEncryptionMode, device, current && pending);
    if (code == NVML_SUCCESS && (current->version != nvmlDramEncryptionInfo_v1 ||
                                 pending->version != nvmlDramEncryptionInfo_v1))
        code = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (code == NVML_SUCCESS)
        code = sim_read(&call, SIM_DRAM_ENC, &v[0]);
    if (code == NVML_SUCCESS)
        code = sim_read(&call, SIM_DRAM_ENC_PENDING, &v[1]);
    if (code == NVML_SUCCESS) {
        current->encryptionState = (nvmlEnableState_t)v[0];
        pending->encryptionState = (nvmlEnableState_t)v[1];
    }
    return sim_leave(code);
}

/* ------------------------------------------------------------------------- fabric, platform */

/* Bytes from hexadecimal text; dashes and a leading "0x" are ignored. */
static void put_hex(const struct sim_value *v, unsigned char *out, size_t size)
{
    const char *text = v->code == NVML_SUCCESS ? v->text : "";
    text += strncmp(text, "0x", 2) == 0 ? 2 : 0;
    memset(out, 0, size);
    for (size_t i = 0; i < size; i++) {
        unsigned int byte;
        text += *text == '-';
        if (sscanf(text, "%2x", &byte) != 1)
            break;
        out[i] = (unsigned char)byte;
        text += strlen(text) < 2 ? 1 : 2;
    }
}

static nvmlReturn_t fabric_info(enum sim_function function, nvmlDevice_t device, void *out,
                                const unsigned int *version, size_t size)
{
    static const enum sim_slot slots[] = {SIM_FABRIC_STATUS, SIM_FABRIC_CLIQUE, SIM_FABRIC_STATE,
                                          SIM_FABRIC_HEALTH, SIM_FABRIC_SUMMARY};
    struct sim_call call;
    uint64_t v[GP_ARRAY_LEN(slots)] = {0};
    nvmlReturn_t code = sim_enter_device(&call, function, device, out != NULL);
    if (code == NVML_SUCCESS && version && *version == nvmlGpuFabricInfo_v2)
        size = sizeof(nvmlGpuFabricInfo_v2_t);
    else if (code == NVML_SUCCESS && version &&
             (*version != nvmlGpuFabricInfo_v3 || !sim_driver_is(call.machine->driver, 580, 0)))
        code = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (code == NVML_SUCCESS)
        code = sim_read(&call, SIM_FABRIC_STATE, &v[2]);
    for (size_t i = 0; code == NVML_SUCCESS && i < GP_ARRAY_LEN(slots); i++)
        (void)sim_read(&call, slots[i], &v[i]);
    if (code == NVML_SUCCESS) {
        nvmlGpuFabricInfo_v3_t info = {
            .version = version ? *version : 0,
            .status = (nvmlReturn_t)v[0],
            .cliqueId = (unsigned int)v[1],
            .state = (unsigned char)v[2],
            .healthMask = (unsigned int)v[3],
            .healthSummary = (unsigned char)v[4],
        };
        put_hex(&call.device->answers[SIM_FABRIC_UUID], info.clusterUuid, sizeof(info.clusterUuid));
        /* The oldest version has no version word; the others are prefixes of the newest. */
        size_t skip = version ? 0 : offsetof(nvmlGpuFabricInfo_v3_t, clusterUuid);
        memcpy(out, (const char *)&info + skip, size);
    }
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device, nvmlGpuFabricInfo_t *info)
{
    return fabric_info(SIM_FN_nvmlDeviceGetGpuFabricInfo, device, info, NULL, sizeof(*info));
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, nvmlGpuFabricInfoV_t *info)
{
    return fabric_info(SIM_FN_nvmlDeviceGetGpuFabricInfoV, device, info,
                       info ? &info->version : NULL, sizeof(*info));
}

/* A byte that the machine does not have is all ones. */
static unsigned char byte_of(const struct sim_device *device, enum sim_slot slot)
{
    const struct sim_value *v = &device->answers[slot];
    return v->code == NVML_SUCCESS ? (unsigned char)v->number : UINT8_MAX;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetPlatformInfo(nvmlDevice_t device, nvmlPlatformInfo_t *info)
{
    struct sim_call call;
    nvmlReturn_t code =
        sim_enter_device(&call, SIM_FN_nvmlDeviceGetPlatformInfo, device, info != NULL);
    bool v1 = code == NVML_SUCCESS && info->version == nvmlPlatformInfo_v1;
    if (code == NVML_SUCCESS && !v1 && info->version != nvmlPlatformInfo_v2)
        code = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (code == NVML_SUCCESS)
        code = call.device->answers[SIM_PLATFORM_MODULE].code;
    if (code == NVML_SUCCESS) {
        const struct sim_value *chassis = &call.device->answers[SIM_PLATFORM_CHASSIS];
        put_hex(&call.device->answers[SIM_PLATFORM_GUID], info->ibGuid, sizeof(info->ibGuid));
        /* The first version has the rack's GUID in its place. */
        memset(info->chassisSerialNumber, 0, sizeof(info->chassisSerialNumber));
        if (!v1 && chassis->code == NVML_SUCCESS)
            memcpy(info->chassisSerialNumber, chassis->text,
                   strnlen(chassis->text, sizeof(info->chassisSerialNumber)));
        info->slotNumber = byte_of(call.device, SIM_PLATFORM_SLOT);
        info->trayIndex = byte_of(call.device, SIM_PLATFORM_TRAY);
        info->hostId = byte_of(call.device, SIM_PLATFORM_HOST);
        info->peerType = byte_of(call.device, SIM_PLATFORM_PEER);
        info->moduleId = byte_of(call.device, SIM_PLATFORM_MODULE);
    }
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceWorkloadPowerProfileGetCurrentProfiles(
    nvmlDevice_t device, nvmlWorkloadPowerProfileCurrentProfiles_t *profiles)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter_device(
        &call, SIM_FN_nvmlDeviceWorkloadPowerProfileGetCurrentProfiles, device, profiles != NULL);
    if (code == NVML_SUCCESS && profiles->version != nvmlWorkloadPowerProfileCurrentProfiles_v1)
        code = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (code == NVML_SUCCESS)
        code = call.device->answers[SIM_PROFILES_REQUESTED].code;
    if (code == NVML_SUCCESS) {
        nvmlMask255_t *masks[] = {&profiles->perfProfilesMask, &profiles->requestedProfilesMask,
                                  &profiles->enforcedProfilesMask};
        for (size_t i = 0; i < GP_ARRAY_LEN(masks); i++)
            put_hex(&call.device->answers[SIM_PROFILES_VALID + i], (unsigned char *)masks[i]->mask,
                    sizeof(masks[i]->mask));
    }
    return sim_leave(code);
}
