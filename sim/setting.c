#include "sim/setting.h"

#include "sim/mig.h"

#include <string.h>
#include <unistd.h>

static struct sim_settings *settings_of(const struct sim_live *live)
{
    return sim_state_settings(live->state);
}

/* ------------------------------------------------------------------------- values */

bool sim_setting_get(const struct sim_live *live, const struct sim_device *gpu,
                     enum sim_setting setting, uint64_t *ret)
{
    struct sim_settings *s = settings_of(live);
    if (!atomic_load_explicit(&s->changed, memory_order_acquire) ||
        !(atomic_load(&s->devices[gpu->index].set) >> setting & 1))
        return false;
    *ret = atomic_load(&s->devices[gpu->index].values[setting]);
    return true;
}

void sim_setting_set(const struct sim_live *live, const struct sim_device *gpu,
                     enum sim_setting setting, uint64_t value)
{
    struct sim_settings *s = settings_of(live);
    atomic_store(&s->devices[gpu->index].values[setting], value);
    atomic_fetch_or(&s->devices[gpu->index].set, 1ull << setting);
    atomic_store_explicit(&s->changed, 1, memory_order_release);
}

void sim_setting_unset(const struct sim_live *live, const struct sim_device *gpu,
                       enum sim_setting setting)
{
    atomic_fetch_and(&settings_of(live)->devices[gpu->index].set, ~(1ull << setting));
}

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
        !atomic_load_explicit(&settings_of(live)->changed, memory_order_acquire))
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

/* ------------------------------------------------------------------------- clients */

bool sim_device_is_busy(const struct sim_live *live, const struct sim_device *device)
{
    struct sim_process one;
    return sim_live_processes(live, device, &one, 1) > 0;
}

/* Settings that the driver keeps while it holds the GPU. */
static const enum sim_setting kept[] = {
    SIM_SET_COMPUTE_MODE,     SIM_SET_LIMIT,
    SIM_SET_MODULE_LIMIT,     SIM_SET_ACCOUNTING,
    SIM_SET_GPU_CLOCK_MIN,    SIM_SET_GPU_CLOCK_MAX,
    SIM_SET_MEMORY_CLOCK_MIN, SIM_SET_MEMORY_CLOCK_MAX,
    SIM_SET_OFFSET_GRAPHICS,  SIM_SET_OFFSET_MEMORY,
    SIM_SET_APP_MEMORY,       SIM_SET_APP_GRAPHICS,
    SIM_SET_AUTO_BOOST,       SIM_SET_TARGET_TEMPERATURE,
};

static void let_go(const struct sim_live *live, const struct sim_device *gpu)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(kept); i++)
        sim_setting_unset(live, gpu, kept[i]);
    for (unsigned int fan = 0; fan < NVML_MAX_FANS; fan++)
        sim_setting_unset(live, gpu, SIM_SET_FAN + fan);
    sim_state_forget_accounts(live->state, gpu->index, true);
}

static void let_go_of_idle(const struct sim_live *live)
{
    for (size_t i = 0; i < live->machine->device_count; i++) {
        const struct sim_device *gpu = &live->machine->devices[i];
        struct sim_value persistence = sim_setting_value(live, gpu, SIM_PERSISTENCE);
        if (persistence.code == NVML_SUCCESS && persistence.number == NVML_FEATURE_DISABLED &&
            !sim_device_is_busy(live, gpu))
            let_go(live, gpu);
    }
}

/* A client is identified by its pid and the lower half of its start time. */
static unsigned long long client_word(unsigned int pid)
{
    return (unsigned long long)pid << 32 | (sim_process_start(pid) & UINT32_MAX);
}

/* Counts the other clients, and removes those that have exited. */
static unsigned int count_others(const struct sim_live *live, unsigned long long own)
{
    struct sim_settings *s = settings_of(live);
    unsigned int count = 0;
    for (size_t i = 0; i < SIM_MAX_CLIENTS; i++) {
        unsigned long long word = atomic_load(&s->clients[i]);
        if (word == 0 || word == own)
            continue;
        if (client_word((unsigned int)(word >> 32)) == word)
            count++;
        else
            (void)atomic_compare_exchange_strong(&s->clients[i], &word, 0);
    }
    return count;
}

/* Only one at a time, so that the driver does not drop a setting that another client is about to
 * change. */
void sim_client_enter(const struct sim_live *live)
{
    struct sim_settings *s = settings_of(live);
    unsigned long long own = client_word((unsigned int)getpid());
    if (sim_state_lock(live->state, NULL) < 0)
        return;
    if (atomic_load(&s->changed) && count_others(live, own) == 0)
        let_go_of_idle(live);
    for (size_t i = 0; i < SIM_MAX_CLIENTS; i++) {
        unsigned long long none = 0;
        if (atomic_compare_exchange_strong(&s->clients[i], &none, own))
            break;
    }
    sim_state_unlock(live->state);
}

void sim_client_leave(const struct sim_live *live)
{
    struct sim_settings *s = settings_of(live);
    unsigned long long own = client_word((unsigned int)getpid());
    if (sim_state_lock(live->state, NULL) < 0)
        return;
    for (size_t i = 0; i < SIM_MAX_CLIENTS; i++) {
        unsigned long long word = own;
        (void)atomic_compare_exchange_strong(&s->clients[i], &word, 0);
    }
    if (atomic_load(&s->changed) && count_others(live, own) == 0)
        let_go_of_idle(live);
    sim_state_unlock(live->state);
}

bool sim_client_is_alone(const struct sim_live *live)
{
    return count_others(live, client_word((unsigned int)getpid())) == 0;
}

/* ------------------------------------------------------------------------- reboot */

static void take_effect(const struct sim_live *live, const struct sim_device *gpu,
                        enum sim_setting setting, enum sim_setting pending)
{
    uint64_t value;
    if (sim_setting_get(live, gpu, pending, &value))
        sim_setting_set(live, gpu, setting, value);
}

void sim_setting_reboot(const struct sim_live *live)
{
    for (size_t i = 0; i < live->machine->device_count; i++) {
        const struct sim_device *gpu = &live->machine->devices[i];
        let_go(live, gpu);
        sim_setting_unset(live, gpu, SIM_SET_PERSISTENCE);
        take_effect(live, gpu, SIM_SET_ECC, SIM_SET_ECC_PENDING);
        take_effect(live, gpu, SIM_SET_DRAM_ENCRYPTION, SIM_SET_DRAM_ENCRYPTION_PENDING);
        take_effect(live, gpu, SIM_SET_MIG, SIM_SET_MIG_PENDING);
        take_effect(live, gpu, SIM_SET_OPERATION_MODE, SIM_SET_OPERATION_MODE_PENDING);
        sim_mig_clear(live, gpu);
    }
}
