/* The immutable result of a tick: the host, the devices with their MIG instances, and the
 * processes. */
#ifndef GP_MODEL_SNAPSHOT_H
#define GP_MODEL_SNAPSHOT_H

#include "base/arena.h"
#include "model/metric.h"

struct gp_shared;

/* The states of a GPU, and their words in the field `status`.
 * X(id, word) */
#define GP_DEVICE_STATES(X)                                                                        \
    X(OK, "ok")                                                                                    \
    X(TIMEOUT, "timeout")                                                                          \
    X(LOST, "lost")                                                                                \
    X(ASLEEP, "asleep")                                                                            \
    X(RELEASED, "released")                                                                        \
    X(NO_PERMISSION, "no_permission")                                                              \
    X(ERROR, "error")

/* The word for a status; a status that is invalid for a GPU becomes "error". */
const char *gp_device_state(enum gp_status status);

/* A GPU, or a MIG instance of the preceding GPU. */
struct gp_device {
    unsigned index; /* of the GPU, in the driver's order */
    bool is_mig;
    unsigned mig_index; /* within its GPU, if is_mig */
    enum gp_status status;
    const char *status_text;         /* the reason if status is not OK, otherwise "" */
    int driver_code;                 /* the driver's error code for that; 0: none */
    bool refused;                    /* the driver did not return a handle for it */
    uint32_t reserved_by;            /* pid of the supervisor that reserved it; 0: none, unknown */
    double silent_s;                 /* seconds without a response, if status is TIMEOUT */
    enum gp_status processes_status; /* OK, or why its processes are unknown */
    size_t first_process;            /* its processes are contiguous in gp_snapshot.processes */
    size_t process_count;
    enum gp_status list_status[GP_LIST__COUNT]; /* OK, NONE, or why a list is unknown */
    struct gp_value values[GP_DEVICE__COUNT];
};

/* Why a GPU cannot be used, for people: without the driver call that a lost GPU refused. */
const char *gp_device_trouble(const struct gp_device *device);

/* Maps metrics to the stored values of process rows. Metrics that were not requested are not
 * stored, because there may be thousands of rows. */
struct gp_process_columns {
    unsigned count;
    uint8_t places[GP_PROCESS__COUNT]; /* by metric; 0: not stored, 1: the first value */
};

/* A process on one device. A process on two GPUs has two rows. */
struct gp_process {
    uint32_t device; /* index into gp_snapshot.devices */
    uint32_t owner;  /* uid plus 1, as gp_proc_texts has it; 0: unknown, or not requested */
    uint32_t job;    /* pid of the first process of its job, see proc/job.h; 0: likewise */
    uint32_t place;  /* position on its GPU in the driver's order: compute processes first */
    struct gp_shared *texts; /* reference that keeps texts of the values alive; NULL: not needed */
    const struct gp_process_columns *columns; /* NULL: all values, in the order of the metrics */
    struct gp_value *cells;                   /* access with gp_process_value() */
};

/* An entry of a device's list. An unknown list is a single entry whose values are all absent. */
struct gp_entry {
    size_t device;                 /* index into gp_snapshot.devices */
    const struct gp_value *values; /* as many as its scope has metrics */
};

struct gp_entries {
    struct gp_entry *entries; /* grouped by device */
    size_t count;
};

struct gp_snapshot {
    struct gp_arena arena;
    uint64_t mono_ns;
    uint64_t wall_ns;
    bool partial; /* a device is missing some data: lost, hung or failed */
    struct gp_value host[GP_HOST__COUNT];
    struct gp_device *devices; /* each GPU is directly followed by its MIG instances */
    size_t device_count;
    struct gp_process_columns columns; /* of the rows of the next two */
    struct gp_process *processes;
    size_t process_count;
    /* If requested: all visible ancestors of the processes above, except those that are in that
     * list themselves. Sorted by pid. They have the values from /proc, and no device. */
    struct gp_process *ancestors;
    size_t ancestor_count;
    struct gp_entries lists[GP_LIST__COUNT];
};

/* The value of metric m for a row. device may be NULL for host rows, process for device rows. A
 * metric that the row does not have (for example one of a list) has GP_STATUS_NONE. */
const struct gp_value *gp_snapshot_value(const struct gp_snapshot *snapshot,
                                         const struct gp_device *device,
                                         const struct gp_process *process, enum gp_metric m);

/* A device value as a number, in the unit of the metric; false if there is none. */
bool gp_device_number(const struct gp_device *device, enum gp_metric m, double *ret);

/* Same as gp_device_number(), but false if the value is stale. */
bool gp_device_number_now(const struct gp_device *device, enum gp_metric m, double *ret);

enum { GP_DEVICE_LABEL_SIZE = 24 };
/* "1"; "1:0" for a MIG instance. */
void gp_device_label(const struct gp_device *device, char ret[GP_DEVICE_LABEL_SIZE]);

/* A device value as text; `other` if there is none. */
const char *gp_device_text(const struct gp_device *device, enum gp_metric m, const char *other);

/* A metric that the row does not have has GP_STATUS_NONE. */
const struct gp_value *gp_process_value(const struct gp_process *process, enum gp_metric m);

/* Whether its GP_PROCESS_TYPE is known and includes computing: it does more than draw. */
bool gp_process_computes(const struct gp_process *process);

/* The columns for these metrics. */
struct gp_process_columns gp_process_columns(const struct gp_metric_set *metrics);

/* Whether the driver lists this process on a GPU. */
bool gp_snapshot_lists(const struct gp_snapshot *snapshot, int64_t pid);

/* An empty snapshot. One that was freed is used again with its memory, which saves a loop the cost
 * of fresh pages in every tick. NULL without memory. */
struct gp_snapshot *gp_snapshot_new(void) GP_MUST_CHECK;
void gp_snapshot_free(struct gp_snapshot *snapshot);

#endif
