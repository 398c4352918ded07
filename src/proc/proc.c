#include "proc/proc.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "proc/container.h"
#include "proc/files.h"
#include "proc/names.h"
#include "proc/origin.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    USERS_MAX = 256, /* cached names; beyond that, digits are shown */
    KEPT_MS = 8000,  /* command lines are read again after this time, or after twice this; */
    UNSEEN = 4,      /* after this many times as long if nobody sees them; */
    UNCHANGED = 4,   /* likewise for what belongs to an unchanged command line; */
    CROWD = 2048,    /* longer per this many processes, which limits the work per tick */
    KEPT_GROUPS = 64,
    ENVIRONMENT_BYTES = 1 << 17, /* of an environment; the rest is ignored */
};

struct user {
    uid_t uid;
    char name[256];
};

enum host_file { HOST_STAT, HOST_LOADAVG, HOST_MEMINFO, HOST_UPTIME, HOST_FILES };

struct gp_proc_reader {
    const char *root;
    int dir; /* /proc below the root: relative names are looked up faster than full paths */
    long ticks_per_s;
    long page_bytes;
    size_t files_most; /* that this process may have open */
    uint64_t boot_wall_ns;
    struct gp_proc_infos past;  /* from the previous tick */
    struct gp_proc_infos spare; /* room for the next one */
    uint64_t kept_ns;           /* minimum lifetime of texts that are seen */
    const uint32_t *watched;    /* NULL: all */
    size_t watched_count;
    bool others_matter;
    size_t tick;
    bool keeps_files; /* for all processes that are due in this tick */
    size_t turns;     /* each unwatched process is read in one of this many ticks; 0: never */
    int host_fds[HOST_FILES];     /* −1: not open */
    uint64_t cpu_busy, cpu_total; /* of the host in the last call */
    uint64_t cpu_count, cpu_count_until_ns;
    struct user *users;
    size_t user_count;
    struct user nobody;         /* for users who do not fit into the cache */
    struct gp_proc_names names; /* container names, for this tick */
};

/* ---- files ---- */

static long read_proc(const struct gp_proc_reader *reader, const char *name, char *text,
                      size_t size)
{
    return gp_io_read_at(reader->dir, name, text, size);
}

/* Reads an open file from its start, as a text. */
static long read_again(int fd, char *text, size_t size)
{
    ssize_t n = fd >= 0 ? pread(fd, text, size - 1, 0) : -1;
    text[n > 0 ? n : 0] = '\0';
    return n;
}

static long read_pid_file(const struct gp_proc_reader *reader, uint32_t pid, const char *file,
                          char *text, size_t size)
{
    char name[64];
    (void)snprintf(name, sizeof(name), "%u/%s", pid, file);
    return read_proc(reader, name, text, size);
}

/* ---- users ---- */

/* Safe text, valid until the next call. */
static const char *user_name(struct gp_proc_reader *reader, uid_t uid)
{
    for (size_t i = 0; i < reader->user_count; i++)
        if (reader->users[i].uid == uid)
            return reader->users[i].name;
    char name[64];
    struct user *grown = NULL;
    if (reader->user_count < USERS_MAX)
        grown = realloc(reader->users, (reader->user_count + 1) * sizeof(*grown));
    if (!grown) {
        (void)snprintf(reader->nobody.name, sizeof(reader->nobody.name), "%u", uid);
        return reader->nobody.name;
    }
    (void)gp_proc_user_name(reader->root, uid, name, sizeof(name));
    reader->users = grown;
    struct user *user = &grown[reader->user_count++];
    struct gp_strbuf safe = GP_STRBUF_INIT(sizeof(user->name) - 1);
    gp_utf8_add_safe(&safe, name, strlen(name), sizeof(name));
    user->uid = uid;
    (void)snprintf(user->name, sizeof(user->name), "%s", safe.buf);
    gp_strbuf_fini(&safe);
    return user->name;
}

/* The owner of the directory is the user, which costs one system call. But the kernel gives
 * directories of undumpable processes (setuid programs, ssh-agent) to root, and those below a root
 * belong to whoever made them: there the file `status` decides. */
static void read_user(struct gp_proc_reader *reader, struct gp_proc_info *info,
                      struct gp_proc_texts *texts)
{
    char name[16];
    char text[4096];
    struct stat st;
    (void)snprintf(name, sizeof(name), "%u", info->pid);
    if (fstatat(reader->dir, name, &st, 0) != 0)
        return;
    uint64_t uid = st.st_uid;
    if ((uid == 0 || reader->root) &&
        read_pid_file(reader, info->pid, "status", text, sizeof(text)) > 0 &&
        !gp_proc_find_number(text, "\nUid:\t", &uid))
        uid = st.st_uid;
    info->exists = true;
    texts->user = user_name(reader, (uid_t)uid);
}

/* ---- one process ---- */

struct gp_proc_info *gp_proc_find(const struct gp_proc_infos *infos, uint32_t pid)
{
    size_t low = 0;
    size_t high = infos->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (infos->infos[mid].pid < pid)
            low = mid + 1;
        else
            high = mid;
    }
    return low < infos->count && infos->infos[low].pid == pid ? &infos->infos[low] : NULL;
}

/* The process in the previous tick, if it is the same one. */
static const struct gp_proc_info *same_past(const struct gp_proc_reader *reader,
                                            const struct gp_proc_info *info)
{
    const struct gp_proc_info *past =
        info->start_ticks ? gp_proc_find(&reader->past, info->pid) : NULL;
    return past && past->start_ticks == info->start_ticks ? past : NULL;
}

/* Whether the last percentage still holds. Between two readings in quick succession, a busy process
 * gets a tick or none. The files below a root prefix may not have been written again yet. */
static bool keeps_cpu(const struct gp_proc_reader *reader, const struct gp_proc_info *past,
                      uint64_t ticks, uint64_t now_ns)
{
    uint64_t wait_ms = reader->root && ticks == past->cpu_ticks ? 2500 : 45;
    return now_ns < past->as_of_ns + wait_ms * GP_NS_PER_MS;
}

static void compute_cpu(const struct gp_proc_reader *reader, struct gp_proc_info *info,
                        uint64_t now_ns)
{
    const struct gp_proc_info *past = same_past(reader, info);
    uint64_t ticks = info->cpu_ticks;
    double seconds;
    if (past && keeps_cpu(reader, past, ticks, now_ns)) {
        info->cpu_pct = past->cpu_pct;
        info->cpu_ticks = past->cpu_ticks;
        info->as_of_ns = past->as_of_ns;
        return;
    }
    if (past && ticks >= past->cpu_ticks && now_ns > past->as_of_ns) {
        ticks -= past->cpu_ticks;
        seconds = (double)(now_ns - past->as_of_ns) / 1e9;
    } else {
        uint64_t wall = gp_clock_wall_ns();
        seconds = wall > info->start_ns ? (double)(wall - info->start_ns) / 1e9 : 0;
    }
    double ticks_per_s = (double)reader->ticks_per_s;
    info->cpu_pct = seconds > 0.01 ? 100.0 * (double)ticks / ticks_per_s / seconds : 0;
}

void gp_proc_watch(struct gp_proc_reader *reader, const uint32_t *pids, size_t count,
                   bool others_matter)
{
    reader->watched = pids;
    reader->watched_count = count;
    reader->others_matter = others_matter;
}

/* Whether it must be read in this tick, even if it is cached. */
static bool is_due(const struct gp_proc_reader *reader, uint32_t pid)
{
    return !reader->watched ||
           (reader->turns && pid % reader->turns == reader->tick % reader->turns) ||
           bsearch(&pid, reader->watched, reader->watched_count, sizeof(pid), gp_compare_u32);
}

/* A file that is read in every tick is kept open, which halves the cost of reading. It always
 * refers to the same process: after that has exited, reads fail. Not with a root prefix, where a
 * removed file can still be read. */
static long read_kept(struct gp_proc_reader *reader, struct gp_proc_info *info, char *text,
                      size_t size)
{
    char name[32];
    struct gp_proc_info *past = gp_proc_find(&reader->past, info->pid);
    long n = past ? read_again(past->stat_fd, text, size) : -1;
    if (n > 0) {
        info->stat_fd = past->stat_fd;
        past->stat_fd = -1;
        return n;
    }
    (void)snprintf(name, sizeof(name), "%u/stat", info->pid);
    int fd = openat(reader->dir, name, O_RDONLY | O_CLOEXEC);
    n = read_again(fd, text, size);
    if (n > 0)
        info->stat_fd = fd;
    else if (fd >= 0)
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

static void read_stat(struct gp_proc_reader *reader, struct gp_proc_info *info, uint64_t now_ns)
{
    char text[1024];
    struct gp_proc_stat stat;
    long n = reader->keeps_files && is_due(reader, info->pid)
                 ? read_kept(reader, info, text, sizeof(text))
                 : read_pid_file(reader, info->pid, "stat", text, sizeof(text));
    if (n <= 0)
        return;
    info->exists = true;
    if (!gp_proc_parse_stat(text, &stat))
        return;
    info->state = stat.state;
    info->ppid = stat.ppid;
    info->session = stat.session;
    info->threads = stat.threads < UINT32_MAX ? (uint32_t)stat.threads : UINT32_MAX;
    info->cpu_ticks = stat.user_ticks + stat.system_ticks;
    info->start_ticks = stat.start_ticks;
    info->start_ns = boot_of(reader, info->pid) + gp_proc_ticks_to_ns(stat.start_ticks);
    info->rss_bytes = stat.rss_pages * (uint64_t)reader->page_bytes;
    compute_cpu(reader, info, now_ns);
}

/* Records a denied read. With the mount option hidepid=1 the kernel returns EPERM. */
static void note_denied(struct gp_proc_info *info, struct gp_proc_texts *texts,
                        enum gp_proc_want part, long answer)
{
    if (answer != -EACCES && answer != -EPERM)
        return;
    info->exists = true;
    texts->denied |= part;
}

static void read_command(struct gp_proc_reader *reader, unsigned want, struct gp_proc_info *info,
                         struct gp_proc_texts *texts, struct gp_arena *arena)
{
    struct gp_proc_command command;
    int r = gp_proc_read_command(reader->dir, info->pid, arena, &command);
    note_denied(info, texts, GP_PROC_COMMAND, r);
    if (r < 0)
        return;
    info->exists = true;
    texts->name = command.name;
    texts->path = want & GP_PROC_PATH ? command.path : NULL;
    texts->command = want & GP_PROC_COMMAND ? command.line : NULL;
}

static void read_container(struct gp_proc_reader *reader, struct gp_proc_info *info,
                           struct gp_proc_texts *texts, struct gp_arena *arena)
{
    char text[8192];
    char container[GP_PROC_CONTAINER_SIZE];
    char name[GP_PROC_NAME_SIZE];
    char folder[16];
    struct stat owner;
    (void)snprintf(folder, sizeof(folder), "%u", info->pid);
    long n = read_pid_file(reader, info->pid, "cgroup", text, sizeof(text));
    note_denied(info, texts, GP_PROC_CONTAINER, n);
    if (n < 0)
        return;
    info->exists = true;
    (void)gp_proc_container(text, container);
    texts->container = gp_arena_strdup(arena, container);
    if (container[0] && fstatat(reader->dir, folder, &owner, 0) == 0 &&
        gp_proc_container_name(&reader->names, reader->root, container, owner.st_uid, name))
        texts->container_name = gp_arena_strdup(arena, name);
}

/* The environment is that at the start of the program, so it is read once for each program. */
static void read_origin(struct gp_proc_reader *reader, struct gp_proc_info *info,
                        struct gp_proc_texts *texts, struct gp_arena *arena)
{
    char origin[GP_PROC_ORIGIN_SIZE];
    const struct gp_proc_info *past = same_past(reader, info);
    if (past && past->texts->origin && past->texts->command && texts->command &&
        strcmp(past->texts->command, texts->command) == 0) {
        texts->origin = gp_arena_strdup(arena, past->texts->origin);
        return;
    }
    char *text = malloc(ENVIRONMENT_BYTES);
    long n = text ? read_pid_file(reader, info->pid, "environ", text, ENVIRONMENT_BYTES) : -1;
    note_denied(info, texts, GP_PROC_ORIGIN, text ? n : 0);
    if (n >= 0) {
        gp_proc_origin(text, (size_t)n, origin);
        texts->origin = gp_arena_strdup(arena, origin);
    }
    free(text);
}

static void read_cwd(const struct gp_proc_reader *reader, struct gp_proc_info *info,
                     struct gp_proc_texts *texts, struct gp_arena *arena)
{
    char name[32];
    char path[GP_PATH_SIZE];
    (void)snprintf(name, sizeof(name), "%u/cwd", info->pid);
    ssize_t n = readlinkat(reader->dir, name, path, sizeof(path));
    note_denied(info, texts, GP_PROC_CWD, n < 0 ? -errno : n);
    if (n > 0)
        texts->cwd = gp_proc_safe_copy(arena, path, (size_t)n, GP_PATH_SIZE);
}

static void read_ns_pid(const struct gp_proc_reader *reader, const struct gp_proc_info *info,
                        struct gp_proc_texts *texts)
{
    char text[4096];
    uint64_t pid;
    if (read_pid_file(reader, info->pid, "status", text, sizeof(text)) > 0 &&
        gp_proc_find_ns_pid(text, &pid))
        texts->ns_pid = (uint32_t)pid;
}

/* ---- texts ---- */

/* Used if no texts are known, or without memory. */
static struct gp_proc_texts no_texts = {.shared = {1}};

static struct gp_proc_texts *hold(struct gp_proc_texts *texts)
{
    (void)gp_shared_hold(&texts->shared);
    return texts;
}

/* Copies the scattered texts of an arena into one block. */
static struct gp_proc_texts *gather(const struct gp_proc_texts *from)
{
    const char *const texts[] = {from->user,    from->name,      from->path,
                                 from->command, from->container, from->container_name,
                                 from->origin,  from->start,     from->cwd};
    const char *copies[GP_ARRAY_LEN(texts)] = {NULL};
    size_t bytes = 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(texts); i++)
        bytes += texts[i] ? strlen(texts[i]) + 1 : 0;
    struct gp_proc_texts *to =
        bytes || from->ns_pid || from->denied ? gp_shared_new(sizeof(*to) + bytes) : NULL;
    if (!to)
        return hold(&no_texts);
    char *end = to->room;
    for (size_t i = 0; i < GP_ARRAY_LEN(texts); i++)
        if (texts[i]) {
            size_t n = strlen(texts[i]) + 1;
            copies[i] = memcpy(end, texts[i], n);
            end += n;
        }
    to->user = copies[0];
    to->name = copies[1];
    to->path = copies[2];
    to->command = copies[3];
    to->container = copies[4];
    to->container_name = copies[5];
    to->origin = copies[6];
    to->start = copies[7];
    to->cwd = copies[8];
    to->ns_pid = from->ns_pid;
    to->denied = from->denied;
    return to;
}

/* How long texts are kept. Those of different processes should not expire in the same tick. */
static uint64_t life_ns(const struct gp_proc_reader *reader, uint32_t pid)
{
    uint64_t ns = reader->kept_ns + pid % KEPT_GROUPS * (reader->kept_ns / KEPT_GROUPS);
    return (is_due(reader, pid) ? 1 : UNSEEN) * ns;
}

/* Whether the same program still runs. Then its user, container and environment are the same, too,
 * unless it was moved: they are four more files. */
static bool is_unchanged(const struct gp_proc_reader *reader, const struct gp_proc_info *past,
                         unsigned want, const char *command, uint64_t now_ns)
{
    return past && command && past->texts->command && !(want & ~past->texts->want) &&
           now_ns < past->texts->read_ns + UNCHANGED * life_ns(reader, past->pid) &&
           strcmp(command, past->texts->command) == 0;
}

static struct gp_proc_texts *read_texts(struct gp_proc_reader *reader, unsigned want,
                                        struct gp_proc_info *info, uint64_t now_ns)
{
    struct gp_arena arena = {NULL};
    struct gp_proc_texts scattered = {.user = NULL};
    const struct gp_proc_info *past = same_past(reader, info);
    char start[GP_RFC3339_SIZE];
    if (want & (GP_PROC_COMMAND | GP_PROC_PATH))
        read_command(reader, want, info, &scattered, &arena);
    if (is_unchanged(reader, past, want, scattered.command, now_ns)) {
        gp_arena_fini(&arena);
        past->texts->checked_ns = now_ns;
        return hold(past->texts);
    }
    if (want & GP_PROC_USER)
        read_user(reader, info, &scattered);
    if (want & GP_PROC_CONTAINER)
        read_container(reader, info, &scattered, &arena);
    if (want & GP_PROC_ORIGIN)
        read_origin(reader, info, &scattered, &arena);
    if (want & GP_PROC_CWD)
        read_cwd(reader, info, &scattered, &arena);
    if (want & GP_PROC_NS_PID)
        read_ns_pid(reader, info, &scattered);
    if (info->state) {
        gp_clock_rfc3339(info->start_ns, start);
        scattered.start = start;
    }
    struct gp_proc_texts *texts = gather(&scattered);
    gp_arena_fini(&arena);
    if (texts != &no_texts) {
        texts->want = want;
        texts->read_ns = texts->checked_ns = now_ns;
    }
    return texts;
}

/* ---- cached data ---- */

/* Whether its texts need not be read. */
static bool is_kept(const struct gp_proc_reader *reader, const struct gp_proc_info *past,
                    unsigned want, uint64_t now_ns)
{
    if (!past || !past->start_ticks || (want & ~past->texts->want))
        return false;
    return now_ns < past->texts->checked_ns + life_ns(reader, past->pid);
}

/* Uses everything known from the previous tick; false if the process must be read. */
static bool recall(const struct gp_proc_reader *reader, unsigned want, struct gp_proc_info *info,
                   uint64_t now_ns)
{
    struct gp_proc_info *past =
        is_due(reader, info->pid) ? NULL : gp_proc_find(&reader->past, info->pid);
    if (!is_kept(reader, past, want, now_ns))
        return false;
    bool is_ancestor = info->is_ancestor;
    *info = *past;
    past->stat_fd = -1;
    info->is_ancestor = is_ancestor;
    info->is_old = true;
    (void)hold(info->texts);
    return true;
}

static void drop(const struct gp_proc_info *info)
{
    gp_shared_drop(&info->texts->shared);
    if (info->stat_fd >= 0)
        (void)close(info->stat_fd);
}

static void forget(struct gp_proc_infos *infos)
{
    for (size_t i = 0; i < infos->count; i++)
        drop(&infos->infos[i]);
    infos->count = 0;
}

/* The room of the tick before the last, or a new one. Its `infos` is NULL without memory. */
static struct gp_proc_infos take_room(struct gp_proc_reader *reader, size_t count)
{
    struct gp_proc_infos infos = reader->spare;
    reader->spare = (struct gp_proc_infos){NULL, 0, 0};
    if (infos.room >= count)
        return infos;
    free(infos.infos);
    infos.infos = malloc(count * sizeof(*infos.infos));
    infos.room = infos.infos ? count : 0;
    return infos;
}

/* ---- ticks ---- */

static void read_process(struct gp_proc_reader *reader, unsigned want, struct gp_proc_info *info,
                         uint64_t now_ns)
{
    if (!reader->others_matter && !is_due(reader, info->pid))
        want &= ~(unsigned)(GP_PROC_CONTAINER | GP_PROC_ORIGIN); /* not shown */
    if (recall(reader, want, info, now_ns))
        return;
    info->as_of_ns = now_ns;
    if (want & GP_PROC_STAT)
        read_stat(reader, info, now_ns);
    const struct gp_proc_info *past = same_past(reader, info);
    info->texts = is_kept(reader, past, want, now_ns) ? hold(past->texts)
                                                      : read_texts(reader, want, info, now_ns);
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
            drop(&parent);
    }
    if (all->count > listed.count)
        qsort(all->infos, all->count, sizeof(struct gp_proc_info), compare_infos);
}

const struct gp_proc_infos *gp_proc_read(struct gp_proc_reader *reader, unsigned want,
                                         const uint32_t *pids, size_t count)
{
    uint64_t now_ns = gp_clock_mono_ns();
    reader->kept_ns = (1 + count / CROWD) * KEPT_MS * GP_NS_PER_MS;
    reader->turns = reader->others_matter ? 1 + count / CROWD : 0;
    reader->tick++;
    /* from the second tick on, if half of this process's file limit is sufficient */
    reader->keeps_files = !reader->root && reader->tick > 1 &&
                          count + GP_PROC_ANCESTORS_MAX <= reader->files_most / 2;
    size_t room = count + 1 + (want & GP_PROC_ANCESTORS ? GP_PROC_ANCESTORS_MAX : 0);
    struct gp_proc_infos all = take_room(reader, room);
    for (; all.infos && all.count < count; all.count++) {
        all.infos[all.count] = (struct gp_proc_info){.pid = pids[all.count], .stat_fd = -1};
        read_process(reader, want, &all.infos[all.count], now_ns);
    }
    if (all.infos && (want & GP_PROC_ANCESTORS))
        find_ancestors(reader, want, &all, now_ns);
    gp_proc_names_clear(&reader->names);
    forget(&reader->past);
    reader->spare = reader->past;
    reader->past = all;
    return all.infos ? &reader->past : NULL;
}

/* ---- the host ---- */

/* The line "cpu  user nice system idle iowait irq softirq steal …". */
static bool parse_cpu(struct gp_proc_reader *reader, const char *line, double *ret_pct)
{
    unsigned long long f[8] = {0};
    if (sscanf(line, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &f[0], &f[1], &f[2], &f[3],
               &f[4], &f[5], &f[6], &f[7]) < 4)
        return false;
    uint64_t total = 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(f); i++)
        total += f[i];
    uint64_t busy = total - f[3] - f[4]; /* idle and iowait */
    uint64_t d_total = total - reader->cpu_total;
    uint64_t d_busy = busy - reader->cpu_busy;
    *ret_pct = d_total && d_busy <= d_total ? 100.0 * (double)d_busy / (double)d_total : 0;
    reader->cpu_total = total;
    reader->cpu_busy = busy;
    return true;
}

/* A file about the host, kept open between ticks. Not below a root, where files are replaced. */
static long read_host_file(struct gp_proc_reader *reader, enum host_file which, char *text,
                           size_t size)
{
    static const char *const names[HOST_FILES] = {"stat", "loadavg", "meminfo", "uptime"};
    int *fd = &reader->host_fds[which];
    if (reader->root)
        return read_proc(reader, names[which], text, size);
    if (*fd < 0)
        *fd = openat(reader->dir, names[which], O_RDONLY | O_CLOEXEC);
    return read_again(*fd, text, size);
}

static void read_host_cpu(struct gp_proc_reader *reader, struct gp_proc_host *ret)
{
    char text[512];
    if (read_host_file(reader, HOST_STAT, text, sizeof(text)) > 0 &&
        parse_cpu(reader, text, &ret->cpu_pct))
        ret->known |= GP_PROC_HOST_CPU;
}

/* After the first line, the total, follows one for each online CPU. There may be thousands, so
 * their number is kept for a while. */
static void count_host_cpus(struct gp_proc_reader *reader)
{
    char line[512];
    uint64_t now_ns = gp_clock_mono_ns();
    if (!reader->root && now_ns < reader->cpu_count_until_ns)
        return;
    reader->cpu_count = 0;
    reader->cpu_count_until_ns = now_ns + KEPT_MS * GP_NS_PER_MS;
    int fd = openat(reader->dir, "stat", O_RDONLY | O_CLOEXEC);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (!file && fd >= 0)
        (void)close(fd);
    while (file && fgets(line, sizeof(line), file) && strncmp(line, "cpu", 3) == 0)
        reader->cpu_count += isdigit((unsigned char)line[3]) != 0;
    if (file)
        (void)fclose(file);
}

static void read_host_memory(struct gp_proc_reader *reader, struct gp_proc_host *ret)
{
    char text[4096];
    uint64_t total;
    uint64_t free;
    if (read_host_file(reader, HOST_MEMINFO, text, sizeof(text)) <= 0)
        return;
    if (gp_proc_find_number(text, "MemTotal:", &total) &&
        gp_proc_find_number(text, "MemAvailable:", &free)) {
        ret->memory_total_bytes = total * 1024;
        ret->memory_available_bytes = free * 1024;
        ret->known |= GP_PROC_HOST_MEMORY;
    }
    if (gp_proc_find_number(text, "SwapTotal:", &total) &&
        gp_proc_find_number(text, "SwapFree:", &free)) {
        ret->swap_total_bytes = total * 1024;
        ret->swap_used_bytes = total > free ? (total - free) * 1024 : 0;
        ret->known |= GP_PROC_HOST_SWAP;
    }
}

void gp_proc_host_name(const struct gp_proc_reader *reader, char *ret, size_t size)
{
    long n = reader->root ? read_proc(reader, "sys/kernel/hostname", ret, size) : 0;
    if (n <= 0 && gethostname(ret, size) != 0)
        (void)snprintf(ret, size, "unknown");
    ret[size - 1] = '\0';
    ret[strcspn(ret, "\n")] = '\0';
}

void gp_proc_read_host(struct gp_proc_reader *reader, unsigned want, struct gp_proc_host *ret)
{
    char text[128];
    *ret = (struct gp_proc_host){0};
    if (want & GP_PROC_HOST_CPU)
        read_host_cpu(reader, ret);
    if (want & GP_PROC_HOST_CPU_COUNT) {
        count_host_cpus(reader);
        ret->cpu_count = reader->cpu_count;
        ret->known |= reader->cpu_count > 0 ? GP_PROC_HOST_CPU_COUNT : 0;
    }
    if ((want & GP_PROC_HOST_LOAD) &&
        read_host_file(reader, HOST_LOADAVG, text, sizeof(text)) > 0 &&
        sscanf(text, "%lf", &ret->load_1m) == 1)
        ret->known |= GP_PROC_HOST_LOAD;
    if (want & (GP_PROC_HOST_MEMORY | GP_PROC_HOST_SWAP))
        read_host_memory(reader, ret);
    if ((want & GP_PROC_HOST_UPTIME) &&
        read_host_file(reader, HOST_UPTIME, text, sizeof(text)) > 0 &&
        gp_proc_find_number(text, "", &ret->uptime_s))
        ret->known |= GP_PROC_HOST_UPTIME;
}

struct gp_proc_reader *gp_proc_reader_new(const char *root)
{
    char path[GP_PATH_SIZE];
    struct gp_proc_reader *reader = calloc(1, sizeof(*reader));
    if (!reader)
        return NULL;
    reader->root = root;
    for (int i = 0; i < HOST_FILES; i++)
        reader->host_fds[i] = -1;
    reader->dir =
        gp_io_path(path, root, "/proc") ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
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
    for (int i = 0; i < HOST_FILES; i++)
        if (reader->host_fds[i] >= 0)
            (void)close(reader->host_fds[i]);
    forget(&reader->past);
    free(reader->past.infos);
    free(reader->spare.infos);
    gp_proc_names_clear(&reader->names);
    free(reader->users);
    free(reader);
}
