#include "unit.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "out/line.h"
#include "snapshot_fixture.h"

static struct fixture fixture;

static int set_up(void **state)
{
    (void)state;
    fixture_init(&fixture);
    return 0;
}

static void check_line(const char *pattern, int device, const char *expected)
{
    struct gp_metric_set metrics = {0};
    struct gp_err err = {0};
    struct gp_strbuf sb = GP_STRBUF_INIT(4096);
    if (gp_line_check(pattern, &metrics, &err) < 0)
        fail_msg("%s: %s", pattern, err.text);
    gp_line_format(&sb, pattern, &fixture.snapshot, &fixture.devices[device]);
    assert_string_equal(sb.buf, expected);
    gp_strbuf_fini(&sb);
}

static void fields_are_filled_in(void **state)
{
    (void)state;
    check_line("{index} {utilization.gpu}% {memory.used:GiB}/{memory.total:GiB} {temperature.gpu}C",
               FIXTURE_WELL, "0 97% 70.0/80.0 58C");
    check_line("{driver_version}|{name}", FIXTURE_WELL, "580.95.05|NVIDIA H100 80GB HBM3");
    check_line("{gpu_name}", FIXTURE_MIG_0, "NVIDIA A100-SXM4-80GB MIG 1g.20gb");
    check_line("", FIXTURE_WELL, "");
    check_line("no fields, 100 % text °", FIXTURE_WELL, "no fields, 100 % text °");
    check_line("%s%n{index}%d", FIXTURE_WELL, "%s%n0%d");
}

static void braces_are_doubled(void **state)
{
    (void)state;
    check_line("{{{index}}}", FIXTURE_WELL, "{0}");
    check_line("{{}}", FIXTURE_WELL, "{}");
    check_line("{{index}}", FIXTURE_WELL, "{index}");
    check_line("{{{{", FIXTURE_WELL, "{{");
    check_line("}", FIXTURE_WELL, "}"); /* a lone one can mean nothing else */
}

static void absent_values_have_words(void **state)
{
    (void)state;
    check_line("{utilization.gpu}|{enforced.power.limit}|{power.draw}", FIXTURE_POOR,
               "N/A|denied|error");
    check_line("{temperature.gpu}|{status}|{status.text}", FIXTURE_SILENT,
               "no answer|timeout|no answer for 12 s (nvmlDeviceGetPowerUsage)");
    check_line("{name}|{temperature.gpu}", FIXTURE_LOST, "NVIDIA H100 80GB HBM3|lost");
    check_line("{temperature.gpu}", FIXTURE_ASLEEP, "asleep");
}

static void the_metrics_that_are_needed(void **state)
{
    (void)state;
    struct gp_metric_set metrics = {0};
    assert_int_equal(gp_line_check("{{x}} {index}{memory.used:MiB}{clocks.gr}", &metrics, NULL), 0);
    for (int m = 0; m < GP_METRIC__COUNT; m++)
        assert_int_equal(gp_metric_set_has(&metrics, (enum gp_metric)m),
                         m == GP_INDEX || m == GP_MEMORY_USED || m == GP_CLOCK_GRAPHICS);
}

static void check_bad(const char *pattern, const char *words)
{
    struct gp_metric_set metrics = {0};
    struct gp_err err = {0};
    assert_int_equal(gp_line_check(pattern, &metrics, &err), GP_EUSAGE);
    if (!strstr(err.text, words))
        fail_msg("'%s' does not say '%s'", err.text, words);
}

static void bad_patterns(void **state)
{
    (void)state;
    check_bad("{index", "'{' without '}' at column 1 of the line pattern");
    check_bad("abc {", "at column 5");
    check_bad("{}", "unknown field ''");
    check_bad("{indx}", "did you mean 'index'?");
    check_bad("{memory.used:W}", "unknown unit 'W'");
    check_bad("{pid}", "cannot contain fields of processes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(fields_are_filled_in, set_up),
        cmocka_unit_test_setup(braces_are_doubled, set_up),
        cmocka_unit_test_setup(absent_values_have_words, set_up),
        cmocka_unit_test_setup(the_metrics_that_are_needed, set_up),
        cmocka_unit_test_setup(bad_patterns, set_up),
    };
    return cmocka_run_group_tests_name("line", tests, NULL, NULL);
}
