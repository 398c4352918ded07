#include "proc/files.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "base/utf8.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* "pid (comm) state ppid …": comm may hold blanks and brackets, so the last ')' ends it. Thousands
 * of such lines are read at a time, and sscanf() is slow. */
bool gp_proc_parse_stat(const char *text, struct gp_proc_stat *ret)
{
    /* the numbers of proc(5) */
    enum { PPID = 4, UTIME = 14, STIME = 15, NICE = 19, THREADS = 20, START = 22 };
    enum { RSS = 24 };
    long long fields[RSS + 1];
    const char *close = strrchr(text, ')');
    if (!close || close[1] != ' ' || !isalpha((unsigned char)close[2]))
        return false;
    const char *at = close + 3;
    for (int i = PPID; i <= RSS; i++) {
        char *end;
        fields[i] = strtoll(at, &end, 10);
        if (*at != ' ' || end == at)
            return false;
        at = end;
    }
    *ret = (struct gp_proc_stat){
        .state = close[2],
        .ppid = (uint32_t)fields[PPID],
        .nice = (int)fields[NICE],
        .threads = fields[THREADS] > 0 ? (uint64_t)fields[THREADS] : 0,
        .user_ticks = (uint64_t)fields[UTIME],
        .system_ticks = (uint64_t)fields[STIME],
        .start_ticks = (uint64_t)fields[START],
        /* the kernel's counter may be negative for a moment */
        .rss_pages = fields[RSS] > 0 ? (uint64_t)fields[RSS] : 0,
    };
    return true;
}

uint64_t gp_proc_ticks_to_ns(uint64_t ticks)
{
    uint64_t hz = (uint64_t)sysconf(_SC_CLK_TCK);
    return ticks / hz * GP_NS_PER_S + ticks % hz * GP_NS_PER_S / hz;
}

size_t gp_proc_trim_arguments(const char *text, size_t n)
{
    while (n > 0 && (text[n - 1] == '\0' || text[n - 1] == ' '))
        n--;
    return n;
}

void gp_proc_join_arguments(char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (text[i] == '\0')
            text[i] = ' ';
}

const char *gp_proc_safe_copy(struct gp_arena *arena, const char *s, size_t n, size_t cols)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(4 * GP_PROC_COMMAND_BYTES);
    gp_utf8_add_safe(&sb, s, n, cols);
    const char *copy = gp_arena_strdup(arena, sb.buf);
    gp_strbuf_fini(&sb);
    return copy;
}

/* Start times count from boot; time spent suspended is in them, as in CLOCK_BOOTTIME. Another root
 * has another boot: its own file says when. */
uint64_t gp_proc_boot_wall_ns(int proc, bool is_this_machine)
{
    char text[16384];
    uint64_t btime_s = 0;
    struct timespec up;
    if (!is_this_machine)
        return gp_io_read_at(proc, "stat", text, sizeof(text)) > 0 &&
                       gp_proc_find_number(text, "btime ", &btime_s)
                   ? btime_s * GP_NS_PER_S
                   : 0;
    (void)clock_gettime(CLOCK_BOOTTIME, &up);
    return gp_clock_wall_ns() - (uint64_t)up.tv_sec * GP_NS_PER_S - (uint64_t)up.tv_nsec;
}
