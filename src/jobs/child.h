/* A command that runs as a job of its own, below a guard: in a process group with the terminal, and
 * with the signals that this process gets. */
#ifndef GP_JOBS_CHILD_H
#define GP_JOBS_CHILD_H

#include "base/util.h"

#include <sys/resource.h>
#include <sys/types.h>
#include <termios.h>

struct gp_err;
struct gp_guard;
struct gp_output;

struct gp_child {
    struct gp_guard *guard; /* its parent */
    pid_t pid;
    bool has_ended;
    bool is_unguarded;        /* somebody killed its guard, and the kernel the child */
    int status;               /* of waitpid(), when it has ended */
    struct rusage usage;      /* then: of all processes of the guard that have ended */
    int told;                 /* the last signal to end that was handed on to it; 0: none */
    bool has_terminal;        /* it was given the one that this process had */
    struct termios terminal;  /* settings of that one, as it was given */
    bool is_detached;         /* it gets no terminal, and nothing to read */
    struct gp_output *output; /* what it prints goes through that; NULL: straight to its place */
};

/* Starts it, as set up in `output`, with these variables ("NAME=VALUE", NULL behind the last) in
 * place of those that the environment has. GP_EFAIL, with the shell's exit status in *ret_status:
 * 127 there is no such program, 126 it cannot be run. One child at a time. */
int gp_child_start(struct gp_child *child, char *const *argv, char *const *variables,
                   int *ret_status, struct gp_err *err) GP_MUST_CHECK;

/* Whether the command is an interactive shell, a pager or an editor: it needs the terminal itself,
 * and its output is not worth watching. */
bool gp_child_is_typed_into(char *const *argv);

/* Waits for something to happen until this moment; hands signals on, and takes notice of its end.
 * Stops with the child when that is stopped from the keyboard. */
void gp_child_wait(struct gp_child *child, uint64_t until_mono_ns);

/* Sends a signal to its process group, unless it has ended. */
void gp_child_signal(const struct gp_child *child, int signal);

/* Takes the terminal back; after a child that a signal has ended, with its earlier settings. */
void gp_child_end(struct gp_child *child);

/* Whether this process was told to end, while nothing runs that the signal is handed on to. */
bool gp_child_is_interrupted(void);

/* Whether somebody wanted it to end, and it did not fail by itself. */
bool gp_child_was_interrupted(const struct gp_child *child);

/* Ends this process as the child did if Ctrl-C ended that, so that a script around it ends too. */
void gp_child_end_as(const struct gp_child *child);

/* As a shell says it: its exit status, or 128 and the signal that ended it. */
int gp_child_exit_status(const struct gp_child *child);

#endif
