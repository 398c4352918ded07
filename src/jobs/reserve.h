/* Reserves GPUs for this process, and waits in line for them if it must. The reservation ends with
 * the process, however that ends. */
#ifndef GP_JOBS_RESERVE_H
#define GP_JOBS_RESERVE_H

#include "jobs/request.h"

enum {
    GP_RESERVE_PLACE_SIZE = GP_LEASE_GPUS * GP_LEASE_UUID_SIZE + 400,
    GP_RESERVE_WHY_SIZE = GP_RESERVE_PLACE_SIZE + 500,
};

struct gp_reserve_plan {
    struct gp_pick_request request;
    bool ignore_mask;  /* also GPUs that CUDA_VISIBLE_DEVICES hides */
    bool uuid;         /* name GPUs by their UUIDs in the mask */
    const char *name;  /* shown to those who wait for it; NULL: the command */
    uint64_t wait_ns;  /* for GPUs; 0: do not wait */
    uint64_t limit_ns; /* of the reservation; 0: no limit */
    /* Called when the reason changes for which it waits: a clause. NULL: not called. */
    void (*on_wait)(void *context, const char *why);
    /* Called for each reserved GPU; the device is valid only during the call. NULL: not called. */
    void (*on_grant)(void *context, const struct gp_device *device);
    /* Whether to give up waiting, asked at least every 2 s. NULL: not called. */
    bool (*is_cancelled)(void *context);
    void *context;
};

struct gp_reserve {
    const struct gp_reserve_plan *plan;
    struct gp_pick_request request;
    struct gp_sampler *sampler; /* of the caller */
    struct gp_lease lease;
    struct gp_lease_note line, held; /* its place in the waiting line, and its reservation */
    struct gp_leases_kept kept;      /* while it waits */
    bool is_lost;                    /* its file was removed, and cannot be written again */
    bool was_removed; /* its file, and a rival may have reserved the GPUs before it was restored */
    char mask[GP_LEASE_GPUS * GP_LEASE_UUID_SIZE]; /* for CUDA_VISIBLE_DEVICES */
    char ids[GP_LEASE_GPUS * 8];                   /* as in -i */
    char place[GP_RESERVE_PLACE_SIZE];             /* for people */
};

/* A zeroed object: it has no reservation. */
void gp_reserve_init(struct gp_reserve *gpus);

/* Reserves GPUs for a command of `argc` words, which others see. The plan and the sampler, which
 * collects what gp_job_want() says, must outlive it. GP_EBUSY, GP_EEXPIRED, GP_ENEVER: none are
 * available; GP_EINTR: it was cancelled; also the errors of gp_job_decide(), the sampler and the
 * leases. Must be closed whatever it returns. */
int gp_reserve_open(struct gp_reserve *gpus, const struct gp_reserve_plan *plan,
                    struct gp_sampler *sampler, char *const *argv, int argc,
                    struct gp_err *err) GP_MUST_CHECK;

/* Fills mask, ids and place with the chosen GPUs, and calls plan->on_grant for each;
 * gp_reserve_open() does that. Fails with GP_ENOMEM. */
int gp_reserve_note(struct gp_reserve *gpus, const struct gp_snapshot *snapshot,
                    const struct gp_pick *pick, struct gp_err *err) GP_MUST_CHECK;

/* Restores the reservation if its file was removed; to be called about once a second. False, with
 * the reason, while it cannot be restored, or while somebody else has the same GPU reserved. */
bool gp_reserve_keep(struct gp_reserve *gpus, char why[GP_RESERVE_WHY_SIZE]) GP_MUST_CHECK;

/* Releases the GPUs. */
void gp_reserve_close(struct gp_reserve *gpus);

#endif
