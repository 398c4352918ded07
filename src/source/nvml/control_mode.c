/* Modes of a GPU. */
#include "source/nvml/control.h"

#include <stdio.h>

/* Opens the GPU's handle again: some changes invalidate the old one. */
static nvmlReturn_t renew_handle(struct nvml_device *device)
{
    nvmlDevice_t fresh;
    if (!device->uuid[0])
        return NVML_SUCCESS;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetHandleByUUID, device->uuid, &fresh);
    if (rc == NVML_SUCCESS)
        device->handle = fresh;
    return rc;
}

nvmlReturn_t nvml_get_persistence(struct nvml_device *device, struct gp_setting *s)
{
    nvmlEnableState_t mode = NVML_FEATURE_DISABLED;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetPersistenceMode, device->handle, &mode);
    nvml_set_number(s, mode);
    return rc;
}

/* On GPUs whose memory is a NUMA node, disabling persistence mode invalidates the handle. */
nvmlReturn_t nvml_apply_persistence(struct nvml_device *device,
                                    const struct gp_control_value *value)
{
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceSetPersistenceMode, device->handle,
                                (nvmlEnableState_t)value->n[0]);
    return rc == NVML_SUCCESS && value->n[0] == 0 ? renew_handle(device) : rc;
}

nvmlReturn_t nvml_get_mig_mode(struct nvml_device *device, struct gp_setting *s)
{
    unsigned current = 0, pending = 0;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetMigMode, device->handle, &current, &pending);
    nvml_set_pending(s, current, pending);
    return rc;
}

/* A second return code tells whether it took effect immediately. */
nvmlReturn_t nvml_apply_mig_mode(struct nvml_device *device, const struct gp_control_value *value)
{
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceSetMigMode, device->handle, (unsigned)value->n[0],
                                &device->activation);
    return rc == NVML_SUCCESS ? renew_handle(device) : rc;
}

nvmlReturn_t nvml_get_compute_mode(struct nvml_device *device, struct gp_setting *s)
{
    nvmlComputeMode_t mode = NVML_COMPUTEMODE_DEFAULT;
    unsigned current = 0, pending = 0;
    if (!device->is_mig &&
        NVML_CALL(device, nvmlDeviceGetMigMode, device->handle, &current, &pending) ==
            NVML_SUCCESS &&
        current == NVML_FEATURE_ENABLED) {
        nvml_set_words(s, "in MIG mode this is set per instance: select one with -i MIG-…");
        return NVML_ERROR_NOT_SUPPORTED;
    }
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetComputeMode, device->handle, &mode);
    nvml_set_number(s, mode);
    return rc;
}

nvmlReturn_t nvml_apply_compute_mode(struct nvml_device *device,
                                     const struct gp_control_value *value)
{
    return NVML_CALL(device, nvmlDeviceSetComputeMode, device->handle,
                     (nvmlComputeMode_t)value->n[0]);
}

nvmlReturn_t nvml_get_ecc_mode(struct nvml_device *device, struct gp_setting *s)
{
    nvmlEnableState_t current = NVML_FEATURE_DISABLED, pending = NVML_FEATURE_DISABLED;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetEccMode, device->handle, &current, &pending);
    nvml_set_pending(s, current, pending);
    return rc;
}

nvmlReturn_t nvml_apply_ecc_mode(struct nvml_device *device, const struct gp_control_value *value)
{
    return NVML_CALL(device, nvmlDeviceSetEccMode, device->handle, (nvmlEnableState_t)value->n[0]);
}

nvmlReturn_t nvml_get_operation_mode(struct nvml_device *device, struct gp_setting *s)
{
    nvmlGpuOperationMode_t current = NVML_GOM_ALL_ON, pending = NVML_GOM_ALL_ON;
    nvmlReturn_t rc =
        NVML_CALL(device, nvmlDeviceGetGpuOperationMode, device->handle, &current, &pending);
    nvml_set_pending(s, current, pending);
    return rc;
}

nvmlReturn_t nvml_apply_operation_mode(struct nvml_device *device,
                                       const struct gp_control_value *value)
{
    return NVML_CALL(device, nvmlDeviceSetGpuOperationMode, device->handle,
                     (nvmlGpuOperationMode_t)value->n[0]);
}

nvmlReturn_t nvml_get_accounting_mode(struct nvml_device *device, struct gp_setting *s)
{
    nvmlEnableState_t mode = NVML_FEATURE_DISABLED;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetAccountingMode, device->handle, &mode);
    nvml_set_number(s, mode);
    return rc;
}

nvmlReturn_t nvml_apply_accounting_mode(struct nvml_device *device,
                                        const struct gp_control_value *value)
{
    return NVML_CALL(device, nvmlDeviceSetAccountingMode, device->handle,
                     (nvmlEnableState_t)value->n[0]);
}

nvmlReturn_t nvml_get_dram_encryption(struct nvml_device *device, struct gp_setting *s)
{
    nvmlDramEncryptionInfo_t current = {.version = nvmlDramEncryptionInfo_v1};
    nvmlDramEncryptionInfo_t pending = {.version = nvmlDramEncryptionInfo_v1};
    nvmlReturn_t rc =
        NVML_CALL(device, nvmlDeviceGetDramEncryptionMode, device->handle, &current, &pending);
    nvml_set_pending(s, current.encryptionState, pending.encryptionState);
    return rc;
}

nvmlReturn_t nvml_apply_dram_encryption(struct nvml_device *device,
                                        const struct gp_control_value *value)
{
    const nvmlDramEncryptionInfo_t info = {.version = nvmlDramEncryptionInfo_v1,
                                           .encryptionState = (nvmlEnableState_t)value->n[0]};
    return NVML_CALL(device, nvmlDeviceSetDramEncryptionMode, device->handle, &info);
}

nvmlReturn_t nvml_get_virtualization_mode(struct nvml_device *device, struct gp_setting *s)
{
    nvmlGpuVirtualizationMode_t mode = NVML_GPU_VIRTUALIZATION_MODE_NONE;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetVirtualizationMode, device->handle, &mode);
    nvml_set_number(s, mode);
    if (rc != NVML_SUCCESS || mode == NVML_GPU_VIRTUALIZATION_MODE_HOST_VGPU ||
        mode == NVML_GPU_VIRTUALIZATION_MODE_HOST_VSGA)
        return rc;
    nvml_set_words(s, "the driver is not a vGPU host");
    return NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvml_apply_virtualization_mode(struct nvml_device *device,
                                            const struct gp_control_value *value)
{
    return NVML_CALL(device, nvmlDeviceSetVirtualizationMode, device->handle,
                     (nvmlGpuVirtualizationMode_t)value->n[0]);
}

_Static_assert(GP_CONTROL_NAME_MAX < NVML_HOSTNAME_BUFFER_SIZE, "a name must fit with its NUL");

nvmlReturn_t nvml_get_hostname(struct nvml_device *device, struct gp_setting *s)
{
    nvmlHostname_v1_t name = {{0}};
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetHostname_v1, device->handle, &name);
    s->known = true;
    (void)snprintf(s->value.text, sizeof(s->value.text), "%.*s", GP_CONTROL_NAME_MAX, name.value);
    return rc;
}

nvmlReturn_t nvml_apply_hostname(struct nvml_device *device, const struct gp_control_value *value)
{
    nvmlHostname_v1_t name = {{0}};
    (void)snprintf(name.value, sizeof(name.value), "%.*s", GP_CONTROL_NAME_MAX, value->text);
    return NVML_CALL(device, nvmlDeviceSetHostname_v1, device->handle, &name);
}
