/* Identifies processes from /proc: user, command, CPU time, memory, start time.
 *
 * All files are read under a root prefix, so that a test is a directory. Only requested data is
 * read, once per pid and tick, regardless of the number of GPUs. */
#ifndef GP_PROC_PROC_H
#define GP_PROC_PROC_H

#include "base/shared.h"

enum gp_proc_want {
    GP_PROC_USER = 1,    /* texts.user */
    GP_PROC_STAT = 2,    /* everything after `state` below */
    GP_PROC_COMMAND = 4, /* name, command */
    GP_PROC_PATH = 8,    /* path */
    GP_PROC_CONTAINER = 16,
    GP_PROC_ORIGIN = 64,    /* origin */
    GP_PROC_ANCESTORS = 32, /* see gp_proc_read() */
    GP_PROC_CWD = 128,
    GP_PROC_NS_PID = 256,
    GP_PROC_OWNER = 512, /* owner */
};

/* Data of a process that rarely changes: read once for many ticks, and shared with their snapshots.
 * Texts are safe, NULL if unknown. */
struct gp_proc_texts {
    struct gp_shared shared;
    unsigned want;         /* enum gp_proc_want: requested parts */
    unsigned denied;       /* requested parts that this user may not read */
    const char *user;      /* name, or the uid in digits */
    const char *name;      /* program name without path */
    const char *path;      /* its first argument: the path by which it was started, or a title */
    const char *command;   /* full command line */
    const char *container; /* see gp_proc_container(); "" for none */
    const char *container_name; /* see gp_proc_container_name() */
    const char *origin;         /* see gp_proc_origin(); "" for none */
    const char *start;          /* start_ns as RFC 3339 */
    const char *cwd;            /* working directory; NULL also if it may not be read */
    uint32_t owner; /* who may read what is private about it: uid plus 1; 0: unknown, or a user of a
                       user namespace, whose uid says nothing here */
    uint32_t ns_pid;  /* its pid in its own namespace, which differs in a container; 0: unknown */
    uint64_t read_ns; /* when they were read; and, private to the reader, … */
    uint64_t checked_ns; /* … when its command line was last found unchanged */
    char room[];         /* storage of the texts */
};

struct gp_proc_info {
    uint32_t pid;
    uint32_t ppid;    /* 0: not visible from here */
    uint32_t session; /* the pid that identifies its session */
    bool exists;      /* false: gone, hidden, or in another pid namespace */
    bool is_old;      /* not read in this tick, as nobody watches it: see gp_proc_watch() */
    bool is_ancestor; /* it was not requested */
    char state; /* the kernel's letter: R S D Z T …; 0: this, ppid and the following are unknown */
    uint32_t threads;
    struct gp_proc_texts *texts; /* take a reference to keep them */
    uint64_t start_ns;           /* wall clock, since the epoch */
    uint64_t
        start_ticks; /* field 22 of /proc/PID/stat: identifies the process together with the pid */
    uint64_t cpu_ticks;
    double cpu_pct; /* percent of one core since the last tick, or since the start */
    uint64_t rss_bytes;
    uint64_t as_of_ns; /* monotonic time of cpu_pct and rss_bytes: when the file was read, or when
                          it was written if it is not the kernel's */
    uint64_t busy_ns;  /* when cpu_ticks was last seen to have grown, or first seen (monotonic) */
    int stat_fd;       /* private to the reader: its file stat, kept open; −1: not open */
};

struct gp_proc_infos {
    struct gp_proc_info *infos; /* sorted by pid */
    size_t count, room;
};

struct gp_proc_reader;

/* root: prefix, NULL for none; must outlive the reader. NULL without memory. */
struct gp_proc_reader *gp_proc_reader_new(const char *root) GP_MUST_CHECK;
void gp_proc_reader_free(struct gp_proc_reader *reader);

/* Limits the processes that are read in every tick to these (sorted pids, which must stay valid
 * until the next call); of them, one that sleeps and has used no CPU time for 10 seconds is read
 * every 3 seconds. If the others matter too (for example because rows are sorted by their
 * values), they are read in turns, 2048 of them per tick. Otherwise, their numbers are stale for
 * some time (32 to 64 s; longer if there are more than 2048 of them) until they are read again, and
 * their container and origin are not read. NULL: read all, the default. */
void gp_proc_watch(struct gp_proc_reader *reader, const uint32_t *pids, size_t count,
                   bool others_matter);

enum { GP_PROC_ANCESTORS_MAX = 1024 };

/* Reads these processes, which are sorted and unique. With GP_PROC_ANCESTORS, which requires
 * GP_PROC_STAT, it also reads their visible ancestors up to init that are not among them: at most
 * GP_PROC_ANCESTORS_MAX, or fewer without memory. The result is valid until the next call. A
 * process that is gone has exists == false; none is dropped. NULL without memory. */
const struct gp_proc_infos *gp_proc_read(struct gp_proc_reader *reader, unsigned want,
                                         const uint32_t *pids, size_t count);

/* NULL if it is not in the list. */
struct gp_proc_info *gp_proc_find(const struct gp_proc_infos *infos, uint32_t pid);

/* The program name in a command line: its first word, without path; *ret_start points into
 * `command`, its length is returned. Titles that programs write into their arguments ("nginx:
 * worker process") are cut after the first word. The kernel's name of a process is only used
 * without a command line, because frameworks change it ("pt_main_thread"). */
size_t gp_proc_program_name(const char *command, const char **ret_start);

/* Data of the host that can be requested; each part needs at most one file. */
enum gp_proc_host_part {
    GP_PROC_HOST_CPU = 1,
    GP_PROC_HOST_CPU_COUNT = 2,
    GP_PROC_HOST_LOAD = 4,
    GP_PROC_HOST_MEMORY = 8,
    GP_PROC_HOST_SWAP = 16,
    GP_PROC_HOST_UPTIME = 32,
};

enum { GP_PROC_HOST_PARTS = 6 };

struct gp_proc_host {
    unsigned known; /* enum gp_proc_host_part: the requested parts that could be read */
    uint64_t read_ns[GP_PROC_HOST_PARTS]; /* when (monotonic), by bit; 0: never */
    double cpu_pct;                       /* of all cores, since it was last read or since boot */
    uint64_t cpu_count;
    double load_1m;
    uint64_t memory_total_bytes;
    uint64_t memory_available_bytes;
    uint64_t swap_total_bytes;
    uint64_t swap_used_bytes;
    uint64_t uptime_s;
};

/* The name of the host; "unknown" if there is none. Not sanitized. The text belongs to the reader,
 * and is valid until the next call. */
const char *gp_proc_host_name(struct gp_proc_reader *reader);

/* Reads the parts of the host in `want` (enum gp_proc_host_part). Those read less than every_ns ago
 * are returned as they were; load and number of CPUs are kept for at least 5 seconds. */
void gp_proc_read_host(struct gp_proc_reader *reader, unsigned want, uint64_t every_ns,
                       struct gp_proc_host *ret);

/* A state letter of the kernel as a permanent text; NULL for 0. */
const char *gp_proc_state_text(char letter);

#endif
