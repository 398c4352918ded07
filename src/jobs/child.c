#include "jobs/child.h"

#include "base/clock.h"
#include "base/err.h"
#include "jobs/output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* They wait for gp_child_wait(), except in the child. */
static const int handed_on[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGUSR1,
                                SIGUSR2, SIGALRM, SIGCONT, SIGTSTP, SIGWINCH};

static sigset_t waited_for, before;

static void block_signals(void)
{
    static bool are_blocked;
    if (are_blocked) /* for an earlier child */
        return;
    are_blocked = true;
    (void)sigemptyset(&waited_for);
    (void)sigaddset(&waited_for, SIGCHLD);
    for (size_t i = 0; i < GP_ARRAY_LEN(handed_on); i++)
        (void)sigaddset(&waited_for, handed_on[i]);
    (void)sigprocmask(SIG_BLOCK, &waited_for, &before);
}

/* ---- the environment ---- */

static bool is_replaced(const char *entry, char *const *variables)
{
    size_t n = strcspn(entry, "=");
    for (size_t i = 0; variables[i]; i++)
        if (strcspn(variables[i], "=") == n && strncmp(variables[i], entry, n) == 0)
            return true;
    return false;
}

static char **make_environment(char *const *variables)
{
    size_t count = 0;
    size_t kept = 0;
    while (environ[count])
        count++;
    for (size_t i = 0; variables[i]; i++)
        count++;
    char **made = calloc(count + 1, sizeof(*made));
    for (size_t i = 0; made && environ[i]; i++)
        if (!is_replaced(environ[i], variables))
            made[kept++] = environ[i];
    for (size_t i = 0; made && variables[i]; i++)
        made[kept++] = variables[i];
    return made;
}

/* ---- the terminal ---- */

/* Who is not in the foreground may not give the terminal away: the signal that the kernel has for
 * that is ignored for the moment. */
static void give_terminal(pid_t group)
{
    struct sigaction old;
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    (void)sigaction(SIGTTOU, &ignore, &old);
    (void)tcsetpgrp(STDIN_FILENO, group);
    (void)sigaction(SIGTTOU, &old, NULL);
}

/* ---- the child ---- */

/* Behind fork() beside threads: only what is safe there. */
static _Noreturn void run(const struct gp_child *child, char *const *argv, char *const *environment,
                          int nothing, int fd)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* it does not outlive its supervisor */
    (void)signal(SIGPIPE, SIG_DFL);
    (void)setpgid(0, 0);
    if (child->has_terminal)
        give_terminal(getpid());
    if (child->is_detached)
        (void)dup2(nothing, STDIN_FILENO);
    if (child->output)
        gp_output_give(child->output);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    (void)execvpe(argv[0], argv, environment);
    int e = errno;
    (void)!write(fd, &e, sizeof(e));
    _exit(127);
}

int gp_child_start(struct gp_child *child, char *const *argv, char *const *variables,
                   int *ret_status, struct gp_err *err)
{
    int fds[2];
    int e = 0;
    child->pid = -1;
    char **environment = make_environment(variables);
    if (!environment || pipe2(fds, O_CLOEXEC) != 0) {
        free(environment);
        return gp_err_set(err, GP_ENOMEM, "cannot start a process: %s", strerror(errno));
    }
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    child->has_terminal =
        !child->is_detached && isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp();
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    block_signals();
    child->pid = fork();
    if (child->pid == 0)
        run(child, argv, environment, nothing, fds[1]);
    (void)close(fds[1]);
    if (nothing >= 0)
        (void)close(nothing);
    free(environment);
    if (child->pid < 0) {
        (void)close(fds[0]);
        return gp_err_set(err, GP_EFAIL, "cannot start a process: %s", strerror(errno));
    }
    (void)setpgid(child->pid, child->pid);   /* whoever is first */
    ssize_t n = read(fds[0], &e, sizeof(e)); /* ends when the program runs */
    (void)close(fds[0]);
    if (n <= 0)
        return 0;
    (void)waitpid(child->pid, NULL, 0);
    gp_child_end(child);
    *ret_status = e == ENOENT ? 127 : 126;
    return gp_err_set(err, GP_EFAIL, "cannot run '%.200s': %s", argv[0], strerror(e));
}

/* ---- waiting ---- */

static bool is_in_foreground(void)
{
    return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

/* As the keyboard does it: one whose group nobody could continue is not stopped by that. */
static void stop(void)
{
    sigset_t one;
    (void)sigemptyset(&one);
    (void)sigaddset(&one, SIGTSTP);
    (void)raise(SIGTSTP);
    (void)sigprocmask(SIG_UNBLOCK, &one, NULL); /* here it stops */
    (void)sigprocmask(SIG_BLOCK, &one, NULL);
}

/* The child was stopped from the keyboard, or because it wants a terminal that it has not: stops
 * with it, until the shell goes on, and gives it the terminal if there is one to give. */
static void stop_with(struct gp_child *child, int signal)
{
    if (child->has_terminal)
        give_terminal(getpgrp());
    if (signal == SIGTSTP || !is_in_foreground())
        stop();
    child->has_terminal = !child->is_detached && isatty(STDIN_FILENO) && is_in_foreground();
    if (child->has_terminal)
        give_terminal(child->pid);
    (void)kill(-child->pid, SIGCONT);
}

static void reap(struct gp_child *child)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
        if (pid == child->pid && WIFSTOPPED(status) && WSTOPSIG(status) != SIGSTOP) {
            stop_with(child, WSTOPSIG(status));
        } else if (pid == child->pid && !WIFSTOPPED(status)) {
            child->has_ended = true;
            child->status = status;
        } /* else one that was handed to us */
    }
}

void gp_child_wait(struct gp_child *child, uint64_t until_mono_ns)
{
    uint64_t now_ns = gp_clock_mono_ns();
    struct timespec rest = gp_clock_timespec(until_mono_ns > now_ns ? until_mono_ns - now_ns : 0);
    int signal = sigtimedwait(&waited_for, NULL, &rest);
    child->was_told = child->was_told || signal == SIGINT || signal == SIGTERM ||
                      signal == SIGHUP || signal == SIGQUIT;
    if (signal > 0 && signal != SIGCHLD && !child->has_ended)
        (void)kill(-child->pid, signal);
    reap(child);
}

static bool was_interrupted; /* and it will not be forgotten */

bool gp_child_is_interrupted(void)
{
    sigset_t ending;
    const struct timespec now = {0};
    (void)sigemptyset(&ending);
    (void)sigaddset(&ending, SIGINT);
    (void)sigaddset(&ending, SIGTERM);
    (void)sigaddset(&ending, SIGHUP);
    was_interrupted = sigtimedwait(&ending, NULL, &now) > 0 || was_interrupted;
    return was_interrupted;
}

void gp_child_end(struct gp_child *child)
{
    if (child->has_terminal && tcgetpgrp(STDIN_FILENO) == child->pid)
        give_terminal(getpgrp());
    child->has_terminal = false;
}

bool gp_child_was_interrupted(const struct gp_child *child)
{
    int status = gp_child_exit_status(child);
    return was_interrupted || child->was_told || status == 128 + SIGINT ||
           status == 128 + SIGQUIT || status == 128 + SIGHUP;
}

void gp_child_end_as(const struct gp_child *child)
{
    sigset_t one;
    if (!child->has_ended || !WIFSIGNALED(child->status) || WTERMSIG(child->status) != SIGINT)
        return;
    (void)sigemptyset(&one);
    (void)sigaddset(&one, SIGINT);
    (void)signal(SIGINT, SIG_DFL);
    (void)raise(SIGINT);
    (void)sigprocmask(SIG_UNBLOCK, &one, NULL);
}

int gp_child_exit_status(const struct gp_child *child)
{
    return WIFEXITED(child->status) ? WEXITSTATUS(child->status) : 128 + WTERMSIG(child->status);
}
