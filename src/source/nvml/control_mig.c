/* MIG instances as one value: the list of their profiles. A GPU instance is made with one compute
 * instance that fills it, which is what programs use as a MIG device; one that was divided further
 * by other means is shown, but no value stands for it. */
#include "source/nvml/control.h"

#include "base/err.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROFILES_MAX = NVML_GPU_INSTANCE_PROFILE_COUNT, INSTANCES_MAX = 16, NAME_SIZE = 32 };

struct profile {
    unsigned id;
    unsigned slices;
    unsigned most; /* instances of it on an empty GPU */
    char name[NAME_SIZE];
};

struct profile_list {
    struct profile entries[PROFILES_MAX];
    size_t count;
};

struct instance {
    nvmlGpuInstance_t handle;
    unsigned start; /* of its placement */
    const struct profile *profile;
    bool kept;
};

struct instance_list {
    struct instance entries[INSTANCES_MAX];
    size_t count;
};

/* ---- profiles ---- */

/* "MIG 1g.10gb" is called 1g.10gb. */
static void cut_name(nvmlGpuInstanceProfileInfo_v2_t *profile)
{
    static const char prefix[] = "MIG ";
    size_t cut = strncmp(profile->name, prefix, sizeof(prefix) - 1) == 0 ? sizeof(prefix) - 1 : 0;
    profile->name[sizeof(profile->name) - 1] = '\0';
    memmove(profile->name, profile->name + cut, sizeof(profile->name) - cut);
}

/* Drivers before 510 do not name a profile: by slices, and by its part of the memory in eighths. */
static nvmlReturn_t make_name(struct nvml_device *device, unsigned index,
                              nvmlGpuInstanceProfileInfo_v2_t *profile)
{
    /* "+me": with the media engines */
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

nvmlReturn_t nvml_read_mig_profile(struct nvml_device *device, unsigned index,
                                   nvmlGpuInstanceProfileInfo_v2_t *ret)
{
    *ret = (nvmlGpuInstanceProfileInfo_v2_t){.version = nvmlGpuInstanceProfileInfo_v2};
    nvmlReturn_t rc =
        NVML_CALL(device, nvmlDeviceGetGpuInstanceProfileInfoV, device->handle, index, ret);
    if (rc == NVML_SUCCESS)
        cut_name(ret);
    if (rc != NVML_ERROR_FUNCTION_NOT_FOUND && rc != NVML_ERROR_ARGUMENT_VERSION_MISMATCH)
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

static nvmlReturn_t read_profile(struct nvml_device *device, unsigned index, struct profile *ret)
{
    nvmlGpuInstanceProfileInfo_v2_t info;
    nvmlReturn_t rc = nvml_read_mig_profile(device, index, &info);
    *ret = (struct profile){.id = info.id, .slices = info.sliceCount, .most = info.instanceCount};
    (void)snprintf(ret->name, sizeof(ret->name), "%.31s", info.name);
    return rc;
}

/* Profiles that the GPU does not have are refused one by one. */
static nvmlReturn_t list_profiles(struct nvml_device *device, struct profile_list *ret)
{
    nvmlReturn_t first = NVML_ERROR_NOT_SUPPORTED;
    ret->count = 0;
    for (unsigned i = 0; i < PROFILES_MAX; i++) {
        nvmlReturn_t rc = read_profile(device, i, &ret->entries[ret->count]);
        if (rc == NVML_ERROR_NO_PERMISSION || nvml_return_ends_session(rc))
            return rc;
        if (rc == NVML_SUCCESS)
            ret->count++;
        else if (i == 0)
            first = rc;
    }
    return ret->count ? NVML_SUCCESS : first;
}

static const struct profile *find_profile(const struct profile_list *list, const char *name,
                                          size_t n)
{
    for (size_t i = 0; i < list->count; i++)
        if (strlen(list->entries[i].name) == n && memcmp(list->entries[i].name, name, n) == 0)
            return &list->entries[i];
    return NULL;
}

/* ---- instances ---- */

static int by_start(const void *a, const void *b)
{
    const struct instance *x = a;
    const struct instance *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

static nvmlReturn_t list_instances(struct nvml_device *device, const struct profile_list *profiles,
                                   struct instance_list *ret)
{
    ret->count = 0;
    for (size_t p = 0; p < profiles->count; p++) {
        nvmlGpuInstance_t handles[INSTANCES_MAX];
        unsigned count = 0;
        if (profiles->entries[p].most > INSTANCES_MAX)
            continue; /* the call takes no capacity: the profile tells how many there may be */
        nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetGpuInstances, device->handle,
                                    profiles->entries[p].id, handles, &count);
        if (rc != NVML_SUCCESS)
            return rc;
        for (unsigned i = 0; i < count && ret->count < INSTANCES_MAX; i++) {
            nvmlGpuInstanceInfo_t info = {0};
            rc = NVML_CALL(device, nvmlGpuInstanceGetInfo, handles[i], &info);
            if (rc != NVML_SUCCESS)
                return rc;
            ret->entries[ret->count++] = (struct instance){.handle = handles[i],
                                                           .start = info.placement.start,
                                                           .profile = &profiles->entries[p]};
        }
    }
    qsort(ret->entries, ret->count, sizeof(ret->entries[0]), by_start);
    return NVML_SUCCESS;
}

struct compute_list {
    nvmlComputeInstance_t handles[INSTANCES_MAX];
    size_t count;
    unsigned whole_id; /* the profile that fills the GPU instance */
    bool is_whole;     /* there is one compute instance, of that profile */
};

static nvmlReturn_t list_compute_instances(struct nvml_device *device, nvmlGpuInstance_t instance,
                                           struct compute_list *ret)
{
    unsigned most_slices = 0;
    *ret = (struct compute_list){0};
    for (unsigned i = 0; i < NVML_COMPUTE_INSTANCE_PROFILE_COUNT; i++) {
        nvmlComputeInstanceProfileInfo_t info = {0};
        unsigned count = 0;
        nvmlReturn_t rc = NVML_CALL(device, nvmlGpuInstanceGetComputeInstanceProfileInfo, instance,
                                    i, NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED, &info);
        if (rc == NVML_ERROR_NOT_SUPPORTED || rc == NVML_ERROR_INVALID_ARGUMENT ||
            (rc == NVML_SUCCESS && info.instanceCount + ret->count > INSTANCES_MAX))
            continue;
        if (rc == NVML_SUCCESS)
            rc = NVML_CALL(device, nvmlGpuInstanceGetComputeInstances, instance, info.id,
                           ret->handles + ret->count, &count);
        if (rc != NVML_SUCCESS)
            return rc;
        ret->count += count;
        if (info.sliceCount > most_slices) {
            most_slices = info.sliceCount;
            ret->whole_id = info.id;
            ret->is_whole = count == 1;
        }
    }
    ret->is_whole = ret->is_whole && ret->count == 1;
    return NVML_SUCCESS;
}

/* ---- reading ---- */

/* An instance of its own: what it is, or none once it has been destroyed. */
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
    struct profile_list profiles;
    struct instance_list instances;
    nvmlReturn_t rc = list_profiles(device, &profiles);
    if (rc == NVML_SUCCESS)
        rc = list_instances(device, &profiles, &instances);
    size_t used = 0;
    ret->known = true;
    for (size_t i = 0; rc == NVML_SUCCESS && i < instances.count; i++) {
        struct compute_list parts;
        rc = list_compute_instances(device, instances.entries[i].handle, &parts);
        used += (size_t)snprintf(ret->value.text + used, sizeof(ret->value.text) - used, "%s%s",
                                 i ? "," : "", instances.entries[i].profile->name);
        if (used >= sizeof(ret->value.text))
            return NVML_ERROR_INSUFFICIENT_SIZE;
        if (rc == NVML_SUCCESS && !parts.is_whole && ret->known) {
            ret->known = false;
            (void)snprintf(ret->words, sizeof(ret->words),
                           "an instance of %s has %zu compute instances of its own making",
                           instances.entries[i].profile->name, parts.count);
        }
    }
    return rc;
}

nvmlReturn_t nvml_read_mig_instances(struct nvml_device *device, struct gp_setting *ret)
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

static int unknown_profile(const struct profile_list *profiles, const char *name, size_t n,
                           struct gp_err *err)
{
    char known[200] = "";
    size_t used = 0;
    for (size_t i = 0; i < profiles->count && used < sizeof(known); i++)
        used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "",
                                 profiles->entries[i].name);
    return gp_err_set(err, GP_EUSAGE, "mig-instances: this GPU has no profile '%.*s'; it has %s",
                      (int)(n < 32 ? n : 32), name, known);
}

int nvml_check_mig_instances(struct nvml_device *device, const struct gp_control_value *value,
                             struct gp_err *err)
{
    struct profile_list profiles;
    unsigned counts[PROFILES_MAX] = {0};
    unsigned slices = 0, most = 0;
    if (!value->text[0])
        return 0;
    if (device->is_mig)
        return gp_err_set(err, GP_EUSAGE,
                          "mig-instances: of one instance only none is possible, "
                          "to destroy it; name the GPU to create others");
    nvmlReturn_t rc = list_profiles(device, &profiles);
    if (rc != NVML_SUCCESS)
        return gp_err_set(err, rc == NVML_ERROR_NO_PERMISSION ? GP_EPERM : GP_EFAIL,
                          "mig-instances: the driver does not list its profiles: %s",
                          nvml_return_text(rc));
    for (size_t i = 0; i < profiles.count; i++)
        most = profiles.entries[i].slices > most ? profiles.entries[i].slices : most;
    for (const char *p = value->text; *p;) {
        size_t n = strcspn(p, ",");
        const struct profile *profile = find_profile(&profiles, p, n);
        if (!profile)
            return unknown_profile(&profiles, p, n, err);
        if (++counts[profile - profiles.entries] > profile->most)
            return gp_err_set(err, GP_EUSAGE, "mig-instances: at most %u instances of %s fit",
                              profile->most, profile->name);
        slices += profile->slices;
        p += n + (p[n] == ',');
    }
    if (slices > most)
        return gp_err_set(err, GP_EUSAGE, "mig-instances: %s has %u slices together, the GPU %u",
                          value->text, slices, most);
    return 0;
}

/* ---- applying ---- */

static nvmlReturn_t destroy(struct nvml_device *device, nvmlGpuInstance_t instance)
{
    struct compute_list parts;
    nvmlReturn_t rc = list_compute_instances(device, instance, &parts);
    for (size_t i = 0; rc == NVML_SUCCESS && i < parts.count; i++)
        rc = NVML_CALL(device, nvmlComputeInstanceDestroy, parts.handles[i]);
    return rc == NVML_SUCCESS ? NVML_CALL(device, nvmlGpuInstanceDestroy, instance) : rc;
}

static nvmlReturn_t create(struct nvml_device *device, const struct profile *profile)
{
    nvmlGpuInstance_t instance;
    nvmlComputeInstance_t part;
    struct compute_list parts;
    nvmlReturn_t rc =
        NVML_CALL(device, nvmlDeviceCreateGpuInstance, device->handle, profile->id, &instance);
    if (rc == NVML_SUCCESS)
        rc = list_compute_instances(device, instance, &parts);
    if (rc == NVML_SUCCESS)
        rc = NVML_CALL(device, nvmlGpuInstanceCreateComputeInstance, instance, parts.whole_id,
                       &part);
    return rc;
}

/* One instance: its compute instance and, if that was the last one, the GPU instance around it. */
static nvmlReturn_t destroy_one(struct nvml_device *device)
{
    nvmlDevice_t parent;
    nvmlGpuInstance_t instance;
    nvmlComputeInstance_t part;
    struct compute_list parts;
    unsigned gi = 0, ci = 0;
    nvmlReturn_t rc =
        NVML_CALL(device, nvmlDeviceGetDeviceHandleFromMigDeviceHandle, device->handle, &parent);
    if (rc == NVML_SUCCESS)
        rc = NVML_CALL(device, nvmlDeviceGetGpuInstanceId, device->handle, &gi);
    if (rc == NVML_SUCCESS)
        rc = NVML_CALL(device, nvmlDeviceGetComputeInstanceId, device->handle, &ci);
    if (rc == NVML_SUCCESS)
        rc = NVML_CALL(device, nvmlDeviceGetGpuInstanceById, parent, gi, &instance);
    if (rc == NVML_SUCCESS)
        rc = NVML_CALL(device, nvmlGpuInstanceGetComputeInstanceById, instance, ci, &part);
    if (rc == NVML_SUCCESS)
        rc = NVML_CALL(device, nvmlComputeInstanceDestroy, part);
    if (rc == NVML_SUCCESS)
        rc = list_compute_instances(device, instance, &parts);
    return rc == NVML_SUCCESS && parts.count == 0
               ? NVML_CALL(device, nvmlGpuInstanceDestroy, instance)
               : rc;
}

/* Great ones first: a small one in the middle would leave them no place. */
static int by_slices(const void *a, const void *b)
{
    const struct profile *x = *(const struct profile *const *)a;
    const struct profile *y = *(const struct profile *const *)b;
    return x->slices != y->slices ? (x->slices < y->slices) - (x->slices > y->slices)
                                  : (x > y) - (x < y);
}

/* Keeps what there is of the wanted ones, destroys the rest, creates what is missing. */
nvmlReturn_t nvml_apply_mig_instances(struct nvml_device *device,
                                      const struct gp_control_value *value)
{
    struct profile_list profiles;
    struct instance_list instances;
    const struct profile *missing[INSTANCES_MAX];
    size_t missing_count = 0;
    unsigned current = 0, pending = 0;
    if (device->is_mig)
        return destroy_one(device);
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetMigMode, device->handle, &current, &pending);
    if (rc == NVML_SUCCESS && current == NVML_FEATURE_DISABLED && !value->text[0])
        return NVML_SUCCESS; /* the end of MIG mode has taken them along */
    if (rc == NVML_SUCCESS)
        rc = list_profiles(device, &profiles);
    if (rc == NVML_SUCCESS)
        rc = list_instances(device, &profiles, &instances);
    for (const char *p = value->text; rc == NVML_SUCCESS && *p;) {
        size_t n = strcspn(p, ",");
        const struct profile *profile = find_profile(&profiles, p, n);
        size_t i = 0;
        while (i < instances.count &&
               (instances.entries[i].kept || instances.entries[i].profile != profile))
            i++;
        if (!profile || missing_count == INSTANCES_MAX)
            return NVML_ERROR_INVALID_ARGUMENT;
        if (i < instances.count)
            instances.entries[i].kept = true;
        else
            missing[missing_count++] = profile;
        p += n + (p[n] == ',');
    }
    for (size_t i = 0; rc == NVML_SUCCESS && i < instances.count; i++)
        if (!instances.entries[i].kept)
            rc = destroy(device, instances.entries[i].handle);
    qsort(missing, missing_count, sizeof(missing[0]), by_slices);
    for (size_t i = 0; rc == NVML_SUCCESS && i < missing_count; i++)
        rc = create(device, missing[i]);
    return rc;
}
