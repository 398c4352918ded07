/* The files that the kernel and the distribution of a simulated machine would have, below a
 * directory in the private directory of the simulator's state: what "host" of the machine file
 * says, kept up to date. gpulse reads them as those of any root.
 *
 * All processes of a user that simulate the same machine share the directory, and write the same
 * into it: contents depend on the machine file and the time. A real process that uses a simulated
 * GPU is a link to its directory in /proc, and so are its parents. */
#ifndef GPULSE_SIM_HOSTTREE_H
#define GPULSE_SIM_HOSTTREE_H

#include "base/io.h"
#include "sim/live.h"

struct gp_err;
struct sim_hosttree;

/* Opens the directory of a machine that has a host, and makes it if there is none. `live` must
 * outlive it. */
int sim_hosttree_open(const char *spec, const struct sim_live *live, struct sim_hosttree **ret,
                      struct gp_err *err);
void sim_hosttree_close(struct sim_hosttree *tree);

const char *sim_hosttree_path(const struct sim_hosttree *tree);

/* Writes what is missing or of another machine file, and what moves. */
int sim_hosttree_update(struct sim_hosttree *tree, struct gp_err *err);

/* Opens the device file of a GPU, as a program that uses it does. Returns a descriptor, or −1. */
int sim_hosttree_open_device(const struct sim_hosttree *tree, const struct sim_device *device);

/* Brings up to date what moves, unless that was done a moment ago. Callable by any thread; NULL is
 * allowed. */
void sim_hosttree_refresh(struct sim_hosttree *tree);

/* Makes sure that these processes are there: the driver is about to list them, and they may have
 * just started. Otherwise like sim_hosttree_refresh(). */
void sim_hosttree_show(struct sim_hosttree *tree, const struct sim_process *processes,
                       size_t count);

#endif
