/* The processes of a device: three lists, which a machine file stores as one. */
#include "sim/record_list.h"

#include <stdlib.h>
#include <string.h>

enum { LIST_TRIES = 5, FIRST_ROOM = 64, UTIL_ROOM = 100 };

/* One of the list functions, regardless of the type of its entries. */
typedef nvmlReturn_t (*list_fn)(nvmlDevice_t device, unsigned int *count, void *entries);

struct list {
    enum sim_function function;
    size_t offset; /* in struct rec_api */
    unsigned int version;
};
#define LIST(name, version)                                                                        \
    {                                                                                              \
        SIM_FN_##name, offsetof(struct rec_api, name), version                                     \
    }

/* Newest first. */
static const struct list lists[REC_LISTS][3] = {
    {LIST(nvmlDeviceGetComputeRunningProcesses_v3, 3),
     LIST(nvmlDeviceGetComputeRunningProcesses_v2, 2),
     LIST(nvmlDeviceGetComputeRunningProcesses, 1)},
    {LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, 3),
     LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, 2),
     LIST(nvmlDeviceGetGraphicsRunningProcesses, 1)},
    {LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, 3),
     LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, 2),
     LIST(nvmlDeviceGetMPSComputeRunningProcesses, 1)},
};

static list_fn function_of(const struct rec_api *api, const struct list *list)
{
    list_fn fn;
    memcpy(&fn, (const char *)api + list->offset, sizeof(fn));
    return fn;
}

/* The list may grow between two calls. */
static nvmlReturn_t ask_list(struct rec_call *c)
{
    const struct list *list = &lists[c->key / 4][c->key % 4];
    list_fn fn = function_of(c->api, list);
    nvmlReturn_t code = NVML_ERROR_INSUFFICIENT_SIZE;
    unsigned int room = FIRST_ROOM;
    for (int i = 0; i < LIST_TRIES && code == NVML_ERROR_INSUFFICIENT_SIZE; i++) {
        void *grown = realloc(c->entries, (size_t)room * c->entry_size);
        if (!grown)
            return NVML_ERROR_MEMORY;
        c->entries = grown;
        c->count = room;
        code = fn(c->device, &c->count, c->entries);
        if (code == NVML_SUCCESS && c->count > room)
            c->count = room;
        if (c->count >= REC_MAX_ENTRIES / 2)
            break;
        room = (c->count > room ? c->count : room) * 2;
    }
    return code;
}

bool rec_list_ask(const struct rec_api *api, const unsigned int driver[3], enum rec_list list,
                  struct rec_call *call)
{
    unsigned int version = 0;
    while (version < 3 && !function_of(api, &lists[list][version]))
        version++;
    if (version == 3)
        return false;
    const struct list *l = &lists[list][version];
    call->function = l->function;
    call->ask = ask_list;
    call->key = (unsigned int)list * 4 + version;
    call->entry_size = sim_process_entry_size(driver, l->version);
    return true;
}

struct sim_process rec_list_entry(const struct rec_call *call, unsigned int index)
{
    nvmlProcessInfo_r535_t info = {.gpuInstanceId = UINT32_MAX, .computeInstanceId = UINT32_MAX};
    memcpy(&info, (const char *)call->entries + index * call->entry_size, call->entry_size);
    return (struct sim_process){
        .pid = info.pid,
        .memory_known = info.usedGpuMemory != NVML_NOT_AVAILABLE_U64,
        .memory_bytes = info.usedGpuMemory,
        .gpu_instance =
            info.gpuInstanceId == UINT32_MAX ? SIM_NO_INSTANCE : (int)info.gpuInstanceId,
        .compute_instance =
            info.computeInstanceId == UINT32_MAX ? SIM_NO_INSTANCE : (int)info.computeInstanceId,
    };
}

nvmlReturn_t rec_ask_utilization(struct rec_call *c)
{
    c->count = UTIL_ROOM;
    c->entry_size = sizeof(nvmlProcessUtilizationSample_t);
    nvmlReturn_t code = NVML_ERROR_INSUFFICIENT_SIZE;
    for (int i = 0; i < LIST_TRIES && code == NVML_ERROR_INSUFFICIENT_SIZE; i++) {
        unsigned int room = c->count > UTIL_ROOM ? c->count : UTIL_ROOM;
        void *grown = room > REC_MAX_ENTRIES ? NULL : realloc(c->entries, room * c->entry_size);
        if (!grown)
            return NVML_ERROR_MEMORY;
        c->entries = grown;
        c->count = room;
        code = c->api->nvmlDeviceGetProcessUtilization(c->device, grown, &c->count, 0);
    }
    return code;
}
