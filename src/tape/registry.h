/* The numbers that GPUs, MIG instances and processes have in a recording. */
#ifndef GP_TAPE_REGISTRY_H
#define GP_TAPE_REGISTRY_H

#include "tape/store.h"

struct gp_device;
struct gp_err;
struct gp_process;
struct gp_snapshot;

struct gp_registry_gpu {
    char uuid[96]; /* or "GPU 3" while that is unknown */
    uint64_t id;
};

struct gp_registry_process {
    uint64_t start_ns; /* 0: unknown */
    uint32_t pid;
    uint32_t round; /* when it was listed last */
    uint64_t id;
};

struct gp_registry {
    struct gp_registry_gpu *gpus;
    size_t gpu_count;
    struct gp_registry_process *processes; /* an open hash table */
    size_t process_count, process_room;
    uint32_t round;
    uint64_t next_gpu, next_process;
    /* of the last sample, in the order of the snapshot */
    uint64_t *device_ids, *process_ids;
    size_t device_room, id_room;
};

/* Called with each that is new. A negative result is passed on. */
struct gp_registry_news {
    int (*on_gpu)(void *ctx, uint64_t id, const char *uuid, const struct gp_device *device);
    int (*on_process)(void *ctx, uint64_t id, const struct gp_process *process, uint32_t pid,
                      uint64_t start_ns);
    void *ctx;
};

/* Goes on with those in the file: its GPUs and, if the machine was not rebooted since, the
 * processes that had not ended. */
int gp_registry_load(struct gp_registry *registry, struct gp_store *store, bool is_same_boot,
                     struct gp_err *err) GP_MUST_CHECK;
void gp_registry_fini(struct gp_registry *registry);

/* Finds the numbers of all devices and processes of a snapshot. GP_ENOMEM. */
int gp_registry_take(struct gp_registry *registry, const struct gp_snapshot *snapshot,
                     const struct gp_registry_news *news) GP_MUST_CHECK;

/* Forgets the processes: each gets a new number. */
void gp_registry_forget(struct gp_registry *registry);

#endif
