/* Builds a snapshot out of the readings of a tick. Runs on the consumer's thread: no driver calls.
 */
#ifndef GP_SAMPLE_ASSEMBLE_H
#define GP_SAMPLE_ASSEMBLE_H

#include "model/metric.h"
#include "model/reading.h"
#include "model/snapshot.h"
#include "proc/suspended.h"
#include "source/source.h"

struct gp_err;
struct gp_proc_reader;
struct gp_selection;

/* A GPU over the life of a sampler. */
struct gp_slot {
    unsigned index; /* for display: the driver's number when it was first seen */
    bool chosen;    /* by the selection, as far as an index can tell */
    char uuid[96];  /* "" until it is known */
    struct gp_reading *latest;
    struct gp_reading *good; /* the last one with status OK */
};

struct gp_assembler {
    struct gp_selection *selection;
    struct gp_want want;     /* what the consumer asked for */
    struct gp_want internal; /* and what assembling it needs */
    unsigned proc_want;      /* enum gp_proc_want */
    uint32_t more_lists;     /* besides want.lists */
    struct gp_process_columns columns;
    struct gp_proc_reader *proc;
    const char *root;
    struct gp_suspended_list suspended; /* at this tick */
    struct gp_arena driver_texts;
    struct gp_value driver_host[GP_HOST__COUNT];
    struct gp_snapshot *snapshot; /* the one in the making */
    unsigned gpu_count;           /* at that time */
    struct gp_taken *taken;
    size_t taken_count;
};

/* root: prefix for /proc, NULL for none; must outlive it. */
int gp_assembler_init(struct gp_assembler *a, struct gp_selection *selection,
                      const struct gp_want *want, const char *root,
                      struct gp_err *err) GP_MUST_CHECK;
void gp_assembler_fini(struct gp_assembler *a);

/* Asks for what tells whether anybody works on the GPUs too. */
void gp_assembler_add_activity(struct gp_assembler *a);

/* See gp_proc_watch(). */
void gp_assembler_watch(struct gp_assembler *a, const uint32_t *pids, size_t count,
                        bool others_matter);

/* Whether snapshots have ancestors from the next one on, if processes are wanted at all. */
void gp_assembler_set_ancestors(struct gp_assembler *a, bool wanted);

/* Which lists snapshots have from the next one on, besides want.lists. */
void gp_assembler_set_lists(struct gp_assembler *a, uint32_t lists);

/* In the last snapshot somebody computed. A display server that merely has a GPU open does not. */
bool gp_snapshot_has_work(const struct gp_snapshot *snapshot);

/* What the source has to deliver. */
const struct gp_want *gp_assembler_want(const struct gp_assembler *a);

/* Copies the host metrics that only the driver knows. As the next two, under the sampler's lock. */
void gp_assembler_set_driver(struct gp_assembler *a, const struct gp_value host[GP_HOST__COUNT]);
int gp_assembler_start(struct gp_assembler *a, size_t slots, unsigned gpu_count,
                       struct gp_err *err) GP_MUST_CHECK;
/* Takes one slot. status OK: its latest reading is of this tick. Else there is none, for silent_s
 * seconds now, and text says why. */
void gp_assembler_take(struct gp_assembler *a, const struct gp_slot *slot, enum gp_status status,
                       double silent_s, const char *text);

/* Whether the selection takes this GPU, whose identity is known (slot->good). */
bool gp_assembler_chooses(struct gp_assembler *a, const struct gp_slot *slot);

/* Whether anything that is wanted comes from the source. */
bool gp_assembler_needs_source(const struct gp_assembler *a);

/* Finishes the snapshot, which becomes the caller's. */
int gp_assembler_finish(struct gp_assembler *a, struct gp_snapshot **ret,
                        struct gp_err *err) GP_MUST_CHECK;

#endif
