#include "jobs/guard.h"

#include "base/err.h"
#include "base/io.h"
#include "base/parse.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ENVIRONMENT_BYTES = 1 << 20, ROUNDS = 64, QUIET_ROUNDS = 3, QUIET_MS = 20 };

/* Whether it is one of several: a job may start jobs. */
static bool is_among(const char *marks, const char *mark)
{
    size_t n = strlen(mark);
    for (const char *p = marks; *p; p += strcspn(p, ":"), p += *p == ':')
        if (strcspn(p, ":") == n && strncmp(p, mark, n) == 0)
            return true;
    return false;
}

static bool has_mark(uint32_t pid, const char *mark, char *room)
{
    static const char variable[] = GP_GUARD_VARIABLE "=";
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%u/environ", pid);
    long n = gp_io_read(path, room, ENVIRONMENT_BYTES);
    for (long i = 0; i < n; i += (long)strlen(room + i) + 1)
        if (strncmp(room + i, variable, sizeof(variable) - 1) == 0)
            return is_among(room + i + sizeof(variable) - 1, mark);
    return false;
}

/* It is looked at again when it is held, so that it is not a later one with its pid. */
static bool end_marked(uint32_t pid, const char *mark, char *room)
{
    if (!has_mark(pid, mark, room))
        return false;
    int fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
    bool marked = fd >= 0 && has_mark(pid, mark, room);
    if (marked)
        (void)syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
    if (fd >= 0)
        (void)close(fd);
    return marked;
}

/* Round after round, until some have found none: they may make new ones meanwhile, and one that is
 * about to become another program has no environment for a moment. */
static void end_all(const char *mark)
{
    char *room = malloc(ENVIRONMENT_BYTES);
    const struct timespec pause = {.tv_nsec = QUIET_MS * 1000000L};
    int quiet = 0;
    for (int round = 0; room && quiet < QUIET_ROUNDS && round < ROUNDS; round++) {
        DIR *proc = opendir("/proc");
        const struct dirent *entry;
        bool any = false;
        while (proc && (entry = readdir(proc))) {
            uint64_t pid;
            if (gp_parse_u64(entry->d_name, &pid) && (pid_t)pid != getpid() &&
                end_marked((uint32_t)pid, mark, room))
                any = true;
        }
        if (proc)
            (void)closedir(proc);
        quiet = any ? 0 : quiet + 1;
        (void)nanosleep(&pause, NULL);
    }
    free(room);
}

static _Noreturn void watch(int fd, const char *mark)
{
    char byte;
    sigset_t all;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_BLOCK, &all, NULL);
    (void)setpgid(0, 0);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int i = 0; null >= 0 && i <= STDERR_FILENO; i++)
        (void)dup2(null, i); /* who reads our output does not wait for this one */
    ssize_t n;
    do
        n = read(fd, &byte, 1);
    while (n < 0 && errno == EINTR);
    if (n == 0)
        end_all(mark);
    _exit(0);
}

int gp_guard_start(struct gp_guard *guard, const char *mark, struct gp_err *err)
{
    int fds[2];
    *guard = (struct gp_guard){-1, -1};
    if (pipe2(fds, O_CLOEXEC) != 0)
        return gp_err_set(err, GP_EFAIL, "cannot start a process: %s", strerror(errno));
    guard->pid = fork();
    if (guard->pid == 0) {
        (void)close(fds[1]);
        watch(fds[0], mark);
    }
    (void)close(fds[0]);
    guard->fd = fds[1];
    if (guard->pid >= 0)
        return 0;
    (void)close(fds[1]);
    return gp_err_set(err, GP_EFAIL, "cannot start a process: %s", strerror(errno));
}

void gp_guard_dismiss(struct gp_guard *guard)
{
    if (guard->fd < 0)
        return;
    (void)!write(guard->fd, "x", 1);
    (void)close(guard->fd);
    (void)waitpid(guard->pid, NULL, 0);
    *guard = (struct gp_guard){-1, -1};
}
