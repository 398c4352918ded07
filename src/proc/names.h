/* The names of pods and containers, from the files of their runtimes on this machine. No daemon is
 * contacted, and root is only needed for files that belong to root. */
#ifndef GP_PROC_NAMES_H
#define GP_PROC_NAMES_H

#include "base/util.h"

#include <sys/types.h>

enum { GP_PROC_NAME_SIZE = 256 };

/* Podman's files, read once for all processes of a tick. Zero-initialize. */
struct gp_proc_names {
    struct gp_proc_storage *files;
    size_t count;
};

/* Forgets the files, so that they are read again in the next tick. */
void gp_proc_names_clear(struct gp_proc_names *names);

/* Fills ret with the name for a result of gp_proc_container() for a process of this user:
 *
 *   pod:121157b5/…       NAMESPACE/NAME, from /var/log/pods
 *   docker:ba7b10d15d16  from /var/lib/docker/containers, which belongs to root
 *   podman:3f084b4c7b78  from the machine's storage, or the one in the user's home
 *
 * Skips files of more than 256 KiB, and homes on other machines, which may not respond. root:
 * prefix, NULL for none. The text is safe to show. Returns false, with "" in ret, if there is no
 * other name, or if no file contains it. */
bool gp_proc_container_name(struct gp_proc_names *names, const char *root, const char *container,
                            uid_t uid, char ret[GP_PROC_NAME_SIZE]);

#endif
