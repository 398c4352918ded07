/* Events out of two things: what the driver reports, and what consecutive snapshots differ in.
 *
 * Neither is enough alone. The driver says that the performance state changed, but not to which;
 * many drivers and GPUs report little or nothing; and a GPU that is gone reports nothing at all. So
 * all is compared, and a difference that the driver reports too becomes one event: one that is
 * found first waits for the report until the next snapshot. */
#ifndef GP_SAMPLE_CHANGES_H
#define GP_SAMPLE_CHANGES_H

#include "model/event.h"
#include "source/source.h"

struct gp_snapshot;
struct gp_waiter_gap;

struct gp_event_list {
    struct gp_event *items;
    size_t count;
    size_t capacity;
};

struct gp_changes {
    gp_event_kinds kinds; /* those that are wanted */
    struct gp_seen *seen; /* one for each GPU */
    size_t seen_count;
    uint64_t round;               /* snapshots so far */
    struct gp_event_list out;     /* what has happened: the caller takes it */
    struct gp_event_list pending; /* reports that a snapshot can add to */
    struct gp_event_list held;    /* differences that the driver has not reported yet */
    struct gp_event_list found;   /* those of the snapshot in progress */
    bool no_memory;               /* something is missing in them */
};

void gp_changes_init(struct gp_changes *c, gp_event_kinds kinds);
void gp_changes_fini(struct gp_changes *c);

/* What has to be sampled to notice these kinds. */
void gp_changes_want(gp_event_kinds kinds, struct gp_want *want);

/* The kinds that comparing snapshots can notice. */
gp_event_kinds gp_changes_kinds(void);

/* Takes what the driver reports. True if a snapshot would tell more about it. */
bool gp_changes_report(struct gp_changes *c, const struct gp_source_event *report);

/* Compares with the snapshot before. delivered() gives the kinds that the driver reports of a GPU.
 */
void gp_changes_compare(struct gp_changes *c, const struct gp_snapshot *snapshot,
                        gp_event_kinds (*delivered)(void *ctx, unsigned index), void *ctx);

/* The number of the i-th GPU that was seen, i < seen_count. */
unsigned gp_changes_gpu(const struct gp_changes *c, size_t i);

/* True if a difference waits for the next snapshot. */
bool gp_changes_is_holding(const struct gp_changes *c);

/* Adds an event about the stream itself; `number` of missed ones. */
void gp_changes_note(struct gp_changes *c, enum gp_event_kind kind, uint64_t number,
                     const char *text);

/* Tells that reports of the driver may be missing, if any of those kinds are wanted. */
void gp_changes_gap(struct gp_changes *c, const struct gp_waiter_gap *gap);

#endif
