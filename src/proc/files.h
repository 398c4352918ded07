/* Small parsers for files of /proc, used to list many processes and to inspect one. */
#ifndef GP_PROC_FILES_H
#define GP_PROC_FILES_H

#include "base/util.h"

#include <sys/types.h>

struct gp_arena;

enum {
    GP_PROC_COMMAND_BYTES = 4096, /* of a command line; longer ones are cut */
    GP_PROC_COMMAND_COLS = 2048,
};

/* Reads a file of a process as a text, from its start; `proc` is a descriptor of /proc. Returns its
 * length, or −errno. */
long gp_proc_read_pid_file(int proc, uint32_t pid, const char *file, char *text, size_t size);
/* Reads an open file, likewise; −1: not open, or it cannot be read. */
long gp_proc_read_again(int fd, char *text, size_t size);

/* The number after `label` in a file of lines "label number". */
bool gp_proc_find_number(const char *text, const char *label, uint64_t *ret);

/* The last pid in the line NSpid of a `status` file: the process's own pid in its namespace. False
 * if there is none. */
bool gp_proc_find_ns_pid(const char *status, uint64_t *ret);

/* A field of the user's line in /etc/passwd of the root, which is cheap and belongs to the root.
 * The name service (LDAP, sssd) is only used without a root prefix. The text is not sanitized. */
enum gp_proc_passwd_field { GP_PROC_PASSWD_NAME = 0, GP_PROC_PASSWD_HOME = 5 };
bool gp_proc_passwd(const char *root, uid_t uid, enum gp_proc_passwd_field field, char *ret,
                    size_t size);
/* The user's name, not sanitized; false: there is none, and it is the number as text. */
bool gp_proc_user_name(const char *root, uid_t uid, char *ret, size_t size);

/* The `stat` line of a process. */
struct gp_proc_stat {
    char name[16]; /* of the program, or as it calls itself: any bytes */
    char state;    /* R running, S sleeping, D uninterruptible sleep, Z zombie, T stopped, … */
    uint32_t ppid;
    bool is_kernel;   /* a kernel thread */
    uint32_t group;   /* its process group: the pid of the leader */
    uint32_t session; /* its session, likewise */
    int nice;
    uint64_t threads;
    uint64_t user_ticks; /* CPU time, in clock ticks like the next three */
    uint64_t system_ticks;
    uint64_t children_ticks; /* of its children that have exited, and were waited for */
    uint64_t start_ticks;    /* since boot: identifies the process together with the pid */
    uint64_t rss_pages;
};

/* Returns false for an invalid line, and leaves ret unchanged. */
bool gp_proc_parse_stat(const char *text, struct gp_proc_stat *ret);
/* Reads the line of a process; `proc` is a descriptor of /proc. */
bool gp_proc_read_stat(int proc, uint32_t pid, struct gp_proc_stat *ret);
/* The same for a process of this machine, in its own /proc. */
bool gp_proc_stat_of(uint32_t pid, struct gp_proc_stat *ret);

/* The pid namespace of this process; pids of another namespace are other processes here. 0:
 * unknown. */
uint64_t gp_proc_own_ns(void);

/* Whether a program of this name (without path) is a display server. */
bool gp_proc_is_display_server(const char *name);

/* Below the root of a simulated machine, the directory of a real process is a link: whether that is
 * so. `proc` is a descriptor of the root's /proc. */
bool gp_proc_is_linked(int proc, uint32_t pid);

/* Clock ticks in nanoseconds. */
uint64_t gp_proc_ticks_to_ns(uint64_t ticks);

/* A sanitized copy of at most this many columns; NULL without memory. */
const char *gp_proc_safe_copy(struct gp_arena *arena, const char *s, size_t n, size_t cols);

/* The command of a process, from its file cmdline or, without arguments, comm. Sanitized text in
 * the arena; NULL if unknown. */
struct gp_proc_command {
    const char *name; /* program without path */
    const char *path; /* the first argument */
    const char *line; /* all arguments */
};

/* `proc` is a descriptor of /proc. Returns 0, or −errno of opening the file. */
int gp_proc_read_command(int proc, uint32_t pid, struct gp_arena *arena,
                         struct gp_proc_command *ret);

/* The boot time in wall-clock nanoseconds, matching the start times of processes. If `proc` does
 * not belong to this machine, it is only precise to a second, and 0 if unknown. */
uint64_t gp_proc_boot_wall_ns(int proc, bool is_this_machine);

#endif
