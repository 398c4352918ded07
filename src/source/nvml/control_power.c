/* Power limits, the target temperature, and fans. */
#include "source/nvml/control.h"

#include "base/err.h"

/* ---- power ---- */

nvmlReturn_t nvml_get_power_limit(struct nvml_device *device, struct gp_setting *s)
{
    unsigned limit = 0, min = 0, max = 0, fallback = 0;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetPowerManagementLimit, device->handle, &limit);
    nvml_set_number(s, limit);
    if (rc != NVML_SUCCESS)
        return rc;
    if (NVML_CALL(device, nvmlDeviceGetPowerManagementLimitConstraints, device->handle, &min,
                  &max) == NVML_SUCCESS)
        nvml_set_range(s, min, max);
    s->has_fallback = NVML_CALL(device, nvmlDeviceGetPowerManagementDefaultLimit, device->handle,
                                &fallback) == NVML_SUCCESS;
    s->fallback = (struct gp_control_value){.n = {fallback}};
    return NVML_SUCCESS;
}

nvmlReturn_t nvml_apply_power_limit(struct nvml_device *device,
                                    const struct gp_control_value *value)
{
    return NVML_CALL(device, nvmlDeviceSetPowerManagementLimit, device->handle,
                     (unsigned)value->n[0]);
}

static bool is_number(const nvmlFieldValue_t *field, int64_t *ret)
{
    return field->nvmlReturn == NVML_SUCCESS && nvml_field_number(field, ret);
}

nvmlReturn_t nvml_get_module_limit(struct nvml_device *device, struct gp_setting *s)
{
    nvmlFieldValue_t fields[] = {
        {.fieldId = NVML_FI_DEV_POWER_REQUESTED_LIMIT, .scopeId = NVML_POWER_SCOPE_MODULE},
        {.fieldId = NVML_FI_DEV_POWER_MIN_LIMIT, .scopeId = NVML_POWER_SCOPE_MODULE},
        {.fieldId = NVML_FI_DEV_POWER_MAX_LIMIT, .scopeId = NVML_POWER_SCOPE_MODULE},
        {.fieldId = NVML_FI_DEV_POWER_DEFAULT_LIMIT, .scopeId = NVML_POWER_SCOPE_MODULE},
    };
    int64_t limit = 0, min = 0, max = 0, fallback = 0;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetFieldValues, device->handle,
                                (int)GP_ARRAY_LEN(fields), fields);
    if (rc == NVML_SUCCESS)
        rc = fields[0].nvmlReturn;
    if (rc != NVML_SUCCESS)
        return rc;
    if (!is_number(&fields[0], &limit))
        return NVML_ERROR_UNKNOWN;
    nvml_set_number(s, limit);
    if (is_number(&fields[1], &min) && is_number(&fields[2], &max))
        nvml_set_range(s, min, max);
    s->has_fallback = is_number(&fields[3], &fallback);
    s->fallback = (struct gp_control_value){.n = {fallback}};
    return NVML_SUCCESS;
}

nvmlReturn_t nvml_apply_module_limit(struct nvml_device *device,
                                     const struct gp_control_value *value)
{
    nvmlPowerValue_v2_t power = {.version = nvmlPowerValue_v2,
                                 .powerScope = NVML_POWER_SCOPE_MODULE,
                                 .powerValueMw = (unsigned)value->n[0]};
    return NVML_CALL(device, nvmlDeviceSetPowerManagementLimit_v2, device->handle, &power);
}

/* ---- temperature ---- */

static nvmlReturn_t read_threshold(struct nvml_device *device, nvmlTemperatureThresholds_t type,
                                   unsigned *ret)
{
    return NVML_CALL(device, nvmlDeviceGetTemperatureThreshold, device->handle, type, ret);
}

nvmlReturn_t nvml_get_target_temperature(struct nvml_device *device, struct gp_setting *s)
{
    unsigned now = 0, min = 0, max = 0;
    nvmlReturn_t rc = read_threshold(device, NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_CURR, &now);
    nvml_set_number(s, now);
    if (rc == NVML_SUCCESS &&
        read_threshold(device, NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_MIN, &min) == NVML_SUCCESS &&
        read_threshold(device, NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_MAX, &max) == NVML_SUCCESS)
        nvml_set_range(s, min, max);
    return rc;
}

nvmlReturn_t nvml_apply_target_temperature(struct nvml_device *device,
                                           const struct gp_control_value *value)
{
    int celsius = (int)value->n[0];
    return NVML_CALL(device, nvmlDeviceSetTemperatureThreshold, device->handle,
                     NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_CURR, &celsius);
}

/* ---- fans ---- */

_Static_assert(NVML_MAX_FANS <= GP_CONTROL_NUMBERS, "a value holds the speed of every fan");

/* A GPU without fans has no fan speed to set. */
static nvmlReturn_t need_fans(struct nvml_device *device, unsigned *ret)
{
    nvmlReturn_t rc = nvml_count_fans(device, ret);
    return rc == NVML_SUCCESS && *ret == 0 ? NVML_ERROR_NOT_SUPPORTED : rc;
}

/* A fan is either controlled by the driver or has a target speed. Its current speed is neither. */
nvmlReturn_t nvml_get_fans(struct nvml_device *device, struct gp_setting *s)
{
    unsigned count = 0, min = 0, max = 0;
    nvmlReturn_t rc = need_fans(device, &count);
    s->value.count = count;
    for (unsigned i = 0; rc == NVML_SUCCESS && i < count; i++) {
        nvmlFanControlPolicy_t policy = 0;
        unsigned target = 0;
        rc = NVML_CALL(device, nvmlDeviceGetFanControlPolicy_v2, device->handle, i, &policy);
        if (rc == NVML_SUCCESS && policy != 0)
            rc = NVML_CALL(device, nvmlDeviceGetTargetFanSpeed, device->handle, i, &target);
        s->value.n[i] = policy == 0 ? GP_FAN_AUTO : (int64_t)target;
    }
    s->known = rc == NVML_SUCCESS;
    if (rc == NVML_ERROR_FUNCTION_NOT_FOUND && count > 0) {
        nvml_set_words(s, "not reported by drivers before 525; auto undoes it");
        rc = NVML_SUCCESS;
    }
    bool same = true;
    for (unsigned i = 1; i < count; i++)
        same = same && s->value.n[i] == s->value.n[0];
    if (same)
        s->value.count = 0;
    if (rc == NVML_SUCCESS &&
        NVML_CALL(device, nvmlDeviceGetMinMaxFanSpeed, device->handle, &min, &max) == NVML_SUCCESS)
        nvml_set_range(s, min, max);
    else if (rc == NVML_SUCCESS)
        nvml_set_range(s, 0, 100);
    return rc;
}

int nvml_check_fans(struct nvml_device *device, const struct gp_control_value *value,
                    struct gp_err *err)
{
    unsigned count = 0;
    if (need_fans(device, &count) != NVML_SUCCESS || value->count <= count)
        return 0;
    return gp_err_set(err, GP_EUSAGE,
                      "fan-speed: fan %u does not exist; the GPU has %u, starting at 0",
                      value->count - 1, count);
}

nvmlReturn_t nvml_apply_fans(struct nvml_device *device, const struct gp_control_value *value)
{
    unsigned count = 0;
    nvmlReturn_t rc = need_fans(device, &count);
    for (unsigned i = 0; rc == NVML_SUCCESS && i < count; i++) {
        int64_t speed = value->count == 0  ? value->n[0]
                        : i < value->count ? value->n[i]
                                           : GP_FAN_KEEP;
        if (speed == GP_FAN_AUTO)
            rc = NVML_CALL(device, nvmlDeviceSetDefaultFanSpeed_v2, device->handle, i);
        else if (speed != GP_FAN_KEEP)
            rc = NVML_CALL(device, nvmlDeviceSetFanSpeed_v2, device->handle, i, (unsigned)speed);
    }
    return rc;
}
