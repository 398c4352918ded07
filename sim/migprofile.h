/* How a GPU can be partitioned: the profiles of GPU instances that A100, H100, H200 and B200 have
 * in common, seven slices of computing and eight of memory. */
#ifndef GPULSE_SIM_MIGPROFILE_H
#define GPULSE_SIM_MIGPROFILE_H

#include "sim/live.h"

struct sim_mig_profile {
    unsigned int index; /* by which a client asks for it */
    unsigned int id;    /* by which it creates one */
    unsigned int slices;
    unsigned int eighths; /* of the memory */
    unsigned int most;    /* on an empty GPU */
    unsigned int size;    /* of its placement, in eighths */
    unsigned int starts;  /* bit mask of where it may begin */
    const char *suffix;
};

enum { SIM_MIG_PROFILES = 7 };
extern const struct sim_mig_profile sim_mig_profiles[SIM_MIG_PROFILES];

/* NULL if there is none of this index, of this id. */
const struct sim_mig_profile *sim_mig_profile_at(unsigned int index);
const struct sim_mig_profile *sim_mig_profile_by_id(unsigned int id);
/* The profile of a live GPU instance; NULL if there is no such instance. */
const struct sim_mig_profile *sim_mig_profile_of_instance(const struct sim_live *live,
                                                          const struct sim_device *gpu,
                                                          unsigned int gi);
/* The profile that a MIG device of the file must be of. */
const struct sim_mig_profile *sim_mig_profile_of_device(const struct sim_device *mig);

/* "1g.10gb" */
void sim_mig_profile_name(const struct sim_device *gpu, const struct sim_mig_profile *profile,
                          char *out, size_t size);
uint64_t sim_mig_profile_mib(const struct sim_device *gpu, const struct sim_mig_profile *profile);
unsigned int sim_mig_multiprocessors(const struct sim_device *gpu, unsigned int slices);

#endif
