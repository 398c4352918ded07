#include "sim/driver.h"

#include "base/clock.h"
#include "sim/hosttree.h"
#include "sim/mig.h"
#include "sim/session.h"
#include "sim/strict.h"
#include "sim/unplayed.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct sim_driver sim_driver = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ------------------------------------------------------------------------- handles */

/* A handle is a number, never an address: [16 tag][16 generation][16 MIG device + 1][16 GPU]. So
 * garbage can be detected, and so can handles of an earlier initialization. */
static const uint64_t handle_tag = UINT64_C(0x4750) << 48;

static nvmlDevice_t make_handle(unsigned int generation, const struct sim_device *device)
{
    const struct sim_device *gpu = device->parent ? device->parent : device;
    uint64_t mig = device->parent ? sim_mig_handle(device) : 0;
    uint64_t bits = handle_tag | (uint64_t)(generation & 0xffff) << 32 | mig << 16 | gpu->index;
    return (nvmlDevice_t)(uintptr_t)bits;
}

static struct sim_device *find_handle(const struct sim_session *session, nvmlDevice_t handle)
{
    uint64_t bits = (uint64_t)(uintptr_t)handle;
    size_t gpu = bits & 0xffff, mig = bits >> 16 & 0xffff;
    if (bits >> 48 != handle_tag >> 48 || (bits >> 32 & 0xffff) != (session->generation & 0xffff) ||
        gpu >= session->machine->device_count)
        return NULL;
    struct sim_device *device = &session->machine->devices[gpu];
    return mig == 0 ? device : sim_mig_find(&session->live, device, (unsigned int)mig);
}

/* ------------------------------------------------------------------------- calls */

/* The function of the call, for errors at its end; unset if a fault replaces the result. */
static _Thread_local enum sim_function current;
static _Thread_local bool answering;

void sim_sleep_ns(uint64_t ns)
{
    if (ns == 0)
        return;
    struct timespec until = gp_clock_timespec(gp_clock_mono_ns() + ns);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

static struct sim_device *gpu_of(struct sim_device *device)
{
    return device->parent ? device->parent : device;
}

/* In a container that may use one MIG device, memory and processes of the whole GPU are hidden. */
static bool denies_parent(const struct sim_call *call, const struct sim_fault *fault)
{
    const char *name = sim_function_names[call->function];
    return call->device && sim_mig_count(&call->live, call->device) > 0 &&
           (fault->function[0] || strstr(name, "MemoryInfo") || strstr(name, "RunningProcesses"));
}

enum { HANG_STEP_NS = 20 * 1000 * 1000 }; /* poll interval for a cleared hang */

static bool is_same(const struct sim_fault *a, const struct sim_fault *b)
{
    return a->kind == b->kind && a->gpu == b->gpu && a->value == b->value &&
           strcmp(a->function, b->function) == 0;
}

static bool is_injected(const struct sim_call *call, const struct sim_fault *fault)
{
    struct sim_fault other;
    for (size_t i = 0; i < call->machine->fault_count; i++)
        if (is_same(&call->machine->faults[i], fault))
            return true;
    for (size_t i = 0; i < SIM_MAX_FAULTS; i++)
        if (sim_state_fault(call->live.state, i, &other) && is_same(&other, fault))
            return true;
    return false;
}

/* Waits until the time is over or the fault is cleared. */
static void hang(const struct sim_call *call, const struct sim_fault *fault)
{
    const uint64_t end_ns = gp_clock_mono_ns() + fault->value;
    uint64_t now_ns;
    while ((now_ns = gp_clock_mono_ns()) < end_ns && is_injected(call, fault))
        sim_sleep_ns(end_ns - now_ns < HANG_STEP_NS ? end_ns - now_ns : HANG_STEP_NS);
}

nvmlReturn_t sim_apply_fault(struct sim_call *call, const struct sim_fault *fault)
{
    switch ((enum sim_fault_kind)fault->kind) {
    case SIM_FAULT_LOST:
    case SIM_FAULT_GONE:
    case SIM_FAULT_EXCLUDED:
        if (!call->device)
            break;
        atomic_store(&gpu_of(call->device)->lost, true);
        return NVML_ERROR_GPU_IS_LOST;
    case SIM_FAULT_HANG:
        hang(call, fault);
        break;
    case SIM_FAULT_SLOW:
        sim_sleep_ns(fault->value);
        break;
    case SIM_FAULT_DENY:
        return NVML_ERROR_NO_PERMISSION;
    case SIM_FAULT_ERROR:
        return (nvmlReturn_t)fault->value;
    case SIM_FAULT_ABSURD:
        call->absurd = true;
        break;
    case SIM_FAULT_GROW:
        call->grow = true;
        break;
    case SIM_FAULT_NOGPU:
        call->no_gpu = true;
        break;
    case SIM_FAULT_PARENT:
        return denies_parent(call, fault) ? NVML_ERROR_NO_PERMISSION : NVML_SUCCESS;
    case SIM_FAULT_OVERCOUNT:
    case SIM_FAULT_REORDER:
    case SIM_FAULT_REPARTITION:
    case SIM_FAULT_PROFILING:
    case SIM_FAULT_TYPES:
    case SIM_FAULT_UNTOUCHED:
    case SIM_FAULT_PIDS:
    case SIM_FAULT_HIDDEN:
    case SIM_FAULT_STUCK:
    case SIM_FAULT_ENERGY:
    case SIM_FAULT_IGNORE:
        call->effects |= 1u << fault->kind;
        break;
    case SIM_FAULT_UNLOADED:
    case SIM_FAULT_MISMATCH:
    case SIM_FAULT_SET:
    case SIM_FAULT_KINDS:
        break;
    }
    return NVML_SUCCESS;
}

bool sim_next_fault(const struct sim_call *call, size_t *at, struct sim_fault *ret)
{
    size_t fixed = call->machine->fault_count;
    int gpu = call->device ? (int)gpu_of(call->device)->index : SIM_ALL_GPUS;
    for (; *at < fixed + SIM_MAX_FAULTS; ++*at) {
        if (*at < fixed)
            *ret = call->machine->faults[*at];
        else if (!sim_state_has_faults(call->live.state))
            return false;
        else if (!sim_state_fault(call->live.state, *at - fixed, ret))
            continue;
        if (!sim_fault_hits(ret, gpu, call->function))
            continue;
        ++*at;
        return true;
    }
    return false;
}

bool sim_has_fault(const struct sim_call *call, struct sim_device *gpu, enum sim_fault_kind kind)
{
    struct sim_call on_gpu = *call;
    struct sim_fault fault;
    on_gpu.device = gpu;
    for (size_t at = 0; sim_next_fault(&on_gpu, &at, &fault);)
        if (fault.kind == kind)
            return true;
    return false;
}

static nvmlReturn_t apply_faults(struct sim_call *call)
{
    struct sim_fault fault;
    nvmlReturn_t code = NVML_SUCCESS;
    for (size_t at = 0; code == NVML_SUCCESS && sim_next_fault(call, &at, &fault);)
        code = sim_apply_fault(call, &fault);
    if (call->device && atomic_load(&gpu_of(call->device)->lost))
        return NVML_ERROR_GPU_IS_LOST;
    return code;
}

void sim_refuse_in_child(enum sim_function function)
{
    pid_t process = atomic_load(&sim_driver.process);
    if (process != 0 && process != getpid())
        sim_strict_refuse(function, "was called in a child of the process that called nvmlInit");
}

void sim_refuse_without_init(enum sim_function function)
{
    sim_strict_refuse(function, atomic_load(&sim_driver.process) ? "was called after nvmlShutdown"
                                                                 : "was called before nvmlInit");
}

static nvmlReturn_t begin(struct sim_call *call, enum sim_function function,
                          struct sim_session **ret_session)
{
    *call = (struct sim_call){.function = current = function};
    answering = false;
    atomic_fetch_add_explicit(&sim_driver.calls[function], 1, memory_order_relaxed);
    sim_refuse_in_child(function);
    atomic_fetch_add(&sim_driver.active, 1);
    struct sim_session *session = atomic_load(&sim_driver.current);
    if (!session) {
        sim_refuse_without_init(function);
        return NVML_ERROR_UNINITIALIZED;
    }
    *ret_session = session;
    call->machine = session->machine;
    call->live = session->live;
    call->generation = session->generation;
    call->reversed = session->reversed;
    call->tree = session->tree;
    sim_hosttree_refresh(session->tree);
    if (call->machine->missing[function])
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    sim_sleep_ns((uint64_t)call->machine->latency_us[function] * 1000);
    bool fails = session->failing && atomic_fetch_add(&session->calls, 1) + 1 == session->failing;
    return fails ? session->failure : call->machine->retired[function];
}

nvmlReturn_t sim_enter(struct sim_call *call, enum sim_function function, bool args_ok)
{
    struct sim_session *session;
    nvmlReturn_t code = begin(call, function, &session);
    if (code != NVML_SUCCESS)
        return code;
    code = args_ok ? apply_faults(call) : NVML_ERROR_INVALID_ARGUMENT;
    answering = code == NVML_SUCCESS;
    return code;
}

nvmlReturn_t sim_enter_device(struct sim_call *call, enum sim_function function,
                              nvmlDevice_t handle, bool args_ok)
{
    struct sim_session *session;
    nvmlReturn_t code = begin(call, function, &session);
    if (code != NVML_SUCCESS)
        return code;
    call->device = find_handle(session, handle);
    if (!call->device)
        sim_strict_refuse_handle(function, handle);
    if (!call->device || !args_ok)
        return NVML_ERROR_INVALID_ARGUMENT;
    code = apply_faults(call);
    answering = code == NVML_SUCCESS;
    return code;
}

bool sim_is_lost(const struct sim_call *call, struct sim_device *device)
{
    struct sim_call on_device = *call;
    struct sim_fault fault;
    on_device.device = device;
    for (size_t at = 0; sim_next_fault(&on_device, &at, &fault);)
        if (fault.kind == SIM_FAULT_LOST)
            return true;
    return atomic_load(&gpu_of(device)->lost);
}

const struct sim_device *sim_find_device(enum sim_function function, nvmlDevice_t handle)
{
    const struct sim_session *session = atomic_load(&sim_driver.current);
    const struct sim_device *device = session ? find_handle(session, handle) : NULL;
    if (session && !device)
        sim_strict_refuse_handle(function, handle);
    return device;
}

nvmlReturn_t sim_leave(nvmlReturn_t code)
{
    if (answering && code == NVML_ERROR_ARGUMENT_VERSION_MISMATCH &&
        !sim_strict_has_versions(current))
        sim_strict_refuse(current, "was called with a wrong version word");
    atomic_fetch_sub(&sim_driver.active, 1);
    return code;
}

nvmlReturn_t sim_answer_unplayed(const char *function)
{
    atomic_fetch_add(&sim_driver.active, 1);
    const struct sim_session *session = atomic_load(&sim_driver.current);
    if (!session)
        return sim_leave(NVML_ERROR_UNINITIALIZED);
    nvmlReturn_t code = NVML_ERROR_NOT_SUPPORTED;
    for (size_t i = 0; i < SIM_SYMBOL_COUNT; i++)
        if (session->machine->missing[i] && strcmp(sim_symbols[i].name, function) == 0)
            code = NVML_ERROR_FUNCTION_NOT_FOUND;
    if (code == NVML_ERROR_NOT_SUPPORTED && sim_retired(session->machine->driver, function))
        code = NVML_ERROR_DEPRECATED;
    return sim_leave(code);
}

nvmlReturn_t sim_give_handle(struct sim_call *call, struct sim_device *device, nvmlDevice_t *ret)
{
    call->device = device;
    nvmlReturn_t code = apply_faults(call);
    if (code == NVML_SUCCESS)
        *ret = make_handle(call->generation, device);
    return code;
}

/* Absurd numbers that real drivers have returned: ratios above 100 %, the power of a laptop in the
 * wrong unit, a negative temperature as unsigned, "not available" as a number. */
static uint64_t absurd_number(enum sim_slot slot)
{
    switch (sim_answers[slot].motion) {
    case SIM_MOTION_UTIL:
    case SIM_MOTION_UTIL_MEM:
    case SIM_MOTION_UTIL_ENGINE:
        return 255;
    case SIM_MOTION_POWER:
        return 593000000;
    case SIM_MOTION_TEMP:
        return UINT32_C(4294967288);
    case SIM_MOTION_STATIC:
    case SIM_MOTION_MEMORY:
    case SIM_MOTION_ENERGY:
    case SIM_MOTION_MARGIN:
    case SIM_MOTION_CLOCK:
    case SIM_MOTION_FAN:
    case SIM_MOTION_PCIE:
    case SIM_MOTION_PCIE_GEN:
    case SIM_MOTION_PSTATE:
    case SIM_MOTION_REASONS:
        break;
    }
    return UINT64_MAX;
}

nvmlReturn_t sim_read(const struct sim_call *call, enum sim_slot slot, uint64_t *ret)
{
    struct sim_value v = sim_live_value(&call->live, call->device, slot);
    /* Identity stays valid: a monitor that cannot distinguish its GPUs is another test. */
    bool measured = sim_answers[slot].motion != SIM_MOTION_STATIC || slot == SIM_MEM_TOTAL;
    if (v.code != NVML_SUCCESS)
        return v.code;
    *ret = call->absurd && measured ? absurd_number(slot) : v.number;
    if (sim_is_hit(call, SIM_FAULT_STUCK) && sim_answers[slot].motion == SIM_MOTION_UTIL)
        *ret = 100;
    if (sim_is_hit(call, SIM_FAULT_ENERGY) && slot == SIM_ENERGY)
        *ret -= call->device->answers[slot].number;
    return NVML_SUCCESS;
}
