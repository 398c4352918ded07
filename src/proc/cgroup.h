/* What the control groups of a process allow it. */
#ifndef GP_PROC_CGROUP_H
#define GP_PROC_CGROUP_H

#include "base/util.h"

/* How many bytes of main memory the process can still take: what the machine has available and what
 * the limits of its groups, of version 1 or 2, leave it. What a group keeps of files that it has
 * read counts as free. root: prefix, NULL for none. 0 also where nothing can be read. */
uint64_t gp_cgroup_memory_room(const char *root, uint32_t pid);

/* What a group has of the memory of a device, and may have (controller dmem, since Linux 6.14). */
struct gp_cgroup_region {
    char group[256];  /* its path */
    char region[128]; /* the kernel's name of that memory, which has the PCI address in it */
    uint64_t current; /* bytes, as the next; UINT64_MAX: without a limit */
    uint64_t max;
};

struct gp_cgroup_regions {
    struct gp_cgroup_region *items;
    size_t count;
};

/* Adds those of the group in which the process is, or of the one above that limits it, unless they
 * are there already. Nothing where the kernel has none. GP_ENOMEM. */
int gp_cgroup_add_regions(const char *root, uint32_t pid,
                          struct gp_cgroup_regions *regions) GP_MUST_CHECK;
void gp_cgroup_regions_fini(struct gp_cgroup_regions *regions);

#endif
