/* The profiles of GPU instances: from the list "mig_profiles" of the machine file, otherwise the
 * common ones of A100, H100 and similar GPUs. */
#ifndef GPULSE_SIM_MIGPROFILE_H
#define GPULSE_SIM_MIGPROFILE_H

#include "sim/live.h"

struct sim_mig_profile {
    unsigned int row;   /* in the list */
    unsigned int index; /* used by clients to query it */
    unsigned int id;    /* used by clients to create an instance */
    unsigned int slices;
    unsigned int most;   /* on an empty GPU */
    unsigned int size;   /* of its placement */
    unsigned int starts; /* bit mask of possible start slices */
    uint64_t memory_mib;
    unsigned int multiprocessors;
    unsigned int copy_engines, decoders, encoders, jpeg_engines, ofa_engines;
    bool p2p;
    char name[32]; /* "1g.10gb+me" */
};

size_t sim_mig_profile_count(const struct sim_device *gpu);
/* By its position in the list. */
struct sim_mig_profile sim_mig_profile(const struct sim_device *gpu, size_t row);

/* False if the GPU has no profile with this id. */
bool sim_mig_profile_at(const struct sim_device *gpu, unsigned int index,
                        struct sim_mig_profile *ret);
bool sim_mig_profile_by_id(const struct sim_device *gpu, unsigned int id,
                           struct sim_mig_profile *ret);
/* The profile of a live GPU instance; false if it is gone. */
bool sim_mig_profile_of_instance(const struct sim_live *live, const struct sim_device *gpu,
                                 unsigned int gi, struct sim_mig_profile *ret);
/* The profile of the GPU instance that contains a MIG device of the file. */
struct sim_mig_profile sim_mig_profile_of_device(const struct sim_device *mig);

/* The whole GPU: its compute slices and memory slices. */
unsigned int sim_mig_slices(const struct sim_device *gpu);
unsigned int sim_mig_places(const struct sim_device *gpu);

/* Multiprocessors of a compute instance with this many slices. */
unsigned int sim_mig_multiprocessors(const struct sim_device *gpu,
                                     const struct sim_mig_profile *profile, unsigned int slices);

/* A part of a whole: its length, and a bit for each possible start. */
struct sim_part {
    unsigned int size, starts;
};

/* Where to place another parts[which] next to the taken places: where it leaves the most room for
 * others, like real drivers do. −1 if there is no room. */
int sim_part_place(const struct sim_part *parts, size_t count, size_t which, unsigned int taken);

#endif
