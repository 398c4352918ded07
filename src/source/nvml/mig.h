/* MIG: the profiles of a GPU, its GPU instances, and their compute instances. After a failure,
 * *device->call is the name of the failed call. */
#ifndef GP_SOURCE_NVML_MIG_H
#define GP_SOURCE_NVML_MIG_H

#include "source/nvml/internal.h"

enum {
    NVML_MIG_PROFILES_MAX = NVML_GPU_INSTANCE_PROFILE_COUNT,
    NVML_MIG_PARTS_MAX = NVML_COMPUTE_INSTANCE_PROFILE_COUNT,
    NVML_MIG_INSTANCES_MAX = 16,
};

/* The names do not have "MIG ". */
struct nvml_mig_profiles {
    nvmlGpuInstanceProfileInfo_v2_t entries[NVML_MIG_PROFILES_MAX];
    size_t count;
};

/* In the driver's order, without profiles that the GPU does not have. */
nvmlReturn_t nvml_mig_profiles(struct nvml_device *device, struct nvml_mig_profiles *ret);

struct nvml_gpu_instance {
    nvmlGpuInstance_t handle;
    nvmlGpuInstanceInfo_t info;
    const nvmlGpuInstanceProfileInfo_v2_t *profile;
};

struct nvml_gpu_instances {
    struct nvml_gpu_instance entries[NVML_MIG_INSTANCES_MAX];
    size_t count;
};

/* Profile by profile. */
nvmlReturn_t nvml_gpu_instances(struct nvml_device *device,
                                const struct nvml_mig_profiles *profiles,
                                struct nvml_gpu_instances *ret);

struct nvml_compute_profiles {
    nvmlComputeInstanceProfileInfo_v2_t entries[NVML_MIG_PARTS_MAX];
    size_t count;
};

nvmlReturn_t nvml_compute_profiles(struct nvml_device *device,
                                   const struct nvml_gpu_instance *instance,
                                   struct nvml_compute_profiles *ret);

/* The profile that fills the GPU instance; NULL if there is none. */
const nvmlComputeInstanceProfileInfo_v2_t *
nvml_whole_profile(const struct nvml_compute_profiles *profiles);

struct nvml_compute_instance {
    nvmlComputeInstance_t handle;
    const nvmlComputeInstanceProfileInfo_v2_t *profile;
};

struct nvml_compute_instances {
    struct nvml_compute_instance entries[NVML_MIG_INSTANCES_MAX];
    size_t count;
};

nvmlReturn_t nvml_compute_instances(struct nvml_device *device,
                                    const struct nvml_gpu_instance *instance,
                                    const struct nvml_compute_profiles *profiles,
                                    struct nvml_compute_instances *ret);

#endif
