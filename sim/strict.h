/* GPULSE_SIM_STRICT=1: a call that would crash a real library, or is undefined, terminates the
 * process with a message. Tests can thereby prove that a program never makes one. */
#ifndef GPULSE_SIM_STRICT_H
#define GPULSE_SIM_STRICT_H

#include "sim/fault.h"

/* Whether a refused version word is not an error of the caller. */
bool sim_strict_has_versions(enum sim_function function);

/* Terminates the process in strict mode, otherwise returns. */
void sim_strict_refuse(enum sim_function function, const char *why);
/* Same for an invalid device handle. */
void sim_strict_refuse_handle(enum sim_function function, const void *handle);

#endif
