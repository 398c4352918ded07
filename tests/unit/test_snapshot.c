/* Values of a snapshot as its readers ask for them. */
#include "unit.h"

#include "snapshot_fixture.h"

static struct fixture machine;

static int begin(void **state)
{
    (void)state;
    fixture_init(&machine);
    return 0;
}

static void words_of_states(void **state)
{
    (void)state;
    static const struct {
        enum gp_status status;
        const char *word;
    } cases[] = {
        {GP_STATUS_OK, "ok"},
        {GP_STATUS_TIMEOUT, "timeout"},
        {GP_STATUS_LOST, "lost"},
        {GP_STATUS_ASLEEP, "asleep"},
        {GP_STATUS_RELEASED, "released"},
        {GP_STATUS_NO_PERMISSION, "no_permission"},
        {GP_STATUS_ERROR, "error"},
        {GP_STATUS_UNSUPPORTED, "error"},
        {GP_STATUS_STALE, "error"},
        {(enum gp_status)1000, "error"},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++)
        assert_string_equal(gp_device_state(cases[i].status), cases[i].word);
}

static void numbers_and_texts_of_a_device(void **state)
{
    (void)state;
    struct gp_device *device = &machine.devices[FIXTURE_WELL];
    double number = -5;
    assert_true(gp_device_number(device, GP_POWER_LIMIT_ENFORCED, &number));
    assert_int_equal((int)number, 700);
    assert_true(gp_device_number_now(device, GP_FAN_SPEED, &number));
    assert_int_equal((int)number, 30);
    assert_string_equal(gp_device_text(device, GP_NAME, "?"), "NVIDIA H100 80GB HBM3");
    assert_string_equal(gp_device_text(device, GP_SERIAL, "?"), "?");
    number = -5;
    assert_false(gp_device_number(device, GP_MEMORY_FREE, &number)); /* and nothing is touched */
    assert_false(gp_device_number_now(device, GP_MEMORY_FREE, &number));
    assert_int_equal((int)number, -5);
    /* an old one is one, but not now */
    device = &machine.devices[FIXTURE_SILENT];
    assert_true(gp_device_number(device, GP_FAN_SPEED, &number));
    assert_int_equal((int)number, 30);
    number = -5;
    assert_false(gp_device_number_now(device, GP_FAN_SPEED, &number));
    assert_int_equal((int)number, -5);
}

static void values_seen_from_a_row(void **state)
{
    (void)state;
    const struct gp_snapshot *s = &machine.snapshot;
    const struct gp_device *device = &s->devices[FIXTURE_WELL];
    const struct gp_process *process = &s->processes[0];
    assert_int_equal(gp_snapshot_value(s, NULL, NULL, GP_COUNT)->i, 6);
    assert_int_equal(gp_snapshot_value(s, device, NULL, GP_INDEX)->i, 0);
    assert_int_equal(gp_snapshot_value(s, device, process, GP_PID)->i, 48448);
    static const enum gp_metric of_nobody[] = {GP_INDEX, GP_PID, GP_PEER_LINKS};
    for (size_t i = 0; i < GP_ARRAY_LEN(of_nobody); i++)
        assert_int_equal(gp_snapshot_value(s, NULL, NULL, of_nobody[i])->status, GP_STATUS_NONE);
    assert_int_equal(gp_snapshot_value(s, device, process, GP_PEER_LINKS)->status, GP_STATUS_NONE);
}

/* Rows have the columns that were asked for, and no others. */
static void columns_of_processes(void **state)
{
    (void)state;
    struct gp_metric_set metrics = {0};
    gp_metric_set_add(&metrics, GP_PROCESS_USER);
    gp_metric_set_add(&metrics, GP_PID);
    gp_metric_set_add(&metrics, GP_NAME); /* of a device */
    const struct gp_process_columns columns = gp_process_columns(&metrics);
    assert_int_equal(columns.count, 2);
    struct gp_value cells[2];
    const struct gp_process process = {.columns = &columns, .cells = cells};
    *(struct gp_value *)gp_process_value(&process, GP_PID) = fixture_int(7);
    *(struct gp_value *)gp_process_value(&process, GP_PROCESS_USER) = fixture_text("ann");
    assert_int_equal(gp_process_value(&process, GP_PID)->i, 7);
    assert_string_equal(gp_process_value(&process, GP_PROCESS_USER)->s, "ann");
    assert_int_equal(gp_process_value(&process, GP_PROCESS_MEMORY)->status, GP_STATUS_NONE);
}

static void whom_the_driver_lists(void **state)
{
    (void)state;
    assert_true(gp_snapshot_lists(&machine.snapshot, 48448));
    assert_true(gp_snapshot_lists(&machine.snapshot, 4190001));
    assert_false(gp_snapshot_lists(&machine.snapshot, 48449));
    machine.snapshot.process_count = 2;
    assert_false(gp_snapshot_lists(&machine.snapshot, 4190001));
    gp_snapshot_free(NULL);
}

#define SNAPSHOT(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SNAPSHOT(words_of_states),        SNAPSHOT(numbers_and_texts_of_a_device),
        SNAPSHOT(values_seen_from_a_row), SNAPSHOT(columns_of_processes),
        SNAPSHOT(whom_the_driver_lists),
    };
    return cmocka_run_group_tests_name("snapshot", tests, NULL, NULL);
}
