/* The names of pods and containers, from the files that their runtimes leave on the machine; nobody
 * is asked, and root is needed only where the files are root's. */
#ifndef GP_PROC_NAMES_H
#define GP_PROC_NAMES_H

#include "base/util.h"

#include <sys/types.h>

enum { GP_PROC_NAME_SIZE = 256 };

/* Fills ret with the name of what gp_proc_container() has told of a process of this user:
 *
 *   pod:121157b5/…       NAMESPACE/NAME, from /var/log/pods
 *   docker:ba7b10d15d16  from /var/lib/docker/containers, which is root's
 *   podman:3f084b4c7b78  from the storage of the machine, or that below the user's home
 *
 * root: prefix, NULL for none. The text is safe to show. False, with "" in ret, for what has no
 * name beside what it is called already, and where the files do not tell. */
bool gp_proc_container_name(const char *root, const char *container, uid_t uid,
                            char ret[GP_PROC_NAME_SIZE]);

#endif
