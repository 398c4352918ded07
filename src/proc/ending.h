/* Terminates processes: with the mildest signal first, optionally with their children, and never a
 * process that got a recycled pid.
 *
 * Each process is held by a pidfd from the moment it is added, and signalled through that. */
#ifndef GP_PROC_ENDING_H
#define GP_PROC_ENDING_H

#include "base/util.h"

#include <sys/types.h>

struct gp_err;

struct gp_ending_process {
    int64_t pid;
    uint64_t start_ticks; /* identifies the process together with the pid */
    int fd;               /* pidfd; −1 if it is no longer held */
    bool is_child;        /* added as a descendant of a selected process */
    bool ended;
    char state;        /* of a process that does not exit, the kernel's letter; 0: unknown */
    uint32_t session;
    uid_t uid;
    int signal;        /* the last one sent; 0: none */
    int error;         /* errno of that signal; 0: sent */
    uint64_t after_ns; /* time to exit after the first signal */
};

struct gp_ending {
    struct gp_ending_process *processes;
    size_t count;
};

/* Adds a process that was seen at this time (wall clock), unless the list already has it, running
 * or not. `named`: its pid was given explicitly, so that it may be a display server.
 *
 * Fails, with the reason in err: GP_EPERM for init, this process and its ancestors, a kernel
 * thread, a process of another user (unless this is root), or a display server without `named`;
 * GP_EFAIL if it has exited, is not visible, or its pid was recycled; GP_ENOMEM. */
int gp_ending_add(struct gp_ending *ending, int64_t pid, uint64_t seen_wall_ns, bool named,
                  struct gp_err *err) GP_MUST_CHECK;

/* Adds the children of a process, except those in `but` (NULL: none) and protected ones. `parent`
 * is this process or a child that it has not reaped, so that no other process can have that pid. */
void gp_ending_add_children(struct gp_ending *ending, int64_t parent, const struct gp_ending *but);

/* Adds the current descendants of the listed processes, and the members of the groups that they
 * lead. They follow the others, and have is_child set. */
void gp_ending_add_tree(struct gp_ending *ending);

struct gp_ending_plan {
    const int *signals; /* sent in order while processes are running */
    size_t signal_count;
    uint64_t grace_ns; /* how long to wait after each signal */
    bool tree;         /* include descendants, which are searched again before each signal */
    /* Called before each signal with the number of running processes. May be NULL. */
    void (*on_signal)(void *ctx, int signal, size_t left);
    void *ctx;
};

/* Executes the plan. Returns true if all have exited. */
bool gp_ending_run(struct gp_ending *ending, const struct gp_ending_plan *plan) GP_MUST_CHECK;

void gp_ending_fini(struct gp_ending *ending);

#endif
