/* The process between a supervisor and its job: nothing of the job outlives the supervisor, and the
 * supervisor learns what happens. A descendant that is alive is seen by the pipe that it has as its
 * standard output: reading from it does not end. */
#include "unit.h"

#include "base/err.h"
#include "base/io.h"
#include "jobs/guard.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* How many more there are; -1: any number. A process has its own count, which begins with that of
 * its parent. */
static int forks_left = -1;
static int pipes_left = -1;
static bool no_socket;

pid_t __real_fork(void);
pid_t __wrap_fork(void);
int __real_pipe2(int fds[2], int flags);
int __wrap_pipe2(int fds[2], int flags);
int __real_socketpair(int domain, int type, int protocol, int fds[2]);
int __wrap_socketpair(int domain, int type, int protocol, int fds[2]);

static bool take_one(int *left)
{
    errno = EMFILE;
    if (*left == 0)
        return false;
    *left -= *left > 0;
    return true;
}

pid_t __wrap_fork(void)
{
    return take_one(&forks_left) ? __real_fork() : -1;
}

int __wrap_pipe2(int fds[2], int flags)
{
    return take_one(&pipes_left) ? __real_pipe2(fds, flags) : -1;
}

int __wrap_socketpair(int domain, int type, int protocol, int fds[2])
{
    errno = EMFILE;
    return no_socket ? -1 : __real_socketpair(domain, type, protocol, fds);
}

/* A shell runs it, with `out` as its standard output. */
static struct gp_guard_news run(struct gp_guard *guard, const char *script, int out)
{
    char shell[] = "sh";
    char option[] = "-c";
    char *argv[] = {shell, option, (char *)(uintptr_t)script, NULL};
    const struct gp_guard_job job = {
        .argv = argv, .environment = environ, .fds = {STDIN_FILENO, out, STDERR_FILENO}};
    struct gp_guard_news news;
    assert_int_equal(gp_guard_run(guard, &job, &news, NULL), 0);
    return news;
}

static struct gp_guard start(void)
{
    struct gp_guard guard;
    assert_int_equal(gp_guard_start(&guard, NULL), 0);
    return guard;
}

static struct gp_guard_news next(struct gp_guard *guard)
{
    struct gp_guard_news news;
    gp_guard_read(guard, &news);
    return news;
}

static void what_happens_to_a_job(void **ctx)
{
    (void)ctx;
    size_t before = open_file_count();
    struct gp_guard guard = start();
    struct gp_guard_news news = run(&guard, "kill -TSTP $$; exit 7", STDERR_FILENO);
    assert_int_equal(news.event, GP_GUARD_STARTED);
    assert_int_equal(getpgid(news.value), news.value);
    news = next(&guard);
    assert_int_equal(news.event, GP_GUARD_STOPPED);
    assert_int_equal(news.value, SIGTSTP);
    gp_guard_signal(&guard, SIGCONT);
    news = next(&guard);
    assert_int_equal(news.event, GP_GUARD_ENDED);
    assert_int_equal(WEXITSTATUS(news.value), 7);
    assert_true(news.usage.ru_maxrss > 0);
    gp_guard_signal(&guard, SIGKILL); /* nobody is there any more */
    news = run(&guard, "kill -KILL $$", STDERR_FILENO);
    assert_int_equal(news.event, GP_GUARD_STARTED);
    assert_int_equal(WTERMSIG(next(&guard).value), SIGKILL);
    gp_guard_dismiss(&guard, false);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(open_file_count(), before);
}

static void its_name(void **ctx)
{
    (void)ctx;
    char path[64];
    char text[64] = "";
    struct gp_guard guard = start();
    (void)run(&guard, "exit 0", STDERR_FILENO); /* by then it has its name */
    (void)snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)guard.pid);
    assert_int_equal(gp_io_read(path, text, sizeof(text)), sizeof("job-guard"));
    assert_string_equal(text, "job-guard");
    (void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)guard.pid);
    assert_true(gp_io_read(path, text, sizeof(text)) > 0);
    assert_string_equal(text, "job-guard\n");
    gp_guard_dismiss(&guard, false);
}

/* Each leaves a process that says a word when it runs, and is in nobody's way out. */
static const char *const escapes[] = {
    "(echo x; exec sleep 1000)",
    "(echo x; exec sleep 1000) & wait",
    "setsid sh -c 'echo x; exec sleep 1000' & exit 0",
    "(setsid sh -c 'echo x; exec sleep 1000' &)",
    "env -i setsid sh -c '(echo x; exec sleep 1000) &'",
    "env -i setsid sh -c 'trap \"\" TERM HUP INT; echo x; while :; do sleep 1000; done' &",
};

/* All have ended when the pipe has no writer. */
static void await_end(int out)
{
    char byte;
    assert_int_equal(read(out, &byte, 1), 0);
    (void)close(out);
}

static _Noreturn void supervise(const char *script, int out)
{
    struct gp_guard guard = start();
    (void)run(&guard, script, out);
    for (;;)
        (void)pause();
}

static void nothing_outlives_the_supervisor(void **ctx)
{
    (void)ctx;
    for (size_t i = 0; i < GP_ARRAY_LEN(escapes); i++) {
        char byte;
        int fds[2];
        assert_int_equal(pipe(fds), 0);
        pid_t supervisor = fork();
        if (supervisor == 0)
            supervise(escapes[i], fds[1]);
        (void)close(fds[1]);
        assert_int_equal(read(fds[0], &byte, 1), 1);
        assert_int_equal(read(fds[0], &byte, 1), 1); /* the newline */
        assert_int_equal(kill(supervisor, SIGKILL), 0);
        assert_int_equal(waitpid(supervisor, NULL, 0), supervisor);
        await_end(fds[0]);
    }
}

/* A descriptor that somebody else has keeps the guard from seeing that the supervisor is gone; the
 * kernel says so as well, and wakes a guard that was stopped. */
static void a_guard_that_was_stopped(void **ctx)
{
    (void)ctx;
    char byte;
    int fds[2];
    int pids[2];
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(pipe(pids), 0);
    pid_t supervisor = fork();
    if (supervisor == 0) {
        struct gp_guard guard = start();
        pid_t holder = fork(); /* of the other end of the guard's socket */
        if (holder == 0)
            for (;;)
                (void)pause();
        (void)run(&guard, "echo x; exec sleep 1000", fds[1]);
        (void)kill(guard.pid, SIGSTOP);
        (void)!write(pids[1], &holder, sizeof(holder));
        for (;;)
            (void)pause();
    }
    pid_t holder;
    assert_int_equal(read(pids[0], &holder, sizeof(holder)), sizeof(holder));
    assert_int_equal(read(fds[0], &byte, 1), 1);
    (void)close(fds[1]);
    assert_int_equal(kill(supervisor, SIGKILL), 0);
    assert_int_equal(waitpid(supervisor, NULL, 0), supervisor);
    assert_int_equal(kill(holder, SIGKILL), 0);
    (void)close(pids[0]);
    (void)close(pids[1]);
    assert_int_equal(read(fds[0], &byte, 1), 1);
    await_end(fds[0]);
}

/* Starts a job with a child in a session of its own, of which the pipe says the pid. */
static pid_t run_with_child(struct gp_guard *guard, const char *more, int fds[2], pid_t *ret_child)
{
    char script[200];
    char line[32] = "";
    assert_int_equal(pipe(fds), 0);
    (void)snprintf(script, sizeof(script), "setsid sh -c 'echo $$; exec sleep 1000' & %s", more);
    pid_t job = run(guard, script, fds[1]).value;
    (void)close(fds[1]);
    assert_true(read(fds[0], line, sizeof(line) - 1) > 0);
    *ret_child = (pid_t)strtol(line, NULL, 10);
    return job;
}

static void a_guard_that_is_killed(void **ctx)
{
    (void)ctx;
    int fds[2];
    int status;
    pid_t child;
    struct gp_guard guard = start();
    pid_t job = run_with_child(&guard, "exec sleep 1000", fds, &child);
    assert_false(gp_guard_is_lost(&guard));
    assert_int_equal(kill(guard.pid, SIGKILL), 0);
    assert_int_equal(next(&guard).event, GP_GUARD_LOST);
    assert_true(gp_guard_is_lost(&guard));
    assert_int_equal(waitpid(job, &status, 0), job); /* it is ours by now */
    assert_int_equal(WTERMSIG(status), SIGKILL);
    assert_int_equal(waitpid(child, NULL, WNOHANG), 0); /* and so is this one, which lives */
    assert_int_equal(run(&guard, "exit 0", STDERR_FILENO).event, GP_GUARD_LOST);
    gp_guard_dismiss(&guard, false);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    await_end(fds[0]);
}

static void what_is_left_at_the_end(void **ctx)
{
    (void)ctx;
    for (int stays = 0; stays <= 1; stays++) {
        int fds[2];
        pid_t child;
        struct gp_guard guard = start();
        (void)run_with_child(&guard, "exit 0", fds, &child);
        assert_int_equal(next(&guard).event, GP_GUARD_ENDED);
        gp_guard_dismiss(&guard, stays);
        if (stays) { /* it is ours by now */
            assert_int_equal(waitpid(child, NULL, WNOHANG), 0);
            assert_int_equal(kill(child, SIGKILL), 0);
            assert_int_equal(waitpid(child, NULL, 0), child);
        }
        await_end(fds[0]);
    }
}

static void no_room_for_it(void **ctx)
{
    (void)ctx;
    struct gp_err err = {0};
    struct gp_guard guard;
    size_t before = open_file_count();
    no_socket = true;
    assert_int_equal(gp_guard_start(&guard, &err), GP_EFAIL);
    no_socket = false;
    assert_string_equal(err.text, "cannot start a process: Too many open files");
    forks_left = 0;
    assert_int_equal(gp_guard_start(&guard, &err), GP_EFAIL);
    forks_left = -1;
    assert_int_equal(guard.fd, -1);
    gp_guard_dismiss(&guard, false);
    assert_int_equal(open_file_count(), before);
}

static void no_room_for_its_job(void **ctx)
{
    (void)ctx;
    static const struct {
        int forks, pipes;
        long allocations;
        int error;
    } rows[] = {{1, -1, -1, EMFILE}, {-1, 0, -1, EMFILE}, {-1, -1, 0, ENOMEM}};
    for (size_t i = 0; i < GP_ARRAY_LEN(rows); i++) {
        forks_left = rows[i].forks;
        pipes_left = rows[i].pipes;
        alloc_fail_from(rows[i].allocations);
        struct gp_guard guard = start();
        alloc_fail_from(-1);
        forks_left = pipes_left = -1;
        struct gp_guard_news news = run(&guard, "exit 0", STDERR_FILENO);
        assert_int_equal(news.event, GP_GUARD_FAILED);
        assert_int_equal(news.value, rows[i].error);
        gp_guard_dismiss(&guard, false);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_happens_to_a_job),
        cmocka_unit_test(its_name),
        cmocka_unit_test(nothing_outlives_the_supervisor),
        cmocka_unit_test(a_guard_that_was_stopped),
        cmocka_unit_test(a_guard_that_is_killed),
        cmocka_unit_test(what_is_left_at_the_end),
        cmocka_unit_test(no_room_for_it),
        cmocka_unit_test(no_room_for_its_job),
    };
    (void)signal(SIGPIPE, SIG_IGN);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
