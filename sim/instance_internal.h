/* What the files of MIG instances share. */
#ifndef GPULSE_SIM_INSTANCE_INTERNAL_H
#define GPULSE_SIM_INSTANCE_INTERNAL_H

#include "sim/driver.h"
#include "sim/migprofile.h"
#include "sim/setting.h"

enum { SIM_COMPUTE_PROFILES = 5 };
extern const unsigned int sim_compute_slices[SIM_COMPUTE_PROFILES]; /* by index and id */

/* The instances of a GPU in the live state, a word each. */
struct sim_instance_words {
    atomic_ullong *gpu;
    atomic_ullong *compute;
};

struct sim_instance_words sim_instance_words(const struct sim_call *call);
struct sim_instance sim_instance_load(const atomic_ullong *word);
void sim_instance_store(atomic_ullong *word, struct sim_instance instance);
uint16_t sim_instance_serial(const struct sim_call *call);
atomic_ullong *sim_free_word(atomic_ullong *words);

/* The taken slices of the GPU. */
unsigned int sim_taken_places(const struct sim_device *gpu, struct sim_instance_words words);
unsigned int sim_slices_left(const struct sim_device *gpu, struct sim_instance_words words);

/* The number of instances of a profile. */
unsigned int sim_count_of_profile(struct sim_instance_words words,
                                  const struct sim_mig_profile *profile);

/* Where another instance would be placed next to `taken`; −1 if there is no room. */
int sim_place_for(const struct sim_device *gpu, const struct sim_mig_profile *profile,
                  unsigned int taken);

/* How many more instances would fit. */
unsigned int sim_instance_capacity(const struct sim_device *gpu, struct sim_instance_words words,
                                   const struct sim_mig_profile *profile);

/* Ids number the GPU, its halves, their halves and so on consecutively. */
unsigned int sim_first_gi(const struct sim_device *gpu, const struct sim_mig_profile *profile);
unsigned int sim_taken_slices(struct sim_instance_words words, unsigned int gi);

/* Each may start at multiples of the smallest power of two that is not less than its size. */
int sim_slice_for(unsigned int whole, unsigned int slices, unsigned int taken);
unsigned int sim_slices_capacity(unsigned int whole, unsigned int slices, unsigned int taken);
bool sim_begin_change(struct sim_call *call);
void sim_end_change(struct sim_call *call);
bool sim_ensure_live(struct sim_call *call);
nvmlGpuInstance_t sim_gpu_instance_handle(const struct sim_call *call,
                                          const struct sim_instance *gi);
nvmlComputeInstance_t sim_compute_instance_handle(const struct sim_call *call,
                                                  const struct sim_instance *ci);
nvmlDevice_t sim_instance_device(uint64_t bits);

/* Starts a call on a GPU in MIG mode; the caller must be root if the call requires it. */
nvmlReturn_t sim_enter_mig_gpu(struct sim_call *call, enum sim_function function,
                               nvmlDevice_t device, bool args_ok, bool needs_mode, bool needs_root);
nvmlReturn_t sim_enter_gpu_instance(struct sim_call *call, enum sim_function function,
                                    nvmlGpuInstance_t handle, bool args_ok, bool needs_root,
                                    atomic_ullong **ret_word);
nvmlReturn_t sim_enter_compute_instance(struct sim_call *call, enum sim_function function,
                                        nvmlComputeInstance_t handle, bool args_ok, bool needs_root,
                                        atomic_ullong **ret_word);

/* Starts changing an instance, which may have disappeared since the call started. */
nvmlReturn_t sim_begin_instance_change(struct sim_call *call, const atomic_ullong *word,
                                       const void *handle);

#endif
