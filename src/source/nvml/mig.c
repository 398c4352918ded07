#include "source/nvml/mig.h"

#include <stdio.h>
#include <string.h>

/* ---- profiles of GPU instances ---- */

/* "MIG 1g.10gb" becomes 1g.10gb. */
static void cut_name(char *name, size_t size)
{
    static const char prefix[] = "MIG ";
    size_t cut = strncmp(name, prefix, sizeof(prefix) - 1) == 0 ? sizeof(prefix) - 1 : 0;
    name[size - 1] = '\0';
    memmove(name, name + cut, size - cut);
}

/* Drivers before 510 do not report profile names: builds them from the slices and the share of the
 * memory in eighths. */
static nvmlReturn_t make_name(struct nvml_device *device, unsigned index,
                              nvmlGpuInstanceProfileInfo_v2_t *profile)
{
    /* "+me": with the media engines. */
    bool media = index == NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV1 ||
                 index == NVML_GPU_INSTANCE_PROFILE_2_SLICE_REV1;
    nvmlMemory_t memory = {0};
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetMemoryInfo, device->handle, &memory);
    uint64_t total_mb = memory.total >> 20;
    if (rc != NVML_SUCCESS || total_mb == 0)
        return rc == NVML_SUCCESS ? NVML_ERROR_UNKNOWN : rc;
    uint64_t eighths = (profile->memorySizeMB * 8 + total_mb - 1) / total_mb;
    uint64_t total_gb = (total_mb + 1023) / 1024;
    (void)snprintf(profile->name, sizeof(profile->name), "%ug.%llugb%s", profile->sliceCount,
                   (unsigned long long)(total_gb * eighths + 4) / 8, media ? "+me" : "");
    return NVML_SUCCESS;
}

static bool lacks_version(nvmlReturn_t rc)
{
    return rc == NVML_ERROR_FUNCTION_NOT_FOUND || rc == NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
}

static nvmlReturn_t read_profile(struct nvml_device *device, unsigned index,
                                 nvmlGpuInstanceProfileInfo_v2_t *ret)
{
    *ret = (nvmlGpuInstanceProfileInfo_v2_t){.version = nvmlGpuInstanceProfileInfo_v2};
    nvmlReturn_t rc =
        NVML_CALL(device, nvmlDeviceGetGpuInstanceProfileInfoV, device->handle, index, ret);
    if (rc == NVML_SUCCESS)
        cut_name(ret->name, sizeof(ret->name));
    if (!lacks_version(rc))
        return rc;
    nvmlGpuInstanceProfileInfo_t plain = {0};
    rc = NVML_CALL(device, nvmlDeviceGetGpuInstanceProfileInfo, device->handle, index, &plain);
    *ret = (nvmlGpuInstanceProfileInfo_v2_t){.id = plain.id,
                                             .isP2pSupported = plain.isP2pSupported,
                                             .sliceCount = plain.sliceCount,
                                             .instanceCount = plain.instanceCount,
                                             .multiprocessorCount = plain.multiprocessorCount,
                                             .copyEngineCount = plain.copyEngineCount,
                                             .decoderCount = plain.decoderCount,
                                             .encoderCount = plain.encoderCount,
                                             .jpegCount = plain.jpegCount,
                                             .ofaCount = plain.ofaCount,
                                             .memorySizeMB = plain.memorySizeMB};
    return rc == NVML_SUCCESS ? make_name(device, index, ret) : rc;
}

nvmlReturn_t nvml_mig_profiles(struct nvml_device *device, struct nvml_mig_profiles *ret)
{
    nvmlReturn_t refusal = NVML_ERROR_NOT_SUPPORTED;
    ret->count = 0;
    for (unsigned i = 0; i < NVML_MIG_PROFILES_MAX; i++) {
        nvmlReturn_t rc = read_profile(device, i, &ret->entries[ret->count]);
        if (rc == NVML_ERROR_NO_PERMISSION || nvml_return_ends_session(rc))
            return rc;
        if (rc == NVML_SUCCESS)
            ret->count++;
        else if (i == 0)
            refusal = rc;
    }
    return ret->count ? NVML_SUCCESS : refusal;
}

/* ---- GPU instances ---- */

nvmlReturn_t nvml_gpu_instances(struct nvml_device *device,
                                const struct nvml_mig_profiles *profiles,
                                struct nvml_gpu_instances *ret)
{
    ret->count = 0;
    for (size_t p = 0; p < profiles->count; p++) {
        const nvmlGpuInstanceProfileInfo_v2_t *profile = &profiles->entries[p];
        nvmlGpuInstance_t handles[NVML_MIG_INSTANCES_MAX];
        unsigned count = 0;
        if (profile->instanceCount > NVML_MIG_INSTANCES_MAX)
            continue; /* the call takes no capacity: the profile has the maximum number */
        nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetGpuInstances, device->handle, profile->id,
                                    handles, &count);
        for (unsigned i = 0; rc == NVML_SUCCESS && i < count; i++) {
            struct nvml_gpu_instance *instance = &ret->entries[ret->count];
            if (ret->count == NVML_MIG_INSTANCES_MAX)
                break;
            *instance = (struct nvml_gpu_instance){.handle = handles[i], .profile = profile};
            rc = NVML_CALL(device, nvmlGpuInstanceGetInfo, handles[i], &instance->info);
            ret->count += rc == NVML_SUCCESS;
        }
        if (rc != NVML_SUCCESS)
            return rc;
    }
    return NVML_SUCCESS;
}

/* ---- compute instances ---- */

static nvmlReturn_t read_part(struct nvml_device *device, const struct nvml_gpu_instance *instance,
                              unsigned index, nvmlComputeInstanceProfileInfo_v2_t *ret)
{
    *ret = (nvmlComputeInstanceProfileInfo_v2_t){.version = nvmlComputeInstanceProfileInfo_v2};
    nvmlReturn_t rc =
        NVML_CALL(device, nvmlGpuInstanceGetComputeInstanceProfileInfoV, instance->handle, index,
                  NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED, ret);
    if (rc == NVML_SUCCESS)
        cut_name(ret->name, sizeof(ret->name));
    if (!lacks_version(rc))
        return rc;
    nvmlComputeInstanceProfileInfo_t plain = {0};
    rc = NVML_CALL(device, nvmlGpuInstanceGetComputeInstanceProfileInfo, instance->handle, index,
                   NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED, &plain);
    memcpy(&ret->id, &plain, sizeof(plain));
    /* "1c.3g.40gb", without the engines of the GPU instance. */
    const char *of = instance->profile->name;
    char part[16] = "";
    if (plain.sliceCount != instance->profile->sliceCount)
        (void)snprintf(part, sizeof(part), "%uc.", plain.sliceCount);
    (void)snprintf(ret->name, sizeof(ret->name), "%s%.*s", part, (int)strcspn(of, "+-"), of);
    return rc;
}

nvmlReturn_t nvml_compute_profiles(struct nvml_device *device,
                                   const struct nvml_gpu_instance *instance,
                                   struct nvml_compute_profiles *ret)
{
    ret->count = 0;
    for (unsigned i = 0; i < NVML_MIG_PARTS_MAX; i++) {
        nvmlReturn_t rc = read_part(device, instance, i, &ret->entries[ret->count]);
        if (rc == NVML_ERROR_NOT_SUPPORTED || rc == NVML_ERROR_INVALID_ARGUMENT)
            continue;
        if (rc != NVML_SUCCESS)
            return rc;
        ret->count++;
    }
    return NVML_SUCCESS;
}

const nvmlComputeInstanceProfileInfo_v2_t *
nvml_whole_profile(const struct nvml_compute_profiles *profiles)
{
    const nvmlComputeInstanceProfileInfo_v2_t *whole = NULL;
    for (size_t i = 0; i < profiles->count; i++)
        if (!whole || profiles->entries[i].sliceCount > whole->sliceCount)
            whole = &profiles->entries[i];
    return whole;
}

nvmlReturn_t nvml_compute_instances(struct nvml_device *device,
                                    const struct nvml_gpu_instance *instance,
                                    const struct nvml_compute_profiles *profiles,
                                    struct nvml_compute_instances *ret)
{
    ret->count = 0;
    for (size_t p = 0; p < profiles->count; p++) {
        const nvmlComputeInstanceProfileInfo_v2_t *profile = &profiles->entries[p];
        nvmlComputeInstance_t handles[NVML_MIG_INSTANCES_MAX];
        unsigned count = 0;
        if (profile->instanceCount + ret->count > NVML_MIG_INSTANCES_MAX)
            continue;
        nvmlReturn_t rc = NVML_CALL(device, nvmlGpuInstanceGetComputeInstances, instance->handle,
                                    profile->id, handles, &count);
        if (rc != NVML_SUCCESS)
            return rc;
        for (unsigned i = 0; i < count && ret->count < NVML_MIG_INSTANCES_MAX; i++)
            ret->entries[ret->count++] =
                (struct nvml_compute_instance){.handle = handles[i], .profile = profile};
    }
    return NVML_SUCCESS;
}
