/* The exported functions about processes. */
#include "sim/driver.h"

#include "base/clock.h"
#include "sim/hosttree.h"
#include "sim/mig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The name is cut to the buffer, like in the real call. */
static nvmlReturn_t process_name(const struct sim_call *call, unsigned int pid, char *name,
                                 unsigned int length)
{
    for (size_t i = 0; i < call->machine->device_count; i++) {
        const struct sim_device *device = &call->machine->devices[i];
        for (size_t j = 0; j < device->process_count; j++) {
            if (device->processes[j].pid != pid || !device->processes[j].name)
                continue;
            (void)snprintf(name, length, "%s", device->processes[j].name);
            return NVML_SUCCESS;
        }
    }
    for (size_t i = 0; sim_state_has_jobs(call->live.state) && i < SIM_MAX_JOBS; i++) {
        struct sim_job job;
        if (!sim_state_job(call->live.state, i, &job) || job.pid != pid)
            continue;
        (void)snprintf(name, length, "%s", job.name);
        return NVML_SUCCESS;
    }
    return NVML_ERROR_NOT_FOUND;
}

SIM_EXPORT nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int length)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter(&call, SIM_FN_nvmlSystemGetProcessName, name && length > 0);
    if (code == NVML_SUCCESS)
        code = process_name(&call, pid, name, length);
    return sim_leave(code);
}

enum list { LIST_COMPUTE, LIST_GRAPHICS, LIST_MPS };

/* How many consecutive calls a growing list refuses. */
enum { GROW_REFUSALS = 3 };

static bool in_list(const struct sim_process *process, enum list list)
{
    return list == LIST_COMPUTE    ? process->compute
           : list == LIST_GRAPHICS ? process->graphics
                                   : process->mps;
}

/* Every layout is a prefix of the largest one. */
static void put_process(const struct sim_call *call, const struct sim_process *process, void *entry,
                        size_t size)
{
    nvmlProcessInfo_r535_t info = {
        .pid = sim_listed_pid(call, process->pid),
        .usedGpuMemory =
            process->memory_known && !call->absurd ? process->memory_bytes : NVML_NOT_AVAILABLE_U64,
        .gpuInstanceId = (unsigned int)process->gpu_instance, /* −1 is "not available" */
        .computeInstanceId = (unsigned int)process->compute_instance,
    };
    memcpy(entry, &info, size);
}

static nvmlReturn_t fill_list(struct sim_call *call, enum list list, int version,
                              unsigned int *count, void *infos)
{
    static const enum sim_slot slots[] = {SIM_LIST_COMPUTE, SIM_LIST_GRAPHICS, SIM_LIST_MPS};
    const struct sim_value *v = &call->device->answers[slots[list]];
    if (v->code != NVML_SUCCESS)
        return v->code;

    size_t capacity =
        call->device->parent ? call->device->parent->process_count : call->device->process_count;
    if (sim_state_has_jobs(call->live.state))
        capacity += SIM_MAX_JOBS;
    struct sim_process *all = malloc((capacity ? capacity : 1) * sizeof(*all));
    if (!all)
        return NVML_ERROR_MEMORY;
    size_t found = sim_live_processes(&call->live, call->device, all, capacity);
    if (found > capacity)
        found = capacity;
    sim_hosttree_show(call->tree, all, found);
    size_t n = 0;
    for (size_t i = 0; i < found; i++)
        if (in_list(&all[i], list) && !sim_is_hit(call, SIM_FAULT_HIDDEN))
            all[n++] = all[i];

    nvmlReturn_t code = NVML_SUCCESS;
    unsigned int room = *count;
    unsigned int turn = call->grow && room > 0
                            ? atomic_fetch_add(&call->device->grow_turn, 1) % (GROW_REFUSALS + 1)
                            : GROW_REFUSALS;
    if (turn < GROW_REFUSALS) {
        *count = (n > room ? (unsigned int)n : room) + 2;
        code = NVML_ERROR_INSUFFICIENT_SIZE;
    } else if (n > room) {
        *count = (unsigned int)n;
        code = NVML_ERROR_INSUFFICIENT_SIZE;
    } else {
        size_t size = sim_process_entry_size(call->machine->driver, (unsigned int)version);
        for (size_t i = 0; i < n; i++)
            put_process(call, &all[i], (char *)infos + i * size, size);
        *count = (unsigned int)n;
    }
    free(all);
    return code;
}

static nvmlReturn_t process_list(enum sim_function function, nvmlDevice_t device, enum list list,
                                 int version, unsigned int *count, void *infos)
{
    struct sim_call call;
    bool args_ok = count && (infos || *count == 0);
    nvmlReturn_t code = sim_enter_device(&call, function, device, args_ok);
    if (code == NVML_SUCCESS)
        code = fill_list(&call, list, version, count, infos);
    return sim_leave(code);
}

#define SIM_LIST(function, list, version, type)                                                    \
    SIM_EXPORT nvmlReturn_t function(nvmlDevice_t device, unsigned int *count, type *infos)        \
    {                                                                                              \
        return process_list(SIM_FN_##function, device, list, version, count, infos);               \
    }
SIM_LIST(nvmlDeviceGetComputeRunningProcesses, LIST_COMPUTE, 1, nvmlProcessInfo_v1_t)
SIM_LIST(nvmlDeviceGetComputeRunningProcesses_v2, LIST_COMPUTE, 2, nvmlProcessInfo_v2_t)
SIM_LIST(nvmlDeviceGetComputeRunningProcesses_v3, LIST_COMPUTE, 3, nvmlProcessInfo_t)
SIM_LIST(nvmlDeviceGetGraphicsRunningProcesses, LIST_GRAPHICS, 1, nvmlProcessInfo_v1_t)
SIM_LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, LIST_GRAPHICS, 2, nvmlProcessInfo_v2_t)
SIM_LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, LIST_GRAPHICS, 3, nvmlProcessInfo_t)
SIM_LIST(nvmlDeviceGetMPSComputeRunningProcesses, LIST_MPS, 1, nvmlProcessInfo_v1_t)
SIM_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, LIST_MPS, 2, nvmlProcessInfo_v2_t)
SIM_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, LIST_MPS, 3, nvmlProcessInfo_t)

/* The sample buffer of the driver: a call with a smaller one returns this size, not the number of
 * samples. */
enum { UTILIZATION_SAMPLES = 100 };

static nvmlReturn_t fill_samples(struct sim_call *call, nvmlProcessUtilizationSample_t *samples,
                                 unsigned int *count, unsigned long long last_seen)
{
    const struct sim_value *v = &call->device->answers[SIM_PROCESS_UTIL];
    if (v->code != NVML_SUCCESS)
        return v->code;
    if (call->device->parent || sim_mig_count(&call->live, call->device) > 0)
        return NVML_ERROR_NOT_SUPPORTED;
    if (!samples || *count < UTILIZATION_SAMPLES) {
        *count = UTILIZATION_SAMPLES;
        return NVML_ERROR_INSUFFICIENT_SIZE;
    }
    struct sim_process processes[UTILIZATION_SAMPLES];
    size_t found = sim_live_processes(&call->live, call->device, processes, UTILIZATION_SAMPLES);
    unsigned long long now = gp_clock_wall_ns() / 1000;
    unsigned int n = 0;
    for (size_t i = 0; i < found && i < UTILIZATION_SAMPLES; i++) {
        unsigned int pct[SIM_SHARE_COUNT];
        if (!sim_live_shares(&call->live, call->device, &processes[i], pct) || now <= last_seen)
            continue;
        samples[n++] = (nvmlProcessUtilizationSample_t){
            .pid = sim_listed_pid(call, processes[i].pid),
            .timeStamp = now,
            .smUtil = call->absurd ? NVML_NOT_AVAILABLE_U32 : pct[SIM_SHARE_SM],
            .memUtil = call->absurd ? NVML_NOT_AVAILABLE_U32 : pct[SIM_SHARE_MEM],
            .encUtil = pct[SIM_SHARE_ENC],
            .decUtil = pct[SIM_SHARE_DEC],
        };
    }
    *count = n;
    return n > 0 ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
                                                        nvmlProcessUtilizationSample_t *samples,
                                                        unsigned int *count,
                                                        unsigned long long last_seen)
{
    struct sim_call call;
    nvmlReturn_t code =
        sim_enter_device(&call, SIM_FN_nvmlDeviceGetProcessUtilization, device, count != NULL);
    if (code == NVML_SUCCESS)
        code = fill_samples(&call, samples, count, last_seen);
    return sim_leave(code);
}
