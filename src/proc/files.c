#include "proc/files.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "proc/proc.h"

#include <ctype.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

long gp_proc_read_pid_file(int proc, uint32_t pid, const char *file, char *text, size_t size)
{
    char name[64];
    (void)snprintf(name, sizeof(name), "%u/%s", pid, file);
    return gp_io_read_at(proc, name, text, size);
}

long gp_proc_read_again(int fd, char *text, size_t size)
{
    ssize_t n = fd >= 0 ? pread(fd, text, size - 1, 0) : -1;
    text[n > 0 ? n : 0] = '\0';
    return n;
}

bool gp_proc_find_number(const char *text, const char *label, uint64_t *ret)
{
    const char *at = strstr(text, label);
    if (!at)
        return false;
    char *end;
    at += strlen(label);
    *ret = strtoull(at, &end, 10);
    return end != at;
}

/* "\nNSpid:\t4711\t12": from the reader's namespace to the innermost one. */
bool gp_proc_find_ns_pid(const char *status, uint64_t *ret)
{
    static const char label[] = "\nNSpid:";
    const char *at = strstr(status, label);
    uint64_t pid = 0;
    at = at ? at + strlen(label) : "";
    while (isblank((unsigned char)*at)) {
        char *end;
        pid = strtoull(at, &end, 10);
        if (end == at)
            return false;
        at = end;
    }
    *ret = pid;
    return pid > 0;
}

/* A field of a line "name:password:uid:gid:comment:home:shell". */
static bool get_field(const char *line, unsigned field, char *ret, size_t size)
{
    for (; field > 0 && line; field--)
        if ((line = strchr(line, ':')))
            line++;
    if (!line)
        return false;
    int n = snprintf(ret, size, "%.*s", (int)strcspn(line, ":\n"), line);
    return n >= 0 && (size_t)n < size;
}

static bool find_passwd_line(const char *root, uid_t uid, char *line, int size)
{
    char path[GP_PATH_SIZE];
    FILE *file = gp_io_path(path, root, "/etc/passwd") ? fopen(path, "re") : NULL;
    bool found = false;
    while (file && !found && fgets(line, size, file)) {
        char digits[24];
        char *end;
        found = get_field(line, 2, digits, sizeof(digits)) && digits[0] &&
                strtoul(digits, &end, 10) == uid && *end == '\0';
    }
    if (file)
        (void)fclose(file);
    return found;
}

bool gp_proc_passwd(const char *root, uid_t uid, enum gp_proc_passwd_field field, char *ret,
                    size_t size)
{
    char line[1024];
    if (find_passwd_line(root, uid, line, sizeof(line)))
        return get_field(line, field, ret, size);
    struct passwd entry;
    struct passwd *found = NULL;
    char room[4096];
    if (root || getpwuid_r(uid, &entry, room, sizeof(room), &found) != 0 || !found)
        return false;
    (void)snprintf(ret, size, "%s", field == GP_PROC_PASSWD_NAME ? found->pw_name : found->pw_dir);
    return true;
}

bool gp_proc_user_name(const char *root, uid_t uid, char *ret, size_t size)
{
    bool is_known = gp_proc_passwd(root, uid, GP_PROC_PASSWD_NAME, ret, size);
    if (!is_known)
        (void)snprintf(ret, size, "%u", (unsigned)uid);
    return is_known;
}

/* A blank and a number; moves behind them. */
static bool parse_field(const char **at, long long *ret)
{
    const char *p = *at;
    uint64_t n = 0;
    if (*p++ != ' ')
        return false;
    bool negative = *p == '-';
    p += negative;
    if (!isdigit((unsigned char)*p))
        return false;
    for (; isdigit((unsigned char)*p); p++)
        n = 10 * n + (uint64_t)(*p - '0');
    *ret = (long long)(negative ? 0 - n : n);
    *at = p;
    return true;
}

/* "pid (comm) state ppid …": comm may contain blanks and parentheses, so the last ')' ends it.
 * Thousands of such lines are parsed at a time, and sscanf() and strtoll() are slow. */
bool gp_proc_parse_stat(const char *text, struct gp_proc_stat *ret)
{
    /* The field numbers of proc(5). */
    enum {
        PPID = 4,
        GROUP = 5,
        SESSION = 6,
        FLAGS = 9,
        UTIME = 14,
        STIME = 15,
        CHILDREN_UTIME = 16,
        CHILDREN_STIME = 17,
        NICE = 19,
        THREADS = 20,
        START = 22
    };
    enum { RSS = 24 };
    long long fields[RSS + 1];
    const char *open = strchr(text, '(');
    const char *close = strrchr(text, ')');
    if (!close || close[1] != ' ' || !isalpha((unsigned char)close[2]))
        return false;
    const char *at = close + 3;
    for (int i = PPID; i <= RSS; i++)
        if (!parse_field(&at, &fields[i]))
            return false;
    *ret = (struct gp_proc_stat){
        .state = close[2],
        .ppid = (uint32_t)fields[PPID],
        .group = (uint32_t)fields[GROUP],
        .session = (uint32_t)fields[SESSION],
        .is_kernel = (fields[FLAGS] & 0x00200000) != 0, /* PF_KTHREAD */
        .nice = (int)fields[NICE],
        .threads = fields[THREADS] > 0 ? (uint64_t)fields[THREADS] : 0,
        .user_ticks = (uint64_t)fields[UTIME],
        .system_ticks = (uint64_t)fields[STIME],
        .children_ticks = (uint64_t)(fields[CHILDREN_UTIME] + fields[CHILDREN_STIME]),
        .start_ticks = (uint64_t)fields[START],
        /* The kernel's counter may be negative for a moment. */
        .rss_pages = fields[RSS] > 0 ? (uint64_t)fields[RSS] : 0,
    };
    if (open && open < close)
        (void)snprintf(ret->name, sizeof(ret->name), "%.*s", (int)(close - open - 1), open + 1);
    return true;
}

bool gp_proc_read_stat(int proc, uint32_t pid, struct gp_proc_stat *ret)
{
    char text[1024];
    return gp_proc_read_pid_file(proc, pid, "stat", text, sizeof(text)) > 0 &&
           gp_proc_parse_stat(text, ret);
}

bool gp_proc_stat_of(uint32_t pid, struct gp_proc_stat *ret)
{
    char path[32];
    char text[1024];
    (void)snprintf(path, sizeof(path), "/proc/%u/stat", pid);
    return gp_io_read_at(AT_FDCWD, path, text, sizeof(text)) > 0 && gp_proc_parse_stat(text, ret);
}

uint64_t gp_proc_own_ns(void)
{
    struct stat st;
    return stat("/proc/self/ns/pid", &st) == 0 ? (uint64_t)st.st_ino : 0;
}

bool gp_proc_is_display_server(const char *name)
{
    static const char *const names[] = {
        "Xorg",     "X",           "Xwayland", "gnome-shell", "kwin_wayland",
        "kwin_x11", "sway",        "weston",   "labwc",       "Hyprland",
        "mutter",   "cosmic-comp", "gdm",      "sddm",        "lightdm",
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

bool gp_proc_is_linked(int proc, uint32_t pid)
{
    char name[16];
    struct stat st;
    (void)snprintf(name, sizeof(name), "%u", pid);
    return fstatat(proc, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
}

uint64_t gp_proc_ticks_to_ns(uint64_t ticks)
{
    uint64_t hz = (uint64_t)sysconf(_SC_CLK_TCK);
    return ticks / hz * GP_NS_PER_S + ticks % hz * GP_NS_PER_S / hz;
}

const char *gp_proc_safe_copy(struct gp_arena *arena, const char *s, size_t n, size_t cols)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(4 * GP_PROC_COMMAND_BYTES);
    gp_utf8_add_safe(&sb, s, n, cols);
    const char *copy = gp_arena_strdup(arena, sb.buf);
    gp_strbuf_fini(&sb);
    return copy;
}

size_t gp_proc_program_name(const char *command, const char **ret_start)
{
    /* A Windows path ("C:\Program Files\…"), which drivers under WSL report, may contain blanks. */
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

/* Arguments are NUL-terminated; some programs overwrite them and leave blanks at the end. */
static size_t trim(const char *text, size_t n)
{
    while (n > 0 && (text[n - 1] == '\0' || text[n - 1] == ' '))
        n--;
    return n;
}

int gp_proc_read_command(int proc, uint32_t pid, struct gp_arena *arena,
                         struct gp_proc_command *ret)
{
    char name[64];
    char text[GP_PROC_COMMAND_BYTES];
    (void)snprintf(name, sizeof(name), "%u/cmdline", pid);
    long n = gp_io_read_at(proc, name, text, sizeof(text));
    if (n < 0)
        return (int)n;
    *ret = (struct gp_proc_command){0};
    size_t len = trim(text, (size_t)n);
    if (len > 0) {
        const char *start;
        size_t name_len = gp_proc_program_name(text, &start);
        ret->name = gp_proc_safe_copy(arena, start, name_len, 64);
        ret->path = gp_proc_safe_copy(arena, text, strnlen(text, len), GP_PROC_COMMAND_COLS);
        for (size_t i = 0; i < len; i++)
            if (text[i] == '\0')
                text[i] = ' ';
    } else {
        /* Zombies and kernel threads have no arguments. */
        (void)snprintf(name, sizeof(name), "%u/comm", pid);
        n = gp_io_read_at(proc, name, text, sizeof(text));
        if (n <= 0)
            return 0;
        len = (size_t)n - (text[n - 1] == '\n');
        ret->name = gp_proc_safe_copy(arena, text, len, 64);
    }
    ret->line = gp_proc_safe_copy(arena, text, len, GP_PROC_COMMAND_COLS);
    return 0;
}

static uint64_t up_ns(void)
{
    struct timespec up;
    (void)clock_gettime(CLOCK_BOOTTIME, &up);
    return (uint64_t)up.tv_sec * GP_NS_PER_S + (uint64_t)up.tv_nsec;
}

/* If the thread is preempted between reading the two clocks, the difference is wrong, so the
 * fastest of several reads is used. */
static uint64_t boot_of_this_machine(void)
{
    enum { LOOKS = 16 };
    uint64_t least_ns = UINT64_MAX;
    uint64_t boot_ns = 0;
    for (int i = 0; i < LOOKS && least_ns > GP_NS_PER_MS; i++) {
        uint64_t before_ns = up_ns();
        uint64_t wall_ns = gp_clock_wall_ns();
        uint64_t after_ns = up_ns();
        if (after_ns - before_ns >= least_ns)
            continue;
        least_ns = after_ns - before_ns;
        boot_ns = wall_ns - after_ns;
    }
    return boot_ns;
}

/* Start times count from boot, including time in suspend, like CLOCK_BOOTTIME. Another root has
 * another boot time, which is in its own file. */
uint64_t gp_proc_boot_wall_ns(int proc, bool is_this_machine)
{
    char text[16384];
    uint64_t btime_s = 0;
    if (is_this_machine)
        return boot_of_this_machine();
    return gp_io_read_at(proc, "stat", text, sizeof(text)) > 0 &&
                   gp_proc_find_number(text, "btime ", &btime_s)
               ? btime_s * GP_NS_PER_S
               : 0;
}
