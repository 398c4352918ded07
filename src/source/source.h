/* A source of readings: a driver, a file system, a recording. It fills values and knows no view.
 *
 * Threads: open, close and read_host are called by one thread at a time and never beside a read;
 * attach, read and detach are called by the thread that owns the device, any number of devices in
 * parallel. watch and wait_event are called by one thread more, beside attach and read, but never
 * beside open, close or detach. Every call may block for as long as the driver pleases; the caller
 * owns the deadline. */
#ifndef GP_SOURCE_SOURCE_H
#define GP_SOURCE_SOURCE_H

#include "model/event.h"
#include "model/metric.h"
#include "model/reading.h"

struct gp_err;
struct gp_control_ops;
struct gp_source_device;

/* What a consumer asks for in a tick: only the readers that produce it run. */
struct gp_want {
    struct gp_metric_set metrics;
    struct gp_metric_set more; /* read as long as gp_sampler_set_more() has them so */
    struct gp_metric_set mig_metrics; /* more of them for MIG instances, if those are wanted */
    bool host_only;     /* no row is about a GPU: none is touched */
    bool processes;     /* the list of processes of each device */
    bool process_names; /* of processes, from the driver: where GP_PROCESS_PATH is wanted of all,
                         * else of those that /proc does not show */
    bool ancestors;     /* of processes, which then are wanted too: gp_snapshot.ancestors */
    bool mig;           /* MIG instances as devices of their own */
    uint32_t lists;     /* lists of each GPU: bits by gp_list_index */
    bool fresh;         /* slow values and lists too are read each time */
    bool events;        /* what the driver reports by itself */
};

/* What a driver reports by itself. */
struct gp_source_event {
    enum gp_event_kind kind;
    unsigned device; /* as it was named to watch() */
    uint64_t wall_ns;
    uint64_t mono_ns;
    uint64_t number;  /* of an Xid */
    int gpu_instance; /* GP_EVENT_NO_INSTANCE: of the whole GPU */
    int compute_instance;
    const char *words; /* more than the kind says; lives for ever */
};

/* Whether the GPUs sleep, as the kernel tells without touching them. */
enum gp_power {
    GP_POWER_FIXED, /* a GPU may not sleep at all */
    GP_POWER_AWAKE, /* all may sleep, and at least one does not */
    GP_POWER_ASLEEP,
};

/* The driver call in progress: written by the thread that makes it, read by who waits for it. */
typedef _Atomic(const char *) gp_call_name;

struct gp_source {
    const struct gp_source_ops *ops;
};

struct gp_source_ops {
    /* Starts a driver session; the number of GPUs is stored in *ret_count.
     * GP_EDRIVER, GP_EPERM, GP_EUSAGE (a simulated machine that cannot be read), GP_ENOMEM. */
    int (*open)(struct gp_source *source, unsigned *ret_count, struct gp_err *err);
    void (*close)(struct gp_source *source);
    /* Fills those of the wanted host metrics that only the driver knows; text lives as long as the
     * source. */
    void (*read_host)(struct gp_source *source, const struct gp_metric_set *want,
                      struct gp_value host[GP_HOST__COUNT]);
    /* Makes no driver call, and works while the source is closed; never beside open. */
    enum gp_power (*power)(struct gp_source *source);
    /* Takes hold of the GPU with this index; its calls are named in *call from then on. On failure
     * *ret is untouched and `reading` (status, status_text, needs_reinit) says why. */
    int (*attach)(struct gp_source *source, unsigned index, gp_call_name *call,
                  struct gp_source_device **ret, struct gp_reading *reading);
    void (*detach)(struct gp_source_device *device);
    /* The identity that outlives a driver session. */
    const char *(*uuid)(const struct gp_source_device *device);
    /* Fills the reading; failures become statuses in it. */
    void (*read)(struct gp_source_device *device, const struct gp_want *want,
                 struct gp_reading *reading);
    /* Has the events of a GPU delivered, under a name that the caller gives it. *ret_kinds are
     * those that its driver reports, perhaps none. 0, 1 if events of the GPUs before it may have
     * been lost for that, or GP_EDRIVER if the session is over. */
    int (*watch)(struct gp_source_device *device, unsigned name, gp_call_name *call,
                 gp_event_kinds *ret_kinds);
    /* Waits for the next event. 1 if there is one, 0 if there is none (perhaps before the time is
     * over), GP_EDRIVER if the session is over, GP_EFAIL, perhaps at once, if it cannot tell.
     * After a failure it may be asked again: one lost GPU does not silence the others. */
    int (*wait_event)(struct gp_source *source, unsigned timeout_ms, gp_call_name *call,
                      struct gp_source_event *ret);
    void (*free)(struct gp_source *source);
    /* What can be changed: source/control.h. NULL: nothing. */
    const struct gp_control_ops *controls;
};

#endif
