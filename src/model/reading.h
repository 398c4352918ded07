/* What one read of one device gave: immutable once published, shared by reference count.
 *
 * A worker fills a reading, publishes it, and never touches it again.
 * All text and arrays live in the reading's arena. */
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

/* How much a process uses of a unit. There may be thousands of processes: this is small. */
struct gp_percent {
    bool known;
    uint8_t n;
};

/* A process as the driver knows it. */
struct gp_source_process {
    uint32_t pid;
    uint32_t place;          /* in the driver's lists, one behind the other */
    const char *driver_name; /* name that the driver gives, NULL if not asked or unknown */
    struct gp_value memory;  /* bytes */
    struct gp_value gpu_instance;
    struct gp_value compute_instance;
    struct gp_value power;  /* watts */
    struct gp_value energy; /* joules since the source was first asked for it */
    struct gp_percent sm, mem, enc, dec, jpeg, ofa;
    uint8_t types; /* enum gp_process_type, or-ed */
};

/* One MIG instance of a device. */
struct gp_mig_reading {
    unsigned index; /* the driver's number of the instance on its GPU; there may be gaps */
    struct gp_value values[GP_DEVICE__COUNT];
};

/* A list of a device. */
struct gp_list {
    enum gp_status status; /* OK; NONE: not asked for; else why there is none */
    const char *words;     /* more on why, constant, or NULL */
    size_t count;
    struct gp_value *values; /* row after row, each as wide as its scope */
};

struct gp_reading {
    atomic_uint refs;
    struct gp_arena arena;
    uint64_t time_ns;      /* monotonic end of the read */
    enum gp_status status; /* of the device as a whole */
    char status_text[160]; /* why, when status is not OK */
    int driver_code;       /* what the driver answered then, as it counts; 0: nothing */
    bool refused;          /* it did not even hand the GPU out */
    bool needs_reinit;     /* the driver session is over: gone GPU, reloaded driver */
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

/* NULL if there is no memory. */
struct gp_reading *gp_reading_new(void) GP_MUST_CHECK;
struct gp_reading *gp_reading_ref(struct gp_reading *r);
struct gp_reading *gp_reading_unref(struct gp_reading *r); /* returns NULL */

#endif
