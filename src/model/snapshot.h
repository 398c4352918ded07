/* The immutable result of a tick: host, devices with their MIG instances, processes. */
#ifndef GP_MODEL_SNAPSHOT_H
#define GP_MODEL_SNAPSHOT_H

#include "base/arena.h"
#include "model/metric.h"

struct gp_shared;

/* What a GPU as a whole can be, and the word that the field `status` has for it.
 * X(id, word) */
#define GP_DEVICE_STATES(X)                                                                        \
    X(OK, "ok")                                                                                    \
    X(TIMEOUT, "timeout")                                                                          \
    X(LOST, "lost")                                                                                \
    X(ASLEEP, "asleep")                                                                            \
    X(RELEASED, "released")                                                                        \
    X(NO_PERMISSION, "no_permission")                                                              \
    X(ERROR, "error")

/* The word for a status; all that no GPU should have are errors. */
const char *gp_device_state(enum gp_status status);

/* A GPU, or one MIG instance of the GPU before it. */
struct gp_device {
    unsigned index; /* of the GPU in the driver's order */
    bool is_mig;
    unsigned mig_index; /* within its GPU, if is_mig */
    enum gp_status status;
    const char *status_text;         /* why, when status is not OK; "" otherwise */
    int driver_code;                 /* what the driver answered then, as it counts; 0: nothing */
    bool refused;                    /* the driver did not even hand it out */
    double silent_s;                 /* seconds without an answer, when status is TIMEOUT */
    enum gp_status processes_status; /* OK, or why no processes are known */
    size_t first_process;            /* its processes stand together in gp_snapshot.processes */
    size_t process_count;
    enum gp_status list_status[GP_LIST__COUNT]; /* OK, NONE, or why a list is not known */
    struct gp_value values[GP_DEVICE__COUNT];
};

/* Which values the rows of processes have: there may be thousands of rows, so those that nobody
 * asked for are left out. */
struct gp_process_columns {
    unsigned count;
    uint8_t places[GP_PROCESS__COUNT]; /* by metric; 0: it is left out, 1: it is the first value */
};

/* A process on one device; a process on two GPUs stands twice. */
struct gp_process {
    uint32_t device;         /* index into gp_snapshot.devices */
    uint32_t place;          /* on its GPU in the driver's order: those that compute first */
    struct gp_shared *texts; /* held for the values that point into it; NULL: none do */
    const struct gp_process_columns *columns; /* NULL: all values, in the order of the metrics */
    struct gp_value *cells;                   /* see gp_process_value() */
};

/* An entry of a list of a device. A list that is not known is one entry, absent in all its values.
 */
struct gp_entry {
    size_t device;                 /* index into gp_snapshot.devices */
    const struct gp_value *values; /* as many as its scope is wide */
};

struct gp_entries {
    struct gp_entry *entries; /* device after device */
    size_t count;
};

struct gp_snapshot {
    struct gp_arena arena;
    uint64_t mono_ns;
    uint64_t wall_ns;
    bool partial; /* a device did not give everything: lost, hung or failed */
    struct gp_value host[GP_HOST__COUNT];
    struct gp_device *devices; /* each GPU directly followed by its MIG instances */
    size_t device_count;
    struct gp_process_columns columns; /* of the rows in the next two */
    struct gp_process *processes;
    size_t process_count;
    /* If asked for: the processes that those above come from, parents of parents included, as far
     * as they can be seen and are not above themselves. Sorted by pid. They have the values that
     * come from /proc, and no device. */
    struct gp_process *ancestors;
    size_t ancestor_count;
    struct gp_entries lists[GP_LIST__COUNT];
};

/* The value of metric m seen from a row: device may be NULL for host rows, process for device rows.
 * A metric that the row does not have, as one of a list, gives a value with GP_STATUS_NONE. */
const struct gp_value *gp_snapshot_value(const struct gp_snapshot *snapshot,
                                         const struct gp_device *device,
                                         const struct gp_process *process, enum gp_metric m);

/* A value of a device as a number, in the unit of the metric; false if there is none. */
bool gp_device_number(const struct gp_device *device, enum gp_metric m, double *ret);

/* The same, but false too if it is an old one. */
bool gp_device_number_now(const struct gp_device *device, enum gp_metric m, double *ret);

/* A text of a device; `other` if there is none. */
const char *gp_device_text(const struct gp_device *device, enum gp_metric m, const char *other);

/* A value that the row does not have has GP_STATUS_NONE. */
const struct gp_value *gp_process_value(const struct gp_process *process, enum gp_metric m);

/* The columns for these metrics. */
struct gp_process_columns gp_process_columns(const struct gp_metric_set *metrics);

/* Whether the driver lists this process on one of the GPUs. */
bool gp_snapshot_lists(const struct gp_snapshot *snapshot, int64_t pid);

void gp_snapshot_free(struct gp_snapshot *snapshot);

#endif
