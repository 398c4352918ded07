/* Identities under faults: missing or reordered GPUs, recreated MIG devices, processes with
 * impossible pids. */
#include "sim/driver.h"

#include <stdio.h>
#include <string.h>

static bool is_gone(const struct sim_call *call, struct sim_device *gpu)
{
    return sim_has_fault(call, gpu, SIM_FAULT_GONE) || sim_has_fault(call, gpu, SIM_FAULT_EXCLUDED);
}

/* The GPU at a position of the machine file's order, or of the reverse order. */
static struct sim_device *placed(const struct sim_call *call, size_t place)
{
    size_t last = call->machine->device_count - 1;
    return &call->machine->devices[call->reversed ? last - place : place];
}

unsigned int sim_device_count(const struct sim_call *call)
{
    unsigned int count = 0;
    for (size_t i = 0; !call->no_gpu && i < call->machine->device_count; i++)
        count += !is_gone(call, placed(call, i));
    return count;
}

struct sim_device *sim_device_at(const struct sim_call *call, unsigned int index)
{
    for (size_t i = 0; !call->no_gpu && i < call->machine->device_count; i++) {
        struct sim_device *gpu = placed(call, i);
        if (!is_gone(call, gpu) && index-- == 0)
            return gpu;
    }
    return NULL;
}

struct sim_device *sim_excluded_at(const struct sim_call *call, unsigned int index)
{
    for (size_t i = 0; i < call->machine->device_count; i++) {
        struct sim_device *gpu = placed(call, i);
        if (sim_has_fault(call, gpu, SIM_FAULT_EXCLUDED) && index-- == 0)
            return gpu;
    }
    return NULL;
}

bool sim_device_is_there(const struct sim_call *call, struct sim_device *device)
{
    return !call->no_gpu && !is_gone(call, device->parent ? device->parent : device);
}

unsigned int sim_index_of(const struct sim_call *call, const struct sim_device *device)
{
    unsigned int index = 0;
    if (device->parent)
        return device->index;
    for (size_t i = 0; i < call->machine->device_count && placed(call, i) != device; i++)
        index += !is_gone(call, placed(call, i));
    return index;
}

/* A new partition has new UUIDs, and reuses the ids of its instances. */
void sim_uuid_of(const struct sim_call *call, struct sim_device *device, char out[SIM_UUID_SIZE])
{
    (void)snprintf(out, SIM_UUID_SIZE, "%s", device->uuid);
    size_t digit = strlen("MIG-");
    if (device->parent && strlen(out) > digit &&
        sim_has_fault(call, device->parent, SIM_FAULT_REPARTITION))
        out[digit] = out[digit] == 'f' ? 'e' : 'f';
}

unsigned int sim_listed_pid(const struct sim_call *call, unsigned int pid)
{
    static const unsigned int impossible[] = {0, UINT32_MAX, 3000000000u};
    return sim_is_hit(call, SIM_FAULT_PIDS) ? impossible[pid % GP_ARRAY_LEN(impossible)] : pid;
}
