/* What the driver answers where clients have changed a setting. */
#include "sim/setting.h"

#include "sim/mig.h"

/* The setting that replaces a stored answer of a GPU. */
static const struct {
    enum sim_slot first, last;
    enum sim_setting setting;
    bool cleared; /* the setting means that the counters were reset */
} changed_slots[] = {
    {SIM_PERSISTENCE, SIM_PERSISTENCE, SIM_SET_PERSISTENCE, false},
    {SIM_COMPUTE_MODE, SIM_COMPUTE_MODE, SIM_SET_COMPUTE_MODE, false},
    {SIM_LIMIT, SIM_LIMIT, SIM_SET_LIMIT, false},
    {SIM_LIMIT_ENFORCED, SIM_LIMIT_ENFORCED, SIM_SET_LIMIT, false},
    {SIM_ECC_CURRENT, SIM_ECC_CURRENT, SIM_SET_ECC, false},
    {SIM_ECC_PENDING, SIM_ECC_PENDING, SIM_SET_ECC_PENDING, false},
    {SIM_GOM, SIM_GOM, SIM_SET_OPERATION_MODE, false},
    {SIM_GOM_PENDING, SIM_GOM_PENDING, SIM_SET_OPERATION_MODE_PENDING, false},
    {SIM_DRAM_ENC, SIM_DRAM_ENC, SIM_SET_DRAM_ENCRYPTION, false},
    {SIM_DRAM_ENC_PENDING, SIM_DRAM_ENC_PENDING, SIM_SET_DRAM_ENCRYPTION_PENDING, false},
    {SIM_VIRTUALIZATION, SIM_VIRTUALIZATION, SIM_SET_VIRTUALIZATION, false},
    {SIM_AUTO_BOOST, SIM_AUTO_BOOST_DEFAULT, SIM_SET_AUTO_BOOST, false},
    {SIM_RESTRICTED_APP_CLOCKS, SIM_RESTRICTED_APP_CLOCKS,
     SIM_SET_RESTRICTED + (int)NVML_RESTRICTED_API_SET_APPLICATION_CLOCKS, false},
    {SIM_RESTRICTED_AUTO_BOOST, SIM_RESTRICTED_AUTO_BOOST,
     SIM_SET_RESTRICTED + (int)NVML_RESTRICTED_API_SET_AUTO_BOOSTED_CLOCKS, false},
    {SIM_THRESHOLD_ACOUSTIC_CURR, SIM_THRESHOLD_ACOUSTIC_CURR, SIM_SET_TARGET_TEMPERATURE, false},
    {SIM_APP_CLOCK_GRAPHICS, SIM_APP_CLOCK_SM, SIM_SET_APP_GRAPHICS, false},
    {SIM_APP_CLOCK_MEM, SIM_APP_CLOCK_MEM, SIM_SET_APP_MEMORY, false},
    {SIM_ACCOUNTING, SIM_ACCOUNTING, SIM_SET_ACCOUNTING, false},
    {SIM_MIG_CURRENT, SIM_MIG_CURRENT, SIM_SET_MIG, false},
    {SIM_MIG_PENDING, SIM_MIG_PENDING, SIM_SET_MIG_PENDING, false},
    {SIM_FAN, SIM_FAN, SIM_SET_FAN, false},
    {SIM_ECC_TOTAL, SIM_ECC_TOTAL, SIM_SET_ECC_VOLATILE_CLEARED, true},
    {SIM_ECC_TOTAL_UV, SIM_ECC_TOTAL_UV, SIM_SET_ECC_VOLATILE_CLEARED, true},
    {SIM_ECC_AT, SIM_ECC_AT_SRAM, SIM_SET_ECC_VOLATILE_CLEARED, true},
    {SIM_ECC_AT_UV, SIM_ECC_AT_UV_SRAM, SIM_SET_ECC_VOLATILE_CLEARED, true},
    {SIM_ECC_TOTAL_CA, SIM_ECC_TOTAL_CA, SIM_SET_ECC_AGGREGATE_CLEARED, true},
    {SIM_ECC_TOTAL_UA, SIM_ECC_TOTAL_UA, SIM_SET_ECC_AGGREGATE_CLEARED, true},
    {SIM_ECC_AT_CA, SIM_ECC_AT_CA_SRAM, SIM_SET_ECC_AGGREGATE_CLEARED, true},
    {SIM_ECC_AT_UA, SIM_ECC_AT_UA_SRAM, SIM_SET_ECC_AGGREGATE_CLEARED, true},
};

void sim_setting_overrule(const struct sim_live *live, const struct sim_device *gpu,
                          enum sim_setting setting)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(changed_slots); i++)
        for (enum sim_slot slot = changed_slots[i].first;
             changed_slots[i].setting == setting && slot <= changed_slots[i].last; slot++)
            sim_state_forget_answer(live->state, (int)gpu->index, slot);
}

static bool is_utilization(enum sim_slot slot)
{
    enum sim_motion motion = sim_answers[slot].motion;
    return motion == SIM_MOTION_UTIL || motion == SIM_MOTION_UTIL_MEM ||
           motion == SIM_MOTION_UTIL_ENGINE;
}

struct sim_value sim_setting_value(const struct sim_live *live, const struct sim_device *device,
                                   enum sim_slot slot)
{
    struct sim_value v = device->answers[slot];
    uint64_t changed;
    if (v.code != NVML_SUCCESS ||
        !atomic_load_explicit(&sim_state_settings(live->state)->changed, memory_order_acquire))
        return v;
    if (device->parent) {
        if (slot == SIM_COMPUTE_MODE)
            v.number = sim_mig_mode(live, device, v.number);
        return v;
    }
    /* A partitioned GPU has no utilization of its own. */
    if (is_utilization(slot) && sim_setting_get(live, device, SIM_SET_MIG, &changed) && changed)
        v.code = NVML_ERROR_NOT_SUPPORTED;
    for (size_t i = 0; i < GP_ARRAY_LEN(changed_slots); i++)
        if (slot >= changed_slots[i].first && slot <= changed_slots[i].last &&
            sim_setting_get(live, device, changed_slots[i].setting, &changed))
            v.number = changed_slots[i].cleared ? 0 : changed;
    return v;
}

uint64_t sim_setting_clock(const struct sim_live *live, const struct sim_device *device,
                           enum sim_slot slot, uint64_t mhz)
{
    const struct sim_device *gpu = device->parent ? device->parent : device;
    bool memory = slot == SIM_CLOCK_MEM;
    uint64_t min, max;
    if (slot == SIM_CLOCK_VIDEO ||
        !sim_setting_get(live, gpu, memory ? SIM_SET_MEMORY_CLOCK_MIN : SIM_SET_GPU_CLOCK_MIN,
                         &min) ||
        !sim_setting_get(live, gpu, memory ? SIM_SET_MEMORY_CLOCK_MAX : SIM_SET_GPU_CLOCK_MAX,
                         &max))
        return mhz;
    return mhz < min ? min : mhz > max ? max : mhz;
}

struct sim_value sim_setting_field(const struct sim_live *live, const struct sim_device *device,
                                   unsigned int id, unsigned int scope, struct sim_value v)
{
    uint64_t limit;
    bool is_limit =
        id == NVML_FI_DEV_POWER_CURRENT_LIMIT || id == NVML_FI_DEV_POWER_REQUESTED_LIMIT;
    enum sim_setting setting =
        scope == NVML_POWER_SCOPE_MODULE ? SIM_SET_MODULE_LIMIT : SIM_SET_LIMIT;
    if (is_limit && v.code == NVML_SUCCESS && scope <= NVML_POWER_SCOPE_MODULE && !device->parent &&
        sim_setting_get(live, device, setting, &limit))
        v.number = limit;
    return v;
}
