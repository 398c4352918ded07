#include "proc/proc.h"

#include "base/clock.h"
#include "base/io.h"
#include "proc/files.h"
#include "proc/proc_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* ---- numbers of a process ---- */

/* The last percentage still holds between two readings in quick succession, when a busy process
 * gets a tick or none, and if the file has not been written again. */
static void compute_cpu(const struct gp_proc_reader *reader, struct gp_proc_info *info)
{
    enum { APART_MS = 45 };
    const struct gp_proc_info *past = gp_proc_same_past(reader, info);
    uint64_t ticks = info->cpu_ticks;
    double seconds;
    if (past && info->as_of_ns < past->as_of_ns + APART_MS * GP_NS_PER_MS) {
        info->cpu_pct = past->cpu_pct;
        info->cpu_ticks = past->cpu_ticks;
        info->as_of_ns = past->as_of_ns;
        return;
    }
    if (past && ticks >= past->cpu_ticks) {
        ticks -= past->cpu_ticks;
        seconds = (double)(info->as_of_ns - past->as_of_ns) / 1e9;
    } else {
        uint64_t wall = gp_clock_wall_ns();
        seconds = wall > info->start_ns ? (double)(wall - info->start_ns) / 1e9 : 0;
    }
    double ticks_per_s = (double)reader->ticks_per_s;
    info->cpu_pct = seconds > 0.01 ? 100.0 * (double)ticks / ticks_per_s / seconds : 0;
}

/* A file that is read in every tick is kept open, which halves the cost of reading. It always
 * refers to the same process: after that has exited, reads fail. Not with a root prefix, where a
 * removed file can still be read. */
static long read_kept(struct gp_proc_reader *reader, struct gp_proc_info *info, char *text,
                      size_t size)
{
    char name[32];
    struct gp_proc_info *past = gp_proc_find(&reader->past, info->pid);
    long n = past ? gp_proc_read_again(past->stat_fd, text, size) : -1;
    if (n > 0) {
        info->stat_fd = past->stat_fd;
        past->stat_fd = -1;
        return n;
    }
    (void)snprintf(name, sizeof(name), "%u/stat", info->pid);
    int fd = openat(reader->dir, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    n = gp_proc_read_again(fd, text, size);
    if (n > 0)
        info->stat_fd = fd;
    else
        (void)close(fd);
    return n;
}

/* Below a root prefix, a file may have been written some time ago, by a simulated machine for
 * example: then its numbers are of that time. A file of the kernel is empty until it is read. */
static uint64_t age_of(int fd)
{
    struct stat st;
    if (fstat(fd, &st) < 0 || st.st_size == 0)
        return 0;
    const uint64_t wall_ns = gp_clock_wall_ns();
    const uint64_t written_ns =
        (uint64_t)st.st_mtim.tv_sec * GP_NS_PER_S + (uint64_t)st.st_mtim.tv_nsec;
    return wall_ns > written_ns ? wall_ns - written_ns : 0;
}

/* Sets the monotonic time of its numbers, too. */
static long read_below_root(struct gp_proc_reader *reader, struct gp_proc_info *info, char *text,
                            size_t size)
{
    char name[32];
    (void)snprintf(name, sizeof(name), "%u/stat", info->pid);
    const int fd = openat(reader->dir, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    const uint64_t now_ns = gp_clock_mono_ns();
    const uint64_t age_ns = age_of(fd);
    info->as_of_ns = now_ns > age_ns ? now_ns - age_ns : 0;
    const long n = gp_proc_read_again(fd, text, size);
    (void)close(fd);
    return n;
}

/* A real process below the root of a simulated machine counts from the boot of this one. */
static uint64_t boot_of(const struct gp_proc_reader *reader, uint32_t pid)
{
    return reader->root && gp_proc_is_linked(reader->dir, pid)
               ? gp_proc_boot_wall_ns(reader->dir, true)
               : reader->boot_wall_ns;
}

/* False: the process is gone, hidden, or in another pid namespace, and has no other files either.
 */
static bool read_stat(struct gp_proc_reader *reader, struct gp_proc_info *info, uint64_t now_ns)
{
    char text[1024];
    struct gp_proc_stat stat;
    long n;
    info->as_of_ns = gp_clock_mono_ns(); /* not that of the tick: the one before may take long */
    if (reader->root)
        n = read_below_root(reader, info, text, sizeof(text));
    else if (reader->keeps_files && gp_proc_is_due(reader, info->pid))
        n = read_kept(reader, info, text, sizeof(text));
    else
        n = gp_proc_read_pid_file(reader->dir, info->pid, "stat", text, sizeof(text));
    if (n <= 0)
        return n != -ENOENT;
    info->exists = true;
    if (!gp_proc_parse_stat(text, &stat))
        return true;
    info->state = stat.state;
    info->ppid = stat.ppid;
    info->session = stat.session;
    info->threads = stat.threads < UINT32_MAX ? (uint32_t)stat.threads : UINT32_MAX;
    info->cpu_ticks = stat.user_ticks + stat.system_ticks;
    info->start_ticks = stat.start_ticks;
    info->start_ns = boot_of(reader, info->pid) + gp_proc_ticks_to_ns(stat.start_ticks);
    info->rss_bytes = stat.rss_pages * (uint64_t)reader->page_bytes;
    const struct gp_proc_info *past = gp_proc_same_past(reader, info);
    info->busy_ns = past && past->cpu_ticks == info->cpu_ticks ? past->busy_ns : now_ns;
    compute_cpu(reader, info);
    return true;
}

/* ---- ticks ---- */

static void read_process(struct gp_proc_reader *reader, unsigned want, struct gp_proc_info *info,
                         uint64_t now_ns)
{
    if (!reader->others_matter && !gp_proc_is_due(reader, info->pid))
        want &= ~(unsigned)(GP_PROC_CONTAINER | GP_PROC_ORIGIN); /* not shown */
    if (gp_proc_recall(reader, want, info, now_ns))
        return;
    info->as_of_ns = now_ns;
    if ((want & GP_PROC_STAT) && !read_stat(reader, info, now_ns))
        want = 0;
    const struct gp_proc_info *past = gp_proc_same_past(reader, info);
    info->texts = gp_proc_is_kept(reader, past, want, now_ns)
                      ? gp_proc_hold_texts(past->texts)
                      : gp_proc_read_texts(reader, want, info, now_ns);
}

static int compare_infos(const void *a, const void *b)
{
    const struct gp_proc_info *x = a;
    const struct gp_proc_info *y = b;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

/* Whether the pid is among those after the first ones. */
static bool is_among(const struct gp_proc_infos *all, size_t first, uint32_t pid)
{
    for (size_t i = all->count; i-- > first;)
        if (all->infos[i].pid == pid)
            return true;
    return false;
}

/* Works generation by generation: an appended process is later asked for its own parent. Each pid
 * is added once, so this terminates whatever the files contain. A parent that started after its
 * child is a process with a recycled pid. The array has room for the maximum. */
static void find_ancestors(struct gp_proc_reader *reader, unsigned want, struct gp_proc_infos *all,
                           uint64_t now_ns)
{
    const struct gp_proc_infos listed = *all;
    size_t most = listed.count + GP_PROC_ANCESTORS_MAX;
    for (size_t i = 0; i < all->count && all->count < most; i++) {
        const struct gp_proc_info *child = &all->infos[i];
        struct gp_proc_info parent = {.pid = child->ppid, .is_ancestor = true, .stat_fd = -1};
        if (parent.pid == 0 || gp_proc_find(&listed, parent.pid) ||
            is_among(all, listed.count, parent.pid))
            continue;
        read_process(reader, want, &parent, now_ns);
        if (parent.state && parent.start_ticks <= child->start_ticks)
            all->infos[all->count++] = parent;
        else
            gp_proc_drop(&parent);
    }
    if (all->count > listed.count)
        qsort(all->infos, all->count, sizeof(struct gp_proc_info), compare_infos);
}

const struct gp_proc_infos *gp_proc_read(struct gp_proc_reader *reader, unsigned want,
                                         const uint32_t *pids, size_t count)
{
    uint64_t now_ns = gp_clock_mono_ns();
    gp_proc_begin_tick(reader, count);
    /* from the second tick on, if half of this process's file limit is sufficient */
    reader->keeps_files = !reader->root && reader->tick > 1 &&
                          count + GP_PROC_ANCESTORS_MAX <= reader->files_most / 2;
    size_t room = count + 1 + (want & GP_PROC_ANCESTORS ? GP_PROC_ANCESTORS_MAX : 0);
    struct gp_proc_infos all = gp_proc_take_room(reader, room);
    for (; all.infos && all.count < count; all.count++) {
        all.infos[all.count] = (struct gp_proc_info){.pid = pids[all.count], .stat_fd = -1};
        read_process(reader, want, &all.infos[all.count], now_ns);
    }
    if (all.infos && (want & GP_PROC_ANCESTORS))
        find_ancestors(reader, want, &all, now_ns);
    gp_proc_names_clear(&reader->names);
    gp_proc_forget(&reader->past);
    reader->spare = reader->past;
    reader->past = all;
    return all.infos ? &reader->past : NULL;
}

struct gp_proc_reader *gp_proc_reader_new(const char *root)
{
    char path[GP_PATH_SIZE];
    struct gp_proc_reader *reader = calloc(1, sizeof(*reader));
    if (!reader)
        return NULL;
    reader->root = root;
    gp_proc_host_init(reader);
    reader->dir =
        gp_io_path(path, root, "/proc") ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    struct statfs fs;
    reader->is_kernels =
        reader->dir >= 0 && fstatfs(reader->dir, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
    reader->ticks_per_s = sysconf(_SC_CLK_TCK);
    reader->page_bytes = sysconf(_SC_PAGESIZE);
    reader->files_most = (size_t)sysconf(_SC_OPEN_MAX);
    reader->boot_wall_ns = gp_proc_boot_wall_ns(reader->dir, !root);
    return reader;
}

void gp_proc_reader_free(struct gp_proc_reader *reader)
{
    if (!reader)
        return;
    if (reader->dir >= 0)
        (void)close(reader->dir);
    gp_proc_host_fini(reader);
    gp_proc_forget(&reader->past);
    free(reader->past.infos);
    free(reader->spare.infos);
    gp_proc_names_clear(&reader->names);
    free(reader->users);
    free(reader);
}
