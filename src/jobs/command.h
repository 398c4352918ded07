/* A command as gpulse run runs it: recorded, run again after failures, and with an explanation of
 * its failures. */
#ifndef GP_JOBS_COMMAND_H
#define GP_JOBS_COMMAND_H

#include "jobs/run.h"
#include "jobs/tail.h"

struct gp_command_plan {
    struct gp_run_plan run;
    uint64_t retries;      /* how often a command that failed is run again */
    bool retries_any;      /* after any failure; otherwise only if it ran out of GPU memory */
    bool no_record;        /* keep no record */
    bool keep_output;      /* record its output, too */
    const char *directory; /* of the record; NULL: see gp_record_open() */
};

/* Large: make it static, or allocate it. */
struct gp_command {
    struct gp_run run;
    struct gp_tail tail;
    struct gp_output_log log;
};

/* Runs the command on the GPUs that its run has reserved, with plan->run as the run's plan, whose
 * output it completes. Returns as gp_run_once(), after the last try; GP_EIO: the given directory
 * cannot be used. */
int gp_command_run(struct gp_command *command, struct gp_command_plan *plan, char *const *argv,
                   struct gp_err *err) GP_MUST_CHECK;

#endif
