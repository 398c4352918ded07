/* File systems that do not respond: whoever accesses one whose server is gone waits in the kernel
 * for as long as that takes, and no signal or timeout ends it.
 *
 * The reading thread records when it enters and leaves the kernel. Another thread watches how long
 * that takes, and may abandon the reader: it then never returns to its work, which now belongs to
 * the other thread, and paths on that file system are refused from then on. */
#ifndef GP_DOCTOR_STALL_H
#define GP_DOCTOR_STALL_H

#include "proc/mount.h"

#include <pthread.h>

enum { GP_STALL_REFUSED = 8 };

struct gp_stall {
    pthread_mutex_t lock;
    uint64_t since;          /* when the current call began, monotonic; 0: none */
    unsigned turn;           /* number of abandoned threads */
    char path[GP_PATH_SIZE]; /* of the current call, or of the last one */
    char refused[GP_STALL_REFUSED][GP_PATH_SIZE]; /* directories below which nothing is accessed */
    size_t refused_count;
};

void gp_stall_init(struct gp_stall *stall);

/* Around a call on this path (NULL: on what the last one opened): pass the turn from enter to
 * leave. Leaving does not return on a thread that was abandoned meanwhile. A NULL `stall` disables
 * this. */
unsigned gp_stall_enter(struct gp_stall *stall, const char *path);
void gp_stall_leave(struct gp_stall *stall, unsigned turn);

/* Whether the current call has taken longer than this. If so, its thread is abandoned; `path` is
 * what it waits for. */
bool gp_stall_give_up(struct gp_stall *stall, uint64_t patience_ns, char path[GP_PATH_SIZE]);

/* A path and everything below it ("": everything) is no longer accessed; when the list is full,
 * nothing is. */
void gp_stall_refuse(struct gp_stall *stall, const char *path);
bool gp_stall_refuses(struct gp_stall *stall, const char *path);

#endif
