#include "proc/proc.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/io.h"
#include "proc/container.h"
#include "proc/files.h"

#include <ctype.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    USERS_MAX = 256, /* remembered names; beyond that, digits */
    KEPT_MS = 8000,  /* a command line is looked at again behind this time, or twice of it */
};

/* The texts of a process: they seldom change, so they are not read again at every tick. */
struct kept {
    uint64_t until_ns;
    char text[];
};

/* A process at the last tick. */
struct past {
    struct gp_proc_info info; /* its texts point into `kept` */
    struct kept *kept;        /* NULL: it has none */
};

struct user {
    uid_t uid;
    char name[64];
};

struct gp_proc_reader {
    const char *root;
    int dir; /* /proc below the root: names below it are found faster than whole paths */
    long ticks_per_s;
    long page_bytes;
    uint64_t boot_wall_ns;
    struct past *past; /* sorted by pid */
    size_t past_count;
    const uint32_t *watched; /* NULL: all */
    size_t watched_count;
    bool keeps;                   /* what seldom changes */
    uint64_t cpu_busy, cpu_total; /* of the host at the last call */
    struct user *users;
    size_t user_count;
};

/* ---- files ---- */

static long read_proc(const struct gp_proc_reader *reader, const char *name, char *text,
                      size_t size)
{
    return gp_io_read_at(reader->dir, name, text, size);
}

static long read_pid_file(const struct gp_proc_reader *reader, uint32_t pid, const char *file,
                          char *text, size_t size)
{
    char name[64];
    (void)snprintf(name, sizeof(name), "%u/%s", pid, file);
    return read_proc(reader, name, text, size);
}

/* ---- users ---- */

/* /etc/passwd of the root first: it is cheap and belongs to the root. The name service (LDAP, sssd)
 * is asked only about this machine itself. */
static bool find_passwd_line(const struct gp_proc_reader *reader, uid_t uid, char *name,
                             size_t size)
{
    char path[GP_PATH_SIZE];
    if (!gp_io_path(path, reader->root, "/etc/passwd"))
        return false;
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    char line[1024];
    bool found = false;
    while (!found && fgets(line, sizeof(line), file)) {
        char *end;
        const char *colon = strchr(line, ':');
        const char *second = colon ? strchr(colon + 1, ':') : NULL;
        if (!second || strtoul(second + 1, &end, 10) != uid || *end != ':' || end == second + 1)
            continue;
        (void)snprintf(name, size, "%.*s", (int)(colon - line), line);
        found = true;
    }
    (void)fclose(file);
    return found;
}

static void look_up_user(const struct gp_proc_reader *reader, uid_t uid, char *name, size_t size)
{
    if (find_passwd_line(reader, uid, name, size))
        return;
    struct passwd entry;
    struct passwd *found = NULL;
    char room[4096];
    if (!reader->root && getpwuid_r(uid, &entry, room, sizeof(room), &found) == 0 && found)
        (void)snprintf(name, size, "%s", found->pw_name);
    else
        (void)snprintf(name, size, "%u", uid);
}

static const char *user_name(struct gp_proc_reader *reader, uid_t uid, struct gp_arena *arena)
{
    for (size_t i = 0; i < reader->user_count; i++)
        if (reader->users[i].uid == uid)
            return gp_proc_safe_copy(arena, reader->users[i].name, strlen(reader->users[i].name),
                                     64);
    struct user user = {.uid = uid};
    struct user *grown = NULL;
    if (reader->user_count < USERS_MAX)
        grown = realloc(reader->users, (reader->user_count + 1) * sizeof(*grown));
    if (grown) {
        look_up_user(reader, uid, user.name, sizeof(user.name));
        reader->users = grown;
        reader->users[reader->user_count++] = user;
    } else {
        (void)snprintf(user.name, sizeof(user.name), "%u", uid);
    }
    return gp_proc_safe_copy(arena, user.name, strlen(user.name), 64);
}

/* The owner of the folder is the user, at the price of one system call; but the kernel gives
 * folders of undumpable processes (setuid programs, ssh-agent) to root, so for root the file
 * `status` decides. */
static void read_user(struct gp_proc_reader *reader, struct gp_proc_info *info,
                      struct gp_arena *arena)
{
    char name[16];
    char text[4096];
    struct stat st;
    (void)snprintf(name, sizeof(name), "%u", info->pid);
    if (fstatat(reader->dir, name, &st, 0) != 0)
        return;
    uint64_t uid = st.st_uid;
    if (uid == 0 && read_pid_file(reader, info->pid, "status", text, sizeof(text)) > 0 &&
        !gp_proc_find_number(text, "\nUid:\t", &uid))
        uid = 0;
    info->exists = true;
    info->user = user_name(reader, (uid_t)uid, arena);
}

/* ---- one process ---- */

static struct past *find_past(const struct gp_proc_reader *reader, uint32_t pid)
{
    size_t low = 0;
    size_t high = reader->past_count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (reader->past[mid].info.pid < pid)
            low = mid + 1;
        else
            high = mid;
    }
    return low < reader->past_count && reader->past[low].info.pid == pid ? &reader->past[low]
                                                                         : NULL;
}

static void compute_cpu(const struct gp_proc_reader *reader, struct gp_proc_info *info,
                        uint64_t now_ns)
{
    const struct past *past = find_past(reader, info->pid);
    uint64_t ticks = info->cpu_ticks;
    double seconds;
    if (past && past->info.start_ticks == info->start_ticks && ticks >= past->info.cpu_ticks &&
        now_ns > past->info.as_of_ns) {
        ticks -= past->info.cpu_ticks;
        seconds = (double)(now_ns - past->info.as_of_ns) / 1e9;
    } else {
        uint64_t wall = gp_clock_wall_ns();
        seconds = wall > info->start_ns ? (double)(wall - info->start_ns) / 1e9 : 0;
    }
    double ticks_per_s = (double)reader->ticks_per_s;
    info->cpu_pct = seconds > 0.01 ? 100.0 * (double)ticks / ticks_per_s / seconds : 0;
}

static void read_stat(struct gp_proc_reader *reader, struct gp_proc_info *info, uint64_t now_ns)
{
    char text[1024];
    struct gp_proc_stat stat;
    if (read_pid_file(reader, info->pid, "stat", text, sizeof(text)) <= 0)
        return;
    info->exists = true;
    if (!gp_proc_parse_stat(text, &stat))
        return;
    info->state = stat.state;
    info->ppid = stat.ppid;
    info->threads = stat.threads;
    info->cpu_ticks = stat.user_ticks + stat.system_ticks;
    info->start_ticks = stat.start_ticks;
    info->start_ns = reader->boot_wall_ns + gp_proc_ticks_to_ns(stat.start_ticks);
    info->rss_bytes = stat.rss_pages * (uint64_t)reader->page_bytes;
    compute_cpu(reader, info, now_ns);
}

size_t gp_proc_program_name(const char *command, const char **ret_start)
{
    /* A Windows path ("C:\Program Files\…"), as drivers under WSL give it, may hold blanks. */
    bool windows = isalpha((unsigned char)command[0]) && command[1] == ':' && command[2] == '\\';
    char separator = windows ? '\\' : '/';
    size_t n = windows ? strlen(command) : strcspn(command, " ");
    if (n > 1 && command[n - 1] == ':')
        n--;
    size_t start = n;
    while (start > 0 && command[start - 1] != separator)
        start--;
    *ret_start = command + start;
    return n - start;
}

static void read_command(struct gp_proc_reader *reader, struct gp_proc_info *info,
                         struct gp_arena *arena)
{
    char text[GP_PROC_COMMAND_BYTES];
    long n = read_pid_file(reader, info->pid, "cmdline", text, sizeof(text));
    if (n < 0)
        return;
    info->exists = true;
    size_t len = gp_proc_trim_arguments(text, (size_t)n);
    if (len > 0) {
        const char *name;
        size_t name_len = gp_proc_program_name(text, &name);
        info->name = gp_proc_safe_copy(arena, name, name_len, 64);
        info->path = gp_proc_safe_copy(arena, text, strnlen(text, len), GP_PROC_COMMAND_COLS);
        gp_proc_join_arguments(text, len);
    } else {
        n = read_pid_file(reader, info->pid, "comm", text, sizeof(text));
        if (n <= 0)
            return;
        len = (size_t)n - (text[n - 1] == '\n');
        info->name = gp_proc_safe_copy(arena, text, len, 64);
    }
    info->command = gp_proc_safe_copy(arena, text, len, GP_PROC_COMMAND_COLS);
}

static void read_container(struct gp_proc_reader *reader, struct gp_proc_info *info,
                           struct gp_arena *arena)
{
    char text[8192];
    char container[GP_PROC_CONTAINER_SIZE];
    if (read_pid_file(reader, info->pid, "cgroup", text, sizeof(text)) < 0)
        return;
    info->exists = true;
    (void)gp_proc_container(text, container);
    info->container = gp_arena_strdup(arena, container);
}

/* ---- what is known from the last tick ---- */

enum { TEXTS = 5 };

static void find_texts(struct gp_proc_info *info, const char **ret[TEXTS])
{
    ret[0] = &info->user;
    ret[1] = &info->name;
    ret[2] = &info->path;
    ret[3] = &info->command;
    ret[4] = &info->container;
}

/* The process of the last tick, if it is the same one. */
static struct past *same_past(const struct gp_proc_reader *reader, const struct gp_proc_info *info)
{
    struct past *past = info->start_ticks ? find_past(reader, info->pid) : NULL;
    return past && past->info.start_ticks == info->start_ticks ? past : NULL;
}

/* The texts of past->info still belong to somebody else: puts them into memory of its own, or lets
 * go of them, as where there is none. Those of several processes do not get old in the same tick.
 */
static void keep(struct past *past, bool wanted, uint64_t now_ns)
{
    const char **texts[TEXTS];
    size_t bytes = 0;
    find_texts(&past->info, texts);
    for (size_t i = 0; i < TEXTS; i++)
        bytes += *texts[i] ? strlen(*texts[i]) + 1 : 0;
    past->kept = wanted ? malloc(sizeof(*past->kept) + bytes) : NULL;
    char *end = past->kept ? past->kept->text : NULL;
    for (size_t i = 0; i < TEXTS; i++) {
        if (!past->kept || !*texts[i]) {
            *texts[i] = NULL;
            continue;
        }
        size_t n = strlen(*texts[i]) + 1;
        *texts[i] = memcpy(end, *texts[i], n);
        end += n;
    }
    if (past->kept)
        past->kept->until_ns =
            now_ns + (KEPT_MS + past->info.pid % 16 * (KEPT_MS / 16)) * GP_NS_PER_MS;
}

/* Those of the tick before, which need not be read again. */
static void take_over(struct past *past, struct past *before)
{
    const char **to[TEXTS];
    const char **from[TEXTS];
    find_texts(&past->info, to);
    find_texts(&before->info, from);
    for (size_t i = 0; i < TEXTS; i++)
        *to[i] = *from[i];
    past->kept = before->kept;
    before->kept = NULL;
}

static bool is_kept(const struct past *past, uint64_t now_ns)
{
    return past && past->kept && past->kept->until_ns > now_ns;
}

/* The texts of the process of the last tick; false if there is nothing that still holds. */
static bool recall(struct past *past, struct gp_proc_info *info, uint64_t now_ns,
                   struct gp_arena *arena)
{
    const char **from[TEXTS];
    const char **to[TEXTS];
    if (!is_kept(past, now_ns))
        return false;
    find_texts(&past->info, from);
    find_texts(info, to);
    for (size_t i = 0; i < TEXTS; i++)
        *to[i] = *from[i] ? gp_arena_strdup(arena, *from[i]) : NULL;
    return true;
}

void gp_proc_watch(struct gp_proc_reader *reader, const uint32_t *pids, size_t count)
{
    reader->keeps = true;
    reader->watched = pids;
    reader->watched_count = count;
}

static int compare_pids(const void *a, const void *b)
{
    const uint32_t *x = a;
    const uint32_t *y = b;
    return (*x > *y) - (*x < *y);
}

static bool is_watched(const struct gp_proc_reader *reader, uint32_t pid)
{
    return !reader->watched ||
           bsearch(&pid, reader->watched, reader->watched_count, sizeof(pid), compare_pids);
}

/* All that was known of it at the last tick; false if it has to be read. */
static bool recall_all(const struct gp_proc_reader *reader, struct gp_proc_info *info,
                       uint64_t now_ns, struct gp_arena *arena)
{
    struct past *past = is_watched(reader, info->pid) ? NULL : find_past(reader, info->pid);
    if (!is_kept(past, now_ns))
        return false;
    *info = past->info;
    info->is_old = true;
    return recall(past, info, now_ns, arena);
}

static void forget(struct gp_proc_reader *reader)
{
    for (size_t i = 0; i < reader->past_count; i++)
        free(reader->past[i].kept);
    free(reader->past);
    reader->past = NULL;
    reader->past_count = 0;
}

static int compare_past(const void *a, const void *b)
{
    const struct past *x = a;
    const struct past *y = b;
    return (x->info.pid > y->info.pid) - (x->info.pid < y->info.pid);
}

/* For the next tick. From the second one on the texts are kept, too: who reads once needs none, and
 * who watches needs them at once. */
static void remember(struct gp_proc_reader *reader, const struct gp_proc_info *infos, size_t count,
                     const struct gp_proc_infos *ancestors, uint64_t now_ns)
{
    size_t all = count + ancestors->count;
    struct past *past = malloc((all + 1) * sizeof(*past));
    if (!past) {
        forget(reader); /* the next CPU figures then count from the start of the process */
        return;
    }
    for (size_t i = 0; i < all; i++) {
        past[i].info = i < count ? infos[i] : ancestors->infos[i - count];
        struct past *before = same_past(reader, &past[i].info);
        if (is_kept(before, now_ns))
            take_over(&past[i], before);
        else
            keep(&past[i], reader->keeps && past[i].info.start_ticks, now_ns);
    }
    if (ancestors->count > 0)
        qsort(past, all, sizeof(*past), compare_past);
    forget(reader);
    reader->past = past;
    reader->past_count = all;
    reader->keeps = true;
}

/* ---- a tick ---- */

static void read_process(struct gp_proc_reader *reader, unsigned want, struct gp_proc_info *info,
                         uint64_t now_ns, struct gp_arena *arena)
{
    if (recall_all(reader, info, now_ns, arena))
        return;
    info->as_of_ns = now_ns;
    if (want & GP_PROC_STAT)
        read_stat(reader, info, now_ns);
    if (recall(same_past(reader, info), info, now_ns, arena))
        return;
    if (want & GP_PROC_USER)
        read_user(reader, info, arena);
    if (want & (GP_PROC_COMMAND | GP_PROC_PATH))
        read_command(reader, info, arena);
    if (want & GP_PROC_CONTAINER)
        read_container(reader, info, arena);
}

static int compare_infos(const void *a, const void *b)
{
    const struct gp_proc_info *x = a;
    const struct gp_proc_info *y = b;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

static bool is_among(const struct gp_proc_infos *ancestors, uint32_t pid)
{
    for (size_t i = ancestors->count; i-- > 0;)
        if (ancestors->infos[i].pid == pid)
            return true;
    return false;
}

/* Appends one; without memory, or beyond the limit, it stays away. */
static void append(struct gp_proc_infos *list, const struct gp_proc_info *info, size_t *room,
                   struct gp_arena *arena)
{
    if (list->count == *room) {
        size_t more = *room > 0 ? 2 * *room : 16;
        struct gp_proc_info *grown =
            more <= GP_PROC_ANCESTORS_MAX ? gp_arena_alloc(arena, more, sizeof(*grown)) : NULL;
        if (!grown)
            return;
        if (list->count > 0)
            memcpy(grown, list->infos, list->count * sizeof(*grown));
        list->infos = grown;
        *room = more;
    }
    list->infos[list->count++] = *info;
}

/* Generation after generation: what is appended is asked for its own parent later on. Each pid
 * comes in once, so that this ends whatever the files say. A parent that started behind its child
 * is another process, which was given the pid of one that has ended. */
static void find_ancestors(struct gp_proc_reader *reader, unsigned want,
                           const struct gp_proc_infos *listed, uint64_t now_ns,
                           struct gp_arena *arena, struct gp_proc_infos *ancestors)
{
    size_t room = 0;
    for (size_t i = 0; i < listed->count + ancestors->count; i++) {
        const struct gp_proc_info *child =
            i < listed->count ? &listed->infos[i] : &ancestors->infos[i - listed->count];
        struct gp_proc_info parent = {.pid = child->ppid};
        uint64_t start_ticks = child->start_ticks;
        if (parent.pid == 0 || is_among(ancestors, parent.pid) ||
            bsearch(&parent, listed->infos, listed->count, sizeof(parent), compare_infos))
            continue;
        read_process(reader, want, &parent, now_ns, arena);
        if (parent.state && parent.start_ticks <= start_ticks)
            append(ancestors, &parent, &room, arena);
    }
    if (ancestors->count > 0)
        qsort(ancestors->infos, ancestors->count, sizeof(struct gp_proc_info), compare_infos);
}

void gp_proc_read_family(struct gp_proc_reader *reader, unsigned want, struct gp_proc_info *infos,
                         size_t count, struct gp_arena *arena, struct gp_proc_infos *ret_ancestors)
{
    uint64_t now_ns = gp_clock_mono_ns();
    struct gp_proc_infos listed = {infos, count};
    struct gp_proc_infos ancestors = {0};
    for (size_t i = 0; i < count; i++)
        read_process(reader, want, &infos[i], now_ns, arena);
    if (ret_ancestors) {
        find_ancestors(reader, want, &listed, now_ns, arena, &ancestors);
        *ret_ancestors = ancestors;
    }
    if (want & GP_PROC_STAT)
        remember(reader, infos, count, &ancestors, now_ns);
}

void gp_proc_read(struct gp_proc_reader *reader, unsigned want, struct gp_proc_info *infos,
                  size_t count, struct gp_arena *arena)
{
    gp_proc_read_family(reader, want, infos, count, arena, NULL);
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
    uint64_t busy = total - f[3] - f[4]; /* idle and waiting for I/O */
    uint64_t d_total = total - reader->cpu_total;
    uint64_t d_busy = busy - reader->cpu_busy;
    *ret_pct = d_total && d_busy <= d_total ? 100.0 * (double)d_busy / (double)d_total : 0;
    reader->cpu_total = total;
    reader->cpu_busy = busy;
    return true;
}

/* The first line is of all CPUs, then comes one for each that is online. There may be thousands, so
 * they are read line by line, and only if somebody wants their number. */
static void read_host_cpus(struct gp_proc_reader *reader, unsigned want, struct gp_proc_host *ret)
{
    char line[512];
    int fd = openat(reader->dir, "stat", O_RDONLY | O_CLOEXEC);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (!file) {
        if (fd >= 0)
            (void)close(fd);
        return;
    }
    if ((want & GP_PROC_HOST_CPU) && fgets(line, sizeof(line), file) &&
        parse_cpu(reader, line, &ret->cpu_pct))
        ret->known |= GP_PROC_HOST_CPU;
    while ((want & GP_PROC_HOST_CPU_COUNT) && fgets(line, sizeof(line), file) &&
           strncmp(line, "cpu", 3) == 0)
        ret->cpu_count += isdigit((unsigned char)line[3]) != 0;
    if (ret->cpu_count > 0)
        ret->known |= GP_PROC_HOST_CPU_COUNT;
    (void)fclose(file);
}

static void read_host_memory(const struct gp_proc_reader *reader, struct gp_proc_host *ret)
{
    char text[4096];
    uint64_t total;
    uint64_t free;
    if (read_proc(reader, "meminfo", text, sizeof(text)) <= 0)
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

void gp_proc_read_host(struct gp_proc_reader *reader, unsigned want, struct gp_proc_host *ret)
{
    char text[128];
    *ret = (struct gp_proc_host){0};
    if (want & (GP_PROC_HOST_CPU | GP_PROC_HOST_CPU_COUNT))
        read_host_cpus(reader, want, ret);
    if ((want & GP_PROC_HOST_LOAD) && read_proc(reader, "loadavg", text, sizeof(text)) > 0 &&
        sscanf(text, "%lf", &ret->load_1m) == 1)
        ret->known |= GP_PROC_HOST_LOAD;
    if (want & (GP_PROC_HOST_MEMORY | GP_PROC_HOST_SWAP))
        read_host_memory(reader, ret);
    if ((want & GP_PROC_HOST_UPTIME) && read_proc(reader, "uptime", text, sizeof(text)) > 0 &&
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
    reader->dir =
        gp_io_path(path, root, "/proc") ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    reader->ticks_per_s = sysconf(_SC_CLK_TCK);
    reader->page_bytes = sysconf(_SC_PAGESIZE);
    reader->boot_wall_ns = gp_proc_boot_wall_ns(reader->dir, !root);
    return reader;
}

void gp_proc_reader_free(struct gp_proc_reader *reader)
{
    if (!reader)
        return;
    if (reader->dir >= 0)
        (void)close(reader->dir);
    forget(reader);
    free(reader->users);
    free(reader);
}
