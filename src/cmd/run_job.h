/* A job: reserves GPUs and runs a command on them, once or several times. Shared by gpulse run and
 * gpulse fit-batch. */
#ifndef GP_CMD_RUN_JOB_H
#define GP_CMD_RUN_JOB_H

#include "cmd/job_request.h"

#include "jobs/child.h"
#include "jobs/guard.h"
#include "jobs/output.h"
#include "jobs/watch.h"
#include "proc/ending.h"

enum { GP_RUN_VARIABLES = 64 };

struct gp_run_plan {
    struct gp_job_options gpus;
    const char *name;    /* shown to those who wait for it; NULL: the command */
    uint64_t wait_ns;    /* for GPUs; 0: do not wait */
    uint64_t timeout_ns; /* of the command; 0: no limit */
    uint64_t limit_ns;   /* of the reservation, which ends with the command; 0: no limit */
    uint64_t sample_ns;  /* between two samples */
    struct gp_output_plan output;
    char *const *variables; /* "NAME=VALUE" in addition to those that name its GPUs, at most
                               GP_RUN_VARIABLES, NULL after the last one; NULL: none */
    bool quiet, no_clean, no_watch;
    bool is_detached; /* see struct gp_child */
    struct gp_watch_limits limits;
    /* Called for each sample, decides what happens to the command. NULL: not called. */
    enum gp_watch_order (*judge)(void *context, struct gp_watch *watch);
    void *context;
};

struct gp_run {
    const struct gp_run_plan *plan;
    struct gp_pick_request request;
    struct gp_sampler *sampler;
    struct gp_lease lease;
    struct gp_lease_note line, held; /* its place in the waiting line, and its reservation */
    struct gp_leases_kept kept;      /* while it waits */
    bool is_lease_lost;              /* its file was removed, and cannot be written again */
    char mask[GP_LEASE_GPUS * GP_LEASE_UUID_SIZE];        /* for CUDA_VISIBLE_DEVICES */
    char ids[GP_LEASE_GPUS * 8];                          /* as in -i */
    char place[GP_LEASE_GPUS * GP_LEASE_UUID_SIZE + 400]; /* for people */
    struct gp_guard guard;
    struct gp_ending others; /* children of this process that are not the job's */
    struct gp_child child;
    struct gp_watch watch;
    uint64_t looked_ns;
    bool is_lost; /* part of its output */
};

#define GP_RUN_INIT                                                                                \
    {                                                                                              \
        .line = {.fd = -1}, .held = {.fd = -1}, .guard = {-1, -1}, .child = {.pid = -1 }           \
    }

/* Reserves GPUs for a command of `argc` words. The plan must outlive the run. GP_EBUSY,
 * GP_EEXPIRED, GP_ENEVER: none are available; GP_EUSAGE; also the errors of opening the driver and
 * the leases. Must be closed whatever it returns. */
int gp_run_open(struct gp_run *run, const struct gp_run_plan *plan, char *const *argv, int argc,
                struct gp_err *err) GP_MUST_CHECK;

/* Runs the command until it exits, and terminates its leftover processes. Returns its exit status,
 * 124 if the time limit was reached, or 1 if it was stopped and still reported success. 126 and
 * 127, with child.pid below 0: it cannot be run, which was printed. Otherwise an error. */
int gp_run_once(struct gp_run *run, char *const *argv, struct gp_err *err) GP_MUST_CHECK;

/* Waits until its memory is freed, or reports that it was not: the next command must find the GPUs
 * as this one did. False if it was not. */
bool gp_run_await_memory(struct gp_run *run);

/* Releases the GPUs. */
void gp_run_close(struct gp_run *run);

#endif
