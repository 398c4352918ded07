/* GPULSE_SIM_STRICT=1: what a real library answers with a crash, or not at all, ends the process
 * with a message. So a test shows that a program never does it. */
#ifndef GPULSE_SIM_STRICT_H
#define GPULSE_SIM_STRICT_H

#include "sim/fault.h"

bool sim_is_strict(void);

/* True if a refused version word is no fault of the caller. */
bool sim_strict_has_versions(enum sim_function function);

/* Ends the process if it is strict, else returns. */
void sim_strict_refuse(enum sim_function function, const char *why);
/* Likewise because of a handle of a device, which was none. */
void sim_strict_refuse_handle(enum sim_function function, const void *handle);

#endif
