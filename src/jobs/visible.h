/* Which GPUs a CUDA program sees: the rules of CUDA_VISIBLE_DEVICES as stated by the CUDA
 * programming guide and followed by the CUDA runtime. */
#ifndef GP_JOBS_VISIBLE_H
#define GP_JOBS_VISIBLE_H

#include "base/util.h"

struct gp_device;
struct gp_snapshot;

enum { GP_VISIBLE_MAX = 256 };

/* A GPU, in CUDA's order (by PCI address: CUDA_DEVICE_ORDER=PCI_BUS_ID). */
struct gp_visible_gpu {
    const char *uuid;        /* "GPU-…"; "" if unknown */
    bool is_partitioned;     /* in MIG mode: CUDA uses its instances instead of the GPU */
    const char *const *migs; /* UUIDs of its instances, "MIG-…" */
    size_t mig_count;
};

/* What a program sees as devices 0, 1, …. */
struct gp_visible_device {
    size_t gpu; /* which GPU */
    int mig;    /* which of its instances; −1: the whole GPU */
};

struct gp_visible {
    struct gp_visible_device devices[GP_VISIBLE_MAX];
    size_t count;
};

/* mask: the value of the variable, NULL if it is unset. */
void gp_visible_resolve(const char *mask, const struct gp_visible_gpu *gpus, size_t count,
                        struct gp_visible *ret);

/* The rows of a snapshot that a program sees with this mask, in its order, a GPU in MIG mode by its
 * instance; GPUs that do not respond are invisible. Returns their number, at most GP_VISIBLE_MAX; 0
 * also if out of memory. */
size_t gp_visible_rows(const struct gp_snapshot *snapshot, const char *mask,
                       const struct gp_device *rows[GP_VISIBLE_MAX]);

/* The number that CUDA gives a GPU with CUDA_DEVICE_ORDER=PCI_BUS_ID. −1 for one that must be named
 * by its UUID: an instance, or a GPU next to one that does not respond, because CUDA may or may not
 * count that one. */
int gp_visible_index(const struct gp_snapshot *snapshot, const struct gp_device *device);

#endif
