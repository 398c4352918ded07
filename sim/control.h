/* What the files of setters share. */
#ifndef GPULSE_SIM_CONTROL_H
#define GPULSE_SIM_CONTROL_H

#include "sim/driver.h"

/* Whether the caller may change things: GPULSE_SIM_ROOT says (0: no), else root may. */
bool sim_is_root(void);

/* instance.c: the compute mode of the call's MIG device. */
nvmlReturn_t sim_instance_set_mode(struct sim_call *call, nvmlComputeMode_t mode);

#endif
