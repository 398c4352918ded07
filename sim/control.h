/* What setters share. */
#ifndef GPULSE_SIM_CONTROL_H
#define GPULSE_SIM_CONTROL_H

#include "sim/driver.h"
#include "sim/setting.h"

/* Starts a setter of a whole GPU, which a MIG device refuses. `support` is an answer that is
 * refused by a device without the feature. */
nvmlReturn_t sim_enter_setter(struct sim_call *call, enum sim_function function,
                              nvmlDevice_t device, bool args_ok, enum sim_slot support);

/* Keep a setting of the call's device for all processes; instead of an answer that a fault set. */
void sim_set(const struct sim_call *call, enum sim_setting setting, uint64_t value);
void sim_unset(const struct sim_call *call, enum sim_setting setting);

/* A whole setter: a switch that is stored unchanged. */
nvmlReturn_t sim_set_switch(enum sim_function function, nvmlDevice_t device,
                            nvmlEnableState_t state, enum sim_slot support,
                            enum sim_setting setting);

/* False if the GPU's architecture is unknown. */
bool sim_is_older_than(const struct sim_call *call, nvmlDeviceArchitecture_t arch);

#endif
