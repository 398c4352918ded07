/* Watches a job for gpulse run: its GPUs and memory, limits, failures in its output, and its
 * record. */
#ifndef GP_JOBS_WATCH_H
#define GP_JOBS_WATCH_H

#include "jobs/accounted.h"
#include "jobs/incident.h"
#include "jobs/record.h"
#include "proc/lease.h"

#include <jansson.h>
#include <sys/resource.h>

struct gp_device;
struct gp_snapshot;
struct gp_strbuf;

enum { GP_WATCH_GPUS = 64, GP_WATCH_INCIDENTS = 16 };

/* What happens to the job. */
enum gp_watch_order { GP_WATCH_GO_ON, GP_WATCH_STOP, GP_WATCH_KILL };

struct gp_watch_limits {
    uint64_t max_bytes;       /* on each GPU; 0: no limit */
    enum gp_watch_order over; /* what happens to a job that uses more */
    uint64_t idle_ns;         /* warn if a GPU is idle for this long; 0: never */
    bool is_strict;           /* stop a job that uses a GPU it has not reserved */
};

/* How the job used a GPU since it started or was last retried. */
struct gp_watch_use {
    double peak, last; /* bytes */
    bool is_true_peak; /* from the driver's accounting; otherwise from samples, which may miss it */
    bool was_used;     /* by one of its processes */
    double busy_sum;   /* percent, sum over busy_count samples */
    unsigned busy_count;
    double energy_begin, energy; /* J; below 0: unknown */
    uint64_t idle_since_ns;      /* 0: not idle */
    bool was_named_idle;
};

/* A GPU that the job has reserved, or uses without a reservation. */
struct gp_watch_gpu {
    char uuid[GP_LEASE_UUID_SIZE];
    char name[96]; /* of the model */
    unsigned index;
    bool is_granted, is_mig;
    double total, free, before; /* bytes, when it was granted: free, and in use */
    struct gp_watch_use use;
};

struct gp_watch;

/* What a message is about. */
enum gp_watch_topic {
    GP_WATCH_OF_JOB,    /* the job: one line */
    GP_WATCH_OF_ITSELF, /* a problem of the supervisor, such as a record that cannot be written: one
                           line */
    GP_WATCH_MORE,      /* lines that explain the message before, each with a newline */
};

struct gp_watch {
    /* Called with each message, from the thread that runs the job. NULL: not called. */
    void (*tell)(const struct gp_watch *watch, enum gp_watch_topic topic, const char *text);
    bool quiet;
    const char *label; /* of the job, in messages; NULL: none */
    bool is_shared;
    struct gp_watch_limits limits;
    const char *mask;  /* its CUDA_VISIBLE_DEVICES */
    const char *place; /* its GPUs, for people */
    struct gp_watch_gpu gpus[GP_WATCH_GPUS];
    size_t gpu_count;
    uint64_t started_ns, started_wall_ns, sampled_ns;
    double steps;        /* that it has reported so far, and */
    uint64_t stepped_ns; /* when it reported the last one; 0: none yet */
    bool is_accounted;             /* the driver keeps accounts on its GPUs */
    struct gp_accounted_pids pids; /* in this try */
    bool has_named_place, has_named_unused, has_named_limit;
    const char *ended_by;      /* "timeout", "max-gpu-mem", "strict", "guard"; NULL: not stopped */
    int told;                  /* the signal to end that was handed on to it; 0: none */
    struct rusage usage;       /* of its processes that have exited */
    struct gp_snapshot *scene; /* the last sample; while a failure is being printed, the sample from
                                  its beginning */
    bool is_moment;
    struct gp_incident incidents[GP_WATCH_INCIDENTS];
    size_t incident_count;
    uint32_t classes;     /* one bit for each class of failure in this try, listed or not */
    unsigned repeats;     /* of incidents, which are not listed */
    uint64_t incident_ns; /* time of the last incident */
    struct gp_record record;
    json_t *description; /* the start of run.json */
    json_t *pace;        /* from gp_pace_end(); NULL: unknown */
    json_t *verdicts;    /* why it was slow, from gp_slow_end(); NULL: unknown */
};

/* Pass a message about the job on to `tell`; gp_watch_say() does not if `quiet`. */
void gp_watch_say(const struct gp_watch *watch, const char *fmt, ...) GP_PRINTF(2, 3);
void gp_watch_warn(const struct gp_watch *watch, const char *fmt, ...) GP_PRINTF(2, 3);

void gp_watch_tell_error(const struct gp_watch *watch, const struct gp_err *err);
void gp_watch_tell_more(const struct gp_watch *watch, const char *lines);

/* Adds a GPU that is reserved for the job. */
void gp_watch_grant(struct gp_watch *watch, const struct gp_device *device);

/* The number of a GPU in `gpus`; GP_WATCH_GPUS: the job has neither reserved nor used it. */
size_t gp_watch_number(const struct gp_watch *watch, const struct gp_device *device);

/* NULL: not reserved. */
struct gp_watch_gpu *gp_watch_find(struct gp_watch *watch, const struct gp_device *device);

/* The job starts, or is retried. */
void gp_watch_begin(struct gp_watch *watch);

/* Checks a sample and reports problems. `is_sample`: it is kept in the record. */
enum gp_watch_order gp_watch_look(struct gp_watch *watch, const struct gp_snapshot *snapshot,
                                  bool is_sample);

/* The job has exited: takes its peak from the driver's accounts in the snapshot. */
void gp_watch_take_accounts(struct gp_watch *watch, const struct gp_snapshot *snapshot);

/* Takes ownership of the snapshot, for the next failure. */
void gp_watch_keep_scene(struct gp_watch *watch, struct gp_snapshot *snapshot, bool is_moment);

/* A failure was printed: judges it, and writes a report. */
void gp_watch_add_incident(struct gp_watch *watch, const struct gp_incident *incident);

/* Whether it printed a failure of this class in this try. */
bool gp_watch_had(const struct gp_watch *watch, enum gp_failure_class class);

/* Whether the job failed for lack of GPU memory, and a retry may succeed. */
bool gp_watch_is_out_of_memory(const struct gp_watch *watch, int status);

/* The job has exited with this status: prints a summary. True if it says why the job failed. */
bool gp_watch_summarize(struct gp_watch *watch, int status);

/* Writes a text to a file of the record. */
void gp_watch_record(struct gp_watch *watch, const char *name, const struct gp_strbuf *text);

/* Writes everything known to the record. */
void gp_watch_write(struct gp_watch *watch, const char *state, int status);

void gp_watch_fini(struct gp_watch *watch);

#endif
