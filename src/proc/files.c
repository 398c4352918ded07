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

/* "pid (comm) state ppid …": comm may hold blanks and brackets, so the last ')' ends it. */
bool gp_proc_parse_stat(const char *text, struct gp_proc_stat *ret)
{
    struct {
        char state;
        unsigned ppid;
        unsigned long long utime, stime, start;
        long nice;
        long long threads, rss;
    } f;
    const char *close = strrchr(text, ')');
    /* fields 3 to 24 of proc(5): 3 state, 4 ppid, 14 utime, 15 stime, 19 nice, 20 num_threads,
     * 22 starttime, 24 rss */
    if (!close ||
        sscanf(close + 1,
               " %c %u %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %ld "
               "%lld %*d %llu %*u %lld",
               &f.state, &f.ppid, &f.utime, &f.stime, &f.nice, &f.threads, &f.start, &f.rss) != 8 ||
        !isalpha((unsigned char)f.state))
        return false;
    *ret = (struct gp_proc_stat){
        .state = f.state,
        .ppid = f.ppid,
        .nice = (int)f.nice,
        .threads = f.threads > 0 ? (uint64_t)f.threads : 0,
        .user_ticks = f.utime,
        .system_ticks = f.stime,
        .start_ticks = f.start,
        /* the kernel's counter may be negative for a moment */
        .rss_pages = f.rss > 0 ? (uint64_t)f.rss : 0,
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
