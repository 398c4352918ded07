/* A source of readings: a driver or a file system; or of whole samples: a recording. It fills
 * values, independently of any view.
 *
 * Threads: open, close and read_host are called by one thread at a time and never during a read.
 * attach, read and detach are called by the thread that owns the device; devices may be read in
 * parallel. watch and wait_event are called by one additional thread, possibly during attach and
 * read, but never during open, close or detach. Any call may block for any time; the caller is
 * responsible for deadlines. */
#ifndef GP_SOURCE_SOURCE_H
#define GP_SOURCE_SOURCE_H

#include "model/event.h"
#include "model/metric.h"
#include "model/reading.h"

struct gp_err;
struct gp_control_ops;
struct gp_player;
struct gp_snapshot;
struct gp_source_device;

/* Why there is no sample of a kind that the driver knows. */
#define GP_NO_SAMPLES "the driver has no samples"

/* What a consumer requests in a tick. Only the readers that provide it run. */
struct gp_want {
    struct gp_metric_set metrics;
    struct gp_metric_set more;        /* read while gp_sampler_set_more() enables them */
    struct gp_metric_set mig_metrics; /* additional ones for MIG instances, if requested */
    uint64_t host_every_ns; /* the host's values are read again after this time; 0: in each tick */
    bool host_only;         /* no row is about a GPU: do not touch any */
    bool processes;         /* the process list of each device */
    bool process_names;     /* from the driver: of all processes if GP_PROCESS_PATH is requested,
                               otherwise of those that /proc does not show */
    bool owners;            /* gp_process.owner */
    bool jobs;              /* gp_process.job */
    bool ancestors;         /* of processes, which must be requested too: gp_snapshot.ancestors */
    bool mig;               /* MIG instances as separate devices */
    uint32_t lists;         /* lists of each GPU: bits by gp_list_index() */
    bool fresh;             /* read slow values and lists of GPUs every time */
    gp_event_kinds events;  /* reported by the driver; 0: none */
};

/* An event reported by a driver. */
struct gp_source_event {
    enum gp_event_kind kind;
    unsigned device; /* the name passed to watch() */
    uint64_t wall_ns;
    uint64_t mono_ns;
    uint64_t number;  /* of an Xid */
    int gpu_instance; /* GP_EVENT_NO_INSTANCE: the whole GPU */
    int compute_instance;
    const char *words; /* details beyond the kind; permanent */
};

/* Whether the GPUs are asleep, read from the kernel without waking them. */
enum gp_power {
    GP_POWER_FIXED, /* a GPU cannot sleep at all */
    GP_POWER_AWAKE, /* all can sleep, and at least one is awake */
    GP_POWER_ASLEEP,
};

/* The driver call in progress: set by the thread that makes it, read by those who wait for it. */
typedef _Atomic(const char *) gp_call_name;

struct gp_source {
    const struct gp_source_ops *ops;
    struct gp_player *player; /* of a recording, see source/player.h; NULL: of a driver */
};

struct gp_source_ops {
    /* Opens a driver session, and stores the number of GPUs in *ret_count.
     * Fails with GP_EDRIVER, GP_EPERM, GP_EUSAGE (an unreadable simulated machine) or GP_ENOMEM. */
    int (*open)(struct gp_source *source, unsigned *ret_count, struct gp_err *err);
    void (*close)(struct gp_source *source);
    /* Fills the requested host metrics that come from the driver. Texts live as long as the
     * source. */
    void (*read_host)(struct gp_source *source, const struct gp_metric_set *want,
                      struct gp_value host[GP_HOST__COUNT]);
    /* Makes no driver call, and works while the source is closed; never called during open. */
    enum gp_power (*power)(struct gp_source *source);
    /* Opens the GPU at this index; from then on, its calls are named in *call. On failure *ret is
     * unchanged, and `reading` has the reason (status, status_text, needs_reinit). */
    int (*attach)(struct gp_source *source, unsigned index, gp_call_name *call,
                  struct gp_source_device **ret, struct gp_reading *reading);
    void (*detach)(struct gp_source_device *device);
    /* The identity that is stable across driver sessions. */
    const char *(*uuid)(const struct gp_source_device *device);
    /* Fills the reading; failures become statuses in it. */
    void (*read)(struct gp_source_device *device, const struct gp_want *want,
                 struct gp_reading *reading);
    /* Registers a GPU for events of these kinds, under a name chosen by the caller. *ret_kinds are
     * those that its driver reports, possibly none. Returns 0, 1 if events of previously registered
     * GPUs may have been lost by this, or GP_EDRIVER if the session is over. */
    int (*watch)(struct gp_source_device *device, unsigned name, gp_event_kinds kinds,
                 gp_call_name *call, gp_event_kinds *ret_kinds);
    /* Waits for the next event. Returns 1 if there is one, 0 if there is none (possibly before the
     * timeout), GP_EDRIVER if the session is over, or GP_EFAIL, possibly immediately, on other
     * errors. It may be called again after a failure: one lost GPU does not silence the others. */
    int (*wait_event)(struct gp_source *source, unsigned timeout_ms, gp_call_name *call,
                      struct gp_source_event *ret);
    void (*free)(struct gp_source *source);
    /* The settings that can be changed, see source/control.h. NULL: none. */
    const struct gp_control_ops *controls;
    /* Of a recording, which has whole samples: the first one, and then that of a time which is
     * later by step_ns. All functions above except free are NULL. Returns 1 if the recording has
     * ended, and *ret is its last sample. NULL: a source of devices. */
    int (*sample)(struct gp_source *source, const struct gp_want *want, uint64_t step_ns,
                  struct gp_snapshot **ret, struct gp_err *err);
};

#endif
