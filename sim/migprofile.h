/* How a GPU can be partitioned: the profiles of its GPU instances, from the list "mig_profiles" of
 * its machine file, else those that A100, H100 and their like have in common. */
#ifndef GPULSE_SIM_MIGPROFILE_H
#define GPULSE_SIM_MIGPROFILE_H

#include "sim/live.h"

struct sim_mig_profile {
    unsigned int row;   /* in the list */
    unsigned int index; /* by which a client asks for it */
    unsigned int id;    /* by which it creates one */
    unsigned int slices;
    unsigned int most;   /* on an empty GPU */
    unsigned int size;   /* of its placement */
    unsigned int starts; /* bit mask of where it may begin */
    uint64_t memory_mib;
    unsigned int multiprocessors;
    unsigned int copy_engines, decoders, encoders, jpeg_engines, ofa_engines;
    bool p2p;
    char name[32]; /* "1g.10gb+me" */
};

size_t sim_mig_profile_count(const struct sim_device *gpu);
/* By its place in the list. */
struct sim_mig_profile sim_mig_profile(const struct sim_device *gpu, size_t row);

/* False if the GPU has none of that number. */
bool sim_mig_profile_at(const struct sim_device *gpu, unsigned int index,
                        struct sim_mig_profile *ret);
bool sim_mig_profile_by_id(const struct sim_device *gpu, unsigned int id,
                           struct sim_mig_profile *ret);
/* Of a live GPU instance; false if it is gone. */
bool sim_mig_profile_of_instance(const struct sim_live *live, const struct sim_device *gpu,
                                 unsigned int gi, struct sim_mig_profile *ret);
/* Of the GPU instance around a MIG device of the file. */
struct sim_mig_profile sim_mig_profile_of_device(const struct sim_device *mig);

/* The whole GPU: its slices, and the places on it. */
unsigned int sim_mig_slices(const struct sim_device *gpu);
unsigned int sim_mig_places(const struct sim_device *gpu);

/* Of a compute instance with so many slices of it. */
unsigned int sim_mig_multiprocessors(const struct sim_device *gpu,
                                     const struct sim_mig_profile *profile, unsigned int slices);

/* A part of a whole: how many places it takes, and a bit for each where it may begin. */
struct sim_part {
    unsigned int size, starts;
};

/* Where one more of parts[which] is put, beside those that have taken places: where it leaves most
 * to the others, as real drivers do. −1 if there is no room. */
int sim_part_place(const struct sim_part *parts, size_t count, size_t which, unsigned int taken);

#endif
