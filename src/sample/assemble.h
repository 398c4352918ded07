/* Builds a snapshot from the readings of a tick. Runs on the consumer's thread, and makes no driver
 * calls. */
#ifndef GP_SAMPLE_ASSEMBLE_H
#define GP_SAMPLE_ASSEMBLE_H

#include "model/metric.h"
#include "model/reading.h"
#include "model/snapshot.h"
#include "sample/activity.h"
#include "sample/shared_state.h"
#include "source/source.h"

struct gp_err;
struct gp_proc_reader;
struct gp_selection;

/* A GPU during the lifetime of a sampler. */
struct gp_slot {
    unsigned index; /* for display: the driver's index when it was first seen */
    bool chosen;    /* by the selection, as far as the index determines it */
    char uuid[96];  /* "" while unknown */
    struct gp_reading *latest;
    struct gp_reading *good; /* the last one with status OK */
};

struct gp_assembler {
    struct gp_selection *selection;
    struct gp_want want;     /* requested by the consumer */
    struct gp_want internal; /* plus what assembling needs */
    unsigned proc_want;      /* enum gp_proc_want */
    bool shows_ancestors;    /* they are rows, and not only read to find jobs */
    uint32_t more_lists;     /* in addition to want.lists */
    struct gp_process_columns columns;
    struct gp_proc_reader *proc;
    struct gp_shared_state shared; /* in this tick */
    struct gp_activity activity;
    struct gp_arena driver_texts;
    struct gp_value driver_host[GP_HOST__COUNT];
    struct gp_snapshot *snapshot; /* the one being built */
    unsigned gpu_count;           /* in that tick */
    struct gp_arena scratch;      /* of that tick, and for the following: */
    struct gp_taken *taken;
    size_t taken_count;
};

/* root: prefix for /proc, NULL for none; must outlive the assembler. */
int gp_assembler_init(struct gp_assembler *a, struct gp_selection *selection,
                      const struct gp_want *want, const char *root,
                      struct gp_err *err) GP_MUST_CHECK;
void gp_assembler_fini(struct gp_assembler *a);

/* Also requests the values that show whether the GPUs have work. */
void gp_assembler_add_activity(struct gp_assembler *a);

/* See gp_proc_watch(). */
void gp_assembler_watch(struct gp_assembler *a, const uint32_t *pids, size_t count,
                        bool others_matter);

/* Sets whether snapshots include ancestors from the next one on, if they have processes. */
void gp_assembler_set_ancestors(struct gp_assembler *a, bool wanted);

/* Sets the lists that snapshots have from the next one on, in addition to want.lists. */
void gp_assembler_set_lists(struct gp_assembler *a, uint32_t lists);
/* Adds lists to want.lists from the next snapshot on. */
void gp_assembler_add_lists(struct gp_assembler *a, uint32_t lists);

/* Whether a process computed in the last snapshot. A display server that only has the GPU open does
 * not count. */
bool gp_snapshot_has_work(const struct gp_snapshot *snapshot);

/* What the source has to deliver. */
const struct gp_want *gp_assembler_want(const struct gp_assembler *a);

/* Reads what users share. To be called before gp_assembler_start(), without the sampler's lock. */
int gp_assembler_prepare(struct gp_assembler *a, struct gp_err *err) GP_MUST_CHECK;

/* Copies the host metrics that come from the driver. This and the next two require the sampler's
 * lock. */
void gp_assembler_set_driver(struct gp_assembler *a, const struct gp_value host[GP_HOST__COUNT]);
int gp_assembler_start(struct gp_assembler *a, size_t slots, unsigned gpu_count,
                       struct gp_err *err) GP_MUST_CHECK;
/* Takes one slot. If status is OK, its latest reading is from this tick. Otherwise there has been
 * none for silent_s seconds, and text is the reason. */
void gp_assembler_take(struct gp_assembler *a, const struct gp_slot *slot, enum gp_status status,
                       double silent_s, const char *text);

/* Whether the selection includes this GPU, whose identity is known (slot->good). */
bool gp_assembler_chooses(struct gp_assembler *a, const struct gp_slot *slot);

/* Whether any requested value comes from the source. */
bool gp_assembler_needs_source(const struct gp_assembler *a);

/* Finishes the snapshot and passes it to the caller. */
int gp_assembler_finish(struct gp_assembler *a, struct gp_snapshot **ret,
                        struct gp_err *err) GP_MUST_CHECK;

#endif
