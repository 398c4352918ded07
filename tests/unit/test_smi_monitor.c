/* What no capture shows: the values between two samples, and those of a GPU that does not respond.
 */
#include "unit.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "smi/monitor.h"
#include "smi/processes.h"
#include "snapshot_fixture.h"
#include "source/source.h"

static struct fixture fixture;
static struct gp_smi_form form = {GP_SMI_DRIVER(595, 71), false};

static int set_up(void **state)
{
    (void)state;
    fixture_init(&fixture);
    return 0;
}

/* The row of GPU `index`, or of its first process; the caller's until the next call. */
static const char *row_of(struct gp_smi_monitor *m, unsigned index)
{
    static char row[256];
    char start[16];
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 16);
    gp_smi_monitor_print(m, &sb, &form, &fixture.snapshot);
    assert_int_equal(sb.error, 0);
    (void)snprintf(start, sizeof(start), "\n%5u ", index);
    const char *found = strstr(sb.buf, start);
    assert_non_null(found);
    (void)snprintf(row, sizeof(row), "%.*s", (int)strcspn(found + 1, "\n"), found + 1);
    gp_strbuf_fini(&sb);
    return row;
}

static const char *device_row(const char *groups, unsigned index)
{
    struct gp_smi_monitor m;
    gp_smi_monitor_init(&m, GP_SMI_DMON);
    assert_true(gp_smi_monitor_select(&m, groups, NULL));
    return row_of(&m, index);
}

static const char *process_row(const char *groups, unsigned index)
{
    struct gp_smi_monitor m;
    gp_smi_monitor_init(&m, GP_SMI_PMON);
    assert_true(gp_smi_monitor_select(&m, groups, NULL));
    return row_of(&m, index);
}

static void throttling(void **state)
{
    (void)state;
    assert_string_equal(device_row("v", 0), "    0      -      - ");
    *fixture_value(&fixture, FIXTURE_WELL, GP_THROTTLE_SW_POWER_CAP) = fixture_real(37.9);
    *fixture_value(&fixture, FIXTURE_WELL, GP_THROTTLE_THERMAL) = fixture_real(0);
    *fixture_value(&fixture, FIXTURE_WELL, GP_THROTTLE_SW_THERMAL) = fixture_real(50);
    assert_string_equal(device_row("v", 0), "    0     37      0 ");
    *fixture_value(&fixture, FIXTURE_WELL, GP_THROTTLE_THERMAL) = fixture_real(0.1);
    assert_string_equal(device_row("v", 0), "    0     37      1 ");
    *fixture_value(&fixture, FIXTURE_WELL, GP_THROTTLE_THERMAL) =
        fixture_absent(GP_STATUS_UNSUPPORTED);
    assert_string_equal(device_row("v", 0), "    0     37      1 ");
}

static void throughput(void **state)
{
    (void)state;
    *fixture_value(&fixture, FIXTURE_WELL, GP_PCIE_RX) = fixture_real(1999999);
    *fixture_value(&fixture, FIXTURE_WELL, GP_PCIE_TX) = fixture_real(25e9);
    assert_string_equal(device_row("t", 0), "    0      1  25000 ");
    *fixture_value(&fixture, FIXTURE_WELL, GP_ECC_CORRECTED_VOLATILE) = fixture_int(12);
    *fixture_value(&fixture, FIXTURE_WELL, GP_ECC_UNCORRECTED_VOLATILE) = fixture_int(3);
    *fixture_value(&fixture, FIXTURE_WELL, GP_PCIE_REPLAYS) = fixture_int(4);
    assert_string_equal(device_row("e", 0), "    0     12      3      4 ");
}

static void old_numbers_are_none(void **state)
{
    (void)state;
    assert_string_equal(device_row("p", 0), "    0    612     58      - ");
    assert_string_equal(device_row("p", 2), "    2      -      -      - ");
    assert_string_equal(device_row("p", 3), "    3      -      -      - ");
    assert_string_equal(device_row("m", 0), "    0  71681      -      - ");
    form.driver = GP_SMI_DRIVER(550, 54);
    assert_string_equal(device_row("m", 0), "    0  71680      -      - ");
    form.driver = GP_SMI_DRIVER(595, 71);
}

static void names(void **state)
{
    static const struct {
        const char *given;
        const char *printed;
    } cases[] = {
        {"/usr/bin/sixteen-letters!", "sixteen-letters"},
        {"fifteen-letters", "fifteen-letters"},
        {"/a/b", "b              "},
        /* not in the middle of a character */
        {"/a/12345678901234\u00e4\u00e4", "12345678901234 "},
        {"/a/1234567890123\u00e4\u00e4", "1234567890123\u00e4"},
    };
    (void)state;
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        char expected[128];
        *fixture_process(&fixture, 0, GP_SMI_PROCESS_NAME) = fixture_text(cases[i].given);
        (void)snprintf(expected, sizeof(expected), "    0      48448     C  70113      -    %s",
                       cases[i].printed);
        assert_string_equal(process_row("m", 0), expected);
    }
}

static void shares(void **state)
{
    (void)state;
    *fixture_process(&fixture, 0, GP_PROCESS_SM) = fixture_int(0);
    *fixture_process(&fixture, 0, GP_PROCESS_MEM) = fixture_int(0);
    *fixture_process(&fixture, 0, GP_PROCESS_ENC) = fixture_int(100);
    *fixture_process(&fixture, 0, GP_PROCESS_OFA) = fixture_int(0);
    assert_non_null(strstr(process_row("u", 0), "C      -      -    100      -      -      -    "));
    *fixture_process(&fixture, 0, GP_PROCESS_MEM) = fixture_int(3);
    assert_non_null(strstr(process_row("u", 0), "C      0      3    100      -      -      -    "));
    /* protected memory of a process: none where the GPU has none, else not known */
    *fixture_value(&fixture, FIXTURE_WELL, GP_PROTECTED_TOTAL) = fixture_int(0);
    assert_non_null(strstr(process_row("m", 0), "C  70113      0    "));
    *fixture_value(&fixture, FIXTURE_WELL, GP_PROTECTED_TOTAL) = fixture_int(1);
    assert_non_null(strstr(process_row("m", 0), "C  70113      -    "));
}

static void refusal(void **state)
{
    struct gp_smi_monitor m;
    (void)state;
    gp_smi_monitor_init(&m, GP_SMI_PMON);
    assert_false(gp_smi_monitor_is_refused(&m, &fixture.snapshot)); /* one is told */
    *fixture_process(&fixture, 0, GP_PROCESS_SM) = fixture_absent(GP_STATUS_UNSUPPORTED);
    assert_true(gp_smi_monitor_is_refused(&m, &fixture.snapshot));
    *fixture_process(&fixture, 2, GP_PROCESS_GI) = fixture_int(1); /* of a divided GPU */
    assert_false(gp_smi_monitor_is_refused(&m, &fixture.snapshot));
    gp_smi_monitor_init(&m, GP_SMI_DMON);
    assert_false(gp_smi_monitor_is_refused(&m, &fixture.snapshot));
}

static void wanted(void **state)
{
    struct gp_smi_monitor m;
    struct gp_want want = {.fresh = false};
    (void)state;
    gp_smi_monitor_init(&m, GP_SMI_DMON);
    gp_smi_monitor_want(&m, &want);
    assert_true(gp_metric_set_has(&want.metrics, GP_POWER_DRAW));
    assert_false(gp_metric_set_has(&want.metrics, GP_MEMORY_USED));
    assert_false(gp_metric_set_has_tier(&want.metrics, GP_TIER_RATE));
    assert_false(want.processes || want.lists);
    gp_smi_monitor_init(&m, GP_SMI_FBC_SESSIONS);
    gp_smi_monitor_want(&m, &want);
    assert_int_equal(want.lists, 1 << gp_list_index(GP_SCOPE_CAPTURE));
}

static void no_memory(void **state)
{
    (void)state;
    for (long n = 0;; n++) {
        struct gp_smi_monitor m;
        struct gp_strbuf sb = GP_STRBUF_INIT(1 << 16);
        gp_smi_monitor_init(&m, GP_SMI_PMON);
        (void)alloc_count();
        alloc_fail_at(n);
        gp_smi_monitor_print(&m, &sb, &form, &fixture.snapshot);
        bool failed = alloc_count() > n;
        alloc_fail_from(-1);
        assert_int_equal(sb.error, failed ? GP_ENOMEM : 0);
        gp_strbuf_fini(&sb);
        if (!failed)
            break;
        assert_true(n < 20);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(throttling, set_up),
        cmocka_unit_test_setup(throughput, set_up),
        cmocka_unit_test_setup(old_numbers_are_none, set_up),
        cmocka_unit_test_setup(names, set_up),
        cmocka_unit_test_setup(shares, set_up),
        cmocka_unit_test_setup(refusal, set_up),
        cmocka_unit_test_setup(wanted, set_up),
        cmocka_unit_test_setup(no_memory, set_up),
    };
    return cmocka_run_group_tests_name("smi_monitor", tests, NULL, NULL);
}
