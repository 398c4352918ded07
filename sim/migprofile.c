#include "sim/migprofile.h"

#include "sim/setting.h"

#include <stdio.h>
#include <string.h>

const struct sim_mig_profile sim_mig_profiles[SIM_MIG_PROFILES] = {
    {0, 19, 1, 1, 7, 1, 0x7f, ""}, {7, 20, 1, 1, 1, 1, 0x7f, "+me"}, {9, 15, 1, 2, 4, 2, 0x55, ""},
    {1, 14, 2, 2, 3, 2, 0x15, ""}, {2, 9, 3, 4, 2, 4, 0x11, ""},     {3, 5, 4, 4, 1, 4, 0x01, ""},
    {4, 0, 7, 8, 1, 8, 0x01, ""},
};

const struct sim_mig_profile *sim_mig_profile_at(unsigned int index)
{
    for (size_t i = 0; i < SIM_MIG_PROFILES; i++)
        if (sim_mig_profiles[i].index == index)
            return &sim_mig_profiles[i];
    return NULL;
}

const struct sim_mig_profile *sim_mig_profile_by_id(unsigned int id)
{
    for (size_t i = 0; i < SIM_MIG_PROFILES; i++)
        if (sim_mig_profiles[i].id == id)
            return &sim_mig_profiles[i];
    return NULL;
}

const struct sim_mig_profile *sim_mig_profile_of_instance(const struct sim_live *live,
                                                          const struct sim_device *gpu,
                                                          unsigned int gi)
{
    struct sim_settings *s = sim_state_settings(live->state);
    for (size_t i = 0; i < SIM_MAX_INSTANCES; i++) {
        unsigned long long bits = atomic_load(&s->devices[gpu->index].gpu_instances[i]);
        struct sim_instance instance;
        memcpy(&instance, &bits, sizeof(instance));
        if (instance.serial && instance.gi == gi)
            return &sim_mig_profiles[instance.profile];
    }
    return NULL;
}

static uint64_t total_mib(const struct sim_device *gpu)
{
    return gpu->answers[SIM_MEM_TOTAL].number >> 20;
}

uint64_t sim_mig_profile_mib(const struct sim_device *gpu, const struct sim_mig_profile *profile)
{
    return total_mib(gpu) * profile->eighths / 8;
}

/* The file says how much memory it has, and of how many slices it is. */
const struct sim_mig_profile *sim_mig_profile_of_device(const struct sim_device *mig)
{
    uint64_t slices = mig->answers[SIM_ATTR_GI_SLICES].number;
    uint64_t mib = mig->answers[SIM_MEM_TOTAL].number >> 20;
    uint64_t eighths = (mib * 8 + total_mib(mig->parent) / 2) / total_mib(mig->parent);
    const struct sim_mig_profile *found = &sim_mig_profiles[0];
    for (size_t i = 0; i < SIM_MIG_PROFILES; i++)
        if (sim_mig_profiles[i].slices == slices && sim_mig_profiles[i].eighths == eighths &&
            !sim_mig_profiles[i].suffix[0])
            found = &sim_mig_profiles[i];
    return found;
}

/* Whole GB of the GPU, shared out in eighths and rounded: what the products are called by. */
void sim_mig_profile_name(const struct sim_device *gpu, const struct sim_mig_profile *profile,
                          char *out, size_t size)
{
    uint64_t total_gb = (total_mib(gpu) + 1023) / 1024;
    uint64_t gb = (total_gb * profile->eighths + 4) / 8;
    (void)snprintf(out, size, "%ug.%llugb%s", profile->slices, (unsigned long long)gb,
                   profile->suffix);
}

unsigned int sim_mig_multiprocessors(const struct sim_device *gpu, unsigned int slices)
{
    bool ampere = gpu->answers[SIM_ARCH].number == NVML_DEVICE_ARCH_AMPERE;
    return slices * (ampere ? 14 : 16);
}
