/* What trials of gpulse fit-batch have shown, kept for the next time the same is asked: in
 * $XDG_CACHE_HOME/gpulse/fit or ~/.cache/gpulse/fit. Also a search that was interrupted goes on
 * where it was. */
#ifndef GP_CMD_FIT_CACHE_H
#define GP_CMD_FIT_CACHE_H

#include "base/io.h"
#include "jobs/fit.h"

struct gp_fit_cache {
    char path[GP_PATH_SIZE]; /* "": nothing is kept */
    char key[16384];         /* what must be the same: command, files in it, folder, GPU, bounds */
    char confirm[32];        /* and for a confirming run: how long it is */
};

/* Finds the place for a command of `count` words; `more` is what else the trials depend on, and
 * `confirm` what a confirming run does. */
void gp_fit_cache_open(struct gp_fit_cache *cache, const struct gp_fit *fit, char *const *words,
                       size_t count, const char *more, const char *confirm);

/* Takes what is kept, as far as the search would try the same sizes again; how many trials. */
size_t gp_fit_cache_replay(const struct gp_fit_cache *cache, struct gp_fit *fit);

/* Keeps the trials up to the first that hung or whose memory grew: the next search looks again.
 * What cannot be written is not kept. */
void gp_fit_cache_write(const struct gp_fit_cache *cache, const struct gp_fit *fit);

#endif
