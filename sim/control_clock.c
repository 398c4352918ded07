/* Setters of clocks, and getters of their state. */
#include "sim/control.h"

#include "sim/setting.h"

/* ------------------------------------------------------------------------- clocks */

/* Named limits cannot be combined with numbers. */
static bool is_symbol(unsigned int mhz)
{
    return mhz == NVML_CLOCK_LIMIT_ID_TDP || mhz == NVML_CLOCK_LIMIT_ID_UNLIMITED;
}

static nvmlReturn_t lock(enum sim_function function, nvmlDevice_t device, unsigned int min,
                         unsigned int max, nvmlDeviceArchitecture_t oldest, enum sim_slot limit,
                         enum sim_setting setting)
{
    struct sim_call call;
    bool args_ok = is_symbol(min) == is_symbol(max) && (is_symbol(min) || min <= max);
    nvmlReturn_t code = sim_enter_setter(&call, function, device, args_ok, limit);
    if (code == NVML_SUCCESS && sim_is_older_than(&call, oldest))
        code = NVML_ERROR_NOT_SUPPORTED;
    uint64_t most = code == NVML_SUCCESS ? call.device->answers[limit].number : 0;
    if (code == NVML_SUCCESS && is_symbol(min)) {
        sim_unset(&call, setting);
        sim_unset(&call, setting + 1);
    } else if (code == NVML_SUCCESS && max > most) {
        code = NVML_ERROR_INVALID_ARGUMENT;
    } else if (code == NVML_SUCCESS) {
        sim_set(&call, setting, min);
        sim_set(&call, setting + 1, max);
    }
    return sim_leave(code);
}

static nvmlReturn_t unlock(enum sim_function function, nvmlDevice_t device,
                           nvmlDeviceArchitecture_t oldest, enum sim_slot limit,
                           enum sim_setting setting)
{
    return lock(function, device, NVML_CLOCK_LIMIT_ID_UNLIMITED, NVML_CLOCK_LIMIT_ID_UNLIMITED,
                oldest, limit, setting);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceSetGpuLockedClocks(nvmlDevice_t device, unsigned int min,
                                                     unsigned int max)
{
    return lock(SIM_FN_nvmlDeviceSetGpuLockedClocks, device, min, max, NVML_DEVICE_ARCH_VOLTA,
                SIM_MAX_CLOCK_GRAPHICS, SIM_SET_GPU_CLOCK_MIN);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceResetGpuLockedClocks(nvmlDevice_t device)
{
    return unlock(SIM_FN_nvmlDeviceResetGpuLockedClocks, device, NVML_DEVICE_ARCH_VOLTA,
                  SIM_MAX_CLOCK_GRAPHICS, SIM_SET_GPU_CLOCK_MIN);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceSetMemoryLockedClocks(nvmlDevice_t device, unsigned int min,
                                                        unsigned int max)
{
    return lock(SIM_FN_nvmlDeviceSetMemoryLockedClocks, device, min, max, NVML_DEVICE_ARCH_AMPERE,
                SIM_MAX_CLOCK_MEM, SIM_SET_MEMORY_CLOCK_MIN);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceResetMemoryLockedClocks(nvmlDevice_t device)
{
    return unlock(SIM_FN_nvmlDeviceResetMemoryLockedClocks, device, NVML_DEVICE_ARCH_AMPERE,
                  SIM_MAX_CLOCK_MEM, SIM_SET_MEMORY_CLOCK_MIN);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceSetApplicationsClocks(nvmlDevice_t device, unsigned int memory,
                                                        unsigned int graphics)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter_setter(&call, SIM_FN_nvmlDeviceSetApplicationsClocks, device,
                                         true, SIM_APP_CLOCK_GRAPHICS);
    if (code == NVML_SUCCESS && (memory > call.device->answers[SIM_MAX_CLOCK_MEM].number ||
                                 graphics > call.device->answers[SIM_MAX_CLOCK_GRAPHICS].number))
        code = NVML_ERROR_INVALID_ARGUMENT;
    if (code == NVML_SUCCESS) {
        sim_set(&call, SIM_SET_APP_MEMORY, memory);
        sim_set(&call, SIM_SET_APP_GRAPHICS, graphics);
    }
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceResetApplicationsClocks(nvmlDevice_t device)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter_setter(&call, SIM_FN_nvmlDeviceResetApplicationsClocks, device,
                                         true, SIM_APP_CLOCK_GRAPHICS);
    if (code == NVML_SUCCESS) {
        sim_unset(&call, SIM_SET_APP_MEMORY);
        sim_unset(&call, SIM_SET_APP_GRAPHICS);
    }
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceSetDefaultAutoBoostedClocksEnabled(nvmlDevice_t device,
                                                                     nvmlEnableState_t enabled,
                                                                     unsigned int flags)
{
    (void)flags;
    return sim_set_switch(SIM_FN_nvmlDeviceSetDefaultAutoBoostedClocksEnabled, device, enabled,
                          SIM_AUTO_BOOST_DEFAULT, SIM_SET_AUTO_BOOST);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceSetAPIRestriction(nvmlDevice_t device, nvmlRestrictedAPI_t api,
                                                    nvmlEnableState_t restricted)
{
    struct sim_call call;
    bool known = (size_t)api < NVML_RESTRICTED_API_COUNT;
    nvmlReturn_t code =
        sim_enter_setter(&call, SIM_FN_nvmlDeviceSetAPIRestriction, device,
                         known && restricted <= NVML_FEATURE_ENABLED,
                         (enum sim_slot)(SIM_RESTRICTED_APP_CLOCKS + (known ? (size_t)api : 0)));
    if (code == NVML_SUCCESS)
        sim_set(&call, (enum sim_setting)(SIM_SET_RESTRICTED + (size_t)api), restricted);
    return sim_leave(code);
}

/* ------------------------------------------------------------------------- clock offsets */

struct offset {
    enum sim_slot min; /* the next slot is the maximum */
    enum sim_setting setting;
};
static const struct offset graphics_offset = {SIM_OFFSET_GRAPHICS_MIN, SIM_SET_OFFSET_GRAPHICS};
static const struct offset memory_offset = {SIM_OFFSET_MEMORY_MIN, SIM_SET_OFFSET_MEMORY};

static nvmlReturn_t enter_offset(struct sim_call *call, enum sim_function function,
                                 nvmlDevice_t device, bool args_ok, const struct offset *offset,
                                 bool is_setter)
{
    if (is_setter)
        return sim_enter_setter(call, function, device, args_ok, offset->min);
    nvmlReturn_t code = sim_enter_device(call, function, device, args_ok);
    return code == NVML_SUCCESS ? call->device->answers[offset->min].code : code;
}

static int offset_now(const struct sim_call *call, const struct offset *offset)
{
    uint64_t value = 0;
    (void)sim_setting_get(&call->live, call->device, offset->setting, &value);
    return (int)(int64_t)value;
}

static int offset_limit(const struct sim_call *call, const struct offset *offset, bool most)
{
    return (int)(int64_t)call->device->answers[offset->min + most].number;
}

static nvmlReturn_t set_offset(const struct sim_call *call, const struct offset *offset, int mhz)
{
    if (mhz < offset_limit(call, offset, false) || mhz > offset_limit(call, offset, true))
        return NVML_ERROR_INVALID_ARGUMENT;
    sim_set(call, offset->setting, (uint64_t)(int64_t)mhz);
    return NVML_SUCCESS;
}

static nvmlReturn_t clock_offsets(enum sim_function function, nvmlDevice_t device,
                                  nvmlClockOffset_t *info, bool is_setter)
{
    struct sim_call call;
    const struct offset *offset =
        info && info->type == NVML_CLOCK_MEM ? &memory_offset : &graphics_offset;
    bool args_ok = info && (info->type == NVML_CLOCK_GRAPHICS || info->type == NVML_CLOCK_MEM) &&
                   info->pstate <= NVML_PSTATE_15;
    nvmlReturn_t code = enter_offset(&call, function, device, args_ok, offset, is_setter);
    if (code == NVML_SUCCESS && info->version != nvmlClockOffset_v1)
        code = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (code == NVML_SUCCESS && is_setter) {
        code = set_offset(&call, offset, info->clockOffsetMHz);
    } else if (code == NVML_SUCCESS) {
        info->clockOffsetMHz = offset_now(&call, offset);
        info->minClockOffsetMHz = offset_limit(&call, offset, false);
        info->maxClockOffsetMHz = offset_limit(&call, offset, true);
    }
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetClockOffsets(nvmlDevice_t device, nvmlClockOffset_t *info)
{
    return clock_offsets(SIM_FN_nvmlDeviceGetClockOffsets, device, info, false);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceSetClockOffsets(nvmlDevice_t device, nvmlClockOffset_t *info)
{
    return clock_offsets(SIM_FN_nvmlDeviceSetClockOffsets, device, info, true);
}

static nvmlReturn_t get_offset(enum sim_function function, nvmlDevice_t device,
                               const struct offset *offset, int *ret)
{
    struct sim_call call;
    nvmlReturn_t code = enter_offset(&call, function, device, ret != NULL, offset, false);
    if (code == NVML_SUCCESS)
        *ret = offset_now(&call, offset);
    return sim_leave(code);
}

static nvmlReturn_t get_offset_limits(enum sim_function function, nvmlDevice_t device,
                                      const struct offset *offset, int *min, int *max)
{
    struct sim_call call;
    nvmlReturn_t code = enter_offset(&call, function, device, min && max, offset, false);
    if (code == NVML_SUCCESS) {
        *min = offset_limit(&call, offset, false);
        *max = offset_limit(&call, offset, true);
    }
    return sim_leave(code);
}

static nvmlReturn_t put_offset(enum sim_function function, nvmlDevice_t device,
                               const struct offset *offset, int mhz)
{
    struct sim_call call;
    nvmlReturn_t code = enter_offset(&call, function, device, true, offset, true);
    return sim_leave(code == NVML_SUCCESS ? set_offset(&call, offset, mhz) : code);
}

#define SIM_OFFSET_CALLS(clock, offset)                                                            \
    SIM_EXPORT nvmlReturn_t nvmlDeviceGet##clock##VfOffset(nvmlDevice_t device, int *ret)          \
    {                                                                                              \
        return get_offset(SIM_FN_nvmlDeviceGet##clock##VfOffset, device, offset, ret);             \
    }                                                                                              \
    SIM_EXPORT nvmlReturn_t nvmlDeviceGet##clock##MinMaxVfOffset(nvmlDevice_t device, int *min,    \
                                                                 int *max)                         \
    {                                                                                              \
        return get_offset_limits(SIM_FN_nvmlDeviceGet##clock##MinMaxVfOffset, device, offset, min, \
                                 max);                                                             \
    }                                                                                              \
    SIM_EXPORT nvmlReturn_t nvmlDeviceSet##clock##VfOffset(nvmlDevice_t device, int mhz)           \
    {                                                                                              \
        return put_offset(SIM_FN_nvmlDeviceSet##clock##VfOffset, device, offset, mhz);             \
    }
SIM_OFFSET_CALLS(GpcClk, &graphics_offset)
SIM_OFFSET_CALLS(MemClk, &memory_offset)
