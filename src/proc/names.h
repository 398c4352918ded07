/* The names of pods and containers, from the files that their runtimes leave on the machine; nobody
 * is asked, and root is needed only where the files are root's. */
#ifndef GP_PROC_NAMES_H
#define GP_PROC_NAMES_H

#include "base/util.h"

#include <sys/types.h>

enum { GP_PROC_NAME_SIZE = 256 };

/* Files of Podman's that were read: each is read once for all processes of a look. All zero to
 * begin with. */
struct gp_proc_names {
    struct gp_proc_storage *files;
    size_t count;
};

/* Forgets them: at the next look they may be others. */
void gp_proc_names_clear(struct gp_proc_names *names);

/* Fills ret with the name of what gp_proc_container() has told of a process of this user:
 *
 *   pod:121157b5/…       NAMESPACE/NAME, from /var/log/pods
 *   docker:ba7b10d15d16  from /var/lib/docker/containers, which is root's
 *   podman:3f084b4c7b78  from the storage of the machine, or that below the user's home
 *
 * Files of more than 256 KiB are not read, nor homes that other machines serve, which may not
 * answer. root: prefix, NULL for none. The text is safe to show. False, with "" in ret, for what
 * has no name beside what it is called already, and where the files do not tell. */
bool gp_proc_container_name(struct gp_proc_names *names, const char *root, const char *container,
                            uid_t uid, char ret[GP_PROC_NAME_SIZE]);

#endif
