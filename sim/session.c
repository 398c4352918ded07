#include "sim/session.h"

#include "base/err.h"
#include "base/outfile.h"
#include "sim/client.h"
#include "sim/hosttree.h"
#include "sim/strict.h"
#include "sim/withhold.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool env_is_on(const char *name)
{
    const char *value = getenv(name);
    return value && *value && strcmp(value, "0") != 0;
}

/* The directory of this library, which also contains its machines. */
static int find_home(char home[GP_PATH_SIZE], struct gp_err *err)
{
    Dl_info info;
    if (!dladdr(&sim_driver, &info) || !info.dli_fname || !realpath(info.dli_fname, home))
        return gp_err_set(err, GP_EIO, "cannot find the simulated driver's own directory");
    *strrchr(home, '/') = '\0';
    return GP_OK;
}

/* GPULSE_SIM_FAIL="N CODE": the N-th call of a session fails once. For tests that try every N. */
static void plan_failure(struct sim_session *session)
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

static struct sim_session *open_session(struct gp_err *err)
{
    const char *spec = getenv("GPULSE_SIM");
    char home[GP_PATH_SIZE];
    if (!spec || !*spec) {
        (void)gp_err_set(err, GP_EUSAGE,
                         "GPULSE_SIM is not set; it must name the machine to simulate, for example "
                         "GPULSE_SIM=h100x8");
        return NULL;
    }
    struct sim_session *session = calloc(1, sizeof(*session));
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
    if (sim_driver.root[0])
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
        (void)snprintf(sim_driver.root, sizeof(sim_driver.root), "%s", sim_hosttree_path(tree));
    sim_hosttree_close(tree);
    sim_state_close(live.state);
    (void)snprintf(problem, size, "%s", err.text);
    return sim_driver.root[0] ? sim_driver.root : NULL;
}

static void close_session(struct sim_session *session)
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
    if (atomic_load(&sim_driver.active) > 0)
        return;
    while (sim_driver.retired) {
        struct sim_session *next = sim_driver.retired->next;
        close_session(sim_driver.retired);
        sim_driver.retired = next;
    }
}

/* Faults of the calls that start and end a session. */
static nvmlReturn_t session_faults(struct sim_session *session, enum sim_function function)
{
    struct sim_call call = {
        .live = session->live, .machine = session->machine, .function = function};
    struct sim_fault fault;
    sim_sleep_ns((uint64_t)session->machine->latency_us[function] * 1000);
    for (size_t at = 0; sim_next_fault(&call, &at, &fault);) {
        if (fault.kind == SIM_FAULT_UNLOADED)
            return NVML_ERROR_DRIVER_NOT_LOADED;
        if (fault.kind == SIM_FAULT_MISMATCH)
            return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
        nvmlReturn_t code = sim_apply_fault(&call, &fault);
        if (code != NVML_SUCCESS)
            return code;
        session->reversed |= fault.kind == SIM_FAULT_REORDER;
    }
    return NVML_SUCCESS;
}

static void report_error(const char *text)
{
    static bool told;
    (void)snprintf(sim_driver.error, sizeof(sim_driver.error), "%s", text);
    /* gpulse itself reads the error text; other programs only get a return code. */
    if (!told && !env_is_on("GPULSE_SIM_QUIET"))
        (void)fprintf(stderr, "gpulse-sim: %s\n", text);
    told = true;
}

static nvmlReturn_t initialise(enum sim_function function)
{
    (void)pthread_mutex_lock(&sim_driver.lock);
    bool running = sim_driver.references > 0;
    if (running)
        sim_refuse_in_child(function);
    if (running)
        sim_driver.references++;
    else
        free_retired();
    if (!running)
        for (size_t i = 0; i < SIM_FN_COUNT; i++)
            atomic_store_explicit(&sim_driver.calls[i], 0, memory_order_relaxed);
    (void)pthread_mutex_unlock(&sim_driver.lock);
    atomic_fetch_add_explicit(&sim_driver.calls[function], 1, memory_order_relaxed);
    if (running)
        return NVML_SUCCESS;

    /* Loading and sleeping happen without the lock; the first thread that returns publishes the
     * session. */
    struct gp_err err = {0};
    struct sim_session *session = open_session(&err);
    nvmlReturn_t code = session ? session_faults(session, function) : NVML_ERROR_UNKNOWN;
    (void)pthread_mutex_lock(&sim_driver.lock);
    if (!session) {
        report_error(err.text[0] ? err.text : "out of memory");
    } else if (code != NVML_SUCCESS && session->machine->nvml_version) {
        (void)snprintf(sim_driver.library, sizeof(sim_driver.library), "%s",
                       session->machine->nvml_version);
    } else if (code == NVML_SUCCESS) {
        sim_driver.error[0] = '\0';
        atomic_store(&sim_driver.process, getpid());
        if (sim_driver.references++ == 0) {
            session->generation = ++sim_driver.generations;
            sim_client_enter(&session->live);
            atomic_store(&sim_driver.current, session);
            session = NULL;
        }
    }
    (void)pthread_mutex_unlock(&sim_driver.lock);
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
        unsigned long long calls = atomic_load_explicit(&sim_driver.calls[i], memory_order_relaxed);
        if (calls)
            (void)fprintf(file, "%s %llu\n", sim_function_names[i], calls);
    }
    (void)fclose(file);
}

SIM_EXPORT nvmlReturn_t nvmlShutdown(void)
{
    nvmlReturn_t code = NVML_SUCCESS;
    atomic_fetch_add_explicit(&sim_driver.calls[SIM_FN_nvmlShutdown], 1, memory_order_relaxed);
    sim_refuse_in_child(SIM_FN_nvmlShutdown);
    /* It may be slow or hang, but it does not fail. Until then it counts as a call, so that its
     * session stays in memory during a concurrent shutdown. */
    atomic_fetch_add(&sim_driver.active, 1);
    struct sim_session *ending = atomic_load(&sim_driver.current);
    if (ending)
        (void)session_faults(ending, SIM_FN_nvmlShutdown);
    atomic_fetch_sub(&sim_driver.active, 1);
    (void)pthread_mutex_lock(&sim_driver.lock);
    if (sim_driver.references == 1 && atomic_load(&sim_driver.active) > 0)
        sim_strict_refuse(SIM_FN_nvmlShutdown, "was called during another call");
    if (sim_driver.references == 0) {
        sim_refuse_without_init(SIM_FN_nvmlShutdown);
        code = NVML_ERROR_UNINITIALIZED;
    } else if (--sim_driver.references == 0) {
        struct sim_session *session = atomic_exchange(&sim_driver.current, NULL);
        sim_client_leave(&session->live);
        session->next = sim_driver.retired;
        sim_driver.retired = session;
        free_retired();
        write_counts();
    }
    (void)pthread_mutex_unlock(&sim_driver.lock);
    return code;
}

__attribute__((destructor)) static void at_exit(void)
{
    (void)pthread_mutex_lock(&sim_driver.lock);
    if (sim_driver.references > 0)
        write_counts();
    (void)pthread_mutex_unlock(&sim_driver.lock);
    sim_machine_free(atomic_exchange(&preloaded.machine, NULL));
}

const char *sim_failed_library(void)
{
    return atomic_load(&sim_driver.current) ? "" : sim_driver.library;
}

SIM_EXPORT const char *gpulse_sim_error(void)
{
    return sim_driver.error;
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
    atomic_fetch_add_explicit(&sim_driver.calls[SIM_FN_nvmlErrorString], 1, memory_order_relaxed);
    for (size_t i = 0; i < GP_ARRAY_LEN(texts); i++)
        if (texts[i].code == result)
            return texts[i].text;
    return "Unknown Error";
}
