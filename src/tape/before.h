/* The seconds before an incident, ten times a second: what changes fast of the GPUs is kept in
 * memory, and only stored if something happens. */
#ifndef GP_TAPE_BEFORE_H
#define GP_TAPE_BEFORE_H

#include "tape/scene.h"

struct gp_event;
struct gp_snapshot;
struct gp_tape_item;

enum {
    GP_BEFORE_EVERY_US = 100000,
    GP_BEFORE_DEFAULT_S = 10,
    GP_BEFORE_MAX_S = 60,
    GP_BEFORE_PER_HOUR = 6, /* of more incidents in an hour, only the events are recorded */
};
#define GP_BEFORE_AFTER_US INT64_C(2000000) /* how much of the time after it is stored */

struct gp_before_frame;

struct gp_before {
    struct gp_tape_columns columns; /* of the file; the others are unknown */
    struct gp_scene scene;
    struct gp_before_frame *first, *last;
    unsigned in_block; /* frames since the last key frame, with it */
    int64_t length_us;
    int64_t from, until;               /* of the incident that is being recorded; until 0: none */
    int64_t stored_to;                 /* up to there, samples belong to earlier incidents */
    int64_t begun[GP_BEFORE_PER_HOUR]; /* when the last ones were, in turn */
    unsigned turn;
};

/* What is kept: what an H100's driver answers in less than 0.2 ms (docs/performance.md). The replay
 * counter of PCIe takes 0.6. */
struct gp_metric_set gp_before_metrics(void);

/* Whether the seconds before such an event are wanted: a GPU that is lost, silent or unusable,
 * memory errors that cannot be corrected, and Xids that programs do not cause. */
bool gp_before_is_incident(const struct gp_event *event);

/* The columns are copied. False without memory. */
bool gp_before_init(struct gp_before *before, const struct gp_tape_columns *columns,
                    int64_t length_us) GP_MUST_CHECK;
void gp_before_fini(struct gp_before *before);

/* Adds a sample without processes and MIG instances; gpus: the numbers of its GPUs in the file.
 * Drops what is too old. GP_ENOMEM: it is missing. */
int gp_before_add(struct gp_before *before, int64_t t, const struct gp_snapshot *snapshot,
                  const uint64_t *gpus) GP_MUST_CHECK;

/* An incident was stored at an earlier time, by this process or another one. */
void gp_before_note(struct gp_before *before, int64_t t);

/* An incident at time t begins to be recorded, until gp_before_end(). False: there is nothing to
 * store, another one is being recorded, or there were too many. */
bool gp_before_begin(struct gp_before *before, int64_t t);
/* Whether it is over at time t. */
bool gp_before_is_over(const struct gp_before *before, int64_t t);
void gp_before_end(struct gp_before *before);

/* What there is of the incident so far, to be stored in place of what was stored of it before.
 * NULL without memory. */
struct gp_tape_item *gp_before_item(const struct gp_before *before);

#endif
