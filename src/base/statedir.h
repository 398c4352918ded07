/* The folder for what the users of a machine have to know of each other, as which processes are
 * suspended. As in /tmp, all may make files in it and nobody but its owner may remove those of
 * others: what stands there can be lost, and nothing may depend on it for good. An administrator
 * makes it safe: mkdir -m 1777 /run/gpulse. */
#ifndef GP_BASE_STATEDIR_H
#define GP_BASE_STATEDIR_H

#include "base/util.h"

struct gp_err;

/* A descriptor of it: $GPULSE_STATE_DIR, or below the root prefix the first that can be used of
 * /run/gpulse, /dev/shm/gpulse and /tmp/gpulse. With `create` it is made if there is none. −1 if
 * there is none, or it may not be used: err says why. */
int gp_statedir_open(const char *root, bool create, struct gp_err *err);

#endif
