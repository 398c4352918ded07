/* Gathers what the rules need, from the samples of an observation. */
#ifndef GP_WHY_GATHER_H
#define GP_WHY_GATHER_H

#include "source/source.h"
#include "why/case.h"

struct gp_err;
struct gp_why_gather;

/* The jobs that are looked at: those with this process or one that comes from it, or with a process
 * that the filter, as in gp_procs_matches(), matches. Zero: all. */
struct gp_why_asked {
    uint32_t pid;       /* 0: none */
    const char *filter; /* NULL: none; must outlive the gatherer */
};

/* What each sample must contain. */
struct gp_want gp_why_want(void);

/* root: prefix of /proc, NULL for none; must outlive the result. `sees_processes`: the processes of
 * the samples are in that /proc. NULL without memory. */
struct gp_why_gather *gp_why_gather_new(const char *root, bool sees_processes,
                                        struct gp_why_asked asked) GP_MUST_CHECK;
void gp_why_gather_free(struct gp_why_gather *gather);

/* Adds a sample. GP_ENOMEM. */
int gp_why_gather_add(struct gp_why_gather *gather,
                      const struct gp_snapshot *snapshot) GP_MUST_CHECK;

/* The cases of GPUs that were used by a process: first the GPUs that have failed, then the others.
 * Only those of the jobs that were asked for; if none were, also failed GPUs without a process.
 * Valid until the next call. */
const struct gp_why_case *gp_why_gather_cases(struct gp_why_gather *gather, size_t *ret_count);

#endif
