/* How the GPUs of a simulated machine stand to each other and to its processors.
 *
 * "topology": {"levels": ["PXB", "NODE", "SYS"], "cpus": ["0-51", "52-103"], "nodes": ["0", "1"],
 *              "p2p": "OK"}
 *
 * Two GPUs stand to each other at the level of their indices' XOR, less one; beyond the end of the
 * list at its last. The GPUs are spread evenly over the sockets, each with its processors and NUMA
 * nodes. "p2p" is what GPUs without NVLink between them can do, in nvidia-smi's letters. */
#ifndef GPULSE_SIM_TOPOLOGY_H
#define GPULSE_SIM_TOPOLOGY_H

#include "abi/nvml.h"
#include "base/arena.h"

#include <jansson.h>

struct gp_err;

enum { SIM_MAX_LEVELS = 64, SIM_MAX_SOCKETS = 16 };

struct sim_topology {
    size_t level_count; /* 0: the machine does not tell */
    nvmlGpuTopologyLevel_t levels[SIM_MAX_LEVELS];
    size_t cpu_count, node_count;
    const char *cpus[SIM_MAX_SOCKETS]; /* "0-51,104-155" */
    const char *nodes[SIM_MAX_SOCKETS];
    nvmlGpuP2PStatus_t p2p;
};

/* Reads the member "topology" of a machine; json may be NULL. GP_EFORMAT says what is wrong. */
int sim_topology_load(json_t *json, struct gp_arena *arena, struct sim_topology *ret,
                      struct gp_err *err);

/* The level between two GPUs. NOT_SUPPORTED if the machine does not tell. */
nvmlReturn_t sim_topology_level(const struct sim_topology *topology, unsigned int a, unsigned int b,
                                nvmlGpuTopologyLevel_t *ret);

/* Sets the bits of a list such as "0-51,104-155"; false if it is none, or has numbers from
 * `bits` on. mask may be NULL. */
bool sim_topology_mask(const char *list, size_t bits, unsigned long *mask);

#endif
