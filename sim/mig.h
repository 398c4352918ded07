/* MIG instances: those of the machine file until a client changes them, then those of the live
 * state. */
#ifndef GPULSE_SIM_MIG_H
#define GPULSE_SIM_MIG_H

#include "sim/live.h"

/* The current number of MIG devices of a GPU; indices may have gaps. */
size_t sim_mig_count(const struct sim_live *live, const struct sim_device *gpu);
/* The MIG device at this index; NULL if there is none. It lives as long as the state. */
struct sim_device *sim_mig_at(const struct sim_live *live, const struct sim_device *gpu,
                              size_t index);

/* The part of a handle that identifies a MIG device (never 0), and the device for it; NULL if it is
 * gone. */
unsigned int sim_mig_handle(const struct sim_device *mig);
struct sim_device *sim_mig_find(const struct sim_live *live, const struct sim_device *gpu,
                                unsigned int handle);

/* The compute mode of a MIG device; `stored` if no client has changed it. False if it is gone. */
uint64_t sim_mig_mode(const struct sim_live *live, const struct sim_device *mig, uint64_t stored);
bool sim_mig_set_mode(const struct sim_live *live, const struct sim_device *mig, uint64_t mode);

/* Removes all instances of the GPU. */
void sim_mig_clear(const struct sim_live *live, const struct sim_device *gpu);

#endif
