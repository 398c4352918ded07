/* Names, units and kinds over the whole catalogue; the text itself is tested in test_writer.c and,
 * with a foreign parser, in check_writers.py. */
#include "unit.h"

#include "base/strbuf.h"
#include "out/openmetrics.h"
#include "out/rows.h"
#include "snapshot_fixture.h"

static struct fixture fixture;

static const char *family(enum gp_metric m)
{
    static struct gp_strbuf sb = GP_STRBUF_INIT(1024);
    gp_strbuf_reset(&sb);
    gp_openmetrics_add_family(&sb, m);
    assert_int_equal(sb.error, 0);
    return sb.buf;
}

static void names_follow_the_rule(void **state)
{
    (void)state;
    static const struct {
        enum gp_metric metric;
        const char *family;
    } rows[] = {
        {GP_MEMORY_USED, "gpulse_gpu_memory_used_bytes"},
        {GP_MEMORY_TOTAL, "gpulse_gpu_memory_total_bytes"},
        {GP_TEMPERATURE_GPU, "gpulse_gpu_temperature_gpu_celsius"},
        {GP_UTILIZATION_GPU, "gpulse_gpu_utilization_gpu_ratio"},
        {GP_POWER_DRAW, "gpulse_gpu_power_draw_watts"},
        {GP_CLOCK_SM, "gpulse_gpu_clocks_current_sm_hertz"},
        {GP_PSTATE, "gpulse_gpu_pstate_info"},
        {GP_RECOVERY_ACTION, "gpulse_gpu_recovery_action_info"},
        {GP_STATUS, "gpulse_gpu_status"},
        {GP_REASONS_ACTIVE, "gpulse_gpu_clocks_event_reasons_active"},
        {GP_ECC_CORRECTED_VOLATILE, "gpulse_gpu_ecc_errors_corrected_volatile"},
        {GP_ENERGY, "gpulse_gpu_energy_consumption_joules"},
        {GP_PCIE_TX, "gpulse_gpu_pcie_throughput_tx_bytes_per_second"},
        {GP_TIMESTAMP, "gpulse_host_timestamp_seconds"},
        {GP_COUNT, "gpulse_host_count"},
        {GP_HOST_MEMORY_TOTAL, "gpulse_host_memory_total_bytes"},
        {GP_PROCESS_MEMORY, "gpulse_process_used_gpu_memory_bytes"},
        {GP_PROCESS_CPU, "gpulse_process_cpu_ratio"},
        {GP_PROCESS_NAME, "gpulse_process_name_info"},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(rows); i++)
        assert_string_equal(family(rows[i].metric), rows[i].family);
}

static void every_metric_has_a_family_of_its_own(void **state)
{
    (void)state;
    static char names[GP_METRIC__COUNT][128];
    for (int m = 0; m < GP_METRIC__COUNT; m++) {
        (void)snprintf(names[m], sizeof(names[m]), "%s%s", family((enum gp_metric)m),
                       gp_openmetrics_is_counter((enum gp_metric)m) ? "_total" : "");
        const char *name = names[m];
        assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                      "0123456789_"),
                         strlen(name));
        for (int k = 0; k < m; k++)
            if (strcmp(names[k], name) == 0)
                fail_msg("%s and %s are both called %s", GP_METRIC_NAME(k), GP_METRIC_NAME(m),
                         name);
    }
}

/* Older parsers take no escaped quotes in a help text. */
static void no_help_has_quotes(void **state)
{
    (void)state;
    for (int m = 0; m < GP_METRIC__COUNT; m++)
        if (strpbrk(GP_METRIC_HELP(m), "\"\\\n"))
            fail_msg("%s: quotes in the help", GP_METRIC_NAME(m));
}

/* Names that XML, too, takes as they are. */
static void every_metric_is_a_name_in_xml(void **state)
{
    (void)state;
    for (int m = 0; m < GP_METRIC__COUNT; m++) {
        const char *name = GP_METRIC_NAME(m);
        assert_true(strchr("abcdefghijklmnopqrstuvwxyz", *name) != NULL);
        assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                      "0123456789_.-"),
                         strlen(name));
    }
}

static void what_grows_is_a_counter(void **state)
{
    (void)state;
    assert_true(gp_openmetrics_is_counter(GP_ECC_UNCORRECTED_AGGREGATE));
    assert_true(gp_openmetrics_is_counter(GP_ENERGY));
    assert_true(gp_openmetrics_is_counter(GP_PROCESS_ENERGY));
    assert_false(gp_openmetrics_is_counter(GP_ECC_MODE));
    assert_false(gp_openmetrics_is_counter(GP_MEMORY_TOTAL));
    assert_false(gp_openmetrics_is_counter(GP_UTILIZATION_GPU));
}

static void identity_is_wanted(void **state)
{
    (void)state;
    struct gp_field fields[] = {{.metric = GP_TEMPERATURE_GPU}, {.metric = GP_DRIVER_VERSION}};
    struct gp_view view = {.scope = GP_SCOPE_DEVICE, .fields = {fields, 2}};
    struct gp_metric_set set = {0};
    gp_writer_openmetrics.want(&view, &set);
    assert_true(gp_metric_set_has(&set, GP_UUID));
    assert_true(gp_metric_set_has(&set, GP_NAME));
    assert_true(gp_metric_set_has(&set, GP_PCI_BUS_ID));
    assert_false(gp_metric_set_has(&set, GP_TEMPERATURE_GPU)); /* that is query's business */
    assert_false(gp_metric_set_has_scope(&set, GP_SCOPE_PROCESS));
    /* a field of the host asks for nobody's identity */
    set = (struct gp_metric_set){0};
    fields[0].metric = GP_COUNT;
    gp_writer_openmetrics.want(&view, &set);
    assert_false(gp_metric_set_has_scope(&set, GP_SCOPE_DEVICE));
}

static const char *text_of(enum gp_metric m)
{
    static struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    struct gp_field field = {.metric = m};
    struct gp_view view = {.scope = GP_SCOPE_DEVICE, .fields = {&field, 1}};
    struct gp_writer_state writer_state = {0};
    gp_strbuf_reset(&sb);
    gp_writer_openmetrics.sample(&view, &writer_state, &fixture.snapshot, &sb);
    assert_int_equal(sb.error, 0);
    return sb.buf;
}

static void numbers_are_whole(void **state)
{
    (void)state;
    fixture_init(&fixture);
    fixture.snapshot.device_count = 1;
    *fixture_value(&fixture, 0, GP_MEMORY_USED) = fixture_int(INT64_C(1234567890123456789));
    assert_non_null(strstr(text_of(GP_MEMORY_USED), "\"} 1234567890123456789\n"));
    *fixture_value(&fixture, 0, GP_REASONS_ACTIVE) = fixture_int(-1);
    assert_non_null(strstr(text_of(GP_REASONS_ACTIVE), "\"} 18446744073709551615\n"));
    *fixture_value(&fixture, 0, GP_UTILIZATION_GPU) = fixture_int(97);
    assert_non_null(strstr(text_of(GP_UTILIZATION_GPU), "\"} 0.97\n"));
    *fixture_value(&fixture, 0, GP_CLOCK_SM) = fixture_int(1980);
    assert_non_null(strstr(text_of(GP_CLOCK_SM), "\"} 1980000000\n"));
    *fixture_value(&fixture, 0, GP_POWER_DRAW) = fixture_real(67.448);
    assert_non_null(strstr(text_of(GP_POWER_DRAW), "\"} 67.448\n"));
    *fixture_value(&fixture, 0, GP_TEMPERATURE_TLIMIT) = fixture_int(-3);
    assert_non_null(strstr(text_of(GP_TEMPERATURE_TLIMIT), "\"} -3\n"));
}

/* The fixture has a GPU in every state. */
static void no_number_where_there_is_none(void **state)
{
    (void)state;
    fixture_init(&fixture);
    const char *text = text_of(GP_TEMPERATURE_GPU);
    assert_non_null(strstr(text, "{gpu=\"0\""));
    assert_null(strstr(text, "{gpu=\"2\"")); /* silent: its last number is old */
    assert_null(strstr(text, "{gpu=\"3\"")); /* lost */
    assert_null(strstr(text, "{gpu=\"5\"")); /* asleep */
    text = text_of(GP_STATUS);
    assert_non_null(strstr(text, "status=\"timeout\"} 1\n"));
    assert_non_null(strstr(text, "status=\"lost\"} 1\n"));
    assert_non_null(strstr(text, "status=\"asleep\"} 1\n"));
    text = text_of(GP_STATUS_TEXT); /* words that change would be a new series each */
    assert_string_equal(text, "# EOF\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_follow_the_rule),
        cmocka_unit_test(every_metric_has_a_family_of_its_own),
        cmocka_unit_test(no_help_has_quotes),
        cmocka_unit_test(every_metric_is_a_name_in_xml),
        cmocka_unit_test(what_grows_is_a_counter),
        cmocka_unit_test(identity_is_wanted),
        cmocka_unit_test(numbers_are_whole),
        cmocka_unit_test(no_number_where_there_is_none),
    };
    return cmocka_run_group_tests_name("openmetrics", tests, NULL, NULL);
}
