/* Who a pid is, from /proc: user, command, CPU time, memory, start time.
 *
 * All files are read under a root prefix, so that a test is a directory. Only what is asked for is
 * read, once per pid and tick, whatever the number of GPUs. */
#ifndef GP_PROC_PROC_H
#define GP_PROC_PROC_H

#include "base/shared.h"

enum gp_proc_want {
    GP_PROC_USER = 1,    /* its text */
    GP_PROC_STAT = 2,    /* start_ns, start_ticks, cpu_ticks, cpu_pct, rss_bytes; start */
    GP_PROC_COMMAND = 4, /* name, command */
    GP_PROC_PATH = 8,    /* path */
};

/* All of it is safe. */
enum gp_proc_text {
    GP_PROC_TEXT_USER,    /* name, or the uid in digits */
    GP_PROC_TEXT_NAME,    /* program name without its path */
    GP_PROC_TEXT_PATH,    /* its first argument: the path by which it was called, or a title */
    GP_PROC_TEXT_COMMAND, /* full command line */
    GP_PROC_TEXT_START,   /* start_ns as RFC 3339 */
    GP_PROC_TEXT__COUNT,
};

/* What seldom changes of a process: read once for many ticks, and shared with their snapshots. */
struct gp_proc_texts {
    struct gp_shared shared;
    uint32_t at[GP_PROC_TEXT__COUNT]; /* in `text`; 0: not known */
    uint64_t until_ns;                /* then it is read again */
    char text[];
};

struct gp_proc_info {
    uint32_t pid;
    bool exists;                 /* false: gone, hidden, or of another pid namespace */
    bool is_old;                 /* as_of_ns is before this tick: see gp_proc_watch() */
    struct gp_proc_texts *texts; /* who wants them for longer holds them; NULL: none */
    uint64_t start_ns;           /* wall clock, since the epoch */
    uint64_t start_ticks; /* field 22 of /proc/PID/stat: with the pid, the identity of a process */
    uint64_t cpu_ticks;
    double cpu_pct; /* percent of one core since the last tick, or since the start */
    uint64_t rss_bytes;
    uint64_t as_of_ns; /* monotonic moment of cpu_pct and rss_bytes */
};

/* NULL: not known. */
static inline const char *gp_proc_text(const struct gp_proc_info *info, enum gp_proc_text which)
{
    const struct gp_proc_texts *texts = info->texts;
    return texts && texts->at[which] ? texts->text + texts->at[which] : NULL;
}

struct gp_proc_reader;

/* root: prefix, NULL for none; must outlive the reader. NULL if there is no memory. */
struct gp_proc_reader *gp_proc_reader_new(const char *root) GP_MUST_CHECK;
void gp_proc_reader_free(struct gp_proc_reader *reader);

/* From here on only these processes (sorted pids, which must live until the next call) are read at
 * every tick. Of the others the numbers are old for some seconds, until they are read again. NULL:
 * all are read, as in the beginning. */
void gp_proc_watch(struct gp_proc_reader *reader, const uint32_t *pids, size_t count);

/* Reads these processes, which are sorted and unique: one info for each, there until the next call.
 * One that is gone has exists == false. NULL if there is no memory. */
const struct gp_proc_info *gp_proc_read(struct gp_proc_reader *reader, unsigned want,
                                        const uint32_t *pids, size_t count);

/* The program's name in a command line: its first word, without path; *ret_start points into
 * `command`, its length is returned. Programs that write a title into their arguments ("nginx:
 * worker process") are cut behind the first word. The kernel's name of a process is not used where
 * there is a command line: frameworks rename it ("pt_main_thread"). */
size_t gp_proc_program_name(const char *command, const char **ret_start);

struct gp_proc_host {
    bool has_cpu, has_load, has_memory; /* whether the files could be read */
    double cpu_pct;                     /* of all cores, since the last call, or since boot */
    double load_1m;
    uint64_t memory_total_bytes;
    uint64_t memory_available_bytes;
};

void gp_proc_read_host(struct gp_proc_reader *reader, struct gp_proc_host *ret);

#endif
