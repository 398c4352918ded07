/* The result of reading one device: immutable once published, and reference-counted.
 *
 * A worker fills a reading, publishes it, and never modifies it again. All texts and arrays live in
 * the reading's arena. */
#ifndef GP_MODEL_READING_H
#define GP_MODEL_READING_H

#include "base/arena.h"
#include "model/metric.h"

#include <stdatomic.h>

enum gp_process_type {
    GP_PROCESS_COMPUTE = 1,
    GP_PROCESS_GRAPHICS = 2,
    GP_PROCESS_MPS = 4,
};

/* A process's use of a unit. Kept small, because there may be thousands of processes. */
struct gp_percent {
    bool known;
    uint8_t n;
};

/* A process as reported by the driver. */
struct gp_source_process {
    uint32_t pid;
    uint32_t place;          /* position in the driver's concatenated lists */
    const char *driver_name; /* name reported by the driver; NULL if not queried or unknown */
    struct gp_value memory;  /* bytes */
    struct gp_value gpu_instance;
    struct gp_value compute_instance;
    struct gp_value power;  /* watts */
    struct gp_value energy; /* joules since the source first read it */
    struct gp_percent sm, mem, enc, dec, jpeg, ofa;
    uint8_t types; /* enum gp_process_type flags */
};

/* One MIG instance of a device. */
struct gp_mig_reading {
    unsigned index; /* the driver's number of the instance on its GPU; numbers may have gaps */
    struct gp_value values[GP_DEVICE__COUNT];
};

/* A list of a device. */
struct gp_list {
    enum gp_status status; /* OK; NONE: not queried; otherwise why it is missing */
    const char *words;     /* details of the status, constant, or NULL */
    size_t count;
    struct gp_value *values; /* row by row, each as wide as its scope */
};

struct gp_reading {
    atomic_uint refs;
    struct gp_arena arena;
    uint64_t time_ns;      /* monotonic time of the end of the read */
    enum gp_status status; /* of the whole device */
    char status_text[160]; /* the reason if status is not OK */
    int driver_code;       /* the driver's error code for that; 0: none */
    bool refused;          /* the driver did not return a handle for the GPU */
    bool needs_reinit;     /* the driver session is unusable: GPU lost, driver reloaded */
    struct gp_value values[GP_DEVICE__COUNT];
    struct gp_mig_reading *mig;
    size_t mig_count;
    struct gp_source_process *processes;
    size_t process_count;
    enum gp_status processes_status; /* OK, or why there is no list */
    struct gp_list lists[GP_LIST__COUNT];
};

/* The value of a device metric. */
static inline struct gp_value *gp_device_value(struct gp_value *values, enum gp_metric m)
{
    return &values[m - GP_DEVICE__FIRST];
}

/* NULL without memory. */
struct gp_reading *gp_reading_new(void) GP_MUST_CHECK;
struct gp_reading *gp_reading_ref(struct gp_reading *r);
struct gp_reading *gp_reading_unref(struct gp_reading *r); /* returns NULL */

/* The same, but if nobody else has a reference, empties it and returns it, to be filled again. */
struct gp_reading *gp_reading_recycle(struct gp_reading *r) GP_MUST_CHECK;

#endif
