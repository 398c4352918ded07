/* The history of each GPU: a ring of samples, for graphs. A missing value is a gap, not a 0. */
#ifndef GP_TUI_HISTORY_H
#define GP_TUI_HISTORY_H

#include "base/util.h"

struct gp_device;
struct gp_snapshot;

/* The series that can be graphed. X(id, word, title, unit, label) */
#define GP_SERIES(X)                                                                               \
    X(GPU, "gpu", "utilization", "%", "UTIL")                                                      \
    X(MEMORY, "memory", "memory", "GiB", "MEM")                                                    \
    X(POWER, "power", "power", "W", "POWER")                                                       \
    X(TEMPERATURE, "temperature", "temperature", "°C", "TEMP")                                     \
    X(SM, "sm", "SM", "%", "SM")                                                                   \
    X(BANDWIDTH, "bandwidth", "memory bandwidth", "%", "BW")                                       \
    X(PCIE, "pcie", "PCIe", "GB/s", "PCIe")                                                        \
    X(NVLINK, "nvlink", "NVLink", "GB/s", "NVL")

#define GP_SERIES_WORDS "gpu memory power temperature sm bandwidth pcie nvlink"

enum gp_series {
#define X(id, word, title, unit, label) GP_SERIES_##id,
    GP_SERIES(X)
#undef X
        GP_SERIES__COUNT,
};

extern const char *const gp_series_titles[GP_SERIES__COUNT];
extern const char *const gp_series_units[GP_SERIES__COUNT];
extern const char *const gp_series_labels[GP_SERIES__COUNT]; /* at most five columns */
/* Series read only while they are visible: gp_want.more. */
extern const bool gp_series_is_rate[GP_SERIES__COUNT];

enum { GP_TRACK_SAMPLES = 1024, GP_TRACK_CHANNELS = 8 };
_Static_assert((int)GP_SERIES__COUNT <= (int)GP_TRACK_CHANNELS,
               "a track has a channel for each series");

#define GP_TRACK_GAP (-1.0F)

struct gp_track_sample {
    uint64_t mono_ns;
    uint32_t present; /* bit 1 << channel */
    float values[GP_TRACK_CHANNELS];
};

struct gp_track_time {
    uint64_t mono_ms : 40;
    uint64_t lasts_ms : 24; /* the sample is valid until the next one, but no longer than this */
};

/* The history of one GPU, MIG instance or process. A graph of one channel is read in each frame,
 * when nothing is in the caches any more: so its values are close together. */
struct gp_track {
    uint64_t id;
    size_t count; /* samples taken so far; the last GP_TRACK_SAMPLES are stored */
    size_t room;
    uint64_t limited_since_ns;      /* since when the clocks have been limited; 0: they are not */
    double lanes_most;              /* of PCIe, that it ever had */
    uint64_t memory_rose_ns;        /* when more memory was in use than in the sample before */
    uint64_t load_seen_ns;          /* when the utilization was last known */
    uint64_t idle_since_ns;         /* when it last was above 0, or had been unknown for long */
    double tops[GP_TRACK_CHANNELS]; /* of the axes, when they were last known */
    struct gp_track_time *times;    /* owned, like values */
    float *values; /* `room` of the first channel, then of the next one; or a gap */
};

/* Adds a sample; the next one is due in about interval_ns. Without memory it is dropped. */
void gp_track_add(struct gp_track *track, struct gp_track_sample sample, uint64_t interval_ns);
void gp_track_fini(struct gp_track *track);

/* Fills ret[i] with the highest value in the i-th step before a moment, or GP_TRACK_GAP if there
 * was none. `track` may be NULL. */
void gp_track_read(const struct gp_track *track, int channel, uint64_t end_ns, uint64_t step_ns,
                   float *ret, size_t count);

/* The last, mean and highest value of a time range that ends at a moment. `track` may be NULL.
 * Returns false if there are no samples. */
struct gp_track_facts {
    double last, mean, highest;
};

bool gp_track_look(const struct gp_track *track, int channel, uint64_t end_ns, uint64_t wide_ns,
                   struct gp_track_facts *ret);

/* Whether nothing ran for this time before a moment; the moment may be before the last sample.
 * `track` may be NULL. */
bool gp_track_is_idle(const struct gp_track *track, uint64_t end_ns, uint64_t wide_ns);

struct gp_history {
    struct gp_track **tracks;
    size_t count;
    uint64_t last_ns;    /* of the snapshot that was added last */
    struct gp_track all; /* of all GPUs, if there are several: gp_series_of_all() in percent */
};

/* The mean utilization, or the share of all memory that is in use, in percent; −1: unknown. Other
 * series have none. */
double gp_series_of_all(const struct gp_snapshot *snapshot, enum gp_series series);

/* Adds the values of a snapshot. Without memory a new GPU gets no history. */
void gp_history_add(struct gp_history *history, const struct gp_snapshot *snapshot,
                    uint64_t interval_ns);
/* Drops what is not before a moment: in a recording, time also goes back. */
void gp_history_cut(struct gp_history *history, uint64_t from_ns);
void gp_history_fini(struct gp_history *history);

/* NULL if there is no history. */
const struct gp_track *gp_history_find(const struct gp_history *history,
                                       const struct gp_device *device);

/* The top of the axis for a series; 0 if it is unknown. */
double gp_series_max(const struct gp_device *device, enum gp_series series);

/* The same, or what it last was: the history of a lost GPU keeps its scale. `track` may be NULL. */
double gp_track_max(const struct gp_track *track, const struct gp_device *device,
                    enum gp_series series);

/* Whether the driver does not have it for this GPU. A GPU that says nothing at present, or a value
 * that was not asked for, is something else. */
bool gp_series_is_absent(const struct gp_device *device, enum gp_series series);

/* The value in thousandths of gp_series_max(); −1 if unknown. */
int gp_series_permille(const struct gp_device *device, enum gp_series series);

#endif
