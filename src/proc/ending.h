/* Ending processes: with the least force first, with their children if that is wanted, and never
 * another process that was given the pid of one that is meant.
 *
 * Each process is held by a descriptor of its own (pidfd) from the moment it is added, and
 * signalled through that. */
#ifndef GP_PROC_ENDING_H
#define GP_PROC_ENDING_H

#include "base/util.h"

#include <sys/types.h>

struct gp_err;

struct gp_ending_process {
    int64_t pid;
    uint64_t start_ticks; /* with the pid, its identity */
    int fd;               /* pidfd; −1 when it is not held any more */
    bool is_child;        /* nobody named it: it comes from one that was */
    bool ended;
    char state;        /* of one that does not end, the kernel's letter; 0: not known */
    uint32_t session;
    uid_t uid;
    int signal;        /* the last one that it was sent; 0: none */
    int error;         /* of that sending, an errno; 0: it went */
    uint64_t after_ns; /* how long it took to end, from the first signal on */
};

struct gp_ending {
    struct gp_ending_process *processes;
    size_t count;
};

/* Takes hold of a process that was seen at this moment (wall clock), unless it is in the list
 * already, also as one that has ended. `named`: it was asked for by
 * its pid, so that it may be one on which a screen depends.
 *
 * GP_EPERM, with the reason in err: the first process, this one and those that it comes from, a
 * thread of the kernel, another user's (unless this is root), a display server that was not
 * named. GP_EFAIL: it has ended, cannot be seen, or the pid is another process by now. GP_ENOMEM.
 */
int gp_ending_add(struct gp_ending *ending, int64_t pid, uint64_t seen_wall_ns, bool named,
                  struct gp_err *err) GP_MUST_CHECK;

/* Takes hold of the children of a process, without those that are in `but` (NULL: none); of those
 * that may not be ended it takes none. */
void gp_ending_add_children(struct gp_ending *ending, int64_t parent, const struct gp_ending *but);

/* Adds what comes from them at this moment: their children, theirs in turn, and the groups that
 * they lead. Those stand behind the others, with is_child. */
void gp_ending_add_tree(struct gp_ending *ending);

struct gp_ending_plan {
    const int *signals; /* one after the other, as long as some have not ended */
    size_t signal_count;
    uint64_t grace_ns; /* how long is waited behind each */
    bool tree;         /* with what comes from them, looked for again before each signal */
    /* Told before each signal how many have not ended. NULL: nobody is. */
    void (*on_signal)(void *ctx, int signal, size_t left);
    void *ctx;
};

/* Goes through the plan. True if all have ended. */
bool gp_ending_run(struct gp_ending *ending, const struct gp_ending_plan *plan) GP_MUST_CHECK;

void gp_ending_fini(struct gp_ending *ending);

#endif
