#include "sim/live.h"

#include "abi/cuda.h"
#include "base/clock.h"
#include "sim/inject.h"
#include "sim/mig.h"
#include "sim/setting.h"

#include <string.h>

/* A GPU at full load draws this share of its limit, runs this far below its maximum clock, and
 * settles this far below its slowdown temperature. Rough, but plausible. */
static const double full_power = 0.94;
static const double full_clock = 0.96;
enum { HOT_BELOW_SLOWDOWN = 18, HOT_DEFAULT = 68, COOL_CEILING = 80, FULL_PCIE_KBS = 1800000 };

/* ------------------------------------------------------------------------- time and noise */

static double hash_phase(uint64_t seed, unsigned int device, unsigned int channel)
{
    uint64_t x = seed * UINT64_C(0x9e3779b97f4a7c15) + device * UINT64_C(0xbf58476d1ce4e5b9) +
                 channel * UINT64_C(0x94d049bb133111eb);
    x ^= x >> 29;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 32;
    return (double)(x >> 11) * 0x1p-53; /* of a turn */
}

/* A sine-like curve of two parabolas: linking the math library would cost more than this driver's
 * size. */
static double wave(double turns)
{
    double part = turns - (double)(uint64_t)turns;
    double half = part < 0.5 ? part : part - 0.5;
    double height = 16 * half * (0.5 - half);
    return part < 0.5 ? height : -height;
}

/* Smooth, deterministic, within [-1, 1]; 0 while frozen. The channel makes different values of a
 * device move independently. */
static double wobble(const struct sim_live *live, unsigned int device, unsigned int channel)
{
    if (live->still)
        return 0;
    uint64_t now = gp_clock_wall_ns();
    double t = (double)now * 1e-9;
    double phase = hash_phase(live->machine->seed, device, channel);
    return (wave(t / 7 + phase) + wave(t / 19 + 2 * phase) + wave(t / 53 + 3 * phase)) / 3;
}

double sim_live_drift(const struct sim_live *live, unsigned int channel)
{
    return wobble(live, SIM_MAX_DEVICES, channel);
}

static double clamp(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

static uint64_t rounded(double value)
{
    return (uint64_t)(value + 0.5);
}

/* ------------------------------------------------------------------------- load */

static const struct sim_device *gpu_of(const struct sim_device *device)
{
    return device->parent ? device->parent : device;
}

static bool belongs(const struct sim_device *device, int gpu_instance, int compute_instance)
{
    if (!device->parent)
        return true;
    return device->gpu_instance == gpu_instance && device->compute_instance == compute_instance;
}

/* The next live job on the device from *slot on that has not released it. */
static bool next_job(const struct sim_live *live, const struct sim_device *device, size_t *slot,
                     struct sim_job *ret)
{
    if (!sim_state_has_jobs(live->state))
        return false;
    const struct sim_device *gpu = gpu_of(device);
    for (; *slot < SIM_MAX_JOBS; ++*slot) {
        if (!sim_state_job(live->state, *slot, ret) || ret->device != (int32_t)gpu->index ||
            ret->cuda_state == CU_PROCESS_STATE_CHECKPOINTED)
            continue;
        if (device->parent && ret->mig != (int32_t)device->index)
            continue;
        if (ret->cuda_state != CU_PROCESS_STATE_RUNNING)
            ret->util_pct = 0;
        ++*slot;
        return true;
    }
    return false;
}

/* A job that begins and ends has another pid each time; its first second of a period is the
 * beginning. While the values are frozen it runs. */
bool sim_live_is_running(const struct sim_live *live, const struct sim_process *process,
                         unsigned int *ret_pid, uint64_t *ret_start_s)
{
    enum { PIDS = 97 };
    uint64_t now_s = gp_clock_wall_ns() / GP_NS_PER_S;
    *ret_pid = process->pid;
    *ret_start_s = 0;
    if (process->every_s == 0 || live->still)
        return true;
    *ret_pid += (unsigned int)(now_s / process->every_s % PIDS);
    *ret_start_s = now_s / process->every_s * process->every_s;
    return now_s - *ret_start_s < process->runs_s;
}

/* The load of workload and jobs on the device: percent of its time, bytes of its memory. */
static void asked_load(const struct sim_live *live, const struct sim_device *device,
                       unsigned int *ret_pct, uint64_t *ret_bytes)
{
    const struct sim_device *gpu = gpu_of(device);
    uint64_t bytes = 0, pct = 0;
    for (size_t i = 0; i < gpu->process_count; i++) {
        const struct sim_process *p = &gpu->processes[i];
        unsigned int pid;
        uint64_t start_s;
        if (!belongs(device, p->gpu_instance, p->compute_instance) ||
            !sim_live_is_running(live, p, &pid, &start_s))
            continue;
        bytes += p->load_bytes;
        pct += p->util_pct;
    }
    struct sim_job job;
    for (size_t slot = 0; next_job(live, device, &slot, &job);) {
        bytes += job.bytes;
        pct += job.util_pct;
    }
    *ret_pct = (unsigned int)(pct > 100 ? 100 : pct);
    *ret_bytes = bytes;
}

/* The stored number of a slot, or a fallback if it has none. */
static double number_or(const struct sim_device *device, enum sim_slot slot, double fallback)
{
    const struct sim_value *v = &device->answers[slot];
    return v->code == NVML_SUCCESS ? (double)v->number : fallback;
}

/* Current utilization; `busy` is the share added to the capture, 0 to 1. */
static double utilization(const struct sim_live *live, const struct sim_device *device,
                          double *ret_busy)
{
    unsigned int asked;
    uint64_t bytes;
    asked_load(live, device, &asked, &bytes);
    double captured = number_or(device, SIM_UTIL_GPU, 0);
    double base = clamp(captured + asked, 0, 100);
    double swing = base >= 90 ? 2 : base * 0.08;
    double now = base > 0 ? clamp(base + swing * wobble(live, device->index, 0), 1, 100) : 0;
    *ret_busy = asked > 0 ? clamp((now - captured) / 100, 0.01, 1) : 0;
    return now;
}

double sim_live_load(const struct sim_live *live, const struct sim_device *device)
{
    double busy;
    return utilization(live, device, &busy);
}

/* ------------------------------------------------------------------------- values */

static double limit_mw(const struct sim_live *live, const struct sim_device *device,
                       double fallback)
{
    static const enum sim_slot slots[] = {SIM_LIMIT_ENFORCED, SIM_LIMIT};
    for (size_t i = 0; i < GP_ARRAY_LEN(slots); i++) {
        struct sim_value v = sim_setting_value(live, device, slots[i]);
        if (v.code == NVML_SUCCESS && v.number > 0)
            return (double)v.number;
    }
    return fallback;
}

static double power_mw(const struct sim_live *live, const struct sim_device *device,
                       double captured, double busy)
{
    double limit = limit_mw(live, device, captured + 150000);
    uint64_t changed;
    /* A captured value above its limit stays there, until a client sets another limit. */
    if (captured > limit && sim_setting_get(live, gpu_of(device), SIM_SET_LIMIT, &changed))
        captured = limit;
    double full = captured > limit * full_power ? captured : limit * full_power;
    double power = captured + (full - captured) * busy;
    power *= 1 + 0.015 * wobble(live, device->index, 1);
    return live->still && busy <= 0 ? captured
                                    : clamp(power, 0, limit > captured ? limit : captured);
}

static double temperature(const struct sim_live *live, const struct sim_device *device,
                          double captured, double busy)
{
    double slowdown = number_or(device, SIM_THRESHOLD_SLOWDOWN, 0);
    double hot = slowdown > 0 ? slowdown - HOT_BELOW_SLOWDOWN : HOT_DEFAULT;
    if (hot < captured)
        hot = captured;
    double ceiling = hot > COOL_CEILING ? hot : COOL_CEILING;
    if (slowdown > 0 && ceiling > slowdown - 1)
        ceiling = slowdown - 1;
    if (ceiling < captured)
        ceiling = captured;
    double now = captured + (hot - captured) * busy + wobble(live, device->index, 2);
    return clamp(now, 0, ceiling);
}

/* How far the clocks are cut: the hardware halves them, the driver lowers them until it
 * gets no hotter. */
static double slowdown_share(const struct sim_device *device)
{
    static const double by_hardware = 0.5, by_driver = 0.8;
    const double captured = number_or(device, SIM_REASONS, 0);
    const uint64_t now = (uint64_t)captured;
    if (now & (NVML_CLOCKS_EVENT_HW_SLOWDOWN | NVML_CLOCKS_EVENT_HW_THERMAL |
               NVML_CLOCKS_EVENT_HW_POWER_BRAKE))
        return by_hardware;
    return now & NVML_CLOCKS_EVENT_SW_THERMAL ? by_driver : 1;
}

static double clock_mhz(const struct sim_live *live, const struct sim_device *device,
                        enum sim_slot slot, double captured, double busy)
{
    if (busy <= 0)
        return captured;
    double max = number_or(device, SIM_MAX_CLOCK_GRAPHICS + (slot - SIM_CLOCK_GRAPHICS), captured);
    if (slot == SIM_CLOCK_MEM)
        return max > captured ? max : captured;
    /* Clocks change in steps of 15 MHz, graphics and SM together. */
    const double share = slowdown_share(device);
    double now = share * max * (full_clock + 0.02 * wobble(live, device->index, 3));
    now = (double)((uint64_t)(now / 15) * 15);
    return now > captured || share < 1 ? now : captured;
}

static uint64_t reasons(const struct sim_live *live, const struct sim_device *device,
                        uint64_t captured, double busy)
{
    uint64_t lock;
    if (!device->parent && sim_setting_get(live, device, SIM_SET_GPU_CLOCK_MAX, &lock))
        captured |= NVML_CLOCKS_EVENT_APPLICATIONS_CLOCKS;
    if (busy <= 0)
        return captured;
    captured &= ~NVML_CLOCKS_EVENT_GPU_IDLE;
    return busy > 0.9 ? captured | NVML_CLOCKS_EVENT_SW_POWER_CAP : captured;
}

static uint64_t energy_mj(const struct sim_live *live, const struct sim_device *device,
                          uint64_t captured)
{
    if (live->still)
        return captured;
    double busy;
    (void)utilization(live, device, &busy);
    double mw = power_mw(live, device, number_or(device, SIM_POWER, 0), busy);
    return sim_state_counter(live->state, device->index, SIM_COUNTER_ENERGY, (uint64_t)mw,
                             captured);
}

nvmlReturn_t sim_live_memory(const struct sim_live *live, const struct sim_device *device,
                             struct sim_memory *ret)
{
    const struct sim_value *v = device->answers;
    if (v[SIM_MEM_TOTAL].code != NVML_SUCCESS)
        return v[SIM_MEM_TOTAL].code;
    struct sim_memory m = {
        .total = v[SIM_MEM_TOTAL].number,
        .reserved = v[SIM_MEM_RESERVED].code == NVML_SUCCESS ? v[SIM_MEM_RESERVED].number : 0,
        .used = v[SIM_MEM_USED].code == NVML_SUCCESS ? v[SIM_MEM_USED].number : 0,
    };
    unsigned int pct;
    uint64_t bytes;
    asked_load(live, device, &pct, &bytes);
    if (m.reserved > m.total)
        m.reserved = m.total;
    uint64_t room = m.total - m.reserved;
    m.used = m.used > room || bytes > room - m.used ? room : m.used + bytes;
    m.free = room - m.used;
    *ret = m;
    return NVML_SUCCESS;
}

/* The value of an answer that was set by a fault; MIG devices keep theirs. */
static bool is_set(const struct sim_live *live, const struct sim_device *device, uint32_t slot,
                   struct sim_value *ret)
{
    struct sim_fault fault;
    for (size_t i = 0; sim_state_has_faults(live->state) && i < SIM_MAX_FAULTS; i++) {
        if (!sim_state_fault(live->state, i, &fault) || fault.kind != SIM_FAULT_SET ||
            fault.slot != slot || device->parent)
            continue;
        bool past = fault.past[device->index / 64] >> device->index % 64 & 1;
        if (past || (fault.gpu != SIM_ALL_GPUS && fault.gpu != (int)device->index))
            continue;
        *ret = (struct sim_value){.code = NVML_SUCCESS, .number = fault.value};
        return true;
    }
    return false;
}

struct sim_value sim_live_value(const struct sim_live *live, const struct sim_device *device,
                                enum sim_slot slot)
{
    struct sim_value v = sim_setting_value(live, device, slot);
    if (is_set(live, device, slot, &v))
        return v;
    enum sim_motion motion = sim_answers[slot].motion;
    if (v.code != NVML_SUCCESS || motion == SIM_MOTION_STATIC)
        return v;

    double busy;
    double util = utilization(live, device, &busy);
    double captured = (double)v.number;
    switch (motion) {
    case SIM_MOTION_STATIC:
    case SIM_MOTION_UTIL_ENGINE:
        break;
    case SIM_MOTION_UTIL:
        v.number = rounded(util);
        break;
    case SIM_MOTION_UTIL_MEM:
        v.number = rounded(clamp(captured + 55 * busy, 0, 100));
        break;
    case SIM_MOTION_MEMORY: {
        struct sim_memory m;
        if (sim_live_memory(live, device, &m) == NVML_SUCCESS)
            v.number = slot == SIM_MEM_USED ? m.used : m.free;
        break;
    }
    case SIM_MOTION_POWER:
        v.number = rounded(power_mw(live, device, captured, busy));
        break;
    case SIM_MOTION_ENERGY:
        v.number = energy_mj(live, device, v.number);
        break;
    case SIM_MOTION_TEMP:
        v.number = rounded(temperature(live, device, captured, busy));
        break;
    case SIM_MOTION_MARGIN: {
        /* Reduces the margin by the temperature increase since the capture. */
        double then = number_or(device, SIM_TEMP, 0);
        uint64_t now = rounded(temperature(live, device, then, busy));
        v.number += rounded(then) - now; /* may fall below 0 */
        break;
    }
    case SIM_MOTION_CLOCK:
        v.number = sim_setting_clock(live, device, slot,
                                     rounded(clock_mhz(live, device, slot, captured, busy)));
        break;
    case SIM_MOTION_FAN:
        if (sim_setting_get(live, gpu_of(device), SIM_SET_FAN, &(uint64_t){0}))
            break; /* another thread was faster */
        v.number = rounded(clamp(captured + 45 * busy, captured, captured > 100 ? captured : 100));
        break;
    case SIM_MOTION_PCIE:
        if (busy > 0)
            v.number +=
                rounded(FULL_PCIE_KBS * busy * (1 + 0.4 * wobble(live, device->index, slot)));
        break;
    case SIM_MOTION_PCIE_GEN:
        if (busy > 0)
            v.number = rounded(number_or(device, SIM_PCIE_GEN_MAX, captured));
        break;
    case SIM_MOTION_PSTATE:
        if (busy > 0)
            v.number = NVML_PSTATE_0;
        break;
    case SIM_MOTION_REASONS:
        v.number = reasons(live, device, v.number, busy);
        break;
    }
    return v;
}

bool sim_live_accounts(const struct sim_live *live, const struct sim_device *gpu)
{
    struct sim_value mode = sim_live_value(live, gpu, SIM_ACCOUNTING);
    return mode.code == NVML_SUCCESS && mode.number == NVML_FEATURE_ENABLED;
}

/* Counter fields: they grow if the machine file has them. */
static uint64_t field_counter(const struct sim_live *live, const struct sim_device *device,
                              unsigned int id, uint64_t captured)
{
    static const struct {
        unsigned int id;
        enum sim_counter counter;
        enum sim_slot slot; /* the counted value */
    } counters[] = {
        {NVML_FI_DEV_PERF_POLICY_POWER, SIM_COUNTER_POWER_CAP, SIM_REASONS},
        {NVML_FI_DEV_PCIE_COUNT_TX_BYTES, SIM_COUNTER_PCIE_TX, SIM_PCIE_TX},
        {NVML_FI_DEV_PCIE_COUNT_RX_BYTES, SIM_COUNTER_PCIE_RX, SIM_PCIE_RX},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(counters) && !live->still; i++) {
        if (counters[i].id != id)
            continue;
        uint64_t now = sim_live_value(live, device, counters[i].slot).number;
        uint64_t per_s = id == NVML_FI_DEV_PERF_POLICY_POWER
                             ? (now & NVML_CLOCKS_EVENT_SW_POWER_CAP ? GP_NS_PER_S : 0)
                             : now * 1000;
        return sim_state_counter(live->state, device->index, counters[i].counter, per_s, captured);
    }
    return captured;
}

static const struct sim_field *find_field(const struct sim_device *device, unsigned int id,
                                          unsigned int scope)
{
    for (size_t i = 0; i < device->field_count; i++)
        if (device->fields[i].id == id && device->fields[i].scope == scope)
            return &device->fields[i];
    return NULL;
}

struct sim_value sim_live_field(const struct sim_live *live, const struct sim_device *device,
                                unsigned int id, unsigned int scope)
{
    id = sim_field_newest(live->machine->driver, id);
    const struct sim_field *field = find_field(device, id, scope);
    if (!sim_field_known(live->machine->driver, id) && (!field || live->machine->replayed))
        return (struct sim_value){.code = NVML_ERROR_INVALID_ARGUMENT};
    /* Energy has its own function; the fields are the same counter. */
    bool energy = id == NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION || id == NVML_FI_DEV_ENERGY;
    if (energy && (!field || field->value.code == NVML_SUCCESS))
        return sim_live_value(live, device, SIM_ENERGY);
    struct sim_value v = {.code = NVML_ERROR_NOT_SUPPORTED};
    if (is_set(live, device, SIM_FIELD_SLOT(id), &v))
        return v;
    if (field)
        v = sim_setting_field(live, device, id, scope, field->value);
    if (v.code != NVML_SUCCESS)
        return v;

    double busy;
    (void)utilization(live, device, &busy);
    double captured = (double)v.number;
    if (id == NVML_FI_DEV_MEMORY_TEMP)
        v.number = rounded(temperature(live, device, captured, busy));
    else if (id == NVML_FI_DEV_POWER_AVERAGE || id == NVML_FI_DEV_POWER_INSTANT)
        /* The memory and the module have no limit of their own here: they scale proportionally. */
        v.number = scope == NVML_POWER_SCOPE_GPU ? rounded(power_mw(live, device, captured, busy))
                                                 : rounded(captured * (1 + busy));
    else
        v.number = field_counter(live, device, id, v.number);
    return v;
}

/* ------------------------------------------------------------------------- processes */

size_t sim_live_processes(const struct sim_live *live, const struct sim_device *device,
                          struct sim_process *out, size_t capacity)
{
    const struct sim_device *gpu = gpu_of(device);
    size_t count = 0;
    for (size_t i = 0; i < gpu->process_count; i++) {
        const struct sim_process *p = &gpu->processes[i];
        unsigned int pid;
        uint64_t start_s;
        if (p->hidden || !belongs(device, p->gpu_instance, p->compute_instance) ||
            !sim_live_is_running(live, p, &pid, &start_s))
            continue;
        if (count < capacity) {
            out[count] = *p;
            out[count].pid = pid;
        }
        count++;
    }
    struct sim_job job;
    for (size_t slot = 0; next_job(live, device, &slot, &job);) {
        if (job.hidden || count++ >= capacity)
            continue;
        const struct sim_device *mig = job.mig >= 0 ? sim_mig_at(live, gpu, (size_t)job.mig) : NULL;
        out[count - 1] = (struct sim_process){
            .pid = job.pid,
            .compute = true,
            .memory_known = true,
            .memory_bytes = job.bytes,
            .gpu_instance = mig ? mig->gpu_instance : SIM_NO_INSTANCE,
            .compute_instance = mig ? mig->compute_instance : SIM_NO_INSTANCE,
            .share_pct = {job.util_pct, sim_share_of_memory(job.util_pct)},
            .name = "",
        };
    }
    return count;
}

bool sim_live_shares(const struct sim_live *live, const struct sim_device *device,
                     const struct sim_process *process, unsigned int pct[SIM_SHARE_COUNT])
{
    double swing = 0.04 * wobble(live, gpu_of(device)->index, process->pid);
    bool any = false;
    for (int i = 0; i < SIM_SHARE_COUNT; i++) {
        double base = process->share_pct[i];
        pct[i] = (unsigned int)rounded(clamp(base + base * swing, 0, 100));
        any = any || pct[i] > 0;
    }
    return any;
}
