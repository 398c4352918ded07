/* A driver library that was not made for gpulse, and that forgives nothing: a call before nvmlInit
 * or after nvmlShutdown, in a forked child, with a handle that it did not give out in this session,
 * or with a version word that no struct has, ends the process with a message. Layouts are written
 * down here once more, apart from abi/.
 *
 * check_foreign.py compiles it: VERSION is the driver's version, the other macros are what is
 * special about a variant. Everything else that a driver of its age exports is made by the same
 * script and answers NOT_SUPPORTED through strict_unsupported(). */
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum {
    OK = 0,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NO_PERMISSION = 4,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    GPU_IS_LOST = 15,
    VERSION_MISMATCH = 25,
};

enum { GPUS = 2, PROCESSES = 5 };

#ifndef WIDE
#define WIDE 0 /* the _v3 lists write 32 bytes an entry */
#endif
#ifndef NO_MEMORY_INFO
#define NO_MEMORY_INFO 0
#endif
#ifndef REFUSES_VERSIONS
#define REFUSES_VERSIONS 0
#endif
#ifndef GROWS
#define GROWS 0
#endif
#ifndef GARBAGE
#define GARBAGE 0
#endif

static struct {
    pthread_mutex_t lock;
    unsigned references;
    unsigned session;
    pid_t pid;
    unsigned calls_on[GPUS];
    unsigned fetches;
} lib = {.lock = PTHREAD_MUTEX_INITIALIZER};

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)fprintf(stderr, "strict library: ");
    (void)vfprintf(stderr, format, args);
    (void)fprintf(stderr, "\n");
    va_end(args);
    abort();
}

static void check_running(const char *name)
{
    if (lib.references == 0)
        die("%s without a session", name);
    if (getpid() != lib.pid)
        die("%s in a child process", name);
}

/* A handle is a number with the session in it. */
static void *make_handle(unsigned gpu)
{
    return (void *)(uintptr_t)(0x5700000000000000u | (uint64_t)lib.session << 8 | (gpu + 1));
}

static unsigned check_handle(const char *name, const void *handle)
{
    check_running(name);
    for (unsigned gpu = 0; gpu < GPUS; gpu++)
        if (handle == make_handle(gpu))
            return gpu;
    die("%s with the handle %p", name, handle);
}

/* GPU 1 is, after $STRICT_LOST_AFTER calls on it. */
static bool is_lost(unsigned gpu, unsigned calls)
{
    const char *text = getenv("STRICT_LOST_AFTER");
    unsigned long most = text ? strtoul(text, NULL, 10) : 0;
    return most > 0 && gpu == 1 && calls > most;
}

/* Each call on a device begins with this. */
static int enter(const char *name, const void *handle)
{
    unsigned gpu = check_handle(name, handle);
    unsigned calls = __atomic_add_fetch(&lib.calls_on[gpu], 1, __ATOMIC_RELAXED);
    return is_lost(gpu, calls) ? GPU_IS_LOST : OK;
}

#define ENTER(handle)                                                                              \
    do {                                                                                           \
        int code_ = enter(__func__, handle);                                                       \
        if (code_ != OK)                                                                           \
            return code_;                                                                          \
    } while (0)

/* A version word must be one that a struct has had; this driver may still not know it. */
static int check_version(const char *name, unsigned word, unsigned known)
{
    if (word != known)
        die("%s with the version word 0x%08x instead of 0x%08x", name, word, known);
    return REFUSES_VERSIONS ? VERSION_MISMATCH : OK;
}

/* Of the functions that have a handle first, and of those that have none. */
int strict_unsupported(const char *name, const void *handle, bool of_device);

int strict_unsupported(const char *name, const void *handle, bool of_device)
{
    if (of_device) {
        int code = enter(name, handle);
        return code == OK ? NOT_SUPPORTED : code;
    }
    check_running(name);
    return NOT_SUPPORTED;
}

/* ---- sessions ---- */

EXPORT int nvmlInit_v2(void)
{
    (void)pthread_mutex_lock(&lib.lock);
    if (lib.references++ == 0) {
        lib.session++;
        lib.pid = getpid();
        memset(lib.calls_on, 0, sizeof(lib.calls_on));
    }
    (void)pthread_mutex_unlock(&lib.lock);
    return OK;
}

EXPORT int nvmlShutdown(void)
{
    check_running(__func__);
    lib.references--;
    return OK;
}

static int put(const char *text, char *out, unsigned length)
{
    if (!out)
        die("a text without a buffer");
    if (strlen(text) >= length)
        return INSUFFICIENT_SIZE;
    (void)strcpy(out, text);
    return OK;
}

EXPORT int nvmlSystemGetDriverVersion(char *out, unsigned length)
{
    check_running(__func__);
    return put(VERSION, out, length);
}

EXPORT int nvmlSystemGetNVMLVersion(char *out, unsigned length)
{
    check_running(__func__);
    return put("11." VERSION, out, length);
}

EXPORT int nvmlSystemGetCudaDriverVersion(int *out)
{
    check_running(__func__);
    *out = 11040;
    return OK;
}

EXPORT int nvmlDeviceGetCount_v2(unsigned *out)
{
    check_running(__func__);
    *out = GPUS;
    return OK;
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **out)
{
    check_running(__func__);
    if (index >= GPUS)
        return INVALID_ARGUMENT;
    if (is_lost(index, lib.calls_on[index]))
        return GPU_IS_LOST;
    *out = make_handle(index);
    return OK;
}

/* ---- values ---- */

EXPORT int nvmlDeviceGetUUID(void *device, char *out, unsigned length)
{
    ENTER(device);
    return put(device == make_handle(0) ? "GPU-5f1e0000-0000-0000-0000-000000000000"
                                        : "GPU-5f1e0000-0000-0000-0000-000000000001",
               out, length);
}

EXPORT int nvmlDeviceGetName(void *device, char *out, unsigned length)
{
    ENTER(device);
    return put(GARBAGE ? "Orin (nvgpu)\x1b[31m\xff" : "Some GPU", out, length);
}

EXPORT int nvmlDeviceGetTemperature(void *device, unsigned sensor, unsigned *out)
{
    ENTER(device);
    if (sensor != 0)
        die("there is no sensor %u", sensor);
    *out = GARBAGE ? 4294967288u : 47;
    return OK;
}

EXPORT int nvmlDeviceGetPowerUsage(void *device, unsigned *out)
{
    ENTER(device);
    *out = GARBAGE ? 0xffffffffu : 71250;
    return OK;
}

struct memory {
    unsigned long long total, free, used;
};

struct memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};

EXPORT int nvmlDeviceGetMemoryInfo(void *device, struct memory *out)
{
    ENTER(device);
    *out = NO_MEMORY_INFO ? (struct memory){0, 0, 0}
                          : (struct memory){8ull << 30, 5ull << 30, 3ull << 30};
    return NO_MEMORY_INFO ? NOT_SUPPORTED : OK;
}

#if BRANCH >= 510
EXPORT int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory_v2 *out)
{
    ENTER(device);
    int code = check_version(__func__, out->version, 0x02000028u);
    if (code != OK)
        return code;
    unsigned version = out->version;
    *out = NO_MEMORY_INFO
               ? (struct memory_v2){.version = version}
               : (struct memory_v2){version, 8ull << 30, 1ull << 29, 5ull << 30, 5ull << 29};
    return NO_MEMORY_INFO ? NOT_SUPPORTED : OK;
}
#endif

struct utilization {
    unsigned gpu, memory;
};

EXPORT int nvmlDeviceGetUtilizationRates(void *device, struct utilization *out)
{
    ENTER(device);
    *out = GARBAGE ? (struct utilization){4711, 255} : (struct utilization){63, 41};
    return OK;
}

struct field {
    unsigned id, scope;
    long long timestamp, latency;
    unsigned type;
    int code;
    union {
        double d;
        unsigned u;
        unsigned long long ull;
    } value;
};

EXPORT int nvmlDeviceGetFieldValues(void *device, int count, struct field *fields)
{
    ENTER(device);
    if (count <= 0 || count > 4096)
        die("%d fields", count);
    for (int i = 0; i < count; i++) {
        fields[i].code = GARBAGE ? OK : fields[i].id > 160 ? INVALID_ARGUMENT : NOT_SUPPORTED;
        fields[i].type = GARBAGE ? 99 : 1; /* a type that does not exist */
        memset(&fields[i].value, 0xee, sizeof(fields[i].value));
    }
    return OK;
}

/* ---- process lists ---- */

/* Pids that exist, or that could not. */
static unsigned pid_at(unsigned i)
{
    return GARBAGE ? (i % 2 ? 0 : 0xdeadbeefu + i) : (unsigned)getpid();
}

/* `*count` is what fits; it becomes what there is. Nothing is written beyond. */
static int give_list(unsigned *count, unsigned char *out, size_t stride, unsigned there)
{
    if (GROWS)
        there += __atomic_add_fetch(&lib.fetches, 1, __ATOMIC_RELAXED);
    if (!count || (*count > 0 && !out))
        die("a list of %u without a buffer", count ? *count : 0);
    unsigned room = *count;
    *count = there;
    if (room < there)
        return INSUFFICIENT_SIZE;
    memset(out, 0xee, stride * there);
    for (unsigned i = 0; i < there; i++) {
        unsigned pid = pid_at(i);
        unsigned long long bytes = GARBAGE ? UINT64_MAX : 256ull << 20;
        unsigned none[2] = {UINT32_MAX, UINT32_MAX};
        memcpy(out + i * stride, &pid, 4);
        memcpy(out + i * stride + 8, &bytes, 8);
        if (stride > 16)
            memcpy(out + i * stride + 16, none, 8);
    }
    return OK;
}

#define LIST(name, stride, there)                                                                  \
    EXPORT int name(void *device, unsigned *count, void *out)                                      \
    {                                                                                              \
        ENTER(device);                                                                             \
        return give_list(count, out, stride, there);                                               \
    }
LIST(nvmlDeviceGetComputeRunningProcesses, 16, 1)
LIST(nvmlDeviceGetGraphicsRunningProcesses, 16, 0)
#if BRANCH >= 455
LIST(nvmlDeviceGetComputeRunningProcesses_v2, 24, 1)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, 24, 0)
#endif
#if BRANCH >= 510
LIST(nvmlDeviceGetComputeRunningProcesses_v3, WIDE ? 32 : 24, WIDE || GARBAGE ? PROCESSES : 1)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, WIDE ? 32 : 24, 0)
#endif
