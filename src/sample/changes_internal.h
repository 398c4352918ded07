/* What the files of changes share: what is known of each GPU, and its differences as events. */
#ifndef GP_SAMPLE_CHANGES_INTERNAL_H
#define GP_SAMPLE_CHANGES_INTERNAL_H

#include "model/snapshot.h"
#include "sample/changes.h"

enum { GP_SEEN_VALUES = 16, GP_SEEN_TEXT_SIZE = 64 };

/* The last value of a compared metric. */
struct gp_last_value {
    bool known;
    int64_t number;
    char text[GP_SEEN_TEXT_SIZE];
};

struct gp_seen_mig {
    char uuid[96];
    char profile[32];
    int gpu_instance;
    int compute_instance;
};

struct gp_seen_process {
    uint32_t pid;
    char name[48];
    char user[32];
};

/* The state of a GPU in the previous snapshot. */
struct gp_seen {
    struct gp_event event; /* its identity, for its events */
    enum gp_status status;
    struct gp_last_value last[GP_SEEN_VALUES];
    bool migs_known;
    struct gp_seen_mig *migs;
    size_t mig_count;
    bool processes_known;
    struct gp_seen_process *processes; /* sorted by pid */
    size_t process_count;
    uint64_t told[GP_EVENT__COUNT]; /* the round in which a report without an explaining difference
                                       was passed on */
    uint64_t passed[GP_EVENT__COUNT]; /* and a difference without its report */
};

/* The comparison of a GPU with its state in the previous snapshot. */
struct gp_changes_round {
    struct gp_changes *c;
    const struct gp_snapshot *snapshot;
    struct gp_seen *seen;
    gp_event_kinds delivered; /* kinds that the driver reports for the current GPU */
};

/* ---- changes_event.c ---- */

/* NULL: no memory, which is noted. */
struct gp_event *gp_changes_append(struct gp_changes *c, struct gp_event_list *list,
                                   const struct gp_event *event);

bool gp_changes_wants(const struct gp_changes *c, enum gp_event_kind kind);

/* An event of this GPU, without a time. */
struct gp_event gp_changes_event(const struct gp_seen *seen, enum gp_event_kind kind);

void gp_changes_say(struct gp_event *event, const char *fmt, ...) GP_PRINTF(2, 3);

/* An event of the round's GPU at the time of the snapshot. */
struct gp_event gp_changes_noticed(const struct gp_changes_round *r, enum gp_event_kind kind);

/* Whether both are about the same thing. */
bool gp_changes_is_same(const struct gp_event *a, const struct gp_event *b);

/* Handles a difference: merges it with its report, holds it if a report may follow, or drops it if
 * one was passed on already. */
void gp_changes_found(const struct gp_changes_round *r, const struct gp_event *event);

/* ---- changes_gpu.c ---- */

/* Whether values are compared for such events. */
bool gp_changes_is_compared(enum gp_event_kind kind);

/* first: the first row of the GPU. If a MIG instance was selected, that is the instance's row. */
void gp_changes_compare_gpu(struct gp_changes_round *r, size_t first);

#endif
