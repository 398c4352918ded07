/* Marks and ranges through shared memory into a trace: several threads, a full ring, forks. */
#include "unit.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/marks.h"
#include "base/util.h"
#include "jobs/marks_read.h"
#include "out/trace.h"

#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 6, ROUNDS = 2000, STEPS = 500 };

static char folder[300], path[400];
static struct gp_marks_reader *reader;
static struct gp_trace *trace;

static int open_all(void **state)
{
    (void)state;
    struct gp_err err;
    temporary_name(folder, sizeof(folder), "marks");
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/trace.json", folder);
    assert_int_equal(gp_trace_open(&trace, path, &err), 0);
    gp_trace_begin(trace, gp_clock_mono_ns());
    return 0;
}

/* How many events of a phase have this name. */
static size_t count(const char *phase, const char *name)
{
    json_t *document = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
    const json_t *events = json_object_get(document, "traceEvents");
    size_t found = 0;
    size_t i;
    const json_t *event;
    assert_true(json_is_array(events));
    json_array_foreach(events, i, event)
    {
        const char *other = json_string_value(json_object_get(event, "name"));
        found += strcmp(json_string_value(json_object_get(event, "ph")), phase) == 0 && other &&
                 strcmp(other, name) == 0;
    }
    json_decref(document);
    return found;
}

static struct gp_trace_sum finish(void)
{
    struct gp_trace_sum sum;
    struct gp_err err;
    gp_marks_reader_finish(reader, trace);
    assert_int_equal(gp_trace_close(trace, &sum, &err), 0);
    return sum;
}

static int clean(void **state)
{
    (void)state;
    (void)unlink(path);
    (void)rmdir(folder);
    return 0;
}

static void *work(void *context)
{
    for (int i = 0; i < ROUNDS; i++) {
        (void)gp_marks_push(0, "", "outer");
        (void)gp_marks_push(0, "domain", "inner");
        (void)gp_marks_pop(0);
        gp_marks_end(gp_marks_start("", "range"));
        (void)gp_marks_pop(0);
        gp_marks_mark("", (const char *)context);
    }
    return NULL;
}

/* The writer opens its file once per process, so all of its tests are one. */
static void several_threads_and_a_reader(void **state)
{
    (void)state;
    struct gp_err err;
    pthread_t threads[THREADS];
    struct stat st;
    assert_int_equal(gp_marks_reader_new(&reader, &err), 0);
    assert_int_equal(stat(gp_marks_reader_folder(reader), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_false(gp_marks_reader_read(reader, trace));
    assert_int_equal(setenv(GP_MARKS_VARIABLE, gp_marks_reader_folder(reader), 1), 0);
    assert_true(gp_marks_is_on());
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)"mark"), 0);
    for (int i = 0; i < 100; i++) {
        assert_true(gp_marks_reader_read(reader, trace));
        (void)gp_trace_flush(trace);
    }
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(gp_marks_push(7, "", "open at the end"), 0);
    const uint64_t before_ns = gp_clock_mono_ns();
    gp_marks_step();
    gp_marks_step();

    pid_t child = fork(); /* it has a file of its own */
    if (child == 0) {
        gp_marks_mark("", "of a child");
        for (int i = 0; i < STEPS; i++)
            gp_marks_step();
        _exit(gp_marks_pop(7) == -1 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);

    const struct gp_trace_sum sum = finish();
    assert_int_equal(sum.marks + sum.ranges + sum.dropped, THREADS * ROUNDS * 4 + 2);
    const struct gp_pace pace = gp_marks_reader_take_pace(reader);
    assert_int_equal(pace.reports, STEPS); /* the child's, and not together with the parent's */
    assert_true(pace.steps > STEPS - 1.5 && pace.steps < STEPS - 0.5);
    assert_true(before_ns < pace.first_ns && pace.first_ns < pace.last_ns);
    assert_true(pace.last_ns < gp_clock_mono_ns());
    assert_int_equal(gp_marks_reader_take_pace(reader).reports, 0);
    assert_int_equal(count("i", "of a child"), 1);
    assert_int_equal(count("X", "open at the end"), 1);
    assert_int_equal(count("X", "outer") + count("X", "inner") + count("b", "range") + 1,
                     sum.ranges);
    assert_int_equal(count("b", "range"), count("e", "range"));
    assert_int_equal(gp_marks_reader_take_failed(reader), 0);
    char place[300];
    (void)snprintf(place, sizeof(place), "%s/1-0", gp_marks_reader_folder(reader));
    const int empty = open(place, O_WRONLY | O_CREAT | O_EXCL, 0600); /* of one without room */
    assert_true(empty >= 0 && close(empty) == 0);
    gp_marks_reader_finish(reader, NULL);
    assert_int_equal(gp_marks_reader_take_failed(reader), 1);
    assert_int_not_equal(stat(place, &st), 0);
    (void)snprintf(place, sizeof(place), "%s", gp_marks_reader_folder(reader));
    gp_marks_reader_free(reader);
    assert_int_not_equal(stat(place, &st), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(several_threads_and_a_reader, open_all, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
