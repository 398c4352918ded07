/* The observed machine: this one, a simulated one, or one whose files are below a directory.
 *
 * The simulated driver is a library like the real one, and learns from the environment what to
 * simulate. So a process observes one machine only. */
#ifndef GP_SAMPLE_OBSERVED_H
#define GP_SAMPLE_OBSERVED_H

#include "base/err.h"
#include "base/io.h"

struct gp_source;

struct gp_observed {
    /* What is asked for; the strings must stay valid. */
    const char *sim;  /* a machine of gpulse sim; NULL: $GPULSE_SIM, else no simulation */
    bool sim_still;   /* its values do not change */
    const char *root; /* prefix of /proc, /sys and /etc; NULL: $GPULSE_ROOT, else none */

    /* Set by gp_observed_prepare(). */
    const char *library; /* the libnvidia-ml.so.1 to load; NULL: search for it */
    const char *prefix;  /* prefix of /proc; NULL: none */
    const char *files;   /* prefix of all files: "" for this machine; NULL: a simulated machine that
                            has none */
    char problem[256];   /* why a simulated machine has no files of its own, or "" */
    struct gp_err err;   /* why there is no library */
    int result;          /* 0, or that error */
    char library_room[GP_PATH_SIZE];
    char files_room[GP_PATH_SIZE];
};

/* These values, or else those of $GPULSE_SIM and $GPULSE_ROOT; NULL: none. */
const char *gp_observed_sim(const char *given);
const char *gp_observed_root(const char *given);

/* Chooses the machine, and sets the environment for the simulated driver: call this once, before
 * the first thread starts. The simulated driver stays loaded. */
void gp_observed_prepare(struct gp_observed *observed);

/* The following functions need a prepared machine. */

/* Whether the listed processes are running on this machine. */
bool gp_observed_is_reachable(const struct gp_observed *observed);

/* A source of its values; see gp_sampler_new() for its owner. The machine must outlive it.
 * GP_ENOMEM, or `result` and `err` above. */
int gp_observed_source(const struct gp_observed *observed, struct gp_source **ret,
                       struct gp_err *err) GP_MUST_CHECK;

/* The libcuda.so.1 to load: the one in $GPULSE_CUDA, the simulated one (in `room`), or NULL: search
 * for it. */
int gp_observed_cuda(const struct gp_observed *observed, char room[GP_PATH_SIZE], const char **ret,
                     struct gp_err *err) GP_MUST_CHECK;

#endif
