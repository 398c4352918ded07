/* The MIG devices of a GPU, which come and go. */
#include "source/nvml/internal.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

enum { MIG_LIST_AGAIN_S = 5 };

struct nvml_device *nvml_new_device(struct nvml_source *source, unsigned index, gp_call_name *call)
{
    struct nvml_device *device = calloc(1, sizeof(*device));
    if (device) {
        device->source = source;
        device->index = index;
        device->call = call;
    }
    return device;
}

void nvml_free_mig_list(struct nvml_mig_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        nvml_free_gpm(list->devices[i]);
        nvml_leave_past(list->devices[i]->source, list->devices[i]->past);
        gp_arena_fini(&list->devices[i]->arena);
        free(list->devices[i]);
    }
    list->count = 0;
}

/* A MIG device in the driver's current list. */
struct mig_seen {
    nvmlDevice_t handle;
    unsigned index;
    char uuid[NVML_DEVICE_UUID_V2_BUFFER_SIZE];
};

/* Whether a code is neither an answer nor "does not exist". */
static bool is_failure(nvmlReturn_t rc)
{
    return rc != NVML_SUCCESS && nvml_return_status(rc) != GP_STATUS_UNSUPPORTED;
}

/* Returns NVML_SUCCESS, also for a GPU without MIG, or the code of a failed call: the instances are
 * then unknown. */
static nvmlReturn_t list_mig(struct nvml_device *device, struct mig_seen seen[NVML_MIG_MAX],
                             size_t *ret_count)
{
    unsigned max = 0;
    unsigned current = 0;
    unsigned pending = 0;
    size_t count = 0;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetMigMode, device->handle, &current, &pending);
    if (rc == NVML_SUCCESS && current == NVML_FEATURE_ENABLED)
        rc = NVML_CALL(device, nvmlDeviceGetMaxMigDeviceCount, device->handle, &max);
    for (unsigned i = 0; i < max && count < NVML_MIG_MAX && !is_failure(rc); i++) {
        struct mig_seen *mig = &seen[count];
        *mig = (struct mig_seen){.index = i};
        rc =
            NVML_CALL(device, nvmlDeviceGetMigDeviceHandleByIndex, device->handle, i, &mig->handle);
        if (rc == NVML_SUCCESS) /* indices may have gaps */
            rc = NVML_CALL(device, nvmlDeviceGetUUID, mig->handle, mig->uuid,
                           (unsigned)sizeof(mig->uuid));
        count += rc == NVML_SUCCESS;
    }
    *ret_count = count;
    return is_failure(rc) ? rc : NVML_SUCCESS;
}

/* Handles are reused for other instances; the UUID distinguishes them. */
nvmlReturn_t nvml_list_mig(struct nvml_device *device, uint64_t now_ns)
{
    struct nvml_mig_list *list = &device->mig;
    struct mig_seen seen[NVML_MIG_MAX];
    size_t count;
    if (now_ns < list->next_ns)
        return NVML_SUCCESS;
    list->next_ns = now_ns + MIG_LIST_AGAIN_S * GP_NS_PER_S;
    nvmlReturn_t rc = list_mig(device, seen, &count);
    if (rc != NVML_SUCCESS) {
        list->next_ns = 0; /* the previous list stays, and is checked again */
        return nvml_return_ends_session(rc) ? rc : NVML_SUCCESS;
    }
    bool same = count == list->count;
    for (size_t i = 0; same && i < count; i++)
        same = list->devices[i]->handle == seen[i].handle &&
               strcmp(list->devices[i]->uuid, seen[i].uuid) == 0;
    if (same)
        return NVML_SUCCESS;
    nvml_free_mig_list(list);
    for (size_t i = 0; i < count; i++) {
        struct nvml_device *mig = nvml_new_device(device->source, seen[i].index, device->call);
        if (mig)
            mig->past = nvml_take_past(device->source, seen[i].uuid);
        if (!mig || !mig->past) {
            free(mig);
            break;
        }
        mig->is_mig = true;
        mig->parent = device;
        mig->handle = seen[i].handle;
        memcpy(mig->uuid, seen[i].uuid, sizeof(mig->uuid));
        nvml_seed_uuid(mig, now_ns);
        list->devices[list->count++] = mig;
    }
    return NVML_SUCCESS;
}
