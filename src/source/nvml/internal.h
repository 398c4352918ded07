/* Shared by the files of the NVML source only. */
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

/* A function of the library, NULL if this driver lacks it. It is looked up when it is first asked
 * for: a short command needs few of them. */
nvml_any_fn nvml_find(struct nvml_api *api, enum nvml_function function);
const char *nvml_function_name(enum nvml_function function);

#define NVML_FN(api, name) ((name##_fn)nvml_find(api, NVML_FN_##name))

/* Calls a function that this driver may lack. */
#define NVML_ASK(api, name, ...)                                                                   \
    (NVML_FN(api, name) ? NVML_FN(api, name)(__VA_ARGS__) : NVML_ERROR_FUNCTION_NOT_FOUND)

/* The same, and notes the function's name for the case that it hangs. */
#define NVML_NOTED(source, call, name, ...)                                                        \
    (atomic_store_explicit(call, #name, memory_order_relaxed),                                     \
     NVML_ASK(&(source)->api, name, __VA_ARGS__))
#define NVML_CALL(device, name, ...)                                                               \
    NVML_NOTED((device)->source, (device)->call, name, __VA_ARGS__)

/* The words for a return code, without asking the driver. */
const char *nvml_return_text(nvmlReturn_t rc);

/* The status that a return code gives to a value. */
enum gp_status nvml_return_status(nvmlReturn_t rc);

/* Codes after which the whole session is void: everything must be opened anew. */
bool nvml_return_ends_session(nvmlReturn_t rc);

enum {
    NVML_READERS_MAX = 288,
    NVML_MIG_MAX = 16,
    NVML_BOUND_MAX = 256,
    NVML_LIST_MAX = 65536,
};

/* The event set of a session: events.c. */
struct nvml_events {
    nvmlEventSet_t set; /* NULL: none yet */
    struct nvml_watched {
        nvmlDevice_t handle;
        unsigned name; /* what the caller calls it */
        unsigned long long bits;
    } * watched;
    size_t count;
};

struct nvml_source {
    struct gp_source base;
    struct gp_nvml_config config;
    struct nvml_api api;
    bool initialised;
    unsigned count;                 /* GPUs that the driver counts */
    char bound[NVML_BOUND_MAX][16]; /* PCI addresses of GPUs bound to the kernel module, sorted */
    unsigned bound_count;
    char driver_version[NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE];
    char kmd_version[32]; /* of the kernel module, "" if /proc does not tell */
    char nvml_version[NVML_SYSTEM_NVML_VERSION_BUFFER_SIZE];
    char cuda_version[16];
    char excluded[1024];    /* what is known of GPUs that the kernel module leaves alone */
    unsigned branch, minor; /* of driver_version: 580.95.05 is 580, 95; 0, 0 if it is not known */
    struct nvml_events events;
    pthread_mutex_t topology; /* see topology.c */
};

/* What each process last used. The driver gives a process once per sample period of its own, and
 * nothing in between; a tick in between shows the last sample, not 0. */
struct nvml_samples {
    struct nvml_sample {
        nvmlProcessUtilizationInfo_v1_t raw;
        uint64_t seen_ns;
    } * entries;
    size_t count;
    size_t capacity;
    unsigned long long last_us; /* the newest time stamp of the driver */
};

/* The processes of the last list that /proc shows, sorted. */
struct nvml_visible {
    uint32_t *pids;
    size_t count;
    unsigned turn; /* whose turn it is to be looked at again */
};

/* What the processes of a device have used of its energy since it was first asked for. */
struct nvml_energy {
    struct nvml_energy_share {
        uint32_t pid;
        double joules;
    } * shares; /* by pid, those of the last list */
    size_t count;
    double total_j;   /* the device's counter at the last look */
    uint64_t time_ns; /* 0: not looked at yet */
};

/* A counter at its last look, and how fast it grew until then. */
struct nvml_counter {
    uint64_t count;
    uint64_t time_ns; /* 0: not looked at yet */
    uint64_t next_ns; /* not before this moment again */
    struct gp_value per_s;
};

/* One of the driver's own series of samples. */
struct nvml_series {
    unsigned long long last_us; /* the newest sample seen, in the driver's time */
    uint64_t next_ns;
};

/* What was answered last, and that it stands until then. */
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

enum { NVML_RATES = 11, NVML_SERIES = 3 };

/* A list as it was last read. */
struct nvml_list {
    struct gp_list list;   /* its values are malloc'ed */
    struct gp_arena arena; /* their text */
    uint64_t next_ns;      /* not before this moment again */
    bool done;             /* a static list that was read */
};

struct nvml_mig_list {
    struct nvml_device *devices[NVML_MIG_MAX];
    size_t count;
    uint64_t next_ns; /* the list is asked for again from here on */
};

/* A text that the driver has told of a device. */
struct nvml_text {
    struct nvml_text *next;
    char s[];
};

/* struct gp_source_device of this source: a GPU, or a MIG instance of one. */
struct nvml_device {
    struct nvml_source *source;
    gp_call_name *call; /* see source.h */
    nvmlDevice_t handle;
    bool is_mig;
    unsigned index; /* the driver's: of the GPU, or of the MIG instance on its GPU */
    char uuid[NVML_DEVICE_UUID_V2_BUFFER_SIZE];
    bool may_sleep;        /* the kernel may suspend it: look before each read */
    struct gp_arena arena; /* of the texts */
    struct nvml_text *texts;
    /* of each reader, in arrays: a page of memory costs a short command more than a driver call */
    uint64_t not_before_ns[NVML_READERS_MAX];
    bool answered[NVML_READERS_MAX];         /* a static reader is then never run again */
    struct gp_value cache[GP_DEVICE__COUNT]; /* the last answers */
    struct nvml_samples samples;
    struct nvml_visible visible;
    struct nvml_energy energy;
    struct nvml_counter counters[NVML_RATES];
    struct nvml_series series[NVML_SERIES];
    struct nvml_refusal buffers[NVML_SAMPLINGTYPE_COUNT]; /* of samples, as wholes */
    struct nvml_gpm gpm;
    struct nvml_device *parent; /* of a MIG instance */
    struct nvml_mig_list mig;
    nvmlReturn_t activation; /* why a change of MIG mode could not be made at once */
    struct nvml_list lists[GP_LIST__COUNT];
    bool nvlink5;                            /* its bytes are counted in fields of their own */
    struct nvml_counter nvlink_counters[2];  /* all links together: sent, received */
    struct nvml_counter (*link_counters)[2]; /* of each, once they are listed; in the arena */
};

/* readers.c: runs the readers that produce what is wanted and due, into the device's cache.
 * Returns NVML_SUCCESS, or the code that ended the session. */
nvmlReturn_t nvml_run_readers(struct nvml_device *device, const struct gp_metric_set *want,
                              uint64_t now_ns);

/* Lets what the device has answered before be due again. */
void nvml_expire(struct nvml_device *device);

/* The moment before which a device that refused is not asked again; 0: at once. */
uint64_t nvml_refused_until(nvmlReturn_t rc, uint64_t now_ns);

/* The number of a field, of whatever type the driver says it is; false if it is none. */
bool nvml_field_number(const nvmlFieldValue_t *field, int64_t *ret);

/* The id that this driver gives to a field, 0 where that is not known: see abi/nvml_fields.h. */
unsigned nvml_field_id(const struct nvml_source *source, unsigned id);

/* activity.c: the growth per second of a counter that has this count now. `now_ns` is the moment of
 * the driver's answer: the time of the whole reading would count what came before it, too. Absent,
 * with words, on the first look and where the counter went back. */
const struct gp_value *nvml_growth(struct nvml_counter *counter, uint64_t count, uint64_t now_ns);

/* activity.c: rates, peaks and GPM, into the device's cache. NVML_SUCCESS, or the code that ended
 * the session. */
nvmlReturn_t nvml_read_activity(struct nvml_device *device, const struct gp_metric_set *want,
                                uint64_t now_ns);
void nvml_free_gpm(struct nvml_device *device);

/* conf_compute.c: the host's confidential computing, asked only where it is wanted. */
void nvml_read_excluded(struct nvml_source *source, struct gp_value *out);
void nvml_read_conf_compute(struct nvml_source *source, const struct gp_metric_set *want,
                            struct gp_value host[GP_HOST__COUNT]);

/* False for numbers that no GPU has: a driver's "not available" written as all ones, or plain
 * nonsense. Such a thing is an error, never a number on a screen. */
bool nvml_is_plausible(const struct nvml_device *device, enum gp_metric m,
                       const struct gp_value *v);

/* The moment from which on to ask again for what was answered with this status. */
uint64_t nvml_ask_again_ns(enum gp_status status, enum gp_tier tier, uint64_t now_ns);

/* nvml.c: whether this GPU sleeps: then a call to it would wake it. */
bool nvml_is_asleep(const struct nvml_source *source, unsigned index);

/* Puts the UUID that attaching has asked for into the cache: it is not asked again. */
void nvml_seed_uuid(struct nvml_device *device, uint64_t now_ns);

/* Copies the wanted values from the cache; text moves into the arena of the reading. */
void nvml_copy_values(const struct nvml_device *device, const struct gp_metric_set *want,
                      struct gp_arena *arena, struct gp_value *values);

/* nvml.c: brings device->mig up to date, now and then. NVML_SUCCESS, also for a GPU without MIG, or
 * the code that ended the session. */
nvmlReturn_t nvml_list_mig(struct nvml_device *device, uint64_t now_ns);

/* fetch.c: room for the entries of one of the driver's lists. */
struct nvml_buffer {
    void *entries; /* free() it */
    size_t entry_bytes;
    unsigned capacity, count;
};

/* Makes the driver call; *count is the room in entries, and becomes the number that there is. */
typedef nvmlReturn_t (*nvml_ask_fn)(struct nvml_device *device, unsigned *count, void *entries,
                                    const void *ctx);

/* Asks, with `room` for so many entries at first, until the room suffices. */
nvmlReturn_t nvml_fetch(struct nvml_device *device, struct nvml_buffer *buffer, unsigned room,
                        nvml_ask_fn ask, const void *ctx);

/* processes.c: fills reading->processes. NVML_SUCCESS, or the code that ended the session. */
nvmlReturn_t nvml_read_processes(struct nvml_device *device, const struct gp_want *want,
                                 struct gp_reading *reading);

/* events.c: the functions of the same names in source.h. */
int nvml_watch(struct gp_source_device *device, unsigned name, gp_call_name *call,
               gp_event_kinds *ret_kinds);
int nvml_wait_event(struct gp_source *source, unsigned timeout_ms, gp_call_name *call,
                    struct gp_source_event *ret);

/* Gives the event set back, before the session ends. */
void nvml_end_events(struct nvml_source *source);

/* list_readers.c: how many fans the GPU has, at most NVML_MAX_FANS. */
nvmlReturn_t nvml_count_fans(struct nvml_device *device, unsigned *ret);

/* lists.c: fills those of reading->lists that are wanted. As above. */
nvmlReturn_t nvml_read_lists(struct nvml_device *device, const struct gp_want *want,
                             struct gp_reading *reading);
void nvml_forget_lists(struct nvml_device *device);

#endif
