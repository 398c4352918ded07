/* When to let go of the driver so that idle GPUs can fall asleep, and when to take hold again.
 *
 * An open driver session keeps a laptop's GPU awake, at 5 to 7 W. After some time without work it
 * is closed. GPUs that then fall asleep are left alone by the source itself; those that stay awake
 * are held by somebody else, and watching them costs nothing more. A pure function of what it is
 * told. */
#ifndef GP_SAMPLE_RELEASE_H
#define GP_SAMPLE_RELEASE_H

#include "source/source.h"

enum {
    GP_RELEASE_IDLE_S = 10,  /* without work before letting go */
    GP_RELEASE_WAIT_S = 30,  /* how long a GPU is given to fall asleep */
    GP_RELEASE_AGAIN_S = 300 /* after it did not: before the next try */
};

/* Zero-initialise. */
struct gp_release {
    bool released;
    uint64_t idle_ns;    /* since when there is no work; 0: there is */
    uint64_t release_ns; /* when it was released */
    uint64_t again_ns;   /* not before this moment */
};

/* Brings *r up to date: `busy` says whether a GPU had work in the last sample (while released it is
 * not looked at). Returns r->released. */
bool gp_release_update(struct gp_release *r, enum gp_power power, bool busy, uint64_t now_ns);

#endif
