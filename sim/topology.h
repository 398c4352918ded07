/* The topology of the GPUs and CPUs of a simulated machine.
 *
 * "topology": {"levels": ["PXB", "NODE", "SYS"], "cpus": ["0-51", "52-103"], "nodes": ["0", "1"],
 *              "p2p": "OK"}
 *
 * The level between two GPUs is at the XOR of their indices minus one; beyond the end of the list,
 * the last one is used. The GPUs are distributed evenly over the sockets, each of which has its
 * CPUs and NUMA nodes. "p2p" is what GPUs without NVLink between them support, in nvidia-smi's
 * words. */
#ifndef GPULSE_SIM_TOPOLOGY_H
#define GPULSE_SIM_TOPOLOGY_H

#include "abi/nvml.h"
#include "base/arena.h"

#include <jansson.h>

struct gp_err;

enum { SIM_MAX_LEVELS = 64, SIM_MAX_SOCKETS = 16 };

struct sim_topology {
    size_t level_count; /* 0: not reported by the machine */
    nvmlGpuTopologyLevel_t levels[SIM_MAX_LEVELS];
    size_t cpu_count, node_count;
    const char *cpus[SIM_MAX_SOCKETS]; /* "0-51,104-155" */
    const char *nodes[SIM_MAX_SOCKETS];
    nvmlGpuP2PStatus_t p2p;
};

/* Loads the member "topology" of a machine; json may be NULL. GP_EFORMAT describes the error. */
int sim_topology_load(json_t *json, struct gp_arena *arena, struct sim_topology *ret,
                      struct gp_err *err);

/* The level between two GPUs. NOT_SUPPORTED if the machine does not report it. */
nvmlReturn_t sim_topology_level(const struct sim_topology *topology, unsigned int a, unsigned int b,
                                nvmlGpuTopologyLevel_t *ret);

/* Sets the bits of a list such as "0-51,104-155". False if it is not a list, or has numbers of
 * `bits` or more. mask may be NULL. */
bool sim_topology_mask(const char *list, size_t bits, unsigned long *mask);

#endif
