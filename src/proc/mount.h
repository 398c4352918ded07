/* Where a path lies, by the list of mounts alone: nothing there is touched, as a file system whose
 * server is gone holds up whoever does. */
#ifndef GP_PROC_MOUNT_H
#define GP_PROC_MOUNT_H

#include "base/io.h"

struct gp_mount {
    char folder[GP_PATH_SIZE];
    char type[64];    /* "nfs4" */
    char source[256]; /* "server:/export" */
    bool is_remote;   /* its files come from another machine, or from a program */
};

/* False: it is not known. */
bool gp_mount_of(const char *path, struct gp_mount *ret);

/* Whether a path is this folder, or lies below it; "": everything does. */
bool gp_mount_is_below(const char *path, const char *folder);

#endif
