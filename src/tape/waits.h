/* Who waits for GPUs in gpulse's own waiting line (proc/lease), and for how long.
 *
 * Whose request it is, and when it began, is what the kernel says about its file: its owner, and
 * when it appeared. So nobody can make another user wait in a recording. */
#ifndef GP_TAPE_WAITS_H
#define GP_TAPE_WAITS_H

#include "base/util.h"

struct gp_leases;

/* A request that waits, or the recorder itself, which watches the line: then `user` is NULL. It is
 * known from `first` to `last`, on the axis. */
struct gp_wait {
    int64_t id; /* of its row in the recording */
    uint64_t request;
    uint32_t uid;
    unsigned gpus;
    int64_t first, last;
    char *user, *job; /* owned; job: its name, otherwise its program */
};

struct gp_waits {
    struct gp_wait *items; /* sorted by uid and request */
    size_t count;
    struct gp_wait watch; /* id 0: the line was not read yet */
    int64_t next_id, stored;
    int (*store)(void *ctx, const struct gp_wait *wait); /* adds the row, or replaces its end */
    void *ctx;
};

/* The line at place t of the axis, when the clock shows wall_us. Since a look more than pause_us
 * before, nothing is known. Rows are stored when a wait ends, and once a minute. GP_ENOMEM, or what
 * store() returned. */
int gp_waits_look(struct gp_waits *waits, const struct gp_leases *leases, int64_t t,
                  int64_t wall_us, int64_t pause_us) GP_MUST_CHECK;

/* Stores what is not stored yet, and forgets everything but the number of the next row. */
int gp_waits_end(struct gp_waits *waits);

#endif
