#include "unit.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "out/field.h"

static struct gp_field field(const char *text)
{
    struct gp_field f = {0};
    struct gp_err err = {0};
    if (gp_field_parse(text, strlen(text), &f, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return f;
}

static struct gp_value number(int64_t i)
{
    return (struct gp_value){.i = i, .status = GP_STATUS_OK};
}

static struct gp_value real(double f)
{
    return (struct gp_value){.f = f, .status = GP_STATUS_OK};
}

static struct gp_value absent(enum gp_status status)
{
    return (struct gp_value){.status = status};
}

static void check_text(const char *name, struct gp_value v, enum gp_style style,
                       const char *expected)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1024);
    struct gp_field f = field(name);
    gp_field_format(&sb, &f, &v, style);
    assert_string_equal(sb.buf, expected);
    gp_strbuf_fini(&sb);
}

static void numbers_in_the_unit_of_the_catalogue(void **state)
{
    (void)state;
    check_text("temperature.gpu", number(-5), GP_STYLE_PLAIN, "-5");
    check_text("temperature.gpu", number(-5), GP_STYLE_CSV, "-5");
    check_text("temperature.gpu", number(-5), GP_STYLE_HUMAN, "-5 °C");
    check_text("utilization.gpu", number(0), GP_STYLE_HUMAN, "0 %");
    check_text("clocks.max.sm", number(1980), GP_STYLE_HUMAN, "1980 MHz");
    check_text("power.draw", real(612.899), GP_STYLE_PLAIN, "612.90");
    check_text("power.draw", real(0), GP_STYLE_HUMAN, "0.00 W");
    check_text("index", number(71), GP_STYLE_HUMAN, "71");
    check_text("clocks_event_reasons.active", number(0x104), GP_STYLE_HUMAN, "0x0000000000000104");
    check_text("clocks_event_reasons.active", number(-1), GP_STYLE_CSV, "0xFFFFFFFFFFFFFFFF");
    check_text("name", (struct gp_value){.s = "Tesla T4", .status = GP_STATUS_OK}, GP_STYLE_CSV,
               "Tesla T4");
}

static void bytes_are_scaled_for_people(void **state)
{
    (void)state;
    check_text("memory.used", number(0), GP_STYLE_HUMAN, "0 B");
    check_text("memory.used", number(1023), GP_STYLE_HUMAN, "1023 B");
    check_text("memory.used", number(1024), GP_STYLE_HUMAN, "1 KiB");
    check_text("memory.used", number(INT64_C(500) << 20), GP_STYLE_HUMAN, "500 MiB");
    check_text("memory.used", number(INT64_C(25) << 19), GP_STYLE_HUMAN, "13 MiB");
    check_text("memory.used:MiB", number(INT64_C(25) << 19), GP_STYLE_HUMAN, "13 MiB");
    check_text("memory.used", number(1025), GP_STYLE_HUMAN, "2 KiB");
    check_text("memory.used", number(INT64_C(3) << 29), GP_STYLE_HUMAN, "1.50 GiB");
    check_text("memory.used", number(INT64_C(5) << 40), GP_STYLE_HUMAN, "5.00 TiB");
    check_text("memory.used", number(INT64_C(5000) << 40), GP_STYLE_HUMAN, "5000.00 TiB");
    check_text("memory.used", number(INT64_C(3) << 29), GP_STYLE_PLAIN, "1610612736");
    check_text("memory.used", number(INT64_C(3) << 29), GP_STYLE_CSV, "1610612736");
}

static void another_unit_by_choice(void **state)
{
    (void)state;
    const struct gp_value v = number(INT64_C(3) << 29);
    check_text("memory.used:B", v, GP_STYLE_PLAIN, "1610612736");
    check_text("memory.used:KiB", v, GP_STYLE_PLAIN, "1572864");
    check_text("memory.used:MiB", v, GP_STYLE_CSV, "1536");
    check_text("memory.used:GiB", v, GP_STYLE_PLAIN, "1.5");
    check_text("memory.used:GiB", v, GP_STYLE_HUMAN, "1.5 GiB");
    check_text("memory.used:TiB", v, GP_STYLE_PLAIN, "0.001");
    check_text("memory.used:kB", v, GP_STYLE_PLAIN, "1610613");
    check_text("memory.used:GB", v, GP_STYLE_PLAIN, "1.6");
    check_text("power.draw:mW", real(61.5), GP_STYLE_PLAIN, "61500");
    check_text("power.draw:kW", real(612.9), GP_STYLE_PLAIN, "0.613");
    check_text("clocks.sm:GHz", number(1980), GP_STYLE_PLAIN, "1.98");
    check_text("utilization.gpu:ratio", number(97), GP_STYLE_PLAIN, "0.97");
    check_text("memory.used:GiB", absent(GP_STATUS_LOST), GP_STYLE_HUMAN, "lost");
}

static void absence_has_its_words_in_every_style(void **state)
{
    (void)state;
    static const struct {
        enum gp_status status;
        const char *human, *csv, *reason;
    } rows[] = {
        {GP_STATUS_NONE, "", "", "not queried"},
        {GP_STATUS_UNSUPPORTED, "N/A", "[N/A]", "not supported"},
        {GP_STATUS_NO_PERMISSION, "denied", "[Insufficient Permissions]", "no permission"},
        {GP_STATUS_LOST, "lost", "[GPU is lost]", "GPU is lost"},
        {GP_STATUS_TIMEOUT, "no answer", "[Timeout]", "no answer in time"},
        {GP_STATUS_ASLEEP, "asleep", "[Asleep]", "GPU is asleep"},
        {GP_STATUS_ERROR, "error", "[Unknown Error]", "driver error"},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(rows); i++) {
        const struct gp_value v = absent(rows[i].status);
        struct gp_strbuf sb = GP_STRBUF_INIT(1024);
        check_text("memory.used", v, GP_STYLE_HUMAN, rows[i].human);
        check_text("memory.used", v, GP_STYLE_PLAIN, rows[i].human);
        check_text("memory.used", v, GP_STYLE_CSV, rows[i].csv);
        gp_field_reason(&sb, &v, 1);
        assert_string_equal(sb.buf, rows[i].reason);
        gp_strbuf_fini(&sb);
    }
}

static void check_reason(struct gp_value v, uint64_t now_ns, const char *expected)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1024);
    gp_field_reason(&sb, &v, now_ns);
    assert_string_equal(sb.buf, expected);
    gp_strbuf_fini(&sb);
}

static void reasons_tell_age_and_words(void **state)
{
    (void)state;
    struct gp_value v = {.i = 7, .status = GP_STATUS_STALE};
    gp_value_set_time(&v, 10 * GP_NS_PER_S);
    check_reason(v, 12 * GP_NS_PER_S + GP_NS_PER_S / 2, "stale: 2.5 s old");
    check_reason(v, 9 * GP_NS_PER_S, "stale"); /* never a negative age */
    v = (struct gp_value){.s = "impossible value", .status = GP_STATUS_ERROR};
    check_reason(v, 0, "driver error: impossible value");
}

/* Where an old number cannot be told from a new one, it is not printed. */
static void an_old_number_never_looks_like_a_new_one(void **state)
{
    (void)state;
    const struct gp_value v = {.i = 7, .status = GP_STATUS_STALE};
    check_text("memory.used", v, GP_STYLE_CSV, "[Timeout]");
    check_text("memory.used:MiB", v, GP_STYLE_CSV, "[Timeout]");
    check_text("memory.used", v, GP_STYLE_PLAIN, "no answer");
    check_text("memory.used", v, GP_STYLE_HUMAN, "7 B (stale)");
    check_text("temperature.gpu", v, GP_STYLE_HUMAN, "7 °C (stale)");
    check_text("name", (struct gp_value){.s = "x", .status = GP_STATUS_STALE}, GP_STYLE_HUMAN,
               "x (stale)");
}

static void check_bad_field(const char *text, const char *words)
{
    struct gp_field f = {.metric = GP_METRIC__COUNT};
    struct gp_err err = {0};
    assert_int_equal(gp_field_parse(text, strlen(text), &f, &err), GP_EUSAGE);
    assert_int_equal(f.metric, GP_METRIC__COUNT);
    if (!strstr(err.text, words))
        fail_msg("'%s' does not say '%s'", err.text, words);
}

static void bad_fields(void **state)
{
    (void)state;
    check_bad_field("memory.usd", "did you mean 'memory.used'?");
    check_bad_field("memory.used:",
                    "unknown unit '' for memory.used; known: B KiB MiB GiB TiB kB MB GB");
    check_bad_field("memory.used:GiBi", "unknown unit 'GiBi'");
    check_bad_field("memory.used:gib", "unknown unit 'gib'");
    check_bad_field("name:B", "unknown unit 'B' for name, which has no unit");
    check_bad_field("temperature.gpu:F",
                    "unknown unit 'F' for temperature.gpu, which is always in °C");
    check_bad_field(":GiB", "unknown field ''");
    char endless[200];
    memset(endless, 'x', sizeof(endless) - 1);
    endless[sizeof(endless) - 1] = '\0';
    check_bad_field(endless, "field name too long: 'xxx");
    /* only n bytes count */
    struct gp_field f = {0};
    assert_int_equal(gp_field_parse("index}rest", 5, &f, NULL), 0);
    assert_int_equal(f.metric, GP_INDEX);
}

static void check_list(const char *text, enum gp_scope scope, const char *expected)
{
    struct gp_field_list list = {0};
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 16);
    struct gp_err err = {0};
    if (gp_field_list_parse(text, scope, &list, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    for (size_t i = 0; i < list.count; i++)
        gp_strbuf_addf(&sb, "%s%s", i ? " " : "", GP_METRIC_NAME(list.fields[i].metric));
    assert_string_equal(sb.buf, expected);
    gp_strbuf_fini(&sb);
    gp_field_list_fini(&list);
    assert_int_equal(list.count, 0);
    gp_field_list_fini(&list);
}

static void lists_keep_their_order_and_open_groups(void **state)
{
    (void)state;
    check_list("name,index", GP_SCOPE_DEVICE, "name index");
    check_list(" name , index ,", GP_SCOPE_DEVICE, "name index");
    check_list("index,index", GP_SCOPE_DEVICE, "index index");
    check_list("gpu_name,clocks.gr", GP_SCOPE_DEVICE, "name clocks.current.graphics");
    check_list("memory.*", GP_SCOPE_DEVICE,
               "memory.total memory.reserved memory.used memory.free memory.processes "
               "memory.unattributed");
    check_list("index,bar1.*,name", GP_SCOPE_DEVICE, "index bar1.total bar1.used bar1.free name");
    check_list("host.memory.*", GP_SCOPE_HOST, "host.memory.total host.memory.available");
    /* fields of a wider scope may stand in a row, groups take the row's own */
    check_list("driver_version,index,pid", GP_SCOPE_PROCESS, "driver_version index pid");
    struct gp_field_list list;
    const size_t counts[] = {GP_HOST__COUNT, GP_DEVICE__COUNT, GP_PROCESS__COUNT};
    for (int scope = GP_SCOPE_HOST; scope <= GP_SCOPE_PROCESS; scope++) {
        assert_int_equal(gp_field_list_parse("*", (enum gp_scope)scope, &list, NULL), 0);
        /* a process alone would not say on which GPU it is */
        assert_int_equal(list.count, counts[scope] + (scope == GP_SCOPE_PROCESS ? 2 : 0));
        gp_field_list_fini(&list);
    }
    check_list("user,index,pi*", GP_SCOPE_PROCESS, "process.user index pid");
    check_list("energy.*,energy.consumption", GP_SCOPE_ANY,
               "energy.consumption energy.consumption");
    assert_int_equal(gp_field_list_parse("*", GP_SCOPE_ANY, &list, NULL), 0);
    assert_int_equal(list.count, GP_METRIC__COUNT);
    gp_field_list_fini(&list);
}

static void check_bad_list(const char *text, enum gp_scope scope, const char *words)
{
    struct gp_field_list list = {.count = 77};
    struct gp_err err = {0};
    assert_int_equal(gp_field_list_parse(text, scope, &list, &err), GP_EUSAGE);
    assert_int_equal(list.count, 77);
    if (!strstr(err.text, words))
        fail_msg("'%s' does not say '%s'", err.text, words);
}

/* In rows of a list the first word of its fields may be left out; the GPU's own go before. */
static void short_names_in_rows_of_a_list(void **state)
{
    (void)state;
    struct gp_field_list list = {0};
    assert_int_equal(
        gp_field_list_parse("index,graphics,memory:GHz,memory.used", GP_SCOPE_CLOCK, &list, NULL),
        0);
    assert_int_equal(list.count, 4);
    assert_int_equal(list.fields[0].metric, GP_INDEX);
    assert_int_equal(list.fields[1].metric, GP_CLOCK_PAIR_GRAPHICS);
    assert_int_equal(list.fields[2].metric, GP_CLOCK_PAIR_MEMORY);
    assert_string_equal(list.fields[2].unit->name, "GHz");
    assert_int_equal(list.fields[3].metric, GP_MEMORY_USED);
    gp_field_list_fini(&list);
    assert_int_equal(gp_field_list_parse("*", GP_SCOPE_CLOCK, &list, NULL), 0);
    gp_field_list_fini(&list);
    check_list("*", GP_SCOPE_CLOCK, "index uuid supported_clocks.memory supported_clocks.graphics");
    check_list("uuid,*", GP_SCOPE_CLOCK,
               "uuid index supported_clocks.memory supported_clocks.graphics");
    assert_int_equal(gp_field_list_parse("gra*", GP_SCOPE_CLOCK, &list, NULL), 0);
    assert_int_equal(list.count, 1);
    gp_field_list_fini(&list);
}

static void bad_lists(void **state)
{
    (void)state;
    check_bad_list("", GP_SCOPE_DEVICE, "no fields given");
    check_bad_list(" ", GP_SCOPE_DEVICE, "no fields given");
    check_bad_list(",", GP_SCOPE_DEVICE, "empty field name in ','");
    check_bad_list("index,,name", GP_SCOPE_DEVICE, "empty field name in 'index,,name'");
    check_bad_list("index,nmae", GP_SCOPE_DEVICE, "did you mean 'name'?");
    check_bad_list("sneeze.*", GP_SCOPE_DEVICE, "no field of this kind starts with 'sneeze.'");
    check_bad_list("process.*", GP_SCOPE_DEVICE, "no field of this kind starts with 'process.'");
    check_bad_list("pid", GP_SCOPE_DEVICE, "field 'pid' belongs to a process; add --processes");
    check_bad_list("index", GP_SCOPE_HOST, "field 'index' belongs to a GPU; remove --host");
    check_bad_list(
        "supported_clocks.memory", GP_SCOPE_DEVICE,
        "field 'supported_clocks.memory' belongs to a clock; add --rows supported_clocks");
    check_bad_list("supported_clocks.*", GP_SCOPE_DEVICE,
                   "'supported_clocks.*' are fields of a clock; add --rows supported_clocks");
    check_bad_list("pid", GP_SCOPE_CLOCK, "field 'pid' belongs to a process");
    check_bad_list("graphics", GP_SCOPE_DEVICE, "unknown field 'graphics'");
    check_bad_list("memory:W", GP_SCOPE_CLOCK,
                   "unknown unit 'W' for supported_clocks.memory; known: MHz GHz");
    check_bad_list("index,memory.used:W", GP_SCOPE_DEVICE, "unknown unit 'W'");
    check_bad_list("gpm", GP_SCOPE_DEVICE,
                   "unknown field 'gpm' (did you mean 'gpm.graphics.active', or 'gpm.*' for the "
                   "whole group?);");
    check_bad_list("links", GP_SCOPE_DEVICE, "did you mean 'links.*' with --rows links?");
    check_bad_list("errors", GP_SCOPE_LINK, "or 'errors.*' for the whole group?");
    /* a field that is also the beginning of others */
    check_bad_list("temperature.gpu", GP_SCOPE_HOST, "belongs to a GPU; remove --host");
}

static void lists_without_memory(void **state)
{
    (void)state;
    struct gp_field_list list = {.count = 77};
    for (long n = 0; n < 3; n++) {
        struct gp_err err = {0};
        alloc_fail_from(n);
        assert_int_equal(gp_field_list_parse("memory.*", GP_SCOPE_DEVICE, &list, &err), GP_ENOMEM);
        alloc_fail_from(-1);
        assert_int_equal(err.code, GP_ENOMEM);
        assert_int_equal(list.count, 77);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_in_the_unit_of_the_catalogue),
        cmocka_unit_test(bytes_are_scaled_for_people),
        cmocka_unit_test(another_unit_by_choice),
        cmocka_unit_test(absence_has_its_words_in_every_style),
        cmocka_unit_test(reasons_tell_age_and_words),
        cmocka_unit_test(an_old_number_never_looks_like_a_new_one),
        cmocka_unit_test(bad_fields),
        cmocka_unit_test(lists_keep_their_order_and_open_groups),
        cmocka_unit_test(short_names_in_rows_of_a_list),
        cmocka_unit_test(bad_lists),
        cmocka_unit_test(lists_without_memory),
    };
    return cmocka_run_group_tests_name("field", tests, NULL, NULL);
}
