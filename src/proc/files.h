/* What files of /proc hold: small parsers, for the reader of many processes and for the one that
 * looks closely at one. */
#ifndef GP_PROC_FILES_H
#define GP_PROC_FILES_H

#include "base/util.h"

#include <sys/types.h>

struct gp_arena;

enum {
    GP_PROC_COMMAND_BYTES = 4096, /* of a command line; longer ones are cut */
    GP_PROC_COMMAND_COLS = 2048,
};

/* The number behind `label` in a file of lines "label   number". */
bool gp_proc_find_number(const char *text, const char *label, uint64_t *ret);

/* The last pid in the line NSpid of a file `status`: that by which the process knows itself. False
 * if it does not tell. */
bool gp_proc_find_ns_pid(const char *status, uint64_t *ret);

/* A field of the user's line in /etc/passwd of the root, which is cheap and belongs to the root;
 * the name service (LDAP, sssd) is asked only about this machine itself. As it stands there. */
enum gp_proc_passwd_field { GP_PROC_PASSWD_NAME = 0, GP_PROC_PASSWD_HOME = 5 };
bool gp_proc_passwd(const char *root, uid_t uid, enum gp_proc_passwd_field field, char *ret,
                    size_t size);

/* The line `stat` of a process. */
struct gp_proc_stat {
    char state; /* R running, S sleeping, D waiting for a device, Z zombie, T stopped, … */
    uint32_t ppid;
    bool is_kernel;   /* a thread of the kernel */
    uint32_t group;   /* its process group: the pid of the one that leads it */
    uint32_t session; /* its session, likewise */
    int nice;
    uint64_t threads;
    uint64_t user_ticks; /* CPU time, in ticks of the clock as the next two */
    uint64_t system_ticks;
    uint64_t start_ticks; /* since boot: with the pid, the identity of a process */
    uint64_t rss_pages;
};

/* False, with ret untouched, for what is not such a line. */
bool gp_proc_parse_stat(const char *text, struct gp_proc_stat *ret);
/* The same of a process; `proc` is a descriptor of /proc. */
bool gp_proc_read_stat(int proc, uint32_t pid, struct gp_proc_stat *ret);

/* The pid namespace of this process: the pids of another one are other processes' here. 0: not
 * known.
 */
uint64_t gp_proc_own_ns(void);

/* Whether a program of this name (without its path) is what somebody's screen depends on. */
bool gp_proc_is_display_server(const char *name);

/* Ticks of the clock as time. */
uint64_t gp_proc_ticks_to_ns(uint64_t ticks);

/* A copy that is safe to show and at most so many columns wide; NULL if there is no memory. */
const char *gp_proc_safe_copy(struct gp_arena *arena, const char *s, size_t n, size_t cols);

/* What a process is called, from its file cmdline or, where it has no arguments, comm. Safe text in
 * the arena; NULL if it is not known. */
struct gp_proc_command {
    const char *name; /* program without its path */
    const char *path; /* the first argument */
    const char *line; /* all of them */
};

/* `proc` is a descriptor of /proc. 0, or −errno of opening its file. */
int gp_proc_read_command(int proc, uint32_t pid, struct gp_arena *arena,
                         struct gp_proc_command *ret);

/* When the machine was started, in nanoseconds of the clock on the wall, as the start times of
 * processes count. Where `proc` is not the one of this machine, to the second only, and 0 if it
 * does not tell. */
uint64_t gp_proc_boot_wall_ns(int proc, bool is_this_machine);

#endif
