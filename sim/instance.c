/* MIG partitioning: calls that list, create and destroy GPU instances. */
#include "sim/instance.h"

#include "sim/instance_internal.h"
#include "sim/mig.h"

#include <stdio.h>

static nvmlReturn_t profile_info(enum sim_function function, nvmlDevice_t device, bool args_ok,
                                 bool version_ok, unsigned int index,
                                 nvmlGpuInstanceProfileInfo_v2_t *ret)
{
    struct sim_call call;
    struct sim_mig_profile profile;
    bool ok = args_ok && index < NVML_GPU_INSTANCE_PROFILE_COUNT;
    nvmlReturn_t code = sim_enter_mig_gpu(&call, function, device, ok, false, false);
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
                                  nvmlDevice_t device, bool args_ok, bool needs_mode,
                                  unsigned int profile_id, struct sim_mig_profile *ret)
{
    nvmlReturn_t code = sim_enter_mig_gpu(call, function, device, args_ok, needs_mode, true);
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
                                      device, count != NULL, false, profile_id, &profile);
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
                                      device, count != NULL, true, profile_id, &profile);
    if (code == NVML_SUCCESS)
        *count = sim_instance_capacity(call.device, sim_instance_words(&call), &profile);
    return sim_leave(code);
}

/* The array has room for the profile's maximum: the call takes no capacity. */
SIM_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstances(nvmlDevice_t device, unsigned int profile_id,
                                                  nvmlGpuInstance_t *instances, unsigned int *count)
{
    struct sim_call call;
    struct sim_mig_profile profile;
    nvmlReturn_t code = enter_profile(&call, SIM_FN_nvmlDeviceGetGpuInstances, device,
                                      instances && count, true, profile_id, &profile);
    if (code == NVML_SUCCESS) {
        struct sim_instance_words words = sim_instance_words(&call);
        *count = 0;
        for (size_t i = 0; i < SIM_MAX_INSTANCES && *count < profile.most; i++) {
            struct sim_instance gi = sim_instance_load(&words.gpu[i]);
            if (gi.serial && gi.profile == profile.row)
                instances[(*count)++] = sim_gpu_instance_handle(&call, &gi);
        }
    }
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t device, unsigned int id,
                                                     nvmlGpuInstance_t *instance)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter_mig_gpu(&call, SIM_FN_nvmlDeviceGetGpuInstanceById, device,
                                          instance != NULL, true, true);
    if (code == NVML_SUCCESS) {
        struct sim_instance_words words = sim_instance_words(&call);
        code = NVML_ERROR_NOT_FOUND;
        for (size_t i = 0; i < SIM_MAX_INSTANCES; i++) {
            struct sim_instance gi = sim_instance_load(&words.gpu[i]);
            if (gi.serial == 0 || gi.gi != id)
                continue;
            *instance = sim_gpu_instance_handle(&call, &gi);
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
    nvmlReturn_t code = sim_enter_gpu_instance(&call, SIM_FN_nvmlGpuInstanceGetInfo, instance,
                                               info != NULL, false, &word);
    if (code == NVML_SUCCESS) {
        struct sim_instance gi = sim_instance_load(word);
        struct sim_mig_profile profile = sim_mig_profile(call.device, gi.profile);
        *info = (nvmlGpuInstanceInfo_t){
            .device = sim_instance_device((uint64_t)(uintptr_t)instance),
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
    struct sim_instance_words words = sim_instance_words(call);
    unsigned int taken = sim_taken_places(gpu, words);
    atomic_ullong *word = sim_free_word(words.gpu);
    if (start < 0)
        start = sim_place_for(gpu, profile, taken);
    if (start < 0 || !word || !(profile->starts >> start & 1) ||
        taken >> start & ((1u << profile->size) - 1) ||
        sim_slices_left(gpu, words) < profile->slices ||
        sim_count_of_profile(words, profile) >= profile->most)
        return NVML_ERROR_INSUFFICIENT_RESOURCES;
    struct sim_instance gi = {
        .serial = sim_instance_serial(call),
        .gi = (uint8_t)(sim_first_gi(gpu, profile) + (unsigned int)start / profile->size),
        .ci = SIM_NO_COMPUTE_INSTANCE,
        .profile = (uint8_t)profile->row,
        .start = (uint8_t)start,
    };
    sim_instance_store(word, gi);
    *ret = sim_gpu_instance_handle(call, &gi);
    return NVML_SUCCESS;
}

static nvmlReturn_t create_at(enum sim_function function, nvmlDevice_t device,
                              unsigned int profile_id, const nvmlGpuInstancePlacement_t *placement,
                              bool args_ok, nvmlGpuInstance_t *instance)
{
    struct sim_call call;
    struct sim_mig_profile profile;
    bool ok = args_ok && (!placement || placement->start < 32);
    nvmlReturn_t code = enter_profile(&call, function, device, ok, true, profile_id, &profile);
    if (code == NVML_SUCCESS && !sim_begin_change(&call))
        code = NVML_ERROR_UNKNOWN;
    else if (code == NVML_SUCCESS) {
        code =
            create_gpu_instance(&call, &profile, placement ? (int)placement->start : -1, instance);
        sim_end_change(&call);
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

SIM_EXPORT nvmlReturn_t nvmlGpuInstanceDestroy(nvmlGpuInstance_t instance)
{
    struct sim_call call;
    atomic_ullong *word;
    nvmlReturn_t code =
        sim_enter_gpu_instance(&call, SIM_FN_nvmlGpuInstanceDestroy, instance, true, true, &word);
    if (code == NVML_SUCCESS)
        code = sim_begin_instance_change(&call, word, instance);
    if (code == NVML_SUCCESS) {
        struct sim_instance gi = sim_instance_load(word);
        if (sim_taken_slices(sim_instance_words(&call), gi.gi))
            code = NVML_ERROR_IN_USE;
        else
            atomic_store(word, 0);
        sim_end_change(&call);
    }
    return sim_leave(code);
}

/* Converts a MIG device of the file to a live one, so that it has its own settings. */
nvmlReturn_t sim_instance_set_mode(struct sim_call *call, nvmlComputeMode_t mode)
{
    struct sim_device *mig = call->device;
    call->device = mig->parent;
    bool live = sim_ensure_live(call);
    call->device = mig;
    if (!live || !sim_begin_change(call))
        return NVML_ERROR_UNKNOWN;
    bool found = sim_mig_set_mode(&call->live, mig, mode);
    sim_end_change(call);
    return found ? NVML_SUCCESS : NVML_ERROR_UNKNOWN;
}
