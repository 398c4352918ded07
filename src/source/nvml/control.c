/* Reads and applies controls, one driver call at a time. A setter is called once and never retried:
 * its result is reported to the user. */
#include "source/nvml/control.h"

#include "base/err.h"

#include <stdio.h>
#include <string.h>

enum { CLOCKS_MAX = 512 };

struct nvml_control {
    enum nvml_function setter; /* without it, the driver does not have the control */
    enum nvml_function older;  /* a setter in drivers that lack the above; NVML_FN__NONE: none */
    nvmlReturn_t (*read)(struct nvml_device *device, struct gp_setting *ret);
    nvmlReturn_t (*apply)(struct nvml_device *device, const struct gp_control_value *value);
    int (*check)(struct nvml_device *device, const struct gp_control_value *value,
                 struct gp_err *err);
};

static void set_number(struct gp_setting *s, int64_t n)
{
    s->known = true;
    s->value = (struct gp_control_value){.n = {n}};
}

static void set_pending(struct gp_setting *s, int64_t now, int64_t pending)
{
    set_number(s, now);
    s->has_pending = pending != now;
    s->pending = (struct gp_control_value){.n = {pending}};
}

static void set_range(struct gp_setting *s, int64_t min, int64_t max)
{
    s->has_range = true;
    s->min = min;
    s->max = max;
}

static void set_words(struct gp_setting *s, const char *words)
{
    (void)snprintf(s->words, sizeof(s->words), "%s", words);
}

/* False if the driver version is unknown. */
static bool is_older_than(struct nvml_device *device, nvmlDeviceArchitecture_t arch)
{
    nvmlDeviceArchitecture_t own = NVML_DEVICE_ARCH_UNKNOWN;
    return NVML_CALL(device, nvmlDeviceGetArchitecture, device->handle, &own) == NVML_SUCCESS &&
           own < arch;
}

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

/* ---- modes ---- */

static nvmlReturn_t read_persistence(struct nvml_device *device, struct gp_setting *s)
{
    nvmlEnableState_t mode = NVML_FEATURE_DISABLED;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetPersistenceMode, device->handle, &mode);
    set_number(s, mode);
    return rc;
}

/* On GPUs whose memory is a NUMA node, disabling persistence mode invalidates the handle. */
static nvmlReturn_t apply_persistence(struct nvml_device *device,
                                      const struct gp_control_value *value)
{
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceSetPersistenceMode, device->handle,
                                (nvmlEnableState_t)value->n[0]);
    return rc == NVML_SUCCESS && value->n[0] == 0 ? renew_handle(device) : rc;
}

static nvmlReturn_t read_mig_mode(struct nvml_device *device, struct gp_setting *s)
{
    unsigned current = 0, pending = 0;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetMigMode, device->handle, &current, &pending);
    set_pending(s, current, pending);
    return rc;
}

/* A second return code tells whether it took effect immediately. */
static nvmlReturn_t apply_mig_mode(struct nvml_device *device, const struct gp_control_value *value)
{
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceSetMigMode, device->handle, (unsigned)value->n[0],
                                &device->activation);
    return rc == NVML_SUCCESS ? renew_handle(device) : rc;
}

static nvmlReturn_t read_compute_mode(struct nvml_device *device, struct gp_setting *s)
{
    nvmlComputeMode_t mode = NVML_COMPUTEMODE_DEFAULT;
    unsigned current = 0, pending = 0;
    if (!device->is_mig &&
        NVML_CALL(device, nvmlDeviceGetMigMode, device->handle, &current, &pending) ==
            NVML_SUCCESS &&
        current == NVML_FEATURE_ENABLED) {
        set_words(s, "in MIG mode this is set per instance: select one with -i MIG-…");
        return NVML_ERROR_NOT_SUPPORTED;
    }
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetComputeMode, device->handle, &mode);
    set_number(s, mode);
    return rc;
}

static nvmlReturn_t apply_compute_mode(struct nvml_device *device,
                                       const struct gp_control_value *value)
{
    return NVML_CALL(device, nvmlDeviceSetComputeMode, device->handle,
                     (nvmlComputeMode_t)value->n[0]);
}

static nvmlReturn_t read_ecc_mode(struct nvml_device *device, struct gp_setting *s)
{
    nvmlEnableState_t current = NVML_FEATURE_DISABLED, pending = NVML_FEATURE_DISABLED;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetEccMode, device->handle, &current, &pending);
    set_pending(s, current, pending);
    return rc;
}

static nvmlReturn_t apply_ecc_mode(struct nvml_device *device, const struct gp_control_value *value)
{
    return NVML_CALL(device, nvmlDeviceSetEccMode, device->handle, (nvmlEnableState_t)value->n[0]);
}

static nvmlReturn_t read_operation_mode(struct nvml_device *device, struct gp_setting *s)
{
    nvmlGpuOperationMode_t current = NVML_GOM_ALL_ON, pending = NVML_GOM_ALL_ON;
    nvmlReturn_t rc =
        NVML_CALL(device, nvmlDeviceGetGpuOperationMode, device->handle, &current, &pending);
    set_pending(s, current, pending);
    return rc;
}

static nvmlReturn_t apply_operation_mode(struct nvml_device *device,
                                         const struct gp_control_value *value)
{
    return NVML_CALL(device, nvmlDeviceSetGpuOperationMode, device->handle,
                     (nvmlGpuOperationMode_t)value->n[0]);
}

static nvmlReturn_t read_accounting_mode(struct nvml_device *device, struct gp_setting *s)
{
    nvmlEnableState_t mode = NVML_FEATURE_DISABLED;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetAccountingMode, device->handle, &mode);
    set_number(s, mode);
    return rc;
}

static nvmlReturn_t apply_accounting_mode(struct nvml_device *device,
                                          const struct gp_control_value *value)
{
    return NVML_CALL(device, nvmlDeviceSetAccountingMode, device->handle,
                     (nvmlEnableState_t)value->n[0]);
}

static nvmlReturn_t read_dram_encryption(struct nvml_device *device, struct gp_setting *s)
{
    nvmlDramEncryptionInfo_t current = {.version = nvmlDramEncryptionInfo_v1};
    nvmlDramEncryptionInfo_t pending = {.version = nvmlDramEncryptionInfo_v1};
    nvmlReturn_t rc =
        NVML_CALL(device, nvmlDeviceGetDramEncryptionMode, device->handle, &current, &pending);
    set_pending(s, current.encryptionState, pending.encryptionState);
    return rc;
}

static nvmlReturn_t apply_dram_encryption(struct nvml_device *device,
                                          const struct gp_control_value *value)
{
    const nvmlDramEncryptionInfo_t info = {.version = nvmlDramEncryptionInfo_v1,
                                           .encryptionState = (nvmlEnableState_t)value->n[0]};
    return NVML_CALL(device, nvmlDeviceSetDramEncryptionMode, device->handle, &info);
}

static nvmlReturn_t read_virtualization_mode(struct nvml_device *device, struct gp_setting *s)
{
    nvmlGpuVirtualizationMode_t mode = NVML_GPU_VIRTUALIZATION_MODE_NONE;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetVirtualizationMode, device->handle, &mode);
    set_number(s, mode);
    if (rc != NVML_SUCCESS || mode == NVML_GPU_VIRTUALIZATION_MODE_HOST_VGPU ||
        mode == NVML_GPU_VIRTUALIZATION_MODE_HOST_VSGA)
        return rc;
    set_words(s, "the driver is not a vGPU host");
    return NVML_ERROR_NOT_SUPPORTED;
}

static nvmlReturn_t apply_virtualization_mode(struct nvml_device *device,
                                              const struct gp_control_value *value)
{
    return NVML_CALL(device, nvmlDeviceSetVirtualizationMode, device->handle,
                     (nvmlGpuVirtualizationMode_t)value->n[0]);
}

_Static_assert(GP_CONTROL_NAME_MAX < NVML_HOSTNAME_BUFFER_SIZE, "a name must fit with its NUL");

static nvmlReturn_t read_hostname(struct nvml_device *device, struct gp_setting *s)
{
    nvmlHostname_v1_t name = {{0}};
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetHostname_v1, device->handle, &name);
    s->known = true;
    (void)snprintf(s->value.text, sizeof(s->value.text), "%.*s", GP_CONTROL_NAME_MAX, name.value);
    return rc;
}

static nvmlReturn_t apply_hostname(struct nvml_device *device, const struct gp_control_value *value)
{
    nvmlHostname_v1_t name = {{0}};
    (void)snprintf(name.value, sizeof(name.value), "%.*s", GP_CONTROL_NAME_MAX, value->text);
    return NVML_CALL(device, nvmlDeviceSetHostname_v1, device->handle, &name);
}

/* ---- power ---- */

static nvmlReturn_t read_power_limit(struct nvml_device *device, struct gp_setting *s)
{
    unsigned limit = 0, min = 0, max = 0, fallback = 0;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetPowerManagementLimit, device->handle, &limit);
    set_number(s, limit);
    if (rc != NVML_SUCCESS)
        return rc;
    if (NVML_CALL(device, nvmlDeviceGetPowerManagementLimitConstraints, device->handle, &min,
                  &max) == NVML_SUCCESS)
        set_range(s, min, max);
    s->has_fallback = NVML_CALL(device, nvmlDeviceGetPowerManagementDefaultLimit, device->handle,
                                &fallback) == NVML_SUCCESS;
    s->fallback = (struct gp_control_value){.n = {fallback}};
    return NVML_SUCCESS;
}

static nvmlReturn_t apply_power_limit(struct nvml_device *device,
                                      const struct gp_control_value *value)
{
    return NVML_CALL(device, nvmlDeviceSetPowerManagementLimit, device->handle,
                     (unsigned)value->n[0]);
}

static bool is_number(const nvmlFieldValue_t *field, int64_t *ret)
{
    return field->nvmlReturn == NVML_SUCCESS && nvml_field_number(field, ret);
}

static nvmlReturn_t read_module_limit(struct nvml_device *device, struct gp_setting *s)
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
    set_number(s, limit);
    if (is_number(&fields[1], &min) && is_number(&fields[2], &max))
        set_range(s, min, max);
    s->has_fallback = is_number(&fields[3], &fallback);
    s->fallback = (struct gp_control_value){.n = {fallback}};
    return NVML_SUCCESS;
}

static nvmlReturn_t apply_module_limit(struct nvml_device *device,
                                       const struct gp_control_value *value)
{
    nvmlPowerValue_v2_t power = {.version = nvmlPowerValue_v2,
                                 .powerScope = NVML_POWER_SCOPE_MODULE,
                                 .powerValueMw = (unsigned)value->n[0]};
    return NVML_CALL(device, nvmlDeviceSetPowerManagementLimit_v2, device->handle, &power);
}

/* ---- clocks ---- */

/* Drivers may announce more entries than they wrote: 0 is not a clock. */
static unsigned least(const unsigned *clocks, unsigned count, unsigned most)
{
    for (unsigned i = 0; i < count && i < CLOCKS_MAX; i++)
        if (clocks[i] > 0 && clocks[i] < most)
            most = clocks[i];
    return most;
}

/* The lowest clock that the GPU lists, for any memory clock; 0 if it lists none. */
static unsigned least_clock(struct nvml_device *device, nvmlClockType_t type, unsigned max)
{
    unsigned memory[CLOCKS_MAX] = {0}, graphics[CLOCKS_MAX] = {0};
    unsigned count = CLOCKS_MAX, lowest = max;
    if (NVML_CALL(device, nvmlDeviceGetSupportedMemoryClocks, device->handle, &count, memory) !=
            NVML_SUCCESS ||
        count == 0)
        return 0;
    if (type == NVML_CLOCK_MEM)
        return least(memory, count, max);
    for (unsigned i = 0; i < count && i < CLOCKS_MAX && memory[i] > 0; i++) {
        unsigned steps = CLOCKS_MAX;
        if (NVML_CALL(device, nvmlDeviceGetSupportedGraphicsClocks, device->handle, memory[i],
                      &steps, graphics) != NVML_SUCCESS ||
            steps == 0)
            return 0;
        lowest = least(graphics, steps, lowest);
    }
    return lowest;
}

/* NVML has no getter for locked clocks: only the range is known. */
static nvmlReturn_t read_lock(struct nvml_device *device, struct gp_setting *s,
                              nvmlDeviceArchitecture_t oldest, nvmlClockType_t type)
{
    unsigned max = 0;
    if (is_older_than(device, oldest))
        return NVML_ERROR_NOT_SUPPORTED;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetMaxClockInfo, device->handle, type, &max);
    if (rc != NVML_SUCCESS)
        return rc;
    set_words(s, "not reported by this driver; reset undoes it");
    set_range(s, least_clock(device, type, max), max);
    return rc;
}

static nvmlReturn_t read_gpu_lock(struct nvml_device *device, struct gp_setting *s)
{
    return read_lock(device, s, NVML_DEVICE_ARCH_VOLTA, NVML_CLOCK_GRAPHICS);
}

static nvmlReturn_t apply_gpu_lock(struct nvml_device *device, const struct gp_control_value *value)
{
    if (value->automatic)
        return NVML_CALL(device, nvmlDeviceResetGpuLockedClocks, device->handle);
    bool is_tdp = value->n[0] == GP_CLOCK_TDP;
    return NVML_CALL(device, nvmlDeviceSetGpuLockedClocks, device->handle,
                     is_tdp ? NVML_CLOCK_LIMIT_ID_TDP : (unsigned)value->n[0],
                     is_tdp ? NVML_CLOCK_LIMIT_ID_TDP : (unsigned)value->n[1]);
}

static nvmlReturn_t read_memory_lock(struct nvml_device *device, struct gp_setting *s)
{
    return read_lock(device, s, NVML_DEVICE_ARCH_AMPERE, NVML_CLOCK_MEM);
}

static nvmlReturn_t apply_memory_lock(struct nvml_device *device,
                                      const struct gp_control_value *value)
{
    if (value->automatic)
        return NVML_CALL(device, nvmlDeviceResetMemoryLockedClocks, device->handle);
    return NVML_CALL(device, nvmlDeviceSetMemoryLockedClocks, device->handle, (unsigned)value->n[0],
                     (unsigned)value->n[1]);
}

static nvmlReturn_t read_application_clocks(struct nvml_device *device, struct gp_setting *s)
{
    static const nvmlClockType_t types[] = {NVML_CLOCK_MEM, NVML_CLOCK_GRAPHICS};
    s->known = s->has_fallback = true;
    for (size_t i = 0; i < GP_ARRAY_LEN(types); i++) {
        unsigned mhz = 0;
        nvmlReturn_t rc =
            NVML_CALL(device, nvmlDeviceGetApplicationsClock, device->handle, types[i], &mhz);
        if (rc != NVML_SUCCESS)
            return rc;
        s->value.n[i] = mhz;
        rc = NVML_CALL(device, nvmlDeviceGetDefaultApplicationsClock, device->handle, types[i],
                       &mhz);
        s->has_fallback = s->has_fallback && rc == NVML_SUCCESS;
        s->fallback.n[i] = mhz;
    }
    return NVML_SUCCESS;
}

static bool has_clock(const unsigned *clocks, unsigned count, int64_t mhz)
{
    for (unsigned i = 0; i < count; i++)
        if (clocks[i] == mhz)
            return true;
    return false;
}

/* The pair must be one that the GPU lists. Without a list, the driver decides. */
static int check_application_clocks(struct nvml_device *device,
                                    const struct gp_control_value *value, struct gp_err *err)
{
    unsigned clocks[CLOCKS_MAX];
    unsigned count = CLOCKS_MAX;
    if (value->automatic || NVML_CALL(device, nvmlDeviceGetSupportedMemoryClocks, device->handle,
                                      &count, clocks) != NVML_SUCCESS)
        return 0;
    if (!has_clock(clocks, count, value->n[0]))
        return gp_err_set(
            err, GP_EUSAGE,
            "application-clocks: %lld MHz is not a memory clock of this GPU; the highest is %u MHz",
            (long long)value->n[0], count ? clocks[0] : 0);
    count = CLOCKS_MAX;
    if (NVML_CALL(device, nvmlDeviceGetSupportedGraphicsClocks, device->handle,
                  (unsigned)value->n[0], &count, clocks) != NVML_SUCCESS ||
        has_clock(clocks, count, value->n[1]))
        return 0;
    return gp_err_set(err, GP_EUSAGE,
                      "application-clocks: %lld MHz is not a graphics clock for memory at %lld "
                      "MHz; they range from %u to %u MHz in steps",
                      (long long)value->n[1], (long long)value->n[0], clocks[count ? count - 1 : 0],
                      clocks[0]);
}

static nvmlReturn_t apply_application_clocks(struct nvml_device *device,
                                             const struct gp_control_value *value)
{
    if (value->automatic)
        return NVML_CALL(device, nvmlDeviceResetApplicationsClocks, device->handle);
    return NVML_CALL(device, nvmlDeviceSetApplicationsClocks, device->handle, (unsigned)value->n[0],
                     (unsigned)value->n[1]);
}

/* Drivers since 555 have one call for all offsets. Older ones have a call for each, on the same
 * curve. */
static nvmlReturn_t read_offset(struct nvml_device *device, struct gp_setting *s,
                                nvmlClockType_t type)
{
    nvmlClockOffset_t offset = {
        .version = nvmlClockOffset_v1, .type = type, .pstate = NVML_PSTATE_0};
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetClockOffsets, device->handle, &offset);
    s->has_fallback = true; /* no offset: 0 */
    if (rc == NVML_SUCCESS) {
        set_number(s, offset.clockOffsetMHz);
        set_range(s, offset.minClockOffsetMHz, offset.maxClockOffsetMHz);
        return rc;
    }
    if (rc != NVML_ERROR_FUNCTION_NOT_FOUND && rc != NVML_ERROR_ARGUMENT_VERSION_MISMATCH)
        return rc;
    bool memory = type == NVML_CLOCK_MEM;
    int now = 0, min = 0, max = 0;
    rc = memory ? NVML_CALL(device, nvmlDeviceGetMemClkVfOffset, device->handle, &now)
                : NVML_CALL(device, nvmlDeviceGetGpcClkVfOffset, device->handle, &now);
    set_number(s, now);
    nvmlReturn_t limits =
        memory ? NVML_CALL(device, nvmlDeviceGetMemClkMinMaxVfOffset, device->handle, &min, &max)
               : NVML_CALL(device, nvmlDeviceGetGpcClkMinMaxVfOffset, device->handle, &min, &max);
    if (limits == NVML_SUCCESS)
        set_range(s, min, max);
    return rc;
}

static nvmlReturn_t apply_offset(struct nvml_device *device, const struct gp_control_value *value,
                                 nvmlClockType_t type)
{
    nvmlClockOffset_t offset = {.version = nvmlClockOffset_v1,
                                .type = type,
                                .pstate = NVML_PSTATE_0,
                                .clockOffsetMHz = (int)value->n[0]};
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceSetClockOffsets, device->handle, &offset);
    if (rc != NVML_ERROR_FUNCTION_NOT_FOUND)
        return rc;
    return type == NVML_CLOCK_MEM ? NVML_CALL(device, nvmlDeviceSetMemClkVfOffset, device->handle,
                                              offset.clockOffsetMHz)
                                  : NVML_CALL(device, nvmlDeviceSetGpcClkVfOffset, device->handle,
                                              offset.clockOffsetMHz);
}

static nvmlReturn_t read_gpu_offset(struct nvml_device *device, struct gp_setting *s)
{
    return read_offset(device, s, NVML_CLOCK_GRAPHICS);
}

static nvmlReturn_t apply_gpu_offset(struct nvml_device *device,
                                     const struct gp_control_value *value)
{
    return apply_offset(device, value, NVML_CLOCK_GRAPHICS);
}

static nvmlReturn_t read_memory_offset(struct nvml_device *device, struct gp_setting *s)
{
    return read_offset(device, s, NVML_CLOCK_MEM);
}

static nvmlReturn_t apply_memory_offset(struct nvml_device *device,
                                        const struct gp_control_value *value)
{
    return apply_offset(device, value, NVML_CLOCK_MEM);
}

/* ---- auto boost ---- */

/* The mode that applies unless a program requests another one. */
static nvmlReturn_t read_auto_boost(struct nvml_device *device, struct gp_setting *s)
{
    nvmlEnableState_t current = NVML_FEATURE_DISABLED, usual = NVML_FEATURE_DISABLED;
    nvmlReturn_t rc =
        NVML_CALL(device, nvmlDeviceGetAutoBoostedClocksEnabled, device->handle, &current, &usual);
    set_number(s, usual);
    return rc;
}

static nvmlReturn_t apply_auto_boost(struct nvml_device *device,
                                     const struct gp_control_value *value)
{
    return NVML_CALL(device, nvmlDeviceSetDefaultAutoBoostedClocksEnabled, device->handle,
                     (nvmlEnableState_t)value->n[0], 0);
}

static nvmlReturn_t read_access(struct nvml_device *device, struct gp_setting *s,
                                nvmlRestrictedAPI_t api)
{
    nvmlEnableState_t restricted = NVML_FEATURE_DISABLED;
    nvmlReturn_t rc =
        NVML_CALL(device, nvmlDeviceGetAPIRestriction, device->handle, api, &restricted);
    set_number(s, restricted);
    return rc;
}

static nvmlReturn_t apply_access(struct nvml_device *device, const struct gp_control_value *value,
                                 nvmlRestrictedAPI_t api)
{
    return NVML_CALL(device, nvmlDeviceSetAPIRestriction, device->handle, api,
                     (nvmlEnableState_t)value->n[0]);
}

static nvmlReturn_t read_app_clocks_access(struct nvml_device *device, struct gp_setting *s)
{
    return read_access(device, s, NVML_RESTRICTED_API_SET_APPLICATION_CLOCKS);
}

static nvmlReturn_t apply_app_clocks_access(struct nvml_device *device,
                                            const struct gp_control_value *value)
{
    return apply_access(device, value, NVML_RESTRICTED_API_SET_APPLICATION_CLOCKS);
}

static nvmlReturn_t read_auto_boost_access(struct nvml_device *device, struct gp_setting *s)
{
    return read_access(device, s, NVML_RESTRICTED_API_SET_AUTO_BOOSTED_CLOCKS);
}

static nvmlReturn_t apply_auto_boost_access(struct nvml_device *device,
                                            const struct gp_control_value *value)
{
    return apply_access(device, value, NVML_RESTRICTED_API_SET_AUTO_BOOSTED_CLOCKS);
}

/* ---- temperature ---- */

static nvmlReturn_t read_threshold(struct nvml_device *device, nvmlTemperatureThresholds_t type,
                                   unsigned *ret)
{
    return NVML_CALL(device, nvmlDeviceGetTemperatureThreshold, device->handle, type, ret);
}

static nvmlReturn_t read_target_temperature(struct nvml_device *device, struct gp_setting *s)
{
    unsigned now = 0, min = 0, max = 0;
    nvmlReturn_t rc = read_threshold(device, NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_CURR, &now);
    set_number(s, now);
    if (rc == NVML_SUCCESS &&
        read_threshold(device, NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_MIN, &min) == NVML_SUCCESS &&
        read_threshold(device, NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_MAX, &max) == NVML_SUCCESS)
        set_range(s, min, max);
    return rc;
}

static nvmlReturn_t apply_target_temperature(struct nvml_device *device,
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
static nvmlReturn_t read_fans(struct nvml_device *device, struct gp_setting *s)
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
        set_words(s, "not reported by drivers before 525; auto undoes it");
        rc = NVML_SUCCESS;
    }
    bool same = true;
    for (unsigned i = 1; i < count; i++)
        same = same && s->value.n[i] == s->value.n[0];
    if (same)
        s->value.count = 0;
    if (rc == NVML_SUCCESS &&
        NVML_CALL(device, nvmlDeviceGetMinMaxFanSpeed, device->handle, &min, &max) == NVML_SUCCESS)
        set_range(s, min, max);
    else if (rc == NVML_SUCCESS)
        set_range(s, 0, 100);
    return rc;
}

static int check_fans(struct nvml_device *device, const struct gp_control_value *value,
                      struct gp_err *err)
{
    unsigned count = 0;
    if (need_fans(device, &count) != NVML_SUCCESS || value->count <= count)
        return 0;
    return gp_err_set(err, GP_EUSAGE,
                      "fan-speed: fan %u does not exist; the GPU has %u, starting at 0",
                      value->count - 1, count);
}

static nvmlReturn_t apply_fans(struct nvml_device *device, const struct gp_control_value *value)
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

/* ---- counters ---- */

static nvmlReturn_t read_accounting_records(struct nvml_device *device, struct gp_setting *s)
{
    unsigned count = 0;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetAccountingPids, device->handle, &count, NULL);
    if (rc == NVML_ERROR_INSUFFICIENT_SIZE)
        rc = NVML_SUCCESS;
    s->known = true;
    (void)snprintf(s->value.text, sizeof(s->value.text), "%u records", count);
    return rc;
}

static nvmlReturn_t apply_accounting_records(struct nvml_device *device,
                                             const struct gp_control_value *value)
{
    (void)value;
    return NVML_CALL(device, nvmlDeviceClearAccountingPids, device->handle);
}

static nvmlReturn_t read_ecc_counters(struct nvml_device *device, struct gp_setting *s)
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

static nvmlReturn_t apply_ecc_counters(struct nvml_device *device,
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

static nvmlReturn_t read_nvlink_counters(struct nvml_device *device, struct gp_setting *s)
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
    set_words(s, "the GPU has no active NVLink");
    return NVML_ERROR_NOT_SUPPORTED;
}

static nvmlReturn_t apply_nvlink_counters(struct nvml_device *device,
                                          const struct gp_control_value *value)
{
    (void)value;
    nvmlReturn_t rc = NVML_SUCCESS;
    for (unsigned link = 0; rc == NVML_SUCCESS && link < NVML_NVLINK_MAX_LINKS; link++)
        if (is_link(device, link))
            rc = NVML_CALL(device, nvmlDeviceResetNvLinkErrorCounters, device->handle, link);
    return rc;
}

/* ---- the table ---- */

#define ROW(setter_, part)                                                                         \
    {                                                                                              \
        .setter = NVML_FN_##setter_, .read = read_##part, .apply = apply_##part                    \
    }
#define CHECKED(setter_, part)                                                                     \
    {                                                                                              \
        .setter = NVML_FN_##setter_, .read = read_##part, .apply = apply_##part,                   \
        .check = check_##part                                                                      \
    }

/* An offset: one call for all, or an older call for each. */
#define OLDER(older_, part)                                                                        \
    {                                                                                              \
        .setter = NVML_FN_nvmlDeviceSetClockOffsets, .older = NVML_FN_##older_,                    \
        .read = read_##part, .apply = apply_##part                                                 \
    }

static const struct nvml_control controls[GP_CONTROL__COUNT] = {
    [GP_CONTROL_PERSISTENCE] = ROW(nvmlDeviceSetPersistenceMode, persistence),
    [GP_CONTROL_MIG_MODE] = ROW(nvmlDeviceSetMigMode, mig_mode),
    [GP_CONTROL_MIG_INSTANCES] = {.setter = NVML_FN_nvmlDeviceCreateGpuInstance,
                                  .read = nvml_read_mig_instances,
                                  .apply = nvml_apply_mig_instances,
                                  .check = nvml_check_mig_instances},
    [GP_CONTROL_COMPUTE_MODE] = ROW(nvmlDeviceSetComputeMode, compute_mode),
    [GP_CONTROL_POWER_LIMIT] = ROW(nvmlDeviceSetPowerManagementLimit, power_limit),
    [GP_CONTROL_MODULE_POWER_LIMIT] = ROW(nvmlDeviceSetPowerManagementLimit_v2, module_limit),
    [GP_CONTROL_LOCK_GPU_CLOCKS] = ROW(nvmlDeviceSetGpuLockedClocks, gpu_lock),
    [GP_CONTROL_LOCK_MEMORY_CLOCKS] = ROW(nvmlDeviceSetMemoryLockedClocks, memory_lock),
    [GP_CONTROL_APPLICATION_CLOCKS] = CHECKED(nvmlDeviceSetApplicationsClocks, application_clocks),
    [GP_CONTROL_AUTO_BOOST] = ROW(nvmlDeviceSetDefaultAutoBoostedClocksEnabled, auto_boost),
    [GP_CONTROL_GPU_CLOCK_OFFSET] = OLDER(nvmlDeviceSetGpcClkVfOffset, gpu_offset),
    [GP_CONTROL_MEMORY_CLOCK_OFFSET] = OLDER(nvmlDeviceSetMemClkVfOffset, memory_offset),
    [GP_CONTROL_FAN_SPEED] = CHECKED(nvmlDeviceSetFanSpeed_v2, fans),
    [GP_CONTROL_TARGET_TEMPERATURE] = ROW(nvmlDeviceSetTemperatureThreshold, target_temperature),
    [GP_CONTROL_ECC_MODE] = ROW(nvmlDeviceSetEccMode, ecc_mode),
    [GP_CONTROL_DRAM_ENCRYPTION] = ROW(nvmlDeviceSetDramEncryptionMode, dram_encryption),
    [GP_CONTROL_OPERATION_MODE] = ROW(nvmlDeviceSetGpuOperationMode, operation_mode),
    [GP_CONTROL_VIRTUALIZATION_MODE] = ROW(nvmlDeviceSetVirtualizationMode, virtualization_mode),
    [GP_CONTROL_APP_CLOCKS_ACCESS] = ROW(nvmlDeviceSetAPIRestriction, app_clocks_access),
    [GP_CONTROL_AUTO_BOOST_ACCESS] = ROW(nvmlDeviceSetAPIRestriction, auto_boost_access),
    [GP_CONTROL_HOSTNAME] = ROW(nvmlDeviceSetHostname_v1, hostname),
    [GP_CONTROL_ACCOUNTING_MODE] = ROW(nvmlDeviceSetAccountingMode, accounting_mode),
    [GP_CONTROL_ACCOUNTING_RECORDS] = ROW(nvmlDeviceClearAccountingPids, accounting_records),
    [GP_CONTROL_ECC_COUNTERS] = ROW(nvmlDeviceClearEccErrorCounts, ecc_counters),
    [GP_CONTROL_NVLINK_COUNTERS] = ROW(nvmlDeviceResetNvLinkErrorCounters, nvlink_counters),
};

static struct nvml_device *to_device(struct gp_source_device *device)
{
    return (struct nvml_device *)device;
}

static void control_read(struct gp_source_device *base, enum gp_control_id id,
                         struct gp_setting *ret)
{
    struct nvml_device *device = to_device(base);
    const struct nvml_control *control = &controls[id];
    *ret = (struct gp_setting){.status = GP_STATUS_UNSUPPORTED};
    if (device->is_mig && !gp_control_table[id].on_mig) {
        set_words(ret, "applies to the whole GPU, not to an instance");
        return;
    }
    if (!nvml_find(&device->source->api, control->setter) &&
        !(control->older && nvml_find(&device->source->api, control->older))) {
        ret->driver_code = NVML_ERROR_FUNCTION_NOT_FOUND;
        (void)snprintf(ret->words, sizeof(ret->words), "this driver does not support %s",
                       nvml_function_name(control->setter));
        return;
    }
    nvmlReturn_t rc = control->read(device, ret);
    ret->status = nvml_return_status(rc);
    if (rc == NVML_SUCCESS)
        return;
    ret->driver_code = (int)rc;
    ret->known = false;
    const char *instead = gp_control_table[id].instead;
    if (rc == NVML_ERROR_DEPRECATED)
        (void)snprintf(ret->words, sizeof(ret->words), "removed from this driver%s%s",
                       instead ? "; use " : "", instead ? instead : "");
    else if (ret->status != GP_STATUS_UNSUPPORTED)
        (void)snprintf(ret->words, sizeof(ret->words), "%s (%s)", nvml_return_text(rc),
                       atomic_load_explicit(device->call, memory_order_relaxed));
}

static int control_check(struct gp_source_device *base, enum gp_control_id id,
                         const struct gp_control_value *value, struct gp_err *err)
{
    const struct nvml_control *control = &controls[id];
    return control->check ? control->check(to_device(base), value, err) : 0;
}

/* The meaning of an error, with a remedy. */
static const struct refusal {
    nvmlReturn_t rc;
    int code;
    const char *words;
} refusals[] = {
    {NVML_ERROR_NO_PERMISSION, GP_EPERM, "no permission"},
    {NVML_ERROR_NOT_SUPPORTED, GP_EFAIL, "not supported by this GPU"},
    {NVML_ERROR_FUNCTION_NOT_FOUND, GP_EFAIL, "not supported by this driver"},
    {NVML_ERROR_ARGUMENT_VERSION_MISMATCH, GP_EFAIL,
     "this driver uses another version of the call"},
    {NVML_ERROR_DEPRECATED, GP_EFAIL, "removed from this driver"},
    {NVML_ERROR_INVALID_ARGUMENT, GP_EFAIL, "the driver rejects the value"},
    {NVML_ERROR_IN_USE, GP_EFAIL, "in use: terminate the programs that use it first"},
    {NVML_ERROR_INSUFFICIENT_RESOURCES, GP_EFAIL,
     "the GPU does not have enough free resources for it"},
    {NVML_ERROR_RESET_REQUIRED, GP_EFAIL, "the GPU must be reset first"},
};

static int refuse(const struct nvml_device *device, nvmlReturn_t rc, struct gp_err *err)
{
    struct refusal why = {rc, nvml_return_ends_session(rc) ? GP_EDRIVER : GP_EFAIL,
                          nvml_return_text(rc)};
    for (size_t i = 0; i < GP_ARRAY_LEN(refusals); i++)
        if (refusals[i].rc == rc)
            why = refusals[i];
    (void)gp_err_set(err, why.code, "%s (%s)", why.words,
                     atomic_load_explicit(device->call, memory_order_relaxed));
    err->driver_code = (int)rc;
    return why.code;
}

static int control_apply(struct gp_source_device *base, enum gp_control_id id,
                         const struct gp_control_value *value, struct gp_err *err)
{
    struct nvml_device *device = to_device(base);
    device->activation = NVML_SUCCESS;
    nvmlReturn_t rc = controls[id].apply(device, value);
    if (rc == NVML_SUCCESS && device->activation != NVML_SUCCESS)
        (void)snprintf(err->text, sizeof(err->text), "%s", nvml_return_text(device->activation));
    err->driver_code = (int)device->activation;
    return rc == NVML_SUCCESS ? 0 : refuse(device, rc, err);
}

static int control_part(struct gp_source_device *base, struct gp_part *part, struct gp_err *err)
{
    struct nvml_device *device = to_device(base);
    nvmlReturn_t rc = nvml_part(device, part);
    return rc == NVML_SUCCESS ? 0 : refuse(device, rc, err);
}

static struct gp_source_device *control_instance(struct gp_source_device *base, size_t n)
{
    struct nvml_device *device = to_device(base);
    return n < device->mig.count ? (struct gp_source_device *)device->mig.devices[n] : NULL;
}

const struct gp_control_ops nvml_control_ops = {
    .instance = control_instance,
    .read = control_read,
    .check = control_check,
    .apply = control_apply,
    .part = control_part,
};
