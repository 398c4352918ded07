#include "unit.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "golden.h"
#include "out/writer.h"
#include "snapshot_fixture.h"

#include <jansson.h>

#define DEVICE_FIELDS                                                                              \
    "index,name,status,status.text,memory.used,memory.total:GiB,power.draw,enforced.power.limit,"  \
    "utilization.gpu,utilization.encoder,fan.speed,clocks_event_reasons.active,driver_version"
#define PROCESS_FIELDS                                                                             \
    "index,pid,process_name,process.user,used_gpu_memory,process.utilization.sm,process.cpu,"      \
    "process.command"

static struct fixture fixture;

static int set_up(void **state)
{
    (void)state;
    fixture_init(&fixture);
    return 0;
}

static struct gp_view view_of(enum gp_scope scope, const char *fields)
{
    struct gp_view view = {.scope = scope, .header = true};
    struct gp_err err = {0};
    if (gp_field_list_parse(fields, scope, &view.fields, &err) < 0)
        fail_msg("%s", err.text);
    return view;
}

/* Writes `samples` samples and the end. */
static void write_all(const struct gp_view *view, const char *format, int samples,
                      struct gp_strbuf *sb)
{
    const struct gp_writer *writer = gp_writer_find(format);
    struct gp_writer_state writer_state = {0};
    assert_non_null(writer);
    assert_string_equal(writer->name, format);
    for (int i = 0; i < samples; i++)
        writer->sample(view, &writer_state, &fixture.snapshot, sb);
    if (writer->end)
        writer->end(view, &writer_state, sb);
    assert_int_equal(sb->error, 0);
}

static void check_golden(struct gp_view view, const char *format, const char *golden)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    write_all(&view, format, 1, &sb);
    golden_check(golden, sb.buf, sb.len);
    gp_strbuf_fini(&sb);
    gp_field_list_fini(&view.fields);
}

static void devices_in_every_format(void **state)
{
    (void)state;
    static const char *const formats[] = {"table",  "csv", "tsv",        "json",
                                          "ndjson", "xml", "openmetrics"};
    for (size_t i = 0; i < GP_ARRAY_LEN(formats); i++) {
        char golden[64];
        (void)snprintf(golden, sizeof(golden), "devices-%s.txt", formats[i]);
        check_golden(view_of(GP_SCOPE_DEVICE, DEVICE_FIELDS), formats[i], golden);
    }
}

static void processes_in_every_format(void **state)
{
    (void)state;
    static const char *const formats[] = {"table",  "csv", "tsv",        "json",
                                          "ndjson", "xml", "openmetrics"};
    for (size_t i = 0; i < GP_ARRAY_LEN(formats); i++) {
        char golden[64];
        (void)snprintf(golden, sizeof(golden), "processes-%s.txt", formats[i]);
        check_golden(view_of(GP_SCOPE_PROCESS, PROCESS_FIELDS), formats[i], golden);
    }
}

static void the_host(void **state)
{
    (void)state;
    check_golden(view_of(GP_SCOPE_HOST, "*"), "json", "host-json.txt");
    check_golden(view_of(GP_SCOPE_HOST, "*"), "csv", "host-csv.txt");
    check_golden(view_of(GP_SCOPE_HOST, "*"), "openmetrics", "host-openmetrics.txt");
}

/* In ndjson the fields of a row stand beside the keys of the document. */
static void no_field_is_called_as_a_key_is(void **state)
{
    (void)state;
    static const char *const keys[] = {"schema", "time",      "host",  "driver", "units",
                                       "gpus",   "processes", "hosts", "reasons"};
    for (int m = 0; m < GP_METRIC__COUNT; m++)
        for (size_t i = 0; i < GP_ARRAY_LEN(keys); i++)
            assert_string_not_equal(GP_METRIC_NAME(m), keys[i]);
}

static void units_are_named_on_request(void **state)
{
    (void)state;
    static const char *const formats[] = {"csv", "json", "ndjson", "xml"};
    for (size_t i = 0; i < GP_ARRAY_LEN(formats); i++) {
        struct gp_view view =
            view_of(GP_SCOPE_DEVICE, "index,memory.used,memory.total:GiB,power.draw");
        char golden[64];
        view.units = true;
        (void)snprintf(golden, sizeof(golden), "units-%s.txt", formats[i]);
        check_golden(view, formats[i], golden);
    }
}

static void check_text(struct gp_view view, const char *format, int samples, const char *expected)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    write_all(&view, format, samples, &sb);
    assert_string_equal(sb.buf, expected);
    gp_strbuf_fini(&sb);
    gp_field_list_fini(&view.fields);
}

static void the_header_stands_once_or_not_at_all(void **state)
{
    (void)state;
    fixture.snapshot.device_count = 1;
    check_text(view_of(GP_SCOPE_DEVICE, "index,name"), "csv", 2,
               "index,name\n0,NVIDIA H100 80GB HBM3\n0,NVIDIA H100 80GB HBM3\n");
    check_text(view_of(GP_SCOPE_DEVICE, "index,name"), "table", 2,
               "index  name\n    0  NVIDIA H100 80GB HBM3\n    0  NVIDIA H100 80GB HBM3\n");
    struct gp_view view = view_of(GP_SCOPE_DEVICE, "index,temperature.gpu");
    view.header = false;
    check_text(view, "table", 1, "0  58 °C\n");
    view = view_of(GP_SCOPE_DEVICE, "index,temperature.gpu");
    view.header = false;
    check_text(view, "tsv", 1, "0\t58\n");
}

/* A sentence that comes later makes its column wider: the rows below stand under a header again. */
static void the_header_stands_again_where_columns_move(void **state)
{
    (void)state;
    struct gp_view view = view_of(GP_SCOPE_DEVICE, "status.text,index");
    struct gp_writer_state writer_state = {0};
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    fixture.snapshot.device_count = 1;
    for (int i = 0; i < 4; i++) {
        if (i == 2)
            fixture_set_status(&fixture, 0, GP_STATUS_TIMEOUT, "no answer for 9 s");
        gp_writer_find("table")->sample(&view, &writer_state, &fixture.snapshot, &sb);
    }
    assert_string_equal(sb.buf, "status.text  index\n"
                                "ok               0\n"
                                "ok               0\n"
                                "status.text        index\n"
                                "no answer for 9 s      0\n"
                                "no answer for 9 s      0\n");
    gp_strbuf_fini(&sb);
    gp_field_list_fini(&view.fields);
}

static void one_row_stands_upright_where_it_does_not_fit(void **state)
{
    (void)state;
    static const char across[] = "index  name                   temperature.gpu\n"
                                 "    0  NVIDIA H100 80GB HBM3            58 °C\n";
    struct gp_view view = view_of(GP_SCOPE_DEVICE, "index,name,temperature.gpu");
    const struct gp_view fits = {view.scope, view.fields, .header = true, .room = 45};
    const struct gp_view looped = {view.scope, view.fields, .header = true, .looped = true,
                                   .room = 44};
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    fixture.snapshot.device_count = 1;
    write_all(&fits, "table", 1, &sb);
    write_all(&looped, "table", 1, &sb);
    assert_int_equal(sb.len, 2 * strlen(across));
    assert_string_equal(sb.buf + strlen(across), across);
    gp_strbuf_fini(&sb);
    view.room = 44;
    check_text(view, "table", 1,
               "index            0\n"
               "name             NVIDIA H100 80GB HBM3\n"
               "temperature.gpu  58 °C\n");
    view = view_of(GP_SCOPE_DEVICE, "name");
    view.header = false;
    view.room = 5;
    check_text(view, "table", 1, "NVIDIA H100 80GB HBM3\n");
}

static void nothing_to_show(void **state)
{
    (void)state;
    fixture.snapshot.process_count = 0;
    fixture.snapshot.device_count = 1;
    check_text(view_of(GP_SCOPE_PROCESS, "pid"), "csv", 1, "pid\n");
    check_text(view_of(GP_SCOPE_PROCESS, "pid"), "table", 1, "pid\n");
    check_text(view_of(GP_SCOPE_PROCESS, "pid"), "ndjson", 1, "");
    check_text(
        view_of(GP_SCOPE_PROCESS, "pid"), "json", 1,
        "{\n  \"schema\": \"gpulse.query/1\",\n  \"time\": \"2026-11-20T15:04:05.123+01:00\",\n"
        "  \"host\": \"node1\",\n  \"driver\": \"580.95.05\",\n  \"processes\": []\n}\n");
}

static void a_loop_in_json_is_one_array(void **state)
{
    (void)state;
    fixture.snapshot.device_count = 1;
#define SAMPLE                                                                                     \
    "{\n  \"schema\": \"gpulse.query/1\",\n  \"time\": \"2026-11-20T15:04:05.123+01:00\",\n"       \
    "  \"host\": \"node1\",\n  \"driver\": \"580.95.05\",\n"                                       \
    "  \"gpus\": [\n    {\n      \"index\": 0\n    }\n  ]\n}"
    static const char *const expected[] = {"[]\n", "[\n" SAMPLE "\n]\n",
                                           "[\n" SAMPLE ",\n" SAMPLE "\n]\n"};
#undef SAMPLE
    for (int samples = 0; samples < 3; samples++) {
        struct gp_view view = view_of(GP_SCOPE_DEVICE, "index");
        view.looped = true;
        check_text(view, "json", samples, expected[samples]);
    }
}

static void a_loop_in_xml_is_one_document(void **state)
{
    (void)state;
    fixture.snapshot.device_count = 1;
#define HEAD "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<gpulse schema=\"gpulse.query.xml/1\">\n"
#define SAMPLE                                                                                     \
    "  <sample time=\"2026-11-20T15:04:05.123+01:00\" host=\"node1\" driver=\"580.95.05\">\n"      \
    "    <gpu>\n      <index>0</index>\n    </gpu>\n  </sample>\n"
    static const char *const expected[] = {HEAD "</gpulse>\n", HEAD SAMPLE "</gpulse>\n",
                                           HEAD SAMPLE SAMPLE "</gpulse>\n"};
#undef SAMPLE
#undef HEAD
    for (int samples = 0; samples < 3; samples++) {
        struct gp_view view = view_of(GP_SCOPE_DEVICE, "index");
        view.looped = true;
        check_text(view, "xml", samples, expected[samples]);
    }
    /* without a loop, no sample is no document */
    check_text(view_of(GP_SCOPE_DEVICE, "index"), "xml", 0, "");
}

/* The element of the name in XML, and the label in OpenMetrics. */
static void markup_in_text_is_escaped(void **state)
{
    (void)state;
    static const struct {
        const char *name, *element, *label;
    } rows[] = {
        {"plain", "plain", "plain"},
        {"", "", ""},
        {"a<b>&\"c'", "a&lt;b&gt;&amp;&quot;c'", "a<b>&\\\"c'"},
        {"]]>", "]]&gt;", "]]>"},
        {"&amp;", "&amp;amp;", "&amp;"},
        {"back\\slash\\n", "back\\slash\\n", "back\\\\slash\\\\n"},
        {"two\nlines", "two\nlines", "two\\nlines"},
        {"幅広 ﻿ ￼ �", "幅広 ﻿ ￼ �", "幅広 ﻿ ￼ �"},
        {"\xef\xbf\xbe|\xef\xbf\xbf", "\xef\xbf\xbd|\xef\xbf\xbd", "\xef\xbf\xbe|\xef\xbf\xbf"},
    };
    fixture.snapshot.device_count = 1;
    for (size_t i = 0; i < GP_ARRAY_LEN(rows); i++) {
        struct gp_view view = view_of(GP_SCOPE_DEVICE, "name");
        struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
        char expected[256];
        *fixture_value(&fixture, 0, GP_NAME) = fixture_text(rows[i].name);
        (void)snprintf(expected, sizeof(expected), "<name>%s</name>", rows[i].element);
        write_all(&view, "xml", 1, &sb);
        assert_non_null(strstr(sb.buf, expected));
        gp_strbuf_reset(&sb);
        (void)snprintf(expected, sizeof(expected), ",name=\"%s\"} 1\n", rows[i].label);
        write_all(&view, "openmetrics", 1, &sb);
        assert_non_null(strstr(sb.buf, expected));
        gp_strbuf_fini(&sb);
        gp_field_list_fini(&view.fields);
    }
}

static void columns_stay_where_they_are(void **state)
{
    (void)state;
    struct gp_view view = view_of(GP_SCOPE_DEVICE, "name,index");
    const struct gp_writer *writer = gp_writer_find("table");
    struct gp_writer_state writer_state = {0};
    struct gp_strbuf sb = GP_STRBUF_INIT(4096);
    fixture.snapshot.device_count = 1;
    writer->sample(&view, &writer_state, &fixture.snapshot, &sb);
    *fixture_value(&fixture, 0, GP_NAME) = fixture_text("幅広 GPU");
    writer->sample(&view, &writer_state, &fixture.snapshot, &sb);
    assert_string_equal(sb.buf, "name                   index\n"
                                "NVIDIA H100 80GB HBM3      0\n"
                                "幅広 GPU                   0\n");
    gp_strbuf_fini(&sb);
    gp_field_list_fini(&view.fields);
}

static void csv_quotes_what_needs_it(void **state)
{
    (void)state;
    static const struct {
        const char *name, *cell;
    } rows[] = {
        {"plain", "plain"}, {"", ""},
        {"a,b", "\"a,b\""}, {"say \"x\"", "\"say \"\"x\"\"\""},
        {"\"", "\"\"\"\""}, {" blanks ", " blanks "},
    };
    fixture.snapshot.device_count = 1;
    for (size_t i = 0; i < GP_ARRAY_LEN(rows); i++) {
        char expected[128];
        struct gp_view view = view_of(GP_SCOPE_DEVICE, "name,index");
        view.header = false;
        *fixture_value(&fixture, 0, GP_NAME) = fixture_text(rows[i].name);
        (void)snprintf(expected, sizeof(expected), "%s,0\n", rows[i].cell);
        check_text(view, "csv", 1, expected);
    }
}

/* Whichever allocation fails: the error is in the buffer, and there is no crash. */
static void without_memory_there_is_an_error(void **state)
{
    (void)state;
    static const char *const formats[] = {"table", "csv", "json", "ndjson", "xml", "openmetrics"};
    json_set_alloc_funcs(malloc, free); /* here, where malloc fails to order */
    for (size_t i = 0; i < GP_ARRAY_LEN(formats); i++) {
        struct gp_view view = view_of(GP_SCOPE_DEVICE, DEVICE_FIELDS);
        const struct gp_writer *writer = gp_writer_find(formats[i]);
        for (long n = 0;; n++) {
            struct gp_writer_state writer_state = {0};
            struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
            alloc_fail_from(n);
            writer->sample(&view, &writer_state, &fixture.snapshot, &sb);
            long used = alloc_count();
            alloc_fail_from(-1);
            int error = sb.error;
            gp_strbuf_fini(&sb);
            if (used <= n) {
                assert_int_equal(error, 0);
                assert_true(n > 0);
                break;
            }
            assert_int_equal(error, GP_ENOMEM);
        }
        gp_field_list_fini(&view.fields);
    }
}

static void a_buffer_that_is_too_small(void **state)
{
    (void)state;
    struct gp_view view = view_of(GP_SCOPE_DEVICE, DEVICE_FIELDS);
    static const char *const formats[] = {"table",  "csv", "tsv",        "json",
                                          "ndjson", "xml", "openmetrics"};
    for (size_t i = 0; i < GP_ARRAY_LEN(formats); i++) {
        struct gp_writer_state writer_state = {0};
        struct gp_strbuf sb = GP_STRBUF_INIT(200);
        gp_writer_find(formats[i])->sample(&view, &writer_state, &fixture.snapshot, &sb);
        assert_int_equal(sb.error, GP_ETOOBIG);
        assert_true(sb.len <= 200);
        gp_strbuf_fini(&sb);
    }
    gp_field_list_fini(&view.fields);
}

static void unknown_writers(void **state)
{
    (void)state;
    assert_null(gp_writer_find("yaml"));
    assert_null(gp_writer_find(""));
    assert_null(gp_writer_find("CSV"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(devices_in_every_format, set_up),
        cmocka_unit_test_setup(processes_in_every_format, set_up),
        cmocka_unit_test_setup(the_host, set_up),
        cmocka_unit_test_setup(no_field_is_called_as_a_key_is, set_up),
        cmocka_unit_test_setup(units_are_named_on_request, set_up),
        cmocka_unit_test_setup(the_header_stands_once_or_not_at_all, set_up),
        cmocka_unit_test_setup(the_header_stands_again_where_columns_move, set_up),
        cmocka_unit_test_setup(one_row_stands_upright_where_it_does_not_fit, set_up),
        cmocka_unit_test_setup(nothing_to_show, set_up),
        cmocka_unit_test_setup(a_loop_in_json_is_one_array, set_up),
        cmocka_unit_test_setup(a_loop_in_xml_is_one_document, set_up),
        cmocka_unit_test_setup(markup_in_text_is_escaped, set_up),
        cmocka_unit_test_setup(columns_stay_where_they_are, set_up),
        cmocka_unit_test_setup(csv_quotes_what_needs_it, set_up),
        cmocka_unit_test_setup(without_memory_there_is_an_error, set_up),
        cmocka_unit_test_setup(a_buffer_that_is_too_small, set_up),
        cmocka_unit_test_setup(unknown_writers, set_up),
    };
    return cmocka_run_group_tests_name("writer", tests, NULL, NULL);
}
