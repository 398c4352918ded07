/* A job: GPUs that are kept for it, and a command that is run on them, once or several times. What
 * gpulse run and gpulse fit-batch have in common. */
#ifndef GP_CMD_RUN_JOB_H
#define GP_CMD_RUN_JOB_H

#include "cmd/job_request.h"
#include "cmd/run_watch.h"

#include "jobs/child.h"
#include "jobs/guard.h"
#include "jobs/output.h"
#include "proc/ending.h"

enum { GP_RUN_VARIABLES = 64 };

struct gp_run_plan {
    struct gp_job_options gpus;
    const char *name;    /* for those who wait for it; NULL: its command */
    uint64_t wait_ns;    /* for the GPUs; 0: not at all */
    uint64_t timeout_ns; /* of the command; 0: none */
    uint64_t sample_ns;  /* between two looks */
    struct gp_output_plan output;
    char *const *variables; /* "NAME=VALUE" besides those that name its GPUs, at most
                               GP_RUN_VARIABLES, NULL behind the last; NULL: none */
    bool quiet, no_clean, no_watch;
    bool is_detached; /* see struct gp_child */
    struct gp_watch_limits limits;
    /* Asked at each look what is to become of the command. NULL: nobody is. */
    enum gp_watch_order (*judge)(void *context, struct gp_watch *watch);
    void *context;
};

struct gp_run {
    const struct gp_run_plan *plan;
    struct gp_pick_request request;
    struct gp_sampler *sampler;
    struct gp_lease lease;
    struct gp_lease_note line, held; /* its place among those who wait, and what it was given */
    char mask[GP_LEASE_GPUS * GP_LEASE_UUID_SIZE]; /* for CUDA_VISIBLE_DEVICES */
    struct gp_guard guard;
    struct gp_ending others; /* children that are not the job's */
    struct gp_child child;
    struct gp_watch watch;
    uint64_t looked_ns;
    bool is_lost; /* something that it printed */
};

#define GP_RUN_INIT                                                                                \
    {                                                                                              \
        .line = {.fd = -1}, .held = {.fd = -1}, .guard = {-1, -1}, .child = {.pid = -1 }           \
    }

/* Takes the GPUs, for a command of `argc` words. The plan must outlive the run. GP_EBUSY,
 * GP_EEXPIRED, GP_ENEVER: there are none; GP_EUSAGE, and what opening the driver and the leases
 * can answer. To be closed whatever it returns. */
int gp_run_open(struct gp_run *run, const struct gp_run_plan *plan, char *const *argv, int argc,
                struct gp_err *err) GP_MUST_CHECK;

/* Runs it to its end, and ends what it leaves behind: its exit status, 124 if its time was over, or
 * 1 if it was ended and says that all is well. 126, 127, with child.pid below 0: it cannot be run,
 * which was said. Errors else. */
int gp_run_once(struct gp_run *run, char *const *argv, struct gp_err *err) GP_MUST_CHECK;

/* Waits until its memory has come back, or says that it has not: the next one is to find the GPUs
 * as this one did. False if it has not. */
bool gp_run_await_memory(struct gp_run *run);

/* Gives the GPUs back. */
void gp_run_close(struct gp_run *run);

#endif
