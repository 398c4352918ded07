/* When to close the driver so that idle GPUs can sleep, and when to reopen it.
 *
 * An open driver session keeps a laptop GPU awake, at 5 to 7 W. The session is closed after some
 * time without work. The source leaves sleeping GPUs alone; GPUs that stay awake are held by
 * another process, and sampling them costs nothing extra. A pure function of its arguments. */
#ifndef GP_SAMPLE_RELEASE_H
#define GP_SAMPLE_RELEASE_H

#include "source/source.h"

enum {
    GP_RELEASE_IDLE_S = 10,  /* time without work before closing */
    GP_RELEASE_WAIT_S = 30,  /* time in which a GPU should fall asleep */
    GP_RELEASE_AGAIN_S = 300 /* if it did not: time until the next attempt */
};

/* Zero-initialize. */
struct gp_release {
    bool released;
    uint64_t idle_ns;    /* since when there is no work; 0: there is */
    uint64_t release_ns; /* when the driver was closed */
    uint64_t again_ns;   /* no earlier than this */
};

/* Updates *r: `busy` says whether a GPU had work in the last sample (ignored while released).
 * Returns r->released. */
bool gp_release_update(struct gp_release *r, enum gp_power power, bool busy, uint64_t now_ns);

#endif
