/* Which GPUs a CUDA program sees: the rules of CUDA_VISIBLE_DEVICES, as the CUDA programming guide
 * states them and the CUDA runtime keeps them. */
#ifndef GP_JOBS_VISIBLE_H
#define GP_JOBS_VISIBLE_H

#include "base/util.h"

struct gp_device;
struct gp_snapshot;

enum { GP_VISIBLE_MAX = 256 };

/* A GPU, in CUDA's order (by PCI address: CUDA_DEVICE_ORDER=PCI_BUS_ID). */
struct gp_visible_gpu {
    const char *uuid;        /* "GPU-…"; "" where it is not known */
    bool is_partitioned;     /* in MIG mode: CUDA takes instances of it, and not the GPU */
    const char *const *migs; /* UUIDs of its instances, "MIG-…" */
    size_t mig_count;
};

/* What a program sees as device 0, 1, …. */
struct gp_visible_device {
    size_t gpu; /* which of those above */
    int mig;    /* which of its instances; −1: the whole GPU */
};

struct gp_visible {
    struct gp_visible_device devices[GP_VISIBLE_MAX];
    size_t count;
};

/* mask: the variable's value, NULL if it is not set. */
void gp_visible_resolve(const char *mask, const struct gp_visible_gpu *gpus, size_t count,
                        struct gp_visible *ret);

/* The rows of a snapshot that a program sees with this mask, those in MIG mode by an instance, in
 * its order; GPUs that do not answer are not there for it. Returns how many, GP_VISIBLE_MAX at
 * most. 0 also without memory. */
size_t gp_visible_rows(const struct gp_snapshot *snapshot, const char *mask,
                       const struct gp_device *rows[GP_VISIBLE_MAX]);

/* The number that CUDA gives a GPU with CUDA_DEVICE_ORDER=PCI_BUS_ID. −1 for what is to be named by
 * its UUID: an instance, or a GPU beside one that does not answer, of which nobody knows whether
 * CUDA counts it. */
int gp_visible_index(const struct gp_snapshot *snapshot, const struct gp_device *device);

#endif
