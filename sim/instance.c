/* MIG partitioning: calls that list, create and destroy GPU and compute instances. */
#include "sim/instance.h"

#include "sim/client.h"
#include "sim/mig.h"
#include "sim/migprofile.h"
#include "sim/setting.h"

#include <stdio.h>
#include <string.h>

enum { COMPUTE_PROFILES = 5 };
static const unsigned int compute_slices[COMPUTE_PROFILES] = {1, 2, 3, 4, 7}; /* by index and id */

/* ------------------------------------------------------------------------- words */

struct words {
    atomic_ullong *gpu;
    atomic_ullong *compute;
};

static struct words words_of(const struct sim_call *call)
{
    const struct sim_device *gpu = call->device;
    struct sim_settings *s = sim_state_settings(call->live.state);
    return (struct words){s->devices[gpu->index].gpu_instances,
                          s->devices[gpu->index].compute_instances};
}

static struct sim_instance load(const atomic_ullong *word)
{
    unsigned long long bits = atomic_load(word);
    struct sim_instance instance;
    memcpy(&instance, &bits, sizeof(instance));
    return instance;
}

static void store(atomic_ullong *word, struct sim_instance instance)
{
    unsigned long long bits;
    memcpy(&bits, &instance, sizeof(bits));
    atomic_store(word, bits);
}

static uint16_t next_serial(const struct sim_call *call)
{
    return (uint16_t)(atomic_fetch_add(&sim_state_settings(call->live.state)->serial, 1) + 1);
}

static atomic_ullong *free_word(atomic_ullong *words)
{
    for (size_t i = 0; i < SIM_MAX_INSTANCES; i++)
        if (load(&words[i]).serial == 0)
            return &words[i];
    return NULL;
}

/* The word with this serial. */
static atomic_ullong *find_word(atomic_ullong *words, unsigned int serial)
{
    for (size_t i = 0; serial && i < SIM_MAX_INSTANCES; i++)
        if (load(&words[i]).serial == serial)
            return &words[i];
    return NULL;
}

/* ------------------------------------------------------------------------- placement */

/* The taken slices of the GPU. */
static unsigned int taken_places(const struct sim_device *gpu, struct words words)
{
    unsigned int taken = 0;
    for (size_t i = 0; i < SIM_MAX_INSTANCES; i++) {
        struct sim_instance gi = load(&words.gpu[i]);
        if (gi.serial)
            taken |= ((1u << sim_mig_profile(gpu, gi.profile).size) - 1) << gi.start;
    }
    return taken;
}

static unsigned int slices_left(const struct sim_device *gpu, struct words words)
{
    unsigned int left = sim_mig_slices(gpu);
    for (size_t i = 0; i < SIM_MAX_INSTANCES; i++) {
        struct sim_instance gi = load(&words.gpu[i]);
        if (gi.serial)
            left -= sim_mig_profile(gpu, gi.profile).slices;
    }
    return left;
}

/* The number of instances of a profile. */
static unsigned int count_of(struct words words, const struct sim_mig_profile *profile)
{
    unsigned int count = 0;
    for (size_t i = 0; i < SIM_MAX_INSTANCES; i++) {
        struct sim_instance gi = load(&words.gpu[i]);
        count += gi.serial && gi.profile == profile->row;
    }
    return count;
}

/* Where another instance would be placed next to `taken`; −1 if there is no room. */
static int place_for(const struct sim_device *gpu, const struct sim_mig_profile *profile,
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

/* How many more instances would fit. */
static unsigned int capacity(const struct sim_device *gpu, struct words words,
                             const struct sim_mig_profile *profile)
{
    unsigned int taken = taken_places(gpu, words), left = slices_left(gpu, words), count = 0;
    unsigned int there = count_of(words, profile);
    while (left >= profile->slices && there + count < profile->most) {
        int start = place_for(gpu, profile, taken);
        if (start < 0)
            break;
        taken |= ((1u << profile->size) - 1) << start;
        left -= profile->slices;
        count++;
    }
    return count;
}

/* Ids number the GPU, its halves, their halves and so on consecutively. */
static unsigned int first_gi(const struct sim_device *gpu, const struct sim_mig_profile *profile)
{
    return profile->size ? sim_mig_places(gpu) / profile->size - 1 : 0;
}

/* ------------------------------------------------------------------------- parts of an instance */

static unsigned int taken_slices(struct words words, unsigned int gi)
{
    unsigned int taken = 0;
    for (size_t i = 0; i < SIM_MAX_INSTANCES; i++) {
        struct sim_instance ci = load(&words.compute[i]);
        if (ci.serial && ci.gi == gi)
            taken |= ((1u << ci.profile) - 1) << ci.start;
    }
    return taken;
}

/* Each may start at multiples of the smallest power of two that is not less than its size. */
static int slice_for(unsigned int whole, unsigned int slices, unsigned int taken)
{
    struct sim_part parts[COMPUTE_PROFILES];
    size_t which = COMPUTE_PROFILES;
    for (size_t i = 0; i < COMPUTE_PROFILES; i++) {
        unsigned int size = compute_slices[i], step = 1;
        parts[i] = (struct sim_part){size, 0};
        while (step < size)
            step *= 2;
        for (unsigned int start = 0; start + size <= whole; start += step)
            parts[i].starts |= 1u << start;
        which = size == slices ? i : which;
    }
    return which < COMPUTE_PROFILES ? sim_part_place(parts, COMPUTE_PROFILES, which, taken) : -1;
}

static unsigned int slices_capacity(unsigned int whole, unsigned int slices, unsigned int taken)
{
    unsigned int count = 0;
    int start;
    while ((start = slice_for(whole, slices, taken)) >= 0) {
        taken |= ((1u << slices) - 1) << start;
        count++;
    }
    return count;
}

/* ------------------------------------------------------------------------- from the file */

static bool has_gi(struct words words, int gi)
{
    for (size_t i = 0; i < SIM_MAX_INSTANCES; i++) {
        struct sim_instance instance = load(&words.gpu[i]);
        if (instance.serial && instance.gi == gi)
            return true;
    }
    return false;
}

/* Its id determines its placement. */
static void adopt_gi(struct sim_call *call, struct words words, const struct sim_device *mig)
{
    const struct sim_device *gpu = call->device;
    struct sim_mig_profile profile = sim_mig_profile_of_device(mig);
    atomic_ullong *word = free_word(words.gpu);
    unsigned int taken = taken_places(gpu, words);
    int start = (mig->gpu_instance - (int)first_gi(gpu, &profile)) * (int)profile.size;
    bool fits = start >= 0 && start < 32 && profile.starts >> start & 1 &&
                !(taken >> start & ((1u << profile.size) - 1));
    if (!fits)
        start = place_for(gpu, &profile, taken);
    if (word)
        store(word, (struct sim_instance){.serial = next_serial(call),
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
    struct words words = words_of(call);
    for (size_t i = 0; i < gpu->mig_count && i < SIM_MAX_INSTANCES; i++) {
        const struct sim_device *mig = &gpu->migs[i];
        if (!has_gi(words, mig->gpu_instance))
            adopt_gi(call, words, mig);
        unsigned int whole = sim_mig_profile_of_device(mig).slices;
        unsigned int slices = (unsigned int)mig->answers[SIM_ATTR_CI_SLICES].number;
        slices = slices ? slices : whole;
        int start = slice_for(whole, slices, taken_slices(words, (unsigned int)mig->gpu_instance));
        store(&words.compute[i], (struct sim_instance){
                                     .serial = next_serial(call),
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

static bool begin_change(struct sim_call *call)
{
    return sim_state_lock(call->live.state, NULL) == 0;
}

static void end_change(struct sim_call *call)
{
    sim_state_unlock(call->live.state);
}

static bool ensure_live(struct sim_call *call)
{
    uint64_t ignored;
    if (sim_setting_get(&call->live, call->device, SIM_SET_INSTANCES, &ignored))
        return true;
    if (!begin_change(call))
        return false;
    adopt(call);
    end_change(call);
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

static nvmlGpuInstance_t gpu_handle(const struct sim_call *call, const struct sim_instance *gi)
{
    return (nvmlGpuInstance_t)(uintptr_t)instance_bits(call, GPU_INSTANCE_TAG, gi->serial);
}

static nvmlComputeInstance_t compute_handle(const struct sim_call *call,
                                            const struct sim_instance *ci)
{
    return (nvmlComputeInstance_t)(uintptr_t)instance_bits(call, COMPUTE_INSTANCE_TAG, ci->serial);
}

static nvmlDevice_t device_handle(uint64_t bits)
{
    uint64_t device = (uint64_t)DEVICE_TAG << 48 | (bits & UINT64_C(0xffff0000ffff));
    return (nvmlDevice_t)(uintptr_t)device;
}

/* Starts a call on a GPU in MIG mode; the caller must be root if the call requires it. */
static nvmlReturn_t enter_gpu(struct sim_call *call, enum sim_function function,
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
    return needs_mode && !ensure_live(call) ? NVML_ERROR_UNKNOWN : NVML_SUCCESS;
}

/* Same with the handle of an instance, whose word is stored. */
static nvmlReturn_t enter_instance(struct sim_call *call, enum sim_function function, uint64_t bits,
                                   unsigned int tag, bool args_ok, bool needs_root,
                                   atomic_ullong **ret_word)
{
    nvmlReturn_t code = enter_gpu(call, function, device_handle(bits), args_ok && bits >> 48 == tag,
                                  true, needs_root);
    if (code != NVML_SUCCESS)
        return code;
    struct words words = words_of(call);
    *ret_word = find_word(tag == GPU_INSTANCE_TAG ? words.gpu : words.compute, bits >> 16 & 0xffff);
    return *ret_word ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

static nvmlReturn_t enter_gpu_instance(struct sim_call *call, enum sim_function function,
                                       nvmlGpuInstance_t handle, bool args_ok, bool needs_root,
                                       atomic_ullong **ret_word)
{
    return enter_instance(call, function, (uint64_t)(uintptr_t)handle, GPU_INSTANCE_TAG, args_ok,
                          needs_root, ret_word);
}

static nvmlReturn_t enter_compute_instance(struct sim_call *call, enum sim_function function,
                                           nvmlComputeInstance_t handle, bool args_ok,
                                           bool needs_root, atomic_ullong **ret_word)
{
    return enter_instance(call, function, (uint64_t)(uintptr_t)handle, COMPUTE_INSTANCE_TAG,
                          args_ok, needs_root, ret_word);
}

/* Starts changing an instance, which may have disappeared since the call started. */
static nvmlReturn_t begin_instance_change(struct sim_call *call, const atomic_ullong *word,
                                          const void *handle)
{
    if (!begin_change(call))
        return NVML_ERROR_UNKNOWN;
    if (load(word).serial == ((uint64_t)(uintptr_t)handle >> 16 & 0xffff))
        return NVML_SUCCESS;
    end_change(call);
    return NVML_ERROR_NOT_FOUND;
}

/* ------------------------------------------------------------------------- GPU instances */

static nvmlReturn_t profile_info(enum sim_function function, nvmlDevice_t device, bool args_ok,
                                 bool version_ok, unsigned int index,
                                 nvmlGpuInstanceProfileInfo_v2_t *ret)
{
    struct sim_call call;
    struct sim_mig_profile profile;
    bool ok = args_ok && index < NVML_GPU_INSTANCE_PROFILE_COUNT;
    nvmlReturn_t code = enter_gpu(&call, function, device, ok, false, false);
    if (code == NVML_SUCCESS && !sim_mig_profile_at(call.device, index, &profile))
        code = NVML_ERROR_NOT_SUPPORTED;
    if (code == NVML_SUCCESS && !version_ok)
        code = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (code == NVML_SUCCESS) {
        *ret = (nvmlGpuInstanceProfileInfo_v2_t){
            .version = nvmlGpuInstanceProfileInfo_v2,
            .id = profile.id,
            .isP2pSupported = profile.p2p,
            .sliceCount = profile.slices,
            .instanceCount = profile.most,
            .multiprocessorCount = profile.multiprocessors,
            .copyEngineCount = profile.copy_engines,
            .decoderCount = profile.decoders,
            .encoderCount = profile.encoders,
            .jpegCount = profile.jpeg_engines,
            .ofaCount = profile.ofa_engines,
            .memorySizeMB = profile.memory_mib,
        };
        (void)snprintf(ret->name, sizeof(ret->name), "MIG %s", profile.name);
    }
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t device,
                                                             unsigned int profile,
                                                             nvmlGpuInstanceProfileInfo_v2_t *info)
{
    nvmlGpuInstanceProfileInfo_v2_t full;
    bool version_ok = info && info->version == nvmlGpuInstanceProfileInfo_v2;
    nvmlReturn_t code = profile_info(SIM_FN_nvmlDeviceGetGpuInstanceProfileInfoV, device,
                                     info != NULL, version_ok, profile, &full);
    if (code == NVML_SUCCESS)
        *info = full;
    return code;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t device,
                                                            unsigned int profile,
                                                            nvmlGpuInstanceProfileInfo_t *info)
{
    nvmlGpuInstanceProfileInfo_v2_t full;
    nvmlReturn_t code = profile_info(SIM_FN_nvmlDeviceGetGpuInstanceProfileInfo, device,
                                     info != NULL, true, profile, &full);
    if (code == NVML_SUCCESS)
        *info = (nvmlGpuInstanceProfileInfo_t){
            .id = full.id,
            .isP2pSupported = full.isP2pSupported,
            .sliceCount = full.sliceCount,
            .instanceCount = full.instanceCount,
            .multiprocessorCount = full.multiprocessorCount,
            .copyEngineCount = full.copyEngineCount,
            .decoderCount = full.decoderCount,
            .encoderCount = full.encoderCount,
            .jpegCount = full.jpegCount,
            .ofaCount = full.ofaCount,
            .memorySizeMB = full.memorySizeMB,
        };
    return code;
}

/* Starts a call about a profile of the GPU. */
static nvmlReturn_t enter_profile(struct sim_call *call, enum sim_function function,
                                  nvmlDevice_t device, bool args_ok, unsigned int profile_id,
                                  struct sim_mig_profile *ret)
{
    nvmlReturn_t code = enter_gpu(call, function, device, args_ok, true, true);
    if (code == NVML_SUCCESS && !sim_mig_profile_by_id(call->device, profile_id, ret))
        code = NVML_ERROR_INVALID_ARGUMENT;
    return code;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements_v2(
    nvmlDevice_t device, unsigned int profile_id, nvmlGpuInstancePlacement_t *placements,
    unsigned int *count)
{
    struct sim_call call;
    struct sim_mig_profile profile;
    nvmlReturn_t code = enter_profile(&call, SIM_FN_nvmlDeviceGetGpuInstancePossiblePlacements_v2,
                                      device, count != NULL, profile_id, &profile);
    unsigned int n = 0;
    for (unsigned int start = 0; code == NVML_SUCCESS && start < 32; start++) {
        if (!(profile.starts >> start & 1))
            continue;
        if (placements && n < *count)
            placements[n] = (nvmlGpuInstancePlacement_t){.start = start, .size = profile.size};
        n++;
    }
    if (code == NVML_SUCCESS) {
        if (placements && n > *count)
            code = NVML_ERROR_INSUFFICIENT_SIZE;
        *count = n;
    }
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDevice_t device,
                                                                  unsigned int profile_id,
                                                                  unsigned int *count)
{
    struct sim_call call;
    struct sim_mig_profile profile;
    nvmlReturn_t code = enter_profile(&call, SIM_FN_nvmlDeviceGetGpuInstanceRemainingCapacity,
                                      device, count != NULL, profile_id, &profile);
    if (code == NVML_SUCCESS)
        *count = capacity(call.device, words_of(&call), &profile);
    return sim_leave(code);
}

/* The array has room for the profile's maximum: the call takes no capacity. */
SIM_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstances(nvmlDevice_t device, unsigned int profile_id,
                                                  nvmlGpuInstance_t *instances, unsigned int *count)
{
    struct sim_call call;
    struct sim_mig_profile profile;
    nvmlReturn_t code = enter_profile(&call, SIM_FN_nvmlDeviceGetGpuInstances, device,
                                      instances && count, profile_id, &profile);
    if (code == NVML_SUCCESS) {
        struct words words = words_of(&call);
        *count = 0;
        for (size_t i = 0; i < SIM_MAX_INSTANCES && *count < profile.most; i++) {
            struct sim_instance gi = load(&words.gpu[i]);
            if (gi.serial && gi.profile == profile.row)
                instances[(*count)++] = gpu_handle(&call, &gi);
        }
    }
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t device, unsigned int id,
                                                     nvmlGpuInstance_t *instance)
{
    struct sim_call call;
    nvmlReturn_t code =
        enter_gpu(&call, SIM_FN_nvmlDeviceGetGpuInstanceById, device, instance != NULL, true, true);
    if (code == NVML_SUCCESS) {
        struct words words = words_of(&call);
        code = NVML_ERROR_NOT_FOUND;
        for (size_t i = 0; i < SIM_MAX_INSTANCES; i++) {
            struct sim_instance gi = load(&words.gpu[i]);
            if (gi.serial == 0 || gi.gi != id)
                continue;
            *instance = gpu_handle(&call, &gi);
            code = NVML_SUCCESS;
        }
    }
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t instance,
                                               nvmlGpuInstanceInfo_t *info)
{
    struct sim_call call;
    atomic_ullong *word;
    nvmlReturn_t code = enter_gpu_instance(&call, SIM_FN_nvmlGpuInstanceGetInfo, instance,
                                           info != NULL, false, &word);
    if (code == NVML_SUCCESS) {
        struct sim_instance gi = load(word);
        struct sim_mig_profile profile = sim_mig_profile(call.device, gi.profile);
        *info = (nvmlGpuInstanceInfo_t){
            .device = device_handle((uint64_t)(uintptr_t)instance),
            .id = gi.gi,
            .profileId = profile.id,
            .placement = {.start = gi.start, .size = profile.size},
        };
    }
    return sim_leave(code);
}

/* At that start slice, or at the best one (−1). */
static nvmlReturn_t create_gpu_instance(struct sim_call *call,
                                        const struct sim_mig_profile *profile, int start,
                                        nvmlGpuInstance_t *ret)
{
    const struct sim_device *gpu = call->device;
    struct words words = words_of(call);
    unsigned int taken = taken_places(gpu, words);
    atomic_ullong *word = free_word(words.gpu);
    if (start < 0)
        start = place_for(gpu, profile, taken);
    if (start < 0 || !word || !(profile->starts >> start & 1) ||
        taken >> start & ((1u << profile->size) - 1) || slices_left(gpu, words) < profile->slices ||
        count_of(words, profile) >= profile->most)
        return NVML_ERROR_INSUFFICIENT_RESOURCES;
    struct sim_instance gi = {
        .serial = next_serial(call),
        .gi = (uint8_t)(first_gi(gpu, profile) + (unsigned int)start / profile->size),
        .ci = SIM_NO_COMPUTE_INSTANCE,
        .profile = (uint8_t)profile->row,
        .start = (uint8_t)start,
    };
    store(word, gi);
    *ret = gpu_handle(call, &gi);
    return NVML_SUCCESS;
}

static nvmlReturn_t create_at(enum sim_function function, nvmlDevice_t device,
                              unsigned int profile_id, const nvmlGpuInstancePlacement_t *placement,
                              bool args_ok, nvmlGpuInstance_t *instance)
{
    struct sim_call call;
    struct sim_mig_profile profile;
    bool ok = args_ok && (!placement || placement->start < 32);
    nvmlReturn_t code = enter_profile(&call, function, device, ok, profile_id, &profile);
    if (code == NVML_SUCCESS && !begin_change(&call))
        code = NVML_ERROR_UNKNOWN;
    else if (code == NVML_SUCCESS) {
        code =
            create_gpu_instance(&call, &profile, placement ? (int)placement->start : -1, instance);
        end_change(&call);
    }
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceCreateGpuInstance(nvmlDevice_t device, unsigned int profile_id,
                                                    nvmlGpuInstance_t *instance)
{
    return create_at(SIM_FN_nvmlDeviceCreateGpuInstance, device, profile_id, NULL, instance != NULL,
                     instance);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceCreateGpuInstanceWithPlacement(
    nvmlDevice_t device, unsigned int profile_id, const nvmlGpuInstancePlacement_t *placement,
    nvmlGpuInstance_t *instance)
{
    return create_at(SIM_FN_nvmlDeviceCreateGpuInstanceWithPlacement, device, profile_id, placement,
                     placement && instance, instance);
}

/* ------------------------------------------------------------------------- compute instances */

SIM_EXPORT nvmlReturn_t nvmlGpuInstanceDestroy(nvmlGpuInstance_t instance)
{
    struct sim_call call;
    atomic_ullong *word;
    nvmlReturn_t code =
        enter_gpu_instance(&call, SIM_FN_nvmlGpuInstanceDestroy, instance, true, true, &word);
    if (code == NVML_SUCCESS)
        code = begin_instance_change(&call, word, instance);
    if (code == NVML_SUCCESS) {
        struct sim_instance gi = load(word);
        if (taken_slices(words_of(&call), gi.gi))
            code = NVML_ERROR_IN_USE;
        else
            atomic_store(word, 0);
        end_change(&call);
    }
    return sim_leave(code);
}

static nvmlReturn_t compute_profile(enum sim_function function, nvmlGpuInstance_t instance,
                                    bool args_ok, bool version_ok, unsigned int index,
                                    unsigned int engine, nvmlComputeInstanceProfileInfo_v2_t *ret)
{
    struct sim_call call;
    atomic_ullong *word;
    bool ok = args_ok && index < NVML_COMPUTE_INSTANCE_PROFILE_COUNT &&
              engine == NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED;
    nvmlReturn_t code = enter_gpu_instance(&call, function, instance, ok, false, &word);
    if (code == NVML_SUCCESS) {
        struct sim_instance gi = load(word);
        struct sim_mig_profile profile = sim_mig_profile(call.device, gi.profile);
        char part[16] = "";
        if (index >= COMPUTE_PROFILES || compute_slices[index] > profile.slices)
            return sim_leave(NVML_ERROR_NOT_SUPPORTED);
        if (!version_ok)
            return sim_leave(NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
        unsigned int slices = compute_slices[index];
        if (slices < profile.slices)
            (void)snprintf(part, sizeof(part), "%uc.", slices);
        *ret = (nvmlComputeInstanceProfileInfo_v2_t){
            .version = nvmlComputeInstanceProfileInfo_v2,
            .id = index,
            .sliceCount = slices,
            .instanceCount = profile.slices / slices,
            .multiprocessorCount = sim_mig_multiprocessors(call.device, &profile, slices),
            .sharedCopyEngineCount = profile.copy_engines,
            .sharedDecoderCount = profile.decoders,
            .sharedEncoderCount = profile.encoders,
            .sharedJpegCount = profile.jpeg_engines,
            .sharedOfaCount = profile.ofa_engines,
        };
        /* Without the engines of the GPU instance. */
        (void)snprintf(ret->name, sizeof(ret->name), "MIG %s%.*s", part,
                       (int)strcspn(profile.name, "+-"), profile.name);
    }
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfoV(
    nvmlGpuInstance_t instance, unsigned int profile, unsigned int engine,
    nvmlComputeInstanceProfileInfo_v2_t *info)
{
    nvmlComputeInstanceProfileInfo_v2_t full;
    bool version_ok = info && info->version == nvmlComputeInstanceProfileInfo_v2;
    nvmlReturn_t code = compute_profile(SIM_FN_nvmlGpuInstanceGetComputeInstanceProfileInfoV,
                                        instance, info != NULL, version_ok, profile, engine, &full);
    if (code == NVML_SUCCESS)
        *info = full;
    return code;
}

SIM_EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfo(
    nvmlGpuInstance_t instance, unsigned int profile, unsigned int engine,
    nvmlComputeInstanceProfileInfo_t *info)
{
    nvmlComputeInstanceProfileInfo_v2_t full;
    nvmlReturn_t code = compute_profile(SIM_FN_nvmlGpuInstanceGetComputeInstanceProfileInfo,
                                        instance, info != NULL, true, profile, engine, &full);
    if (code == NVML_SUCCESS)
        memcpy(info, &full.id, sizeof(*info));
    return code;
}

SIM_EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceRemainingCapacity(
    nvmlGpuInstance_t instance, unsigned int profile_id, unsigned int *count)
{
    struct sim_call call;
    atomic_ullong *word;
    nvmlReturn_t code =
        enter_gpu_instance(&call, SIM_FN_nvmlGpuInstanceGetComputeInstanceRemainingCapacity,
                           instance, count && profile_id < COMPUTE_PROFILES, true, &word);
    if (code == NVML_SUCCESS) {
        struct sim_instance gi = load(word);
        unsigned int whole = sim_mig_profile(call.device, gi.profile).slices;
        *count = slices_capacity(whole, compute_slices[profile_id],
                                 taken_slices(words_of(&call), gi.gi));
    }
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstances(nvmlGpuInstance_t instance,
                                                           unsigned int profile_id,
                                                           nvmlComputeInstance_t *instances,
                                                           unsigned int *count)
{
    struct sim_call call;
    atomic_ullong *word;
    nvmlReturn_t code =
        enter_gpu_instance(&call, SIM_FN_nvmlGpuInstanceGetComputeInstances, instance,
                           instances && count && profile_id < COMPUTE_PROFILES, true, &word);
    if (code == NVML_SUCCESS) {
        struct words words = words_of(&call);
        struct sim_instance gi = load(word);
        *count = 0;
        for (size_t i = 0; i < SIM_MAX_INSTANCES; i++) {
            struct sim_instance ci = load(&words.compute[i]);
            if (ci.serial && ci.gi == gi.gi && ci.profile == compute_slices[profile_id])
                instances[(*count)++] = compute_handle(&call, &ci);
        }
    }
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceById(nvmlGpuInstance_t instance,
                                                              unsigned int id,
                                                              nvmlComputeInstance_t *ret)
{
    struct sim_call call;
    atomic_ullong *word;
    nvmlReturn_t code = enter_gpu_instance(&call, SIM_FN_nvmlGpuInstanceGetComputeInstanceById,
                                           instance, ret != NULL, true, &word);
    if (code == NVML_SUCCESS) {
        struct words words = words_of(&call);
        struct sim_instance gi = load(word);
        code = NVML_ERROR_NOT_FOUND;
        for (size_t i = 0; i < SIM_MAX_INSTANCES; i++) {
            struct sim_instance ci = load(&words.compute[i]);
            if (ci.serial == 0 || ci.gi != gi.gi || ci.ci != id)
                continue;
            *ret = compute_handle(&call, &ci);
            code = NVML_SUCCESS;
        }
    }
    return sim_leave(code);
}

static nvmlReturn_t create_compute_instance(struct sim_call *call, const struct sim_instance *gi,
                                            unsigned int slices, nvmlComputeInstance_t *ret)
{
    struct words words = words_of(call);
    atomic_ullong *word = free_word(words.compute);
    unsigned int whole = sim_mig_profile(call->device, gi->profile).slices;
    int start = slice_for(whole, slices, taken_slices(words, gi->gi));
    uint8_t id = 0;
    if (!word || start < 0)
        return NVML_ERROR_INSUFFICIENT_RESOURCES;
    for (size_t i = 0; i < SIM_MAX_INSTANCES; i++) {
        struct sim_instance ci = load(&words.compute[i]);
        if (ci.serial && ci.gi == gi->gi && ci.ci >= id)
            id = (uint8_t)(ci.ci + 1);
    }
    struct sim_instance ci = {.serial = next_serial(call),
                              .gi = gi->gi,
                              .ci = id,
                              .profile = (uint8_t)slices,
                              .start = (uint8_t)start};
    store(word, ci);
    *ret = compute_handle(call, &ci);
    return NVML_SUCCESS;
}

SIM_EXPORT nvmlReturn_t nvmlGpuInstanceCreateComputeInstance(nvmlGpuInstance_t instance,
                                                             unsigned int profile_id,
                                                             nvmlComputeInstance_t *ret)
{
    struct sim_call call;
    atomic_ullong *word;
    nvmlReturn_t code =
        enter_gpu_instance(&call, SIM_FN_nvmlGpuInstanceCreateComputeInstance, instance,
                           ret && profile_id < COMPUTE_PROFILES, true, &word);
    if (code == NVML_SUCCESS)
        code = begin_instance_change(&call, word, instance);
    if (code == NVML_SUCCESS) {
        struct sim_instance gi = load(word);
        code = create_compute_instance(&call, &gi, compute_slices[profile_id], ret);
        end_change(&call);
    }
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlComputeInstanceDestroy(nvmlComputeInstance_t instance)
{
    struct sim_call call;
    atomic_ullong *word;
    nvmlReturn_t code = enter_compute_instance(&call, SIM_FN_nvmlComputeInstanceDestroy, instance,
                                               true, true, &word);
    if (code == NVML_SUCCESS)
        code = begin_instance_change(&call, word, instance);
    if (code == NVML_SUCCESS) {
        size_t index = (size_t)(word - words_of(&call).compute);
        const struct sim_device *mig = sim_mig_at(&call.live, call.device, index);
        if (mig && sim_device_is_busy(&call.live, mig))
            code = NVML_ERROR_IN_USE;
        else
            atomic_store(word, 0);
        end_change(&call);
    }
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t instance,
                                                      nvmlComputeInstanceInfo_t *info)
{
    struct sim_call call;
    atomic_ullong *word;
    nvmlReturn_t code = enter_compute_instance(&call, SIM_FN_nvmlComputeInstanceGetInfo_v2,
                                               instance, info != NULL, false, &word);
    if (code == NVML_SUCCESS) {
        struct words words = words_of(&call);
        struct sim_instance ci = load(word);
        unsigned int id = 0;
        while (id + 1 < COMPUTE_PROFILES && compute_slices[id] != ci.profile)
            id++;
        *info = (nvmlComputeInstanceInfo_t){.device = device_handle((uint64_t)(uintptr_t)instance),
                                            .id = ci.ci,
                                            .profileId = id,
                                            .placement = {.start = ci.start, .size = ci.profile}};
        for (size_t i = 0; i < SIM_MAX_INSTANCES; i++) {
            struct sim_instance gi = load(&words.gpu[i]);
            if (gi.serial && gi.gi == ci.gi)
                info->gpuInstance = gpu_handle(&call, &gi);
        }
    }
    return sim_leave(code);
}

/* Converts a MIG device of the file to a live one, so that it has its own settings. */
nvmlReturn_t sim_instance_set_mode(struct sim_call *call, nvmlComputeMode_t mode)
{
    struct sim_device *mig = call->device;
    call->device = mig->parent;
    bool live = ensure_live(call);
    call->device = mig;
    if (!live || !begin_change(call))
        return NVML_ERROR_UNKNOWN;
    bool found = sim_mig_set_mode(&call->live, mig, mode);
    end_change(call);
    return found ? NVML_SUCCESS : NVML_ERROR_UNKNOWN;
}
