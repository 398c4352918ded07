/* What the other setters need of MIG instances. */
#ifndef GPULSE_SIM_INSTANCE_H
#define GPULSE_SIM_INSTANCE_H

#include "sim/driver.h"

/* Sets the compute mode of the call's MIG device. */
nvmlReturn_t sim_instance_set_mode(struct sim_call *call, nvmlComputeMode_t mode);

#endif
