#include "jobs/child.h"

#include "base/clock.h"
#include "base/err.h"
#include "jobs/guard.h"
#include "jobs/output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* They wait for gp_child_wait(), except in the child. */
static const int handed_on[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGUSR1,
                                SIGUSR2, SIGALRM, SIGCONT, SIGTSTP, SIGWINCH};

static sigset_t waited_for;
static int signals = -1; /* readable when one of them has come */

/* As nohup has it: it stays so, also for this process. */
static bool is_ignored(int number)
{
    struct sigaction now;
    return sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

static int open_signals(struct gp_err *err)
{
    if (signals >= 0) /* for an earlier child */
        return 0;
    (void)sigemptyset(&waited_for);
    (void)sigaddset(&waited_for, SIGCHLD); /* of struct gp_output: it has news */
    for (size_t i = 0; i < GP_ARRAY_LEN(handed_on); i++)
        if (!is_ignored(handed_on[i]))
            (void)sigaddset(&waited_for, handed_on[i]);
    (void)sigprocmask(SIG_BLOCK, &waited_for, NULL);
    signals = signalfd(-1, &waited_for, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals >= 0)
        return 0;
    return gp_err_set(err, GP_EFAIL, "cannot wait for signals: %s", strerror(errno));
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

/* 0, or a negative error, with the event that the guard has answered with in *ret. */
static int launch(struct gp_child *child, struct gp_guard_job *job, struct gp_guard_news *ret,
                  struct gp_err *err)
{
    if (!job->environment)
        return gp_err_set(err, GP_ENOMEM, "cannot start a process: %s", strerror(ENOMEM));
    int nothing = child->is_detached ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
    if (child->is_detached && nothing < 0)
        return gp_err_set(err, GP_EFAIL, "cannot open /dev/null: %s", strerror(errno));
    if (child->is_detached)
        job->fds[STDIN_FILENO] = nothing;
    if (child->output)
        gp_output_give(child->output, job->fds);
    int r = gp_guard_run(child->guard, job, ret, err);
    child->is_unguarded = r == 0 && ret->event == GP_GUARD_LOST;
    if (nothing >= 0)
        (void)close(nothing);
    if (child->is_unguarded)
        return gp_err_set(err, GP_EFAIL, "cannot start the job: its guard (process %d) was killed",
                          (int)child->guard->pid);
    if (r == 0 && ret->event == GP_GUARD_FAILED)
        return gp_err_set(err, GP_EFAIL, "cannot start a process: %s", strerror(ret->value));
    return r;
}

/* For a script that is a file here, but cannot be executed or is not in $PATH: what runs it, or "".
 */
static const char *interpreter_of(const char *path)
{
    static const struct {
        const char *ending, *interpreter;
    } scripts[] = {{".py", "python"}, {".sh", "bash"}};
    const char *ending = strrchr(path, '.');
    struct stat st;
    for (size_t i = 0; ending && i < GP_ARRAY_LEN(scripts); i++)
        if (strcmp(ending, scripts[i].ending) == 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode))
            return scripts[i].interpreter;
    return "";
}

int gp_child_start(struct gp_child *child, char *const *argv, char *const *variables,
                   int *ret_status, struct gp_err *err)
{
    char **environment = make_environment(variables);
    child->pid = -1;
    child->has_terminal =
        !child->is_detached && isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp();
    if (child->has_terminal)
        child->has_terminal = tcgetattr(STDIN_FILENO, &child->terminal) == 0;
    struct gp_guard_job job = {.argv = argv,
                               .environment = environment,
                               .fds = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO},
                               .takes_terminal = child->has_terminal};
    struct gp_guard_news news;
    int r = open_signals(err);
    if (r == 0)
        r = launch(child, &job, &news, err);
    free(environment);
    if (r == 0 && news.event == GP_GUARD_STARTED) {
        child->pid = news.value;
        return 0;
    }
    gp_child_end(child);
    if (r < 0)
        return r;
    *ret_status = news.value == ENOENT ? 127 : 126;
    const char *interpreter = interpreter_of(argv[0]);
    return gp_err_set(err, GP_EFAIL, "cannot run '%.200s': %s%s%s%s%.200s", argv[0],
                      strerror(news.value), *interpreter ? "; try " : "", interpreter,
                      *interpreter ? " " : "", *interpreter ? argv[0] : "");
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
    gp_child_signal(child, SIGCONT);
}

static void take_signal(struct gp_child *child)
{
    struct signalfd_siginfo info;
    if (read(signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return;
    const int signal = (int)info.ssi_signo;
    if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT)
        child->told = signal;
    if (signal != SIGCHLD)
        gp_child_signal(child, signal);
}

static void take_news(struct gp_child *child)
{
    struct gp_guard_news news;
    gp_guard_read(child->guard, &news);
    if (news.event == GP_GUARD_STOPPED && news.value != SIGSTOP)
        stop_with(child, news.value);
    if (news.event != GP_GUARD_ENDED && news.event != GP_GUARD_LOST)
        return;
    child->has_ended = true;
    child->is_unguarded = news.event == GP_GUARD_LOST;
    child->status = child->is_unguarded ? SIGKILL : news.value; /* the kernel ends both */
    child->usage = news.usage;
}

void gp_child_wait(struct gp_child *child, uint64_t until_mono_ns)
{
    uint64_t now_ns = gp_clock_mono_ns();
    struct timespec rest = gp_clock_timespec(until_mono_ns > now_ns ? until_mono_ns - now_ns : 0);
    struct pollfd fds[] = {{signals, POLLIN, 0}, {child->guard->fd, POLLIN, 0}};
    if (ppoll(fds, GP_ARRAY_LEN(fds), &rest, NULL) <= 0)
        return;
    if (fds[0].revents)
        take_signal(child);
    if (fds[1].revents)
        take_news(child);
}

void gp_child_signal(const struct gp_child *child, int signal)
{
    if (!child->has_ended)
        gp_guard_signal(child->guard, signal);
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
    if (child->has_terminal && tcgetpgrp(STDIN_FILENO) == child->pid) {
        give_terminal(getpgrp());
        if (WIFSIGNALED(child->status))
            (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &child->terminal);
    }
    child->has_terminal = false;
}

bool gp_child_was_interrupted(const struct gp_child *child)
{
    int status = gp_child_exit_status(child);
    return was_interrupted || child->told || child->is_unguarded || status == 128 + SIGINT ||
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

bool gp_child_is_typed_into(char *const *argv)
{
    static const char *const shells[] = {"sh", "bash", "dash", "zsh", "fish", "ksh", "csh", "tcsh"};
    static const char *const others[] = {"less", "more", "man",   "vi",   "vim",    "nvim", "nano",
                                         "top",  "htop", "emacs", "tmux", "screen", "ssh"};
    const char *slash = strrchr(argv[0], '/');
    const char *name = slash ? slash + 1 : argv[0];
    for (size_t i = 0; i < GP_ARRAY_LEN(others); i++)
        if (strcmp(name, others[i]) == 0)
            return true;
    bool has_script = false;
    for (size_t i = 1; argv[i]; i++)
        has_script = has_script || argv[i][0] != '-' || strcmp(argv[i], "-c") == 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(shells) && !has_script; i++)
        if (strcmp(name, shells[i]) == 0)
            return true;
    return false;
}
