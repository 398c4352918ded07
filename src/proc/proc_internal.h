/* Private to the reader of processes. Its parts, from the lowest to the highest:
 *
 *   proc_cache.c  what is known from the previous tick, and how long it is used
 *   proc_texts.c  the texts of a process: user, command, container, …
 *   proc_host.c   the numbers of the host
 *   proc.c        a tick: numbers and texts of all processes, and their ancestors */
#ifndef GP_PROC_PROC_INTERNAL_H
#define GP_PROC_PROC_INTERNAL_H

#include "proc/names.h"
#include "proc/proc.h"

#include <sys/types.h>

struct gp_proc_user {
    uid_t uid;
    char name[256];
};

enum gp_proc_host_file { HOST_STAT, HOST_LOADAVG, HOST_MEMINFO, HOST_UPTIME, HOST_FILES };

struct gp_proc_reader {
    const char *root;
    int dir;         /* /proc below the root: relative names are looked up faster than full paths */
    bool is_kernels; /* its files are the kernel's, not a copy */
    long ticks_per_s;
    long page_bytes;
    size_t files_most; /* that this process may have open */
    uint64_t boot_wall_ns;
    bool keeps_files; /* for all processes that are due in this tick */

    /* Of the cache. */
    size_t tick;
    struct gp_proc_infos past;  /* from the previous tick */
    struct gp_proc_infos spare; /* room for the next one */
    uint64_t kept_ns;           /* minimum lifetime of texts that are seen */
    const uint32_t *watched;    /* NULL: all */
    size_t watched_count;
    bool others_matter;
    size_t turns; /* each unwatched process is read in one of this many ticks; 0: never */

    /* Of the texts. */
    struct gp_proc_user *users;
    size_t user_count;
    struct gp_proc_user nobody; /* for users who do not fit into the cache */
    struct gp_proc_names names; /* container names, for this tick */

    /* Of the host. */
    int host_fds[HOST_FILES]; /* −1: not open */
    char host_name[256];
    uint64_t name_ns;             /* when it was read */
    uint64_t cpu_busy, cpu_total; /* of the host in the last call */
    struct gp_proc_host host;     /* as last read */
};

static inline struct gp_proc_texts *gp_proc_hold_texts(struct gp_proc_texts *texts)
{
    (void)gp_shared_hold(&texts->shared);
    return texts;
}

/* ---- proc_cache.c ---- */

/* Decides what is read again in a tick with this many processes. */
void gp_proc_begin_tick(struct gp_proc_reader *reader, size_t count);
/* Whether it must be read in this tick, even if it is cached. */
bool gp_proc_is_due(const struct gp_proc_reader *reader, uint32_t pid);
/* The process in the previous tick, if it is the same one. */
const struct gp_proc_info *gp_proc_same_past(const struct gp_proc_reader *reader,
                                             const struct gp_proc_info *info);
/* Whether its texts need not be read; false for NULL. */
bool gp_proc_is_kept(const struct gp_proc_reader *reader, const struct gp_proc_info *past,
                     unsigned want, uint64_t now_ns);
/* Whether the same program still runs. Then its user, container and environment are the same, too,
 * unless it was moved: they are four more files. */
bool gp_proc_is_unchanged(const struct gp_proc_reader *reader, const struct gp_proc_info *past,
                          unsigned want, const char *command, uint64_t now_ns);
/* Uses everything known from the previous tick; false if the process must be read. */
bool gp_proc_recall(const struct gp_proc_reader *reader, unsigned want, struct gp_proc_info *info,
                    uint64_t now_ns);
/* Releases what a process owns: its texts and its file. */
void gp_proc_drop(const struct gp_proc_info *info);
/* Does so for a list, and empties it. */
void gp_proc_forget(struct gp_proc_infos *infos);
/* The room of the tick before the last, or a new one. Its `infos` is NULL without memory. */
struct gp_proc_infos gp_proc_take_room(struct gp_proc_reader *reader, size_t count);

/* ---- proc_texts.c ---- */

/* A reference to the texts of a process: new ones, those of the previous tick if they still hold,
 * or empty ones without memory. Sets info->exists if a file of the process was found. */
struct gp_proc_texts *gp_proc_read_texts(struct gp_proc_reader *reader, unsigned want,
                                         struct gp_proc_info *info, uint64_t now_ns);

/* ---- proc_host.c ---- */

void gp_proc_host_init(struct gp_proc_reader *reader);
void gp_proc_host_fini(struct gp_proc_reader *reader);

#endif
