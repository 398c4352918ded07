/* Moving in a recording that is played.
 *
 * The source of a recording has a player. What it is asked for is done with the source's next
 * sample, by the thread that takes it. All functions but past() can be called by any thread, and do
 * not wait for the disk. */
#ifndef GP_SOURCE_PLAYER_H
#define GP_SOURCE_PLAYER_H

#include "base/util.h"

struct gp_snapshot;

enum gp_player_request {
    GP_PLAYER_STEP,  /* by this number of samples; negative: back */
    GP_PLAYER_SHIFT, /* by this many microseconds */
    GP_PLAYER_GO,    /* to this time of the clock, in microseconds */
    GP_PLAYER_EVENT, /* to the next (1) or the previous (−1) event */
};

enum { GP_PLAYER_NOTE_SIZE = 160 };

struct gp_player_state {
    bool is_known; /* a sample was taken; otherwise, what follows is not known yet */
    bool is_paused;
    bool is_at_end;
    bool is_growing;         /* the recording is still being written */
    bool is_hole;            /* nothing was recorded at this time */
    bool is_moment;          /* it is a sample of an incident, of which there are ten a second */
    double speed;            /* of playing; 1: as fast as it was recorded */
    int64_t step_us;         /* the sample is a summary of this time; 0: it is a sample */
    int64_t first, last, at; /* places: of the whole recording and of the sample */
    uint64_t first_ns, last_ns, wall_ns; /* what the clock showed there */
    uint64_t now_ns;                     /* what it shows now, where the recording is read */
    uint64_t answered;                   /* requests that were answered */
    char note[GP_PLAYER_NOTE_SIZE]; /* the answer to the last one, if there are words: an event, or
                                       why it was not possible; a safe text */
};

/* A part of a recording's time. */
struct gp_player_part {
    float load;    /* mean utilization of all GPUs, 0 to 1; negative: nothing was recorded */
    bool is_known; /* otherwise it is still being read */
    bool has_event;
    bool has_fault; /* one of them is an error, or a hole */
};

enum { GP_PLAYER_PARTS = 512 };

struct gp_player {
    const struct gp_player_ops *ops;
};

struct gp_player_ops {
    /* A request; of more than fit, the last are dropped. */
    void (*ask)(struct gp_player *player, enum gp_player_request request, int64_t amount);
    void (*pause)(struct gp_player *player, bool is_paused);
    /* tick_ns: the time between two samples from now on. */
    void (*set_speed)(struct gp_player *player, double speed, uint64_t tick_ns);
    void (*look)(struct gp_player *player, struct gp_player_state *ret);
    /* The whole recording in this many parts of equal length, as far as it is read. */
    void (*parts)(struct gp_player *player, struct gp_player_part *ret, size_t count);
    /* Passes on what was recorded before the last sample: up to `count` samples without processes,
     * at most one in each step, the oldest first. Only for the thread that takes the samples. */
    void (*past)(struct gp_player *player, size_t count, uint64_t step_ns,
                 void (*on_sample)(void *ctx, const struct gp_snapshot *snapshot), void *ctx);
    /* It is kept until the source and everybody who called ref() have called unref(). */
    void (*ref)(struct gp_player *player);
    void (*unref)(struct gp_player *player);
};

#endif
