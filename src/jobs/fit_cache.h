/* Results of earlier gpulse fit-batch trials, reused when the same search is run again: in
 * $XDG_CACHE_HOME/gpulse/fit or ~/.cache/gpulse/fit. An interrupted search continues where it
 * stopped. */
#ifndef GP_JOBS_FIT_CACHE_H
#define GP_JOBS_FIT_CACHE_H

#include "base/io.h"
#include "jobs/fit.h"

struct gp_fit_cache {
    char path[GP_PATH_SIZE]; /* "": not cached */
    char key[16384];         /* everything that must match: command, files in it, directory, GPU,
                                limits */
    char confirm[32];        /* and, for a confirming run, its length */
};

/* Sets up the cache entry for a command of `count` words; `more` is what else the trials depend on,
 * and `confirm` describes the confirming run. */
void gp_fit_cache_open(struct gp_fit_cache *cache, const struct gp_fit *fit, char *const *words,
                       size_t count, const char *more, const char *confirm);

/* Loads earlier results, as far as the search would try the same sizes again; returns how many. */
size_t gp_fit_cache_replay(const struct gp_fit_cache *cache, struct gp_fit *fit);

/* Saves the trials before the first one that hung or whose memory grew: the next search repeats
 * those. Write errors are ignored. */
void gp_fit_cache_write(const struct gp_fit_cache *cache, const struct gp_fit *fit);

#endif
