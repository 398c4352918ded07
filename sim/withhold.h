/* Removes symbols: the library of an older driver does not have all of them, and programs check
 * with dlsym. */
#ifndef GPULSE_SIM_WITHHOLD_H
#define GPULSE_SIM_WITHHOLD_H

#include "sim/machine.h"

/* Removes the symbols that the machine does not have from this library's table, for this
 * process. */
void sim_withhold(const struct sim_machine *machine);

#endif
