/* Records samples and events to a file.
 *
 * Whoever samples never waits for the disk: frames are made in memory and queued, and a thread
 * stores them. While the disk is full or fails, the queue grows up to a limit; then the samples in
 * it are dropped, and an event marks the hole. */
#ifndef GP_TAPE_RECORDER_H
#define GP_TAPE_RECORDER_H

#include "tape/axis.h"

struct gp_err;
struct gp_event;
struct gp_leases;
struct gp_recorder;
struct gp_snapshot;
struct gp_want;

struct gp_recorder_config {
    const char *path; /* must outlive the recorder */
    bool is_shared;   /* for all users of the machine, see private.h */
    uint64_t interval_ns;
    uint64_t keep_ns;  /* every sample is kept for this time, then only its summaries; 0: an hour */
    uint64_t size_max; /* of the file; 0: GP_RECORDER_SIZE_MAX */
    uint64_t age_max_ns; /* nothing is kept longer; 0: as long as roll.h says */
    uint64_t before_ns;  /* how long before an incident brief samples are stored; 0: none */
    /* The clocks now; NULL: this machine's. */
    void (*clocks)(void *ctx, struct gp_axis_clocks *ret);
    void *ctx;
};

#define GP_RECORDER_SIZE_MAX (UINT64_C(512) << 20)

/* Everything that can be recorded. */
struct gp_want gp_recorder_want(void);

/* Opens the file and starts the thread. Errors as of gp_store_create(). */
int gp_recorder_open(const struct gp_recorder_config *config, struct gp_recorder **ret,
                     struct gp_err *err) GP_MUST_CHECK;

/* Records a sample, or an event since the last one. They are called by one thread at a time.
 * GP_ENOMEM: it is not recorded. */
int gp_recorder_sample(struct gp_recorder *recorder, const struct gp_snapshot *snapshot,
                       struct gp_err *err) GP_MUST_CHECK;
int gp_recorder_event(struct gp_recorder *recorder, const struct gp_event *event,
                      struct gp_err *err) GP_MUST_CHECK;

/* Records who waits for GPUs now, see waits.h; NULL: that is unknown. By the same thread. */
int gp_recorder_line(struct gp_recorder *recorder, const struct gp_leases *leases,
                     struct gp_err *err) GP_MUST_CHECK;

/* Keeps a brief sample of gp_before_metrics() in memory, in case of an incident: then it is stored.
 * By the same thread; GP_ENOMEM: it is missing. */
int gp_recorder_glance(struct gp_recorder *recorder, const struct gp_snapshot *snapshot,
                       struct gp_err *err) GP_MUST_CHECK;

struct gp_recorder_state {
    bool is_failing;    /* what was recorded last is only in memory */
    bool lacks_private; /* the file system cannot restrict command lines to their users: a shared
                           recording is without them */
    char problem[400];
    uint64_t stored, waiting, dropped; /* samples */
    uint64_t size;                     /* of the file, with its log */
};

/* Waits until there is room for more samples: for whoever makes them faster than the disk takes
 * them, and can wait. */
void gp_recorder_wait(struct gp_recorder *recorder);

/* Does not wait for the disk. */
void gp_recorder_state(struct gp_recorder *recorder, struct gp_recorder_state *ret);

/* Stores what waits, with one attempt if the disk was failing, and closes the file. The error says
 * what is missing in it. */
int gp_recorder_close(struct gp_recorder *recorder, struct gp_err *err) GP_MUST_CHECK;

#endif
