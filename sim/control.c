/* Setters of everything but clocks, and getters of their state. Errors are checked in the order of
 * real drivers: handle and pointers, support by the GPU, permission, value. */
#include "sim/control.h"

#include "sim/client.h"
#include "sim/instance.h"
#include "sim/mig.h"
#include "sim/setting.h"

#include <string.h>

/* Whether all users may change the application clocks. */
static bool is_open_to_all(const struct sim_call *call, enum sim_slot support)
{
    struct sim_value v = sim_setting_value(&call->live, call->device, SIM_RESTRICTED_APP_CLOCKS);
    return support == SIM_APP_CLOCK_GRAPHICS && v.code == NVML_SUCCESS &&
           v.number == NVML_FEATURE_DISABLED;
}

/* Starts a setter. `support` is an answer that is refused by a device without the feature. */
static nvmlReturn_t enter_any_setter(struct sim_call *call, enum sim_function function,
                                     nvmlDevice_t device, bool args_ok, enum sim_slot support)
{
    nvmlReturn_t code = sim_enter_device(call, function, device, args_ok);
    if (code == NVML_SUCCESS)
        code = call->device->answers[support].code;
    if (code == NVML_SUCCESS && !sim_setting_is_allowed() && !is_open_to_all(call, support))
        code = NVML_ERROR_NO_PERMISSION;
    return code;
}

nvmlReturn_t sim_enter_setter(struct sim_call *call, enum sim_function function,
                              nvmlDevice_t device, bool args_ok, enum sim_slot support)
{
    nvmlReturn_t code = enter_any_setter(call, function, device, args_ok, support);
    return code == NVML_SUCCESS && call->device->parent ? NVML_ERROR_NOT_SUPPORTED : code;
}

static bool is_partitioned(const struct sim_call *call)
{
    struct sim_value mode = sim_setting_value(&call->live, call->device, SIM_MIG_CURRENT);
    return mode.code == NVML_SUCCESS && mode.number != 0;
}

bool sim_is_older_than(const struct sim_call *call, nvmlDeviceArchitecture_t arch)
{
    const struct sim_value *own = &call->device->answers[SIM_ARCH];
    return own->code == NVML_SUCCESS && own->number < arch;
}

/* Replaces an answer that was set by a fault. */
static void overrule(const struct sim_call *call, enum sim_setting setting)
{
    if (!sim_state_has_faults(call->live.state) || sim_state_lock(call->live.state, NULL) < 0)
        return;
    sim_setting_overrule(&call->live, call->device, setting);
    sim_state_unlock(call->live.state);
}

void sim_set(const struct sim_call *call, enum sim_setting setting, uint64_t value)
{
    if (sim_is_hit(call, SIM_FAULT_IGNORE))
        return;
    overrule(call, setting);
    sim_setting_set(&call->live, call->device, setting, value);
}

/* Clears the records of live jobs; settings cover those in the machine file. */
static void forget_accounts(const struct sim_call *call, bool running_too)
{
    if (sim_state_lock(call->live.state, NULL) < 0)
        return;
    sim_state_settle_accounts(call->live.state);
    sim_state_forget_accounts(call->live.state, call->device->index, running_too);
    sim_state_unlock(call->live.state);
}

void sim_unset(const struct sim_call *call, enum sim_setting setting)
{
    if (sim_is_hit(call, SIM_FAULT_IGNORE))
        return;
    overrule(call, setting);
    sim_setting_unset(&call->live, call->device, setting);
}

/* ------------------------------------------------------------------------- modes */

static bool is_switch(nvmlEnableState_t state)
{
    return state == NVML_FEATURE_DISABLED || state == NVML_FEATURE_ENABLED;
}

nvmlReturn_t sim_set_switch(enum sim_function function, nvmlDevice_t device,
                            nvmlEnableState_t state, enum sim_slot support,
                            enum sim_setting setting)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter_setter(&call, function, device, is_switch(state), support);
    if (code == NVML_SUCCESS)
        sim_set(&call, setting, state);
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceSetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t mode)
{
    return sim_set_switch(SIM_FN_nvmlDeviceSetPersistenceMode, device, mode, SIM_PERSISTENCE,
                          SIM_SET_PERSISTENCE);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceSetEccMode(nvmlDevice_t device, nvmlEnableState_t mode)
{
    return sim_set_switch(SIM_FN_nvmlDeviceSetEccMode, device, mode, SIM_ECC_CURRENT,
                          SIM_SET_ECC_PENDING);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceSetAccountingMode(nvmlDevice_t device, nvmlEnableState_t mode)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter_setter(&call, SIM_FN_nvmlDeviceSetAccountingMode, device,
                                         is_switch(mode), SIM_ACCOUNTING);
    if (code == NVML_SUCCESS) {
        sim_set(&call, SIM_SET_ACCOUNTING, mode);
        if (mode == NVML_FEATURE_DISABLED)
            forget_accounts(&call, true);
    }
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceSetGpuOperationMode(nvmlDevice_t device,
                                                      nvmlGpuOperationMode_t mode)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter_setter(&call, SIM_FN_nvmlDeviceSetGpuOperationMode, device,
                                         mode <= NVML_GOM_LOW_DP, SIM_GOM);
    if (code == NVML_SUCCESS)
        sim_set(&call, SIM_SET_OPERATION_MODE_PENDING, mode);
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceSetComputeMode(nvmlDevice_t device, nvmlComputeMode_t mode)
{
    struct sim_call call;
    bool known = mode == NVML_COMPUTEMODE_DEFAULT || mode == NVML_COMPUTEMODE_PROHIBITED ||
                 mode == NVML_COMPUTEMODE_EXCLUSIVE_PROCESS;
    nvmlReturn_t code =
        enter_any_setter(&call, SIM_FN_nvmlDeviceSetComputeMode, device, known, SIM_COMPUTE_MODE);
    if (code == NVML_SUCCESS && !call.device->parent && is_partitioned(&call))
        code = NVML_ERROR_NOT_SUPPORTED;
    if (code == NVML_SUCCESS && !call.device->parent)
        sim_set(&call, SIM_SET_COMPUTE_MODE, mode);
    else if (code == NVML_SUCCESS)
        code = sim_instance_set_mode(&call, mode);
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceSetDramEncryptionMode(nvmlDevice_t device,
                                                        const nvmlDramEncryptionInfo_t *info)
{
    struct sim_call call;
    nvmlReturn_t code =
        sim_enter_setter(&call, SIM_FN_nvmlDeviceSetDramEncryptionMode, device,
                         info && info->encryptionState <= NVML_FEATURE_ENABLED, SIM_DRAM_ENC);
    if (code == NVML_SUCCESS && info->version != nvmlDramEncryptionInfo_v1)
        code = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (code == NVML_SUCCESS)
        sim_set(&call, SIM_SET_DRAM_ENCRYPTION_PENDING, info->encryptionState);
    return sim_leave(code);
}

static bool is_of_host(uint64_t mode)
{
    return mode == NVML_GPU_VIRTUALIZATION_MODE_HOST_VGPU ||
           mode == NVML_GPU_VIRTUALIZATION_MODE_HOST_VSGA;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceSetVirtualizationMode(nvmlDevice_t device,
                                                        nvmlGpuVirtualizationMode_t mode)
{
    struct sim_call call;
    nvmlReturn_t code =
        sim_enter_setter(&call, SIM_FN_nvmlDeviceSetVirtualizationMode, device,
                         mode <= NVML_GPU_VIRTUALIZATION_MODE_HOST_VSGA, SIM_VIRTUALIZATION);
    if (code == NVML_SUCCESS && !is_of_host(call.device->answers[SIM_VIRTUALIZATION].number))
        code = NVML_ERROR_NOT_SUPPORTED;
    else if (code == NVML_SUCCESS && !is_of_host(mode))
        code = NVML_ERROR_INVALID_ARGUMENT;
    if (code == NVML_SUCCESS)
        sim_set(&call, SIM_SET_VIRTUALIZATION, mode);
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceSetHostname_v1(nvmlDevice_t device, nvmlHostname_v1_t *hostname)
{
    struct sim_call call;
    bool args_ok = hostname && memchr(hostname->value, 0, sizeof(hostname->value));
    nvmlReturn_t code =
        sim_enter_setter(&call, SIM_FN_nvmlDeviceSetHostname_v1, device, args_ok, SIM_HOSTNAME);
    for (size_t i = 0; code == NVML_SUCCESS && i < sizeof(hostname->value) / 8; i++) {
        uint64_t letters;
        memcpy(&letters, &hostname->value[i * 8], sizeof(letters));
        sim_set(&call, (enum sim_setting)(SIM_SET_HOSTNAME + i), letters);
    }
    return sim_leave(code);
}

/* On Ampere, no client may use the GPU; on later GPUs, only compute processes count. */
static bool is_held(const struct sim_call *call)
{
    if (sim_device_is_busy(&call->live, call->device))
        return true;
    return sim_is_older_than(call, NVML_DEVICE_ARCH_HOPPER) && !sim_client_is_alone(&call->live);
}

static nvmlReturn_t set_mig_mode(const struct sim_call *call, unsigned int mode,
                                 nvmlReturn_t *activation)
{
    if (sim_state_lock(call->live.state, NULL) < 0)
        return NVML_ERROR_UNKNOWN;
    bool changes = is_partitioned(call) != (mode != 0);
    bool held = changes && is_held(call);
    sim_setting_overrule(&call->live, call->device, SIM_SET_MIG_PENDING);
    sim_setting_set(&call->live, call->device, SIM_SET_MIG_PENDING, mode);
    if (changes && !held)
        sim_mig_clear(&call->live, call->device);
    if (!held) {
        sim_setting_overrule(&call->live, call->device, SIM_SET_MIG);
        sim_setting_set(&call->live, call->device, SIM_SET_MIG, mode);
    }
    sim_state_unlock(call->live.state);
    *activation = held ? NVML_ERROR_IN_USE : NVML_SUCCESS;
    return NVML_SUCCESS;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceSetMigMode(nvmlDevice_t device, unsigned int mode,
                                             nvmlReturn_t *activation)
{
    struct sim_call call;
    bool args_ok = activation && mode <= NVML_FEATURE_ENABLED;
    nvmlReturn_t code =
        sim_enter_setter(&call, SIM_FN_nvmlDeviceSetMigMode, device, args_ok, SIM_MIG_CURRENT);
    if (code == NVML_SUCCESS)
        code = set_mig_mode(&call, mode, activation);
    return sim_leave(code);
}

/* ------------------------------------------------------------------------- power */

static nvmlReturn_t set_limit(struct sim_call *call, uint64_t mw)
{
    const struct sim_value *v = call->device->answers;
    if (v[SIM_LIMIT_MIN].code == NVML_SUCCESS &&
        (mw < v[SIM_LIMIT_MIN].number || mw > v[SIM_LIMIT_MAX].number))
        return NVML_ERROR_INVALID_ARGUMENT;
    sim_set(call, SIM_SET_LIMIT, mw);
    return NVML_SUCCESS;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceSetPowerManagementLimit(nvmlDevice_t device, unsigned int limit)
{
    struct sim_call call;
    nvmlReturn_t code =
        sim_enter_setter(&call, SIM_FN_nvmlDeviceSetPowerManagementLimit, device, true, SIM_LIMIT);
    return sim_leave(code == NVML_SUCCESS ? set_limit(&call, limit) : code);
}

static nvmlReturn_t set_module_limit(struct sim_call *call, uint64_t mw)
{
    struct sim_value now = sim_live_field(
        &call->live, call->device, NVML_FI_DEV_POWER_REQUESTED_LIMIT, NVML_POWER_SCOPE_MODULE);
    struct sim_value min = sim_live_field(&call->live, call->device, NVML_FI_DEV_POWER_MIN_LIMIT,
                                          NVML_POWER_SCOPE_MODULE);
    struct sim_value max = sim_live_field(&call->live, call->device, NVML_FI_DEV_POWER_MAX_LIMIT,
                                          NVML_POWER_SCOPE_MODULE);
    if (now.code != NVML_SUCCESS)
        return now.code;
    if (min.code == NVML_SUCCESS && max.code == NVML_SUCCESS &&
        (mw < min.number || mw > max.number))
        return NVML_ERROR_INVALID_ARGUMENT;
    sim_set(call, SIM_SET_MODULE_LIMIT, mw);
    return NVML_SUCCESS;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceSetPowerManagementLimit_v2(nvmlDevice_t device,
                                                             nvmlPowerValue_v2_t *power)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter_setter(&call, SIM_FN_nvmlDeviceSetPowerManagementLimit_v2, device,
                                         power != NULL, SIM_LIMIT);
    if (code == NVML_SUCCESS && power->version != nvmlPowerValue_v2)
        code = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (code == NVML_SUCCESS && power->powerScope == NVML_POWER_SCOPE_GPU)
        code = set_limit(&call, power->powerValueMw);
    else if (code == NVML_SUCCESS && power->powerScope == NVML_POWER_SCOPE_MODULE)
        code = set_module_limit(&call, power->powerValueMw);
    else if (code == NVML_SUCCESS)
        code = NVML_ERROR_NOT_SUPPORTED;
    return sim_leave(code);
}

/* ------------------------------------------------------------------------- temperature */

SIM_EXPORT nvmlReturn_t nvmlDeviceSetTemperatureThreshold(nvmlDevice_t device,
                                                          nvmlTemperatureThresholds_t type,
                                                          int *celsius)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter_setter(&call, SIM_FN_nvmlDeviceSetTemperatureThreshold, device,
                                         celsius && (size_t)type < NVML_TEMPERATURE_THRESHOLD_COUNT,
                                         SIM_THRESHOLD_ACOUSTIC_MIN);
    const struct sim_value *v = code == NVML_SUCCESS ? call.device->answers : NULL;
    if (v && type != NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_CURR)
        code = NVML_ERROR_NOT_SUPPORTED;
    else if (v && (*celsius < (int64_t)v[SIM_THRESHOLD_ACOUSTIC_MIN].number ||
                   *celsius > (int64_t)v[SIM_THRESHOLD_ACOUSTIC_MAX].number))
        code = NVML_ERROR_INVALID_ARGUMENT;
    if (code == NVML_SUCCESS)
        sim_set(&call, SIM_SET_TARGET_TEMPERATURE, (uint64_t)*celsius);
    return sim_leave(code);
}

/* ------------------------------------------------------------------------- fans */

static bool has_fan(const struct sim_call *call, unsigned int fan)
{
    const struct sim_value *fans = &call->device->answers[SIM_FANS];
    return fans->code == NVML_SUCCESS && fan < fans->number && fan < NVML_MAX_FANS;
}

static nvmlReturn_t enter_fan(struct sim_call *call, enum sim_function function,
                              nvmlDevice_t device, unsigned int fan, bool args_ok, bool is_setter)
{
    nvmlReturn_t code = is_setter ? sim_enter_setter(call, function, device, args_ok, SIM_FAN)
                                  : sim_enter_device(call, function, device, args_ok);
    if (code == NVML_SUCCESS)
        code = call->device->answers[SIM_FAN].code;
    return code == NVML_SUCCESS && !has_fan(call, fan) ? NVML_ERROR_INVALID_ARGUMENT : code;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetFanControlPolicy_v2(nvmlDevice_t device, unsigned int fan,
                                                         nvmlFanControlPolicy_t *policy)
{
    struct sim_call call;
    uint64_t target;
    nvmlReturn_t code = enter_fan(&call, SIM_FN_nvmlDeviceGetFanControlPolicy_v2, device, fan,
                                  policy != NULL, false);
    if (code == NVML_SUCCESS)
        *policy = sim_setting_get(&call.live, call.device, SIM_SET_FAN + fan, &target);
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetTargetFanSpeed(nvmlDevice_t device, unsigned int fan,
                                                    unsigned int *speed)
{
    struct sim_call call;
    nvmlReturn_t code =
        enter_fan(&call, SIM_FN_nvmlDeviceGetTargetFanSpeed, device, fan, speed != NULL, false);
    if (code == NVML_SUCCESS) {
        uint64_t target = sim_live_value(&call.live, call.device, SIM_FAN).number;
        (void)sim_setting_get(&call.live, call.device, SIM_SET_FAN + fan, &target);
        *speed = (unsigned int)target;
    }
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceSetFanSpeed_v2(nvmlDevice_t device, unsigned int fan,
                                                 unsigned int speed)
{
    struct sim_call call;
    nvmlReturn_t code = enter_fan(&call, SIM_FN_nvmlDeviceSetFanSpeed_v2, device, fan, true, true);
    const struct sim_value *v = code == NVML_SUCCESS ? call.device->answers : NULL;
    uint64_t min = v && v[SIM_FAN_MIN].code == NVML_SUCCESS ? v[SIM_FAN_MIN].number : 0;
    uint64_t max = v && v[SIM_FAN_MAX].code == NVML_SUCCESS ? v[SIM_FAN_MAX].number : 100;
    if (code == NVML_SUCCESS && (speed < min || speed > max))
        code = NVML_ERROR_INVALID_ARGUMENT;
    if (code == NVML_SUCCESS)
        sim_set(&call, SIM_SET_FAN + fan, speed);
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceSetDefaultFanSpeed_v2(nvmlDevice_t device, unsigned int fan)
{
    struct sim_call call;
    nvmlReturn_t code =
        enter_fan(&call, SIM_FN_nvmlDeviceSetDefaultFanSpeed_v2, device, fan, true, true);
    if (code == NVML_SUCCESS)
        sim_unset(&call, SIM_SET_FAN + fan);
    return sim_leave(code);
}

/* ------------------------------------------------------------------------- counters */

SIM_EXPORT nvmlReturn_t nvmlDeviceClearAccountingPids(nvmlDevice_t device)
{
    struct sim_call call;
    nvmlReturn_t code =
        sim_enter_setter(&call, SIM_FN_nvmlDeviceClearAccountingPids, device, true, SIM_ACCOUNTING);
    if (code == NVML_SUCCESS) {
        sim_set(&call, SIM_SET_RECORDS_CLEARED, 1);
        forget_accounts(&call, false);
    }
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceClearEccErrorCounts(nvmlDevice_t device,
                                                      nvmlEccCounterType_t counter)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter_setter(&call, SIM_FN_nvmlDeviceClearEccErrorCounts, device,
                                         counter < NVML_ECC_COUNTER_TYPE_COUNT, SIM_ECC_TOTAL);
    if (code == NVML_SUCCESS)
        sim_set(&call,
                counter == NVML_VOLATILE_ECC ? SIM_SET_ECC_VOLATILE_CLEARED
                                             : SIM_SET_ECC_AGGREGATE_CLEARED,
                1);
    return sim_leave(code);
}
