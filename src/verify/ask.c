#include "verify/ask.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SLICE_MS = 50, GRACE_MS = 1000 };

/* The program, and the end of the pipe that it writes to. */
struct asked {
    const char *program;
    pid_t pid;
    int from;
    bool has_ended;
    int wait_status;
};

static int set_actions(posix_spawn_file_actions_t *actions, int to)
{
    int r = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (r == 0)
        r = posix_spawn_file_actions_adddup2(actions, to, STDOUT_FILENO);
    if (r == 0)
        r = posix_spawn_file_actions_addopen(actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    return r;
}

static int start(struct asked *a, char *const argv[], int to)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t how;
    int r = posix_spawn_file_actions_init(&actions);
    if (r != 0)
        return r;
    r = posix_spawnattr_init(&how);
    if (r == 0) {
        r = posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP);
        if (r == 0)
            r = set_actions(&actions, to);
        if (r == 0)
            r = posix_spawn(&a->pid, a->program, &actions, &how, argv, environ);
        (void)posix_spawnattr_destroy(&how);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    return r;
}

static bool has_ended(struct asked *a)
{
    a->has_ended = a->has_ended || waitpid(a->pid, &a->wait_status, WNOHANG) == a->pid;
    return a->has_ended;
}

/* A program that hangs in the driver may not even end then: it is not waited for. */
static void kill_group(struct asked *a)
{
    (void)kill(-a->pid, SIGKILL);
    for (int ms = 0; ms < GRACE_MS && !has_ended(a); ms += SLICE_MS)
        (void)poll(NULL, 0, SLICE_MS);
}

/* Reads what is there. False: nothing will follow. */
static bool read_some(const struct asked *a, struct gp_strbuf *sb)
{
    char chunk[16384];
    ssize_t n = read(a->from, chunk, sizeof(chunk));
    if (n > 0)
        gp_strbuf_add(sb, chunk, (size_t)n);
    return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

/* Until the program has ended and everything is read. A process that it left behind may still
 * hold the pipe. */
static int read_all(struct asked *a, uint64_t timeout_ns, const volatile int *stopped,
                    struct gp_strbuf *sb, struct gp_err *err)
{
    const uint64_t until = gp_clock_mono_ns() + timeout_ns;
    bool is_open = true;
    while (is_open || !has_ended(a)) {
        struct pollfd fd = {.fd = is_open ? a->from : -1, .events = POLLIN};
        bool ended = has_ended(a);
        int n = poll(&fd, 1, ended ? 0 : is_open ? SLICE_MS : 1);
        if (n > 0)
            is_open = read_some(a, sb);
        else if (ended)
            break;
        if (*stopped)
            return gp_err_set(err, GP_EINTR, "interrupted");
        if (sb->error)
            return gp_err_set(err, sb->error, "'%s' prints more than %zu MiB", a->program,
                              sb->max >> 20);
        if (gp_clock_mono_ns() > until)
            return gp_err_set(err, GP_ETIMEOUT,
                              "'%s' did not end in %llu ms; is a GPU hung? gpulse status shows it",
                              a->program, (unsigned long long)(timeout_ns / GP_NS_PER_MS));
    }
    return 0;
}

int gp_ask(const char *program, char *const argv[], uint64_t timeout_ns,
           const volatile int *stopped, struct gp_strbuf *sb, int *ret_status, struct gp_err *err)
{
    struct asked a = {.program = program};
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return gp_err_set(err, GP_EFAIL, "cannot run '%s': %s", program, strerror(errno));
    a.from = ends[0];
    int r = start(&a, argv, ends[1]);
    (void)close(ends[1]);
    if (r != 0) {
        (void)close(a.from);
        return gp_err_set(err, GP_EFAIL, "cannot run '%s': %s", program, strerror(r));
    }
    r = read_all(&a, timeout_ns, stopped, sb, err);
    if (r < 0)
        kill_group(&a);
    (void)close(a.from);
    if (r == 0)
        *ret_status =
            WIFSIGNALED(a.wait_status) ? 128 + WTERMSIG(a.wait_status) : WEXITSTATUS(a.wait_status);
    return r;
}
