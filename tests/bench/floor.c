/* The floor: what it costs to make the same driver calls and the same /proc reads as gpulse does
 * for a command, in the plainest C, serially, with nothing around it.
 * gpulse is measured against this program in the same run.
 *
 * floor LIBRARY                     once, as status
 * floor LIBRARY loop COUNT MS       again and again, as status --watch
 * floor LIBRARY screen COUNT MS     again and again, about as top when it shows rates: each tick
 *                                   reads the stat files of the first 60 processes, which must not
 *                                   change, and prints a line for each, and for each GPU
 * floor LIBRARY ps [COUNT]          as ps, so many times without a pause
 * floor LIBRARY table               once, as smi
 * floor LIBRARY csv                 once, as smi --query-gpu=timestamp,name,utilization.gpu,
 *                                   memory.used,temperature.gpu */
#include "abi/nvml.h"
#include "abi/nvml_fields.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { GPUS_MAX = 256, LIST_MAX = 4096 };

static struct {
#define X(branch, ret, name, args) ret(*name) args;
    NVML_FUNCTIONS(X)
#undef X
} api;

struct gpu {
    nvmlDevice_t handle;
    char uuid[NVML_DEVICE_UUID_V2_BUFFER_SIZE];
    char name[NVML_DEVICE_NAME_V2_BUFFER_SIZE];
    nvmlGpmSample_t samples[2];
};

static char output[4 << 20];
static size_t output_len;

static ssize_t read_file(unsigned pid, const char *name, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
    int fd = open(path, O_RDONLY);
    ssize_t n = fd >= 0 ? read(fd, text, size - 1) : -1;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n;
}

static const char *user_of(unsigned pid)
{
    static uid_t known_uid = (uid_t)-1;
    static char known_name[64];
    char path[64];
    struct stat st;
    snprintf(path, sizeof(path), "/proc/%u", pid);
    if (stat(path, &st) != 0)
        return NULL;
    if (st.st_uid != known_uid) {
        const struct passwd *entry = getpwuid(st.st_uid);
        snprintf(known_name, sizeof(known_name), "%s", entry ? entry->pw_name : "?");
        known_uid = st.st_uid;
    }
    return known_name;
}

static void add(const char *text)
{
    size_t n = strlen(text);
    if (output_len + n < sizeof(output)) {
        memcpy(output + output_len, text, n);
        output_len += n;
    }
}

static void list(nvmlDevice_t handle,
                 nvmlReturn_t (*fetch)(nvmlDevice_t, unsigned int *, nvmlProcessInfo_t *))
{
    static nvmlProcessInfo_t infos[LIST_MAX];
    unsigned count = LIST_MAX;
    if (fetch(handle, &count, infos) != NVML_SUCCESS)
        return;
    for (unsigned i = 0; i < count; i++) {
        char text[128];
        const char *user = user_of(infos[i].pid);
        snprintf(text, sizeof(text), " %s(%lluMiB)", user ? user : "?",
                 infos[i].usedGpuMemory >> 20);
        add(text);
    }
}

/* A line with what the columns of ps come from: user, stat, command line, container. */
static void list_processes(nvmlDevice_t handle,
                           nvmlReturn_t (*fetch)(nvmlDevice_t, unsigned int *, nvmlProcessInfo_t *))
{
    static nvmlProcessInfo_t infos[LIST_MAX];
    unsigned count = LIST_MAX;
    if (fetch(handle, &count, infos) != NVML_SUCCESS)
        return;
    for (unsigned i = 0; i < count; i++) {
        char stat[1024];
        char command[4096];
        char cgroup[8192];
        char text[256];
        const char *user = user_of(infos[i].pid);
        read_file(infos[i].pid, "stat", stat, sizeof(stat));
        read_file(infos[i].pid, "cmdline", command, sizeof(command));
        read_file(infos[i].pid, "cgroup", cgroup, sizeof(cgroup));
        const char *close = strrchr(stat, ')');
        snprintf(text, sizeof(text), "%u %s %lluMiB %.20s ", infos[i].pid, user ? user : "?",
                 infos[i].usedGpuMemory >> 20, close ? close : "");
        add(text);
        add(command);
        add(strstr(cgroup, "docker") ? " docker\n" : "\n");
    }
}

static void show_processes(struct gpu *gpu)
{
    nvmlMemory_v2_t memory = {.version = nvmlMemory_v2};
    static nvmlProcessUtilizationSample_t samples[LIST_MAX];
    unsigned count = LIST_MAX;
    api.nvmlDeviceGetMemoryInfo_v2(gpu->handle, &memory);
    api.nvmlDeviceGetProcessUtilization(gpu->handle, samples, &count, 0);
    list_processes(gpu->handle, api.nvmlDeviceGetComputeRunningProcesses_v3);
    list_processes(gpu->handle, api.nvmlDeviceGetGraphicsRunningProcesses_v3);
    list_processes(gpu->handle, api.nvmlDeviceGetMPSComputeRunningProcesses_v3);
}

static void show(struct gpu *gpu, unsigned index)
{
    nvmlMemory_v2_t memory = {.version = nvmlMemory_v2};
    nvmlUtilization_t utilization = {0};
    unsigned temperature = 0;
    char text[256];
    api.nvmlDeviceGetMemoryInfo_v2(gpu->handle, &memory);
    api.nvmlDeviceGetUtilizationRates(gpu->handle, &utilization);
    api.nvmlDeviceGetTemperature(gpu->handle, NVML_TEMPERATURE_GPU, &temperature);
    snprintf(text, sizeof(text), "[%u] %s | %u C, %u %% | %llu / %llu MiB |", index, gpu->name,
             temperature, utilization.gpu, memory.used >> 20, memory.total >> 20);
    add(text);
    list(gpu->handle, api.nvmlDeviceGetComputeRunningProcesses_v3);
    list(gpu->handle, api.nvmlDeviceGetGraphicsRunningProcesses_v3);
    list(gpu->handle, api.nvmlDeviceGetMPSComputeRunningProcesses_v3);
    add("\n");
}

static void show_csv(struct gpu *gpu)
{
    nvmlMemory_v2_t memory = {.version = nvmlMemory_v2};
    nvmlUtilization_t utilization = {0};
    unsigned temperature = 0;
    char text[256];
    api.nvmlDeviceGetMemoryInfo_v2(gpu->handle, &memory);
    api.nvmlDeviceGetUtilizationRates(gpu->handle, &utilization);
    api.nvmlDeviceGetTemperature(gpu->handle, NVML_TEMPERATURE_GPU, &temperature);
    snprintf(text, sizeof(text), "%s, %u %%, %llu MiB, %u\n", gpu->name, utilization.gpu,
             memory.used >> 20, temperature);
    add(text);
}

static void list_names(nvmlDevice_t handle,
                       nvmlReturn_t (*fetch)(nvmlDevice_t, unsigned int *, nvmlProcessInfo_t *))
{
    static nvmlProcessInfo_t infos[LIST_MAX];
    unsigned count = LIST_MAX;
    if (fetch(handle, &count, infos) != NVML_SUCCESS)
        return;
    for (unsigned i = 0; i < count; i++) {
        char name[256] = "";
        char text[320];
        api.nvmlSystemGetProcessName(infos[i].pid, name, sizeof(name));
        snprintf(text, sizeof(text), "%u %s %lluMiB\n", infos[i].pid, name,
                 infos[i].usedGpuMemory >> 20);
        add(text);
    }
}

static void show_table(struct gpu *gpu, unsigned index)
{
    nvmlMemory_v2_t memory = {.version = nvmlMemory_v2};
    nvmlUtilization_t utilization = {0};
    nvmlPciInfo_t pci = {{0}};
    nvmlEnableState_t persistence = 0, display = 0, ecc = 0, ecc_pending = 0;
    nvmlComputeMode_t compute = 0;
    nvmlPstates_t pstate = 0;
    unsigned long long errors = 0;
    unsigned fan = 0, temperature = 0, power = 0, limit = 0;
    char text[512];
    api.nvmlDeviceValidateInforom(gpu->handle);
    api.nvmlDeviceGetPersistenceMode(gpu->handle, &persistence);
    api.nvmlDeviceGetPciInfo_v3(gpu->handle, &pci);
    api.nvmlDeviceGetDisplayActive(gpu->handle, &display);
    api.nvmlDeviceGetEccMode(gpu->handle, &ecc, &ecc_pending);
    api.nvmlDeviceGetTotalEccErrors(gpu->handle, NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
                                    NVML_VOLATILE_ECC, &errors);
    api.nvmlDeviceGetFanSpeed(gpu->handle, &fan);
    api.nvmlDeviceGetTemperature(gpu->handle, NVML_TEMPERATURE_GPU, &temperature);
    api.nvmlDeviceGetPerformanceState(gpu->handle, &pstate);
    api.nvmlDeviceGetPowerUsage(gpu->handle, &power);
    api.nvmlDeviceGetEnforcedPowerLimit(gpu->handle, &limit);
    api.nvmlDeviceGetMemoryInfo_v2(gpu->handle, &memory);
    api.nvmlDeviceGetUtilizationRates(gpu->handle, &utilization);
    api.nvmlDeviceGetComputeMode(gpu->handle, &compute);
    snprintf(text, sizeof(text), "%u %s %u %s %u %llu %u %uC P%u %uW/%uW %lluMiB/%lluMiB %u%% %u\n",
             index, gpu->name, (unsigned)persistence, pci.busId, (unsigned)display, errors, fan,
             temperature, (unsigned)pstate, power / 1000, limit / 1000, memory.used >> 20,
             memory.total >> 20, utilization.gpu, (unsigned)compute);
    add(text);
    list_names(gpu->handle, api.nvmlDeviceGetComputeRunningProcesses_v3);
    list_names(gpu->handle, api.nvmlDeviceGetGraphicsRunningProcesses_v3);
    list_names(gpu->handle, api.nvmlDeviceGetMPSComputeRunningProcesses_v3);
}

/* ---- as top ---- */

enum {
    ROWS = 60,     /* processes that a screen has room for */
    SELDOM = 5,    /* what changes seldom is read in every fifth tick, */
    SOMETIMES = 2, /* and what the kernel computes in every second one */
};

/* What remains open: its file, from the beginning. */
static const char *read_again(int *fd, const char *path)
{
    static char text[8192];
    if (*fd < 0)
        *fd = open(path, O_RDONLY);
    ssize_t n = *fd >= 0 ? pread(*fd, text, sizeof(text) - 1, 0) : -1;
    text[n > 0 ? n : 0] = '\0';
    return text;
}

/* A line for each process on the screen, of its stat file. */
static void screen_processes(struct gpu *gpu)
{
    static nvmlProcessInfo_t infos[LIST_MAX];
    static struct {
        unsigned pid;
        int fd;
    } rows[ROWS];
    static size_t row_count;
    unsigned count = LIST_MAX;
    if (api.nvmlDeviceGetComputeRunningProcesses_v3(gpu->handle, &count, infos) != NVML_SUCCESS)
        return;
    for (unsigned i = 0; i < count; i++) {
        char path[64];
        char text[256];
        size_t row = 0;
        while (row < row_count && rows[row].pid != infos[i].pid)
            row++;
        if (row == ROWS)
            continue;
        if (row == row_count) {
            rows[row].pid = infos[i].pid;
            rows[row].fd = -1;
            row_count++;
        }
        snprintf(path, sizeof(path), "/proc/%u/stat", infos[i].pid);
        const char *close = strrchr(read_again(&rows[row].fd, path), ')');
        snprintf(text, sizeof(text), "%u %lluMiB %.40s\n", infos[i].pid,
                 infos[i].usedGpuMemory >> 20, close ? close : "");
        add(text);
    }
}

static void screen_seldom(struct gpu *gpu)
{
    static nvmlProcessInfo_t infos[LIST_MAX];
    unsigned n[4];
    unsigned count = LIST_MAX;
    unsigned long long errors;
    api.nvmlDeviceGetGraphicsRunningProcesses_v3(gpu->handle, &count, infos);
    count = LIST_MAX;
    api.nvmlDeviceGetMPSComputeRunningProcesses_v3(gpu->handle, &count, infos);
    api.nvmlDeviceGetTotalEccErrors(gpu->handle, NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
                                    NVML_VOLATILE_ECC, &errors);
    api.nvmlDeviceGetRemappedRows(gpu->handle, &n[0], &n[1], &n[2], &n[3]);
    api.nvmlDeviceGetCurrPcieLinkWidth(gpu->handle, &n[0]);
    api.nvmlDeviceGetCurrPcieLinkGeneration(gpu->handle, &n[0]);
    api.nvmlDeviceGetEnforcedPowerLimit(gpu->handle, &n[0]);
    api.nvmlDeviceGetEncoderUtilization(gpu->handle, &n[0], &n[1]);
    api.nvmlDeviceGetDecoderUtilization(gpu->handle, &n[0], &n[1]);
    api.nvmlDeviceGetMigMode(gpu->handle, &n[0], &n[1]);
}

static double screen_sm(struct gpu *gpu, long tick)
{
    static nvmlGpmMetricsGet_t get;
    nvmlGpmSample_t *newest = &gpu->samples[tick % 2];
    if (!*newest && api.nvmlGpmSampleAlloc(newest) != NVML_SUCCESS)
        return 0;
    get.version = NVML_GPM_METRICS_GET_VERSION;
    get.numMetrics = 1;
    get.metrics[0].metricId = 2; /* NVML_GPM_METRIC_SM_UTIL */
    get.sample1 = gpu->samples[(tick + 1) % 2];
    get.sample2 = *newest;
    if (api.nvmlGpmSampleGet(gpu->handle, *newest) != NVML_SUCCESS || !get.sample1 ||
        api.nvmlGpmMetricsGet(&get) != NVML_SUCCESS)
        return 0;
    return get.metrics[0].value;
}

static void show_screen(struct gpu *gpu, unsigned index, long tick)
{
    static nvmlProcessUtilizationSample_t shares[LIST_MAX];
    nvmlFieldValue_t fields[] = {
        {.fieldId = NVML_FI_DEV_MEMORY_TEMP},
        {.fieldId = NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, .scopeId = UINT_MAX},
        {.fieldId = NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, .scopeId = UINT_MAX},
        {.fieldId = NVML_FI_DEV_PCIE_COUNT_TX_BYTES},
        {.fieldId = NVML_FI_DEV_PCIE_COUNT_RX_BYTES},
    };
    enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };
    nvmlMemory_v2_t memory = {.version = nvmlMemory_v2};
    nvmlUtilization_t utilization = {0};
    nvmlPstates_t pstate = 0;
    unsigned temperature = 0, power = 0, sm = 0, mem = 0, share_count = LIST_MAX;
    unsigned long long reasons = 0;
    char text[256];
    api.nvmlDeviceGetUtilizationRates(gpu->handle, &utilization);
    api.nvmlDeviceGetMemoryInfo_v2(gpu->handle, &memory);
    api.nvmlDeviceGetTemperature(gpu->handle, NVML_TEMPERATURE_GPU, &temperature);
    api.nvmlDeviceGetPowerUsage(gpu->handle, &power);
    api.nvmlDeviceGetClockInfo(gpu->handle, NVML_CLOCK_SM, &sm);
    api.nvmlDeviceGetClockInfo(gpu->handle, NVML_CLOCK_MEM, &mem);
    api.nvmlDeviceGetPerformanceState(gpu->handle, &pstate);
    api.nvmlDeviceGetCurrentClocksThrottleReasons(gpu->handle, &reasons);
    api.nvmlDeviceGetFieldValues(gpu->handle, FIELDS, fields);
    api.nvmlDeviceGetProcessUtilization(gpu->handle, shares, &share_count, 0);
    if (tick % SELDOM == 0)
        screen_seldom(gpu);
    snprintf(text, sizeof(text),
             "%u %s %u %% %llu / %llu MiB %u C %u W %u MHz %u MHz P%u %llx %.0f %llu %llu %u\n",
             index, gpu->name, utilization.gpu, memory.used >> 20, memory.total >> 20, temperature,
             power / 1000, sm, mem, (unsigned)pstate, reasons, screen_sm(gpu, tick),
             fields[1].value.ullVal, fields[3].value.ullVal, share_count);
    add(text);
    screen_processes(gpu);
}

/* The load of the host. */
static void show_host(long tick)
{
    static const char *const paths[] = {"/proc/stat", "/proc/meminfo"};
    static int fds[] = {-1, -1};
    if (tick % SOMETIMES != 0)
        return;
    for (int i = 0; i < 2; i++) {
        const char *text = read_again(&fds[i], paths[i]);
        char line[256];
        snprintf(line, sizeof(line), "%.*s\n", (int)strcspn(text, "\n"), text);
        add(line);
    }
}

static void attach(struct gpu *gpu, unsigned index)
{
    unsigned current;
    unsigned pending;
    api.nvmlDeviceGetHandleByIndex_v2(index, &gpu->handle);
    api.nvmlDeviceGetUUID(gpu->handle, gpu->uuid, sizeof(gpu->uuid));
    api.nvmlDeviceGetName(gpu->handle, gpu->name, sizeof(gpu->name));
    api.nvmlDeviceGetMigMode(gpu->handle, &current, &pending);
}

int main(int argc, char **argv)
{
    static struct gpu gpus[GPUS_MAX];
    char driver[NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE];
    unsigned count = 0;
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (!library)
        return 1;
#define X(branch, ret, name, args)                                                                 \
    {                                                                                              \
        void *symbol = dlsym(library, #name);                                                      \
        memcpy(&api.name, &symbol, sizeof(symbol));                                                \
    }
    NVML_FUNCTIONS(X)
#undef X
    if (api.nvmlInit_v2() != NVML_SUCCESS || api.nvmlDeviceGetCount_v2(&count) != NVML_SUCCESS)
        return 1;
    api.nvmlSystemGetDriverVersion(driver, sizeof(driver));
    count = count < GPUS_MAX ? count : GPUS_MAX;
    for (unsigned i = 0; i < count; i++)
        attach(&gpus[i], i);
    const char *what = argc > 2 ? argv[2] : "";
    const int is_screen = strcmp(what, "screen") == 0;
    const int is_loop = is_screen || strcmp(what, "loop") == 0;
    long rounds = argc > 4 && is_loop ? strtol(argv[3], NULL, 10) : 1;
    long ms = rounds > 1 ? strtol(argv[4], NULL, 10) : 0;
    if (argc > 3 && strcmp(what, "ps") == 0)
        rounds = strtol(argv[3], NULL, 10);
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (long r = 0; r < rounds; r++) {
        output_len = 0;
        add(driver);
        add("\n");
        for (unsigned i = 0; i < count; i++) {
            if (strcmp(what, "table") == 0)
                show_table(&gpus[i], i);
            else if (strcmp(what, "ps") == 0)
                show_processes(&gpus[i]);
            else if (strcmp(what, "csv") == 0)
                show_csv(&gpus[i]);
            else if (is_screen)
                show_screen(&gpus[i], i, r);
            else
                show(&gpus[i], i);
        }
        if (is_screen)
            show_host(r);
        if (write(STDOUT_FILENO, output, output_len) < 0)
            return 1;
        if (r + 1 == rounds)
            break;
        next.tv_nsec += ms % 1000 * 1000000;
        next.tv_sec += ms / 1000 + next.tv_nsec / 1000000000;
        next.tv_nsec %= 1000000000;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
    }
    api.nvmlShutdown();
    return 0;
}
