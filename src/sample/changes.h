/* Merges two sources of events: reports of the driver, and differences between consecutive
 * snapshots.
 *
 * Neither is sufficient. The driver reports that the performance state changed, but not the new
 * state; many drivers and GPUs report little or nothing; and a lost GPU reports nothing at all.
 * Therefore everything is compared, and a difference that the driver also reports becomes a single
 * event. A difference that is found first waits for its report until the next snapshot. */
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
    gp_event_kinds kinds; /* requested kinds */
    struct gp_seen *seen; /* one for each GPU */
    size_t seen_count;
    uint64_t round;               /* number of snapshots so far */
    struct gp_event_list out;     /* the events; the caller removes them */
    struct gp_event_list pending; /* reports that a snapshot can explain */
    struct gp_event_list held;    /* differences that the driver has not reported yet */
    struct gp_event_list found;   /* differences in the current snapshot */
    bool no_memory;               /* the lists are incomplete */
};

void gp_changes_init(struct gp_changes *c, gp_event_kinds kinds);
void gp_changes_fini(struct gp_changes *c);

/* Adds the metrics that must be sampled to detect these kinds. */
void gp_changes_want(gp_event_kinds kinds, struct gp_want *want);

/* The kinds that can be detected by comparing snapshots. */
gp_event_kinds gp_changes_kinds(void);

/* Takes a report of the driver. Returns true if a snapshot could explain it. */
bool gp_changes_report(struct gp_changes *c, const struct gp_source_event *report);

/* Compares with the previous snapshot. delivered() returns the kinds that the driver reports for a
 * GPU. */
void gp_changes_compare(struct gp_changes *c, const struct gp_snapshot *snapshot,
                        gp_event_kinds (*delivered)(void *ctx, unsigned index), void *ctx);

/* The index of the i-th known GPU, i < seen_count. */
unsigned gp_changes_gpu(const struct gp_changes *c, size_t i);

/* Whether a difference waits for the next snapshot. */
bool gp_changes_is_holding(const struct gp_changes *c);

/* Adds an event about the stream itself; `number` is the number of missed events. */
void gp_changes_note(struct gp_changes *c, enum gp_event_kind kind, uint64_t number,
                     const char *text);

/* Reports that driver events may be missing, if any of those kinds are requested. */
void gp_changes_gap(struct gp_changes *c, const struct gp_waiter_gap *gap);

#endif
