/* Terminates processes that use GPUs, the mildest signal first, and waits until the driver has
 * freed their memory. */
#ifndef GP_JOBS_TERMINATE_H
#define GP_JOBS_TERMINATE_H

#include "out/procs.h"
#include "proc/ending.h"
#include "proc/proc.h"
#include "sample/sampler.h"

struct gp_err;
struct gp_snapshot;
struct gp_strbuf;

struct gp_terminate_plan {
    bool dry_run;      /* only choose */
    bool tree;         /* also their child processes */
    int first_signal;  /* SIGINT, SIGTERM or SIGKILL; 0: SIGINT */
    uint64_t grace_ns; /* how long to wait after each signal; 0: 10 s */
    uint64_t wait_ns;  /* for their memory; 0: 30 s */
    /* Called for a process that must not be or cannot be terminated. NULL: not called. */
    void (*on_skipped)(void *context, const char *why);
    /* Called before each signal with the number of running processes. NULL: not called. */
    void (*on_signal)(void *context, int signal, size_t left);
    void *context;
};

struct gp_terminate {
    const struct gp_terminate_plan *plan;
    struct gp_sampler *sampler;
    const struct gp_snapshot *before;
    struct gp_snapshot *after; /* NULL: there is none */
    struct gp_procs rows;      /* the processes on GPUs, then children that use a GPU themselves */
    struct gp_proc_reader *reader;
    const struct gp_proc_infos *children; /* of all child processes; NULL without `tree` */
    struct gp_ending ending;              /* all processes, with what became of them */
    bool only_shows;                      /* a dry run, or all processes are simulated */
    bool is_freed;                        /* their memory */
};

/* What the sampler must collect. */
struct gp_want gp_terminate_want(void);

/* Takes hold of the processes of these rows, which are in the snapshot or have one of its GPUs
 * open; those in `named` (count of them) were given by pid. The plan, the snapshot, the rows' texts
 * and the sampler, which took the snapshot, must outlive it. If all processes are simulated, it
 * only shows what would happen, so that commands can be tried. GP_EPERM, GP_EFAIL: none can be
 * terminated; GP_ENODEV: there are no rows; GP_ENOMEM. Needs gp_terminate_fini() whatever it
 * returns. */
int gp_terminate_choose(struct gp_terminate *job, const struct gp_terminate_plan *plan,
                        struct gp_sampler *sampler, const struct gp_snapshot *snapshot,
                        const struct gp_procs *procs, const int64_t *named, size_t named_count,
                        struct gp_err *err) GP_MUST_CHECK;

/* Why nothing is to be terminated, for a message in parentheses: "--dry-run", or that simulated
 * processes get no signal. NULL: gp_terminate_run() may be called. */
const char *gp_terminate_why_not(const struct gp_terminate *job);

/* Terminates them. GP_EFAIL if some still run, or if their memory was not freed; the results are
 * complete anyway. */
int gp_terminate_run(struct gp_terminate *job, struct gp_err *err) GP_MUST_CHECK;

/* Lists the processes that it will terminate, children last. The rows point into `job`;
 * gp_procs_fini() frees the list. GP_ENOMEM. */
int gp_terminate_list(const struct gp_terminate *job, struct gp_procs *ret) GP_MUST_CHECK;

/* "SIGINT": the name of a signal that it sends; "nothing" for 0. */
const char *gp_terminate_signal_name(int signal);

/* Appends what became of each process, and of the memory of each GPU that they used. */
void gp_terminate_add_result(struct gp_strbuf *sb, const struct gp_terminate *job);

void gp_terminate_fini(struct gp_terminate *job);

#endif
