/* The processes that use the simulated driver, and what it forgets after the last one and at a
 * reboot. */
#ifndef GPULSE_SIM_CLIENT_H
#define GPULSE_SIM_CLIENT_H

#include "sim/live.h"

/* A driver client starts or exits. With the last client, the driver releases the GPUs that are not
 * in persistence mode and have no processes: their volatile settings are lost. */
void sim_client_enter(const struct sim_live *live);
void sim_client_leave(const struct sim_live *live);
/* Whether there is no other client process. */
bool sim_client_is_alone(const struct sim_live *live);

/* Whether a process or job runs on the GPU, or on one of its MIG devices. */
bool sim_device_is_busy(const struct sim_live *live, const struct sim_device *device);

/* Simulates a reboot: pending changes take effect, and volatile settings are lost. */
void sim_setting_reboot(const struct sim_live *live);

#endif
