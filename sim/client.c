#include "sim/client.h"

#include "sim/mig.h"
#include "sim/setting.h"

#include <unistd.h>

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
    struct sim_settings *s = sim_state_settings(live->state);
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
    struct sim_settings *s = sim_state_settings(live->state);
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
    struct sim_settings *s = sim_state_settings(live->state);
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
