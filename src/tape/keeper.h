/* Keeps a recording: stores what is queued, works out what follows from it, and drops what is too
 * old or too much. Used by the recorder's thread alone. */
#ifndef GP_TAPE_KEEPER_H
#define GP_TAPE_KEEPER_H

#include "tape/derive.h"
#include "tape/private.h"
#include "tape/queue.h"

struct gp_err;
struct gp_recorder_config;

struct gp_keeper {
    struct gp_store *store;
    struct gp_private *private; /* NULL: the recording is one user's */
    struct gp_derive *derive;   /* NULL: it starts again from the file */
    int64_t interval_us, keep_us, age_max_us;
    uint64_t size_max;
    int64_t last; /* time of the last frame that was stored */
    /* When what is not done with every frame is to be done next; 0: not known yet. */
    int64_t flush_at, prune_at, checkpoint_at, private_at;
    bool has_failed_checkpoint; /* the last one: the log grows */
};

int gp_keeper_open(struct gp_keeper *keeper, const struct gp_recorder_config *config,
                   struct gp_err *err) GP_MUST_CHECK;

/* Stores all items in one transaction, or none. GP_EIO, GP_ENOMEM. */
int gp_keeper_store(struct gp_keeper *keeper, const struct gp_tape_item *items,
                    struct gp_err *err) GP_MUST_CHECK;

/* Bytes of the file and its log. */
uint64_t gp_keeper_size(const struct gp_keeper *keeper);

/* Stores what was worked out, and empties the log. */
int gp_keeper_finish(struct gp_keeper *keeper, struct gp_err *err) GP_MUST_CHECK;
void gp_keeper_close(struct gp_keeper *keeper);

#endif
