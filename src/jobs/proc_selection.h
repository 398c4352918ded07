/* Selects processes on the GPUs: by a filter, by pids, by their command line, and those that are
 * idle. */
#ifndef GP_JOBS_PROC_SELECTION_H
#define GP_JOBS_PROC_SELECTION_H

#include "out/procs.h"
#include "sample/sampler.h"

struct gp_err;
struct gp_snapshot;

/* All conditions must hold. */
struct gp_proc_selection {
    const char *filter;   /* as in gp_procs_matches(); "": any process */
    const int64_t *named; /* pids; each must be there */
    size_t named_count;   /* 0: any process */
    const char *name;     /* a part of the command line; NULL: any */
    uint64_t idle_ns;     /* idle for this long, which is observed; 0: also busy ones */
    void (*progress)(uint64_t for_ns, uint64_t left_ns); /* as in gp_idle_observe() */
};

/* Adds what the sampler must collect for the conditions. */
void gp_proc_selection_want(const struct gp_proc_selection *selection, struct gp_want *want);

/* Takes a sample, or for idle processes as many as needed, and picks the matching rows, those with
 * the most memory first: free both, even after an error. GP_EFAIL: a named pid is not among them;
 * GP_ENODEV: no process matches the filter; GP_EPARTIAL: none matches, and a GPU cannot be read;
 * GP_ENOMEM; the errors of the sampler. */
int gp_proc_selection_find(const struct gp_proc_selection *selection, struct gp_sampler *sampler,
                           struct gp_snapshot **ret_snapshot, struct gp_procs *ret,
                           struct gp_err *err) GP_MUST_CHECK;

/* The error that no process in the snapshot matches a filter, GP_ENODEV. Says what may have been
 * meant: a small number is a GPU's, and names are misspelt. */
int gp_proc_selection_refuse(const char *filter, const struct gp_snapshot *snapshot,
                             struct gp_err *err) GP_MUST_CHECK;

#endif
