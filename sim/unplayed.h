/* Separate from driver.h, which declares the simulated functions with their real parameters. */
#ifndef GPULSE_SIM_UNPLAYED_H
#define GPULSE_SIM_UNPLAYED_H

#include "abi/nvml.h"

/* Returns NOT_SUPPORTED or, if applicable, UNINITIALIZED, FUNCTION_NOT_FOUND or DEPRECATED. */
nvmlReturn_t sim_answer_unplayed(const char *function);

#endif
