/* The driver's own events. The session has one event set, in which every GPU is registered with the
 * wanted types that it supports: each event wakes the process. A single thread waits for events,
 * because operations on a set are not thread-safe.
 *
 * A driver or GPU without events is not a failure: comparing readings finds the changes instead. */
#include "source/nvml/internal.h"

#include "base/clock.h"
#include "base/err.h"

#include <stdlib.h>
#include <string.h>

/* The registered types. An event without a name here would be useless. */
static const struct {
    unsigned long long bit;
    enum gp_event_kind kind;
    const char *words;
} types[] = {
    {NVML_EVENT_XID_CRITICAL_ERROR, GP_EVENT_XID, ""},
    {NVML_EVENT_SINGLE_BIT_ECC_ERROR, GP_EVENT_ECC_CORRECTED, ""},
    {NVML_EVENT_DOUBLE_BIT_ECC_ERROR, GP_EVENT_ECC_UNCORRECTED, ""},
    {NVML_EVENT_SINGLE_BIT_ECC_ERROR_STORM, GP_EVENT_ECC_STORM, ""},
    {NVML_EVENT_NON_FATAL_POISON, GP_EVENT_POISON, "poisoned data was contained"},
    {NVML_EVENT_FATAL_POISON, GP_EVENT_POISON, "poisoned data was consumed: results may be wrong"},
    {NVML_EVENT_DRAM_RETIREMENT, GP_EVENT_RETIREMENT, "bad memory was retired or remapped"},
    {NVML_EVENT_DRAM_RETIREMENT_FAILURE, GP_EVENT_RETIREMENT,
     "bad memory could not be retired or remapped"},
    {NVML_EVENT_GPU_RECOVERY_ACTION, GP_EVENT_RECOVERY, ""},
    {NVML_EVENT_GPU_UNAVAILABLE, GP_EVENT_UNAVAILABLE, ""},
    {NVML_EVENT_PSTATE, GP_EVENT_PSTATE, ""},
    {NVML_EVENT_CLOCK, GP_EVENT_CLOCK, ""},
    {NVML_EVENT_POWER_SOURCE_CHANGE, GP_EVENT_POWER_SOURCE, ""},
    {NVML_EVENT_MIG_CONFIG_CHANGE, GP_EVENT_MIG, ""},
};

static gp_event_kinds kinds_of(unsigned long long bits)
{
    gp_event_kinds kinds = 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(types); i++)
        if (bits & types[i].bit)
            kinds |= gp_event_bit(types[i].kind);
    return kinds;
}

static nvmlReturn_t need_set(struct nvml_source *source, gp_call_name *call)
{
    if (source->events.set)
        return NVML_SUCCESS;
    return NVML_NOTED(source, call, nvmlEventSetCreate, &source->events.set);
}

static void free_set(struct nvml_source *source)
{
    if (source->events.set)
        (void)NVML_ASK(&source->api, nvmlEventSetFree, source->events.set);
    source->events.set = NULL;
}

/* Registers the types, all at once or, if a driver refuses some that it has just announced, one at
 * a time. *ret_bits are the accepted ones. */
static nvmlReturn_t register_types(struct nvml_source *source, nvmlDevice_t handle,
                                   unsigned long long bits, gp_call_name *call,
                                   unsigned long long *ret_bits)
{
    *ret_bits = 0;
    nvmlReturn_t rc =
        NVML_NOTED(source, call, nvmlDeviceRegisterEvents, handle, bits, source->events.set);
    if (rc == NVML_SUCCESS)
        *ret_bits = bits;
    if (rc != NVML_ERROR_NOT_SUPPORTED && rc != NVML_ERROR_INVALID_ARGUMENT)
        return rc;
    for (unsigned long long bit = 1; bit && bit <= bits; bit <<= 1) {
        if (!(bits & bit) || bit == bits)
            continue;
        rc = NVML_NOTED(source, call, nvmlDeviceRegisterEvents, handle, bit, source->events.set);
        if (rc == NVML_SUCCESS)
            *ret_bits |= bit;
        else if (rc == NVML_ERROR_UNKNOWN || nvml_return_ends_session(rc))
            return rc;
    }
    return NVML_SUCCESS;
}

/* After UNKNOWN, the state of the set is undefined: abandons it, and registers the GPUs so far in a
 * new one. */
static nvmlReturn_t renew_set(struct nvml_source *source, gp_call_name *call)
{
    struct nvml_events *events = &source->events;
    free_set(source);
    nvmlReturn_t rc = events->count > 0 ? need_set(source, call) : NVML_SUCCESS;
    size_t kept = 0;
    for (size_t i = 0; rc == NVML_SUCCESS && i < events->count; i++) {
        struct nvml_watched *w = &events->watched[i];
        rc = register_types(source, w->handle, w->bits, call, &w->bits);
        if (rc == NVML_SUCCESS)
            events->watched[kept++] = *w;
    }
    if (rc != NVML_SUCCESS)
        free_set(source);
    events->count = rc == NVML_SUCCESS ? kept : 0;
    return rc;
}

/* Remembers which GPU a handle in an event belongs to. */
static bool add_watched(struct nvml_events *events, struct nvml_watched watched)
{
    struct nvml_watched *grown =
        realloc(events->watched, (events->count + 1) * sizeof(*events->watched));
    if (!grown)
        return false;
    events->watched = grown;
    events->watched[events->count++] = watched;
    return true;
}

int nvml_watch(struct gp_source_device *base, unsigned name, gp_event_kinds kinds,
               gp_call_name *call, gp_event_kinds *ret_kinds)
{
    const struct nvml_device *device = (const struct nvml_device *)base;
    struct nvml_source *source = device->source;
    struct nvml_watched watched = {.handle = device->handle, .name = name};
    unsigned long long supported = 0;
    *ret_kinds = 0;
    bool renewed = false;
    nvmlReturn_t rc =
        NVML_NOTED(source, call, nvmlDeviceGetSupportedEventTypes, device->handle, &supported);
    unsigned long long bits = 0;
    for (size_t i = 0; rc == NVML_SUCCESS && i < GP_ARRAY_LEN(types); i++)
        if (kinds & gp_event_bit(types[i].kind))
            bits |= supported & types[i].bit;
    if (bits)
        rc = need_set(source, call);
    if (rc == NVML_SUCCESS && source->events.set && bits) {
        rc = register_types(source, device->handle, bits, call, &watched.bits);
        if (rc == NVML_ERROR_UNKNOWN) {
            renewed = source->events.count > 0;
            rc = renew_set(source, call);
        } else if (rc == NVML_SUCCESS && watched.bits && add_watched(&source->events, watched))
            *ret_kinds = kinds_of(watched.bits);
    }
    return nvml_return_ends_session(rc) ? GP_EDRIVER : renewed;
}

static nvmlReturn_t wait_on_set(struct nvml_source *source, nvmlEventData_t *data,
                                unsigned timeout_ms, gp_call_name *call)
{
    nvmlEventSet_t set = source->events.set;
    nvmlReturn_t rc = NVML_NOTED(source, call, nvmlEventSetWait_v2, set, data, timeout_ms);
    if (rc == NVML_ERROR_FUNCTION_NOT_FOUND) /* before R450 it fills the first three members */
        rc = NVML_NOTED(source, call, nvmlEventSetWait, set, data, timeout_ms);
    return rc;
}

static int instance(unsigned id)
{
    return id == NVML_NOT_AVAILABLE_U32 ? GP_EVENT_NO_INSTANCE : (int)id;
}

/* False for an event of a type or GPU that was not registered. */
static bool name_event(const struct nvml_events *events, const nvmlEventData_t *data,
                       struct gp_source_event *ret)
{
    size_t type = 0;
    size_t gpu = 0;
    while (type < GP_ARRAY_LEN(types) && !(data->eventType & types[type].bit))
        type++;
    while (gpu < events->count && events->watched[gpu].handle != data->device)
        gpu++;
    if (type == GP_ARRAY_LEN(types) || gpu == events->count)
        return false;
    *ret = (struct gp_source_event){
        .kind = types[type].kind,
        .device = events->watched[gpu].name,
        .wall_ns = gp_clock_wall_ns(),
        .mono_ns = gp_clock_mono_ns(),
        .number = types[type].kind == GP_EVENT_XID ? data->eventData : 0,
        .gpu_instance = instance(data->gpuInstanceId),
        .compute_instance = instance(data->computeInstanceId),
        .words = types[type].words,
    };
    return true;
}

int nvml_wait_event(struct gp_source *base, unsigned timeout_ms, gp_call_name *call,
                    struct gp_source_event *ret)
{
    struct nvml_source *source = (struct nvml_source *)base;
    nvmlEventData_t data = {.gpuInstanceId = NVML_NOT_AVAILABLE_U32,
                            .computeInstanceId = NVML_NOT_AVAILABLE_U32};
    if (!source->events.set)
        return GP_EFAIL;
    nvmlReturn_t rc = wait_on_set(source, &data, timeout_ms, call);
    if (rc == NVML_SUCCESS)
        return name_event(&source->events, &data, ret) ? 1 : 0;
    if (rc == NVML_ERROR_TIMEOUT)
        return 0;
    return nvml_return_ends_session(rc) ? GP_EDRIVER : GP_EFAIL;
}

void nvml_end_events(struct nvml_source *source)
{
    free_set(source);
    free(source->events.watched);
    source->events = (struct nvml_events){0};
}
