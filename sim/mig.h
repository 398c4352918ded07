/* MIG instances: those of the machine file until a client changes them, then those of the live
 * state. */
#ifndef GPULSE_SIM_MIG_H
#define GPULSE_SIM_MIG_H

#include "sim/live.h"

/* How many MIG devices a GPU may have at the moment; there may be gaps. */
size_t sim_mig_count(const struct sim_live *live, const struct sim_device *gpu);
/* The MIG device with this index, NULL if there is none. It lives as long as the state. */
struct sim_device *sim_mig_at(const struct sim_live *live, const struct sim_device *gpu,
                              size_t index);

/* The part of a handle that names a MIG device (never 0), and what it names; NULL if that is gone.
 */
unsigned int sim_mig_handle(const struct sim_device *mig);
struct sim_device *sim_mig_find(const struct sim_live *live, const struct sim_device *gpu,
                                unsigned int handle);

/* The compute mode of a MIG device; `stored` if nobody has changed it. False if it is gone. */
uint64_t sim_mig_mode(const struct sim_live *live, const struct sim_device *mig, uint64_t stored);
bool sim_mig_set_mode(const struct sim_live *live, const struct sim_device *mig, uint64_t mode);

/* Takes away all instances of the GPU. */
void sim_mig_clear(const struct sim_live *live, const struct sim_device *gpu);

#endif
