/* The exported functions: most are generated from the rows of answers.def, the special ones are
 * written out. */
#include "sim/driver.h"

#include "base/clock.h"
#include "sim/hosttree.h"
#include "sim/mig.h"
#include "sim/setting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ------------------------------------------------------------------------- from the table */

/* Length 0 and a NULL buffer are invalid arguments; a buffer that is too small is left
 * unchanged. */
static nvmlReturn_t put_text(const char *text, char *buffer, unsigned int length)
{
    size_t need = strlen(text) + 1;
    if (need > length)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(buffer, text, need);
    return NVML_SUCCESS;
}

static nvmlReturn_t answer_text(enum sim_function function, nvmlDevice_t device, enum sim_slot slot,
                                char *buffer, unsigned int length)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter_device(&call, function, device, buffer != NULL);
    if (code == NVML_SUCCESS) {
        const struct sim_value *v = &call.device->answers[slot];
        code = v->code == NVML_SUCCESS ? put_text(v->text, buffer, length) : v->code;
    }
    return sim_leave(code);
}

nvmlReturn_t sim_answer_numbers(enum sim_function function, nvmlDevice_t device, bool args_ok,
                                const enum sim_slot *slots, size_t count, uint64_t *values)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter_device(&call, function, device, args_ok);
    for (size_t i = 0; code == NVML_SUCCESS && i < count; i++)
        code = sim_read(&call, slots[i], &values[i]);
    return sim_leave(code);
}

static nvmlReturn_t answer_number(enum sim_function function, nvmlDevice_t device, bool args_ok,
                                  size_t slot, uint64_t *value)
{
    const enum sim_slot slots[] = {(enum sim_slot)(slot < SIM_SLOT_COUNT ? slot : 0)};
    return sim_answer_numbers(function, device, args_ok, slots, 1, value);
}

enum { WORDS_MAX = 8 };

/* A struct of u32, after its version word if it has one, which is checked before anything is
 * written. */
static nvmlReturn_t answer_words(enum sim_function function, nvmlDevice_t device,
                                 unsigned int *words, unsigned int version, enum sim_slot first,
                                 enum sim_slot last)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter_device(&call, function, device, words != NULL);
    if (code == NVML_SUCCESS && version && words[0] != version)
        code = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    const size_t count = (size_t)(last - first) + 1;
    uint64_t read[WORDS_MAX];
    for (size_t i = 0; code == NVML_SUCCESS && i < count; i++)
        code = sim_read(&call, first + (enum sim_slot)i, &read[i]);
    for (size_t i = 0; code == NVML_SUCCESS && i < count; i++)
        words[(version ? 1 : 0) + i] = (unsigned int)read[i];
    return sim_leave(code);
}

/* The averaging period of engines. */
enum { ENGINE_PERIOD_US = 167000 };

#define SIM_TEXT(function, slot)                                                                   \
    SIM_EXPORT nvmlReturn_t function(nvmlDevice_t device, char *buffer, unsigned int length)       \
    {                                                                                              \
        return answer_text(SIM_FN_##function, device, SIM_##slot, buffer, length);                 \
    }
#define SIM_OUT(function, slot, type)                                                              \
    SIM_EXPORT nvmlReturn_t function(nvmlDevice_t device, type *out)                               \
    {                                                                                              \
        uint64_t v;                                                                                \
        nvmlReturn_t code = answer_number(SIM_FN_##function, device, out != NULL, SIM_##slot, &v); \
        if (code == NVML_SUCCESS)                                                                  \
            *out = (type)v;                                                                        \
        return code;                                                                               \
    }
#define SIM_OUT2(function, slot, slot2, type)                                                      \
    SIM_EXPORT nvmlReturn_t function(nvmlDevice_t device, type *out, type *out2)                   \
    {                                                                                              \
        static const enum sim_slot slots[] = {SIM_##slot, SIM_##slot2};                            \
        uint64_t v[2];                                                                             \
        nvmlReturn_t code =                                                                        \
            sim_answer_numbers(SIM_FN_##function, device, out && out2, slots, 2, v);               \
        if (code == NVML_SUCCESS) {                                                                \
            *out = (type)v[0];                                                                     \
            *out2 = (type)v[1];                                                                    \
        }                                                                                          \
        return code;                                                                               \
    }
#define SIM_KEYED(function, arg, count, slot, type)                                                \
    SIM_EXPORT nvmlReturn_t function(nvmlDevice_t device, arg key, type *out)                      \
    {                                                                                              \
        uint64_t v;                                                                                \
        nvmlReturn_t code =                                                                        \
            answer_number(SIM_FN_##function, device, out && (size_t)key < (size_t)(count),         \
                          (size_t)SIM_##slot + (size_t)key, &v);                                   \
        if (code == NVML_SUCCESS)                                                                  \
            *out = (type)v;                                                                        \
        return code;                                                                               \
    }
#define SIM_ENGINE(function, slot)                                                                 \
    SIM_EXPORT nvmlReturn_t function(nvmlDevice_t device, unsigned int *out, unsigned int *period) \
    {                                                                                              \
        uint64_t v;                                                                                \
        nvmlReturn_t code =                                                                        \
            answer_number(SIM_FN_##function, device, out && period, SIM_##slot, &v);               \
        if (code == NVML_SUCCESS) {                                                                \
            *out = (unsigned int)v;                                                                \
            *period = ENGINE_PERIOD_US;                                                            \
        }                                                                                          \
        return code;                                                                               \
    }
#define SIM_TEXT_KEYED(function, arg, count, slot)                                                 \
    SIM_EXPORT nvmlReturn_t function(nvmlDevice_t device, arg key, char *buffer,                   \
                                     unsigned int length)                                          \
    {                                                                                              \
        size_t offset = (size_t)key < (size_t)(count) ? (size_t)key : 0;                           \
        return answer_text(SIM_FN_##function, device, (enum sim_slot)(SIM_##slot + offset),        \
                           (size_t)key < (size_t)(count) ? buffer : NULL, length);                 \
    }
#define SIM_WORDS(function, type, version, first, last)                                            \
    SIM_EXPORT nvmlReturn_t function(nvmlDevice_t device, type *out)                               \
    {                                                                                              \
        return answer_words(SIM_FN_##function, device, (unsigned int *)out, version, SIM_##first,  \
                            SIM_##last);                                                           \
    }                                                                                              \
    _Static_assert(SIM_##last - SIM_##first < WORDS_MAX, #function);
#include "sim/answers.def"

/* The same clocks as those of the dedicated calls. */
SIM_EXPORT nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t device, nvmlClockType_t type,
                                           nvmlClockId_t id, unsigned int *mhz)
{
    static const enum sim_slot first[NVML_CLOCK_ID_COUNT] = {
        [NVML_CLOCK_ID_CURRENT] = SIM_CLOCK_GRAPHICS,
        [NVML_CLOCK_ID_APP_CLOCK_TARGET] = SIM_APP_CLOCK_GRAPHICS,
        [NVML_CLOCK_ID_APP_CLOCK_DEFAULT] = SIM_DEFAULT_APP_CLOCK_GRAPHICS,
        [NVML_CLOCK_ID_CUSTOMER_BOOST_MAX] = SIM_BOOST_CLOCK_GRAPHICS,
    };
    uint64_t v;
    bool known = type < NVML_CLOCK_COUNT && id < NVML_CLOCK_ID_COUNT;
    nvmlReturn_t code = answer_number(SIM_FN_nvmlDeviceGetClock, device, mhz && known,
                                      known ? (size_t)first[id] + type : 0, &v);
    if (code == NVML_SUCCESS)
        *mhz = (unsigned int)v;
    return code;
}

/* ------------------------------------------------------------------------- system */

static nvmlReturn_t system_text(enum sim_function function, bool driver, char *buffer,
                                unsigned int length)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter(&call, function, buffer != NULL);
    if (code == NVML_SUCCESS) {
        const char *text = driver ? call.machine->driver_version : call.machine->nvml_version;
        code = text ? put_text(text, buffer, length) : NVML_ERROR_NOT_SUPPORTED;
    }
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    return system_text(SIM_FN_nvmlSystemGetDriverVersion, true, version, length);
}

SIM_EXPORT nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
    if (version && *sim_failed_library())
        return put_text(sim_failed_library(), version, length);
    return system_text(SIM_FN_nvmlSystemGetNVMLVersion, false, version, length);
}

static nvmlReturn_t cuda_version(enum sim_function function, int *version)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter(&call, function, version != NULL);
    if (code == NVML_SUCCESS && call.machine->cuda_version == 0)
        code = NVML_ERROR_LIBRARY_NOT_FOUND;
    if (code == NVML_SUCCESS)
        *version = call.machine->cuda_version;
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
    return cuda_version(SIM_FN_nvmlSystemGetCudaDriverVersion, version);
}

SIM_EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    return cuda_version(SIM_FN_nvmlSystemGetCudaDriverVersion_v2, version);
}

/* The name is cut to the buffer, like in the real call. */
static nvmlReturn_t process_name(const struct sim_call *call, unsigned int pid, char *name,
                                 unsigned int length)
{
    for (size_t i = 0; i < call->machine->device_count; i++) {
        const struct sim_device *device = &call->machine->devices[i];
        for (size_t j = 0; j < device->process_count; j++) {
            if (device->processes[j].pid != pid || !device->processes[j].name[0])
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

/* ------------------------------------------------------------------------- enumeration */

static nvmlReturn_t device_count(enum sim_function function, unsigned int *count)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter(&call, function, count != NULL);
    if (code == NVML_SUCCESS)
        *count = sim_device_count(&call) + sim_is_hit(&call, SIM_FAULT_OVERCOUNT);
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetCount(unsigned int *count)
{
    return device_count(SIM_FN_nvmlDeviceGetCount, count);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    return device_count(SIM_FN_nvmlDeviceGetCount_v2, count);
}

static nvmlReturn_t handle_by_index(enum sim_function function, unsigned int index,
                                    nvmlDevice_t *device)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter(&call, function, device != NULL);
    struct sim_device *gpu = code == NVML_SUCCESS ? sim_device_at(&call, index) : NULL;
    if (code == NVML_SUCCESS)
        code = gpu ? sim_give_handle(&call, gpu, device) : NVML_ERROR_INVALID_ARGUMENT;
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device)
{
    return handle_by_index(SIM_FN_nvmlDeviceGetHandleByIndex, index, device);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    return handle_by_index(SIM_FN_nvmlDeviceGetHandleByIndex_v2, index, device);
}

static bool is_uuid(const struct sim_call *call, struct sim_device *device, const char *uuid)
{
    char own[SIM_UUID_SIZE];
    sim_uuid_of(call, device, own);
    return strcasecmp(own, uuid) == 0;
}

static bool is_serial(const struct sim_call *call, struct sim_device *device, const char *serial)
{
    (void)call;
    const struct sim_value *v = &device->answers[SIM_SERIAL];
    return v->code == NVML_SUCCESS && strcmp(v->text, serial) == 0;
}

/* "00000000:53:00.0", "0000:53:00.0" or "53:00.0". */
static bool is_bus_id(const struct sim_call *call, struct sim_device *device, const char *text)
{
    (void)call;
    unsigned int domain = 0, bus, slot, function;
    int end = 0;
    if (sscanf(text, "%8x:%2x:%2x.%1x%n", &domain, &bus, &slot, &function, &end) != 4) {
        domain = 0;
        if (sscanf(text, "%2x:%2x.%1x%n", &bus, &slot, &function, &end) != 3)
            return false;
    }
    return !text[end] && domain == device->pci_domain && bus == device->pci_bus &&
           slot == device->pci_slot && function == 0;
}

static nvmlReturn_t handle_by(enum sim_function function,
                              bool (*matches)(const struct sim_call *, struct sim_device *,
                                              const char *),
                              const char *text, nvmlDevice_t *device)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter(&call, function, text && device);
    if (code != NVML_SUCCESS)
        return sim_leave(code);
    struct sim_device *found = NULL;
    for (size_t i = 0; !found && i < call.machine->device_count; i++) {
        struct sim_device *gpu = &call.machine->devices[i];
        if (matches(&call, gpu, text))
            found = gpu;
        for (size_t j = 0; matches == is_uuid && j < sim_mig_count(&call.live, gpu); j++) {
            struct sim_device *mig = sim_mig_at(&call.live, gpu, j);
            if (mig && is_uuid(&call, mig, text))
                found = mig;
        }
    }
    if (found && !sim_device_is_there(&call, found))
        found = NULL;
    code = found ? sim_give_handle(&call, found, device) : NVML_ERROR_NOT_FOUND;
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    return handle_by(SIM_FN_nvmlDeviceGetHandleByUUID, is_uuid, uuid, device);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device)
{
    return handle_by(SIM_FN_nvmlDeviceGetHandleBySerial, is_serial, serial, device);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *bus_id, nvmlDevice_t *device)
{
    return handle_by(SIM_FN_nvmlDeviceGetHandleByPciBusId, is_bus_id, bus_id, device);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device)
{
    return handle_by(SIM_FN_nvmlDeviceGetHandleByPciBusId_v2, is_bus_id, bus_id, device);
}

/* ------------------------------------------------------------------------- identity */

SIM_EXPORT nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter_device(&call, SIM_FN_nvmlDeviceGetIndex, device, index != NULL);
    if (code == NVML_SUCCESS)
        *index = sim_index_of(&call, call.device);
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter_device(&call, SIM_FN_nvmlDeviceGetUUID, device, uuid != NULL);
    char own[SIM_UUID_SIZE];
    if (code == NVML_SUCCESS) {
        sim_uuid_of(&call, call.device, own);
        code = put_text(own, uuid, length);
    }
    return sim_leave(code);
}

/* Without a length: the buffer must have NVML_GSP_FIRMWARE_VERSION_BUF_SIZE bytes. */
SIM_EXPORT nvmlReturn_t nvmlDeviceGetGspFirmwareVersion(nvmlDevice_t device, char *version)
{
    return answer_text(SIM_FN_nvmlDeviceGetGspFirmwareVersion, device, SIM_GSP, version,
                       NVML_GSP_FIRMWARE_VERSION_BUF_SIZE);
}

/* Older versions of the call have a shorter struct: only the first `size` bytes are written. */
static nvmlPciInfo_t pci_of(const struct sim_device *d)
{
    nvmlPciInfo_t info = {
        .domain = d->pci_domain,
        .bus = d->pci_bus,
        .device = d->pci_slot,
        .pciDeviceId = d->pci_device_id,
        .pciSubSystemId = d->pci_subsystem_id,
    };
    (void)snprintf(info.busIdLegacy, sizeof(info.busIdLegacy), "%04X:%02X:%02X.0",
                   d->pci_domain & 0xffff, d->pci_bus & 0xff, d->pci_slot & 0xff);
    (void)snprintf(info.busId, sizeof(info.busId), "%08X:%02X:%02X.0", d->pci_domain,
                   d->pci_bus & 0xff, d->pci_slot & 0xff);
    return info;
}

static nvmlReturn_t pci_info(enum sim_function function, nvmlDevice_t device, nvmlPciInfo_t *pci,
                             size_t size)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter_device(&call, function, device, pci != NULL);
    if (code == NVML_SUCCESS && call.device->parent)
        code = NVML_ERROR_NOT_SUPPORTED;
    if (code == NVML_SUCCESS) {
        nvmlPciInfo_t info = pci_of(call.device);
        memcpy(pci, &info, size);
    }
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    return pci_info(SIM_FN_nvmlDeviceGetPciInfo, device, pci,
                    offsetof(nvmlPciInfo_t, pciSubSystemId));
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    return pci_info(SIM_FN_nvmlDeviceGetPciInfo_v2, device, pci, offsetof(nvmlPciInfo_t, busId));
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    return pci_info(SIM_FN_nvmlDeviceGetPciInfo_v3, device, pci, sizeof(*pci));
}

SIM_EXPORT nvmlReturn_t nvmlGetExcludedDeviceCount(unsigned int *count)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter(&call, SIM_FN_nvmlGetExcludedDeviceCount, count != NULL);
    if (code == NVML_SUCCESS)
        for (*count = 0; sim_excluded_at(&call, *count);)
            ++*count;
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlGetExcludedDeviceInfoByIndex(unsigned int index,
                                                         nvmlExcludedDeviceInfo_t *info)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter(&call, SIM_FN_nvmlGetExcludedDeviceInfoByIndex, info != NULL);
    const struct sim_device *gpu = code == NVML_SUCCESS ? sim_excluded_at(&call, index) : NULL;
    if (code == NVML_SUCCESS && !gpu)
        code = NVML_ERROR_INVALID_ARGUMENT;
    if (code == NVML_SUCCESS) {
        *info = (nvmlExcludedDeviceInfo_t){.pciInfo = pci_of(gpu)};
        code = put_text(gpu->uuid, info->uuid, sizeof(info->uuid));
    }
    return sim_leave(code);
}

/* ------------------------------------------------------------------------- memory */

/* Zeros if it is not supported, like GB10. */
static nvmlReturn_t read_memory(struct sim_call *call, struct sim_memory *ret)
{
    *ret = (struct sim_memory){0};
    nvmlReturn_t code = sim_live_memory(&call->live, call->device, ret);
    if (code == NVML_SUCCESS && call->absurd)
        *ret = (struct sim_memory){UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    return code;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    struct sim_call call;
    struct sim_memory m;
    nvmlReturn_t code =
        sim_enter_device(&call, SIM_FN_nvmlDeviceGetMemoryInfo, device, memory != NULL);
    if (code == NVML_SUCCESS) {
        code = read_memory(&call, &m);
        /* Since R510 this call counts the driver's reservation as used; before, the reservation was
         * not reported. */
        bool whole = call.absurd || sim_driver_is(call.machine->driver, 510, 0);
        memory->total = whole ? m.total : m.total - m.reserved;
        memory->free = m.free;
        memory->used = call.absurd || !whole ? m.used : m.used + m.reserved;
    }
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    struct sim_call call;
    struct sim_memory m;
    nvmlReturn_t code =
        sim_enter_device(&call, SIM_FN_nvmlDeviceGetMemoryInfo_v2, device, memory != NULL);
    if (code == NVML_SUCCESS && memory->version != nvmlMemory_v2)
        code = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (code == NVML_SUCCESS) {
        code = read_memory(&call, &m);
        memory->total = m.total;
        memory->reserved = m.reserved;
        memory->free = m.free;
        memory->used = m.used;
    }
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *memory)
{
    static const enum sim_slot slots[] = {SIM_BAR1_TOTAL, SIM_BAR1_FREE, SIM_BAR1_USED};
    uint64_t v[3];
    nvmlReturn_t code = sim_answer_numbers(SIM_FN_nvmlDeviceGetBAR1MemoryInfo, device,
                                           memory != NULL, slots, GP_ARRAY_LEN(slots), v);
    if (code == NVML_SUCCESS)
        *memory = (nvmlBAR1Memory_t){.bar1Total = v[0], .bar1Free = v[1], .bar1Used = v[2]};
    return code;
}

/* ------------------------------------------------------------------------- processes */

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

/* ------------------------------------------------------------------------- readings */

SIM_EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device,
                                                      nvmlUtilization_t *utilization)
{
    static const enum sim_slot slots[] = {SIM_UTIL_GPU, SIM_UTIL_MEM};
    uint64_t v[2];
    nvmlReturn_t code = sim_answer_numbers(SIM_FN_nvmlDeviceGetUtilizationRates, device,
                                           utilization != NULL, slots, GP_ARRAY_LEN(slots), v);
    if (code == NVML_SUCCESS)
        *utilization = (nvmlUtilization_t){.gpu = (unsigned int)v[0], .memory = (unsigned int)v[1]};
    return code;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetEncoderStats(nvmlDevice_t device, unsigned int *sessions,
                                                  unsigned int *fps, unsigned int *latency_us)
{
    static const enum sim_slot slots[] = {SIM_ENC_SESSIONS, SIM_ENC_FPS, SIM_ENC_LATENCY};
    uint64_t v[3];
    nvmlReturn_t code =
        sim_answer_numbers(SIM_FN_nvmlDeviceGetEncoderStats, device, sessions && fps && latency_us,
                           slots, GP_ARRAY_LEN(slots), v);
    if (code == NVML_SUCCESS) {
        *sessions = (unsigned int)v[0];
        *fps = (unsigned int)v[1];
        *latency_us = (unsigned int)v[2];
    }
    return code;
}

/* A struct of a version word and one slot: the word is checked before anything is written. */
static nvmlReturn_t versioned_number(enum sim_function function, nvmlDevice_t device,
                                     const unsigned int *version, unsigned int expected,
                                     enum sim_slot slot, uint64_t *value)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter_device(&call, function, device, version != NULL);
    if (code == NVML_SUCCESS && *version != expected)
        code = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (code == NVML_SUCCESS)
        code = sim_read(&call, slot, value);
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device,
                                                  nvmlTemperature_t *temperature)
{
    uint64_t v;
    nvmlReturn_t code = versioned_number(SIM_FN_nvmlDeviceGetTemperatureV, device,
                                         temperature ? &temperature->version : NULL,
                                         nvmlTemperature_v1, SIM_TEMP, &v);
    if (code == NVML_SUCCESS && temperature->sensorType != NVML_TEMPERATURE_GPU)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (code == NVML_SUCCESS)
        temperature->temperature = (int)v;
    return code;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetMarginTemperature(nvmlDevice_t device,
                                                       nvmlMarginTemperature_t *margin)
{
    uint64_t v;
    nvmlReturn_t code = versioned_number(SIM_FN_nvmlDeviceGetMarginTemperature, device,
                                         margin ? &margin->version : NULL, nvmlMarginTemperature_v1,
                                         SIM_MARGIN, &v);
    if (code == NVML_SUCCESS)
        margin->marginTemperature = (int)v;
    return code;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetFanSpeed_v2(nvmlDevice_t device, unsigned int fan,
                                                 unsigned int *percent)
{
    static const enum sim_slot slots[] = {SIM_FAN, SIM_FANS};
    uint64_t v[2];
    nvmlReturn_t code = sim_answer_numbers(SIM_FN_nvmlDeviceGetFanSpeed_v2, device, percent != NULL,
                                           slots, GP_ARRAY_LEN(slots), v);
    if (code == NVML_SUCCESS && fan >= v[1])
        return NVML_ERROR_INVALID_ARGUMENT;
    if (code == NVML_SUCCESS)
        *percent = (unsigned int)v[0];
    return code;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t type,
                                                    nvmlEccCounterType_t counter,
                                                    unsigned long long *count)
{
    uint64_t v;
    bool args_ok =
        count && type < NVML_MEMORY_ERROR_TYPE_COUNT && counter < NVML_ECC_COUNTER_TYPE_COUNT;
    nvmlReturn_t code =
        answer_number(SIM_FN_nvmlDeviceGetTotalEccErrors, device, args_ok,
                      (size_t)SIM_ECC_TOTAL + (size_t)type * 2 + (size_t)counter, &v);
    if (code == NVML_SUCCESS)
        *count = v;
    return code;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device,
                                                        nvmlMemoryErrorType_t type,
                                                        nvmlEccCounterType_t counter,
                                                        nvmlMemoryLocation_t location,
                                                        unsigned long long *count)
{
    uint64_t v;
    bool args_ok = count && type < NVML_MEMORY_ERROR_TYPE_COUNT &&
                   counter < NVML_ECC_COUNTER_TYPE_COUNT && location < NVML_MEMORY_LOCATION_COUNT;
    size_t offset = ((size_t)type * 2 + (size_t)counter) * NVML_MEMORY_LOCATION_COUNT;
    nvmlReturn_t code = answer_number(SIM_FN_nvmlDeviceGetMemoryErrorCounter, device, args_ok,
                                      (size_t)SIM_ECC_AT + offset + (size_t)location, &v);
    if (code == NVML_SUCCESS)
        *count = v;
    return code;
}

/* ------------------------------------------------------------------------- fields */

/* Counters of time, energy and bytes have 64 bits; temperature limits are signed. */
static nvmlValueType_t field_type(unsigned int id)
{
    static const struct {
        unsigned int first, last;
        nvmlValueType_t type;
    } types[] = {
        {NVML_FI_DEV_PERF_POLICY_POWER, 81, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG},
        {NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION,
         NVML_VALUE_TYPE_UNSIGNED_LONG_LONG},
        {NVML_FI_DEV_ENERGY, NVML_FI_DEV_ENERGY, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG},
        {NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_RX,
         NVML_VALUE_TYPE_UNSIGNED_LONG_LONG},
        {NVML_FI_DEV_NVLINK_COUNT_XMIT_PACKETS, NVML_FI_DEV_NVLINK_COUNT_SYMBOL_BER,
         NVML_VALUE_TYPE_UNSIGNED_LONG_LONG},
        {NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_0, NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_0 + 15,
         NVML_VALUE_TYPE_UNSIGNED_LONG_LONG},
        {NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT, NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT,
         NVML_VALUE_TYPE_SIGNED_INT},
        {NVML_FI_DEV_PCIE_COUNT_TX_BYTES, NVML_FI_DEV_PCIE_COUNT_RX_BYTES,
         NVML_VALUE_TYPE_UNSIGNED_LONG_LONG},
        {NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN,
         NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN,
         NVML_VALUE_TYPE_UNSIGNED_LONG_LONG},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(types); i++)
        if (id >= types[i].first && id <= types[i].last)
            return types[i].type;
    return NVML_VALUE_TYPE_UNSIGNED_INT;
}

/* Fields that only root may read if the administrator has restricted them. */
static bool is_profiling(unsigned int newest)
{
    return (newest >= 60 && newest <= 73) || (newest >= 120 && newest <= 131) ||
           (newest >= NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX &&
            newest <= NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_RX);
}

static bool is_energy(unsigned int newest)
{
    return newest == NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION || newest == NVML_FI_DEV_ENERGY;
}

/* As seen in drivers: R545 reported the memory temperature as a double. */
static void put_wrong_type(nvmlFieldValue_t *field, uint64_t number)
{
    field->timestamp = 0;
    field->valueType = NVML_VALUE_TYPE_DOUBLE;
    field->value.dVal = (double)(int64_t)number;
}

static void fill_field(const struct sim_call *call, nvmlFieldValue_t *field, long long now_us)
{
    unsigned int newest = sim_field_newest(call->machine->driver, field->fieldId);
    struct sim_value v = sim_live_field(&call->live, call->device, field->fieldId, field->scopeId);
    if (v.code == NVML_ERROR_NOT_SUPPORTED)
        v = sim_link_field(&call->live, call->device, newest, field->scopeId);
    if (sim_is_hit(call, SIM_FAULT_PROFILING) && is_profiling(newest))
        v.code = NVML_ERROR_NO_PERMISSION;
    if (sim_is_hit(call, SIM_FAULT_ENERGY) && is_energy(newest))
        v.number -= call->device->answers[SIM_ENERGY].number;
    field->timestamp = now_us;
    field->latencyUsec = 0;
    field->valueType = field_type(newest);
    field->nvmlReturn = v.code;
    if (v.code != NVML_SUCCESS)
        return;
    if (call->absurd)
        v.number = UINT64_MAX;
    if (sim_is_hit(call, SIM_FAULT_TYPES))
        put_wrong_type(field, v.number);
    else if (field->valueType == NVML_VALUE_TYPE_UNSIGNED_LONG_LONG)
        field->value.ullVal = v.number;
    else if (field->valueType == NVML_VALUE_TYPE_SIGNED_INT)
        field->value.siVal = (int)v.number;
    else
        field->value.uiVal = (unsigned int)v.number;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count,
                                                 nvmlFieldValue_t *values)
{
    struct sim_call call;
    nvmlReturn_t code =
        sim_enter_device(&call, SIM_FN_nvmlDeviceGetFieldValues, device, values && count > 0);
    long long now_us = (long long)(gp_clock_wall_ns() / 1000);
    for (int i = 0; code == NVML_SUCCESS && i < count; i++)
        fill_field(&call, &values[i], now_us);
    return sim_leave(code);
}

/* ------------------------------------------------------------------------- MIG */

SIM_EXPORT nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index,
                                                            nvmlDevice_t *mig)
{
    struct sim_call call;
    nvmlReturn_t code =
        sim_enter_device(&call, SIM_FN_nvmlDeviceGetMigDeviceHandleByIndex, device, mig != NULL);
    if (code == NVML_SUCCESS && call.device->answers[SIM_MIG_CURRENT].code != NVML_SUCCESS)
        code = call.device->answers[SIM_MIG_CURRENT].code;
    struct sim_device *found =
        code == NVML_SUCCESS ? sim_mig_at(&call.live, call.device, index) : NULL;
    if (code == NVML_SUCCESS)
        code = found ? sim_give_handle(&call, found, mig) : NVML_ERROR_NOT_FOUND;
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *is_mig)
{
    struct sim_call call;
    nvmlReturn_t code =
        sim_enter_device(&call, SIM_FN_nvmlDeviceIsMigDeviceHandle, device, is_mig != NULL);
    if (code == NVML_SUCCESS)
        *is_mig = call.device->parent != NULL;
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig,
                                                                     nvmlDevice_t *device)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter_device(&call, SIM_FN_nvmlDeviceGetDeviceHandleFromMigDeviceHandle,
                                         mig, device != NULL);
    if (code == NVML_SUCCESS && !call.device->parent)
        code = NVML_ERROR_INVALID_ARGUMENT;
    if (code == NVML_SUCCESS)
        code = sim_give_handle(&call, call.device->parent, device);
    return sim_leave(code);
}

static nvmlReturn_t instance_id(enum sim_function function, nvmlDevice_t device, bool compute,
                                unsigned int *id)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter_device(&call, function, device, id != NULL);
    if (code == NVML_SUCCESS && !call.device->parent)
        code = NVML_ERROR_NOT_SUPPORTED;
    if (code == NVML_SUCCESS)
        *id = (unsigned int)(compute ? call.device->compute_instance : call.device->gpu_instance);
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned int *id)
{
    return instance_id(SIM_FN_nvmlDeviceGetGpuInstanceId, device, false, id);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned int *id)
{
    return instance_id(SIM_FN_nvmlDeviceGetComputeInstanceId, device, true, id);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device,
                                                   nvmlDeviceAttributes_t *attributes)
{
    static const enum sim_slot slots[] = {
        SIM_ATTR_SM,  SIM_ATTR_COPY,      SIM_ATTR_DEC,       SIM_ATTR_ENC,    SIM_ATTR_JPG,
        SIM_ATTR_OFA, SIM_ATTR_GI_SLICES, SIM_ATTR_CI_SLICES, SIM_ATTR_MEMORY,
    };
    uint64_t v[GP_ARRAY_LEN(slots)];
    nvmlReturn_t code = sim_answer_numbers(SIM_FN_nvmlDeviceGetAttributes_v2, device,
                                           attributes != NULL, slots, GP_ARRAY_LEN(slots), v);
    if (code == NVML_SUCCESS)
        *attributes = (nvmlDeviceAttributes_t){
            .multiprocessorCount = (unsigned int)v[0],
            .sharedCopyEngineCount = (unsigned int)v[1],
            .sharedDecoderCount = (unsigned int)v[2],
            .sharedEncoderCount = (unsigned int)v[3],
            .sharedJpegCount = (unsigned int)v[4],
            .sharedOfaCount = (unsigned int)v[5],
            .gpuInstanceSliceCount = (unsigned int)v[6],
            .computeInstanceSliceCount = (unsigned int)v[7],
            .memorySizeMB = v[8],
        };
    return code;
}
