/* What gpulse run sees of a job while it runs, and says of it: where its memory is, limits,
 * failures in what it prints, and the record that is kept. */
#ifndef GP_CMD_RUN_WATCH_H
#define GP_CMD_RUN_WATCH_H

#include "jobs/accounted.h"
#include "jobs/incident.h"
#include "jobs/lease.h"
#include "jobs/record.h"

#include <jansson.h>
#include <sys/resource.h>

struct gp_device;
struct gp_snapshot;

enum { GP_WATCH_GPUS = 64, GP_WATCH_INCIDENTS = 16 };

/* What is to become of the job. */
enum gp_watch_order { GP_WATCH_GO_ON, GP_WATCH_STOP, GP_WATCH_KILL };

struct gp_watch_limits {
    uint64_t max_bytes;       /* on each GPU; 0: any */
    enum gp_watch_order over; /* what becomes of one that has more */
    uint64_t idle_ns;         /* so long a GPU may stand idle without a word; 0: for ever */
    bool is_strict;           /* one on a GPU that it was not given is stopped */
};

/* What the job does on a GPU, since it began or was tried again. */
struct gp_watch_use {
    double peak, last; /* bytes */
    bool is_true_peak; /* by the driver's accounting; else by the samples, which may have missed it
                        */
    bool was_used;     /* by one of its processes */
    double busy_sum;   /* percent, of so many samples */
    unsigned busy_count;
    double energy_begin, energy; /* J; below 0: not known */
    uint64_t idle_since_ns;      /* 0: it is not */
    bool was_named_idle;
};

/* A GPU that the job was given, or is on all the same. */
struct gp_watch_gpu {
    char uuid[GP_LEASE_UUID_SIZE];
    unsigned index;
    bool is_granted;
    double total, free, before; /* bytes, when it was given: free, and in use */
    struct gp_watch_use use;
};

struct gp_watch {
    bool quiet;
    const char *label; /* of the job in what is said of it; NULL: none */
    bool is_shared;
    struct gp_watch_limits limits;
    const char *mask; /* its CUDA_VISIBLE_DEVICES */
    struct gp_watch_gpu gpus[GP_WATCH_GPUS];
    size_t gpu_count;
    uint64_t started_ns, started_wall_ns, sampled_ns;
    bool is_accounted;             /* the driver keeps accounts on GPUs that it was given */
    struct gp_accounted_pids pids; /* in this try */
    bool has_named_place, has_named_unused, has_named_limit;
    const char *ended_by;      /* "timeout", "max-gpu-mem", "strict", "guard"; NULL: nobody */
    struct rusage usage;       /* of its processes that have ended */
    struct gp_snapshot *scene; /* the last sample; from the moment on in which a failure begins to
                                  be printed, until it is printed, that of the moment */
    bool is_moment;
    struct gp_incident incidents[GP_WATCH_INCIDENTS];
    size_t incident_count;
    uint32_t classes;     /* a bit for each class of failure in this try, listed or not */
    unsigned repeats;     /* of incidents, that are not listed */
    uint64_t incident_ns; /* when the last one was */
    struct gp_record record;
    json_t *description; /* what run.json begins with */
};

/* Says something on standard error; `say` not if it is to be quiet. */
void gp_watch_say(const struct gp_watch *watch, const char *fmt, ...) GP_PRINTF(2, 3);
void gp_watch_warn(const struct gp_watch *watch, const char *fmt, ...) GP_PRINTF(2, 3);

/* A GPU that the job is given. */
void gp_watch_grant(struct gp_watch *watch, const struct gp_device *device);

/* NULL: it was not given this one. */
struct gp_watch_gpu *gp_watch_find(struct gp_watch *watch, const struct gp_device *device);

/* The job begins, or is tried again. */
void gp_watch_begin(struct gp_watch *watch);

/* A look: says what is not as it should be. `is_sample`: it is kept in the record. */
enum gp_watch_order gp_watch_look(struct gp_watch *watch, const struct gp_snapshot *snapshot,
                                  bool is_sample);

/* The job has ended: the most that it had by the driver's accounts, which are in the snapshot. */
void gp_watch_take_accounts(struct gp_watch *watch, const struct gp_snapshot *snapshot);

/* Takes the snapshot, for the next failure. */
void gp_watch_keep_scene(struct gp_watch *watch, struct gp_snapshot *snapshot, bool is_moment);

/* And was printed: judges it, and writes a report. */
void gp_watch_add_incident(struct gp_watch *watch, const struct gp_incident *incident);

/* Whether it printed a failure of this class in this try. */
bool gp_watch_had(const struct gp_watch *watch, enum gp_failure_class class);

/* Whether the job ended for want of GPU memory, and may find it another time. */
bool gp_watch_is_out_of_memory(const struct gp_watch *watch, int status);

/* The job has ended, with this exit status: says so, and of what. */
void gp_watch_summarize(struct gp_watch *watch, int status);

/* Writes what is known into the record. */
void gp_watch_write(struct gp_watch *watch, const char *state, int status);

void gp_watch_fini(struct gp_watch *watch);

#endif
