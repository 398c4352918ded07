/* What files of /proc hold: small parsers, for the reader of many processes and for the one that
 * looks closely at one. */
#ifndef GP_PROC_FILES_H
#define GP_PROC_FILES_H

#include "base/util.h"

struct gp_arena;

enum {
    GP_PROC_COMMAND_BYTES = 4096, /* of a command line; longer ones are cut */
    GP_PROC_COMMAND_COLS = 2048,
};

/* The number behind `label` in a file of lines "label   number". */
bool gp_proc_find_number(const char *text, const char *label, uint64_t *ret);

/* The line `stat` of a process. */
struct gp_proc_stat {
    char state; /* R running, S sleeping, D waiting for a device, Z zombie, T stopped, … */
    uint32_t ppid;
    int nice;
    uint64_t threads;
    uint64_t user_ticks; /* CPU time, in ticks of the clock as the next two */
    uint64_t system_ticks;
    uint64_t start_ticks; /* since boot: with the pid, the identity of a process */
    uint64_t rss_pages;
};

/* False, with ret untouched, for what is not such a line. */
bool gp_proc_parse_stat(const char *text, struct gp_proc_stat *ret);

/* Ticks of the clock as time. */
uint64_t gp_proc_ticks_to_ns(uint64_t ticks);

/* A file cmdline of n bytes holds arguments that end in NUL each. The length without what some
 * programs leave behind when they write over them; 0: there are none, as of a zombie or a thread of
 * the kernel. */
size_t gp_proc_trim_arguments(const char *text, size_t n);

/* Makes one line of them. */
void gp_proc_join_arguments(char *text, size_t n);

/* A copy that is safe to show and at most so many columns wide; NULL if there is no memory. */
const char *gp_proc_safe_copy(struct gp_arena *arena, const char *s, size_t n, size_t cols);

/* When the machine was started, in nanoseconds of the clock on the wall, as the start times of
 * processes count; `proc` is a descriptor of /proc. Where that is not the one of this machine, to
 * the second only, and 0 if it does not tell. */
uint64_t gp_proc_boot_wall_ns(int proc, bool is_this_machine);

#endif
