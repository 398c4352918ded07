/* Counters that can be cleared. */
#include "source/nvml/control.h"

#include <stdio.h>

nvmlReturn_t nvml_get_accounting_records(struct nvml_device *device, struct gp_setting *s)
{
    unsigned count = 0;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetAccountingPids, device->handle, &count, NULL);
    if (rc == NVML_ERROR_INSUFFICIENT_SIZE)
        rc = NVML_SUCCESS;
    s->known = true;
    (void)snprintf(s->value.text, sizeof(s->value.text), "%u records", count);
    return rc;
}

nvmlReturn_t nvml_apply_accounting_records(struct nvml_device *device,
                                           const struct gp_control_value *value)
{
    (void)value;
    return NVML_CALL(device, nvmlDeviceClearAccountingPids, device->handle);
}

nvmlReturn_t nvml_get_ecc_counters(struct nvml_device *device, struct gp_setting *s)
{
    unsigned long long sums[NVML_ECC_COUNTER_TYPE_COUNT] = {0};
    for (nvmlEccCounterType_t counter = 0; counter < NVML_ECC_COUNTER_TYPE_COUNT; counter++)
        for (nvmlMemoryErrorType_t type = 0; type < NVML_MEMORY_ERROR_TYPE_COUNT; type++) {
            unsigned long long errors = 0;
            nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetTotalEccErrors, device->handle, type,
                                        counter, &errors);
            if (rc != NVML_SUCCESS)
                return rc;
            sums[counter] += errors;
        }
    s->known = true;
    (void)snprintf(s->value.text, sizeof(s->value.text), "%llu volatile, %llu aggregate",
                   sums[NVML_VOLATILE_ECC], sums[NVML_AGGREGATE_ECC]);
    return NVML_SUCCESS;
}

nvmlReturn_t nvml_apply_ecc_counters(struct nvml_device *device,
                                     const struct gp_control_value *value)
{
    return NVML_CALL(device, nvmlDeviceClearEccErrorCounts, device->handle,
                     (nvmlEccCounterType_t)value->n[0]);
}

static bool is_link(struct nvml_device *device, unsigned link)
{
    nvmlEnableState_t state = NVML_FEATURE_DISABLED;
    return NVML_CALL(device, nvmlDeviceGetNvLinkState, device->handle, link, &state) ==
               NVML_SUCCESS &&
           state == NVML_FEATURE_ENABLED;
}

nvmlReturn_t nvml_get_nvlink_counters(struct nvml_device *device, struct gp_setting *s)
{
    unsigned links = 0;
    unsigned long long sum = 0;
    for (unsigned link = 0; link < NVML_NVLINK_MAX_LINKS; link++) {
        if (!is_link(device, link))
            continue;
        links++;
        for (nvmlNvLinkErrorCounter_t c = 0; c < NVML_NVLINK_ERROR_COUNT; c++) {
            unsigned long long errors = 0;
            if (NVML_CALL(device, nvmlDeviceGetNvLinkErrorCounter, device->handle, link, c,
                          &errors) == NVML_SUCCESS)
                sum += errors;
        }
    }
    s->known = true;
    (void)snprintf(s->value.text, sizeof(s->value.text), "%llu errors on %u links", sum, links);
    if (links > 0)
        return NVML_SUCCESS;
    nvml_set_words(s, "the GPU has no active NVLink");
    return NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvml_apply_nvlink_counters(struct nvml_device *device,
                                        const struct gp_control_value *value)
{
    (void)value;
    nvmlReturn_t rc = NVML_SUCCESS;
    for (unsigned link = 0; rc == NVML_SUCCESS && link < NVML_NVLINK_MAX_LINKS; link++)
        if (is_link(device, link))
            rc = NVML_CALL(device, nvmlDeviceResetNvLinkErrorCounters, device->handle, link);
    return rc;
}
