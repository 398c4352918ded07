/* MIG instances as one value: the list of their profiles. A GPU instance is created with one
 * compute instance that fills it, which programs use as a MIG device. A GPU instance that was
 * divided further by other tools is shown, but no value can express it. */
#include "source/nvml/control.h"

#include "base/err.h"
#include "source/nvml/mig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const nvmlGpuInstanceProfileInfo_v2_t *find_profile(const struct nvml_mig_profiles *list,
                                                           const char *name, size_t n)
{
    for (size_t i = 0; i < list->count; i++)
        if (strlen(list->entries[i].name) == n && memcmp(list->entries[i].name, name, n) == 0)
            return &list->entries[i];
    return NULL;
}

static int by_start(const void *a, const void *b)
{
    const struct nvml_gpu_instance *x = a;
    const struct nvml_gpu_instance *y = b;
    return (x->info.placement.start > y->info.placement.start) -
           (x->info.placement.start < y->info.placement.start);
}

static nvmlReturn_t list_instances(struct nvml_device *device,
                                   const struct nvml_mig_profiles *profiles,
                                   struct nvml_gpu_instances *ret)
{
    nvmlReturn_t rc = nvml_gpu_instances(device, profiles, ret);
    qsort(ret->entries, ret->count, sizeof(ret->entries[0]), by_start);
    return rc;
}

static nvmlReturn_t list_parts(struct nvml_device *device, const struct nvml_gpu_instance *instance,
                               struct nvml_compute_profiles *profiles,
                               struct nvml_compute_instances *ret)
{
    nvmlReturn_t rc = nvml_compute_profiles(device, instance, profiles);
    ret->count = 0;
    return rc == NVML_SUCCESS ? nvml_compute_instances(device, instance, profiles, ret) : rc;
}

/* ---- reading ---- */

/* A single instance: its profile, or none after it was destroyed. */
static nvmlReturn_t read_one(struct nvml_device *device, struct gp_setting *ret)
{
    nvmlDevice_t handle;
    char name[NVML_DEVICE_NAME_V2_BUFFER_SIZE] = "";
    ret->known = true;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetHandleByUUID, device->uuid, &handle);
    if (rc == NVML_ERROR_NOT_FOUND || rc == NVML_ERROR_INVALID_ARGUMENT)
        return NVML_SUCCESS;
    if (rc == NVML_SUCCESS)
        rc = NVML_CALL(device, nvmlDeviceGetName, handle, name, (unsigned)sizeof(name));
    /* "NVIDIA H100 80GB HBM3 MIG 1g.10gb" */
    const char *profile = strstr(name, " MIG ");
    (void)snprintf(ret->value.text, sizeof(ret->value.text), "%s",
                   profile && profile[5] ? profile + 5 : "an instance");
    return rc;
}

static nvmlReturn_t read_all(struct nvml_device *device, struct gp_setting *ret)
{
    struct nvml_mig_profiles profiles;
    struct nvml_gpu_instances instances;
    nvmlReturn_t rc = nvml_mig_profiles(device, &profiles);
    if (rc == NVML_SUCCESS)
        rc = list_instances(device, &profiles, &instances);
    size_t used = 0;
    ret->known = true;
    for (size_t i = 0; rc == NVML_SUCCESS && i < instances.count; i++) {
        struct nvml_compute_profiles part_profiles;
        struct nvml_compute_instances parts;
        rc = list_parts(device, &instances.entries[i], &part_profiles, &parts);
        bool is_whole =
            parts.count == 1 && parts.entries[0].profile == nvml_whole_profile(&part_profiles);
        used += (size_t)snprintf(ret->value.text + used, sizeof(ret->value.text) - used, "%s%s",
                                 i ? "," : "", instances.entries[i].profile->name);
        if (used >= sizeof(ret->value.text))
            return NVML_ERROR_INSUFFICIENT_SIZE;
        if (rc == NVML_SUCCESS && !is_whole && ret->known) {
            ret->known = false;
            (void)snprintf(ret->words, sizeof(ret->words),
                           "an instance of %s was divided into %zu compute instances",
                           instances.entries[i].profile->name, parts.count);
        }
    }
    return rc;
}

nvmlReturn_t nvml_get_mig_instances(struct nvml_device *device, struct gp_setting *ret)
{
    unsigned current = 0, pending = 0;
    if (device->is_mig)
        return read_one(device, ret);
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetMigMode, device->handle, &current, &pending);
    if (rc != NVML_SUCCESS)
        return rc;
    if (current == NVML_FEATURE_ENABLED)
        return read_all(device, ret);
    ret->known = true;
    return NVML_SUCCESS;
}

/* ---- checking ---- */

static int unknown_profile(const struct nvml_mig_profiles *profiles, const char *name, size_t n,
                           struct gp_err *err)
{
    char known[200] = "";
    size_t used = 0;
    for (size_t i = 0; i < profiles->count && used < sizeof(known); i++)
        used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "",
                                 profiles->entries[i].name);
    return gp_err_set(err, GP_EUSAGE, "mig-instances: unknown profile '%.*s'; this GPU has %s",
                      (int)(n < 32 ? n : 32), name, known);
}

int nvml_check_mig_instances(struct nvml_device *device, const struct gp_control_value *value,
                             struct gp_err *err)
{
    struct nvml_mig_profiles profiles;
    unsigned counts[NVML_MIG_PROFILES_MAX] = {0};
    unsigned slices = 0, most = 0;
    if (!value->text[0])
        return 0;
    if (device->is_mig)
        return gp_err_set(err, GP_EUSAGE,
                          "mig-instances: for a single instance, only none is possible, to destroy "
                          "it; select the GPU to create others");
    nvmlReturn_t rc = nvml_mig_profiles(device, &profiles);
    if (rc != NVML_SUCCESS)
        return gp_err_set(err, rc == NVML_ERROR_NO_PERMISSION ? GP_EPERM : GP_EFAIL,
                          "mig-instances: cannot list the profiles: %s", nvml_return_text(rc));
    for (size_t i = 0; i < profiles.count; i++)
        most = profiles.entries[i].sliceCount > most ? profiles.entries[i].sliceCount : most;
    for (const char *p = value->text; *p;) {
        size_t n = strcspn(p, ",");
        const nvmlGpuInstanceProfileInfo_v2_t *profile = find_profile(&profiles, p, n);
        if (!profile)
            return unknown_profile(&profiles, p, n, err);
        if (++counts[profile - profiles.entries] > profile->instanceCount)
            return gp_err_set(err, GP_EUSAGE, "mig-instances: at most %u instances of %s fit",
                              profile->instanceCount, profile->name);
        slices += profile->sliceCount;
        p += n + (p[n] == ',');
    }
    if (slices > most)
        return gp_err_set(err, GP_EUSAGE, "mig-instances: %s needs %u slices, but the GPU has %u",
                          value->text, slices, most);
    return 0;
}

/* ---- applying ---- */

static nvmlReturn_t destroy(struct nvml_device *device, const struct nvml_gpu_instance *instance)
{
    struct nvml_compute_profiles profiles;
    struct nvml_compute_instances parts;
    nvmlReturn_t rc = list_parts(device, instance, &profiles, &parts);
    for (size_t i = 0; rc == NVML_SUCCESS && i < parts.count; i++)
        rc = NVML_CALL(device, nvmlComputeInstanceDestroy, parts.entries[i].handle);
    return rc == NVML_SUCCESS ? NVML_CALL(device, nvmlGpuInstanceDestroy, instance->handle) : rc;
}

static nvmlReturn_t create(struct nvml_device *device,
                           const nvmlGpuInstanceProfileInfo_v2_t *profile)
{
    struct nvml_gpu_instance instance = {.profile = profile};
    struct nvml_compute_profiles profiles;
    nvmlComputeInstance_t part;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceCreateGpuInstance, device->handle, profile->id,
                                &instance.handle);
    if (rc == NVML_SUCCESS)
        rc = nvml_compute_profiles(device, &instance, &profiles);
    const nvmlComputeInstanceProfileInfo_v2_t *whole =
        rc == NVML_SUCCESS ? nvml_whole_profile(&profiles) : NULL;
    if (rc != NVML_SUCCESS || !whole)
        return rc == NVML_SUCCESS ? NVML_ERROR_UNKNOWN : rc;
    return NVML_CALL(device, nvmlGpuInstanceCreateComputeInstance, instance.handle, whole->id,
                     &part);
}

/* Destroys a compute instance and, if it was the last one, its GPU instance. */
static nvmlReturn_t destroy_one(struct nvml_device *device)
{
    nvmlDevice_t parent;
    static const nvmlGpuInstanceProfileInfo_v2_t unnamed = {.name = ""};
    struct nvml_gpu_instance instance = {.profile = &unnamed};
    nvmlComputeInstance_t part;
    struct nvml_compute_profiles profiles;
    struct nvml_compute_instances parts;
    unsigned gi = 0, ci = 0;
    nvmlReturn_t rc =
        NVML_CALL(device, nvmlDeviceGetDeviceHandleFromMigDeviceHandle, device->handle, &parent);
    if (rc == NVML_SUCCESS)
        rc = NVML_CALL(device, nvmlDeviceGetGpuInstanceId, device->handle, &gi);
    if (rc == NVML_SUCCESS)
        rc = NVML_CALL(device, nvmlDeviceGetComputeInstanceId, device->handle, &ci);
    if (rc == NVML_SUCCESS)
        rc = NVML_CALL(device, nvmlDeviceGetGpuInstanceById, parent, gi, &instance.handle);
    if (rc == NVML_SUCCESS)
        rc = NVML_CALL(device, nvmlGpuInstanceGetComputeInstanceById, instance.handle, ci, &part);
    if (rc == NVML_SUCCESS)
        rc = NVML_CALL(device, nvmlComputeInstanceDestroy, part);
    if (rc == NVML_SUCCESS)
        rc = list_parts(device, &instance, &profiles, &parts);
    return rc == NVML_SUCCESS && parts.count == 0
               ? NVML_CALL(device, nvmlGpuInstanceDestroy, instance.handle)
               : rc;
}

/* Large ones first: a small one in the middle would leave no room for them. */
static int by_slices(const void *a, const void *b)
{
    const nvmlGpuInstanceProfileInfo_v2_t *x = *(const nvmlGpuInstanceProfileInfo_v2_t *const *)a;
    const nvmlGpuInstanceProfileInfo_v2_t *y = *(const nvmlGpuInstanceProfileInfo_v2_t *const *)b;
    return x->sliceCount != y->sliceCount
               ? (x->sliceCount < y->sliceCount) - (x->sliceCount > y->sliceCount)
               : (x > y) - (x < y);
}

/* Keeps the existing ones that are requested, destroys the others, and creates the missing ones. */
nvmlReturn_t nvml_apply_mig_instances(struct nvml_device *device,
                                      const struct gp_control_value *value)
{
    struct nvml_mig_profiles profiles;
    struct nvml_gpu_instances instances;
    const nvmlGpuInstanceProfileInfo_v2_t *missing[NVML_MIG_INSTANCES_MAX] = {NULL};
    bool kept[NVML_MIG_INSTANCES_MAX] = {false};
    size_t missing_count = 0;
    unsigned current = 0, pending = 0;
    if (device->is_mig)
        return destroy_one(device);
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetMigMode, device->handle, &current, &pending);
    if (rc == NVML_SUCCESS && current == NVML_FEATURE_DISABLED && !value->text[0])
        return NVML_SUCCESS; /* disabling MIG mode has destroyed them */
    if (rc == NVML_SUCCESS)
        rc = nvml_mig_profiles(device, &profiles);
    if (rc == NVML_SUCCESS)
        rc = list_instances(device, &profiles, &instances);
    for (const char *p = value->text; rc == NVML_SUCCESS && *p;) {
        size_t n = strcspn(p, ",");
        const nvmlGpuInstanceProfileInfo_v2_t *profile = find_profile(&profiles, p, n);
        size_t i = 0;
        while (i < instances.count && (kept[i] || instances.entries[i].profile != profile))
            i++;
        if (!profile || missing_count == NVML_MIG_INSTANCES_MAX)
            return NVML_ERROR_INVALID_ARGUMENT;
        if (i < instances.count)
            kept[i] = true;
        else
            missing[missing_count++] = profile;
        p += n + (p[n] == ',');
    }
    for (size_t i = 0; rc == NVML_SUCCESS && i < instances.count; i++)
        if (!kept[i])
            rc = destroy(device, &instances.entries[i]);
    qsort(missing, missing_count, sizeof(missing[0]), by_slices);
    for (size_t i = 0; rc == NVML_SUCCESS && i < missing_count; i++)
        rc = create(device, missing[i]);
    return rc;
}
