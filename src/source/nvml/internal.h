/* Shared by the files of the NVML source only. */
#ifndef GP_SOURCE_NVML_INTERNAL_H
#define GP_SOURCE_NVML_INTERNAL_H

#include "abi/nvml.h"
#include "source/nvml/nvml.h"

#include <stdatomic.h>

/* Every function as a pointer, NULL where this driver does not have it. */
struct nvml_api {
    void *library;
#define X(branch, ret, name, args) ret(*name) args;
    NVML_FUNCTIONS(X)
#undef X
};

/* Calls a function that this driver may lack, and notes its name for the case that it hangs. */
#define NVML_CALL(device, name, ...)                                                               \
    ((device)->source->api.name                                                                    \
         ? (atomic_store_explicit((device)->call, #name, memory_order_relaxed),                    \
            (device)->source->api.name(__VA_ARGS__))                                               \
         : NVML_ERROR_FUNCTION_NOT_FOUND)

/* Loads the library and resolves every symbol. GP_EDRIVER names the library and the remedy. */
int nvml_load(struct nvml_api *api, const char *path, struct gp_err *err) GP_MUST_CHECK;
void nvml_unload(struct nvml_api *api);

/* The words for a return code, without asking the driver. */
const char *nvml_return_text(nvmlReturn_t rc);

/* The status that a return code gives to a value. */
enum gp_status nvml_return_status(nvmlReturn_t rc);

/* Codes after which the whole session is void: everything must be opened anew. */
bool nvml_return_ends_session(nvmlReturn_t rc);

enum { NVML_READERS_MAX = 256, NVML_MIG_MAX = 16, NVML_BOUND_MAX = 256 };

/* What is remembered of one reader on one device. */
struct nvml_reader_state {
    uint64_t next_ns; /* not before this moment again */
    bool done;        /* has answered; a static reader is then never run again */
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
    char nvml_version[NVML_SYSTEM_NVML_VERSION_BUFFER_SIZE];
    char cuda_version[16];
    bool wide_process_entries; /* driver 535.43 to 535.86: see processes.c */
};

/* What each process last used. The driver gives a process once per sample period of its own, and
 * nothing in between; a tick in between shows the last sample, not 0. */
struct nvml_samples {
    struct nvml_sample {
        nvmlProcessUtilizationSample_t raw;
        uint64_t seen_ns;
    } * entries;
    size_t count;
    size_t capacity;
    unsigned long long last_us; /* the newest time stamp of the driver */
};

struct nvml_mig_list {
    struct nvml_device *devices[NVML_MIG_MAX];
    size_t count;
    uint64_t next_ns; /* the list is asked for again from here on */
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
    struct gp_arena arena; /* text of static values */
    struct nvml_reader_state readers[NVML_READERS_MAX];
    struct gp_value cache[GP_DEVICE__COUNT]; /* the last answers */
    struct nvml_samples samples;
    struct nvml_mig_list mig;
};

/* readers.c: runs the readers that produce what is wanted and due, into the device's cache.
 * Returns NVML_SUCCESS, or the code that ended the session. */
nvmlReturn_t nvml_run_readers(struct nvml_device *device, const struct gp_metric_set *want,
                              uint64_t now_ns);

/* Puts the UUID that attaching has asked for into the cache: it is not asked again. */
void nvml_seed_uuid(struct nvml_device *device, uint64_t now_ns);

/* Copies the wanted values from the cache; text moves into the arena of the reading. */
void nvml_copy_values(const struct nvml_device *device, const struct gp_metric_set *want,
                      struct gp_arena *arena, struct gp_value *values);

/* processes.c: fills reading->processes. NVML_SUCCESS, or the code that ended the session. */
nvmlReturn_t nvml_read_processes(struct nvml_device *device, const struct gp_want *want,
                                 struct gp_reading *reading);

#endif
