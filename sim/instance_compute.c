/* MIG partitioning: calls that list, create and destroy compute instances. */
#include "sim/instance_internal.h"

#include "sim/client.h"
#include "sim/mig.h"

#include <stdio.h>
#include <string.h>

static nvmlReturn_t compute_profile(enum sim_function function, nvmlGpuInstance_t instance,
                                    bool args_ok, bool version_ok, unsigned int index,
                                    unsigned int engine, nvmlComputeInstanceProfileInfo_v2_t *ret)
{
    struct sim_call call;
    atomic_ullong *word;
    bool ok = args_ok && index < NVML_COMPUTE_INSTANCE_PROFILE_COUNT &&
              engine == NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED;
    nvmlReturn_t code = sim_enter_gpu_instance(&call, function, instance, ok, false, &word);
    if (code == NVML_SUCCESS) {
        struct sim_instance gi = sim_instance_load(word);
        struct sim_mig_profile profile = sim_mig_profile(call.device, gi.profile);
        char part[16] = "";
        if (index >= SIM_COMPUTE_PROFILES || sim_compute_slices[index] > profile.slices)
            return sim_leave(NVML_ERROR_NOT_SUPPORTED);
        if (!version_ok)
            return sim_leave(NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
        unsigned int slices = sim_compute_slices[index];
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
        sim_enter_gpu_instance(&call, SIM_FN_nvmlGpuInstanceGetComputeInstanceRemainingCapacity,
                               instance, count && profile_id < SIM_COMPUTE_PROFILES, true, &word);
    if (code == NVML_SUCCESS) {
        struct sim_instance gi = sim_instance_load(word);
        unsigned int whole = sim_mig_profile(call.device, gi.profile).slices;
        *count = sim_slices_capacity(whole, sim_compute_slices[profile_id],
                                     sim_taken_slices(sim_instance_words(&call), gi.gi));
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
    nvmlReturn_t code = sim_enter_gpu_instance(
        &call, SIM_FN_nvmlGpuInstanceGetComputeInstances, instance,
        instances && count && profile_id < SIM_COMPUTE_PROFILES, true, &word);
    if (code == NVML_SUCCESS) {
        struct sim_instance_words words = sim_instance_words(&call);
        struct sim_instance gi = sim_instance_load(word);
        *count = 0;
        for (size_t i = 0; i < SIM_MAX_INSTANCES; i++) {
            struct sim_instance ci = sim_instance_load(&words.compute[i]);
            if (ci.serial && ci.gi == gi.gi && ci.profile == sim_compute_slices[profile_id])
                instances[(*count)++] = sim_compute_instance_handle(&call, &ci);
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
    nvmlReturn_t code = sim_enter_gpu_instance(&call, SIM_FN_nvmlGpuInstanceGetComputeInstanceById,
                                               instance, ret != NULL, true, &word);
    if (code == NVML_SUCCESS) {
        struct sim_instance_words words = sim_instance_words(&call);
        struct sim_instance gi = sim_instance_load(word);
        code = NVML_ERROR_NOT_FOUND;
        for (size_t i = 0; i < SIM_MAX_INSTANCES; i++) {
            struct sim_instance ci = sim_instance_load(&words.compute[i]);
            if (ci.serial == 0 || ci.gi != gi.gi || ci.ci != id)
                continue;
            *ret = sim_compute_instance_handle(&call, &ci);
            code = NVML_SUCCESS;
        }
    }
    return sim_leave(code);
}

static nvmlReturn_t create_compute_instance(struct sim_call *call, const struct sim_instance *gi,
                                            unsigned int slices, nvmlComputeInstance_t *ret)
{
    struct sim_instance_words words = sim_instance_words(call);
    atomic_ullong *word = sim_free_word(words.compute);
    unsigned int whole = sim_mig_profile(call->device, gi->profile).slices;
    int start = sim_slice_for(whole, slices, sim_taken_slices(words, gi->gi));
    uint8_t id = 0;
    if (!word || start < 0)
        return NVML_ERROR_INSUFFICIENT_RESOURCES;
    for (size_t i = 0; i < SIM_MAX_INSTANCES; i++) {
        struct sim_instance ci = sim_instance_load(&words.compute[i]);
        if (ci.serial && ci.gi == gi->gi && ci.ci >= id)
            id = (uint8_t)(ci.ci + 1);
    }
    struct sim_instance ci = {.serial = sim_instance_serial(call),
                              .gi = gi->gi,
                              .ci = id,
                              .profile = (uint8_t)slices,
                              .start = (uint8_t)start};
    sim_instance_store(word, ci);
    *ret = sim_compute_instance_handle(call, &ci);
    return NVML_SUCCESS;
}

SIM_EXPORT nvmlReturn_t nvmlGpuInstanceCreateComputeInstance(nvmlGpuInstance_t instance,
                                                             unsigned int profile_id,
                                                             nvmlComputeInstance_t *ret)
{
    struct sim_call call;
    atomic_ullong *word;
    nvmlReturn_t code =
        sim_enter_gpu_instance(&call, SIM_FN_nvmlGpuInstanceCreateComputeInstance, instance,
                               ret && profile_id < SIM_COMPUTE_PROFILES, true, &word);
    if (code == NVML_SUCCESS)
        code = sim_begin_instance_change(&call, word, instance);
    if (code == NVML_SUCCESS) {
        struct sim_instance gi = sim_instance_load(word);
        code = create_compute_instance(&call, &gi, sim_compute_slices[profile_id], ret);
        sim_end_change(&call);
    }
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlComputeInstanceDestroy(nvmlComputeInstance_t instance)
{
    struct sim_call call;
    atomic_ullong *word;
    nvmlReturn_t code = sim_enter_compute_instance(&call, SIM_FN_nvmlComputeInstanceDestroy,
                                                   instance, true, true, &word);
    if (code == NVML_SUCCESS)
        code = sim_begin_instance_change(&call, word, instance);
    if (code == NVML_SUCCESS) {
        size_t index = (size_t)(word - sim_instance_words(&call).compute);
        const struct sim_device *mig = sim_mig_at(&call.live, call.device, index);
        if (mig && sim_device_is_busy(&call.live, mig))
            code = NVML_ERROR_IN_USE;
        else
            atomic_store(word, 0);
        sim_end_change(&call);
    }
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t instance,
                                                      nvmlComputeInstanceInfo_t *info)
{
    struct sim_call call;
    atomic_ullong *word;
    nvmlReturn_t code = sim_enter_compute_instance(&call, SIM_FN_nvmlComputeInstanceGetInfo_v2,
                                                   instance, info != NULL, false, &word);
    if (code == NVML_SUCCESS) {
        struct sim_instance_words words = sim_instance_words(&call);
        struct sim_instance ci = sim_instance_load(word);
        unsigned int id = 0;
        while (id + 1 < SIM_COMPUTE_PROFILES && sim_compute_slices[id] != ci.profile)
            id++;
        *info = (nvmlComputeInstanceInfo_t){.device =
                                                sim_instance_device((uint64_t)(uintptr_t)instance),
                                            .id = ci.ci,
                                            .profileId = id,
                                            .placement = {.start = ci.start, .size = ci.profile}};
        for (size_t i = 0; i < SIM_MAX_INSTANCES; i++) {
            struct sim_instance gi = sim_instance_load(&words.gpu[i]);
            if (gi.serial && gi.gi == ci.gi)
                info->gpuInstance = sim_gpu_instance_handle(&call, &gi);
        }
    }
    return sim_leave(code);
}
