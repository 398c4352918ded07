/* A trace is a JSON document at any time, whatever is in it and however little room there is. */
#include "unit.h"

#include "base/err.h"
#include "base/util.h"
#include "out/trace.h"

#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

static char path[300];

static struct gp_trace *open_trace(void)
{
    struct gp_trace *trace;
    struct gp_err err;
    temporary_name(path, sizeof(path), "trace");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    (void)close(fd);
    assert_int_equal(gp_trace_open(&trace, path, &err), 0);
    gp_trace_begin(trace, 1000000);
    return trace;
}

static struct gp_trace_sum close_trace(struct gp_trace *trace, int result)
{
    struct gp_trace_sum sum;
    struct gp_err err = {0};
    assert_int_equal(gp_trace_close(trace, &sum, &err), result);
    return sum;
}

/* The events of the file as it is. */
static json_t *events(void)
{
    json_t *document = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
    json_t *list = json_object_get(document, "traceEvents");
    assert_true(json_is_array(list));
    json_incref(list);
    json_decref(document);
    return list;
}

static void add_mark(struct gp_trace *trace, const char *name)
{
    const struct gp_trace_event event = {
        .place = {1, 2}, .category = "", .name = name, .start_ns = 2500123, .end_ns = 2500123};
    gp_trace_add_mark(trace, &event);
}

static void all_kinds_of_events(void **state)
{
    (void)state;
    struct gp_trace *trace = open_trace();
    json_t *none = events();
    assert_int_equal(json_array_size(none), 0);
    const struct gp_trace_place place = {1, 2};
    const struct gp_trace_value values[] = {{"a\"b", 1.5}, {"c", -3}};
    const struct gp_trace_event event = {
        .place = place, .category = "cat", .name = "late", .start_ns = 5, .end_ns = 3000000};
    gp_trace_name_process(trace, 1, "pro\\cess", 7);
    gp_trace_name_thread(trace, place, "thread\x1b");
    gp_trace_count(trace, 1, "counter", 1000000, values, 2);
    assert_true(gp_trace_flush(trace) > 0);
    assert_int_equal(gp_trace_flush(trace), 0);
    gp_trace_open_slice(trace, place, "slice", 2000000);
    gp_trace_close_slice(trace, place, 2000001);
    (void)gp_trace_flush(trace);
    add_mark(trace, "a\xff\nb");
    gp_trace_add_slice(trace, &event);
    gp_trace_add_range(trace, &event);
    gp_trace_note(trace, place, "note", 1);
    gp_trace_drop(trace, 3);
    const struct gp_trace_sum sum = close_trace(trace, 0);
    assert_int_equal(sum.marks, 1);
    assert_int_equal(sum.ranges, 2);
    assert_int_equal(sum.dropped, 3);
    json_t *all = events();
    char *text =
        json_dumps(all, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(7));
    assert_int_equal(json_array_size(all), 11);
    assert_non_null(strstr(text, "{\"args\":{\"name\":\"pro\\\\cess\"},\"name\":\"process_name\""));
    assert_non_null(strstr(text, "\"args\":{\"name\":\"thread\\\\x1b\"}"));
    assert_non_null(strstr(text, "\"args\":{\"a\\\"b\":1.5,\"c\":-3}"));
    assert_non_null(strstr(text, "\"name\":\"a\\uFFFD\\\\nb\""));
    assert_non_null(strstr(text, "\"ts\":1500.123"));
    assert_non_null(strstr(text, "\"dur\":2000.0,\"name\":\"late\"")); /* from the begin on */
    free(text);
    json_decref(all);
    json_decref(none);
    (void)unlink(path);
}

static void a_flood_is_bounded(void **state)
{
    (void)state;
    enum { FLOOD = 100000 };
    struct gp_trace *trace = open_trace();
    const struct gp_trace_value value = {"%", 1};
    for (int i = 0; i < FLOOD; i++)
        add_mark(trace, "a name that is as long as names often are");
    gp_trace_count(trace, 9, "sample", 0, &value, 1); /* still fits */
    const struct gp_trace_sum sum = close_trace(trace, 0);
    json_t *all = events();
    assert_true(sum.marks > 1000 && sum.dropped > 1000);
    assert_int_equal(sum.marks + sum.dropped, FLOOD);
    assert_int_equal(json_array_size(all), sum.marks + 1);
    json_decref(all);
    (void)unlink(path);
}

/* Samples and names, and not what the job reports itself: both have bounds of their own. */
static void samples_are_measured(void **state)
{
    (void)state;
    enum { FLOOD = 200000 };
    struct gp_trace *trace = open_trace();
    const struct gp_trace_value value = {"%", 1};
    add_mark(trace, "reported");
    assert_int_equal(gp_trace_sampled_bytes(trace), 0);
    for (int i = 0; i < FLOOD; i++)
        gp_trace_count(trace, 9, "sample", 0, &value, 1);
    const uint64_t bytes = gp_trace_sampled_bytes(trace);
    const struct gp_trace_sum sum = close_trace(trace, 0);
    json_t *all = events();
    assert_true(bytes > (4 << 20) && bytes < (9 << 20));
    assert_int_equal(json_array_size(all), 1 + FLOOD - sum.lost);
    assert_true(sum.lost > 0 && sum.dropped == 0);
    json_decref(all);
    (void)unlink(path);
}

/* The file cannot grow any more, at each length of a write. */
static void no_room(void **state)
{
    (void)state;
    struct rlimit before;
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    for (rlim_t room = 60; room < 400; room += 7) {
        struct gp_trace *trace = open_trace();
        add_mark(trace, "first");
        (void)gp_trace_flush(trace);
        const struct rlimit small = {.rlim_cur = room + 100, .rlim_max = before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        for (int i = 0; i < 10; i++) {
            add_mark(trace, "more");
            (void)gp_trace_flush(trace);
            json_decref(events());
        }
        (void)close_trace(trace, GP_EIO);
        json_t *all = events();
        assert_true(json_array_size(all) >= 1 && json_array_size(all) < 10);
        json_decref(all);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        (void)unlink(path);
    }
}

static void no_memory(void **state)
{
    (void)state;
    struct gp_trace *trace;
    struct gp_err err;
    alloc_fail_from(0);
    int r = gp_trace_open(&trace, "/nowhere", &err);
    alloc_fail_from(-1);
    assert_int_equal(r, GP_ENOMEM);
    trace = open_trace();
    alloc_fail_from(0);
    add_mark(trace, "lost");
    alloc_fail_from(-1);
    add_mark(trace, "found");
    const struct gp_trace_sum sum = close_trace(trace, 0);
    assert_int_equal(sum.marks, 1);
    assert_int_equal(sum.dropped, 1);
    json_t *all = events();
    assert_int_equal(json_array_size(all), 1);
    json_decref(all);
    (void)unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_kinds_of_events),
        cmocka_unit_test(a_flood_is_bounded),
        cmocka_unit_test(samples_are_measured),
        cmocka_unit_test(no_room),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
