/* What differs from one driver branch to another: versions, symbols, field ids, retired calls. */
#ifndef GPULSE_SIM_BRANCH_H
#define GPULSE_SIM_BRANCH_H

#include "sim/fault.h"

struct gp_err;

/* A version of a driver that was published, with what belongs to it. */
struct sim_release {
    const char *driver;
    int cuda; /* 1000 * major + 10 * minor */
};

/* Finds the release that people mean by "470", "535.43" or "570.148.08": the first known one of
 * that beginning, or exactly the version given where it has three parts. *ret_driver points into
 * `wanted` or to the table. */
int sim_release_find(const char *wanted, const char **ret_driver, int *ret_cuda,
                     struct gp_err *err);

/* True if the driver is at least major.minor; {0} is a driver of unknown version, the newest. */
bool sim_driver_is(const unsigned int driver[3], unsigned int major, unsigned int minor);

/* Everything that a driver exports: the functions of sim_function in their order, then those that
 * no machine plays. */
struct sim_symbol {
    const char *name;
    unsigned int branch; /* that brought it; 440 and older are one */
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

/* Sets what the driver's library lacks. */
void sim_symbols_missing(const unsigned int driver[3], bool missing[SIM_SYMBOL_COUNT]);

enum { SIM_FIELD_LAST = 302 };

/* The newest number of the field that this driver means by `id`. */
unsigned int sim_field_newest(const unsigned int driver[3], unsigned int id);

/* Whether the driver's branch has the field of this newest number. A late release may have got one
 * of a later branch all the same. */
bool sim_field_known(const unsigned int driver[3], unsigned int newest);

/* Size of an entry of the process lists of version 1 to 3: _v3 had another layout in 535.43 to
 * 535.86. */
size_t sim_process_entry_size(const unsigned int driver[3], unsigned int version);

/* DEPRECATED if the driver does not answer the call any more, else success. */
nvmlReturn_t sim_retired(const unsigned int driver[3], const char *function);

#endif
