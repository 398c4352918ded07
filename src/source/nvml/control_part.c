/* Partitions a GPU with MIG, step by step: creates and destroys instances. */
#include "source/nvml/control.h"
#include "source/nvml/mig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether this is the id or the name of a profile; a placement may follow. */
static bool is_meant(const char *typed, unsigned id, const char *name)
{
    char *end;
    size_t n = strcspn(typed, ":");
    unsigned long number = strtoul(typed, &end, 10);
    bool is_number = *typed >= '0' && *typed <= '9' && end == typed + n;
    return is_number ? number == id : strlen(name) == n && memcmp(typed, name, n) == 0;
}

static void tell_profile(struct gp_part *part, unsigned id, const char *name)
{
    part->profile_id = id;
    (void)snprintf(part->profile_name, sizeof(part->profile_name), "%s", name);
}

static nvmlReturn_t ask_places(struct nvml_device *device, unsigned *count, void *entries,
                               const void *ctx)
{
    return NVML_CALL(device, nvmlDeviceGetGpuInstancePossiblePlacements_v2, device->handle,
                     *(const unsigned *)ctx, entries, count);
}

/* "19:4" starts at slice 4. */
static nvmlReturn_t create_at(struct nvml_device *device, const char *typed, unsigned profile_id,
                              nvmlGpuInstance_t *ret)
{
    char *end;
    unsigned long start = strtoul(typed, &end, 10);
    struct nvml_buffer places = {.entry_bytes = sizeof(nvmlGpuInstancePlacement_t)};
    if (*typed < '0' || *typed > '9' || *end)
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t rc = nvml_fetch(device, &places, 16, ask_places, &profile_id);
    const nvmlGpuInstancePlacement_t *place = places.entries;
    unsigned i = 0;
    while (rc == NVML_SUCCESS && i < places.count && place[i].start != start)
        i++;
    if (rc == NVML_SUCCESS && i == places.count)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS)
        rc = NVML_CALL(device, nvmlDeviceCreateGpuInstanceWithPlacement, device->handle, profile_id,
                       &place[i], ret);
    free(places.entries);
    return rc;
}

static nvmlReturn_t create_gpu_instance(struct nvml_device *device, struct gp_part *part)
{
    struct nvml_mig_profiles profiles;
    nvmlGpuInstance_t handle;
    nvmlGpuInstanceInfo_t info = {0};
    const nvmlGpuInstanceProfileInfo_v2_t *profile = NULL;
    nvmlReturn_t rc = nvml_mig_profiles(device, &profiles);
    if (rc != NVML_SUCCESS)
        return rc;
    for (size_t i = 0; i < profiles.count; i++)
        if (is_meant(part->profile, profiles.entries[i].id, profiles.entries[i].name))
            profile = &profiles.entries[i];
    if (!profile)
        return NVML_ERROR_INVALID_ARGUMENT;
    tell_profile(part, profile->id, profile->name);
    const char *place = strchr(part->profile, ':');
    rc = place
             ? create_at(device, place + 1, profile->id, &handle)
             : NVML_CALL(device, nvmlDeviceCreateGpuInstance, device->handle, profile->id, &handle);
    if (rc == NVML_SUCCESS)
        rc = NVML_CALL(device, nvmlGpuInstanceGetInfo, handle, &info);
    part->gpu_instance = info.id;
    return rc;
}

/* Finds the instance with the id of the part; its profile is in `profiles`. */
static nvmlReturn_t find_gpu_instance(struct nvml_device *device, const struct gp_part *part,
                                      struct nvml_mig_profiles *profiles,
                                      struct nvml_gpu_instance *ret)
{
    nvmlReturn_t rc = nvml_mig_profiles(device, profiles);
    *ret = (struct nvml_gpu_instance){.handle = NULL};
    if (rc == NVML_SUCCESS)
        rc = NVML_CALL(device, nvmlDeviceGetGpuInstanceById, device->handle, part->gpu_instance,
                       &ret->handle);
    if (rc == NVML_SUCCESS)
        rc = NVML_CALL(device, nvmlGpuInstanceGetInfo, ret->handle, &ret->info);
    for (size_t i = 0; rc == NVML_SUCCESS && i < profiles->count; i++)
        if (profiles->entries[i].id == ret->info.profileId)
            ret->profile = &profiles->entries[i];
    return rc == NVML_SUCCESS && !ret->profile ? NVML_ERROR_UNKNOWN : rc;
}

static nvmlReturn_t create_compute_instance(struct nvml_device *device, struct gp_part *part)
{
    struct nvml_mig_profiles gpu_profiles;
    struct nvml_gpu_instance instance;
    struct nvml_compute_profiles profiles;
    nvmlComputeInstance_t handle;
    nvmlComputeInstanceInfo_t info = {0};
    nvmlReturn_t rc = find_gpu_instance(device, part, &gpu_profiles, &instance);
    if (rc == NVML_SUCCESS)
        rc = nvml_compute_profiles(device, &instance, &profiles);
    if (rc != NVML_SUCCESS)
        return rc;
    const nvmlComputeInstanceProfileInfo_v2_t *profile =
        *part->profile ? NULL : nvml_whole_profile(&profiles);
    for (size_t i = 0; *part->profile && i < profiles.count; i++)
        if (is_meant(part->profile, profiles.entries[i].id, profiles.entries[i].name))
            profile = &profiles.entries[i];
    if (!profile)
        return NVML_ERROR_INVALID_ARGUMENT;
    tell_profile(part, profile->id, profile->name);
    rc = NVML_CALL(device, nvmlGpuInstanceCreateComputeInstance, instance.handle, profile->id,
                   &handle);
    if (rc == NVML_SUCCESS)
        rc = NVML_CALL(device, nvmlComputeInstanceGetInfo_v2, handle, &info);
    part->compute_instance = info.id;
    return rc;
}

static nvmlReturn_t destroy_compute_instance(struct nvml_device *device, struct gp_part *part)
{
    nvmlGpuInstance_t instance;
    nvmlComputeInstance_t handle;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetGpuInstanceById, device->handle,
                                part->gpu_instance, &instance);
    if (rc == NVML_SUCCESS)
        rc = NVML_CALL(device, nvmlGpuInstanceGetComputeInstanceById, instance,
                       part->compute_instance, &handle);
    return rc == NVML_SUCCESS ? NVML_CALL(device, nvmlComputeInstanceDestroy, handle) : rc;
}

static nvmlReturn_t destroy_gpu_instance(struct nvml_device *device, struct gp_part *part)
{
    nvmlGpuInstance_t instance;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetGpuInstanceById, device->handle,
                                part->gpu_instance, &instance);
    return rc == NVML_SUCCESS ? NVML_CALL(device, nvmlGpuInstanceDestroy, instance) : rc;
}

nvmlReturn_t nvml_part(struct nvml_device *device, struct gp_part *part)
{
    static nvmlReturn_t (*const steps[])(struct nvml_device * device, struct gp_part * part) = {
        [GP_PART_CREATE_GPU] = create_gpu_instance,
        [GP_PART_CREATE_COMPUTE] = create_compute_instance,
        [GP_PART_DESTROY_COMPUTE] = destroy_compute_instance,
        [GP_PART_DESTROY_GPU] = destroy_gpu_instance,
    };
    return steps[part->step](device, part);
}
