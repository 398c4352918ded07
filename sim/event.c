/* Event sets, as strict as in the driver: a set has only the registered events, and none from
 * before the registration; types that a GPU does not report are refused; a set can only be used by
 * one thread at a time.
 *
 * Events are numbered, and stored in the state shared by all processes of the machine; a set is a
 * position in that sequence. Waiting uses a futex, so it costs nothing. */
#include "sim/driver.h"

#include "base/clock.h"
#include "sim/strict.h"

#include <pthread.h>
#include <string.h>

enum { SETS_MAX = 32 };

struct set {
    bool used;
    bool busy; /* a call is using it */
    unsigned int generation;
    unsigned int serial;
    uint64_t next; /* the event to check next */
    struct {
        unsigned long long types;
        uint64_t from; /* the first event after the registration */
        nvmlDevice_t handle;
    } gpus[SIM_MAX_DEVICES];
};

static struct {
    pthread_mutex_t lock;
    struct set sets[SETS_MAX];
    unsigned int serials;
} events = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A number, like device handles: [16 tag][16 generation][16 serial][16 index]. */
static const uint64_t set_tag = UINT64_C(0x4753) << 48;

static nvmlEventSet_t make_handle(size_t place, const struct set *set)
{
    uint64_t bits = set_tag | (uint64_t)(set->generation & 0xffff) << 32 |
                    (uint64_t)(set->serial & 0xffff) << 16 | place;
    return (nvmlEventSet_t)(uintptr_t)bits;
}

/* Takes a set for the call. INVALID_ARGUMENT for a stale handle, UNKNOWN if another thread uses the
 * set. */
static nvmlReturn_t take_set(const struct sim_call *call, nvmlEventSet_t handle, struct set **ret)
{
    uint64_t bits = (uint64_t)(uintptr_t)handle;
    size_t place = bits & 0xffff;
    nvmlReturn_t code = NVML_ERROR_INVALID_ARGUMENT;
    (void)pthread_mutex_lock(&events.lock);
    struct set *set = place < SETS_MAX ? &events.sets[place] : NULL;
    if (set && set->used && set->generation == call->generation &&
        make_handle(place, set) == handle) {
        code = set->busy ? NVML_ERROR_UNKNOWN : NVML_SUCCESS;
        if (code == NVML_SUCCESS)
            set->busy = true;
    }
    (void)pthread_mutex_unlock(&events.lock);
    if (code == NVML_ERROR_INVALID_ARGUMENT)
        sim_strict_refuse(call->function, "was called with an invalid or stale event set");
    *ret = set;
    return code;
}

static void give_set(struct set *set, bool stays)
{
    (void)pthread_mutex_lock(&events.lock);
    set->busy = false;
    set->used = stays;
    (void)pthread_mutex_unlock(&events.lock);
}

SIM_EXPORT nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
    struct sim_call call;
    nvmlReturn_t code = sim_enter(&call, SIM_FN_nvmlEventSetCreate, set != NULL);
    if (code != NVML_SUCCESS)
        return sim_leave(code);
    code = NVML_ERROR_MEMORY;
    (void)pthread_mutex_lock(&events.lock);
    for (size_t i = 0; code != NVML_SUCCESS && i < SETS_MAX; i++) {
        struct set *place = &events.sets[i];
        /* Sets become invalid with the initialization that created them. */
        if (place->busy || (place->used && place->generation == call.generation))
            continue;
        *place = (struct set){.used = true,
                              .generation = call.generation,
                              .serial = events.serials++,
                              .next = sim_state_next_event(call.live.state)};
        *set = make_handle(i, place);
        code = NVML_SUCCESS;
    }
    (void)pthread_mutex_unlock(&events.lock);
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t handle)
{
    struct sim_call call;
    struct set *set;
    nvmlReturn_t code = sim_enter(&call, SIM_FN_nvmlEventSetFree, handle != NULL);
    if (code == NVML_SUCCESS)
        code = take_set(&call, handle, &set);
    if (code == NVML_SUCCESS)
        give_set(set, false);
    return sim_leave(code);
}

static nvmlReturn_t register_types(const struct sim_call *call, nvmlDevice_t handle,
                                   unsigned long long types, struct set *set)
{
    uint64_t supported = 0;
    if (types & ~NVML_EVENT_ALL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (call->device->parent || sim_read(call, SIM_EVENT_TYPES, &supported) != NVML_SUCCESS ||
        types & ~supported)
        return NVML_ERROR_NOT_SUPPORTED;
    unsigned int gpu = call->device->index;
    if (!set->gpus[gpu].types)
        set->gpus[gpu].from = sim_state_next_event(call->live.state);
    set->gpus[gpu].types |= types;
    set->gpus[gpu].handle = handle;
    return NVML_SUCCESS;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types,
                                                 nvmlEventSet_t handle)
{
    struct sim_call call;
    struct set *set;
    nvmlReturn_t code =
        sim_enter_device(&call, SIM_FN_nvmlDeviceRegisterEvents, device, handle != NULL);
    if (code == NVML_SUCCESS)
        code = take_set(&call, handle, &set);
    if (code == NVML_SUCCESS) {
        code = register_types(&call, device, types, set);
        give_set(set, true);
    }
    return sim_leave(code);
}

/* The next registered event of the set, if it has happened. */
static bool next_event(const struct sim_call *call, struct set *set, nvmlEventData_t *ret)
{
    struct sim_event event;
    uint64_t end = sim_state_next_event(call->live.state);
    if (end - set->next > SIM_MAX_EVENTS)
        set->next = end - SIM_MAX_EVENTS; /* the driver's buffer is limited too */
    while (set->next < end) {
        uint64_t number = set->next++;
        if (!sim_state_event(call->live.state, number, &event) ||
            event.gpu >= call->machine->device_count || number < set->gpus[event.gpu].from ||
            !(set->gpus[event.gpu].types & event.type))
            continue;
        *ret = (nvmlEventData_t){
            .device = set->gpus[event.gpu].handle,
            .eventType = event.type,
            .eventData = event.data,
            .gpuInstanceId = event.gpu_instance,
            .computeInstanceId = event.compute_instance,
        };
        return true;
    }
    return false;
}

static bool any_lost(const struct sim_call *call, const struct set *set)
{
    for (size_t i = 0; i < call->machine->device_count; i++)
        if (set->gpus[i].types && sim_is_lost(call, &call->machine->devices[i]))
            return true;
    return false;
}

static nvmlReturn_t wait_for(const struct sim_call *call, struct set *set, nvmlEventData_t *data,
                             uint64_t until_ns)
{
    for (;;) {
        unsigned int bell = sim_state_bell(call->live.state);
        if (next_event(call, set, data))
            return NVML_SUCCESS;
        if (any_lost(call, set))
            return NVML_ERROR_GPU_IS_LOST;
        if (gp_clock_mono_ns() >= until_ns)
            return NVML_ERROR_TIMEOUT;
        sim_state_await_bell(call->live.state, bell, until_ns);
    }
}

/* The first version has a shorter struct: only `size` bytes are written. */
static nvmlReturn_t event_wait(enum sim_function function, nvmlEventSet_t handle,
                               nvmlEventData_t *data, size_t size, unsigned int timeout_ms)
{
    struct sim_call call;
    struct set *set;
    nvmlEventData_t event;
    uint64_t until_ns = gp_clock_mono_ns() + timeout_ms * GP_NS_PER_MS;
    nvmlReturn_t code = sim_enter(&call, function, handle && data);
    if (code == NVML_SUCCESS)
        code = take_set(&call, handle, &set);
    if (code == NVML_SUCCESS) {
        code = wait_for(&call, set, &event, until_ns);
        give_set(set, true);
    }
    if (code == NVML_SUCCESS)
        memcpy(data, &event, size);
    return sim_leave(code);
}

SIM_EXPORT nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t *data,
                                         unsigned int timeout_ms)
{
    return event_wait(SIM_FN_nvmlEventSetWait, set, data, offsetof(nvmlEventData_t, gpuInstanceId),
                      timeout_ms);
}

SIM_EXPORT nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data,
                                            unsigned int timeout_ms)
{
    return event_wait(SIM_FN_nvmlEventSetWait_v2, set, data, sizeof(*data), timeout_ms);
}
