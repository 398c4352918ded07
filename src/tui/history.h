/* What the GPUs did until now: a ring of samples per GPU, for graphs. A value that was not there is
 * a gap, not a 0. */
#ifndef GP_TUI_HISTORY_H
#define GP_TUI_HISTORY_H

#include "base/util.h"

struct gp_device;
struct gp_snapshot;

enum gp_series {
    GP_SERIES_GPU,
    GP_SERIES_MEMORY,
    GP_SERIES_POWER, /* of the limit */
    GP_SERIES__COUNT,
};

enum { GP_TRACK_SAMPLES = 1024, GP_TRACK_GAP = -1 };

/* One GPU or MIG instance. */
struct gp_track {
    unsigned index;
    int mig_index; /* −1: the GPU itself */
    size_t count;  /* samples ever taken; the last GP_TRACK_SAMPLES are there */
    struct gp_track_sample {
        uint64_t mono_ns;
        uint64_t lasts_ns; /* it stands for the time until the next one, but no longer */
        int16_t permille[GP_SERIES__COUNT];
    } samples[GP_TRACK_SAMPLES];
};

struct gp_history {
    struct gp_track **tracks;
    size_t count;
};

/* Takes the values of a snapshot, behind which the next one comes in about interval_ns. Without
 * memory for a new GPU that one has no history. */
void gp_history_add(struct gp_history *history, const struct gp_snapshot *snapshot,
                    uint64_t interval_ns);
void gp_history_fini(struct gp_history *history);

/* NULL if nothing is known of it. */
const struct gp_track *gp_history_find(const struct gp_history *history,
                                       const struct gp_device *device);

/* The value at a moment, as a step of this length shows it; GP_TRACK_GAP if there was none. */
int gp_track_value(const struct gp_track *track, enum gp_series series, uint64_t at_ns,
                   uint64_t step_ns);

/* Value of a series in a device row: thousandths of the whole, or GP_TRACK_GAP. */
int gp_series_permille(const struct gp_device *device, enum gp_series series);

#endif
