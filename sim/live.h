/* How values move: load, temperature, power and memory of a device at a moment.
 *
 * The load of a device is what its workload and the live jobs ask of it. All moving values are
 * functions of that load and of the time; with `still` (GPULSE_SIM_STILL=1) the time stands, and a
 * device without load answers exactly what was captured. */
#ifndef GPULSE_SIM_LIVE_H
#define GPULSE_SIM_LIVE_H

#include "sim/machine.h"
#include "sim/state.h"

struct sim_live {
    const struct sim_machine *machine;
    struct sim_state *state;
    bool still;
};

/* The value of a slot now. */
struct sim_value sim_live_value(const struct sim_live *live, const struct sim_device *device,
                                enum sim_slot slot);

/* The value of a field now; NOT_SUPPORTED if the device does not know it. */
struct sim_value sim_live_field(const struct sim_live *live, const struct sim_device *device,
                                unsigned int id, unsigned int scope);

/* Whether the driver keeps accounts of the processes on a GPU. */
bool sim_live_accounts(const struct sim_live *live, const struct sim_device *gpu);

/* What workload and jobs ask of a GPU or MIG device now, in percent of its time. */
double sim_live_load(const struct sim_live *live, const struct sim_device *device);

struct sim_memory {
    uint64_t total, reserved, used, free; /* reserved + used + free = total */
};
nvmlReturn_t sim_live_memory(const struct sim_live *live, const struct sim_device *device,
                             struct sim_memory *ret);

/* Stores up to `capacity` processes of the device now and returns how many there are. Live jobs
 * have no name here (it stands in their slot). */
size_t sim_live_processes(const struct sim_live *live, const struct sim_device *device,
                          struct sim_process *out, size_t capacity);

/* A process's shares of its GPU in percent now, moving with the device; false if it has none. */
bool sim_live_shares(const struct sim_live *live, const struct sim_device *device,
                     const struct sim_process *process, unsigned int pct[SIM_SHARE_COUNT]);

#endif
