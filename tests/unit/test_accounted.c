/* Which of the driver's accounts are a job's, and what they say of its peak. */
#include "unit.h"

#include "base/clock.h"
#include "jobs/accounted.h"
#include "model/snapshot.h"

enum { MIB = 1 << 20, ACCOUNTS = 8, CELLS = GP_APP_RUNNING - GP_APP__FIRST + 1 };

static const uint64_t began_ns = 1700000000 * GP_NS_PER_S + 7 * GP_NS_PER_MS + 1234;

/* Two GPUs and the accounts of both. */
static struct {
    struct gp_snapshot snapshot;
    struct gp_device devices[2];
    struct gp_entry entries[ACCOUNTS];
    struct gp_value values[ACCOUNTS][CELLS];
    char starts[ACCOUNTS][GP_RFC3339_SIZE];
} seen;

static struct gp_accounted_pids pids;

static int nothing_seen(void **state)
{
    (void)state;
    memset(&seen, 0, sizeof(seen));
    pids.count = 0;
    seen.snapshot.devices = seen.devices;
    seen.snapshot.device_count = 2;
    seen.snapshot.lists[gp_list_index(GP_SCOPE_APP)].entries = seen.entries;
    return 0;
}

/* One that begins so long behind the job. */
static struct gp_value *add(size_t gpu, int64_t pid, int64_t mib, int64_t behind_ns)
{
    size_t i = seen.snapshot.lists[gp_list_index(GP_SCOPE_APP)].count++;
    struct gp_value *values = seen.values[i];
    gp_clock_rfc3339((uint64_t)((int64_t)began_ns + behind_ns), seen.starts[i]);
    gp_value_set_int(&values[GP_APP_PID - GP_APP__FIRST], pid, 0);
    gp_value_set_int(&values[GP_APP_MAX_MEMORY - GP_APP__FIRST], mib * MIB, 0);
    gp_value_set_text(&values[GP_APP_START - GP_APP__FIRST], seen.starts[i], 0);
    seen.entries[i] = (struct gp_entry){.device = gpu, .values = values};
    return values;
}

/* In MiB; −1: none is the job's. */
static void peak_is(size_t gpu, double expected)
{
    double peak = -1 * MIB;
    bool found = gp_accounted_peak(&seen.snapshot, &seen.devices[gpu], &pids, began_ns, &peak);
    assert_int_equal(found, expected >= 0);
    assert_float_equal(peak / MIB, expected, 0);
}

static void the_most_of_its_processes(void **state)
{
    (void)state;
    gp_accounted_add(&pids, 70);
    gp_accounted_add(&pids, 71);
    gp_accounted_add(&pids, 70);
    assert_int_equal(pids.count, 2);
    peak_is(0, -1);
    (void)add(0, 70, 500, GP_NS_PER_S);
    (void)add(0, 71, 300, GP_NS_PER_S);
    (void)add(0, 72, 900, GP_NS_PER_S); /* somebody else */
    (void)add(1, 71, 20, GP_NS_PER_S);
    peak_is(0, 500);
    peak_is(1, 20);
}

static void earlier_processes_with_its_pids(void **state)
{
    (void)state;
    gp_accounted_add(&pids, 70);
    (void)add(0, 70, 900, -2 * (int64_t)GP_NS_PER_MS);
    peak_is(0, -1);
    (void)add(0, 70, 100, 0); /* accounts tell milliseconds: it seems to begin a bit too early */
    peak_is(0, 100);
}

static void what_is_not_known(void **state)
{
    (void)state;
    gp_accounted_add(&pids, 70);
    gp_value_set_absent(&add(0, 70, 1, 0)[GP_APP_START - GP_APP__FIRST], GP_STATUS_UNSUPPORTED,
                        NULL, 0);
    gp_value_set_absent(&add(0, 70, 1, 0)[GP_APP_MAX_MEMORY - GP_APP__FIRST], GP_STATUS_UNSUPPORTED,
                        NULL, 0);
    add(0, 70, 1, 0)[GP_APP_PID - GP_APP__FIRST].status = GP_STATUS_STALE;
    struct gp_value *refused = add(0, 70, 1, 0); /* a list that cannot be read: one row */
    for (size_t i = 0; i < CELLS; i++)
        gp_value_set_absent(&refused[i], GP_STATUS_UNSUPPORTED, NULL, 0);
    peak_is(0, -1);
}

static void more_processes_than_accounts(void **state)
{
    (void)state;
    for (uint32_t pid = 1; pid <= GP_ACCOUNTED_PIDS + 1; pid++)
        gp_accounted_add(&pids, pid);
    (void)add(0, 1, 900, 0);
    peak_is(0, -1);
    (void)add(0, GP_ACCOUNTED_PIDS + 1, 100, 0);
    peak_is(0, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_most_of_its_processes, nothing_seen),
        cmocka_unit_test_setup(earlier_processes_with_its_pids, nothing_seen),
        cmocka_unit_test_setup(what_is_not_known, nothing_seen),
        cmocka_unit_test_setup(more_processes_than_accounts, nothing_seen),
    };
    return cmocka_run_group_tests_name("accounted", tests, NULL, NULL);
}
