#include "proc/proc.h"

#include "base/clock.h"
#include "base/io.h"
#include "base/parse.h"
#include "base/strbuf.h"
#include "base/utf8.h"

#include <ctype.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    COMMAND_BYTES = 4096, /* of a command line; longer ones are cut */
    COMMAND_COLS = 2048,
    USERS_MAX = 256,                  /* remembered names; beyond that, digits */
    TEXTS_BYTES = 16 * COMMAND_BYTES, /* of a process: some of it stands there twice */
    KEPT_MS = 8000, /* a command line is looked at again behind this time, or twice of it */
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
    struct gp_proc_info *past; /* at the last tick, sorted by pid */
    size_t past_count;
    const uint32_t *watched; /* NULL: all */
    size_t watched_count;
    struct gp_strbuf draft; /* the texts of the process that is being read */
    uint32_t draft_at[GP_PROC_TEXT__COUNT];
    uint64_t cpu_busy, cpu_total; /* of the host at the last call */
    struct user *users;
    size_t user_count;
};

/* ---- small parsers of /proc ---- */

/* The number behind `label` in a file of lines "label   number". */
static bool find_number(const char *text, const char *label, uint64_t *ret)
{
    const char *at = strstr(text, label);
    if (!at)
        return false;
    char *end;
    at += strlen(label);
    *ret = strtoull(at, &end, 10);
    return end != at;
}

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

/* ---- texts ---- */

static void begin_texts(struct gp_proc_reader *reader)
{
    gp_strbuf_reset(&reader->draft);
    gp_strbuf_addc(&reader->draft, '\0'); /* place 0 is that of what is not known */
    memset(reader->draft_at, 0, sizeof(reader->draft_at));
}

static void put_text(struct gp_proc_reader *reader, enum gp_proc_text which, const char *s,
                     size_t n, size_t cols)
{
    size_t at = reader->draft.len;
    gp_utf8_add_safe(&reader->draft, s, n, cols);
    gp_strbuf_addc(&reader->draft, '\0');
    reader->draft_at[which] = reader->draft.error ? 0 : (uint32_t)at;
}

/* NULL if there is none, or no memory. Not all processes are read again in the same tick. */
static struct gp_proc_texts *end_texts(const struct gp_proc_reader *reader, uint32_t pid,
                                       uint64_t now_ns)
{
    struct gp_proc_texts *texts =
        reader->draft.len > 1 ? gp_shared_new(sizeof(*texts) + reader->draft.len) : NULL;
    if (!texts)
        return NULL;
    memcpy(texts->at, reader->draft_at, sizeof(texts->at));
    memcpy(texts->text, reader->draft.buf, reader->draft.len);
    texts->until_ns = now_ns + (KEPT_MS + pid % 16 * (KEPT_MS / 16)) * GP_NS_PER_MS;
    return texts;
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

static void put_user(struct gp_proc_reader *reader, uid_t uid)
{
    size_t at = 0;
    while (at < reader->user_count && reader->users[at].uid != uid)
        at++;
    struct user user = {.uid = uid};
    struct user *grown = NULL;
    if (at == reader->user_count && at < USERS_MAX)
        grown = realloc(reader->users, (at + 1) * sizeof(*grown));
    if (grown) {
        look_up_user(reader, uid, user.name, sizeof(user.name));
        reader->users = grown;
        reader->users[reader->user_count++] = user;
    } else if (at == reader->user_count) {
        (void)snprintf(user.name, sizeof(user.name), "%u", uid);
    }
    const char *name = at < reader->user_count ? reader->users[at].name : user.name;
    put_text(reader, GP_PROC_TEXT_USER, name, strlen(name), 64);
}

/* The owner of the folder is the user, at the price of one system call; but the kernel gives
 * folders of undumpable processes (setuid programs, ssh-agent) to root, so for root the file
 * `status` decides. */
static void read_user(struct gp_proc_reader *reader, struct gp_proc_info *info)
{
    char name[16];
    char text[4096];
    struct stat st;
    (void)snprintf(name, sizeof(name), "%u", info->pid);
    if (fstatat(reader->dir, name, &st, 0) != 0)
        return;
    uint64_t uid = st.st_uid;
    if (uid == 0 && read_pid_file(reader, info->pid, "status", text, sizeof(text)) > 0 &&
        !find_number(text, "\nUid:\t", &uid))
        uid = 0;
    info->exists = true;
    put_user(reader, (uid_t)uid);
}

/* ---- one process ---- */

static struct gp_proc_info *find_past(const struct gp_proc_reader *reader, uint32_t pid)
{
    size_t low = 0;
    size_t high = reader->past_count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (reader->past[mid].pid < pid)
            low = mid + 1;
        else
            high = mid;
    }
    return low < reader->past_count && reader->past[low].pid == pid ? &reader->past[low] : NULL;
}

static void compute_cpu(const struct gp_proc_reader *reader, struct gp_proc_info *info,
                        uint64_t now_ns)
{
    const struct gp_proc_info *past = find_past(reader, info->pid);
    uint64_t ticks = info->cpu_ticks;
    double seconds;
    if (past && past->start_ticks == info->start_ticks && ticks >= past->cpu_ticks &&
        now_ns > past->as_of_ns) {
        ticks -= past->cpu_ticks;
        seconds = (double)(now_ns - past->as_of_ns) / 1e9;
    } else {
        uint64_t wall = gp_clock_wall_ns();
        seconds = wall > info->start_ns ? (double)(wall - info->start_ns) / 1e9 : 0;
    }
    double ticks_per_s = (double)reader->ticks_per_s;
    info->cpu_pct = seconds > 0.01 ? 100.0 * (double)ticks / ticks_per_s / seconds : 0;
}

/* "pid (comm) state ppid …": comm may hold blanks and brackets, so the last ')' ends it. */
static void read_stat(struct gp_proc_reader *reader, struct gp_proc_info *info, uint64_t now_ns)
{
    char text[1024];
    if (read_pid_file(reader, info->pid, "stat", text, sizeof(text)) <= 0)
        return;
    const char *close = strrchr(text, ')');
    if (!close)
        return;
    info->exists = true;
    unsigned long long utime = 0;
    unsigned long long stime = 0;
    unsigned long long start = 0;
    long long rss = 0;
    /* fields 3 to 24 of proc(5); 14 utime, 15 stime, 22 starttime, 24 rss */
    int n = sscanf(close + 1,
                   " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d "
                   "%llu %*u %lld",
                   &utime, &stime, &start, &rss);
    if (n != 4)
        return;
    uint64_t hz = (uint64_t)reader->ticks_per_s;
    info->cpu_ticks = utime + stime;
    info->start_ticks = start;
    info->start_ns =
        reader->boot_wall_ns + start / hz * GP_NS_PER_S + start % hz * GP_NS_PER_S / hz;
    info->rss_bytes = rss > 0 ? (uint64_t)rss * (uint64_t)reader->page_bytes : 0;
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

static void read_command(struct gp_proc_reader *reader, unsigned want, struct gp_proc_info *info)
{
    char text[COMMAND_BYTES];
    long n = read_pid_file(reader, info->pid, "cmdline", text, sizeof(text));
    if (n < 0)
        return;
    info->exists = true;
    /* The arguments end in NUL each; some programs rewrite them with blanks at the end. */
    while (n > 0 && (text[n - 1] == '\0' || text[n - 1] == ' '))
        n--;
    if (n > 0) {
        const char *name;
        size_t name_len = gp_proc_program_name(text, &name);
        put_text(reader, GP_PROC_TEXT_NAME, name, name_len, 64);
        if (want & GP_PROC_PATH)
            put_text(reader, GP_PROC_TEXT_PATH, text, strnlen(text, (size_t)n), COMMAND_COLS);
        for (long i = 0; i < n; i++)
            if (text[i] == '\0')
                text[i] = ' ';
    } else {
        /* zombies and kernel threads have no arguments */
        n = read_pid_file(reader, info->pid, "comm", text, sizeof(text));
        if (n <= 0)
            return;
        n -= text[n - 1] == '\n';
        put_text(reader, GP_PROC_TEXT_NAME, text, (size_t)n, 64);
    }
    if (want & GP_PROC_COMMAND)
        put_text(reader, GP_PROC_TEXT_COMMAND, text, (size_t)n, COMMAND_COLS);
}

static struct gp_proc_texts *read_texts(struct gp_proc_reader *reader, unsigned want,
                                        struct gp_proc_info *info, uint64_t now_ns)
{
    char start[GP_RFC3339_SIZE];
    begin_texts(reader);
    if (want & GP_PROC_USER)
        read_user(reader, info);
    if (want & (GP_PROC_COMMAND | GP_PROC_PATH))
        read_command(reader, want, info);
    if ((want & GP_PROC_STAT) && info->exists) {
        gp_clock_rfc3339(info->start_ns, start);
        put_text(reader, GP_PROC_TEXT_START, start, strlen(start), sizeof(start));
    }
    return end_texts(reader, info->pid, now_ns);
}

/* ---- from tick to tick ---- */

/* The texts of the last tick, if they still hold. */
static struct gp_proc_texts *recall(const struct gp_proc_info *past, uint64_t now_ns)
{
    bool holds = past && past->start_ticks && past->texts && past->texts->until_ns > now_ns;
    if (holds)
        (void)gp_shared_hold(&past->texts->shared);
    return holds ? past->texts : NULL;
}

void gp_proc_watch(struct gp_proc_reader *reader, const uint32_t *pids, size_t count)
{
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
                       uint64_t now_ns)
{
    const struct gp_proc_info *past =
        is_watched(reader, info->pid) ? NULL : find_past(reader, info->pid);
    if (!recall(past, now_ns))
        return false;
    *info = *past;
    info->is_old = true;
    return true;
}

static void forget(struct gp_proc_reader *reader)
{
    for (size_t i = 0; i < reader->past_count; i++)
        if (reader->past[i].texts)
            gp_shared_drop(&reader->past[i].texts->shared);
    free(reader->past);
    reader->past = NULL;
    reader->past_count = 0;
}

const struct gp_proc_info *gp_proc_read(struct gp_proc_reader *reader, unsigned want,
                                        const uint32_t *pids, size_t count)
{
    uint64_t now_ns = gp_clock_mono_ns();
    struct gp_proc_info *infos = malloc((count + 1) * sizeof(*infos));
    for (size_t i = 0; infos && i < count; i++) {
        struct gp_proc_info *info = &infos[i];
        *info = (struct gp_proc_info){.pid = pids[i]};
        if (recall_all(reader, info, now_ns))
            continue;
        info->as_of_ns = now_ns;
        if (want & GP_PROC_STAT)
            read_stat(reader, info, now_ns);
        const struct gp_proc_info *past = find_past(reader, info->pid);
        if (past && past->start_ticks == info->start_ticks)
            info->texts = recall(past, now_ns);
        if (!info->texts)
            info->texts = read_texts(reader, want, info, now_ns);
    }
    forget(reader);
    reader->past = infos;
    reader->past_count = infos ? count : 0;
    return infos;
}

/* ---- the host ---- */

static bool read_host_cpu(struct gp_proc_reader *reader, double *ret_pct)
{
    char text[512];
    unsigned long long f[8] = {0};
    if (read_proc(reader, "stat", text, sizeof(text)) <= 0 ||
        sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &f[0], &f[1], &f[2], &f[3],
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

void gp_proc_read_host(struct gp_proc_reader *reader, struct gp_proc_host *ret)
{
    char text[4096];
    *ret = (struct gp_proc_host){0};
    ret->has_cpu = read_host_cpu(reader, &ret->cpu_pct);
    uint64_t total = 0;
    uint64_t available = 0;
    if (read_proc(reader, "loadavg", text, sizeof(text)) > 0)
        ret->has_load = sscanf(text, "%lf", &ret->load_1m) == 1;
    if (read_proc(reader, "meminfo", text, sizeof(text)) > 0)
        ret->has_memory = find_number(text, "MemTotal:", &total) &&
                          find_number(text, "MemAvailable:", &available);
    ret->memory_total_bytes = total * 1024;
    ret->memory_available_bytes = available * 1024;
}

/* Start times count from boot; time spent suspended is in them, as in CLOCK_BOOTTIME. Another root
 * has another boot: its own file says when, to the second. */
static uint64_t boot_wall_ns(const struct gp_proc_reader *reader)
{
    char text[16384];
    uint64_t btime_s = 0;
    struct timespec up;
    if (reader->root)
        return read_proc(reader, "stat", text, sizeof(text)) > 0 &&
                       find_number(text, "btime ", &btime_s)
                   ? btime_s * GP_NS_PER_S
                   : 0;
    (void)clock_gettime(CLOCK_BOOTTIME, &up);
    return gp_clock_wall_ns() - (uint64_t)up.tv_sec * GP_NS_PER_S - (uint64_t)up.tv_nsec;
}

struct gp_proc_reader *gp_proc_reader_new(const char *root)
{
    char path[GP_PATH_SIZE];
    struct gp_proc_reader *reader = calloc(1, sizeof(*reader));
    if (!reader)
        return NULL;
    reader->root = root;
    gp_strbuf_init(&reader->draft, TEXTS_BYTES);
    reader->dir =
        gp_io_path(path, root, "/proc") ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    reader->ticks_per_s = sysconf(_SC_CLK_TCK);
    reader->page_bytes = sysconf(_SC_PAGESIZE);
    reader->boot_wall_ns = boot_wall_ns(reader);
    return reader;
}

void gp_proc_reader_free(struct gp_proc_reader *reader)
{
    if (!reader)
        return;
    if (reader->dir >= 0)
        (void)close(reader->dir);
    forget(reader);
    gp_strbuf_fini(&reader->draft);
    free(reader->users);
    free(reader);
}
