/* File systems that do not answer: whoever touches one whose server is gone waits in the kernel for
 * as long as that takes, and no signal and no time-out ends it.
 *
 * The thread that reads says when it goes into the kernel and when it is back. Another one looks at
 * how long that takes, and may give it up: the thread then never comes back, so that whatever it
 * worked on is another's, and what lies on that file system is refused from then on. */
#ifndef GP_DOCTOR_STALL_H
#define GP_DOCTOR_STALL_H

#include "proc/mount.h"

#include <pthread.h>

enum { GP_STALL_REFUSED = 8 };

struct gp_stall {
    pthread_mutex_t lock;
    uint64_t since;          /* when the call under way began, monotonic; 0: none is */
    unsigned turn;           /* how many threads were given up */
    char path[GP_PATH_SIZE]; /* of the call under way, or of the last one */
    char refused[GP_STALL_REFUSED][GP_PATH_SIZE]; /* folders below which nothing is touched */
    size_t refused_count;
};

void gp_stall_init(struct gp_stall *stall);

/* Before and behind a call on this path (NULL: on what the last one opened): the turn is what the
 * one gives and the other takes. Leaving does not return on a thread that was given up meanwhile.
 * Without a `stall` nobody looks. */
unsigned gp_stall_enter(struct gp_stall *stall, const char *path);
void gp_stall_leave(struct gp_stall *stall, unsigned turn);

/* Whether the call under way has taken longer than this. Then its thread is given up; `path` is
 * what it waits for. */
bool gp_stall_give_up(struct gp_stall *stall, uint64_t patience_ns, char path[GP_PATH_SIZE]);

/* A path and what is below it ("": everything) is not touched any more; once there are too many,
 * nothing is. */
void gp_stall_refuse(struct gp_stall *stall, const char *path);
bool gp_stall_refuses(struct gp_stall *stall, const char *path);

#endif
