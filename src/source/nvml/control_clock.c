/* Clocks: locks, offsets, application clocks, auto boost, and who may change them. */
#include "source/nvml/control.h"

#include "base/err.h"

enum { CLOCKS_MAX = 512 };

/* False if the driver version is unknown. */
static bool is_older_than(struct nvml_device *device, nvmlDeviceArchitecture_t arch)
{
    nvmlDeviceArchitecture_t own = NVML_DEVICE_ARCH_UNKNOWN;
    return NVML_CALL(device, nvmlDeviceGetArchitecture, device->handle, &own) == NVML_SUCCESS &&
           own < arch;
}

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
    nvml_set_words(s, "not reported by this driver; reset undoes it");
    nvml_set_range(s, least_clock(device, type, max), max);
    return rc;
}

nvmlReturn_t nvml_get_gpu_lock(struct nvml_device *device, struct gp_setting *s)
{
    return read_lock(device, s, NVML_DEVICE_ARCH_VOLTA, NVML_CLOCK_GRAPHICS);
}

nvmlReturn_t nvml_apply_gpu_lock(struct nvml_device *device, const struct gp_control_value *value)
{
    if (value->automatic)
        return NVML_CALL(device, nvmlDeviceResetGpuLockedClocks, device->handle);
    bool is_tdp = value->n[0] == GP_CLOCK_TDP;
    return NVML_CALL(device, nvmlDeviceSetGpuLockedClocks, device->handle,
                     is_tdp ? NVML_CLOCK_LIMIT_ID_TDP : (unsigned)value->n[0],
                     is_tdp ? NVML_CLOCK_LIMIT_ID_TDP : (unsigned)value->n[1]);
}

nvmlReturn_t nvml_get_memory_lock(struct nvml_device *device, struct gp_setting *s)
{
    return read_lock(device, s, NVML_DEVICE_ARCH_AMPERE, NVML_CLOCK_MEM);
}

nvmlReturn_t nvml_apply_memory_lock(struct nvml_device *device,
                                    const struct gp_control_value *value)
{
    if (value->automatic)
        return NVML_CALL(device, nvmlDeviceResetMemoryLockedClocks, device->handle);
    return NVML_CALL(device, nvmlDeviceSetMemoryLockedClocks, device->handle, (unsigned)value->n[0],
                     (unsigned)value->n[1]);
}

nvmlReturn_t nvml_get_application_clocks(struct nvml_device *device, struct gp_setting *s)
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
int nvml_check_application_clocks(struct nvml_device *device, const struct gp_control_value *value,
                                  struct gp_err *err)
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

nvmlReturn_t nvml_apply_application_clocks(struct nvml_device *device,
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
        nvml_set_number(s, offset.clockOffsetMHz);
        nvml_set_range(s, offset.minClockOffsetMHz, offset.maxClockOffsetMHz);
        return rc;
    }
    if (rc != NVML_ERROR_FUNCTION_NOT_FOUND && rc != NVML_ERROR_ARGUMENT_VERSION_MISMATCH)
        return rc;
    bool memory = type == NVML_CLOCK_MEM;
    int now = 0, min = 0, max = 0;
    rc = memory ? NVML_CALL(device, nvmlDeviceGetMemClkVfOffset, device->handle, &now)
                : NVML_CALL(device, nvmlDeviceGetGpcClkVfOffset, device->handle, &now);
    nvml_set_number(s, now);
    nvmlReturn_t limits =
        memory ? NVML_CALL(device, nvmlDeviceGetMemClkMinMaxVfOffset, device->handle, &min, &max)
               : NVML_CALL(device, nvmlDeviceGetGpcClkMinMaxVfOffset, device->handle, &min, &max);
    if (limits == NVML_SUCCESS)
        nvml_set_range(s, min, max);
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

nvmlReturn_t nvml_get_gpu_offset(struct nvml_device *device, struct gp_setting *s)
{
    return read_offset(device, s, NVML_CLOCK_GRAPHICS);
}

nvmlReturn_t nvml_apply_gpu_offset(struct nvml_device *device, const struct gp_control_value *value)
{
    return apply_offset(device, value, NVML_CLOCK_GRAPHICS);
}

nvmlReturn_t nvml_get_memory_offset(struct nvml_device *device, struct gp_setting *s)
{
    return read_offset(device, s, NVML_CLOCK_MEM);
}

nvmlReturn_t nvml_apply_memory_offset(struct nvml_device *device,
                                      const struct gp_control_value *value)
{
    return apply_offset(device, value, NVML_CLOCK_MEM);
}

/* ---- auto boost, and who may change what ---- */

/* The mode that applies unless a program requests another one. */
nvmlReturn_t nvml_get_auto_boost(struct nvml_device *device, struct gp_setting *s)
{
    nvmlEnableState_t current = NVML_FEATURE_DISABLED, usual = NVML_FEATURE_DISABLED;
    nvmlReturn_t rc =
        NVML_CALL(device, nvmlDeviceGetAutoBoostedClocksEnabled, device->handle, &current, &usual);
    nvml_set_number(s, usual);
    return rc;
}

nvmlReturn_t nvml_apply_auto_boost(struct nvml_device *device, const struct gp_control_value *value)
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
    nvml_set_number(s, restricted);
    return rc;
}

static nvmlReturn_t apply_access(struct nvml_device *device, const struct gp_control_value *value,
                                 nvmlRestrictedAPI_t api)
{
    return NVML_CALL(device, nvmlDeviceSetAPIRestriction, device->handle, api,
                     (nvmlEnableState_t)value->n[0]);
}

nvmlReturn_t nvml_get_app_clocks_access(struct nvml_device *device, struct gp_setting *s)
{
    return read_access(device, s, NVML_RESTRICTED_API_SET_APPLICATION_CLOCKS);
}

nvmlReturn_t nvml_apply_app_clocks_access(struct nvml_device *device,
                                          const struct gp_control_value *value)
{
    return apply_access(device, value, NVML_RESTRICTED_API_SET_APPLICATION_CLOCKS);
}

nvmlReturn_t nvml_get_auto_boost_access(struct nvml_device *device, struct gp_setting *s)
{
    return read_access(device, s, NVML_RESTRICTED_API_SET_AUTO_BOOSTED_CLOCKS);
}

nvmlReturn_t nvml_apply_auto_boost_access(struct nvml_device *device,
                                          const struct gp_control_value *value)
{
    return apply_access(device, value, NVML_RESTRICTED_API_SET_AUTO_BOOSTED_CLOCKS);
}
