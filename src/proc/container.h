/* Where a process runs, from its file /proc/PID/cgroup: a container, a pod, a job, a service. */
#ifndef GP_PROC_CONTAINER_H
#define GP_PROC_CONTAINER_H

#include "base/util.h"

enum { GP_PROC_CONTAINER_SIZE = 256 }; /* bytes; names of more than some 80 columns are cut */

/* Fills ret with the innermost of what the text of a file cgroup tells, of version 1, 2
 * or both:
 *
 *   slurm:1392969.0           job and step of Slurm; the step is left out where there is none
 *   pbs:2404743               job of PBS
 *   pod:121157b5/1cd3449e930b first digits of the pod's UID and of the container in it
 *   docker:ba7b10d15d16       first digits of a container; also containerd, crio, podman, nerdctl,
 *                             ecs, and "container" where the runtime does not name itself
 *   lxc:NAME machine:NAME     system container (also incus) or virtual machine
 *   unit:ollama.service       service of the system
 *
 * The text is safe to show. False, with "" in ret, for a session of a user, what belongs to one,
 * and text that tells nothing. */
bool gp_proc_container(const char *cgroup_text, char ret[GP_PROC_CONTAINER_SIZE]);

/* The path in that text which says most, as it stands there; its length is returned, 0: none. */
size_t gp_proc_cgroup_path(const char *cgroup_text, const char **ret_start);

#endif
