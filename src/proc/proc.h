/* Who a pid is, from /proc: user, command, CPU time, memory, start time.
 *
 * All files are read under a root prefix, so that a test is a directory. Only what is asked for is
 * read, once per pid and tick, whatever the number of GPUs. */
#ifndef GP_PROC_PROC_H
#define GP_PROC_PROC_H

#include "base/shared.h"

enum gp_proc_want {
    GP_PROC_USER = 1,    /* its text */
    GP_PROC_STAT = 2,    /* what is behind `state` below */
    GP_PROC_COMMAND = 4, /* name, command */
    GP_PROC_PATH = 8,    /* path */
    GP_PROC_CONTAINER = 16,
    GP_PROC_ORIGIN = 64,    /* origin */
    GP_PROC_ANCESTORS = 32, /* see gp_proc_read() */
    GP_PROC_CWD = 128,
    GP_PROC_NS_PID = 256,
};

/* What seldom changes of a process: read once for many ticks, and shared with their snapshots. Text
 * here is safe, NULL if it is not known. */
struct gp_proc_texts {
    struct gp_shared shared;
    unsigned want;         /* enum gp_proc_want: what was asked for */
    unsigned denied;       /* and what of it this user may not see */
    const char *user;      /* name, or the uid in digits */
    const char *name;      /* program name without its path */
    const char *path;      /* its first argument: the path by which it was called, or a title */
    const char *command;   /* full command line */
    const char *container; /* where it runs: see gp_proc_container(); "" for nothing special */
    const char *container_name; /* see gp_proc_container_name() */
    const char *origin;         /* see gp_proc_origin(); "" for nothing special */
    const char *start;          /* start_ns as RFC 3339 */
    const char *cwd;            /* where it works; NULL also if that may not be seen */
    uint32_t ns_pid;   /* its pid as it sees it itself: another one in a container; 0: not known */
    uint64_t until_ns; /* then they are read again */
    char room[];       /* for them */
};

struct gp_proc_info {
    uint32_t pid;
    uint32_t ppid;    /* 0: none that can be seen from here */
    uint32_t session; /* the pid that its session is named by */
    bool exists;      /* false: gone, hidden, or of another pid namespace */
    bool is_old;      /* as_of_ns was before this tick: see gp_proc_watch() */
    bool is_ancestor; /* it was not asked for */
    char state; /* the kernel's letter: R S D Z T …; 0: this, ppid and what follows is not known */
    uint32_t threads;
    struct gp_proc_texts *texts; /* who wants them for longer holds them */
    uint64_t start_ns;           /* wall clock, since the epoch */
    uint64_t start_ticks; /* field 22 of /proc/PID/stat: with the pid, the identity of a process */
    uint64_t cpu_ticks;
    double cpu_pct; /* percent of one core since the last tick, or since the start */
    uint64_t rss_bytes;
    uint64_t as_of_ns; /* monotonic moment of cpu_pct and rss_bytes */
    int stat_fd;       /* the reader's own: its file stat, kept open; −1: not */
};

struct gp_proc_infos {
    struct gp_proc_info *infos; /* sorted by pid */
    size_t count;
};

struct gp_proc_reader;

/* root: prefix, NULL for none; must outlive the reader. NULL if there is no memory. */
struct gp_proc_reader *gp_proc_reader_new(const char *root) GP_MUST_CHECK;
void gp_proc_reader_free(struct gp_proc_reader *reader);

/* From here on only these processes (sorted pids, which must live until the next call) are read at
 * every tick. If the others matter too (somebody sorts by what they do), they are read in turns,
 * 2048 of them at a tick. If not, their numbers are old for some seconds (8 to 16; longer where
 * there are more than 2048 of them), until they are read again, and their container and origin are
 * not read. NULL: all are read, as in the beginning. */
void gp_proc_watch(struct gp_proc_reader *reader, const uint32_t *pids, size_t count,
                   bool others_matter);

enum { GP_PROC_ANCESTORS_MAX = 1024 };

/* Reads these processes, which are sorted and unique. With GP_PROC_ANCESTORS, which needs
 * GP_PROC_STAT, also their parents, the parents of those, and so on up to the first process, as far
 * as they can be seen and are not among them: GP_PROC_ANCESTORS_MAX at most, fewer if there is no
 * memory. The result is there until the next call. A process that is gone has exists == false,
 * nothing is dropped. NULL if there is no memory. */
const struct gp_proc_infos *gp_proc_read(struct gp_proc_reader *reader, unsigned want,
                                         const uint32_t *pids, size_t count);

/* NULL: it is not there. */
struct gp_proc_info *gp_proc_find(const struct gp_proc_infos *infos, uint32_t pid);

/* The program's name in a command line: its first word, without path; *ret_start points into
 * `command`, its length is returned. Programs that write a title into their arguments ("nginx:
 * worker process") are cut behind the first word. The kernel's name of a process is not used where
 * there is a command line: frameworks rename it ("pt_main_thread"). */
size_t gp_proc_program_name(const char *command, const char **ret_start);

/* What can be asked of the host; each of them is one file, or a part of one. */
enum gp_proc_host_part {
    GP_PROC_HOST_CPU = 1,
    GP_PROC_HOST_CPU_COUNT = 2,
    GP_PROC_HOST_LOAD = 4,
    GP_PROC_HOST_MEMORY = 8,
    GP_PROC_HOST_SWAP = 16,
    GP_PROC_HOST_UPTIME = 32,
};

struct gp_proc_host {
    unsigned known; /* enum gp_proc_host_part: what could be read; the rest is 0 */
    double cpu_pct; /* of all cores, since the last call, or since boot */
    uint64_t cpu_count;
    double load_1m;
    uint64_t memory_total_bytes;
    uint64_t memory_available_bytes;
    uint64_t swap_total_bytes;
    uint64_t swap_used_bytes;
    uint64_t uptime_s;
};

/* Reads of the host what is in `want` (enum gp_proc_host_part). */
void gp_proc_read_host(struct gp_proc_reader *reader, unsigned want, struct gp_proc_host *ret);

#endif
