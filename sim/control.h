/* Shared by the files with setters. */
#ifndef GPULSE_SIM_CONTROL_H
#define GPULSE_SIM_CONTROL_H

#include "sim/driver.h"

/* Whether the caller may change settings: GPULSE_SIM_ROOT decides (0: no), otherwise only root
 * may. */
bool sim_is_root(void);

/* In instance.c. Sets the compute mode of the call's MIG device. */
nvmlReturn_t sim_instance_set_mode(struct sim_call *call, nvmlComputeMode_t mode);

#endif
