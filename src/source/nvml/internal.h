/* Private to the NVML source. */
#ifndef GP_SOURCE_NVML_INTERNAL_H
#define GP_SOURCE_NVML_INTERNAL_H

#include "abi/nvml.h"
#include "source/nvml/nvml.h"

#include <pthread.h>
#include <stdatomic.h>

/* control.c */
extern const struct gp_control_ops nvml_control_ops;

enum nvml_function {
    NVML_FN__NONE,
#define X(branch, ret, name, args) NVML_FN_##name,
    NVML_FUNCTIONS(X)
#undef X
        NVML_FN__COUNT,
};

#define X(branch, ret, name, args) typedef ret(*name##_fn) args;
NVML_FUNCTIONS(X)
#undef X

typedef void (*nvml_any_fn)(void);

struct nvml_api {
    void *library;
    _Atomic(nvml_any_fn) functions[NVML_FN__COUNT]; /* NULL: not looked up yet */
};

/* Loads the library. GP_EDRIVER names it and the remedy. */
int nvml_load(struct nvml_api *api, const char *path, struct gp_err *err) GP_MUST_CHECK;
void nvml_unload(struct nvml_api *api);

/* A function of the library; NULL if this driver does not have it. Functions are looked up on first
 * use, because a short command needs few of them. */
nvml_any_fn nvml_find(struct nvml_api *api, enum nvml_function function);
const char *nvml_function_name(enum nvml_function function);

#define NVML_FN(api, name) ((name##_fn)nvml_find(api, NVML_FN_##name))

/* Calls a function that this driver may not have. */
#define NVML_ASK(api, name, ...)                                                                   \
    (NVML_FN(api, name) ? NVML_FN(api, name)(__VA_ARGS__) : NVML_ERROR_FUNCTION_NOT_FOUND)

/* Same, and records the function's name in case it hangs. */
#define NVML_NOTED(source, call, name, ...)                                                        \
    (atomic_store_explicit(call, #name, memory_order_relaxed),                                     \
     NVML_ASK(&(source)->api, name, __VA_ARGS__))
#define NVML_CALL(device, name, ...) NVML_NOTED((device)->source, (device)->call, name, __VA_ARGS__)

/* The text for a return code, without calling the driver. */
const char *nvml_return_text(nvmlReturn_t rc);

/* The value status for a return code. */
enum gp_status nvml_return_status(nvmlReturn_t rc);

/* Whether the code invalidates the whole session, so that everything must be reopened. */
bool nvml_return_ends_session(nvmlReturn_t rc);

enum { NVML_RATES = 13, NVML_SERIES = 3 };

enum {
    NVML_GAP_MS = 90, /* readings closer than this say nothing about growth; GPM requires 100 ms */
    NVML_READERS_MAX = 288,
    NVML_MIG_MAX = 16,
    NVML_BOUND_MAX = 256,
    NVML_LIST_MAX = 65536,
};

/* The event set of a session: events.c. */
struct nvml_events {
    nvmlEventSet_t set; /* NULL: not created yet */
    struct nvml_watched {
        nvmlDevice_t handle;
        unsigned name; /* the caller's name for it */
        unsigned long long bits;
    } * watched;
    size_t count;
};

struct nvml_source {
    struct gp_source base;
    struct gp_nvml_config config;
    struct nvml_api api;
    bool initialised;
    bool hides_processes;           /* /proc shows only processes of this user */
    unsigned count;                 /* number of GPUs reported by the driver */
    char bound[NVML_BOUND_MAX][16]; /* PCI addresses of GPUs bound to the kernel module, sorted */
    unsigned bound_count;
    char driver_version[NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE];
    char kmd_version[32]; /* of the kernel module, "" if /proc does not show it */
    char nvml_version[NVML_SYSTEM_NVML_VERSION_BUFFER_SIZE];
    char cuda_version[16];
    char excluded[1024];    /* known data of excluded GPUs */
    unsigned branch, minor; /* of driver_version: 580.95.05 is 580, 95; 0, 0 if unknown */
    struct nvml_events events;
    pthread_mutex_t topology; /* see topology.c */
    pthread_mutex_t pasts_lock;
    struct nvml_past *pasts; /* of all GPUs and MIG devices, the oldest first: see past.c */
    /* When the running read of a GPU began; 0: none. */
    _Atomic(uint64_t) reading_since_ns[NVML_BOUND_MAX];
    _Atomic(bool) has_answered[NVML_BOUND_MAX]; /* the first calls for a GPU have returned */
};

/* The last utilization sample of each process. The driver reports a process once per sample period,
 * and nothing in between. A tick in between shows the last sample, not 0. */
struct nvml_samples {
    struct nvml_sample {
        nvmlProcessUtilizationInfo_v1_t raw;
        uint64_t seen_ns;
    } * entries;
    size_t count;
    size_t capacity;
    unsigned long long last_us; /* the driver's newest time stamp */
};

/* Room for the entries of one of the driver's lists. */
struct nvml_buffer {
    void *entries; /* to be freed with free() */
    size_t entry_bytes;
    unsigned capacity, count;
};

/* What reading the processes of a device needs, kept for the next time. */
struct nvml_process_room {
    struct nvml_buffer list, samples;
    struct gp_source_process *rows;
    size_t capacity; /* of the rows */
};

/* The processes of the last list that are visible in /proc, sorted. */
enum { NVML_PROCESS_LISTS = 3 }; /* compute, graphics, MPS */

struct nvml_visible {
    uint32_t *pids;
    size_t count, capacity;
    unsigned turn; /* the next ones to check again */
};

/* The energy used by the processes of a device since it was first read. */
struct nvml_energy {
    struct nvml_energy_share {
        uint32_t pid;
        double joules;
    } * shares; /* by pid, for the last list */
    size_t count;
    double total_j;   /* the device's counter at the last read */
    uint64_t time_ns; /* 0: not read yet */
};

/* The last value of a counter, and its growth rate. */
struct nvml_counter {
    uint64_t count;
    uint64_t time_ns; /* 0: not read yet */
    uint64_t next_ns; /* no earlier than this again */
    struct gp_value per_s;
};

/* What is kept of a device beyond a session. */
struct nvml_past {
    struct nvml_past *next;
    char uuid[NVML_DEVICE_UUID_V2_BUFFER_SIZE];
    bool in_use;
    uint64_t left_ns; /* if not in use: since when */
    struct nvml_counter counters[NVML_RATES];
    struct nvml_counter (*links)[2]; /* of each link, once they were listed */
    struct nvml_energy energy;
};

/* One of the driver's sample buffers. */
struct nvml_series {
    unsigned long long last_us; /* the newest sample seen, in driver time */
    uint64_t next_ns;
};

/* A refusal, and until when it is cached. */
struct nvml_refusal {
    nvmlReturn_t rc;
    uint64_t next_ns;
};

struct nvml_gpm {
    nvmlGpmSample_t samples[2];
    unsigned newest;
    uint64_t time_ns; /* of the newest; 0: none */
    uint64_t next_ns;
};

/* A list as last read. */
struct nvml_list {
    struct gp_list list;   /* its values are malloc'ed */
    struct gp_arena arena; /* for its texts */
    uint64_t next_ns;      /* no earlier than this again */
    bool done;             /* a static list that was read */
};

struct nvml_mig_list {
    struct nvml_device *devices[NVML_MIG_MAX];
    size_t count;
    uint64_t next_ns; /* when to read the list again */
};

/* A text that the driver reported for a device. */
struct nvml_text {
    struct nvml_text *next;
    char s[];
};

/* The gp_source_device of this source: a GPU or a MIG instance. */
struct nvml_device {
    struct nvml_source *source;
    gp_call_name *call; /* see source.h */
    nvmlDevice_t handle;
    bool is_mig;
    unsigned index; /* the driver's index of the GPU, or of the MIG instance on its GPU */
    char uuid[NVML_DEVICE_UUID_V2_BUFFER_SIZE];
    bool may_sleep;        /* the kernel may suspend it: check before each read */
    struct gp_arena arena; /* for the texts */
    struct nvml_text *texts;
    /* For each reader; in arrays, because a page of memory costs a short command more than a driver
     * call. */
    struct gp_metric_set wanted;        /* by the last run of readers, and, if is_listed: */
    uint16_t readers[NVML_READERS_MAX]; /* those left that read these metrics */
    size_t reader_count;
    bool is_listed;
    uint64_t not_before_ns[NVML_READERS_MAX];
    bool answered[NVML_READERS_MAX];         /* a static reader then never runs again */
    struct gp_value cache[GP_DEVICE__COUNT]; /* the last values */
    struct nvml_samples samples;
    struct nvml_visible visible;
    struct nvml_visible visible_before; /* room for the next one */
    struct nvml_process_room room;
    uint64_t lists_not_before_ns[NVML_PROCESS_LISTS]; /* those that were empty */
    bool no_video; /* according to the processes, none uses the video encoder or decoder */
    struct nvml_past *past;
    struct nvml_series series[NVML_SERIES];
    struct nvml_refusal buffers[NVML_SAMPLINGTYPE_COUNT]; /* of samples, for whole buffers */
    struct nvml_gpm gpm;
    struct nvml_device *parent; /* of a MIG instance */
    struct nvml_mig_list mig;
    nvmlReturn_t activation; /* why a change of MIG mode did not take effect immediately */
    struct nvml_list lists[GP_LIST__COUNT];
    bool nvlink5; /* has separate fields for its byte counters */
};

/* In readers.c. Runs the readers that are due and provide requested values or rates, into the
 * device's cache. Returns NVML_SUCCESS, or the code that ended the session. */
nvmlReturn_t nvml_run_readers(struct nvml_device *device, const struct gp_metric_set *want,
                              uint64_t now_ns);

/* Makes all cached values of the device due again. */
void nvml_expire(struct nvml_device *device);

/* In answer.c, like the next ones. When to retry a refused call; 0: immediately. */
uint64_t nvml_refused_until(nvmlReturn_t rc, uint64_t now_ns);

/* The number in a field, according to the type reported by the driver; false if it is not a
 * number. */
bool nvml_field_number(const nvmlFieldValue_t *field, int64_t *ret);

/* Whether it is an integer although it claims to be a double: some drivers leave the type of
 * counters unset, which means "double"; one that is almost zero is then an integer (ECC counters
 * while ECC is off). */
bool nvml_field_is_integer(const nvmlFieldValue_t *field);

/* This driver's id of a field, 0 if unknown: see abi/nvml_fields.h. */
unsigned nvml_field_id(const struct nvml_source *source, unsigned id);

/* In growth.c. The growth per second of a counter with the current value `count`. `now_ns` is the
 * time of the driver's response, which is more precise than that of the whole reading. Absent, with
 * a reason, on the first read and if the counter has decreased. */
const struct gp_value *nvml_growth(struct nvml_counter *counter, uint64_t count, uint64_t now_ns);

/* In answer.c. Makes a value absent because the driver refused it. */
void nvml_set_refused(struct gp_value *v, nvmlReturn_t rc, uint64_t now_ns);
/* A share of time cannot exceed 100 %, but the driver's clock differs slightly from ours. */
double nvml_limit_share(enum gp_metric m, double value);

static inline struct gp_value *nvml_cached(struct nvml_device *device, enum gp_metric m)
{
    return &device->cache[m - GP_DEVICE__FIRST];
}

/* In rates.c. Appends the counters of the requested rates that are due to a call for fields, and
 * notes in `asked` which they are. Returns their number. */
size_t nvml_ask_rates(const struct nvml_device *device, const struct gp_metric_set *want,
                      uint64_t now_ns, nvmlFieldValue_t fields[NVML_RATES],
                      uint8_t asked[NVML_RATES]);
/* Turns the answers into rates. Returns the code that ended the session, or another one. */
nvmlReturn_t nvml_settle_rates(struct nvml_device *device, const nvmlFieldValue_t *fields,
                               const uint8_t *asked, size_t count);
/* In activity.c. Reads peaks and GPM into the device's cache. Returns NVML_SUCCESS, or the code
 * that ended the session. */
nvmlReturn_t nvml_read_activity(struct nvml_device *device, const struct gp_metric_set *want,
                                uint64_t now_ns);
void nvml_free_gpm(struct nvml_device *device);

/* In conf_compute.c. The host's confidential computing, read only if requested. */
void nvml_read_excluded(struct nvml_source *source, struct gp_value *out);
void nvml_read_conf_compute(struct nvml_source *source, const struct gp_metric_set *want,
                            struct gp_value host[GP_HOST__COUNT]);

/* False for impossible numbers: all ones (the driver's "not available"), or plain nonsense. They
 * become errors and are never shown. */
bool nvml_is_plausible(const struct nvml_device *device, enum gp_metric m,
                       const struct gp_value *v);

/* When to read a value with this status again. */
uint64_t nvml_ask_again_ns(enum gp_status status, enum gp_tier tier, uint64_t now_ns);

/* In sleep.c. Lists the PCI addresses of GPUs bound to the nvidia driver. They are sorted, which is
 * the order of NVML's indices. */
void nvml_list_bound(struct nvml_source *source);

/* Whether this GPU is asleep, so that a call would wake it; whether all are; whether the kernel may
 * put it to sleep at all (most servers forbid it); and of all of them together. */
bool nvml_is_asleep(const struct nvml_source *source, unsigned index);
bool nvml_all_asleep(const struct nvml_source *source);
bool nvml_may_sleep(const struct nvml_source *source, unsigned index);
enum gp_power nvml_power_state(const struct nvml_source *source);

/* Fills the reading of a sleeping GPU; and only its identity, as far as the kernel knows it. */
void nvml_describe_sleeper(const struct nvml_source *source, unsigned index,
                           struct gp_reading *reading);
void nvml_keep_identity(const struct nvml_source *source, unsigned index,
                        struct gp_reading *reading);

/* Caches the UUID that was read when attaching. */
void nvml_seed_uuid(struct nvml_device *device, uint64_t now_ns);

/* Copies the requested values from the cache; texts are copied into the arena of the reading. */
void nvml_copy_values(const struct nvml_device *device, const struct gp_metric_set *want,
                      struct gp_arena *arena, struct gp_value *values);

/* In past.c. What is known of the device with this UUID ("": of a new one) from an earlier session,
 * or room for it. It stays with the source. NULL: out of memory. */
struct nvml_past *nvml_take_past(struct nvml_source *source, const char *uuid);
void nvml_leave_past(struct nvml_source *source, struct nvml_past *past); /* NULL: nothing */
void nvml_free_pasts(struct nvml_source *source);

/* In mig_devices.c. A device that is not opened yet; NULL without memory. */
struct nvml_device *nvml_new_device(struct nvml_source *source, unsigned index, gp_call_name *call);

void nvml_free_mig_list(struct nvml_mig_list *list);

/* Updates device->mig from time to time. Returns NVML_SUCCESS, also for a GPU without
 * MIG, or the code that ended the session. */
nvmlReturn_t nvml_list_mig(struct nvml_device *device, uint64_t now_ns);

/* Makes the driver call; *count is the room in entries, and becomes the number of entries. */
typedef nvmlReturn_t (*nvml_ask_fn)(struct nvml_device *device, unsigned *count, void *entries,
                                    const void *ctx);

/* In fetch.c. Calls the driver, first with room for `room` entries, until there is enough. */
nvmlReturn_t nvml_fetch(struct nvml_device *device, struct nvml_buffer *buffer, unsigned room,
                        nvml_ask_fn ask, const void *ctx);

/* In processes.c. Fills reading->processes. Returns NVML_SUCCESS, or the code that ended the
 * session. */
nvmlReturn_t nvml_read_processes(struct nvml_device *device, const struct gp_want *want,
                                 struct gp_reading *reading);

/* In events.c. The functions of the same names in source.h. */
int nvml_watch(struct gp_source_device *device, unsigned name, gp_event_kinds kinds,
               gp_call_name *call, gp_event_kinds *ret_kinds);
int nvml_wait_event(struct gp_source *source, unsigned timeout_ms, gp_call_name *call,
                    struct gp_source_event *ret);

/* Frees the event set before the session ends. */
void nvml_end_events(struct nvml_source *source);

/* In list_readers.c. The number of fans, at most NVML_MAX_FANS. */
nvmlReturn_t nvml_count_fans(struct nvml_device *device, unsigned *ret);

/* In lists.c. Fills the requested reading->lists. Returns the same codes. */
nvmlReturn_t nvml_read_lists(struct nvml_device *device, const struct gp_want *want,
                             struct gp_reading *reading);
void nvml_forget_lists(struct nvml_device *device);

#endif
