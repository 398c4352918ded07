/* Sending a signal to the process that was seen a moment ago, and to no other one. */
#ifndef GP_PROC_SIGNAL_H
#define GP_PROC_SIGNAL_H

#include "base/util.h"

struct gp_err;

/* A descriptor that stays that of this process, whatever becomes of its pid. A process that started
 * behind the moment in which its pid was seen is another one. Not the first process, and not this
 * one. GP_EFAIL, GP_EPERM say why there is none. */
int gp_proc_hold(int64_t pid, uint64_t seen_wall_ns, int *ret_fd, struct gp_err *err) GP_MUST_CHECK;

/* GP_EPERM; GP_EFAIL: it has ended. */
int gp_proc_signal(int fd, int signal, struct gp_err *err) GP_MUST_CHECK;

#endif
