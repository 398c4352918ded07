/* The exported functions that find devices and identify them. */
#include "sim/driver.h"

#include "sim/mig.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ------------------------------------------------------------------------- enumeration */

static nvmlReturn_t device_count(enum sim_function function, unsigned int *count)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter(&call, function, count != NULL);
    if (code == NVML_SUCCESS)
        *count = sim_device_count(&call) + sim_is_hit(&call, SIM_FAULT_OVERCOUNT);
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetCount(unsigned int *count)
{
    return device_count(SIM_FN_nvmlDeviceGetCount, count);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    return device_count(SIM_FN_nvmlDeviceGetCount_v2, count);
}

static nvmlReturn_t handle_by_index(enum sim_function function, unsigned int index,
                                    nvmlDevice_t *device)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter(&call, function, device != NULL);
    struct sim_device *gpu = code == NVML_SUCCESS ? sim_device_at(&call, index) : NULL;
    if (code == NVML_SUCCESS)
        code = gpu ? sim_give_handle(&call, gpu, device) : NVML_ERROR_INVALID_ARGUMENT;
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device)
{
    return handle_by_index(SIM_FN_nvmlDeviceGetHandleByIndex, index, device);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    return handle_by_index(SIM_FN_nvmlDeviceGetHandleByIndex_v2, index, device);
}

static bool is_uuid(const struct sim_call *call, struct sim_device *device, const char *uuid)
{
    char own[SIM_UUID_SIZE];
    sim_uuid_of(call, device, own);
    return strcasecmp(own, uuid) == 0;
}

static bool is_serial(const struct sim_call *call, struct sim_device *device, const char *serial)
{
    (void)call;
    const struct sim_value *v = &device->answers[SIM_SERIAL];
    return v->code == NVML_SUCCESS && strcmp(v->text, serial) == 0;
}

/* "00000000:53:00.0", "0000:53:00.0" or "53:00.0". */
static bool is_bus_id(const struct sim_call *call, struct sim_device *device, const char *text)
{
    (void)call;
    unsigned int domain = 0, bus, slot, function;
    int end = 0;
    if (sscanf(text, "%8x:%2x:%2x.%1x%n", &domain, &bus, &slot, &function, &end) != 4) {
        domain = 0;
        if (sscanf(text, "%2x:%2x.%1x%n", &bus, &slot, &function, &end) != 3)
            return false;
    }
    return !text[end] && domain == device->pci_domain && bus == device->pci_bus &&
           slot == device->pci_slot && function == 0;
}

static nvmlReturn_t handle_by(enum sim_function function,
                              bool (*matches)(const struct sim_call *, struct sim_device *,
                                              const char *),
                              const char *text, nvmlDevice_t *device)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter(&call, function, text && device);
    if (code != NVML_SUCCESS)
        return sim_leave(code);
    struct sim_device *found = NULL;
    for (size_t i = 0; !found && i < call.machine->device_count; i++) {
        struct sim_device *gpu = &call.machine->devices[i];
        if (matches(&call, gpu, text))
            found = gpu;
        for (size_t j = 0; matches == is_uuid && j < sim_mig_count(&call.live, gpu); j++) {
            struct sim_device *mig = sim_mig_at(&call.live, gpu, j);
            if (mig && is_uuid(&call, mig, text))
                found = mig;
        }
    }
    if (found && !sim_device_is_there(&call, found))
        found = NULL;
    code = found ? sim_give_handle(&call, found, device) : NVML_ERROR_NOT_FOUND;
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    return handle_by(SIM_FN_nvmlDeviceGetHandleByUUID, is_uuid, uuid, device);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device)
{
    return handle_by(SIM_FN_nvmlDeviceGetHandleBySerial, is_serial, serial, device);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *bus_id, nvmlDevice_t *device)
{
    return handle_by(SIM_FN_nvmlDeviceGetHandleByPciBusId, is_bus_id, bus_id, device);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device)
{
    return handle_by(SIM_FN_nvmlDeviceGetHandleByPciBusId_v2, is_bus_id, bus_id, device);
}

/* ------------------------------------------------------------------------- identity */

SIM_EXPORT nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter_device(&call, SIM_FN_nvmlDeviceGetIndex, device, index != NULL);
    if (code == NVML_SUCCESS)
        *index = sim_index_of(&call, call.device);
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter_device(&call, SIM_FN_nvmlDeviceGetUUID, device, uuid != NULL);
    char own[SIM_UUID_SIZE];
    if (code == NVML_SUCCESS) {
        sim_uuid_of(&call, call.device, own);
        code = sim_put_text(own, uuid, length);
    }
    return sim_leave(code);
}

/* Older versions of the call have a shorter struct: only the first `size` bytes are written. */
static nvmlPciInfo_t pci_of(const struct sim_device *d)
{
    nvmlPciInfo_t info = {
        .domain = d->pci_domain,
        .bus = d->pci_bus,
        .device = d->pci_slot,
        .pciDeviceId = d->pci_device_id,
        .pciSubSystemId = d->pci_subsystem_id,
    };
    (void)snprintf(info.busIdLegacy, sizeof(info.busIdLegacy), "%04X:%02X:%02X.0",
                   d->pci_domain & 0xffff, d->pci_bus & 0xff, d->pci_slot & 0xff);
    (void)snprintf(info.busId, sizeof(info.busId), "%08X:%02X:%02X.0", d->pci_domain,
                   d->pci_bus & 0xff, d->pci_slot & 0xff);
    return info;
}

static nvmlReturn_t pci_info(enum sim_function function, nvmlDevice_t device, nvmlPciInfo_t *pci,
                             size_t size)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter_device(&call, function, device, pci != NULL);
    if (code == NVML_SUCCESS && call.device->parent)
        code = NVML_ERROR_NOT_SUPPORTED;
    if (code == NVML_SUCCESS) {
        nvmlPciInfo_t info = pci_of(call.device);
        memcpy(pci, &info, size);
    }
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    return pci_info(SIM_FN_nvmlDeviceGetPciInfo, device, pci,
                    offsetof(nvmlPciInfo_t, pciSubSystemId));
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    return pci_info(SIM_FN_nvmlDeviceGetPciInfo_v2, device, pci, offsetof(nvmlPciInfo_t, busId));
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    return pci_info(SIM_FN_nvmlDeviceGetPciInfo_v3, device, pci, sizeof(*pci));
}

SIM_EXPORT nvmlReturn_t nvmlGetExcludedDeviceCount(unsigned int *count)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter(&call, SIM_FN_nvmlGetExcludedDeviceCount, count != NULL);
    if (code == NVML_SUCCESS)
        for (*count = 0; sim_excluded_at(&call, *count);)
            ++*count;
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlGetExcludedDeviceInfoByIndex(unsigned int index,
                                                         nvmlExcludedDeviceInfo_t *info)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter(&call, SIM_FN_nvmlGetExcludedDeviceInfoByIndex, info != NULL);
    const struct sim_device *gpu = code == NVML_SUCCESS ? sim_excluded_at(&call, index) : NULL;
    if (code == NVML_SUCCESS && !gpu)
        code = NVML_ERROR_INVALID_ARGUMENT;
    if (code == NVML_SUCCESS) {
        *info = (nvmlExcludedDeviceInfo_t){.pciInfo = pci_of(gpu)};
        code = sim_put_text(gpu->uuid, info->uuid, sizeof(info->uuid));
    }
    return sim_leave(code);
}

/* ------------------------------------------------------------------------- MIG */

SIM_EXPORT nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index,
                                                            nvmlDevice_t *mig)
{
    struct sim_call call;
    nvmlReturn_t code =
        sim_enter_device(&call, SIM_FN_nvmlDeviceGetMigDeviceHandleByIndex, device, mig != NULL);
    if (code == NVML_SUCCESS && call.device->answers[SIM_MIG_CURRENT].code != NVML_SUCCESS)
        code = call.device->answers[SIM_MIG_CURRENT].code;
    struct sim_device *found =
        code == NVML_SUCCESS ? sim_mig_at(&call.live, call.device, index) : NULL;
    if (code == NVML_SUCCESS)
        code = found ? sim_give_handle(&call, found, mig) : NVML_ERROR_NOT_FOUND;
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *is_mig)
{
    struct sim_call call;
    nvmlReturn_t code =
        sim_enter_device(&call, SIM_FN_nvmlDeviceIsMigDeviceHandle, device, is_mig != NULL);
    if (code == NVML_SUCCESS)
        *is_mig = call.device->parent != NULL;
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig,
                                                                     nvmlDevice_t *device)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter_device(&call, SIM_FN_nvmlDeviceGetDeviceHandleFromMigDeviceHandle,
                                         mig, device != NULL);
    if (code == NVML_SUCCESS && !call.device->parent)
        code = NVML_ERROR_INVALID_ARGUMENT;
    if (code == NVML_SUCCESS)
        code = sim_give_handle(&call, call.device->parent, device);
    return sim_leave(code);
}

static nvmlReturn_t instance_id(enum sim_function function, nvmlDevice_t device, bool compute,
                                unsigned int *id)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter_device(&call, function, device, id != NULL);
    if (code == NVML_SUCCESS && !call.device->parent)
        code = NVML_ERROR_NOT_SUPPORTED;
    if (code == NVML_SUCCESS)
        *id = (unsigned int)(compute ? call.device->compute_instance : call.device->gpu_instance);
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned int *id)
{
    return instance_id(SIM_FN_nvmlDeviceGetGpuInstanceId, device, false, id);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned int *id)
{
    return instance_id(SIM_FN_nvmlDeviceGetComputeInstanceId, device, true, id);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device,
                                                   nvmlDeviceAttributes_t *attributes)
{
    static const enum sim_slot slots[] = {
        SIM_ATTR_SM,  SIM_ATTR_COPY,      SIM_ATTR_DEC,       SIM_ATTR_ENC,    SIM_ATTR_JPG,
        SIM_ATTR_OFA, SIM_ATTR_GI_SLICES, SIM_ATTR_CI_SLICES, SIM_ATTR_MEMORY,
    };
    uint64_t v[GP_ARRAY_LEN(slots)];
    nvmlReturn_t code = sim_answer_numbers(SIM_FN_nvmlDeviceGetAttributes_v2, device,
                                           attributes != NULL, slots, GP_ARRAY_LEN(slots), v);
    if (code == NVML_SUCCESS)
        *attributes = (nvmlDeviceAttributes_t){
            .multiprocessorCount = (unsigned int)v[0],
            .sharedCopyEngineCount = (unsigned int)v[1],
            .sharedDecoderCount = (unsigned int)v[2],
            .sharedEncoderCount = (unsigned int)v[3],
            .sharedJpegCount = (unsigned int)v[4],
            .sharedOfaCount = (unsigned int)v[5],
            .gpuInstanceSliceCount = (unsigned int)v[6],
            .computeInstanceSliceCount = (unsigned int)v[7],
            .memorySizeMB = v[8],
        };
    return code;
}
