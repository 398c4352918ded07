/* Sends a signal to a process that was seen a moment ago, and never to one with a recycled pid. */
#ifndef GP_PROC_SIGNAL_H
#define GP_PROC_SIGNAL_H

#include "base/util.h"

struct gp_err;

/* The root of a simulated machine (must stay valid), whose processes are never held: a real process
 * that has the pid of one is not what was seen. To be called before the first thread. */
void gp_proc_set_simulated(const char *root);

bool gp_proc_is_simulated(int64_t pid);

/* Whether this process comes from that one: its end may be the end of both. */
bool gp_proc_is_own_ancestor(int64_t pid);

/* Opens a pidfd, which always refers to this process. A process that started after the time when
 * its pid was seen is another one. Refuses init and this process. Fails with GP_EFAIL or
 * GP_EPERM. */
int gp_proc_hold(int64_t pid, uint64_t seen_wall_ns, int *ret_fd, struct gp_err *err) GP_MUST_CHECK;

/* Fails with GP_EPERM, or with GP_EFAIL if it has exited. */
int gp_proc_signal(int fd, int signal, struct gp_err *err) GP_MUST_CHECK;

#endif
