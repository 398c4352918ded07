/* libgpulse: what the GPUs of a machine do, and which processes use them.
 *
 * A session reads a chosen set of metrics from the driver; a sample is the immutable result of one
 * read. Every value has a status: a number is never invented where the driver gave none.
 *
 *     gpulse_session *session;
 *     gpulse_sample *sample;
 *     struct gpulse_error error;
 *     const struct gpulse_options options = {.size = sizeof(options), .fields = "memory.used"};
 *     if (gpulse_open(&options, &session, &error) < 0 || gpulse_take(session, &sample, &error) < 0)
 *         return fprintf(stderr, "%s\n", error.text), 1;
 *
 * No call waits for a GPU longer than the timeout of its session: a GPU that hangs costs its own
 * values, not those of others. The library prints nothing, installs no signal handlers, and never
 * ends the process.
 *
 * Threads: a session is used by one thread at a time; different sessions may be used at the same
 * time. A sample may be read by any number of threads. After fork(), a session cannot be used in
 * the child, where gpulse_take() fails with GPULSE_EFORK: open another one there.
 *
 * ABI: everything here keeps its meaning as long as the number in libgpulse.so.0 stays the same.
 * Structures with a member `size` grow at their end; set it to the size that you compiled with. */
#ifndef GPULSE_GPULSE_H
#define GPULSE_GPULSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GPULSE_API __attribute__((visibility("default")))

/* The version of the library, for example "0.1.0". */
GPULSE_API const char *gpulse_version(void);

/* ---- errors ---- */

/* What functions that return int fail with; all are negative. */
enum {
    GPULSE_EFAIL = -1,    /* failed for another reason: see the text */
    GPULSE_EUSAGE = -2,   /* a wrong argument */
    GPULSE_ENODEV = -3,   /* there is no GPU, or none matches */
    GPULSE_EDRIVER = -4,  /* no driver, or it reports a problem */
    GPULSE_EPERM = -5,    /* not permitted */
    GPULSE_ENOMEM = -6,   /* out of memory */
    GPULSE_ETIMEOUT = -7, /* the driver does not respond */
    GPULSE_EFORK = -8,    /* the session was opened before fork() */
};

struct gpulse_error {
    int code;        /* GPULSE_E* */
    int driver_code; /* the driver's own return code (nvmlReturn_t); 0: none */
    char text[400];  /* what failed, on what, and why; no full stop */
};

/* ---- metrics ---- */

/* Metrics belong to a kind of row. A GPU also has lists with a row per entry, such as its NVLinks:
 * see gpulse_scope_find(). */
enum {
    GPULSE_HOST = 0,    /* one row */
    GPULSE_GPU = 1,     /* a row per GPU; its MIG instances follow it */
    GPULSE_PROCESS = 2, /* a row per process and GPU */
};

enum gpulse_type {
    GPULSE_INT = 0,
    GPULSE_REAL = 1,
    GPULSE_TEXT = 2,
};

struct gpulse_metric_info {
    const char *name; /* "memory.used"; the names are in gpulse-metrics(7) */
    const char *unit; /* "bytes", "percent", "watt", …; "" for none */
    const char *help; /* one line */
    int scope;        /* GPULSE_HOST, … */
    enum gpulse_type type;
};

/* The number of a metric, by name or alias. The numbers are only valid in this process; they run
 * from 0 to gpulse_metric_count() - 1. GPULSE_EUSAGE suggests the nearest name. `error` may be
 * NULL, here and below. */
GPULSE_API int gpulse_metric_find(const char *name, struct gpulse_error *error);
GPULSE_API int gpulse_metric_count(void);

/* GPULSE_EUSAGE for a number that is no metric. The strings are constant. */
GPULSE_API int gpulse_metric_describe(int metric, struct gpulse_metric_info *ret);

/* The number of a kind of row by its name in gpulse-query(1): "gpus", "processes", "links", …;
 * GPULSE_EUSAGE for any other. */
GPULSE_API int gpulse_scope_find(const char *name);

/* ---- sessions ---- */

typedef struct gpulse_session gpulse_session;

enum {
    GPULSE_MIG = 1,   /* MIG instances as rows of their own */
    GPULSE_STILL = 2, /* with `sim`: its values do not change */
};

struct gpulse_options {
    size_t size;         /* sizeof(struct gpulse_options) */
    const char *fields;  /* metrics to read: "name,memory.*,pid"; NULL: index, name, UUID,
                            utilization, memory, temperature and power of GPUs */
    const char *gpus;    /* which GPUs: indices, ranges, UUIDs, bus ids, names; NULL: all */
    const char *sim;     /* a machine of gpulse-sim(1), for example "h100x8"; NULL: $GPULSE_SIM, or
                            the real one */
    const char *root;    /* read /proc and /sys below this directory; NULL: $GPULSE_ROOT, or / */
    uint64_t timeout_ns; /* how long a call waits for the driver; 0: 3 s */
    unsigned flags;      /* GPULSE_MIG, … */
};

/* Opens the driver. NULL options are those with default values. The strings are copied.
 *
 * A process observes one machine, which the first call chooses, even if it fails; another `sim` or
 * `root` in a later call is GPULSE_EUSAGE. With `sim`, the first call sets variables of the
 * environment, so make it before other threads read them. Fails with GPULSE_EUSAGE, ENODEV,
 * EDRIVER, EPERM, ENOMEM or ETIMEOUT. */
GPULSE_API int gpulse_open(const struct gpulse_options *options, gpulse_session **ret,
                           struct gpulse_error *error);

/* Closes it; its samples stay valid. Returns false if a thread hangs in the driver: nothing was
 * freed then, and the process should end with _exit(), because exit() would unload the driver's
 * library under that thread. NULL does nothing. */
GPULSE_API bool gpulse_close(gpulse_session *session);

/* ---- samples ---- */

typedef struct gpulse_sample gpulse_sample;

/* Reads the metrics. Rates, such as the throughput of PCIe, are known from the second sample on.
 * If GPUs do not respond, it succeeds, and the sample is partial. Fails with GPULSE_ENOMEM,
 * GPULSE_EFORK, or GPULSE_ENODEV if a name or UUID in options.gpus matches no GPU. Free the sample
 * with gpulse_sample_free(). */
GPULSE_API int gpulse_take(gpulse_session *session, gpulse_sample **ret,
                           struct gpulse_error *error);
GPULSE_API void gpulse_sample_free(gpulse_sample *sample);

/* When it was taken, in nanoseconds since 1970. */
GPULSE_API uint64_t gpulse_sample_time(const gpulse_sample *sample);

/* Whether a GPU did not respond, was lost, or failed. */
GPULSE_API bool gpulse_sample_is_partial(const gpulse_sample *sample);

/* The number of rows of a kind: 1 for the host; 0 if no field of that kind was read, or for an
 * invalid kind. */
GPULSE_API size_t gpulse_sample_rows(const gpulse_sample *sample, int scope);

/* The row of the GPU that a process or an entry of a list belongs to; GPULSE_EUSAGE if there is no
 * such row, or for a row of the host. */
GPULSE_API int gpulse_sample_gpu_of(const gpulse_sample *sample, int scope, size_t row);

/* Why a value is missing or old. */
enum gpulse_status {
    GPULSE_NONE = 0, /* the field was not read, or there is no such row */
    GPULSE_OK = 1,
    GPULSE_STALE = 2,       /* present, but the GPU has not responded since */
    GPULSE_UNSUPPORTED = 3, /* this GPU or driver does not have it */
    GPULSE_NO_PERMISSION = 4,
    GPULSE_LOST = 5,     /* the GPU has fallen off the bus */
    GPULSE_TIMEOUT = 6,  /* no response in time */
    GPULSE_ASLEEP = 7,   /* the GPU sleeps and was not woken */
    GPULSE_RELEASED = 8, /* the driver was closed so that the GPU can sleep */
    GPULSE_ERROR = 9,    /* the driver reported an error */
};

struct gpulse_value {
    union {
        int64_t i;     /* GPULSE_INT */
        double f;      /* GPULSE_REAL */
        const char *s; /* GPULSE_TEXT: UTF-8 without control characters, valid as long as the
                          sample */
    } u;
    enum gpulse_type type;
    enum gpulse_status status; /* there is a value with GPULSE_OK and GPULSE_STALE */
    uint64_t age_ns;           /* of the value when the sample was taken */
    const char *reason;        /* why there is none, or it is old, for people; "" with GPULSE_OK */
};

/* The value of a metric in a row of its kind, counted from 0. Returns its status. */
GPULSE_API enum gpulse_status gpulse_sample_get(const gpulse_sample *sample, int metric, size_t row,
                                                struct gpulse_value *ret);

/* The same as a number, in the unit of the metric. Returns false if there is none, or if it is a
 * text; *ret is then unchanged. */
GPULSE_API bool gpulse_sample_number(const gpulse_sample *sample, int metric, size_t row,
                                     double *ret);

/* The same as a text; NULL if there is none, or if it is a number. */
GPULSE_API const char *gpulse_sample_text(const gpulse_sample *sample, int metric, size_t row);

#ifdef __cplusplus
}
#endif

#endif
