#include "jobs/guard.h"

#include "base/err.h"
#include "base/io.h"
#include "base/parse.h"
#include "base/strbuf.h"
#include "proc/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    FDS = 3,
    WORDS_BYTES_MAX = 64 << 20, /* far more than the kernel executes */
    PAUSE_MS = 20,
    DISMISS_MS = 10000,
    REFUSED_ROUNDS = 50, /* without a child that may be killed, until the guard gives up */
};

/* ---- what the supervisor writes ---- */

enum order { ORDER_RUN, ORDER_SIGNAL, ORDER_DISMISS };

struct request {
    enum order order;
    int signal;
    bool takes_terminal;
    size_t word_count, variable_count;
    size_t bytes; /* of the words and variables that follow, each with its NUL */
};

/* Room for the descriptors that travel with ORDER_RUN. */
union descriptors {
    struct cmsghdr header; /* for its alignment */
    char room[CMSG_SPACE(sizeof(int[FDS]))];
};

static bool send_request(int fd, const struct request *request, const int *fds)
{
    union descriptors control = {.room = {0}};
    struct iovec part = {(void *)(uintptr_t)request, sizeof(*request)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    ssize_t n;
    if (fds) {
        message.msg_control = control.room;
        message.msg_controllen = sizeof(control.room);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        *header = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
                                   .cmsg_type = SCM_RIGHTS,
                                   .cmsg_len = CMSG_LEN(sizeof(int[FDS]))};
        memcpy(CMSG_DATA(header), fds, sizeof(int[FDS]));
    }
    do
        n = sendmsg(fd, &message, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof(*request);
}

/* False at the end: the other side is gone. */
static bool receive_request(int fd, struct request *ret, int fds[FDS])
{
    union descriptors control;
    struct iovec part = {ret, sizeof(*ret)};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.room,
                             .msg_controllen = sizeof(control.room)};
    ssize_t n;
    do
        n = recvmsg(fd, &message, MSG_WAITALL | MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof(*ret))
        return false;
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_len == CMSG_LEN(sizeof(int[FDS])))
        memcpy(fds, CMSG_DATA(header), sizeof(int[FDS]));
    return ret->order != ORDER_RUN || header;
}

static bool read_all(int fd, void *bytes, size_t size)
{
    char *p = bytes;
    while (size > 0) {
        ssize_t n = read(fd, p, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        p += n;
        size -= (size_t)n;
    }
    return true;
}

static bool skip_all(int fd, size_t size)
{
    char chunk[4096];
    bool ok = true;
    while (ok && size > 0) {
        size_t n = size < sizeof(chunk) ? size : sizeof(chunk);
        ok = read_all(fd, chunk, n);
        size -= n;
    }
    return ok;
}

/* ---- the guard: its name ---- */

/* What `ps` shows and `pkill` looks at. Whoever kills the job by its name, or all gpulse processes,
 * does not mean the guard. The arguments are overwritten in place; the last byte is not NUL, by
 * which the kernel knows that the name ends at the first one. */
static void take_name(void)
{
    static const char name[] = "job-guard";
    char chunk[4096];
    size_t size = 0;
    ssize_t n;
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && (n = read(fd, chunk, sizeof(chunk))) > 0)
        size += (size_t)n;
    if (fd >= 0)
        (void)close(fd);
    (void)prctl(PR_SET_NAME, name);
    if (size <= sizeof(name))
        return;
    memset(program_invocation_name, 0, size);
    memcpy(program_invocation_name, name, sizeof(name));
    program_invocation_name[size - 1] = '.';
}

/* ---- the guard: its job ---- */

struct post {
    int fd;        /* to the supervisor */
    int signals;   /* readable when a child has changed, or the supervisor has ended */
    sigset_t mask; /* of the job: as it was before gpulse changed it */
    pid_t supervisor;
    pid_t job;         /* -1: none runs */
    bool is_dismissed; /* what is left may stay */
};

static void tell(const struct post *post, enum gp_guard_event event, int value)
{
    struct gp_guard_news news = {.event = event, .value = value};
    if (event == GP_GUARD_ENDED)
        (void)getrusage(RUSAGE_CHILDREN, &news.usage);
    (void)!gp_io_write_all(post->fd, &news, sizeof(news)); /* or the supervisor is gone */
}

/* The job's first process, until it is another program. */
static _Noreturn void become(const struct post *post, const struct gp_guard_job *job, pid_t guard,
                             int failure)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != guard) /* it was killed before the kernel knew of our wish */
        _exit(127);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)signal(SIGXFSZ, SIG_DFL);
    (void)setpgid(0, 0);
    if (job->takes_terminal)
        (void)tcsetpgrp(job->fds[0], getpid());
    for (int i = 0; i < FDS; i++)
        (void)dup2(job->fds[i], i);
    (void)sigprocmask(SIG_SETMASK, &post->mask, NULL);
    (void)execvpe(job->argv[0], job->argv, job->environment);
    int e = errno;
    (void)!write(failure, &e, sizeof(e));
    _exit(127);
}

static void launch(struct post *post, const struct gp_guard_job *job)
{
    int fds[2];
    int e = 0;
    pid_t guard = getpid();
    if (pipe2(fds, O_CLOEXEC) != 0) {
        tell(post, GP_GUARD_FAILED, errno);
        return;
    }
    pid_t pid = fork();
    if (pid == 0)
        become(post, job, guard, fds[1]);
    int failure = errno;
    (void)close(fds[1]);
    bool was_refused = pid > 0 && read_all(fds[0], &e, sizeof(e)); /* ends when the program runs */
    (void)close(fds[0]);
    if (pid < 0) {
        tell(post, GP_GUARD_FAILED, failure);
    } else if (was_refused) {
        (void)waitpid(pid, NULL, 0);
        tell(post, GP_GUARD_REFUSED, e);
    } else {
        post->job = pid;
        tell(post, GP_GUARD_STARTED, pid);
    }
}

/* Points to `count` strings that follow each other, with NULL after the last. */
static char *point_to(char **ret, size_t count, char *words)
{
    for (size_t i = 0; i < count; i++, words += strlen(words) + 1)
        ret[i] = words;
    ret[count] = NULL;
    return words;
}

/* False if the supervisor is gone, or there is no memory. */
static bool take_job(struct post *post, const struct request *request, const int fds[FDS])
{
    char *words = malloc(request->bytes);
    char **pointers = calloc(request->word_count + request->variable_count + 2, sizeof(*pointers));
    bool ok = words && pointers;
    if (!ok && skip_all(post->fd, request->bytes)) /* the news is lost if something stays unread */
        tell(post, GP_GUARD_FAILED, ENOMEM);
    ok = ok && read_all(post->fd, words, request->bytes);
    if (ok) {
        char **environment = pointers + request->word_count + 1;
        (void)point_to(environment, request->variable_count,
                       point_to(pointers, request->word_count, words));
        const struct gp_guard_job job = {.argv = pointers,
                                         .environment = environment,
                                         .fds = {fds[0], fds[1], fds[2]},
                                         .takes_terminal = request->takes_terminal};
        launch(post, &job);
    }
    for (int i = 0; i < FDS; i++)
        (void)close(fds[i]);
    free(pointers);
    free(words);
    return ok;
}

/* Of the job, and of what it left to the guard. */
static void reap(struct post *post)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
        if (pid == post->job && WIFSTOPPED(status)) {
            tell(post, GP_GUARD_STOPPED, WSTOPSIG(status));
        } else if (pid == post->job) {
            post->job = -1;
            tell(post, GP_GUARD_ENDED, status);
        }
    }
}

/* ---- the guard: when the supervisor is gone ---- */

/* Whether one of them may be killed. Nobody else reaps them, so none of their pids is another
 * process's between the look and the signal. */
static bool kill_children(void)
{
    const struct dirent *entry;
    bool any = false;
    DIR *proc = opendir("/proc");
    while (proc && (entry = readdir(proc))) {
        struct gp_proc_stat stat;
        uint64_t pid;
        if (gp_parse_u64(entry->d_name, &pid) &&
            gp_proc_read_stat(dirfd(proc), (uint32_t)pid, &stat) &&
            stat.ppid == (uint32_t)getpid() && kill((pid_t)pid, SIGKILL) == 0)
            any = true;
    }
    if (proc)
        (void)closedir(proc);
    return any;
}

/* Whatever loses its parent becomes a child of this process, until none is left. */
static void kill_all(void)
{
    const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};
    sigset_t changed;
    (void)sigemptyset(&changed);
    (void)sigaddset(&changed, SIGCHLD);
    for (int refused = 0; refused < REFUSED_ROUNDS;) {
        pid_t pid;
        while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
            continue;
        if (pid < 0) /* there are none */
            return;
        refused = kill_children() ? 0 : refused + 1;
        (void)sigtimedwait(&changed, NULL, &pause);
    }
}

/* ---- the guard ---- */

/* False: it is to end. */
static bool serve(struct post *post)
{
    struct request request = {.order = ORDER_DISMISS};
    int fds[FDS] = {-1, -1, -1};
    if (!receive_request(post->fd, &request, fds))
        return false;
    if (request.order == ORDER_SIGNAL && post->job > 0)
        (void)kill(-post->job, request.signal);
    post->is_dismissed = request.order == ORDER_DISMISS;
    return !post->is_dismissed && (request.order != ORDER_RUN || take_job(post, &request, fds));
}

/* Keeps nothing open that somebody might wait for. */
static void let_go_of_output(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int i = 0; null >= 0 && i < FDS; i++)
        (void)dup2(null, i);
    if (null >= 0)
        (void)close(null);
}

/* The kernel sends SIGCONT when the supervisor ends, in case something holds the other end of the
 * socket open; it also wakes a guard that somebody has stopped. */
static _Noreturn void stand_guard(int fd, pid_t supervisor)
{
    struct post post = {.fd = fd, .supervisor = supervisor, .job = -1};
    sigset_t watched;
    sigset_t all;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_BLOCK, &all, &post.mask);
    (void)sigemptyset(&watched);
    (void)sigaddset(&watched, SIGCHLD);
    (void)sigaddset(&watched, SIGCONT);
    post.signals = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    (void)prctl(PR_SET_PDEATHSIG, SIGCONT);
    take_name();
    let_go_of_output();
    for (bool goes_on = post.signals >= 0; goes_on;) {
        struct pollfd fds[] = {{post.fd, POLLIN, 0}, {post.signals, POLLIN, 0}};
        struct signalfd_siginfo info;
        (void)poll(fds, GP_ARRAY_LEN(fds), -1);
        while (read(post.signals, &info, sizeof(info)) > 0)
            continue;
        reap(&post);
        goes_on = getppid() == post.supervisor && (!fds[0].revents || serve(&post));
    }
    if (!post.is_dismissed)
        kill_all();
    _exit(0);
}

/* ---- the supervisor ---- */

int gp_guard_start(struct gp_guard *guard, struct gp_err *err)
{
    int fds[2];
    pid_t self = getpid();
    *guard = (struct gp_guard){-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
        return gp_err_set(err, GP_EFAIL, "cannot start a process: %s", strerror(errno));
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    guard->pid = fork();
    if (guard->pid == 0) {
        (void)close(fds[0]);
        stand_guard(fds[1], self);
    }
    (void)close(fds[1]);
    guard->fd = fds[0];
    if (guard->pid >= 0)
        return 0;
    (void)close(fds[0]);
    guard->fd = -1;
    return gp_err_set(err, GP_EFAIL, "cannot start a process: %s", strerror(errno));
}

static size_t add_words(struct gp_strbuf *sb, char *const *words)
{
    size_t count = 0;
    for (; words[count]; count++)
        gp_strbuf_add(sb, words[count], strlen(words[count]) + 1);
    return count;
}

int gp_guard_run(struct gp_guard *guard, const struct gp_guard_job *job, struct gp_guard_news *ret,
                 struct gp_err *err)
{
    struct gp_strbuf words = GP_STRBUF_INIT(WORDS_BYTES_MAX);
    struct request request = {.order = ORDER_RUN, .takes_terminal = job->takes_terminal};
    request.word_count = add_words(&words, job->argv);
    request.variable_count = add_words(&words, job->environment);
    request.bytes = words.len;
    int r = words.error;
    if (r < 0)
        (void)gp_err_set(err, r, "cannot start a process: %s", strerror(ENOMEM));
    *ret = (struct gp_guard_news){.event = GP_GUARD_LOST};
    if (r == 0 && send_request(guard->fd, &request, job->fds) &&
        gp_io_write_all(guard->fd, words.buf, words.len) == 0)
        gp_guard_read(guard, ret);
    gp_strbuf_fini(&words);
    return r;
}

static void await(const struct gp_guard *guard)
{
    while (waitpid(guard->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

void gp_guard_read(struct gp_guard *guard, struct gp_guard_news *ret)
{
    if (read_all(guard->fd, ret, sizeof(*ret)))
        return;
    *ret = (struct gp_guard_news){.event = GP_GUARD_LOST};
    (void)close(guard->fd);
    guard->fd = -1;
    await(guard); /* only when it is reaped have its children become ours */
}

bool gp_guard_is_lost(struct gp_guard *guard)
{
    struct gp_guard_news news;
    struct pollfd fd = {guard->fd, POLLIN, 0};
    if (guard->fd >= 0 && poll(&fd, 1, 0) > 0)
        gp_guard_read(guard, &news);
    return guard->fd < 0;
}

void gp_guard_signal(const struct gp_guard *guard, int signal)
{
    const struct request request = {.order = ORDER_SIGNAL, .signal = signal};
    (void)send_request(guard->fd, &request, NULL);
}

void gp_guard_dismiss(struct gp_guard *guard, bool leaves_alone)
{
    const struct request request = {.order = ORDER_DISMISS};
    struct pollfd end = {guard->fd, 0, 0}; /* it hangs up: news that nobody has read do not count */
    if (guard->fd >= 0) {
        if (leaves_alone)
            (void)send_request(guard->fd, &request, NULL);
        (void)shutdown(guard->fd, SHUT_WR);
        if (poll(&end, 1, DISMISS_MS) > 0)
            await(guard);
        (void)close(guard->fd);
    }
    *guard = (struct gp_guard){-1, -1};
}
