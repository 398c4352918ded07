/* The processes of a job in its timeline: CPU, memory and disk, of each and of all together.
 *
 * The sums are differences of what all of them have used, with their children that were waited for:
 * so they have also those that live too briefly to be seen. */
#ifndef GP_JOBS_TIMELINE_HOST_H
#define GP_JOBS_TIMELINE_HOST_H

#include "out/trace.h"

struct gp_snapshot;

/* More processes than these count only in the sums. */
enum { GP_TIMELINE_PROCESSES = 256 };

struct gp_timeline_process {
    uint32_t pid;
    char name[16]; /* see struct gp_proc_stat */
    bool has_command;
    uint64_t start_ticks; /* with the pid, identifies it */
    uint64_t cpu_ns, read_bytes, written_bytes;
    double cpu, rss, read, written; /* as they were written last; NAN: not yet */
    bool is_seen;                   /* in this sample */
};

/* What all of them have used. */
struct gp_timeline_sum {
    uint64_t last;
    bool was_lower; /* in the last sample */
};

struct gp_timeline_host {
    struct gp_timeline_sum cpu_ns, read_bytes, written_bytes;
    struct gp_timeline_process items[GP_TIMELINE_PROCESSES];
    size_t count;
    uint64_t sampled_ns; /* 0: not yet */
    double cpus, read, written;
};

void gp_timeline_host_init(struct gp_timeline_host *host);

/* Samples the descendants of a process, unless it was done a moment ago. `place`: where the sums
 * are shown. The snapshot has the command lines of those that use a GPU: reading them here could
 * block on a process that hangs. */
void gp_timeline_host_sample(struct gp_timeline_host *host, struct gp_trace *trace, uint32_t parent,
                             uint32_t place, const struct gp_snapshot *snapshot, uint64_t mono_ns);

/* The job has exited, and so have they. */
void gp_timeline_host_end(struct gp_timeline_host *host, struct gp_trace *trace, uint32_t place,
                          uint64_t mono_ns);

#endif
