/* Where a process runs, from its file /proc/PID/cgroup: a container, a pod, a job, a service. */
#ifndef GP_PROC_CONTAINER_H
#define GP_PROC_CONTAINER_H

#include "base/util.h"

enum { GP_PROC_CONTAINER_SIZE = 256 }; /* bytes; names longer than about 80 columns are cut */

/* Fills ret with the innermost of these, from the text of a cgroup file (version 1, 2 or both):
 *
 *   slurm:1392969.0           job and step of Slurm; without the step if there is none
 *   pbs:2404743               job of PBS
 *   pod:121157b5/1cd3449e930b first digits of the UID of a pod and of the container id
 *   docker:ba7b10d15d16       first digits of a container id; also containerd, crio, podman,
 *                             nerdctl, ecs, and "container" if the runtime is unknown
 *   lxc:NAME machine:NAME     system container (also incus) or virtual machine
 *   unit:ollama.service       system service
 *
 * The text is safe to show. Returns false, with "" in ret, for a user's session and everything in
 * it, and for other texts. */
bool gp_proc_container(const char *cgroup_text, char ret[GP_PROC_CONTAINER_SIZE]);

/* The most specific path in that text, as written there. Returns its length, 0: none. */
size_t gp_proc_cgroup_path(const char *cgroup_text, const char **ret_start);

#endif
