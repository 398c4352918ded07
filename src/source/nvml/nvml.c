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

enum { MIG_LIST_AGAIN_S = 5 };

#define BOUND_GPUS "/sys/bus/pci/drivers/nvidia"

static struct nvml_source *to_nvml(struct gp_source *source)
{
    return (struct nvml_source *)source;
}

static struct nvml_device *to_device(struct gp_source_device *device)
{
    return (struct nvml_device *)device;
}

/* ---- sleep ---- */

/* Reads a file from the sysfs directory of a GPU bound to the nvidia driver, named by PCI address.
 * */
static bool read_bound_file(const struct nvml_source *source, unsigned index, const char *file,
                            char *text, size_t size)
{
    char name[128];
    char path[GP_PATH_SIZE];
    (void)snprintf(name, sizeof(name), BOUND_GPUS "/%s/%s", source->bound[index], file);
    return gp_io_path(path, source->config.root, name) && gp_io_read(path, text, size) > 0;
}

static int compare_addresses(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Lists the PCI addresses of GPUs bound to the nvidia driver. They are sorted, which is the order
 * of NVML's indices. */
static void list_bound_gpus(struct nvml_source *source)
{
    char path[GP_PATH_SIZE];
    source->bound_count = 0;
    if ((source->config.simulated && !source->config.root) ||
        !gp_io_path(path, source->config.root, BOUND_GPUS))
        return;
    DIR *dir = opendir(path);
    if (!dir)
        return;
    const struct dirent *entry;
    while ((entry = readdir(dir)) && source->bound_count < NVML_BOUND_MAX)
        if (strlen(entry->d_name) == sizeof("0000:01:00.0") - 1 && entry->d_name[4] == ':')
            (void)snprintf(source->bound[source->bound_count++], sizeof(source->bound[0]), "%.12s",
                           entry->d_name);
    (void)closedir(dir);
    qsort(source->bound, source->bound_count, sizeof(source->bound[0]), compare_addresses);
}

static bool is_asleep(const struct nvml_source *source, unsigned index)
{
    char text[32];
    return read_bound_file(source, index, "power/runtime_status", text, sizeof(text)) &&
           strncmp(text, "suspended", 9) == 0;
}

static bool all_asleep(const struct nvml_source *source)
{
    for (unsigned i = 0; i < source->bound_count; i++)
        if (!is_asleep(source, i))
            return false;
    return source->bound_count > 0;
}

/* Whether the kernel may put this GPU to sleep at all; most servers forbid it. */
static bool may_sleep(const struct nvml_source *source, unsigned index)
{
    char text[32];
    return read_bound_file(source, index, "power/control", text, sizeof(text)) &&
           strncmp(text, "auto", 4) == 0;
}

static enum gp_power nvml_power(struct gp_source *base)
{
    const struct nvml_source *source = to_nvml(base);
    for (unsigned i = 0; i < source->bound_count; i++)
        if (!may_sleep(source, i))
            return GP_POWER_FIXED;
    if (source->bound_count == 0)
        return GP_POWER_FIXED;
    return all_asleep(source) ? GP_POWER_ASLEEP : GP_POWER_AWAKE;
}

static void keep(struct gp_reading *reading, enum gp_metric m, const char *text, size_t n)
{
    struct gp_strbuf safe = GP_STRBUF_INIT(512);
    gp_utf8_add_safe(&safe, text, n, 96);
    gp_value_set_text(gp_device_value(reading->values, m),
                      gp_arena_strdup(&reading->arena, safe.buf), reading->time_ns);
    gp_strbuf_fini(&safe);
}

/* Stores the rest of the line after `label`. A UUID of question marks was never read by the
 * driver. */
static void keep_line(struct gp_reading *reading, enum gp_metric m, const char *text,
                      const char *label)
{
    const char *at = strstr(text, label);
    if (!at)
        return;
    at += strlen(label);
    at += strspn(at, " \t");
    size_t n = strcspn(at, "\n");
    if (n > 0 && !memchr(at, '?', n))
        keep(reading, m, at, n);
}

/* Reads the identity of a GPU from the kernel module, without waking the GPU. */
static void keep_bound_identity(const struct nvml_source *source, unsigned index,
                                struct gp_reading *reading)
{
    char name[128];
    char path[GP_PATH_SIZE];
    char text[1024];
    /* NVML uses 8 digits for the PCI domain. */
    (void)snprintf(name, sizeof(name), "0000%s", source->bound[index]);
    for (char *c = name; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    keep(reading, GP_PCI_BUS_ID, name, strlen(name));
    (void)snprintf(name, sizeof(name), "/proc/driver/nvidia/gpus/%s/information",
                   source->bound[index]);
    if (!gp_io_path(path, source->config.root, name) || gp_io_read(path, text, sizeof(text)) <= 0)
        return;
    keep_line(reading, GP_NAME, text, "Model:");
    keep_line(reading, GP_UUID, text, "GPU UUID:");
}

static void describe_sleeper(const struct nvml_source *source, unsigned index,
                             struct gp_reading *reading)
{
    reading->status = GP_STATUS_ASLEEP;
    (void)snprintf(reading->status_text, sizeof(reading->status_text),
                   "asleep to save power; gpulse does not wake it up");
    keep_bound_identity(source, index, reading);
}

/* The kernel's list has the driver's order if both have the same number of GPUs. */
static bool is_bound(const struct nvml_source *source, unsigned index)
{
    return source->bound_count > index &&
           (!source->initialised || source->bound_count == source->count);
}

bool nvml_is_asleep(const struct nvml_source *source, unsigned index)
{
    return is_bound(source, index) && is_asleep(source, index);
}

/* ---- open and close ---- */

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
    list_bound_gpus(source);
    if (all_asleep(source)) {
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

static struct nvml_device *new_device(struct nvml_source *source, unsigned index,
                                      gp_call_name *call)
{
    struct nvml_device *device = calloc(1, sizeof(*device));
    if (device) {
        device->source = source;
        device->index = index;
        device->call = call;
    }
    return device;
}

static void free_mig_list(struct nvml_mig_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        nvml_free_gpm(list->devices[i]);
        gp_arena_fini(&list->devices[i]->arena);
        free(list->devices[i]);
    }
    list->count = 0;
}

static void nvml_detach(struct gp_source_device *base)
{
    struct nvml_device *device = to_device(base);
    if (!device)
        return;
    free_mig_list(&device->mig);
    nvml_free_gpm(device);
    nvml_forget_lists(device);
    gp_arena_fini(&device->arena);
    free(device->samples.entries);
    free(device->energy.shares);
    free(device->visible.pids);
    free(device);
}

/* Notes that a GPU is being read, so that others do not query it if that read hangs. */
static void note_reading(struct nvml_source *source, unsigned index, uint64_t since_ns)
{
    if (index < NVML_BOUND_MAX)
        atomic_store_explicit(&source->reading_since_ns[index], since_ns, memory_order_relaxed);
}

static int attach(struct nvml_source *source, unsigned index, gp_call_name *call,
                  struct gp_source_device **ret, struct gp_reading *reading)
{
    if (nvml_is_asleep(source, index)) {
        describe_sleeper(source, index, reading);
        return GP_EDRIVER;
    }
    if (!source->initialised) {
        /* It has just woken up: now the driver may be opened. */
        describe_sleeper(source, index, reading);
        reading->needs_reinit = true;
        return GP_EDRIVER;
    }
    struct nvml_device *device = new_device(source, index, call);
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
        if (is_bound(source, index))
            keep_bound_identity(source, index, reading);
        nvml_detach((struct gp_source_device *)device);
        return GP_EDRIVER;
    }
    nvml_seed_uuid(device, gp_clock_mono_ns());
    device->may_sleep = is_bound(source, index) && may_sleep(source, index);
    *ret = (struct gp_source_device *)device;
    return 0;
}

static int nvml_attach(struct gp_source *base, unsigned index, gp_call_name *call,
                       struct gp_source_device **ret, struct gp_reading *reading)
{
    note_reading(to_nvml(base), index, gp_clock_mono_ns());
    int r = attach(to_nvml(base), index, call, ret, reading);
    note_reading(to_nvml(base), index, 0);
    return r;
}

static const char *nvml_uuid(const struct gp_source_device *base)
{
    return ((const struct nvml_device *)base)->uuid;
}

/* ---- MIG ---- */

/* A MIG device in the driver's current list. */
struct mig_seen {
    nvmlDevice_t handle;
    unsigned index;
    char uuid[NVML_DEVICE_UUID_V2_BUFFER_SIZE];
};

/* Whether a code is neither an answer nor "does not exist". */
static bool is_failure(nvmlReturn_t rc)
{
    return rc != NVML_SUCCESS && nvml_return_status(rc) != GP_STATUS_UNSUPPORTED;
}

/* Returns NVML_SUCCESS, also for a GPU without MIG, or the code of a failed call: the instances are
 * then unknown. */
static nvmlReturn_t list_mig(struct nvml_device *device, struct mig_seen seen[NVML_MIG_MAX],
                             size_t *ret_count)
{
    unsigned max = 0;
    unsigned current = 0;
    unsigned pending = 0;
    size_t count = 0;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetMigMode, device->handle, &current, &pending);
    if (rc == NVML_SUCCESS && current == NVML_FEATURE_ENABLED)
        rc = NVML_CALL(device, nvmlDeviceGetMaxMigDeviceCount, device->handle, &max);
    for (unsigned i = 0; i < max && count < NVML_MIG_MAX && !is_failure(rc); i++) {
        struct mig_seen *mig = &seen[count];
        *mig = (struct mig_seen){.index = i};
        rc =
            NVML_CALL(device, nvmlDeviceGetMigDeviceHandleByIndex, device->handle, i, &mig->handle);
        if (rc == NVML_SUCCESS) /* indices may have gaps */
            rc = NVML_CALL(device, nvmlDeviceGetUUID, mig->handle, mig->uuid,
                           (unsigned)sizeof(mig->uuid));
        count += rc == NVML_SUCCESS;
    }
    *ret_count = count;
    return is_failure(rc) ? rc : NVML_SUCCESS;
}

/* Handles are reused for other instances; the UUID distinguishes them. */
nvmlReturn_t nvml_list_mig(struct nvml_device *device, uint64_t now_ns)
{
    struct nvml_mig_list *list = &device->mig;
    struct mig_seen seen[NVML_MIG_MAX];
    size_t count;
    if (now_ns < list->next_ns)
        return NVML_SUCCESS;
    list->next_ns = now_ns + MIG_LIST_AGAIN_S * GP_NS_PER_S;
    nvmlReturn_t rc = list_mig(device, seen, &count);
    if (rc != NVML_SUCCESS) {
        list->next_ns = 0; /* the previous list stays, and is checked again */
        return nvml_return_ends_session(rc) ? rc : NVML_SUCCESS;
    }
    bool same = count == list->count;
    for (size_t i = 0; same && i < count; i++)
        same = list->devices[i]->handle == seen[i].handle &&
               strcmp(list->devices[i]->uuid, seen[i].uuid) == 0;
    if (same)
        return NVML_SUCCESS;
    free_mig_list(list);
    for (size_t i = 0; i < count; i++) {
        struct nvml_device *mig = new_device(device->source, seen[i].index, device->call);
        if (!mig)
            break;
        mig->is_mig = true;
        mig->parent = device;
        mig->handle = seen[i].handle;
        memcpy(mig->uuid, seen[i].uuid, sizeof(mig->uuid));
        nvml_seed_uuid(mig, now_ns);
        list->devices[list->count++] = mig;
    }
    return NVML_SUCCESS;
}

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
    if (device->may_sleep && is_asleep(device->source, device->index)) {
        describe_sleeper(device->source, device->index, reading);
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
    (void)pthread_mutex_destroy(&to_nvml(base)->topology);
    free(base);
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
    (void)pthread_mutex_init(&source->topology, NULL);
    return &source->base;
}
