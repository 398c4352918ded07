#include "proc/ending.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/parse.h"
#include "proc/files.h"
#include "proc/signal.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    TREE_ROUNDS = 16, /* searches for children that were created during the search */
};

/* ---- protected processes ---- */

static bool read_stat(uint32_t pid, struct gp_proc_stat *ret)
{
    char path[64];
    char text[1024];
    (void)snprintf(path, sizeof(path), "/proc/%u/stat", pid);
    return gp_io_read(path, text, sizeof(text)) > 0 && gp_proc_parse_stat(text, ret);
}

/* Identified by its program, which must belong to root, because a process can choose its own
 * name. */
static bool is_display_server(uint32_t pid)
{
    char path[64];
    char target[GP_PATH_SIZE];
    struct stat st;
    (void)snprintf(path, sizeof(path), "/proc/%u/exe", pid);
    ssize_t n = readlink(path, target, sizeof(target) - 1);
    if (n <= 0 || stat(path, &st) != 0 || st.st_uid != 0)
        return false;
    target[n] = '\0';
    const char *slash = strrchr(target, '/');
    return gp_proc_is_display_server(slash ? slash + 1 : target);
}

/* Read after its descriptor was opened, so that everything is about the same process. */
static int check(int64_t pid, bool named, struct gp_ending_process *ret, struct gp_err *err)
{
    char path[64];
    struct stat folder;
    struct gp_proc_stat stat;
    const long long n = pid;
    (void)snprintf(path, sizeof(path), "/proc/%lld", n);
    if (!read_stat((uint32_t)pid, &stat) || lstat(path, &folder) != 0)
        return gp_err_set(err, GP_EFAIL, "process %lld has exited", n);
    ret->start_ticks = stat.start_ticks;
    ret->session = stat.session;
    ret->uid = folder.st_uid;
    if (stat.is_kernel)
        return gp_err_set(err, GP_EPERM, "process %lld is a kernel thread", n);
    if (gp_proc_is_own_ancestor(pid))
        return gp_err_set(err, GP_EPERM, "process %lld is an ancestor of this gpulse", n);
    if (geteuid() != 0 && folder.st_uid != geteuid())
        return gp_err_set(err, GP_EPERM,
                          "process %lld belongs to another user; only root can terminate it", n);
    if (!named && is_display_server((uint32_t)pid))
        return gp_err_set(err, GP_EPERM,
                          "process %lld is a display server; to terminate it, give its pid", n);
    return 0;
}

/* ---- the list ---- */

/* Whether the list has this process, and it is still running. */
static bool has(const struct gp_ending *ending, int64_t pid)
{
    for (size_t i = 0; i < ending->count; i++)
        if (ending->processes[i].pid == pid && !ending->processes[i].ended)
            return true;
    return false;
}

/* Whether the list has this process, running or not. A process that its parent has just reaped may
 * remain in /proc for a moment, in state X, and can even be opened. */
static bool knows(const struct gp_ending *ending, int64_t pid, uint64_t start_ticks)
{
    for (size_t i = 0; i < ending->count; i++)
        if (ending->processes[i].pid == pid && ending->processes[i].start_ticks == start_ticks)
            return true;
    return false;
}

static int add(struct gp_ending *ending, const struct gp_ending_process *process,
               struct gp_err *err)
{
    struct gp_ending_process *grown =
        realloc(ending->processes, (ending->count + 1) * sizeof(*grown));
    if (!grown) {
        (void)close(process->fd);
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    }
    ending->processes = grown;
    grown[ending->count++] = *process;
    return 0;
}

/* Opens a process that is not in the list yet: ret->fd is −1 if it is. */
static int hold(const struct gp_ending *ending, int64_t pid, uint64_t seen_wall_ns, bool named,
                struct gp_ending_process *ret, struct gp_err *err)
{
    *ret = (struct gp_ending_process){.pid = pid, .fd = -1};
    if (ending->count == 0)
        gp_io_raise_file_limit(); /* one descriptor for each */
    if (has(ending, pid))
        return 0;
    int r = gp_proc_hold(pid, seen_wall_ns, &ret->fd, err);
    if (r < 0)
        return r;
    r = check(pid, named, ret, err);
    if (r < 0 || knows(ending, pid, ret->start_ticks)) {
        (void)close(ret->fd);
        ret->fd = -1;
    }
    return r;
}

int gp_ending_add(struct gp_ending *ending, int64_t pid, uint64_t seen_wall_ns, bool named,
                  struct gp_err *err)
{
    struct gp_ending_process process;
    int r = hold(ending, pid, seen_wall_ns, named, &process, err);
    return r < 0 || process.fd < 0 ? r : add(ending, &process, err);
}

void gp_ending_fini(struct gp_ending *ending)
{
    for (size_t i = 0; i < ending->count; i++)
        if (ending->processes[i].fd >= 0)
            (void)close(ending->processes[i].fd);
    free(ending->processes);
    *ending = (struct gp_ending){NULL, 0};
}

/* ---- children ---- */

/* A pidfd does not keep a pid from being used again after the process was reaped. What another
 * process says about a pid is therefore about the process in the list only if that one is still
 * running afterwards. */
static bool is_running(const struct gp_ending_process *process)
{
    struct pollfd end = {process->fd, POLLIN, 0};
    return !process->ended && poll(&end, 1, 0) == 0;
}

/* Whether the process group of a leader in the list is still the same. When the leader has exited,
 * a new process and group may have its pid. */
static bool is_still_its_group(const struct gp_ending_process *leader, uint32_t pid,
                               const struct gp_proc_stat *stat)
{
    char path[64];
    struct stat folder;
    struct gp_proc_stat now;
    if (is_running(leader))
        return true;
    (void)snprintf(path, sizeof(path), "/proc/%u", pid);
    if (read_stat((uint32_t)leader->pid, &now) && now.start_ticks != leader->start_ticks)
        return false;
    return stat->session == leader->session && lstat(path, &folder) == 0 &&
           folder.st_uid == leader->uid;
}

/* Whether a process belongs to the list: as a child of a running member, or in the group of a
 * leader that was selected explicitly, even if the leader has exited. A process stays in the group
 * when its parent exits. */
static bool comes_from(const struct gp_ending *ending, uint32_t pid,
                       const struct gp_proc_stat *stat)
{
    for (size_t i = 0; i < ending->count; i++) {
        const struct gp_ending_process *p = &ending->processes[i];
        if (p->pid == stat->ppid && is_running(p))
            return true;
        if (!p->is_child && p->pid == stat->group && is_still_its_group(p, pid, stat))
            return true;
    }
    return false;
}

/* Adds a process if it is a child of `parent` or, if that is 0, comes from the list. By the time it
 * is held, another process may have got its pid. */
static void add_if_matching(struct gp_ending *ending, int64_t parent, uint32_t pid)
{
    struct gp_err err;
    struct gp_proc_stat stat;
    struct gp_ending_process process;
    if (!read_stat(pid, &stat) || stat.state == 'Z' || stat.state == 'X' ||
        !(parent ? stat.ppid == parent : comes_from(ending, pid, &stat)) ||
        hold(ending, pid, gp_clock_wall_ns(), true, &process, &err) < 0 || process.fd < 0)
        return;
    process.is_child = parent == 0;
    if (process.start_ticks == stat.start_ticks)
        (void)!add(ending, &process, &err);
    else
        (void)close(process.fd);
}

/* Adds the children and group members of the held processes or, if `parent` is not 0, the children
 * of `parent`, except `but`. Returns whether there were any. The caller is `parent`, or has not
 * reaped it yet. */
static bool add_matching(struct gp_ending *ending, int64_t parent, const struct gp_ending *but)
{
    struct dirent *entry;
    DIR *proc = opendir("/proc");
    const size_t before = ending->count;
    while (proc && (entry = readdir(proc))) {
        uint64_t pid;
        if (gp_parse_u64(entry->d_name, &pid) && !has(ending, (int64_t)pid) &&
            !(but && has(but, (int64_t)pid)))
            add_if_matching(ending, parent, (uint32_t)pid);
    }
    if (proc)
        (void)closedir(proc);
    return ending->count > before;
}

void gp_ending_add_children(struct gp_ending *ending, int64_t parent, const struct gp_ending *but)
{
    (void)add_matching(ending, parent, but);
}

/* Adds all descendants; returns whether there were any. */
static bool complete(struct gp_ending *ending, bool tree)
{
    size_t before = ending->count;
    for (int round = 0; tree && round < TREE_ROUNDS && add_matching(ending, 0, NULL); round++)
        continue;
    return ending->count > before;
}

void gp_ending_add_tree(struct gp_ending *ending)
{
    (void)complete(ending, true);
}

/* ---- signals ---- */

static void send_signals(struct gp_ending *ending, size_t first, int signal)
{
    for (size_t i = first; i < ending->count; i++) {
        struct gp_ending_process *p = &ending->processes[i];
        struct gp_err err;
        if (p->ended)
            continue;
        p->signal = signal;
        if (signal != SIGKILL && signal != SIGSTOP)
            (void)!gp_proc_signal(p->fd, SIGCONT,
                                  &err); /* a stopped process does not handle signals */
        p->error = gp_proc_signal(p->fd, signal, &err) == GP_EPERM ? EPERM : 0;
    }
}

/* Sends the signal to all, including children created meanwhile. */
static void send_to_all(struct gp_ending *ending, int signal, bool tree)
{
    size_t sent = 0;
    for (int round = 0; round < TREE_ROUNDS && (round == 0 || sent < ending->count); round++) {
        send_signals(ending, sent, signal);
        sent = ending->count;
        (void)complete(ending, tree);
    }
}

static size_t count_left(const struct gp_ending *ending)
{
    size_t left = 0;
    for (size_t i = 0; i < ending->count; i++)
        left += !ending->processes[i].ended;
    return left;
}

/* Marks those that exit before the deadline; returns early when all have. */
static void await(struct gp_ending *ending, uint64_t begin_ns, uint64_t until_ns)
{
    struct pollfd *fds = calloc(ending->count + 1, sizeof(*fds));
    bool any = fds != NULL;
    while (any && count_left(ending) > 0) {
        uint64_t now_ns = gp_clock_mono_ns();
        struct timespec rest = gp_clock_timespec(until_ns > now_ns ? until_ns - now_ns : 0);
        for (size_t i = 0; i < ending->count; i++) {
            const struct gp_ending_process *p = &ending->processes[i];
            fds[i] = (struct pollfd){p->ended ? -1 : p->fd, POLLIN, 0};
        }
        any = ppoll(fds, (nfds_t)ending->count, &rest, NULL) > 0;
        for (size_t i = 0; any && i < ending->count; i++)
            if (fds[i].revents) {
                ending->processes[i].ended = true;
                ending->processes[i].after_ns = gp_clock_mono_ns() - begin_ns;
            }
    }
    free(fds);
}

/* Records why the remaining processes do not exit. */
static void note_states(struct gp_ending *ending)
{
    for (size_t i = 0; i < ending->count; i++) {
        struct gp_proc_stat stat;
        struct gp_ending_process *p = &ending->processes[i];
        if (!p->ended && read_stat((uint32_t)p->pid, &stat))
            p->state = stat.state;
    }
}

/* Sends one signal to all that are still running. Before the last signal of a tree all are stopped,
 * so that none can create children while its parent is killed. */
static void signal_and_wait(struct gp_ending *ending, const struct gp_ending_plan *plan, int signal,
                            uint64_t begin_ns)
{
    if (plan->on_signal)
        plan->on_signal(plan->ctx, signal, count_left(ending));
    if (plan->tree && signal == SIGKILL)
        send_to_all(ending, SIGSTOP, true);
    send_to_all(ending, signal, plan->tree);
    await(ending, begin_ns, gp_clock_mono_ns() + plan->grace_ns);
}

bool gp_ending_run(struct gp_ending *ending, const struct gp_ending_plan *plan)
{
    uint64_t begin_ns = gp_clock_mono_ns();
    size_t last = plan->signal_count - 1;
    bool more = complete(ending, plan->tree); /* while all are still running */
    for (size_t i = 0; count_left(ending) > 0 && (i <= last || more) && i < TREE_ROUNDS; i++) {
        signal_and_wait(ending, plan, plan->signals[i < last ? i : last], begin_ns);
        more = complete(ending, plan->tree); /* created by those that were exiting */
    }
    note_states(ending);
    return count_left(ending) == 0;
}
