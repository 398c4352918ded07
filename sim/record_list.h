/* The process lists of a device, for the recorder. */
#ifndef GPULSE_SIM_RECORD_LIST_H
#define GPULSE_SIM_RECORD_LIST_H

#include "sim/record.h"

enum rec_list { REC_COMPUTE, REC_GRAPHICS, REC_MPS, REC_LISTS };

/* Prepares the call that reads a list; false if the driver does not have it. */
bool rec_list_ask(const struct rec_api *api, const unsigned int driver[3], enum rec_list list,
                  struct rec_call *call);

/* An entry of the result, without type and name. */
struct sim_process rec_list_entry(const struct rec_call *call, unsigned int index);

/* Reads the utilization of processes: entries are nvmlProcessUtilizationSample_t. */
nvmlReturn_t rec_ask_utilization(struct rec_call *call);

#endif
