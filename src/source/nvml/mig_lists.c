/* The MIG lists: possible and existing instances. */
#include "source/nvml/lists.h"
#include "source/nvml/mig.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- profiles ---- */

static nvmlReturn_t ask_placements(struct nvml_device *device, unsigned *count, void *entries,
                                   const void *ctx)
{
    return NVML_CALL(device, nvmlDeviceGetGpuInstancePossiblePlacements_v2, device->handle,
                     *(const unsigned *)ctx, entries, count);
}

/* "{0,2,4}:2": start slices and length, like nvidia-smi mig -lgipp. */
static nvmlReturn_t put_placements(const struct nvml_rows *rows, unsigned profile_id)
{
    struct nvml_buffer places = {.entry_bytes = sizeof(nvmlGpuInstancePlacement_t)};
    nvmlReturn_t rc = nvml_fetch(rows->device, &places, 16, ask_placements, &profile_id);
    const nvmlGpuInstancePlacement_t *p = places.entries;
    char text[256] = "{";
    size_t n = 1;
    for (unsigned i = 0; rc == NVML_SUCCESS && i < places.count && n < sizeof(text); i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%u", i ? "," : "", p[i].start);
    if (rc == NVML_SUCCESS && places.count > 0 && n < sizeof(text))
        (void)snprintf(text + n, sizeof(text) - n, "}:%u", p[0].size);
    nvml_cell_text(rows, rows->list.count - 1, GP_PROFILE_PLACEMENTS, rc, text);
    free(places.entries);
    return rc;
}

static nvmlReturn_t add_profile(struct nvml_rows *rows, const nvmlGpuInstanceProfileInfo_v2_t *info)
{
    struct nvml_device *device = rows->device;
    nvmlReturn_t rc = nvml_rows_add(rows);
    if (rc != NVML_SUCCESS)
        return rc;
    nvml_put_number(rows, GP_PROFILE_ID, info->id);
    nvml_put_text(rows, GP_PROFILE_NAME, info->name);
    nvml_put_number(rows, GP_PROFILE_SLICES, info->sliceCount);
    nvml_put_number(rows, GP_PROFILE_INSTANCES, info->instanceCount);
    nvml_put_text(rows, GP_PROFILE_P2P, info->isP2pSupported ? "Yes" : "No");
    nvml_put_number(rows, GP_PROFILE_SM, info->multiprocessorCount);
    nvml_put_number(rows, GP_PROFILE_COPY, info->copyEngineCount);
    nvml_put_number(rows, GP_PROFILE_DECODERS, info->decoderCount);
    nvml_put_number(rows, GP_PROFILE_ENCODERS, info->encoderCount);
    nvml_put_number(rows, GP_PROFILE_JPEG, info->jpegCount);
    nvml_put_number(rows, GP_PROFILE_OFA, info->ofaCount);
    nvml_put_number(rows, GP_PROFILE_MEMORY, info->memorySizeMB << 20);
    if (nvml_rows_want(rows, GP_PROFILE_REMAINING)) {
        unsigned remaining = 0;
        rc = NVML_CALL(device, nvmlDeviceGetGpuInstanceRemainingCapacity, device->handle, info->id,
                       &remaining);
        nvml_cell_number(rows, rows->list.count - 1, GP_PROFILE_REMAINING, rc, remaining);
    }
    if (!nvml_return_ends_session(rc) && nvml_rows_want(rows, GP_PROFILE_PLACEMENTS))
        rc = put_placements(rows, info->id);
    return nvml_return_ends_session(rc) ? rc : NVML_SUCCESS;
}

nvmlReturn_t nvml_list_profiles(struct nvml_rows *rows)
{
    struct nvml_mig_profiles profiles;
    nvmlReturn_t rc = nvml_mig_profiles(rows->device, &profiles);
    for (size_t i = 0; rc == NVML_SUCCESS && i < profiles.count; i++)
        rc = add_profile(rows, &profiles.entries[i]);
    return rc;
}

/* ---- instances ---- */

static nvmlReturn_t list_gpu_instances(struct nvml_device *device,
                                       struct nvml_mig_profiles *profiles,
                                       struct nvml_gpu_instances *ret)
{
    nvmlReturn_t rc = nvml_mig_profiles(device, profiles);
    ret->count = 0;
    return rc == NVML_SUCCESS ? nvml_gpu_instances(device, profiles, ret) : rc;
}

nvmlReturn_t nvml_list_gpu_instances(struct nvml_rows *rows)
{
    struct nvml_mig_profiles profiles;
    struct nvml_gpu_instances instances;
    nvmlReturn_t rc = list_gpu_instances(rows->device, &profiles, &instances);
    for (size_t i = 0; rc == NVML_SUCCESS && i < instances.count; i++) {
        const struct nvml_gpu_instance *instance = &instances.entries[i];
        rc = nvml_rows_add(rows);
        if (rc != NVML_SUCCESS)
            break;
        nvml_put_number(rows, GP_GI_ID, instance->info.id);
        nvml_put_text(rows, GP_GI_PROFILE, instance->profile->name);
        nvml_put_number(rows, GP_GI_PROFILE_ID, instance->info.profileId);
        nvml_put_number(rows, GP_GI_START, instance->info.placement.start);
        nvml_put_number(rows, GP_GI_SIZE, instance->info.placement.size);
    }
    return rc;
}

static nvmlReturn_t add_compute_instance(struct nvml_rows *rows,
                                         const struct nvml_gpu_instance *instance,
                                         const struct nvml_compute_instance *part)
{
    nvmlComputeInstanceInfo_t info = {0};
    nvmlReturn_t rc = NVML_CALL(rows->device, nvmlComputeInstanceGetInfo_v2, part->handle, &info);
    if (rc == NVML_SUCCESS)
        rc = nvml_rows_add(rows);
    if (rc != NVML_SUCCESS)
        return rc;
    nvml_put_number(rows, GP_CI_GI, instance->info.id);
    nvml_put_number(rows, GP_CI_ID, info.id);
    nvml_put_text(rows, GP_CI_PROFILE, part->profile->name);
    nvml_put_number(rows, GP_CI_PROFILE_ID, info.profileId);
    nvml_put_number(rows, GP_CI_START, info.placement.start);
    nvml_put_number(rows, GP_CI_SIZE, info.placement.size);
    return NVML_SUCCESS;
}

static nvmlReturn_t add_compute_instances(struct nvml_rows *rows,
                                          const struct nvml_gpu_instance *instance)
{
    struct nvml_compute_profiles profiles;
    struct nvml_compute_instances parts = {.count = 0};
    nvmlReturn_t rc = nvml_compute_profiles(rows->device, instance, &profiles);
    if (rc == NVML_SUCCESS)
        rc = nvml_compute_instances(rows->device, instance, &profiles, &parts);
    for (size_t i = 0; rc == NVML_SUCCESS && i < parts.count; i++)
        rc = add_compute_instance(rows, instance, &parts.entries[i]);
    return rc;
}

static nvmlReturn_t add_compute_profile(struct nvml_rows *rows,
                                        const struct nvml_gpu_instance *instance,
                                        const nvmlComputeInstanceProfileInfo_v2_t *profile,
                                        bool is_whole)
{
    unsigned remaining = 0;
    nvmlReturn_t rc = nvml_rows_add(rows);
    if (rc != NVML_SUCCESS)
        return rc;
    nvml_put_number(rows, GP_CIP_GI, instance->info.id);
    nvml_put_number(rows, GP_CIP_ID, profile->id);
    nvml_put_text(rows, GP_CIP_NAME, profile->name);
    nvml_put_text(rows, GP_CIP_IS_DEFAULT, is_whole ? "Yes" : "No");
    nvml_put_number(rows, GP_CIP_INSTANCES, profile->instanceCount);
    nvml_put_number(rows, GP_CIP_SM, profile->multiprocessorCount);
    nvml_put_number(rows, GP_CIP_COPY, profile->sharedCopyEngineCount);
    nvml_put_number(rows, GP_CIP_DECODERS, profile->sharedDecoderCount);
    nvml_put_number(rows, GP_CIP_ENCODERS, profile->sharedEncoderCount);
    nvml_put_number(rows, GP_CIP_JPEG, profile->sharedJpegCount);
    nvml_put_number(rows, GP_CIP_OFA, profile->sharedOfaCount);
    if (!nvml_rows_want(rows, GP_CIP_REMAINING))
        return rc;
    rc = NVML_CALL(rows->device, nvmlGpuInstanceGetComputeInstanceRemainingCapacity,
                   instance->handle, profile->id, &remaining);
    nvml_cell_number(rows, rows->list.count - 1, GP_CIP_REMAINING, rc, remaining);
    return nvml_return_ends_session(rc) ? rc : NVML_SUCCESS;
}

static nvmlReturn_t add_compute_profiles(struct nvml_rows *rows,
                                         const struct nvml_gpu_instance *instance)
{
    struct nvml_compute_profiles profiles;
    nvmlReturn_t rc = nvml_compute_profiles(rows->device, instance, &profiles);
    for (size_t i = 0; rc == NVML_SUCCESS && i < profiles.count; i++) {
        const nvmlComputeInstanceProfileInfo_v2_t *profile = &profiles.entries[i];
        rc = add_compute_profile(rows, instance, profile, profile == nvml_whole_profile(&profiles));
    }
    return rc;
}

static nvmlReturn_t for_each_instance(struct nvml_rows *rows,
                                      nvmlReturn_t (*add)(struct nvml_rows *rows,
                                                          const struct nvml_gpu_instance *instance))
{
    struct nvml_mig_profiles profiles;
    struct nvml_gpu_instances instances;
    nvmlReturn_t rc = list_gpu_instances(rows->device, &profiles, &instances);
    for (size_t i = 0; rc == NVML_SUCCESS && i < instances.count; i++)
        rc = add(rows, &instances.entries[i]);
    return rc;
}

nvmlReturn_t nvml_list_compute_instances(struct nvml_rows *rows)
{
    return for_each_instance(rows, add_compute_instances);
}

nvmlReturn_t nvml_list_compute_profiles(struct nvml_rows *rows)
{
    return for_each_instance(rows, add_compute_profiles);
}
