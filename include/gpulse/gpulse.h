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
 * ends the process. While a thread hangs in the driver (gpulse_is_stuck()), the process should end
 * with _exit(), because exit() would unload the driver's library under that thread.
 *
 * Ownership: what a function stores in *ret belongs to the caller, and is NULL after a failure, if
 * nothing else is said. The functions that close or free it accept NULL. Strings that a function
 * returns live as long as the object that they are from; arguments are copied.
 *
 * Threads: any thread may call the functions that take no object. An object is used by one thread
 * at a time, except a sample, which any number of threads may read and send signals with; different
 * objects may be used at the same time.
 *
 * fork(): the child may read the samples of its parent, and close and free everything, which does
 * not end a reservation of the parent. What needs the driver or a reservation fails with
 * GPULSE_EFORK: open another object there.
 *
 * ABI: everything here keeps its meaning as long as the number in libgpulse.so.0 stays the same.
 * Structures with a member `size` grow at their end; set it to the size that you compiled with.
 * With a size of 0, functions fail with GPULSE_EUSAGE. */
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

/* Functions that return int return one of these on failure; all are negative. */
enum {
    GPULSE_EFAIL = -1,    /* failed for another reason: see the text */
    GPULSE_EUSAGE = -2,   /* a wrong argument */
    GPULSE_ENODEV = -3,   /* there is no GPU, or none matches */
    GPULSE_EDRIVER = -4,  /* no driver, or it reports a problem */
    GPULSE_EPERM = -5,    /* not permitted */
    GPULSE_ENOMEM = -6,   /* out of memory */
    GPULSE_ETIMEOUT = -7, /* the driver does not respond */
    GPULSE_EFORK = -8,    /* what it needs was opened before fork() */
    GPULSE_EBUSY = -9,    /* too few GPUs are free, or became free in time */
    GPULSE_ENEVER = -10,  /* this machine can never meet the request */
    GPULSE_ECANCELED = -11,
};

struct gpulse_error {
    int code;        /* GPULSE_E* */
    int driver_code; /* the driver's own return code (nvmlReturn_t); 0: none */
    char text[400];  /* what failed, on what, and why, in UTF-8; no full stop */
};

/* Whether a thread of the library hangs in the driver, as far as is known. After 64 calls that
 * hang, the others fail until some of those have returned. */
GPULSE_API bool gpulse_is_stuck(void);

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

/* Opens the driver; end it with gpulse_close(). NULL: all options have their defaults.
 *
 * A process observes one machine: that of the first call with valid fields and GPUs, even if that
 * call fails. A later call with another `sim` or `root` fails with GPULSE_EUSAGE. With `sim`, the
 * first call sets variables of the environment, so make it before other threads read them. Fails
 * with GPULSE_EUSAGE, ENODEV, EDRIVER, EPERM, ENOMEM or ETIMEOUT. */
GPULSE_API int gpulse_open(const struct gpulse_options *options, gpulse_session **ret,
                           struct gpulse_error *error);

/* Closes it; its samples stay valid. Returns false if a thread hangs in the driver: nothing was
 * freed then, see gpulse_is_stuck(). NULL does nothing. */
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

/* Whether a GPU did not respond, was lost, or reported an error; not: it is asleep, or a value is
 * not supported. */
GPULSE_API bool gpulse_sample_is_partial(const gpulse_sample *sample);

/* The number of rows of a kind: always 1 for the host; 0 if no field of another kind was read, or
 * for an invalid kind. */
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

/* Sends a signal to the process of a row, and not to another one that got its pid more than a
 * second after the sample was taken; 0 only checks that. Fails with GPULSE_EUSAGE (there is no such
 * row, or its process is not on this machine), GPULSE_EPERM (also for init, this process, and
 * simulated processes), or GPULSE_EFAIL if it has exited. */
GPULSE_API int gpulse_sample_signal(const gpulse_sample *sample, size_t row, int signal,
                                    struct gpulse_error *error);

/* ---- free GPUs ---- */

enum {
    GPULSE_ALL = 1,          /* every GPU of options.gpus, or of the machine */
    GPULSE_SHARE = 2,        /* others may use the same GPUs: needs `memory` */
    GPULSE_NO_DISPLAY = 4,   /* none that drives a display */
    GPULSE_SAME_NODE = 8,    /* all on one NUMA node */
    GPULSE_NVLINK = 16,      /* NVLink between all of them */
    GPULSE_IGNORE_MASK = 32, /* also GPUs that CUDA_VISIBLE_DEVICES hides from this process */
    GPULSE_UUIDS = 64,       /* UUIDs in the mask, instead of indices */
};

/* Which GPUs a program needs; 0 and NULL mean no limit. */
struct gpulse_request {
    size_t size;           /* sizeof(struct gpulse_request) */
    unsigned count;        /* of GPUs; 0: one */
    unsigned at_most;      /* gpulse_pick(): as many as are free, up to this number */
    const char *avoid;     /* not these, as in options.gpus */
    const char *prefer;    /* these first */
    uint64_t memory;       /* bytes that must be free on each, and that are reserved if shared */
    uint64_t total_memory; /* bytes that each must have */
    unsigned most_load;    /* percent */
    unsigned most_celsius;
    const char *order; /* "free", "load", "cool" or "index"; NULL: fewest processes first */
    const char *name;  /* shown to those who wait for the GPUs; NULL: the command line */
    uint64_t wait_ns;  /* how long to wait for free GPUs; 0: do not wait; UINT64_MAX: for ever */
    unsigned flags;    /* GPULSE_ALL, … */
    /* Called while it waits, when the reason changes. NULL: not called. */
    void (*on_wait)(void *context, const char *why);
    /* Whether to give up; asked every few seconds while it waits, also after signals. NULL: no. */
    bool (*is_cancelled)(void *context);
    void *context;
};

/* GPUs that were chosen or reserved. */
typedef struct gpulse_grant gpulse_grant;

/* Chooses free GPUs by the rules of gpulse-pick(1), from those in options.gpus; options.fields is
 * not used. They are not reserved: another job may start there first. Fails with GPULSE_EBUSY and
 * GPULSE_ENEVER, whose texts say what is missing and who has the GPUs, GPULSE_ECANCELED, or as
 * gpulse_open(). Free the result with gpulse_release(). */
GPULSE_API int gpulse_pick(const struct gpulse_options *options,
                           const struct gpulse_request *request, gpulse_grant **ret,
                           struct gpulse_error *error);

/* The same, and reserves them for this process until gpulse_release(), or until it calls exec() or
 * ends, however it ends, even if children of it go on: no gpulse-run(1) and no other reservation of
 * any user gets them. Only child processes of this one may reserve them again, for parts of the
 * job: start another program as a child, or with gpulse-run(1). With children that go on, a process
 * ends when its parent waits for it; in a pid namespace of its own, when the children end. Set
 * CUDA_VISIBLE_DEVICES to the mask before the first call to CUDA. */
GPULSE_API int gpulse_reserve(const struct gpulse_options *options,
                              const struct gpulse_request *request, gpulse_grant **ret,
                              struct gpulse_error *error);

/* The value for CUDA_VISIBLE_DEVICES, with CUDA_DEVICE_ORDER=PCI_BUS_ID. */
GPULSE_API const char *gpulse_grant_mask(const gpulse_grant *grant);

/* The GPUs as in options.gpus: "2,5". */
GPULSE_API const char *gpulse_grant_gpus(const gpulse_grant *grant);
GPULSE_API size_t gpulse_grant_count(const gpulse_grant *grant);

/* The UUID of the n-th one, from 0; NULL: there are fewer. */
GPULSE_API const char *gpulse_grant_uuid(const gpulse_grant *grant, size_t n);

/* Some systems remove the file of a reservation when its user logs out. This writes it again; call
 * it now and then. GPULSE_EBUSY: somebody has reserved one of the GPUs meanwhile; GPULSE_EFAIL: it
 * cannot be written. GPUs of gpulse_pick() need nothing: 0. */
GPULSE_API int gpulse_grant_keep(gpulse_grant *grant, struct gpulse_error *error);

/* Ends a reservation, and frees the object. NULL does nothing. */
GPULSE_API void gpulse_release(gpulse_grant *grant);

/* ---- events ---- */

typedef struct gpulse_events gpulse_events;

struct gpulse_event {
    size_t size;      /* sizeof(struct gpulse_event), set by the caller */
    const char *kind; /* "xid", "lost", …: see gpulse-events(1); constant */
    uint64_t time_ns; /* since 1970 */
    bool from_driver; /* otherwise found by comparing samples, or about the stream itself */
    int gpu;          /* its index; -1: the event is not about one GPU */
    char uuid[96];    /* "" if unknown, here and below */
    char pci_bus_id[24];
    int gpu_instance, compute_instance; /* of a MIG instance; -1: the whole GPU */
    uint64_t number;                    /* Xid, pid, or number of missed events; otherwise 0 */
    char was[64], now[64];              /* of a value that has changed */
    char text[240];                     /* for people: complete, except for the GPU */
};

/* Begins to watch for events: `kinds` as in gpulse-events(1), NULL for "health,state". What the
 * driver does not report is found by comparing samples every interval_ns (0: 5 s). A thread of the
 * library does that, with all signals blocked. Fails as gpulse_open(). End it with
 * gpulse_events_close(). */
GPULSE_API int gpulse_events_open(const struct gpulse_options *options, const char *kinds,
                                  uint64_t interval_ns, gpulse_events **ret,
                                  struct gpulse_error *error);

/* For poll(): readable while gpulse_events_next() has something to return. Do not read it. */
GPULSE_API int gpulse_events_fd(const gpulse_events *events);

/* The next event: 1, or 0 if there is none now; negative: the error that has ended the stream. The
 * first event is of kind "start", whatever the kinds. If nobody takes them, 256 are kept, and one
 * of kind "missed" says how many were dropped. */
GPULSE_API int gpulse_events_next(gpulse_events *events, struct gpulse_event *ret,
                                  struct gpulse_error *error);

/* Ends it, like gpulse_close(). */
GPULSE_API bool gpulse_events_close(gpulse_events *events);

/* ---- settings ---- */

/* The settings of GPUs, or changes of them: a row for each GPU and setting. */
typedef struct gpulse_settings gpulse_settings;

enum gpulse_outcome {
    GPULSE_NOT_TRIED = 0,  /* only checked, or an earlier change of the GPU failed */
    GPULSE_SAME = 1,       /* it had the value already */
    GPULSE_DONE = 2,       /* changed and read back */
    GPULSE_PENDING = 3,    /* accepted; takes effect after a reset of the GPU */
    GPULSE_UNVERIFIED = 4, /* accepted; the driver does not report the value */
    GPULSE_FAILED = 5,
    GPULSE_HUNG = 6, /* no response in time: it is unknown whether the change was made */
};

/* Strings are "" for what is unknown or does not apply, and valid as long as the settings. */
struct gpulse_setting {
    size_t size;               /* sizeof(struct gpulse_setting), set by the caller */
    const char *name;          /* "power-limit", …: see gpulse-set(1) */
    const char *unit;          /* of the numbers */
    int gpu;                   /* its index */
    int mig;                   /* index of the MIG instance; -1: the GPU */
    const char *uuid;          /* of the GPU or the instance */
    enum gpulse_status status; /* whether it could be read */
    const char *reason;        /* why that, or a change, failed; the driver's warning; or, with
                                  GPULSE_OK, why the value is not known */
    const char *value;         /* before a change, in the syntax of gpulse-set(1) */
    const char *pending;       /* another value that takes effect after a reset */
    const char *fallback;      /* the default of the GPU */
    bool has_range;            /* of each number: */
    double least, most;
    const char *wanted; /* a requested change: the value, */
    const char *after;  /* the value that was read after it, */
    enum gpulse_outcome outcome;
};

/* Reads all settings of the GPUs in options.gpus. A GPU that cannot be read has rows with the
 * reason. Fails as gpulse_open(). Free the result with gpulse_settings_free(). */
GPULSE_API int gpulse_settings_read(const struct gpulse_options *options, gpulse_settings **ret,
                                    struct gpulse_error *error);

enum {
    GPULSE_CHECK_ONLY = 1, /* change nothing: outcomes are GPULSE_SAME, GPULSE_NOT_TRIED and, for a
                              GPU that does not respond, GPULSE_FAILED */
    GPULSE_MAY_LOSE = 2,   /* also changes that destroy what nothing restores */
};

/* Changes settings of all GPUs in options.gpus: "power-limit=300 persistence-mode=on". Everything
 * is checked on every GPU before the first change. If one is refused, nothing is changed, and *ret
 * is NULL: GPULSE_EUSAGE (also without GPULSE_MAY_LOSE), GPULSE_EPERM, GPULSE_EFAIL,
 * GPULSE_EDRIVER, or as gpulse_open(). If a change fails, the others are still made: it returns the
 * first error, and *ret says what happened to each; after GPULSE_ENOMEM, which leaves it NULL, they
 * may have been made. options.timeout_ns limits each step; 0: 30 s. */
GPULSE_API int gpulse_settings_change(const struct gpulse_options *options, const char *changes,
                                      unsigned flags, gpulse_settings **ret,
                                      struct gpulse_error *error);

/* The rows: all settings of a GPU, or those that were changed. */
GPULSE_API size_t gpulse_settings_count(const gpulse_settings *settings);
/* GPULSE_EUSAGE: there is no such row, or ret->size is wrong. */
GPULSE_API int gpulse_settings_get(const gpulse_settings *settings, size_t row,
                                   struct gpulse_setting *ret);

/* The changes that restore the GPU of a row, for gpulse_settings_change() with its UUID as
 * options.gpus, and GPULSE_MAY_LOSE if it has MIG instances; "" if there are none. */
GPULSE_API const char *gpulse_settings_undo(const gpulse_settings *settings, size_t row);
GPULSE_API void gpulse_settings_free(gpulse_settings *settings);

/* ---- errors of other programs ---- */

/* Explains a code ("xid 79", "cuda 802", "SIGKILL") or a message of one or more lines. *ret is a
 * document of the schema gpulse.doctor.explain/1 (JSON); free it with gpulse_text_free(). Its list
 * is empty if nothing in the text is known. GPULSE_EUSAGE or GPULSE_EFAIL: there is no such number,
 * as in "xid 99999"; GPULSE_EFAIL: more than 1 MiB. */
GPULSE_API int gpulse_explain(const char *text, char **ret, struct gpulse_error *error);

/* Explains why a program failed: from its log, from the directory of a job that gpulse-run(1) has
 * recorded, or "last" for this user's last one. *ret is a document of the schema gpulse.explain/1.
 * GPULSE_EFAIL: it cannot be read, or is neither a file nor a directory. */
GPULSE_API int gpulse_explain_log(const char *path, char **ret, struct gpulse_error *error);
GPULSE_API void gpulse_text_free(char *text);

/* ---- memory of models ---- */

/* As the options of gpulse-mem(1); 0 and NULL: their defaults, which are training with AdamW in
 * bf16. */
struct gpulse_model {
    size_t size;           /* sizeof(struct gpulse_model) */
    const char *params;    /* "7B" */
    const char *dtype;     /* "bf16", … */
    const char *optimizer; /* "adamw", … */
    bool inference;
    uint64_t batch, seq, layers, hidden, vocab, heads;
};

enum { GPULSE_TERMS = 16 };

struct gpulse_estimate {
    size_t size;    /* sizeof(struct gpulse_estimate), set by the caller */
    double total;   /* bytes on one GPU */
    double split;   /* bytes of it that several GPUs can share evenly */
    unsigned count; /* of the terms */
    struct {
        const char *name; /* "weights", "gradients", "optimizer", … */
        double bytes;
        char formula[112];
        const char *about; /* where the factor comes from, or what is left out */
    } terms[GPULSE_TERMS];
};

/* A rule of thumb for the memory that a model needs. Nothing is measured. GPULSE_EUSAGE. */
GPULSE_API int gpulse_estimate_model(const struct gpulse_model *model, struct gpulse_estimate *ret,
                                     struct gpulse_error *error);

/* ---- the timeline of a job ---- */

/* For a program that gpulse-run(1) has started with --timeline: a mark, and a range of this thread,
 * which may lie within others. Names are UTF-8 texts, cut to 104 bytes. The calls take less than a
 * microsecond, never wait, and do nothing without a timeline. They work after a fork().
 * With NULL, gpulse_mark() does nothing, and gpulse_range_push() begins a range without a name. */
GPULSE_API void gpulse_mark(const char *name);
GPULSE_API void gpulse_range_push(const char *name);
GPULSE_API void gpulse_range_pop(void);

/* Counts a step, such as one of a training loop: call it once in each. gpulse-run(1) reports steps
 * per second if it runs with --timeline, and the MFU with --flops-per-step. Of several processes of
 * a job, the one with the most steps counts. Otherwise like the functions above. */
GPULSE_API void gpulse_step(void);

#ifdef __cplusplus
}
#endif

#endif
