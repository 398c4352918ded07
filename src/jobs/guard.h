/* A small process between a supervisor and its job: supervisor, guard, job.
 *
 * The guard is the job's parent, and a child subreaper: a descendant of the job cannot leave it,
 * whatever it does to its environment, session or parents. When the supervisor ends without
 * dismissing the guard, the guard kills all of them. When the guard is killed, the kernel kills the
 * job's first process, and the supervisor, a subreaper too, becomes the parent of the rest. */
#ifndef GP_JOBS_GUARD_H
#define GP_JOBS_GUARD_H

#include "base/util.h"

#include <sys/resource.h>
#include <sys/types.h>

struct gp_err;

struct gp_guard {
    pid_t pid;
    int fd; /* -1: there is none, or it was killed */
};

/* What a job is started with. */
struct gp_guard_job {
    char *const *argv;
    char *const *environment;
    int fds[3];          /* its standard input, output and error */
    bool takes_terminal; /* its process group becomes the foreground group of the first of them */
};

enum gp_guard_event {
    GP_GUARD_STARTED, /* value: the job's pid */
    GP_GUARD_REFUSED, /* value: the errno with which the program cannot be executed */
    GP_GUARD_FAILED,  /* value: the errno with which the guard cannot start a process */
    GP_GUARD_STOPPED, /* value: the signal that stopped the job */
    GP_GUARD_ENDED,   /* value: the job's status, as waitpid() returns it */
    GP_GUARD_LOST,    /* the guard was killed */
};

struct gp_guard_news {
    enum gp_guard_event event;
    int value;
    struct rusage usage; /* when it ended: of all processes that the guard has reaped */
};

/* Starts a guard. Call it before the first thread and before opening anything that the job must not
 * keep open. GP_EFAIL. */
int gp_guard_start(struct gp_guard *guard, struct gp_err *err) GP_MUST_CHECK;

/* Starts a job in a process group of its own: STARTED, REFUSED, FAILED or LOST. One job at a time.
 * The caller ignores SIGPIPE. GP_ENOMEM. */
int gp_guard_run(struct gp_guard *guard, const struct gp_guard_job *job, struct gp_guard_news *ret,
                 struct gp_err *err) GP_MUST_CHECK;

/* Reads the next event of a job; waits for it. The descriptor is readable when there is one. */
void gp_guard_read(struct gp_guard *guard, struct gp_guard_news *ret);

/* Whether it was killed; to be asked when no job runs. */
bool gp_guard_is_lost(struct gp_guard *guard);

/* Sends a signal to the job's process group. Nothing happens if the job has ended: only the guard
 * knows whether the group is still the job's. */
void gp_guard_signal(const struct gp_guard *guard, int signal);

/* Ends the guard. It leaves alone what the job left running, or kills that first: does not wait for
 * one that hangs in the kernel. */
void gp_guard_dismiss(struct gp_guard *guard, bool leaves_alone);

#endif
