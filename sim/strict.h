/* GPULSE_SIM_STRICT=1: what a real library answers with a crash, or not at all, ends the process
 * with a message. So a test shows that a program never does it. */
#ifndef GPULSE_SIM_STRICT_H
#define GPULSE_SIM_STRICT_H

#include "sim/fault.h"

bool sim_is_strict(void);

/* Ends the process if it is strict, else returns. */
void sim_strict_refuse(enum sim_function function, const char *why);

#endif
