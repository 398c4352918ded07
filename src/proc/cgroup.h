/* The limits of a process's control groups. */
#ifndef GP_PROC_CGROUP_H
#define GP_PROC_CGROUP_H

#include "base/util.h"

/* How many bytes of host memory the process can still allocate: the machine's available memory, and
 * the limits of its groups (version 1 or 2). The file cache of a group counts as free. root:
 * prefix, NULL for none. UINT64_MAX: nothing can be read. */
uint64_t gp_cgroup_memory_room(const char *root, uint32_t pid);

/* How many CPUs the quotas of its groups (version 1 or 2) let the process keep busy, such as 2.5.
 * 0: there is none, or it is unknown. */
double gp_cgroup_cpus(const char *root, uint32_t pid);

/* A group's usage and limit of device memory (controller dmem, since Linux 6.14). */
struct gp_cgroup_region {
    char group[256];  /* its path */
    char region[128]; /* the kernel's name of the memory, which contains the PCI address */
    uint64_t current; /* bytes, like the next; UINT64_MAX: no limit */
    uint64_t max;
};

struct gp_cgroup_regions {
    struct gp_cgroup_region *items;
    size_t count;
};

/* Adds the regions of the process's group, or of the ancestor group that limits it, unless they are
 * already there. Adds nothing if the kernel does not have the controller. Fails with GP_ENOMEM. */
int gp_cgroup_add_regions(const char *root, uint32_t pid,
                          struct gp_cgroup_regions *regions) GP_MUST_CHECK;
void gp_cgroup_regions_fini(struct gp_cgroup_regions *regions);

#endif
