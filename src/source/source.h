/* A source of readings: a driver, a file system, a recording. It fills values and knows no view.
 *
 * Threads: open, close and read_host are called by one thread at a time and never beside a read;
 * attach, read and detach are called by the thread that owns the device, any number of devices in
 * parallel. Every call may block for as long as the driver pleases; the caller owns the deadline.
 */
#ifndef GP_SOURCE_SOURCE_H
#define GP_SOURCE_SOURCE_H

#include "model/metric.h"
#include "model/reading.h"

struct gp_err;
struct gp_control_ops;
struct gp_source_device;

/* What a consumer asks for in a tick: only the readers that produce it run. */
struct gp_want {
    struct gp_metric_set metrics;
    bool host_only;     /* no row is about a GPU: none is touched */
    bool processes;     /* the list of processes of each device */
    bool process_names; /* names of processes that /proc does not show, from the driver */
    bool mig;           /* MIG instances as devices of their own */
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
    /* Makes no driver call, and works while the source is closed. */
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
    void (*free)(struct gp_source *source);
    /* What can be changed: source/control.h. NULL: nothing. */
    const struct gp_control_ops *controls;
};

#endif
