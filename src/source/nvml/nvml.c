/* The driver session: open, attach, read, close.
 *
 * nvmlInit_v2 attaches no GPU; the first handle call for each GPU does, and may take seconds. This
 * is therefore left to attach, which runs in parallel for all GPUs. Any handle call wakes a
 * sleeping GPU, and an open handle keeps it awake, so its sysfs file is checked first. */
#include "source/nvml/internal.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "base/utf8.h"

#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct nvml_source *to_nvml(struct gp_source *source)
{
    return (struct nvml_source *)source;
}

static struct nvml_device *to_device(struct gp_source_device *device)
{
    return (struct nvml_device *)device;
}

/* ---- open and close ---- */

static enum gp_power nvml_power(struct gp_source *base)
{
    return nvml_power_state(to_nvml(base));
}

/* The version in "NVRM version: NVIDIA UNIX x86_64 Kernel Module 535.161.07 …" (open modules: "…
 * Open Kernel Module for x86_64 595.80 …"): the first word after two blanks. */
static void kernel_module_version(const struct nvml_source *source, char *out, size_t size)
{
    char path[GP_PATH_SIZE];
    char text[512];
    out[0] = '\0';
    if ((source->config.simulated && !source->config.root) ||
        !gp_io_path(path, source->config.root, "/proc/driver/nvidia/version") ||
        gp_io_read(path, text, sizeof(text)) <= 0)
        return;
    const char *gap = strstr(text, "  ");
    if (gap)
        (void)snprintf(out, size, "%.*s", (int)strcspn(gap + 2, " \n"), gap + 2);
}

/* The simulated driver's details of an error: which machine it cannot load, and why. "" for a real
 * driver. */
static const char *simulator_error(const struct nvml_source *source)
{
    const char *(*error)(void) = NULL;
    void *symbol = source->config.simulated ? dlsym(source->api.library, "gpulse_sim_error") : NULL;
    memcpy(&error, &symbol, sizeof(symbol));
    return error ? error() : "";
}

static int init_error(const struct nvml_source *source, nvmlReturn_t rc, struct gp_err *err)
{
    static const struct {
        nvmlReturn_t rc;
        int code;
        const char *text;
    } causes[] = {
        {NVML_ERROR_DRIVER_NOT_LOADED, GP_EDRIVER,
         "the NVIDIA kernel module is not loaded; load it with: sudo modprobe nvidia"},
        {NVML_ERROR_NO_PERMISSION, GP_EPERM,
         "no permission to open the NVIDIA device files; check: ls -l /dev/nvidia*"},
        {NVML_ERROR_UNKNOWN, GP_EDRIVER,
         "the driver failed to start (Unknown Error); in a container this means that it lost "
         "access to /dev/nvidia* (its device cgroup changed): restart the container"},
    };
    if (*simulator_error(source))
        return gp_err_set(err, GP_EUSAGE, "%s", simulator_error(source));
    for (size_t i = 0; i < GP_ARRAY_LEN(causes); i++)
        if (causes[i].rc == rc)
            return gp_err_set(err, causes[i].code, "%s", causes[i].text);
    char module[32];
    kernel_module_version(source, module, sizeof(module));
    if (rc == NVML_ERROR_LIB_RM_VERSION_MISMATCH)
        return gp_err_set(
            err, GP_EDRIVER,
            "driver and library have different versions (kernel module: %s): the driver was "
            "updated while it was loaded; reboot, or reload the nvidia modules",
            module[0] ? module : "unknown");
    return gp_err_set(err, GP_EDRIVER, "cannot start NVML: %s (%d)", nvml_return_text(rc), (int)rc);
}

/* Adds NVML's own error text; it knows its version without a driver. */
static void add_driver_words(struct nvml_source *source, nvmlReturn_t rc, struct gp_err *err)
{
    if (!err)
        return;
    err->driver_code = (int)rc;
    (void)NVML_ASK(&source->api, nvmlSystemGetNVMLVersion, err->driver_library,
                   sizeof(err->driver_library));
}

/* Parses the driver version, which selects ABI rules that no symbol shows; 0.0 if unknown. NVML's
 * own version is the driver's after the CUDA version: 12.535.54.03. */
static void parse_version(struct nvml_source *source)
{
    const char *behind_cuda = strchr(source->nvml_version, '.');
    source->branch = source->minor = 0;
    if (sscanf(source->driver_version, "%u.%u", &source->branch, &source->minor) != 2 &&
        (!behind_cuda || sscanf(behind_cuda + 1, "%u.%u", &source->branch, &source->minor) != 2))
        source->branch = source->minor = 0;
}

static void read_versions(struct nvml_source *source)
{
    struct nvml_api *api = &source->api;
    int cuda = 0;
    kernel_module_version(source, source->kmd_version, sizeof(source->kmd_version));
    source->driver_version[0] = source->nvml_version[0] = source->cuda_version[0] = '\0';
    (void)NVML_ASK(api, nvmlSystemGetDriverVersion, source->driver_version,
                   sizeof(source->driver_version));
    (void)NVML_ASK(api, nvmlSystemGetNVMLVersion, source->nvml_version,
                   sizeof(source->nvml_version));
    parse_version(source);
    /* _v2 calls libcuda, which may be missing; the older call uses NVML's own number. */
    bool known = NVML_ASK(api, nvmlSystemGetCudaDriverVersion_v2, &cuda) == NVML_SUCCESS ||
                 NVML_ASK(api, nvmlSystemGetCudaDriverVersion, &cuda) == NVML_SUCCESS;
    if (known && cuda > 0)
        (void)snprintf(source->cuda_version, sizeof(source->cuda_version), "%d.%d", cuda / 1000,
                       cuda % 1000 / 10);
}

static void nvml_close(struct gp_source *base)
{
    struct nvml_source *source = to_nvml(base);
    nvml_end_events(source);
    if (source->initialised && NVML_FN(&source->api, nvmlShutdown))
        (void)NVML_FN(&source->api, nvmlShutdown)();
    source->initialised = false;
    /* Only after nvmlShutdown: until then, the driver may still call into the library. */
    nvml_unload(&source->api);
}

static int nvml_open(struct gp_source *base, unsigned *ret_count, struct gp_err *err)
{
    struct nvml_source *source = to_nvml(base);
    nvml_list_bound(source);
    if (nvml_all_asleep(source)) {
        /* Opens nothing while no GPU is awake; the driver version is the kernel module's. */
        kernel_module_version(source, source->kmd_version, sizeof(source->kmd_version));
        (void)snprintf(source->driver_version, sizeof(source->driver_version), "%s",
                       source->kmd_version);
        *ret_count = source->bound_count;
        return 0;
    }
    int r = nvml_load(&source->api, source->config.library, err);
    if (r < 0)
        return r;
    nvmlReturn_t rc = NVML_FN(&source->api, nvmlInit_v2)();
    source->initialised = rc == NVML_SUCCESS;
    unsigned count = 0;
    if (rc == NVML_SUCCESS)
        rc = NVML_ASK(&source->api, nvmlDeviceGetCount_v2, &count);
    if (rc != NVML_SUCCESS) {
        r = init_error(source, rc, err);
        if (r != GP_EUSAGE)
            add_driver_words(source, rc, err);
        nvml_close(base);
        return r;
    }
    read_versions(source);
    source->count = count;
    *ret_count = count;
    return 0;
}

static void set_text(struct gp_value *v, const char *text)
{
    gp_value_set_text(v, text && text[0] ? text : NULL, gp_clock_mono_ns());
}

static void nvml_read_host(struct gp_source *base, const struct gp_metric_set *want,
                           struct gp_value host[GP_HOST__COUNT])
{
    struct nvml_source *source = to_nvml(base);
    set_text(&host[GP_DRIVER_VERSION], source->driver_version);
    /* NVML does not start with a kernel module of another version. */
    set_text(&host[GP_KMD_VERSION],
             source->kmd_version[0] ? source->kmd_version : source->driver_version);
    set_text(&host[GP_CUDA_VERSION], source->cuda_version);
    set_text(&host[GP_NVML_VERSION], source->nvml_version);
    if (gp_metric_set_has(want, GP_EXCLUDED))
        nvml_read_excluded(source, &host[GP_EXCLUDED]);
    nvml_read_conf_compute(source, want, host);
}

/* ---- devices ---- */

static void fail_reading(struct gp_reading *reading, nvmlReturn_t rc, const char *call)
{
    enum gp_status status = nvml_return_status(rc);
    /* A failure to open a GPU cannot mean "not supported". */
    reading->status =
        status == GP_STATUS_UNSUPPORTED || status == GP_STATUS_OK ? GP_STATUS_ERROR : status;
    /* A GPU that fell off the bus returns UNKNOWN for its first call. */
    reading->needs_reinit = nvml_return_ends_session(rc) || rc == NVML_ERROR_UNKNOWN;
    reading->driver_code = (int)rc;
    (void)snprintf(reading->status_text, sizeof(reading->status_text), "%s (%s)",
                   nvml_return_text(rc), call);
}

static void nvml_detach(struct gp_source_device *base)
{
    struct nvml_device *device = to_device(base);
    if (!device)
        return;
    nvml_free_mig_list(&device->mig);
    nvml_free_gpm(device);
    nvml_forget_lists(device);
    gp_arena_fini(&device->arena);
    free(device->samples.entries);
    nvml_leave_past(device->source, device->past);
    free(device->visible.pids);
    free(device->visible_before.pids);
    free(device->room.list.entries);
    free(device->room.samples.entries);
    free(device->room.rows);
    free(device);
}

/* Notes that a GPU is being read, so that others do not query it if that read hangs. */
static void note_reading(struct nvml_source *source, unsigned index, uint64_t since_ns)
{
    if (index < NVML_BOUND_MAX)
        atomic_store_explicit(&source->reading_since_ns[index], since_ns, memory_order_relaxed);
}

static void note_answer(struct nvml_source *source, unsigned index, bool has_answered)
{
    if (index < NVML_BOUND_MAX)
        atomic_store_explicit(&source->has_answered[index], has_answered, memory_order_relaxed);
}

static int attach(struct nvml_source *source, unsigned index, gp_call_name *call,
                  struct gp_source_device **ret, struct gp_reading *reading)
{
    if (nvml_is_asleep(source, index)) {
        nvml_describe_sleeper(source, index, reading);
        return GP_EDRIVER;
    }
    if (!source->initialised) {
        /* It has just woken up: now the driver may be opened. */
        nvml_describe_sleeper(source, index, reading);
        reading->needs_reinit = true;
        return GP_EDRIVER;
    }
    struct nvml_device *device = nvml_new_device(source, index, call);
    if (!device) {
        fail_reading(reading, NVML_ERROR_MEMORY, "out of memory");
        return GP_ENOMEM;
    }
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetHandleByIndex_v2, index, &device->handle);
    const char *failed = "nvmlDeviceGetHandleByIndex_v2";
    if (rc == NVML_SUCCESS) {
        failed = "nvmlDeviceGetUUID";
        rc = NVML_CALL(device, nvmlDeviceGetUUID, device->handle, device->uuid,
                       (unsigned)sizeof(device->uuid));
        if (nvml_return_status(rc) == GP_STATUS_UNSUPPORTED)
            rc = NVML_SUCCESS; /* some SoC GPUs have none */
    }
    if (rc != NVML_SUCCESS) {
        fail_reading(reading, rc, failed);
        reading->refused = true;
        nvml_keep_identity(source, index, reading);
        nvml_detach((struct gp_source_device *)device);
        return GP_EDRIVER;
    }
    device->past = nvml_take_past(source, device->uuid);
    if (!device->past) {
        fail_reading(reading, NVML_ERROR_MEMORY, "out of memory");
        nvml_detach((struct gp_source_device *)device);
        return GP_ENOMEM;
    }
    nvml_seed_uuid(device, gp_clock_mono_ns());
    device->may_sleep = nvml_may_sleep(source, index);
    *ret = (struct gp_source_device *)device;
    return 0;
}

static int nvml_attach(struct gp_source *base, unsigned index, gp_call_name *call,
                       struct gp_source_device **ret, struct gp_reading *reading)
{
    note_answer(to_nvml(base), index, false);
    note_reading(to_nvml(base), index, gp_clock_mono_ns());
    int r = attach(to_nvml(base), index, call, ret, reading);
    note_answer(to_nvml(base), index, true);
    note_reading(to_nvml(base), index, 0);
    return r;
}

static const char *nvml_uuid(const struct gp_source_device *base)
{
    return ((const struct nvml_device *)base)->uuid;
}

/* ---- MIG ---- */

static nvmlReturn_t read_mig(struct nvml_device *device, const struct gp_want *want,
                             struct gp_reading *reading)
{
    nvmlReturn_t listed = nvml_list_mig(device, reading->time_ns);
    size_t count = listed == NVML_SUCCESS ? device->mig.count : 0;
    if (count == 0)
        return listed;
    reading->mig = gp_arena_alloc(&reading->arena, count, sizeof(*reading->mig));
    if (!reading->mig)
        return NVML_ERROR_MEMORY;
    struct gp_metric_set metrics = want->metrics;
    gp_metric_set_join(&metrics, &want->mig_metrics);
    for (size_t i = 0; i < count; i++) {
        struct nvml_device *mig = device->mig.devices[i];
        if (want->fresh)
            nvml_expire(mig);
        nvmlReturn_t rc = nvml_run_readers(mig, &metrics, reading->time_ns);
        if (rc == NVML_SUCCESS)
            rc = nvml_read_activity(mig, &metrics, reading->time_ns);
        if (rc != NVML_SUCCESS)
            return rc;
        nvml_copy_values(mig, &metrics, &reading->arena, reading->mig[i].values);
        reading->mig[i].index = mig->index;
        gp_value_set_int(gp_device_value(reading->mig[i].values, GP_MIG_INDEX), mig->index,
                         reading->time_ns);
        reading->mig_count++;
    }
    return NVML_SUCCESS;
}

/* ---- read ---- */

static void nvml_read(struct gp_source_device *base, const struct gp_want *want,
                      struct gp_reading *reading)
{
    struct nvml_device *device = to_device(base);
    reading->time_ns = gp_clock_mono_ns();
    if (device->may_sleep && nvml_is_asleep(device->source, device->index)) {
        nvml_describe_sleeper(device->source, device->index, reading);
        return;
    }
    reading->status = GP_STATUS_OK;
    note_reading(device->source, device->index, reading->time_ns);
    if (want->fresh)
        nvml_expire(device);
    nvmlReturn_t rc = nvml_run_readers(device, &want->metrics, reading->time_ns);
    if (rc == NVML_SUCCESS)
        rc = nvml_read_activity(device, &want->metrics, reading->time_ns);
    if (rc == NVML_SUCCESS && want->mig)
        rc = read_mig(device, want, reading);
    if (!want->processes && gp_metric_set_has(&want->metrics, GP_UTILIZATION_ENCODER))
        device->no_video = false; /* only the list of processes says whether one uses them */
    if (rc == NVML_SUCCESS && want->processes)
        rc = nvml_read_processes(device, want, reading);
    if (rc == NVML_SUCCESS && want->lists)
        rc = nvml_read_lists(device, want, reading);
    note_reading(device->source, device->index, 0);
    nvml_copy_values(device, &want->metrics, &reading->arena, reading->values);
    if (rc != NVML_SUCCESS)
        fail_reading(reading, rc, atomic_load_explicit(device->call, memory_order_relaxed));
}

static void nvml_free(struct gp_source *base)
{
    struct nvml_source *source = to_nvml(base);
    nvml_free_pasts(source);
    (void)pthread_mutex_destroy(&source->pasts_lock);
    (void)pthread_mutex_destroy(&source->topology);
    free(source);
}

struct gp_source *gp_nvml_new(const struct gp_nvml_config *config)
{
    static const struct gp_source_ops ops = {
        .open = nvml_open,
        .close = nvml_close,
        .read_host = nvml_read_host,
        .power = nvml_power,
        .attach = nvml_attach,
        .detach = nvml_detach,
        .uuid = nvml_uuid,
        .read = nvml_read,
        .watch = nvml_watch,
        .wait_event = nvml_wait_event,
        .free = nvml_free,
        .controls = &nvml_control_ops,
    };
    struct nvml_source *source = calloc(1, sizeof(*source));
    if (!source)
        return NULL;
    source->base.ops = &ops;
    source->config = *config;
    source->hides_processes = access("/proc/1", F_OK) != 0;
    (void)pthread_mutex_init(&source->topology, NULL);
    (void)pthread_mutex_init(&source->pasts_lock, NULL);
    return &source->base;
}
