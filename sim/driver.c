/* Calls take no lock: the machine is published through one atomic pointer and never changes. A call
 * keeps it in memory by being counted in `active`. A machine that was shut down is freed by a later
 * initialization that finds no call in progress. So a call that hangs for 45 s (a fault) blocks no
 * other call, and its machine stays valid. */
#include "sim/driver.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/outfile.h"
#include "sim/client.h"
#include "sim/hosttree.h"
#include "sim/mig.h"
#include "sim/setting.h"
#include "sim/strict.h"
#include "sim/unplayed.h"
#include "sim/withhold.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The state of one initialization. */
struct session {
    struct sim_machine *machine;
    struct sim_live live;
    struct sim_hosttree *tree; /* NULL: nobody reads it */
    unsigned int generation;
    atomic_ulong calls;    /* number of calls so far */
    unsigned long failing; /* index of the call that fails, counted from 1; 0: none */
    nvmlReturn_t failure;
    bool reversed;        /* the GPUs are in reverse order */
    struct session *next; /* the next retired one */
};

static struct {
    pthread_mutex_t lock; /* for initialization and shutdown */
    _Atomic(struct session *) current;
    struct session *retired;
    atomic_uint active; /* number of calls in progress */
    unsigned int references;
    unsigned int generations;
    _Atomic(pid_t) process; /* that called nvmlInit */
    char error[400];
    char library[NVML_SYSTEM_NVML_VERSION_BUFFER_SIZE]; /* its version, after a failed init */
    char root[GP_PATH_SIZE];                            /* of the host's files, if they are read */
    atomic_ullong calls[SIM_FN_COUNT];
} driver = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ------------------------------------------------------------------------- handles */

/* A handle is a number, never an address: [16 tag][16 generation][16 MIG device + 1][16 GPU]. So
 * garbage can be detected, and so can handles of an earlier initialization. */
static const uint64_t handle_tag = UINT64_C(0x4750) << 48;

static nvmlDevice_t make_handle(unsigned int generation, const struct sim_device *device)
{
    const struct sim_device *gpu = device->parent ? device->parent : device;
    uint64_t mig = device->parent ? sim_mig_handle(device) : 0;
    uint64_t bits = handle_tag | (uint64_t)(generation & 0xffff) << 32 | mig << 16 | gpu->index;
    return (nvmlDevice_t)(uintptr_t)bits;
}

static struct sim_device *find_handle(const struct session *session, nvmlDevice_t handle)
{
    uint64_t bits = (uint64_t)(uintptr_t)handle;
    size_t gpu = bits & 0xffff, mig = bits >> 16 & 0xffff;
    if (bits >> 48 != handle_tag >> 48 || (bits >> 32 & 0xffff) != (session->generation & 0xffff) ||
        gpu >= session->machine->device_count)
        return NULL;
    struct sim_device *device = &session->machine->devices[gpu];
    return mig == 0 ? device : sim_mig_find(&session->live, device, (unsigned int)mig);
}

/* ------------------------------------------------------------------------- calls */

/* The function of the call, for errors at its end; unset if a fault replaces the result. */
static _Thread_local enum sim_function current;
static _Thread_local bool answering;

static void sleep_ns(uint64_t ns)
{
    if (ns == 0)
        return;
    struct timespec until = gp_clock_timespec(gp_clock_mono_ns() + ns);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

static struct sim_device *gpu_of(struct sim_device *device)
{
    return device->parent ? device->parent : device;
}

/* In a container that may use one MIG device, memory and processes of the whole GPU are hidden. */
static bool denies_parent(const struct sim_call *call, const struct sim_fault *fault)
{
    const char *name = sim_function_names[call->function];
    return call->device && sim_mig_count(&call->live, call->device) > 0 &&
           (fault->function[0] || strstr(name, "MemoryInfo") || strstr(name, "RunningProcesses"));
}

enum { HANG_STEP_NS = 20 * 1000 * 1000 }; /* poll interval for a cleared hang */

static bool is_same(const struct sim_fault *a, const struct sim_fault *b)
{
    return a->kind == b->kind && a->gpu == b->gpu && a->value == b->value &&
           strcmp(a->function, b->function) == 0;
}

static bool is_injected(const struct sim_call *call, const struct sim_fault *fault)
{
    struct sim_fault other;
    for (size_t i = 0; i < call->machine->fault_count; i++)
        if (is_same(&call->machine->faults[i], fault))
            return true;
    for (size_t i = 0; i < SIM_MAX_FAULTS; i++)
        if (sim_state_fault(call->live.state, i, &other) && is_same(&other, fault))
            return true;
    return false;
}

/* Waits until the time is over or the fault is cleared. */
static void hang(const struct sim_call *call, const struct sim_fault *fault)
{
    const uint64_t end_ns = gp_clock_mono_ns() + fault->value;
    uint64_t now_ns;
    while ((now_ns = gp_clock_mono_ns()) < end_ns && is_injected(call, fault))
        sleep_ns(end_ns - now_ns < HANG_STEP_NS ? end_ns - now_ns : HANG_STEP_NS);
}

static nvmlReturn_t apply_fault(struct sim_call *call, const struct sim_fault *fault)
{
    switch ((enum sim_fault_kind)fault->kind) {
    case SIM_FAULT_LOST:
    case SIM_FAULT_GONE:
    case SIM_FAULT_EXCLUDED:
        if (!call->device)
            break;
        atomic_store(&gpu_of(call->device)->lost, true);
        return NVML_ERROR_GPU_IS_LOST;
    case SIM_FAULT_HANG:
        hang(call, fault);
        break;
    case SIM_FAULT_SLOW:
        sleep_ns(fault->value);
        break;
    case SIM_FAULT_DENY:
        return NVML_ERROR_NO_PERMISSION;
    case SIM_FAULT_ERROR:
        return (nvmlReturn_t)fault->value;
    case SIM_FAULT_ABSURD:
        call->absurd = true;
        break;
    case SIM_FAULT_GROW:
        call->grow = true;
        break;
    case SIM_FAULT_NOGPU:
        call->no_gpu = true;
        break;
    case SIM_FAULT_PARENT:
        return denies_parent(call, fault) ? NVML_ERROR_NO_PERMISSION : NVML_SUCCESS;
    case SIM_FAULT_OVERCOUNT:
    case SIM_FAULT_REORDER:
    case SIM_FAULT_REPARTITION:
    case SIM_FAULT_PROFILING:
    case SIM_FAULT_TYPES:
    case SIM_FAULT_PIDS:
    case SIM_FAULT_HIDDEN:
    case SIM_FAULT_STUCK:
    case SIM_FAULT_ENERGY:
        call->effects |= 1u << fault->kind;
        break;
    case SIM_FAULT_UNLOADED:
    case SIM_FAULT_MISMATCH:
    case SIM_FAULT_SET:
    case SIM_FAULT_KINDS:
        break;
    }
    return NVML_SUCCESS;
}

/* The next fault that affects the call: first those of the file, then the live ones. */
static bool next_fault(const struct sim_call *call, size_t *at, struct sim_fault *ret)
{
    size_t fixed = call->machine->fault_count;
    int gpu = call->device ? (int)gpu_of(call->device)->index : SIM_ALL_GPUS;
    for (; *at < fixed + SIM_MAX_FAULTS; ++*at) {
        if (*at < fixed)
            *ret = call->machine->faults[*at];
        else if (!sim_state_has_faults(call->live.state))
            return false;
        else if (!sim_state_fault(call->live.state, *at - fixed, ret))
            continue;
        if (!sim_fault_hits(ret, gpu, call->function))
            continue;
        ++*at;
        return true;
    }
    return false;
}

bool sim_has_fault(const struct sim_call *call, struct sim_device *gpu, enum sim_fault_kind kind)
{
    struct sim_call on_gpu = *call;
    struct sim_fault fault;
    on_gpu.device = gpu;
    for (size_t at = 0; next_fault(&on_gpu, &at, &fault);)
        if (fault.kind == kind)
            return true;
    return false;
}

static nvmlReturn_t apply_faults(struct sim_call *call)
{
    struct sim_fault fault;
    nvmlReturn_t code = NVML_SUCCESS;
    for (size_t at = 0; code == NVML_SUCCESS && next_fault(call, &at, &fault);)
        code = apply_fault(call, &fault);
    if (call->device && atomic_load(&gpu_of(call->device)->lost))
        return NVML_ERROR_GPU_IS_LOST;
    return code;
}

/* A forked process has neither the driver's threads nor its files. */
static void refuse_in_child(enum sim_function function)
{
    pid_t process = atomic_load(&driver.process);
    if (process != 0 && process != getpid())
        sim_strict_refuse(function, "was called in a child of the process that called nvmlInit");
}

static void refuse_without_init(enum sim_function function)
{
    sim_strict_refuse(function, atomic_load(&driver.process) ? "was called after nvmlShutdown"
                                                             : "was called before nvmlInit");
}

static nvmlReturn_t begin(struct sim_call *call, enum sim_function function,
                          struct session **ret_session)
{
    *call = (struct sim_call){.function = current = function};
    answering = false;
    atomic_fetch_add_explicit(&driver.calls[function], 1, memory_order_relaxed);
    refuse_in_child(function);
    atomic_fetch_add(&driver.active, 1);
    struct session *session = atomic_load(&driver.current);
    if (!session) {
        refuse_without_init(function);
        return NVML_ERROR_UNINITIALIZED;
    }
    *ret_session = session;
    call->machine = session->machine;
    call->live = session->live;
    call->generation = session->generation;
    call->reversed = session->reversed;
    call->tree = session->tree;
    sim_hosttree_refresh(session->tree);
    if (call->machine->missing[function])
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    sleep_ns((uint64_t)call->machine->latency_us[function] * 1000);
    bool fails = session->failing && atomic_fetch_add(&session->calls, 1) + 1 == session->failing;
    return fails ? session->failure : call->machine->retired[function];
}

nvmlReturn_t sim_enter(struct sim_call *call, enum sim_function function, bool args_ok)
{
    struct session *session;
    nvmlReturn_t code = begin(call, function, &session);
    if (code != NVML_SUCCESS)
        return code;
    code = args_ok ? apply_faults(call) : NVML_ERROR_INVALID_ARGUMENT;
    answering = code == NVML_SUCCESS;
    return code;
}

nvmlReturn_t sim_enter_device(struct sim_call *call, enum sim_function function,
                              nvmlDevice_t handle, bool args_ok)
{
    struct session *session;
    nvmlReturn_t code = begin(call, function, &session);
    if (code != NVML_SUCCESS)
        return code;
    call->device = find_handle(session, handle);
    if (!call->device)
        sim_strict_refuse_handle(function, handle);
    if (!call->device || !args_ok)
        return NVML_ERROR_INVALID_ARGUMENT;
    code = apply_faults(call);
    answering = code == NVML_SUCCESS;
    return code;
}

bool sim_is_lost(const struct sim_call *call, struct sim_device *device)
{
    struct sim_call on_device = *call;
    struct sim_fault fault;
    on_device.device = device;
    for (size_t at = 0; next_fault(&on_device, &at, &fault);)
        if (fault.kind == SIM_FAULT_LOST)
            return true;
    return atomic_load(&gpu_of(device)->lost);
}

const struct sim_device *sim_find_device(enum sim_function function, nvmlDevice_t handle)
{
    const struct session *session = atomic_load(&driver.current);
    const struct sim_device *device = session ? find_handle(session, handle) : NULL;
    if (session && !device)
        sim_strict_refuse_handle(function, handle);
    return device;
}

nvmlReturn_t sim_leave(nvmlReturn_t code)
{
    if (answering && code == NVML_ERROR_ARGUMENT_VERSION_MISMATCH &&
        !sim_strict_has_versions(current))
        sim_strict_refuse(current, "was called with a wrong version word");
    atomic_fetch_sub(&driver.active, 1);
    return code;
}

nvmlReturn_t sim_answer_unplayed(const char *function)
{
    atomic_fetch_add(&driver.active, 1);
    const struct session *session = atomic_load(&driver.current);
    if (!session)
        return sim_leave(NVML_ERROR_UNINITIALIZED);
    nvmlReturn_t code = NVML_ERROR_NOT_SUPPORTED;
    for (size_t i = 0; i < SIM_SYMBOL_COUNT; i++)
        if (session->machine->missing[i] && strcmp(sim_symbols[i].name, function) == 0)
            code = NVML_ERROR_FUNCTION_NOT_FOUND;
    if (code == NVML_ERROR_NOT_SUPPORTED && sim_retired(session->machine->driver, function))
        code = NVML_ERROR_DEPRECATED;
    return sim_leave(code);
}

nvmlReturn_t sim_give_handle(struct sim_call *call, struct sim_device *device, nvmlDevice_t *ret)
{
    call->device = device;
    nvmlReturn_t code = apply_faults(call);
    if (code == NVML_SUCCESS)
        *ret = make_handle(call->generation, device);
    return code;
}

/* Absurd numbers that real drivers have returned: ratios above 100 %, the power of a laptop in the
 * wrong unit, a negative temperature as unsigned, "not available" as a number. */
static uint64_t absurd_number(enum sim_slot slot)
{
    switch (sim_answers[slot].motion) {
    case SIM_MOTION_UTIL:
    case SIM_MOTION_UTIL_MEM:
    case SIM_MOTION_UTIL_ENGINE:
        return 255;
    case SIM_MOTION_POWER:
        return 593000000;
    case SIM_MOTION_TEMP:
        return UINT32_C(4294967288);
    case SIM_MOTION_STATIC:
    case SIM_MOTION_MEMORY:
    case SIM_MOTION_ENERGY:
    case SIM_MOTION_MARGIN:
    case SIM_MOTION_CLOCK:
    case SIM_MOTION_FAN:
    case SIM_MOTION_PCIE:
    case SIM_MOTION_PCIE_GEN:
    case SIM_MOTION_PSTATE:
    case SIM_MOTION_REASONS:
        break;
    }
    return UINT64_MAX;
}

nvmlReturn_t sim_read(const struct sim_call *call, enum sim_slot slot, uint64_t *ret)
{
    struct sim_value v = sim_live_value(&call->live, call->device, slot);
    /* Identity stays valid: a monitor that cannot distinguish its GPUs is another test. */
    bool measured = sim_answers[slot].motion != SIM_MOTION_STATIC || slot == SIM_MEM_TOTAL;
    if (v.code != NVML_SUCCESS)
        return v.code;
    *ret = call->absurd && measured ? absurd_number(slot) : v.number;
    if (sim_is_hit(call, SIM_FAULT_STUCK) && sim_answers[slot].motion == SIM_MOTION_UTIL)
        *ret = 100;
    if (sim_is_hit(call, SIM_FAULT_ENERGY) && slot == SIM_ENERGY)
        *ret -= call->device->answers[slot].number;
    return NVML_SUCCESS;
}

/* ------------------------------------------------------------------------- initialization */

static bool env_is_on(const char *name)
{
    const char *value = getenv(name);
    return value && *value && strcmp(value, "0") != 0;
}

/* The directory of this library, which also contains its machines. */
static int find_home(char home[GP_PATH_SIZE], struct gp_err *err)
{
    Dl_info info;
    if (!dladdr(&driver, &info) || !info.dli_fname || !realpath(info.dli_fname, home))
        return gp_err_set(err, GP_EIO, "cannot find the simulated driver's own directory");
    *strrchr(home, '/') = '\0';
    return GP_OK;
}

/* GPULSE_SIM_FAIL="N CODE": the N-th call of a session fails once. For tests that try every N. */
static void plan_failure(struct session *session)
{
    const char *plan = getenv("GPULSE_SIM_FAIL");
    char *end;
    if (!plan)
        return;
    session->failing = strtoul(plan, &end, 10);
    if (*end != ' ' || !sim_return_code(end + 1, &session->failure))
        session->failing = 0;
}

/* Without shared state the machine still works, but faults cannot be injected. */
static bool open_live(struct sim_live *live, const char *spec, struct sim_machine *machine,
                      struct gp_err *err)
{
    *live = (struct sim_live){.machine = machine, .still = env_is_on("GPULSE_SIM_STILL")};
    if (sim_state_open(spec, &live->state, err) < 0)
        live->state = sim_state_new_private();
    return live->state;
}

/* Opened when the library was loaded, for the first initialization. */
static struct {
    char spec[GP_PATH_SIZE];
    _Atomic(struct sim_machine *) machine;
} preloaded;

/* A real library has the symbols of its driver as soon as it is loaded. */
__attribute__((constructor)) static void at_load(void)
{
    const char *spec = getenv("GPULSE_SIM");
    char home[GP_PATH_SIZE];
    struct sim_machine *machine;
    if (!spec || strlen(spec) >= sizeof(preloaded.spec) || find_home(home, NULL) < 0 ||
        sim_machine_open(spec, home, &machine, NULL) < 0)
        return; /* nvmlInit will report it */
    memcpy(preloaded.spec, spec, strlen(spec) + 1);
    atomic_store(&preloaded.machine, machine);
    sim_withhold(machine);
}

static struct sim_machine *take_preloaded(const char *spec)
{
    struct sim_machine *machine = atomic_exchange(&preloaded.machine, NULL);
    if (strcmp(spec, preloaded.spec) == 0)
        return machine;
    sim_machine_free(machine);
    return NULL;
}

static struct session *open_session(struct gp_err *err)
{
    const char *spec = getenv("GPULSE_SIM");
    char home[GP_PATH_SIZE];
    if (!spec || !*spec) {
        (void)gp_err_set(err, GP_EUSAGE,
                         "GPULSE_SIM is not set; it must name the machine to simulate, for example "
                         "GPULSE_SIM=h100x8");
        return NULL;
    }
    struct session *session = calloc(1, sizeof(*session));
    if (session)
        session->machine = take_preloaded(spec);
    bool failed = !session ||
                  (!session->machine && (find_home(home, err) < 0 ||
                                         sim_machine_open(spec, home, &session->machine, err) < 0));
    if (failed) {
        free(session);
        return NULL;
    }
    plan_failure(session);
    if (!open_live(&session->live, spec, session->machine, err)) {
        sim_machine_free(session->machine);
        free(session);
        return NULL;
    }
    if (driver.root[0])
        (void)sim_hosttree_open(spec, &session->live, &session->tree, NULL);
    return session;
}

SIM_EXPORT const char *gpulse_sim_root(char *problem, size_t size)
{
    struct gp_err err = {.text = ""};
    struct sim_live live;
    struct sim_hosttree *tree = NULL;
    struct sim_machine *machine = atomic_load(&preloaded.machine);
    if (!machine || !machine->host.name || !open_live(&live, preloaded.spec, machine, NULL))
        return NULL;
    if (sim_hosttree_open(preloaded.spec, &live, &tree, &err) == GP_OK &&
        sim_hosttree_update(tree, &err) == GP_OK)
        (void)snprintf(driver.root, sizeof(driver.root), "%s", sim_hosttree_path(tree));
    sim_hosttree_close(tree);
    sim_state_close(live.state);
    (void)snprintf(problem, size, "%s", err.text);
    return driver.root[0] ? driver.root : NULL;
}

static void close_session(struct session *session)
{
    if (!session)
        return;
    sim_hosttree_close(session->tree);
    sim_state_close(session->live.state);
    sim_machine_free(session->machine);
    free(session);
}

static void free_retired(void)
{
    /* A call that starts after this check uses the current session, never a retired one. */
    if (atomic_load(&driver.active) > 0)
        return;
    while (driver.retired) {
        struct session *next = driver.retired->next;
        close_session(driver.retired);
        driver.retired = next;
    }
}

/* Faults of the calls that start and end a session. */
static nvmlReturn_t session_faults(struct session *session, enum sim_function function)
{
    struct sim_call call = {
        .live = session->live, .machine = session->machine, .function = function};
    struct sim_fault fault;
    sleep_ns((uint64_t)session->machine->latency_us[function] * 1000);
    for (size_t at = 0; next_fault(&call, &at, &fault);) {
        if (fault.kind == SIM_FAULT_UNLOADED)
            return NVML_ERROR_DRIVER_NOT_LOADED;
        if (fault.kind == SIM_FAULT_MISMATCH)
            return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
        nvmlReturn_t code = apply_fault(&call, &fault);
        if (code != NVML_SUCCESS)
            return code;
        session->reversed |= fault.kind == SIM_FAULT_REORDER;
    }
    return NVML_SUCCESS;
}

static void report_error(const char *text)
{
    static bool told;
    (void)snprintf(driver.error, sizeof(driver.error), "%s", text);
    /* gpulse itself reads the error text; other programs only get a return code. */
    if (!told && !env_is_on("GPULSE_SIM_QUIET"))
        (void)fprintf(stderr, "gpulse-sim: %s\n", text);
    told = true;
}

static nvmlReturn_t initialise(enum sim_function function)
{
    (void)pthread_mutex_lock(&driver.lock);
    bool running = driver.references > 0;
    if (running)
        refuse_in_child(function);
    if (running)
        driver.references++;
    else
        free_retired();
    if (!running)
        for (size_t i = 0; i < SIM_FN_COUNT; i++)
            atomic_store_explicit(&driver.calls[i], 0, memory_order_relaxed);
    (void)pthread_mutex_unlock(&driver.lock);
    atomic_fetch_add_explicit(&driver.calls[function], 1, memory_order_relaxed);
    if (running)
        return NVML_SUCCESS;

    /* Loading and sleeping happen without the lock; the first thread that returns publishes the
     * session. */
    struct gp_err err = {0};
    struct session *session = open_session(&err);
    nvmlReturn_t code = session ? session_faults(session, function) : NVML_ERROR_UNKNOWN;
    (void)pthread_mutex_lock(&driver.lock);
    if (!session) {
        report_error(err.text[0] ? err.text : "out of memory");
    } else if (code != NVML_SUCCESS && session->machine->nvml_version) {
        (void)snprintf(driver.library, sizeof(driver.library), "%s",
                       session->machine->nvml_version);
    } else if (code == NVML_SUCCESS) {
        driver.error[0] = '\0';
        atomic_store(&driver.process, getpid());
        if (driver.references++ == 0) {
            session->generation = ++driver.generations;
            sim_client_enter(&session->live);
            atomic_store(&driver.current, session);
            session = NULL;
        }
    }
    (void)pthread_mutex_unlock(&driver.lock);
    close_session(session);
    return code;
}

SIM_EXPORT nvmlReturn_t nvmlInit(void)
{
    return initialise(SIM_FN_nvmlInit);
}

SIM_EXPORT nvmlReturn_t nvmlInit_v2(void)
{
    return initialise(SIM_FN_nvmlInit_v2);
}

SIM_EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    (void)flags; /* nothing to attach, and a machine always has devices */
    return initialise(SIM_FN_nvmlInitWithFlags);
}

/* GPULSE_SIM_COUNT=FILE: writes the number of calls of each function, for tests. */
static void write_counts(void)
{
    const char *path = getenv("GPULSE_SIM_COUNT");
    if (!path || !*path)
        return;
    int fd = gp_outfile_create(path, 0, 0644, NULL);
    FILE *file = fd >= 0 && ftruncate(fd, 0) == 0 ? fdopen(fd, "w") : NULL;
    if (!file && fd >= 0)
        (void)close(fd);
    if (!file)
        return;
    for (size_t i = 0; i < SIM_FN_COUNT; i++) {
        unsigned long long calls = atomic_load_explicit(&driver.calls[i], memory_order_relaxed);
        if (calls)
            (void)fprintf(file, "%s %llu\n", sim_function_names[i], calls);
    }
    (void)fclose(file);
}

SIM_EXPORT nvmlReturn_t nvmlShutdown(void)
{
    nvmlReturn_t code = NVML_SUCCESS;
    atomic_fetch_add_explicit(&driver.calls[SIM_FN_nvmlShutdown], 1, memory_order_relaxed);
    refuse_in_child(SIM_FN_nvmlShutdown);
    /* It may be slow or hang, but it does not fail. Until then it counts as a call, so that its
     * session stays in memory during a concurrent shutdown. */
    atomic_fetch_add(&driver.active, 1);
    struct session *ending = atomic_load(&driver.current);
    if (ending)
        (void)session_faults(ending, SIM_FN_nvmlShutdown);
    atomic_fetch_sub(&driver.active, 1);
    (void)pthread_mutex_lock(&driver.lock);
    if (driver.references == 1 && atomic_load(&driver.active) > 0)
        sim_strict_refuse(SIM_FN_nvmlShutdown, "was called during another call");
    if (driver.references == 0) {
        refuse_without_init(SIM_FN_nvmlShutdown);
        code = NVML_ERROR_UNINITIALIZED;
    } else if (--driver.references == 0) {
        struct session *session = atomic_exchange(&driver.current, NULL);
        sim_client_leave(&session->live);
        session->next = driver.retired;
        driver.retired = session;
        free_retired();
        write_counts();
    }
    (void)pthread_mutex_unlock(&driver.lock);
    return code;
}

__attribute__((destructor)) static void at_exit(void)
{
    (void)pthread_mutex_lock(&driver.lock);
    if (driver.references > 0)
        write_counts();
    (void)pthread_mutex_unlock(&driver.lock);
    sim_machine_free(atomic_exchange(&preloaded.machine, NULL));
}

const char *sim_failed_library(void)
{
    return atomic_load(&driver.current) ? "" : driver.library;
}

SIM_EXPORT const char *gpulse_sim_error(void)
{
    return driver.error;
}

SIM_EXPORT const char *nvmlErrorString(nvmlReturn_t result)
{
    static const struct {
        nvmlReturn_t code;
        const char *text;
    } texts[] = {
#define X(name, code, words) {name, words},
        NVML_RETURN_CODES(X)
#undef X
    };
    atomic_fetch_add_explicit(&driver.calls[SIM_FN_nvmlErrorString], 1, memory_order_relaxed);
    for (size_t i = 0; i < GP_ARRAY_LEN(texts); i++)
        if (texts[i].code == result)
            return texts[i].text;
    return "Unknown Error";
}
