/* Finds the mount of a path, using only the list of mounts. The file system itself is not accessed,
 * because that blocks if its server is gone. */
#ifndef GP_PROC_MOUNT_H
#define GP_PROC_MOUNT_H

#include "base/io.h"

struct gp_mount {
    char folder[GP_PATH_SIZE];
    char type[64];    /* "nfs4" */
    char source[256]; /* "server:/export" */
    bool is_remote;   /* its files are on another machine, or provided by a program */
};

/* False if unknown. */
bool gp_mount_of(const char *path, struct gp_mount *ret);

/* Whether a path is this directory or inside it; "" contains everything. */
bool gp_mount_is_below(const char *path, const char *folder);

#endif
