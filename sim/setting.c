#include "sim/setting.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct sim_settings *settings_of(const struct sim_live *live)
{
    return sim_state_settings(live->state);
}

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

bool sim_setting_is_allowed(void)
{
    const char *given = getenv("GPULSE_SIM_ROOT");
    return given && *given ? strcmp(given, "0") != 0 : geteuid() == 0;
}
