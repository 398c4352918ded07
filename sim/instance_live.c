/* The MIG instances in the live state: which ones exist, where others fit, and calls about them. */
#include "sim/instance_internal.h"

#include "sim/setting.h"

#include <string.h>

const unsigned int sim_compute_slices[SIM_COMPUTE_PROFILES] = {1, 2, 3, 4, 7};

/* ------------------------------------------------------------------------- words */

struct sim_instance_words sim_instance_words(const struct sim_call *call)
{
    const struct sim_device *gpu = call->device;
    struct sim_settings *s = sim_state_settings(call->live.state);
    return (struct sim_instance_words){s->devices[gpu->index].gpu_instances,
                                       s->devices[gpu->index].compute_instances};
}

struct sim_instance sim_instance_load(const atomic_ullong *word)
{
    unsigned long long bits = atomic_load(word);
    struct sim_instance instance;
    memcpy(&instance, &bits, sizeof(instance));
    return instance;
}

void sim_instance_store(atomic_ullong *word, struct sim_instance instance)
{
    unsigned long long bits;
    memcpy(&bits, &instance, sizeof(bits));
    atomic_store(word, bits);
}

uint16_t sim_instance_serial(const struct sim_call *call)
{
    return (uint16_t)(atomic_fetch_add(&sim_state_settings(call->live.state)->serial, 1) + 1);
}

atomic_ullong *sim_free_word(atomic_ullong *words)
{
    for (size_t i = 0; i < SIM_MAX_INSTANCES; i++)
        if (sim_instance_load(&words[i]).serial == 0)
            return &words[i];
    return NULL;
}

/* The word with this serial. */
static atomic_ullong *find_word(atomic_ullong *words, unsigned int serial)
{
    for (size_t i = 0; serial && i < SIM_MAX_INSTANCES; i++)
        if (sim_instance_load(&words[i]).serial == serial)
            return &words[i];
    return NULL;
}

/* ------------------------------------------------------------------------- placement */

unsigned int sim_taken_places(const struct sim_device *gpu, struct sim_instance_words words)
{
    unsigned int taken = 0;
    for (size_t i = 0; i < SIM_MAX_INSTANCES; i++) {
        struct sim_instance gi = sim_instance_load(&words.gpu[i]);
        if (gi.serial)
            taken |= ((1u << sim_mig_profile(gpu, gi.profile).size) - 1) << gi.start;
    }
    return taken;
}

unsigned int sim_slices_left(const struct sim_device *gpu, struct sim_instance_words words)
{
    unsigned int left = sim_mig_slices(gpu);
    for (size_t i = 0; i < SIM_MAX_INSTANCES; i++) {
        struct sim_instance gi = sim_instance_load(&words.gpu[i]);
        if (gi.serial)
            left -= sim_mig_profile(gpu, gi.profile).slices;
    }
    return left;
}

unsigned int sim_count_of_profile(struct sim_instance_words words,
                                  const struct sim_mig_profile *profile)
{
    unsigned int count = 0;
    for (size_t i = 0; i < SIM_MAX_INSTANCES; i++) {
        struct sim_instance gi = sim_instance_load(&words.gpu[i]);
        count += gi.serial && gi.profile == profile->row;
    }
    return count;
}

int sim_place_for(const struct sim_device *gpu, const struct sim_mig_profile *profile,
                  unsigned int taken)
{
    struct sim_part parts[NVML_GPU_INSTANCE_PROFILE_COUNT];
    size_t count = 0;
    for (; count < sim_mig_profile_count(gpu) && count < GP_ARRAY_LEN(parts); count++) {
        struct sim_mig_profile p = sim_mig_profile(gpu, count);
        parts[count] = (struct sim_part){p.size, p.starts};
    }
    return profile->row < count ? sim_part_place(parts, count, profile->row, taken) : -1;
}

unsigned int sim_instance_capacity(const struct sim_device *gpu, struct sim_instance_words words,
                                   const struct sim_mig_profile *profile)
{
    unsigned int taken = sim_taken_places(gpu, words), left = sim_slices_left(gpu, words),
                 count = 0;
    unsigned int there = sim_count_of_profile(words, profile);
    while (left >= profile->slices && there + count < profile->most) {
        int start = sim_place_for(gpu, profile, taken);
        if (start < 0)
            break;
        taken |= ((1u << profile->size) - 1) << start;
        left -= profile->slices;
        count++;
    }
    return count;
}

unsigned int sim_first_gi(const struct sim_device *gpu, const struct sim_mig_profile *profile)
{
    return profile->size ? sim_mig_places(gpu) / profile->size - 1 : 0;
}

/* ------------------------------------------------------------------------- parts of an instance */

unsigned int sim_taken_slices(struct sim_instance_words words, unsigned int gi)
{
    unsigned int taken = 0;
    for (size_t i = 0; i < SIM_MAX_INSTANCES; i++) {
        struct sim_instance ci = sim_instance_load(&words.compute[i]);
        if (ci.serial && ci.gi == gi)
            taken |= ((1u << ci.profile) - 1) << ci.start;
    }
    return taken;
}

int sim_slice_for(unsigned int whole, unsigned int slices, unsigned int taken)
{
    struct sim_part parts[SIM_COMPUTE_PROFILES];
    size_t which = SIM_COMPUTE_PROFILES;
    for (size_t i = 0; i < SIM_COMPUTE_PROFILES; i++) {
        unsigned int size = sim_compute_slices[i], step = 1;
        parts[i] = (struct sim_part){size, 0};
        while (step < size)
            step *= 2;
        for (unsigned int start = 0; start + size <= whole; start += step)
            parts[i].starts |= 1u << start;
        which = size == slices ? i : which;
    }
    return which < SIM_COMPUTE_PROFILES ? sim_part_place(parts, SIM_COMPUTE_PROFILES, which, taken)
                                        : -1;
}

unsigned int sim_slices_capacity(unsigned int whole, unsigned int slices, unsigned int taken)
{
    unsigned int count = 0;
    int start;
    while ((start = sim_slice_for(whole, slices, taken)) >= 0) {
        taken |= ((1u << slices) - 1) << start;
        count++;
    }
    return count;
}

/* ------------------------------------------------------------------------- from the file */

static bool has_gi(struct sim_instance_words words, int gi)
{
    for (size_t i = 0; i < SIM_MAX_INSTANCES; i++) {
        struct sim_instance instance = sim_instance_load(&words.gpu[i]);
        if (instance.serial && instance.gi == gi)
            return true;
    }
    return false;
}

/* Its id determines its placement. */
static void adopt_gi(struct sim_call *call, struct sim_instance_words words,
                     const struct sim_device *mig)
{
    const struct sim_device *gpu = call->device;
    struct sim_mig_profile profile = sim_mig_profile_of_device(mig);
    atomic_ullong *word = sim_free_word(words.gpu);
    unsigned int taken = sim_taken_places(gpu, words);
    int start = (mig->gpu_instance - (int)sim_first_gi(gpu, &profile)) * (int)profile.size;
    bool fits = start >= 0 && start < 32 && profile.starts >> start & 1 &&
                !(taken >> start & ((1u << profile.size) - 1));
    if (!fits)
        start = sim_place_for(gpu, &profile, taken);
    if (word)
        sim_instance_store(word, (struct sim_instance){.serial = sim_instance_serial(call),
                                                       .gi = (uint8_t)mig->gpu_instance,
                                                       .ci = SIM_NO_COMPUTE_INSTANCE,
                                                       .profile = (uint8_t)profile.row,
                                                       .start = (uint8_t)(start < 0 ? 0 : start)});
}

/* Copies the instances of the file to the live state when a client first uses them as instances. */
static void adopt(struct sim_call *call)
{
    uint64_t ignored;
    const struct sim_device *gpu = call->device;
    if (sim_setting_get(&call->live, gpu, SIM_SET_INSTANCES, &ignored))
        return;
    struct sim_instance_words words = sim_instance_words(call);
    for (size_t i = 0; i < gpu->mig_count && i < SIM_MAX_INSTANCES; i++) {
        const struct sim_device *mig = &gpu->migs[i];
        if (!has_gi(words, mig->gpu_instance))
            adopt_gi(call, words, mig);
        unsigned int whole = sim_mig_profile_of_device(mig).slices;
        unsigned int slices = (unsigned int)mig->answers[SIM_ATTR_CI_SLICES].number;
        slices = slices ? slices : whole;
        int start =
            sim_slice_for(whole, slices, sim_taken_slices(words, (unsigned int)mig->gpu_instance));
        sim_instance_store(&words.compute[i],
                           (struct sim_instance){
                               .serial = sim_instance_serial(call),
                               .gi = (uint8_t)mig->gpu_instance,
                               .ci = (uint8_t)mig->compute_instance,
                               .profile = (uint8_t)slices,
                               .start = (uint8_t)(start < 0 ? 0 : start),
                               .origin = (uint8_t)(i + 1),
                               .mode = (uint8_t)mig->answers[SIM_COMPUTE_MODE].number,
                           });
    }
    sim_setting_set(&call->live, gpu, SIM_SET_INSTANCES, 1);
}

bool sim_begin_change(struct sim_call *call)
{
    return sim_state_lock(call->live.state, NULL) == 0;
}

void sim_end_change(struct sim_call *call)
{
    sim_state_unlock(call->live.state);
}

bool sim_ensure_live(struct sim_call *call)
{
    uint64_t ignored;
    if (sim_setting_get(&call->live, call->device, SIM_SET_INSTANCES, &ignored))
        return true;
    if (!sim_begin_change(call))
        return false;
    adopt(call);
    sim_end_change(call);
    return true;
}

/* ------------------------------------------------------------------------- handles */

/* Like device handles, with their own tags: [16 tag][16 generation][16 serial][16 GPU]. */
enum { DEVICE_TAG = 0x4750, GPU_INSTANCE_TAG = 0x4751, COMPUTE_INSTANCE_TAG = 0x4752 };

static uint64_t instance_bits(const struct sim_call *call, unsigned int tag, unsigned int serial)
{
    return (uint64_t)tag << 48 | (uint64_t)(call->generation & 0xffff) << 32 |
           (uint64_t)serial << 16 | call->device->index;
}

nvmlGpuInstance_t sim_gpu_instance_handle(const struct sim_call *call,
                                          const struct sim_instance *gi)
{
    return (nvmlGpuInstance_t)(uintptr_t)instance_bits(call, GPU_INSTANCE_TAG, gi->serial);
}

nvmlComputeInstance_t sim_compute_instance_handle(const struct sim_call *call,
                                                  const struct sim_instance *ci)
{
    return (nvmlComputeInstance_t)(uintptr_t)instance_bits(call, COMPUTE_INSTANCE_TAG, ci->serial);
}

nvmlDevice_t sim_instance_device(uint64_t bits)
{
    uint64_t device = (uint64_t)DEVICE_TAG << 48 | (bits & UINT64_C(0xffff0000ffff));
    return (nvmlDevice_t)(uintptr_t)device;
}

nvmlReturn_t sim_enter_mig_gpu(struct sim_call *call, enum sim_function function,
                               nvmlDevice_t device, bool args_ok, bool needs_mode, bool needs_root)
{
    nvmlReturn_t code = sim_enter_device(call, function, device, args_ok);
    if (code != NVML_SUCCESS)
        return code;
    if (call->device->parent)
        return NVML_ERROR_INVALID_ARGUMENT;
    struct sim_value mode = sim_setting_value(&call->live, call->device, SIM_MIG_CURRENT);
    if (mode.code != NVML_SUCCESS)
        return mode.code;
    if (needs_mode && !mode.number)
        return NVML_ERROR_NOT_SUPPORTED;
    if (needs_root && !sim_setting_is_allowed())
        return NVML_ERROR_NO_PERMISSION;
    return needs_mode && !sim_ensure_live(call) ? NVML_ERROR_UNKNOWN : NVML_SUCCESS;
}

/* Same with the handle of an instance, whose word is stored. */
static nvmlReturn_t enter_instance(struct sim_call *call, enum sim_function function, uint64_t bits,
                                   unsigned int tag, bool args_ok, bool needs_root,
                                   atomic_ullong **ret_word)
{
    nvmlReturn_t code = sim_enter_mig_gpu(call, function, sim_instance_device(bits),
                                          args_ok && bits >> 48 == tag, true, needs_root);
    if (code != NVML_SUCCESS)
        return code;
    struct sim_instance_words words = sim_instance_words(call);
    *ret_word = find_word(tag == GPU_INSTANCE_TAG ? words.gpu : words.compute, bits >> 16 & 0xffff);
    return *ret_word ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t sim_enter_gpu_instance(struct sim_call *call, enum sim_function function,
                                    nvmlGpuInstance_t handle, bool args_ok, bool needs_root,
                                    atomic_ullong **ret_word)
{
    return enter_instance(call, function, (uint64_t)(uintptr_t)handle, GPU_INSTANCE_TAG, args_ok,
                          needs_root, ret_word);
}

nvmlReturn_t sim_enter_compute_instance(struct sim_call *call, enum sim_function function,
                                        nvmlComputeInstance_t handle, bool args_ok, bool needs_root,
                                        atomic_ullong **ret_word)
{
    return enter_instance(call, function, (uint64_t)(uintptr_t)handle, COMPUTE_INSTANCE_TAG,
                          args_ok, needs_root, ret_word);
}

nvmlReturn_t sim_begin_instance_change(struct sim_call *call, const atomic_ullong *word,
                                       const void *handle)
{
    if (!sim_begin_change(call))
        return NVML_ERROR_UNKNOWN;
    if (sim_instance_load(word).serial == ((uint64_t)(uintptr_t)handle >> 16 & 0xffff))
        return NVML_SUCCESS;
    sim_end_change(call);
    return NVML_ERROR_NOT_FOUND;
}
