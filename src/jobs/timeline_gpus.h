/* The GPUs of a job in its timeline: counters, the reasons for low clocks as slices, and the memory
 * of each of its processes. Values that stay the same are not repeated. */
#ifndef GP_JOBS_TIMELINE_GPUS_H
#define GP_JOBS_TIMELINE_GPUS_H

#include "jobs/watch.h"
#include "model/snapshot.h"
#include "out/trace.h"

enum {
    GP_TIMELINE_ROWS = 16,
    GP_TIMELINE_REASONS = 9,
    GP_TIMELINE_SLICES = GP_TIMELINE_REASONS + 1, /* and that it does not answer */
    GP_TIMELINE_USES = 1024,
};

/* A counter, as it was written last; NAN: not yet. */
struct gp_timeline_gpu {
    bool is_named;
    uint64_t sampled_ns; /* 0: not yet */
    double last[GP_TIMELINE_ROWS];
    double job_mib, other_mib;
    struct {
        bool is_open, is_named;
    } slices[GP_TIMELINE_SLICES]; /* each in a thread of its own */
};

/* GPU memory of a process. */
struct gp_timeline_use {
    uint32_t pid;
    unsigned gpu;
    double mib;
    bool is_seen; /* in this sample */
};

struct gp_timeline_gpus {
    struct gp_timeline_gpu items[GP_WATCH_GPUS]; /* as in the watch */
    struct gp_timeline_use uses[GP_TIMELINE_USES];
    size_t use_count;
};

struct gp_want;

void gp_timeline_gpus_init(struct gp_timeline_gpus *gpus);
void gp_timeline_gpus_add_want(struct gp_want *want);
void gp_timeline_gpus_sample(struct gp_timeline_gpus *gpus, struct gp_trace *trace,
                             const struct gp_snapshot *snapshot, const struct gp_watch *watch,
                             uint64_t ticked_ns);
/* Repeats the last values, so that they are shown up to the end, and ends the slices. */
void gp_timeline_gpus_end(struct gp_timeline_gpus *gpus, struct gp_trace *trace, uint64_t mono_ns);

#endif
