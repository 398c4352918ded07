/* The whole way from the driver to the snapshot, on simulated machines of which one call, or one
 * read of a file, or one allocation fails: whichever it is, nothing is lost, and no value is
 * untrue. */
#include "unit.h"

#include "base/clock.h"
#include "base/err.h"
#include "model/select.h"
#include "model/snapshot.h"
#include "sample/sampler.h"
#include "source/nvml/nvml.h"

#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

static char library[4096];
static char folder[128];

/* ---- reads that fail ---- */

static atomic_long reads;
static atomic_long failing_read = -1;

ssize_t __real_read(int fd, void *buffer, size_t size);
ssize_t __wrap_read(int fd, void *buffer, size_t size);
ssize_t __real_pread64(int fd, void *buffer, size_t size, off_t at);
ssize_t __wrap_pread64(int fd, void *buffer, size_t size, off_t at);

static bool is_to_fail(void)
{
    bool fails = atomic_fetch_add(&reads, 1) == atomic_load(&failing_read);
    errno = fails ? EIO : errno;
    return fails;
}

ssize_t __wrap_read(int fd, void *buffer, size_t size)
{
    return is_to_fail() ? -1 : __real_read(fd, buffer, size);
}

ssize_t __wrap_pread64(int fd, void *buffer, size_t size, off_t at)
{
    return is_to_fail() ? -1 : __real_pread64(fd, buffer, size, at);
}

/* ---- one run ---- */

static struct gp_selection everything;

/* Whether the lists of a GPU are asked for, and nothing else. */
static bool lists_only;

static struct gp_sampler *start(struct gp_err *err)
{
    const struct gp_nvml_config nvml = {.library = library, .simulated = true};
    struct gp_sampler_config config = {.source = gp_nvml_new(&nvml),
                                       .timeout_ns = 60 * UINT64_C(1000000000),
                                       .selection = &everything,
                                       .want = {.processes = !lists_only, .mig = !lists_only}};
    struct gp_sampler *sampler = NULL;
    if (!config.source)
        return NULL;
    if (lists_only)
        config.want.lists = (UINT32_C(1) << GP_LIST__COUNT) - 1;
    for (int m = lists_only ? (int)gp_scope_table[GP_SCOPE_LIST__FIRST].first : 0;
         m < GP_METRIC__COUNT; m++)
        gp_metric_set_add(&config.want.metrics, (enum gp_metric)m);
    return gp_sampler_new(&config, &sampler, err) < 0 ? NULL : sampler;
}

/* Two ticks, so that what was refused once is remembered; NULL if it could not start or go on. */
static struct gp_snapshot *run(void)
{
    struct gp_err err = {0};
    struct gp_snapshot *snapshot = NULL;
    struct gp_sampler *sampler = start(&err);
    for (int i = 0; sampler && i < 2; i++) {
        gp_snapshot_free(snapshot);
        snapshot = NULL;
        if (gp_sampler_tick(sampler, &snapshot, &err) < 0)
            snapshot = NULL;
    }
    assert_true(gp_sampler_free(sampler));
    return snapshot;
}

/* ---- the truth ---- */

/* Values that differ between two runs that are well, and those that only count what is there. */
static bool moves(enum gp_metric m)
{
    static const enum gp_metric moving[] = {
        GP_TIMESTAMP,       GP_HOST_CPU,       GP_HOST_LOAD,          GP_HOST_MEMORY_TOTAL,
        GP_STATUS,          GP_STATUS_TEXT,    GP_PROCESS_CPU,        GP_HOST_MEMORY_AVAILABLE,
        GP_PROCESS_RSS,     GP_HOST_SWAP_USED, GP_HOST_UPTIME,        GP_PROCESS_STATE,
        GP_PROCESS_THREADS, GP_PROCESS_IDLE,   GP_PROCESS_LAST_ACTIVE};
    for (size_t i = 0; i < GP_ARRAY_LEN(moving); i++)
        if (moving[i] == m)
            return true;
    return gp_metric_table[m].tier == GP_TIER_RATE;
}

static bool is_same(enum gp_metric m, const struct gp_value *a, const struct gp_value *b)
{
    switch (gp_metric_table[m].type) {
    case GP_TYPE_INT:
        return a->i == b->i;
    case GP_TYPE_REAL:
        return a->f >= b->f - 1e-9 && a->f <= b->f + 1e-9;
    case GP_TYPE_TEXT:
        return strcmp(a->s, b->s) == 0;
    }
    return false;
}

/* The older memory call counts what is reserved as used; then nothing is said of what is reserved.
 */
static bool is_with_reserved(enum gp_metric m, const struct gp_value *truth,
                             const struct gp_value *shown)
{
    const size_t used = m - GP_DEVICE__FIRST;
    const size_t reserved = GP_MEMORY_RESERVED - GP_DEVICE__FIRST;
    return (m == GP_MEMORY_USED || m == GP_MEMORY_UNATTRIBUTED) &&
           !gp_value_is_present(&shown[reserved]) &&
           shown[used].i == truth[used].i + truth[reserved].i;
}

static void check_values(const struct gp_value *truth, const struct gp_value *shown, int first,
                         int end, const char *what)
{
    for (int m = first; m < end; m++) {
        const struct gp_value *t = &truth[m - first];
        const struct gp_value *v = &shown[m - first];
        if (!gp_value_is_present(v) || moves((enum gp_metric)m))
            continue;
        if (!gp_value_is_present(t) || !(is_same((enum gp_metric)m, t, v) ||
                                         is_with_reserved((enum gp_metric)m, truth, shown)))
            fail_msg("%s: %s is untrue", what, GP_METRIC_NAME(m));
    }
}

static const struct gp_device *find_device(const struct gp_snapshot *truth,
                                           const struct gp_device *device)
{
    for (size_t i = 0; i < truth->device_count; i++)
        if (truth->devices[i].index == device->index &&
            truth->devices[i].is_mig == device->is_mig &&
            (!device->is_mig || truth->devices[i].mig_index == device->mig_index))
            return &truth->devices[i];
    return NULL;
}

static const struct gp_process *find_process(const struct gp_snapshot *truth,
                                             const struct gp_process *process)
{
    for (size_t i = 0; i < truth->process_count; i++)
        if (gp_process_value(&truth->processes[i], GP_PID)->i ==
            gp_process_value(process, GP_PID)->i)
            return &truth->processes[i];
    return NULL;
}

/* The true entry that an entry of a list is: the one with the same first values. */
static const struct gp_entry *find_entry(const struct gp_entries *truth,
                                         const struct gp_entry *entry, enum gp_scope scope)
{
    size_t keys = scope == GP_SCOPE_CLOCK ? 2 : 1;
    for (size_t i = 0; i < truth->count; i++) {
        bool same = true;
        for (size_t k = 0; k < keys; k++)
            same = same && is_same(gp_scope_table[scope].first + k, &truth->entries[i].values[k],
                                   &entry->values[k]);
        if (same)
            return &truth->entries[i];
    }
    return NULL;
}

static void check_list(const struct gp_snapshot *truth, const struct gp_snapshot *shown,
                       enum gp_scope scope, const char *what)
{
    const struct gp_entries *entries = &shown->lists[gp_list_index(scope)];
    int first = gp_scope_table[scope].first;
    for (size_t i = 0; i < entries->count; i++) {
        const struct gp_entry *entry = &entries->entries[i];
        if (!gp_value_is_present(&entry->values[0]))
            continue; /* the row that says that there is no list */
        const struct gp_entry *true_one =
            find_entry(&truth->lists[gp_list_index(scope)], entry, scope);
        if (!true_one)
            fail_msg("%s: there is no such %s", what, gp_scope_table[scope].noun);
        check_values(true_one->values, entry->values, first, first + (int)gp_scope_width(scope),
                     what);
    }
}

/* Every row that is shown is a true one, and what it shows is true. */
static void check_snapshot(const struct gp_snapshot *truth, const struct gp_snapshot *shown,
                           const char *what)
{
    check_values(truth->host, shown->host, GP_HOST__FIRST, GP_DEVICE__FIRST, what);
    for (size_t i = 0; i < shown->device_count; i++) {
        const struct gp_device *true_one = find_device(truth, &shown->devices[i]);
        if (!true_one)
            fail_msg("%s: there is no such device", what);
        check_values(true_one->values, shown->devices[i].values, GP_DEVICE__FIRST,
                     GP_PROCESS__FIRST, what);
    }
    for (size_t i = 0; i < shown->process_count; i++) {
        const struct gp_process *true_one = find_process(truth, &shown->processes[i]);
        if (!true_one)
            fail_msg("%s: there is no such process", what);
        check_values(true_one->cells, shown->processes[i].cells, GP_PROCESS__FIRST,
                     GP_PROCESS__FIRST + GP_PROCESS__COUNT, what);
    }
    for (int scope = GP_SCOPE_LIST__FIRST; scope < GP_SCOPE__COUNT; scope++)
        check_list(truth, shown, (enum gp_scope)scope, what);
}

/* ---- the tests ---- */

static void use(const char *machine, const char *failure)
{
    assert_int_equal(setenv("GPULSE_SIM", machine, 1), 0);
    assert_int_equal(failure ? setenv("GPULSE_SIM_FAIL", failure, 1) : unsetenv("GPULSE_SIM_FAIL"),
                     0);
}

/* How many calls the last session made. */
static unsigned long count_calls(void)
{
    char path[192];
    char line[256];
    unsigned long sum = 0;
    (void)snprintf(path, sizeof(path), "%s/calls", folder);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file)) {
        unsigned long n;
        if (sscanf(line, "%*s %lu", &n) == 1)
            sum += n;
    }
    (void)fclose(file);
    return sum;
}

/* Looking at every failure takes long: that is done with GPULSE_TEST_LONG=1. Otherwise every
 * seventh is looked at, from one on that changes from run to run unless GPULSE_TEST_SEED is set. */
static unsigned long stride = 7;
static unsigned long seed;

/* The first of n, n + 1, … whose turn it is; each row of tries begins at another place. */
static unsigned long first_turn(unsigned long n, unsigned long row)
{
    return n + (seed + row) % stride;
}

/* Fails the N-th call of the first session, for every N from `first` on. */
static void try_code(const char *machine, const char *code, const struct gp_snapshot *truth,
                     unsigned long first, unsigned long calls)
{
    for (unsigned long n = first; n <= calls; n += stride) {
        char failure[64];
        char what[128];
        (void)snprintf(failure, sizeof(failure), "%lu %s", n, code);
        (void)snprintf(what, sizeof(what), "%s, call %s", machine, failure);
        use(machine, failure);
        struct gp_snapshot *shown = run();
        if (shown)
            check_snapshot(truth, shown, what);
        gp_snapshot_free(shown);
    }
}

static void whichever_call_fails_no_value_is_untrue(void **state)
{
    (void)state;
    static const struct {
        const char *machine, *code;
        bool lists_only;
    } tries[] = {
        {"t4", "UNKNOWN"},
        {"t4", "GPU_IS_LOST"},
        {"t4", "NO_PERMISSION"},
        {"t4", "INSUFFICIENT_SIZE"},
        {"t4", "NOT_SUPPORTED"},
        {"t4", "ARGUMENT_VERSION_MISMATCH"},
        {"h100x1", "UNKNOWN"},
        {"a100-mig", "UNKNOWN"},
        {"a100-mig", "NO_PERMISSION"},
        {"a100-mig", "TIMEOUT"},
        {"t4", "UNKNOWN", true},
        {"t4", "GPU_IS_LOST", true},
        {"t4", "NOT_FOUND", true},
        {"h100x1", "UNKNOWN", true},
        {"rtx4090x2", "UNKNOWN", true},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(tries); i++) {
        lists_only = tries[i].lists_only;
        use(tries[i].machine, NULL);
        struct gp_snapshot *truth = run();
        assert_non_null(truth);
        assert_false(truth->partial);
        unsigned long calls = count_calls();
        assert_true(calls > (lists_only ? 20 : 100));
        try_code(tries[i].machine, tries[i].code, truth, first_turn(1, i), calls);
        gp_snapshot_free(truth);
    }
    lists_only = false;
}

static void whichever_read_fails_no_value_is_untrue(void **state)
{
    (void)state;
    use("t4", NULL);
    struct gp_snapshot *truth = run();
    long most = atomic_exchange(&reads, 0) + 20;
    assert_non_null(truth);
    assert_true(most > 20);
    for (long n = (long)first_turn(0, 0); n < most; n += (long)stride) {
        atomic_store(&reads, 0);
        atomic_store(&failing_read, n);
        struct gp_snapshot *shown = run();
        atomic_store(&failing_read, -1);
        if (shown)
            check_snapshot(truth, shown, "a read failed");
        gp_snapshot_free(shown);
    }
    gp_snapshot_free(truth);
}

static void whichever_allocation_fails_no_value_is_untrue(void **state)
{
    (void)state;
    use("t4", NULL);
    struct gp_snapshot *truth = run();
    assert_non_null(truth);
    bool complete = false;
    long n = (long)first_turn(0, 0);
    for (; !complete && n < 2000; n += (long)stride) {
        alloc_fail_from(n);
        struct gp_err err = {0};
        struct gp_snapshot *shown = NULL;
        struct gp_sampler *sampler = start(&err);
        if (sampler && gp_sampler_tick(sampler, &shown, &err) < 0)
            shown = NULL;
        complete = alloc_count() <= n;
        alloc_fail_from(-1);
        if (shown)
            check_snapshot(truth, shown, "out of memory");
        gp_snapshot_free(shown);
        assert_true(gp_sampler_free(sampler));
    }
    assert_true(complete);
    assert_true(n > 20);
    gp_snapshot_free(truth);
}

/* The seed of a run that failed makes it fail again. */
static void choose_turns(void)
{
    const char *given = getenv("GPULSE_TEST_SEED");
    const char *is_long = getenv("GPULSE_TEST_LONG");
    if (is_long && strcmp(is_long, "1") == 0)
        stride = 1;
    seed = given ? strtoul(given, NULL, 10) : gp_clock_wall_ns();
    seed %= stride;
    printf("# every %lu. failure from GPULSE_TEST_SEED=%lu on\n", stride, seed);
}

static int set_up(void **state)
{
    (void)state;
    const char *path = getenv("GPULSE_SIM_LIBRARY");
    (void)snprintf(library, sizeof(library), "%s", path ? path : "");
    temporary_name(folder, sizeof(folder), "nth");
    if (!path || !mkdtemp(folder))
        return -1;
    char calls[192];
    (void)snprintf(calls, sizeof(calls), "%s/calls", folder);
    return setenv("GPULSE_SIM_STATE", folder, 1) | setenv("GPULSE_SIM_COUNT", calls, 1) |
           setenv("GPULSE_SIM_STILL", "1", 1) | setenv("GPULSE_SIM_QUIET", "1", 1);
}

static int tear_down(void **state)
{
    (void)state;
    char command[192];
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    return system(command); /* NOLINT(cert-env33-c): a path of our own */
}

int main(void)
{
    choose_turns();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whichever_call_fails_no_value_is_untrue),
        cmocka_unit_test(whichever_read_fails_no_value_is_untrue),
        cmocka_unit_test(whichever_allocation_fails_no_value_is_untrue),
    };
    return cmocka_run_group_tests_name("nvml_nth", tests, set_up, tear_down);
}
