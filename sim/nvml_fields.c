/* The values of nvmlDeviceGetFieldValues(). */
#include "sim/driver.h"

#include "base/clock.h"

/* Counters of time, energy and bytes have 64 bits; temperature limits are signed. */
static nvmlValueType_t field_type(unsigned int id)
{
    static const struct {
        unsigned int first, last;
        nvmlValueType_t type;
    } types[] = {
        {NVML_FI_DEV_PERF_POLICY_POWER, 81, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG},
        {NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION,
         NVML_VALUE_TYPE_UNSIGNED_LONG_LONG},
        {NVML_FI_DEV_ENERGY, NVML_FI_DEV_ENERGY, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG},
        {NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_RX,
         NVML_VALUE_TYPE_UNSIGNED_LONG_LONG},
        {NVML_FI_DEV_NVLINK_COUNT_XMIT_PACKETS, NVML_FI_DEV_NVLINK_COUNT_SYMBOL_BER,
         NVML_VALUE_TYPE_UNSIGNED_LONG_LONG},
        {NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_0, NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_0 + 15,
         NVML_VALUE_TYPE_UNSIGNED_LONG_LONG},
        {NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT, NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT,
         NVML_VALUE_TYPE_SIGNED_INT},
        {NVML_FI_DEV_PCIE_COUNT_TX_BYTES, NVML_FI_DEV_PCIE_COUNT_RX_BYTES,
         NVML_VALUE_TYPE_UNSIGNED_LONG_LONG},
        {NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN,
         NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN,
         NVML_VALUE_TYPE_UNSIGNED_LONG_LONG},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(types); i++)
        if (id >= types[i].first && id <= types[i].last)
            return types[i].type;
    return NVML_VALUE_TYPE_UNSIGNED_INT;
}

/* Fields that only root may read if the administrator has restricted them. */
static bool is_profiling(unsigned int newest)
{
    return (newest >= 60 && newest <= 73) || (newest >= 120 && newest <= 131) ||
           (newest >= NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX &&
            newest <= NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_RX);
}

static bool is_energy(unsigned int newest)
{
    return newest == NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION || newest == NVML_FI_DEV_ENERGY;
}

/* As seen in drivers: R545 reported the memory temperature as a double. */
static void put_wrong_type(nvmlFieldValue_t *field, uint64_t number)
{
    field->timestamp = 0;
    field->valueType = NVML_VALUE_TYPE_DOUBLE;
    field->value.dVal = (double)(int64_t)number;
}

static void fill_field(const struct sim_call *call, nvmlFieldValue_t *field, long long now_us)
{
    unsigned int newest = sim_field_newest(call->machine->driver, field->fieldId);
    struct sim_value v = sim_live_field(&call->live, call->device, field->fieldId, field->scopeId);
    if (v.code == NVML_ERROR_NOT_SUPPORTED)
        v = sim_link_field(&call->live, call->device, newest, field->scopeId);
    if (sim_is_hit(call, SIM_FAULT_PROFILING) && is_profiling(newest))
        v.code = NVML_ERROR_NO_PERMISSION;
    if (sim_is_hit(call, SIM_FAULT_ENERGY) && is_energy(newest))
        v.number -= call->device->answers[SIM_ENERGY].number;
    field->timestamp = now_us;
    field->latencyUsec = 0;
    field->valueType = field_type(newest);
    field->nvmlReturn = v.code;
    if (v.code != NVML_SUCCESS)
        return;
    if (call->absurd)
        v.number = UINT64_MAX;
    if (sim_is_hit(call, SIM_FAULT_TYPES))
        put_wrong_type(field, v.number);
    else if (field->valueType == NVML_VALUE_TYPE_UNSIGNED_LONG_LONG)
        field->value.ullVal = v.number;
    else if (field->valueType == NVML_VALUE_TYPE_SIGNED_INT)
        field->value.siVal = (int)v.number;
    else
        field->value.uiVal = (unsigned int)v.number;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count,
                                                 nvmlFieldValue_t *values)
{
    struct sim_call call;
    nvmlReturn_t code =
        sim_enter_device(&call, SIM_FN_nvmlDeviceGetFieldValues, device, values && count > 0);
    long long now_us = (long long)(gp_clock_wall_ns() / 1000);
    for (int i = 0; code == NVML_SUCCESS && i < count; i++)
        if (i % 2 == 0 || !sim_is_hit(&call, SIM_FAULT_UNTOUCHED))
            fill_field(&call, &values[i], now_us);
    return sim_leave(code);
}
