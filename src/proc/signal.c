#include "proc/signal.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "proc/files.h"
#include "proc/proc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Start times are rounded to kernel ticks, and the wall clock may be adjusted. */
enum { SLACK_NS = 1000 * 1000 * 1000, ANCESTORS_MAX = 256 };

static const char *simulated; /* root; NULL: none */

void gp_proc_set_simulated(const char *root)
{
    simulated = root;
}

bool gp_proc_is_simulated(int64_t pid)
{
    char name[32], path[GP_PATH_SIZE];
    struct stat st;
    (void)snprintf(name, sizeof(name), "/proc/%lld", (long long)pid);
    return simulated && gp_io_path(path, simulated, name) && lstat(path, &st) == 0 &&
           S_ISDIR(st.st_mode);
}

bool gp_proc_is_own_ancestor(int64_t pid)
{
    char path[64], text[1024];
    struct gp_proc_stat stat;
    uint32_t at = (uint32_t)getpid();
    for (int i = 0; i < ANCESTORS_MAX && at > 1; i++) {
        (void)snprintf(path, sizeof(path), "/proc/%u/stat", at);
        if (gp_io_read(path, text, sizeof(text)) <= 0 || !gp_proc_parse_stat(text, &stat))
            return false;
        if (stat.ppid == pid)
            return true;
        at = stat.ppid;
    }
    return false;
}

/* When the process started; 0: unknown. */
static uint64_t start_of(uint32_t pid)
{
    struct gp_proc_reader *reader = gp_proc_reader_new(NULL);
    if (!reader)
        return 0;
    const struct gp_proc_infos *found = gp_proc_read(reader, GP_PROC_STAT, &pid, 1);
    uint64_t start_ns = found ? found->infos[0].start_ns : 0;
    gp_proc_reader_free(reader);
    return start_ns;
}

int gp_proc_hold(int64_t pid, uint64_t seen_wall_ns, int *ret_fd, struct gp_err *err)
{
    if (pid <= 1 || pid > INT32_MAX || pid == getpid())
        return gp_err_set(err, GP_EPERM, "process %lld cannot be signalled", (long long)pid);
    if (gp_proc_is_simulated(pid))
        return gp_err_set(err, GP_ENODEV,
                          "pid %lld is simulated; there is no process to signal (gpulse sim load "
                          "starts one)",
                          (long long)pid);
    int fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
    if (fd < 0)
        return gp_err_set(err, GP_EFAIL,
                          errno == ESRCH ? "process %lld has exited, or is not visible from here"
                                         : "cannot open process %lld",
                          (long long)pid);
    /* Read after opening, so that it belongs to this process. */
    uint64_t start_ns = start_of((uint32_t)pid);
    uint64_t now_ns = gp_clock_wall_ns();
    if (start_ns > now_ns) /* no process starts later than now: a clock was set */
        start_ns = now_ns;
    if (start_ns == 0 || start_ns > seen_wall_ns + SLACK_NS) {
        (void)close(fd);
        return gp_err_set(err, GP_EFAIL,
                          start_ns == 0 ? "process %lld has exited"
                                        : "pid %lld was recycled by another process",
                          (long long)pid);
    }
    *ret_fd = fd;
    return 0;
}

int gp_proc_signal(int fd, int signal, struct gp_err *err)
{
    if (syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0) == 0)
        return 0;
    if (errno == EPERM)
        return gp_err_set(err, GP_EPERM, "it belongs to another user");
    return gp_err_set(err, GP_EFAIL, errno == ESRCH ? "it has already exited" : "%s",
                      strerror(errno));
}
