#include "nvml_rig.h"

#include "base/strbuf.h"
#include "source/control.h"

/* ---- the table ---- */

static bool is_word(const char *s)
{
    return s && *s && s[strspn(s, "abcdefghijklmnopqrstuvwxyz-")] == '\0';
}

static bool is_phrase(const char *s)
{
    return s && *s && s[strlen(s) - 1] != '.' && !strchr(s, '\n');
}

static void every_row_is_complete(void **state)
{
    (void)state;
    for (size_t i = 0; i < GP_CONTROL__COUNT; i++) {
        const struct gp_control *c = &gp_control_table[i];
        bool listed = c->kind == GP_CONTROL_CHOICE || c->kind == GP_CONTROL_CLEAR;
        bool numbers = c->kind == GP_CONTROL_WATTS || c->kind == GP_CONTROL_RANGE ||
                       c->kind == GP_CONTROL_PAIR || c->kind == GP_CONTROL_OFFSET ||
                       c->kind == GP_CONTROL_FANS || c->kind == GP_CONTROL_NUMBER;
        if (!is_word(c->name) || !is_phrase(c->summary) || !is_phrase(c->syntax) ||
            !is_phrase(c->needs) || !is_phrase(c->takes_effect) || !is_phrase(c->lasts))
            fail_msg("row %zu (%s) lacks something", i, c->name);
        assert_int_equal(listed, c->choices != NULL);
        assert_int_equal(numbers, c->unit != NULL);
        /* Nobody can bring back what a counter was. */
        if (c->kind == GP_CONTROL_CLEAR)
            assert_non_null(c->loses);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(c->name, gp_control_table[j].name);
    }
}

static void what_others_need_is_applied_first(void **state)
{
    (void)state;
    assert_true(GP_CONTROL_MIG_MODE < GP_CONTROL_MIG_INSTANCES);
    for (size_t i = 0; i < GP_CONTROL__COUNT; i++)
        if (gp_control_table[i].is_volatile)
            assert_true(GP_CONTROL_PERSISTENCE < i);
}

static void names_are_found_and_suggested(void **state)
{
    (void)state;
    enum gp_control_id id = GP_CONTROL__COUNT;
    struct gp_err err = {0};
    for (unsigned i = 0; i < GP_CONTROL__COUNT; i++) {
        const char *name = gp_control_table[i].name;
        assert_int_equal(gp_control_find(name, strlen(name), &id, &err), 0);
        assert_int_equal(id, i);
    }
    id = GP_CONTROL__COUNT;
    assert_int_equal(gp_control_find("power-limti=3", 11, &id, &err), GP_EUSAGE);
    assert_non_null(strstr(err.text, "'power-limti' (did you mean 'power-limit'?)"));
    assert_int_equal(gp_control_find("", 0, &id, &err), GP_EUSAGE);
    assert_int_equal(id, GP_CONTROL__COUNT);
}

/* ---- values ---- */

static void check_text(enum gp_control_id id, const struct gp_control_value *value, bool unit,
                       const char *expected)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1024);
    gp_control_format(&sb, id, value, unit);
    assert_string_equal(sb.buf, expected);
    gp_strbuf_fini(&sb);
}

/* What is read, and how it is written again: the same value. */
static void values_are_read_and_written(void **state)
{
    (void)state;
    static const struct {
        enum gp_control_id id;
        const char *text, *canonical, *shown;
    } cases[] = {
        {GP_CONTROL_PERSISTENCE, "on", "on", "on"},
        {GP_CONTROL_PERSISTENCE, "disabled", "off", "off"},
        {GP_CONTROL_ECC_MODE, "1", "on", "on"},
        {GP_CONTROL_ECC_MODE, "no", "off", "off"},
        {GP_CONTROL_COMPUTE_MODE, "exclusive-process", "exclusive-process", "exclusive-process"},
        {GP_CONTROL_OPERATION_MODE, "low-dp", "low-dp", "low-dp"},
        {GP_CONTROL_POWER_LIMIT, "300", "300", "300 W"},
        {GP_CONTROL_POWER_LIMIT, "300.5W", "300.500", "300.500 W"},
        {GP_CONTROL_POWER_LIMIT, "1.2kW", "1200", "1200 W"},
        {GP_CONTROL_POWER_LIMIT, "default", "default", "default"},
        {GP_CONTROL_LOCK_GPU_CLOCKS, "1200,1500", "1200,1500", "1200,1500 MHz"},
        {GP_CONTROL_LOCK_GPU_CLOCKS, "1500", "1500,1500", "1500,1500 MHz"},
        {GP_CONTROL_LOCK_GPU_CLOCKS, "tdp", "tdp", "tdp"},
        {GP_CONTROL_LOCK_GPU_CLOCKS, "tdp,tdp", "tdp", "tdp"},
        {GP_CONTROL_LOCK_MEMORY_CLOCKS, "reset", "reset", "reset"},
        {GP_CONTROL_LOCK_MEMORY_CLOCKS, "auto", "reset", "reset"},
        {GP_CONTROL_POWER_LIMIT, "reset", "default", "default"},
        {GP_CONTROL_GPU_CLOCK_OFFSET, "default", "default", "default"},
        {GP_CONTROL_FAN_SPEED, "default", "auto", "auto"},
        {GP_CONTROL_FAN_SPEED, "1:reset", "1:auto", "1:auto"},
        {GP_CONTROL_APPLICATION_CLOCKS, "5001,1590", "5001,1590", "5001,1590 MHz"},
        {GP_CONTROL_GPU_CLOCK_OFFSET, "-150", "-150", "-150 MHz"},
        {GP_CONTROL_GPU_CLOCK_OFFSET, "+150", "+150", "+150 MHz"},
        {GP_CONTROL_MEMORY_CLOCK_OFFSET, "0", "+0", "+0 MHz"},
        {GP_CONTROL_TARGET_TEMPERATURE, "80", "80", "80 °C"},
        {GP_CONTROL_AUTO_BOOST_ACCESS, "all", "all", "all"},
        {GP_CONTROL_VIRTUALIZATION_MODE, "host-vsga", "host-vsga", "host-vsga"},
        {GP_CONTROL_HOSTNAME, "node-17.Example_a", "node-17.Example_a", "node-17.Example_a"},
        {GP_CONTROL_HOSTNAME, "none", "none", "none"},
        {GP_CONTROL_FAN_SPEED, "70", "70", "70 %"},
        {GP_CONTROL_FAN_SPEED, "auto", "auto", "auto"},
        {GP_CONTROL_FAN_SPEED, "1:70", "1:70", "1:70 %"},
        {GP_CONTROL_FAN_SPEED, "2:auto,0:55", "0:55,2:auto", "0:55 %,2:auto"},
        {GP_CONTROL_MIG_INSTANCES, "3g.40gb,1g.10gb+me", "3g.40gb,1g.10gb+me",
         "3g.40gb,1g.10gb+me"},
        {GP_CONTROL_MIG_INSTANCES, "none", "none", "none"},
        {GP_CONTROL_ECC_COUNTERS, "clear-volatile", "clear-volatile", "clear-volatile"},
        {GP_CONTROL_NVLINK_COUNTERS, "clear", "clear", "clear"},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_control_value value, again;
        struct gp_err err = {0};
        if (gp_control_parse(cases[i].id, cases[i].text, &value, &err) < 0)
            fail_msg("%s", err.text);
        check_text(cases[i].id, &value, false, cases[i].canonical);
        check_text(cases[i].id, &value, true, cases[i].shown);
        assert_int_equal(gp_control_parse(cases[i].id, cases[i].canonical, &again, &err), 0);
        if (gp_control_table[cases[i].id].kind != GP_CONTROL_CLEAR)
            assert_true(gp_control_satisfies(cases[i].id, &again, &value));
    }
}

static void nonsense_is_refused_with_the_syntax(void **state)
{
    (void)state;
    static const struct {
        enum gp_control_id id;
        const char *text;
    } cases[] = {
        {GP_CONTROL_PERSISTENCE, ""},
        {GP_CONTROL_PERSISTENCE, "ON"},
        {GP_CONTROL_PERSISTENCE, "2"},
        {GP_CONTROL_COMPUTE_MODE, "exclusive"},
        {GP_CONTROL_POWER_LIMIT, ""},
        {GP_CONTROL_POWER_LIMIT, "-5"},
        {GP_CONTROL_POWER_LIMIT, "300 W"},
        {GP_CONTROL_POWER_LIMIT, "99999999"},
        {GP_CONTROL_LOCK_GPU_CLOCKS, "1500,1200"},
        {GP_CONTROL_LOCK_GPU_CLOCKS, "1200,"},
        {GP_CONTROL_LOCK_GPU_CLOCKS, "1200,1300,1400"},
        {GP_CONTROL_LOCK_GPU_CLOCKS, "tdp,1500"},
        {GP_CONTROL_LOCK_MEMORY_CLOCKS, "tdp"},
        {GP_CONTROL_PERSISTENCE, "default"},
        {GP_CONTROL_COMPUTE_MODE, "reset"},
        {GP_CONTROL_APPLICATION_CLOCKS, "5001"},
        {GP_CONTROL_GPU_CLOCK_OFFSET, "+-5"},
        {GP_CONTROL_GPU_CLOCK_OFFSET, "-"},
        {GP_CONTROL_TARGET_TEMPERATURE, "-5"},
        {GP_CONTROL_TARGET_TEMPERATURE, "80C"},
        {GP_CONTROL_TARGET_TEMPERATURE, "default"},
        {GP_CONTROL_APP_CLOCKS_ACCESS, "0"},
        {GP_CONTROL_HOSTNAME, ""},
        {GP_CONTROL_HOSTNAME, "a b"},
        {GP_CONTROL_HOSTNAME, "a\"b"},
        {GP_CONTROL_HOSTNAME, "1234567890123456789012345678901234567890123456789012345678901234"},
        {GP_CONTROL_FAN_SPEED, "-5"},
        {GP_CONTROL_FAN_SPEED, "0:"},
        {GP_CONTROL_FAN_SPEED, ":50"},
        {GP_CONTROL_FAN_SPEED, "0:50,"},
        {GP_CONTROL_FAN_SPEED, "0:50,0:60"},
        {GP_CONTROL_FAN_SPEED, "16:50"},
        {GP_CONTROL_FAN_SPEED, "50,60"},
        {GP_CONTROL_MIG_INSTANCES, ""},
        {GP_CONTROL_MIG_INSTANCES, ",1g.10gb"},
        {GP_CONTROL_MIG_INSTANCES, "1g.10gb,,1g.10gb"},
        {GP_CONTROL_MIG_INSTANCES, "1g 10gb"},
        {GP_CONTROL_ECC_COUNTERS, "clear"},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_control_value value = {.n = {4711}};
        struct gp_err err = {0};
        const struct gp_control *control = &gp_control_table[cases[i].id];
        if (gp_control_parse(cases[i].id, cases[i].text, &value, &err) != GP_EUSAGE)
            fail_msg("%s=%s is taken", control->name, cases[i].text);
        assert_int_equal(value.n[0], 4711);
        assert_non_null(strstr(err.text, control->syntax));
    }
}

static void a_range_upside_down_is_named(void **state)
{
    (void)state;
    struct gp_control_value value;
    struct gp_err err = {0};
    assert_int_equal(gp_control_parse(GP_CONTROL_LOCK_GPU_CLOCKS, "1500,1200", &value, &err),
                     GP_EUSAGE);
    assert_string_equal(err.text, "lock-gpu-clocks=1500,1200: the minimum is greater than the "
                                  "maximum; expected MIN,MAX|MHZ|tdp|reset (in MHz)");
}

static struct gp_control_value parsed(enum gp_control_id id, const char *text)
{
    struct gp_control_value value;
    struct gp_err err = {0};
    if (gp_control_parse(id, text, &value, &err) < 0)
        fail_msg("%s", err.text);
    return value;
}

static void values_out_of_the_range_are_told_the_range(void **state)
{
    (void)state;
    static const struct {
        enum gp_control_id id;
        const char *text;
        int64_t min, max;
        const char *refusal; /* NULL: fits */
    } cases[] = {
        {GP_CONTROL_POWER_LIMIT, "100", 100000, 400000, NULL},
        {GP_CONTROL_POWER_LIMIT, "400", 100000, 400000, NULL},
        {GP_CONTROL_POWER_LIMIT, "99.999", 100000, 400000,
         "power-limit=99.999 W is out of range: 100 to 400 W"},
        {GP_CONTROL_POWER_LIMIT, "401", 100000, 400500,
         "power-limit=401 W is out of range: 100 to 400.5 W"},
        {GP_CONTROL_LOCK_GPU_CLOCKS, "0,1980", 0, 1980, NULL},
        {GP_CONTROL_LOCK_GPU_CLOCKS, "0,1980", 210, 1980, NULL},
        {GP_CONTROL_LOCK_GPU_CLOCKS, "tdp", 210, 1980, NULL},
        {GP_CONTROL_LOCK_GPU_CLOCKS, "1,2", 210, 1980,
         "lock-gpu-clocks=1,2 MHz is out of range: 210 to 1980 MHz"},
        {GP_CONTROL_LOCK_GPU_CLOCKS, "5,1981", 0, 1980,
         "lock-gpu-clocks=5,1981 MHz is out of range: 0 to 1980 MHz"},
        {GP_CONTROL_GPU_CLOCK_OFFSET, "-1000", -1000, 1000, NULL},
        {GP_CONTROL_GPU_CLOCK_OFFSET, "-1001", -1000, 1000,
         "gpu-clock-offset=-1001 MHz is out of range: -1000 to +1000 MHz"},
        {GP_CONTROL_TARGET_TEMPERATURE, "65", 65, 90, NULL},
        {GP_CONTROL_TARGET_TEMPERATURE, "91", 65, 90,
         "target-temperature=91 °C is out of range: 65 to 90 °C"},
        {GP_CONTROL_FAN_SPEED, "29", 30, 100, "fan-speed=29 % is out of range: 30 to 100 %"},
        {GP_CONTROL_FAN_SPEED, "0:auto,1:30", 30, 100, NULL},
        {GP_CONTROL_FAN_SPEED, "0:auto,1:101", 30, 100,
         "fan-speed=0:auto,1:101 % is out of range: 30 to 100 %"},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        const struct gp_setting setting = {
            .has_range = true, .min = cases[i].min, .max = cases[i].max};
        struct gp_control_value value = parsed(cases[i].id, cases[i].text);
        struct gp_err err = {0};
        int r = gp_control_check(cases[i].id, &setting, &value, &err);
        assert_int_equal(r, cases[i].refusal ? GP_EUSAGE : 0);
        if (cases[i].refusal)
            assert_string_equal(err.text, cases[i].refusal);
    }
}

static void default_becomes_what_the_gpu_says_it_is(void **state)
{
    (void)state;
    struct gp_setting setting = {.has_range = true,
                                 .min = 100000,
                                 .max = 400000,
                                 .has_fallback = true,
                                 .fallback = {.n = {350000}}};
    struct gp_control_value value = parsed(GP_CONTROL_POWER_LIMIT, "default");
    assert_int_equal(gp_control_check(GP_CONTROL_POWER_LIMIT, &setting, &value, NULL), 0);
    check_text(GP_CONTROL_POWER_LIMIT, &value, false, "350");
    /* Where it is not known the driver is asked for it. */
    setting.has_fallback = false;
    value = parsed(GP_CONTROL_POWER_LIMIT, "default");
    assert_int_equal(gp_control_check(GP_CONTROL_POWER_LIMIT, &setting, &value, NULL), 0);
    assert_true(value.automatic);
}

static void what_is_so_already_is_known(void **state)
{
    (void)state;
    static const struct {
        enum gp_control_id id;
        const char *is, *wanted;
        bool satisfied;
    } cases[] = {
        {GP_CONTROL_POWER_LIMIT, "300", "300", true},
        {GP_CONTROL_POWER_LIMIT, "300", "301", false},
        {GP_CONTROL_APPLICATION_CLOCKS, "5001,1590", "5001,1200", false},
        {GP_CONTROL_MIG_INSTANCES, "3g.40gb,4g.40gb", "4g.40gb,3g.40gb", true},
        {GP_CONTROL_MIG_INSTANCES, "1g.10gb", "1g.10gb,1g.10gb", false},
        {GP_CONTROL_MIG_INSTANCES, "none", "none", true},
        {GP_CONTROL_TARGET_TEMPERATURE, "80", "81", false},
        {GP_CONTROL_HOSTNAME, "a", "a", true},
        {GP_CONTROL_HOSTNAME, "a", "none", false},
        {GP_CONTROL_FAN_SPEED, "70", "70", true},
        {GP_CONTROL_FAN_SPEED, "70", "auto", false},
        {GP_CONTROL_FAN_SPEED, "70", "1:70", true},
        {GP_CONTROL_FAN_SPEED, "0:70,1:80", "1:80", true},
        {GP_CONTROL_FAN_SPEED, "0:70,1:80", "80", false},
        {GP_CONTROL_FAN_SPEED, "auto", "0:auto,1:auto", true},
        /* a counter may be cleared again and again */
        {GP_CONTROL_NVLINK_COUNTERS, "clear", "clear", false},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_control_value is = parsed(cases[i].id, cases[i].is);
        struct gp_control_value wanted = parsed(cases[i].id, cases[i].wanted);
        if (gp_control_satisfies(cases[i].id, &is, &wanted) != cases[i].satisfied)
            fail_msg("%s: %s and %s", gp_control_table[cases[i].id].name, cases[i].is,
                     cases[i].wanted);
    }
}

/* ---- the NVML source ---- */

/* The fake driver has no setter at all. */
static void a_driver_without_the_setter_is_not_asked(void **state)
{
    (void)state;
    start();
    unsigned before = all_calls();
    for (unsigned id = 0; id < GP_CONTROL__COUNT; id++) {
        struct gp_setting setting;
        rig.source->ops->controls->read(rig.device, (enum gp_control_id)id, &setting);
        assert_int_equal(setting.status, GP_STATUS_UNSUPPORTED);
        assert_false(setting.known);
        assert_non_null(strstr(setting.words, "this driver does not support nvml"));
    }
    assert_int_equal(all_calls(), before);
}

static void what_a_driver_lacks_cannot_be_applied(void **state)
{
    (void)state;
    start();
    for (unsigned id = 0; id < GP_CONTROL__COUNT; id++) {
        const struct gp_control_value value = {.n = {1}, .text = "1g.10gb"};
        struct gp_err err = {0};
        if (id == GP_CONTROL_NVLINK_COUNTERS)
            continue; /* of a GPU without a link there is nothing to clear */
        int r = rig.source->ops->controls->apply(rig.device, (enum gp_control_id)id, &value, &err);
        assert_int_equal(r, GP_EFAIL);
        assert_true(err.text[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_complete),
        cmocka_unit_test(what_others_need_is_applied_first),
        cmocka_unit_test(names_are_found_and_suggested),
        cmocka_unit_test(values_are_read_and_written),
        cmocka_unit_test(nonsense_is_refused_with_the_syntax),
        cmocka_unit_test(a_range_upside_down_is_named),
        cmocka_unit_test(values_out_of_the_range_are_told_the_range),
        cmocka_unit_test(default_becomes_what_the_gpu_says_it_is),
        cmocka_unit_test(what_is_so_already_is_known),
        RIG_TEST(a_driver_without_the_setter_is_not_asked),
        RIG_TEST(what_a_driver_lacks_cannot_be_applied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
