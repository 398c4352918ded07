/* A whole recording in a few parts of equal length: how busy the GPUs were, and where events are.
 * It is read in pieces, from the summaries that are long enough. */
#ifndef GP_TAPE_STRIP_H
#define GP_TAPE_STRIP_H

#include "source/player.h"
#include "tape/scene.h"

struct gp_err;
struct gp_tape;

struct gp_tape_strip {
    int64_t first, last;
    size_t count;
    int64_t read_to; /* everything before it is read; after last: all */
    bool has_events;
    struct gp_player_part parts[GP_PLAYER_PARTS];
    double sums[GP_PLAYER_PARTS];
    uint32_t counts[GP_PLAYER_PARTS];
};

/* Starts to read the recording between these places in `count` parts (at most GP_PLAYER_PARTS),
 * unless that is what was read already, or all but less than a part. */
void gp_tape_strip_plan(struct gp_tape_strip *strip, int64_t first, int64_t last, size_t count);

bool gp_tape_strip_is_read(const struct gp_tape_strip *strip);

/* Reads until all is read, or for a little more than this time. What cannot be read stays unknown:
 * the samples can be shown without it. */
void gp_tape_strip_read(struct gp_tape_strip *strip, struct gp_tape *tape, uint64_t for_ns);

#endif
