/* Apart from driver.h, which declares the played functions with their real parameters. */
#ifndef GPULSE_SIM_UNPLAYED_H
#define GPULSE_SIM_UNPLAYED_H

#include "abi/nvml.h"

/* NOT_SUPPORTED, or UNINITIALIZED, FUNCTION_NOT_FOUND, DEPRECATED where that is the matter. */
nvmlReturn_t sim_answer_unplayed(const char *function);

#endif
