/* Kinds, the table of Xids, and events as text and JSON. */
#include "unit.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "model/event.h"
#include "out/event.h"

#include <jansson.h>

/* ---- kinds ---- */

static void kinds_by_name_and_group(void **state)
{
    (void)state;
    gp_event_kinds kinds;
    struct gp_err err = {0};
    for (int k = 0; k < GP_EVENT__COUNT; k++) {
        assert_int_equal(gp_event_kinds_parse(gp_event_table[k].name, &kinds, &err), 0);
        assert_true(kinds == gp_event_bit((enum gp_event_kind)k));
        assert_true(*gp_event_table[k].help);
        for (int other = 0; other < k; other++)
            assert_string_not_equal(gp_event_table[k].name, gp_event_table[other].name);
    }
    assert_int_equal(gp_event_kinds_parse("xid,health,lost", &kinds, &err), 0);
    assert_true(kinds == gp_event_group_kinds(GP_EVENT_GROUP_HEALTH));
    assert_int_equal(gp_event_kinds_parse("stream,health,state,frequent,process", &kinds, &err), 0);
    gp_event_kinds all;
    assert_int_equal(gp_event_kinds_parse("all", &all, &err), 0);
    assert_true(kinds == all);
    assert_true(gp_event_all_kinds() == all);
    assert_false(gp_event_default_kinds() & gp_event_bit(GP_EVENT_CLOCK));
}

static void unknown_kinds(void **state)
{
    (void)state;
    static const char *const lists[] = {"",
                                        ",",
                                        "xid,",
                                        "xid ",
                                        "XID",
                                        "ecc",
                                        "a-name-that-is-much-longer-than-any-kind-could-ever-be"};
    for (size_t i = 0; i < GP_ARRAY_LEN(lists); i++) {
        gp_event_kinds kinds = 77;
        struct gp_err err = {0};
        assert_int_equal(gp_event_kinds_parse(lists[i], &kinds, &err), GP_EUSAGE);
        assert_true(kinds == 77);
        assert_non_null(strstr(err.text, "unknown event kind"));
    }
}

/* ---- Xid ---- */

static void every_xid_says_something(void **state)
{
    (void)state;
    static const char *const faults[] = {"application", "driver", "hardware", "unclear"};
    unsigned known = 0;
    for (uint64_t n = 0; n < 300; n++) {
        const struct gp_xid_info *xid = gp_xid_find(n);
        if (!xid)
            continue;
        known++;
        assert_true(*xid->words);
        size_t i = 0;
        while (i < GP_ARRAY_LEN(faults) && strcmp(faults[i], xid->fault) != 0)
            i++;
        assert_true(i < GP_ARRAY_LEN(faults));
        /* as it is printed it fits */
        assert_true(strlen(xid->words) + strlen(xid->fault) + strlen(xid->advice) < 220);
    }
    assert_true(known > 110);
    assert_null(gp_xid_find(0));
    assert_null(gp_xid_find(177));
    assert_null(gp_xid_find(UINT64_MAX));
}

/* What everybody who reacts to Xids must get right. */
static void whose_fault_an_xid_is(void **state)
{
    (void)state;
    static const unsigned application[] = {13, 31, 43, 45, 68};
    static const unsigned hardware[] = {48, 63, 64, 74, 79, 92, 94, 95};
    for (size_t i = 0; i < GP_ARRAY_LEN(application); i++)
        assert_string_equal(gp_xid_find(application[i])->fault, "application");
    for (size_t i = 0; i < GP_ARRAY_LEN(hardware); i++)
        assert_string_equal(gp_xid_find(hardware[i])->fault, "hardware");
    assert_non_null(strstr(gp_xid_find(119)->advice, "reset"));
    assert_non_null(strstr(gp_xid_find(154)->advice, "gpu_recovery_action"));
}

/* ---- text and JSON ---- */

static struct gp_event example(void)
{
    return (struct gp_event){
        .kind = GP_EVENT_PROCESS_START,
        .wall_ns = UINT64_C(1700000000123456789),
        .mono_ns = UINT64_C(42500000000),
        .has_gpu = true,
        .index = 3,
        .uuid = "GPU-1",
        .pci = "00000000:53:00.0",
        .gpu_instance = 2,
        .compute_instance = 0,
        .number = 4711,
        .text = "process 4711 started: a\x1b[31mb",
    };
}

static void a_line_for_people(void **state)
{
    (void)state;
    struct gp_event event = example();
    struct gp_strbuf sb = GP_STRBUF_INIT(4096);
    assert_int_equal(setenv("TZ", "UTC", 1), 0);
    gp_event_add_text(&sb, &event);
    assert_string_equal(sb.buf, "2023-11-14 22:13:20.123  GPU 3 GI 2 CI 0  process.start    "
                                "process 4711 started: a\\x1b[31mb\n");
    gp_strbuf_reset(&sb);
    event.compute_instance = GP_EVENT_NO_INSTANCE;
    gp_event_add_text(&sb, &event);
    assert_non_null(strstr(sb.buf, "  GPU 3 GI 2  "));
    gp_strbuf_reset(&sb);
    event.has_gpu = false;
    gp_event_add_text(&sb, &event);
    assert_non_null(strstr(sb.buf, ".123  -       process.start"));
    gp_strbuf_fini(&sb);
}

static void a_json_object(void **state)
{
    (void)state;
    struct gp_event event = example();
    struct gp_strbuf sb = GP_STRBUF_INIT(4096);
    gp_event_add_json(&sb, &event, "node7");
    assert_string_equal(
        sb.buf, "{\"schema\":\"gpulse.event/1\",\"time\":\"2023-11-14T22:13:20.123+00:00\","
                "\"monotonic\":42.5,\"host\":\"node7\",\"kind\":\"process.start\",\"gpu\":3,"
                "\"uuid\":\"GPU-1\",\"pci.bus_id\":\"00000000:53:00.0\",\"gpu_instance\":2,"
                "\"compute_instance\":0,\"origin\":\"poll\",\"pid\":4711,"
                "\"text\":\"process 4711 started: a\\\\x1b[31mb\"}\n");
    gp_strbuf_reset(&sb);
    event.kind = GP_EVENT_PCIE;
    event.from_driver = true;
    event.numeric = true;
    (void)snprintf(event.was, sizeof(event.was), "16");
    (void)snprintf(event.now, sizeof(event.now), "8");
    gp_event_add_json(&sb, &event, "node7");
    json_t *parsed = json_loads(sb.buf, 0, NULL);
    assert_int_equal(json_integer_value(json_object_get(parsed, "old")), 16);
    assert_int_equal(json_integer_value(json_object_get(parsed, "new")), 8);
    assert_string_equal(json_string_value(json_object_get(parsed, "origin")), "driver");
    assert_null(json_object_get(parsed, "pid"));
    json_decref(parsed);
    gp_strbuf_fini(&sb);
}

static void how_many_were_missed_or_when(void **state)
{
    (void)state;
    struct gp_event event = {.kind = GP_EVENT_MISSED, .wall_ns = 1, .number = 7, .text = "x"};
    struct gp_strbuf sb = GP_STRBUF_INIT(4096);
    gp_event_add_json(&sb, &event, "node7");
    assert_non_null(strstr(sb.buf, "\"missed\":7,\"text\""));
    gp_strbuf_reset(&sb);
    event.number = 0;
    event.from_ns = UINT64_C(1700000000123000000);
    event.to_ns = UINT64_C(1700000001000000000);
    gp_event_add_json(&sb, &event, "node7");
    assert_null(strstr(sb.buf, "\"missed\":0"));
    assert_non_null(strstr(sb.buf, "\"kind\":\"missed\",\"from\":\"2023-11-14T22:13:20.123+00:00\","
                                   "\"to\":\"2023-11-14T22:13:21.000+00:00\",\"text\""));
    gp_strbuf_fini(&sb);
}

static void without_memory_there_is_an_error_and_no_text(void **state)
{
    (void)state;
    struct gp_event event = example();
    for (long n = 0;; n++) {
        struct gp_strbuf sb = GP_STRBUF_INIT(4096);
        alloc_fail_from(n);
        gp_event_add_json(&sb, &event, "node7");
        bool failed = alloc_count() > n;
        alloc_fail_from(-1);
        bool whole = sb.len > 0 && sb.buf[sb.len - 1] == '\n';
        int error = sb.error;
        gp_strbuf_fini(&sb);
        if (!failed) {
            assert_true(whole && !error);
            break;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_by_name_and_group),
        cmocka_unit_test(unknown_kinds),
        cmocka_unit_test(every_xid_says_something),
        cmocka_unit_test(whose_fault_an_xid_is),
        cmocka_unit_test(a_line_for_people),
        cmocka_unit_test(a_json_object),
        cmocka_unit_test(how_many_were_missed_or_when),
        cmocka_unit_test(without_memory_there_is_an_error_and_no_text),
    };
    return cmocka_run_group_tests_name("event", tests, NULL, NULL);
}
