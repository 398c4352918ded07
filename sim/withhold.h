/* A library of an older driver lacks symbols, and programs ask for them with dlsym. */
#ifndef GPULSE_SIM_WITHHOLD_H
#define GPULSE_SIM_WITHHOLD_H

#include "sim/machine.h"

/* Takes the symbols that the machine lacks out of this library's table, for this process. */
void sim_withhold(const struct sim_machine *machine);

#endif
