/* Gathers what the rules need, from the samples of an observation. */
#ifndef GP_WHY_GATHER_H
#define GP_WHY_GATHER_H

#include "source/source.h"
#include "why/case.h"

struct gp_err;
struct gp_why_gather;

/* What each sample must contain. */
struct gp_want gp_why_want(void);

/* root: prefix of /proc, NULL for none; must outlive the result. `sees_processes`: the processes of
 * the samples are in that /proc. pid: only GPUs that this process, an ancestor or a descendant of
 * it uses; 0: all. NULL without memory. */
struct gp_why_gather *gp_why_gather_new(const char *root, bool sees_processes,
                                        uint32_t pid) GP_MUST_CHECK;
void gp_why_gather_free(struct gp_why_gather *gather);

/* Adds a sample. GP_ENOMEM. */
int gp_why_gather_add(struct gp_why_gather *gather,
                      const struct gp_snapshot *snapshot) GP_MUST_CHECK;

/* The cases of GPUs that were used by a process, in the order of the GPUs; valid until the next
 * call. With a pid, only those of its job. */
const struct gp_why_case *gp_why_gather_cases(struct gp_why_gather *gather, size_t *ret_count);

#endif
