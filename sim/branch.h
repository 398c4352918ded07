/* The differences between driver branches: versions, symbols, field ids, removed calls. */
#ifndef GPULSE_SIM_BRANCH_H
#define GPULSE_SIM_BRANCH_H

#include "sim/fault.h"

struct gp_err;

/* A published driver version and the versions of its parts. */
struct sim_release {
    const char *driver;
    int cuda; /* 1000 * major + 10 * minor */
};

/* Finds the release for "470", "535.43" or "570.148.08": the first known one with that prefix, or
 * exactly the given version if it has three parts. *ret_driver points into `wanted` or into the
 * table. */
int sim_release_find(const char *wanted, const char **ret_driver, int *ret_cuda,
                     struct gp_err *err);

/* Whether the driver is at least major.minor; {0} is a driver of unknown version, treated as the
 * newest. */
bool sim_driver_is(const unsigned int driver[3], unsigned int major, unsigned int minor);

/* Everything that a driver exports: the functions of sim_function in order, then those that are not
 * simulated. */
struct sim_symbol {
    const char *name;
    unsigned int branch; /* the first branch that has it; 440 stands for all older ones */
};
enum {
    SIM_UNPLAYED_COUNT = 0
#define SIM_UNPLAYED(branch, function) +1
#include "sim/unplayed.def"
#undef SIM_UNPLAYED
    ,
    SIM_SYMBOL_COUNT = SIM_FN_COUNT + SIM_UNPLAYED_COUNT
};
extern const struct sim_symbol sim_symbols[SIM_SYMBOL_COUNT];

/* Marks the symbols that the driver's library does not have. */
void sim_symbols_missing(const unsigned int driver[3], bool missing[SIM_SYMBOL_COUNT]);

enum { SIM_FIELD_LAST = 302 };

/* The newest id of the field that has the id `id` in this driver. */
unsigned int sim_field_newest(const unsigned int driver[3], unsigned int id);

/* Whether the driver's branch has the field with this newest id. A late release may still have a
 * field of a later branch. */
bool sim_field_known(const unsigned int driver[3], unsigned int newest);

/* Size of an entry of the process lists, versions 1 to 3: _v3 had another layout in 535.43 to
 * 535.86. */
size_t sim_process_entry_size(const unsigned int driver[3], unsigned int version);

/* DEPRECATED if the driver no longer supports the call, otherwise success. */
nvmlReturn_t sim_retired(const unsigned int driver[3], const char *function);

#endif
