/* Live values: load, temperature, power and memory of a device over time.
 *
 * The load of a device comes from its workload and the live jobs. All live values are functions of
 * that load and of the time. With `still` (GPULSE_SIM_STILL=1) the time is frozen, and a device
 * without load returns exactly the captured values. */
#ifndef GPULSE_SIM_LIVE_H
#define GPULSE_SIM_LIVE_H

#include "sim/machine.h"
#include "sim/state.h"

struct sim_live {
    const struct sim_machine *machine;
    struct sim_state *state;
    bool still;
};

/* The current value of a slot. */
struct sim_value sim_live_value(const struct sim_live *live, const struct sim_device *device,
                                enum sim_slot slot);

/* The current value of a field; NOT_SUPPORTED if the device does not have it. */
struct sim_value sim_live_field(const struct sim_live *live, const struct sim_device *device,
                                unsigned int id, unsigned int scope);

/* Whether process accounting is enabled on a GPU. */
bool sim_live_accounts(const struct sim_live *live, const struct sim_device *gpu);

/* The current load of a GPU or MIG device by workload and jobs, in percent of its time. */
double sim_live_load(const struct sim_live *live, const struct sim_device *device);

/* Whether a process of the machine file runs now, under which pid, and since when (in seconds since
 * 1970; 0: always). */
bool sim_live_is_running(const struct sim_live *live, const struct sim_process *process,
                         unsigned int *ret_pid, uint64_t *ret_start_s);

/* A smooth variation over time of something that is not a GPU's, within [-1, 1]. */
double sim_live_drift(const struct sim_live *live, unsigned int channel);

struct sim_memory {
    uint64_t total, reserved, used, free; /* reserved + used + free = total */
};
nvmlReturn_t sim_live_memory(const struct sim_live *live, const struct sim_device *device,
                             struct sim_memory *ret);

/* Stores up to `capacity` current processes of the device, and returns their number. Live jobs have
 * no name here (it is in their slot). */
size_t sim_live_processes(const struct sim_live *live, const struct sim_device *device,
                          struct sim_process *out, size_t capacity);

/* The current utilization of a GPU by a process in percent, which varies with the device; false if
 * it has none. */
bool sim_live_shares(const struct sim_live *live, const struct sim_device *device,
                     const struct sim_process *process, unsigned int pct[SIM_SHARE_COUNT]);

#endif
