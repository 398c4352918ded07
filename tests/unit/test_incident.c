/* A failure with what the GPU showed at that moment, as text and as JSON; and which lines of a log
 * make one. */
#include "unit.h"

#include "base/strbuf.h"
#include "jobs/incident.h"
#include "jobs/scan.h"
#include "snapshot_fixture.h"

enum { JOB = 500, MIB = 1 << 20 };

static struct fixture machine;
static struct gp_incident incident;

static const uint64_t GIB = UINT64_C(1) << 30;

/* GPU 0 has 80 GiB, 10 of them free. Of its three processes the second is of the job. */
static int begin(void **state)
{
    static const struct {
        int64_t pid, parent, gib;
    } processes[] = {{71, 1, 20}, {72, JOB, 30}, {73, 1, 15}};
    (void)state;
    fixture_init(&machine);
    machine.devices[FIXTURE_WELL].process_count = 0;
    for (int i = 0; i < 3; i++) {
        fixture_fill_process(&machine, i, FIXTURE_WELL, processes[i].pid);
        *fixture_process(&machine, i, GP_PROCESS_PPID) = fixture_int(processes[i].parent);
        *fixture_process(&machine, i, GP_PROCESS_MEMORY) = fixture_int(processes[i].gib << 30);
    }
    *fixture_process(&machine, 0, GP_PROCESS_USER) = fixture_text("ann");
    *fixture_process(&machine, 0, GP_PROCESS_COMMAND) = fixture_text("python \033x.py");
    *fixture_value(&machine, FIXTURE_WELL, GP_MEMORY_FREE) = fixture_int((int64_t)(10 * GIB));
    incident = (struct gp_incident){
        .failure = {.id = "torch_oom", .framework = "PyTorch", .cause = GP_CAUSE_BY_NUMBERS}};
    return 0;
}

static void add_scene(double job_bytes)
{
    gp_incident_add_scene(&incident, &machine.snapshot, &machine.devices[FIXTURE_WELL], JOB,
                          job_bytes);
}

static void knows(enum gp_failure_field field, uint64_t value)
{
    assert_true(gp_failure_knows(&incident.failure, field));
    assert_int_equal(incident.failure.values[field], value);
}

static void a_program_that_names_nobody(void **state)
{
    (void)state;
    const struct gp_failure *f = &incident.failure;
    add_scene(0);
    knows(GP_FAILURE_TOTAL, 80 * GIB);
    knows(GP_FAILURE_FREE, 10 * GIB);
    knows(GP_FAILURE_SELF, 30 * GIB);
    assert_int_equal(f->other_count, 2); /* its own is none of the others */
    assert_int_equal(f->others[0].pid, 71);
    assert_int_equal(f->others[0].bytes, 20 * GIB);
    assert_string_equal(f->others[0].who, "ann: python \\x1bx.py");
    assert_false(f->others[0].is_of_job);
    assert_int_equal(f->others[1].pid, 73);
    assert_string_equal(f->others[1].who, "(unknown): (unknown)");
}

static void what_the_program_says_itself_counts(void **state)
{
    (void)state;
    struct gp_failure *f = &incident.failure;
    gp_failure_set(f, GP_FAILURE_TOTAL, 7);
    gp_failure_set(f, GP_FAILURE_FREE, 8);
    f->others[f->other_count++] = (struct gp_failure_other){.pid = 72, .bytes = 9};
    f->others[f->other_count++] = (struct gp_failure_other){.pid = 99, .bytes = 3};
    add_scene(0);
    knows(GP_FAILURE_TOTAL, 7);
    knows(GP_FAILURE_FREE, 8);
    assert_false(gp_failure_knows(f, GP_FAILURE_SELF));
    assert_int_equal(f->other_count, 2); /* those that it names, and no others */
    assert_int_equal(f->others[0].bytes, 9);
    assert_true(f->others[0].is_of_job);
    assert_string_equal(f->others[0].who, "(unknown): (unknown)");
    assert_string_equal(f->others[1].who, ""); /* not there any more */
}

static void one_that_knows_what_it_has_itself(void **state)
{
    (void)state;
    gp_failure_set(&incident.failure, GP_FAILURE_SELF, 5);
    add_scene(40 * (double)GIB);
    knows(GP_FAILURE_SELF, 5);
    knows(GP_FAILURE_FREE, 10 * GIB);
    assert_int_equal(incident.failure.other_count, 0);
}

/* It may have ended, and given back what it had: then that was not free. */
static void what_was_given_back_since(void **state)
{
    static const struct {
        uint64_t job_gib, self_gib, free_gib;
    } cases[] = {{20, 30, 10}, {30, 30, 10}, {36, 36, 4}, {40, 40, 0}, {60, 60, 0}};
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        (void)begin(state);
        add_scene((double)(cases[i].job_gib * GIB));
        knows(GP_FAILURE_SELF, cases[i].self_gib * GIB);
        knows(GP_FAILURE_FREE, cases[i].free_gib * GIB);
    }
}

static void what_the_gpu_does_not_tell(void **state)
{
    (void)state;
    fixture_set_all(&machine, FIXTURE_WELL, GP_STATUS_STALE); /* of an earlier moment */
    machine.devices[FIXTURE_WELL].process_count = 1;
    *fixture_process(&machine, 0, GP_PROCESS_MEMORY) = fixture_absent(GP_STATUS_UNSUPPORTED);
    add_scene(0);
    assert_int_equal(incident.failure.known, 0);
    assert_int_equal(incident.failure.other_count, 0);
}

static void more_processes_than_there_is_room_for(void **state)
{
    (void)state;
    enum { MANY = GP_FAILURE_OTHERS + 5 };
    static struct gp_value cells[MANY][GP_PROCESS__COUNT];
    static struct gp_process processes[MANY];
    for (int i = 0; i < MANY; i++) {
        processes[i] = (struct gp_process){.cells = cells[i]};
        cells[i][GP_PID - GP_PROCESS__FIRST] = fixture_int(1000 + i);
        cells[i][GP_PROCESS_MEMORY - GP_PROCESS__FIRST] = fixture_int(1);
    }
    machine.snapshot.processes = processes;
    machine.snapshot.process_count = MANY;
    machine.devices[FIXTURE_WELL].first_process = 0;
    machine.devices[FIXTURE_WELL].process_count = MANY;
    add_scene(0);
    assert_int_equal(incident.failure.other_count, GP_FAILURE_OTHERS);
    assert_false(gp_failure_knows(&incident.failure, GP_FAILURE_SELF));
}

static void causes_are(const char *expected)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(8192);
    gp_incident_judge(&incident);
    gp_incident_add_causes(&sb, &incident);
    assert_string_equal(sb.buf, expected);
    gp_strbuf_fini(&sb);
}

static void two_lines_for_each_cause(void **state)
{
    (void)state;
    struct gp_failure *f = &incident.failure;
    f->cause = GP_CAUSE_GRAPHS;
    gp_failure_set(f, GP_FAILURE_GRAPHS, GIB);
    causes_are("    graphs: 1.00 GiB of the program's memory belong to CUDA graphs\n"
               "      -> capture graphs of fewer sizes\n");
    f->cause = GP_CAUSE_SELF; /* nothing helps */
    f->self_pid = 7;
    causes_are("    self: process 7 is the program itself, which does not know its host PID "
               "inside a container\n");
    f->cause = GP_CAUSE_NONE;
    causes_are("    no failure: PyTorch continues\n");
}

static void is_text(const json_t *object, const char *key, const char *expected)
{
    const char *text = json_string_value(json_object_get(object, key));
    assert_non_null(text);
    assert_string_equal(text, expected);
}

static void as_json(void **state)
{
    (void)state;
    struct gp_failure *f = &incident.failure;
    (void)snprintf(incident.line, sizeof(incident.line), "CUDA out of memory");
    incident.line_number = 12;
    gp_failure_set(f, GP_FAILURE_TRIED, 100 * GIB);
    add_scene(0);
    f->others[1].is_of_job = true;
    gp_incident_judge(&incident);
    json_t *document = gp_incident_json(&incident);
    assert_non_null(document);
    is_text(document, "id", "torch_oom");
    is_text(document, "class", gp_failure_class_word(f->class));
    is_text(document, "framework", "PyTorch");
    is_text(document, "text", "CUDA out of memory");
    assert_int_equal(json_integer_value(json_object_get(document, "line")), 12);
    const json_t *numbers = json_object_get(document, "numbers");
    assert_int_equal(json_object_size(numbers), 4);
    assert_int_equal(json_integer_value(json_object_get(numbers, "tried")), 100 * GIB);
    assert_int_equal(json_integer_value(json_object_get(numbers, "self")), 30 * GIB);
    const json_t *others = json_object_get(document, "others");
    assert_int_equal(json_array_size(others), 2);
    const json_t *last = json_array_get(others, 1);
    assert_int_equal(json_integer_value(json_object_get(last, "pid")), 73);
    assert_int_equal(json_integer_value(json_object_get(last, "bytes")), 15 * GIB);
    assert_true(json_is_true(json_object_get(last, "of_job")));
    assert_true(json_is_false(json_object_get(json_array_get(others, 0), "of_job")));
    is_text(last, "who", "(unknown): (unknown)");
    const json_t *causes = json_object_get(document, "causes");
    assert_true(json_array_size(causes) >= 2);
    is_text(json_array_get(causes, 0), "cause", "impossible");
    is_text(json_array_get(causes, 0), "why",
            "the program requested 100.00 GiB at once, but the GPU has only 80.00 GiB in total");
    for (size_t i = 0; i < json_array_size(causes); i++) {
        struct gp_strbuf sb = GP_STRBUF_INIT(4096);
        gp_cause_add_next(&sb, incident.causes.items[i], f);
        is_text(json_array_get(causes, i), "next", sb.buf);
        gp_strbuf_reset(&sb);
        gp_cause_add_why(&sb, incident.causes.items[i], f);
        is_text(json_array_get(causes, i), "why", sb.buf);
        gp_strbuf_fini(&sb);
    }
    json_decref(document);
}

/* ---- lines of a log ---- */

struct seen {
    unsigned began, found, lines;
    struct gp_incident last;
    char line[400];
};

static void count_began(void *context, const struct gp_incident *of)
{
    struct seen *seen = context;
    (void)of;
    seen->began++;
}

static void count_found(void *context, const struct gp_incident *of)
{
    struct seen *seen = context;
    seen->found++;
    seen->last = *of;
}

static void count_line(void *context, const char *line)
{
    struct seen *seen = context;
    seen->lines++;
    (void)snprintf(seen->line, sizeof(seen->line), "%s", line);
}

static struct gp_scan *scan_of(struct seen *seen, bool lines)
{
    const struct gp_scan_calls calls = {count_began, count_found, lines ? count_line : NULL, seen};
    *seen = (struct seen){.began = 0};
    struct gp_scan *scan = gp_scan_new(&calls);
    assert_non_null(scan);
    return scan;
}

static void feed(struct gp_scan *scan, const char *text)
{
    gp_scan_feed(scan, text, strlen(text));
}

/* Its own line and eight more may belong to a message. */
static void lines_that_belong_to_a_message(void **state)
{
    (void)state;
    struct seen seen;
    struct gp_scan *scan = scan_of(&seen, false);
    assert_false(gp_scan_is_open(scan));
    feed(scan, "CUDA out of memory. Tried to allocate 2.00 GiB.\n");
    assert_true(gp_scan_is_open(scan));
    assert_int_equal(seen.began, 1);
    for (int i = 1; i < GP_FAILURE_LINES; i++)
        feed(scan, "-\n");
    assert_true(gp_scan_is_open(scan));
    assert_int_equal(seen.found, 0);
    feed(scan, "GPU 0 has a total capacity of 10.00 GiB of which 11.00 MiB is free.\n");
    assert_false(gp_scan_is_open(scan));
    assert_int_equal(seen.found, 1);
    assert_int_equal(seen.last.failure.values[GP_FAILURE_FREE], 11 * MIB);
    assert_int_equal(seen.last.failure.values[GP_FAILURE_TOTAL], 10 * GIB);
    gp_scan_finish(scan);
    assert_int_equal(seen.found, 1);
    gp_scan_free(scan);
    gp_scan_free(NULL);
}

/* Each message has the numbers of its own lines, the first included. */
static void numbers_in_the_line_itself(void **state)
{
    (void)state;
    struct seen seen;
    struct gp_scan *scan = scan_of(&seen, false);
    feed(scan, "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
               "10.00 GiB of which 11.00 MiB is free.\n");
    gp_scan_finish(scan);
    assert_int_equal(seen.last.failure.values[GP_FAILURE_FREE], 11 * MIB);
    feed(scan, "CUDA out of memory. Tried to allocate 3.00 GiB.\n");
    gp_scan_finish(scan);
    assert_int_equal(seen.found, 2);
    assert_int_equal(seen.last.failure.values[GP_FAILURE_TRIED], 3 * GIB);
    assert_false(gp_failure_knows(&seen.last.failure, GP_FAILURE_FREE));
    gp_scan_free(scan);
}

/* The second message about one thing adds what it knows, and takes nothing back. */
static void messages_about_one_thing(void **state)
{
    (void)state;
    struct seen seen;
    struct gp_scan *scan = scan_of(&seen, false);
    feed(scan, "alloc_tensor_range: failed to allocate CUDA0 buffer of size 151851674624\n"
               "allocating 100.00 MiB on device 3: cudaMalloc failed: out of memory\n");
    gp_scan_finish(scan);
    assert_int_equal(seen.found, 1);
    assert_int_equal(seen.last.failure.values[GP_FAILURE_TRIED], 151851674624);
    assert_true(gp_failure_knows(&seen.last.failure, GP_FAILURE_ORDINAL));
    assert_int_equal(seen.last.failure.values[GP_FAILURE_ORDINAL], 3);
    /* the next is another incident, of which nothing is left here */
    feed(scan, "CUDA error: out of memory\n");
    gp_scan_finish(scan);
    assert_int_equal(seen.found, 2);
    assert_int_equal(seen.last.failure.known, 0);
    assert_int_equal(seen.last.line_number, 3);
    gp_scan_free(scan);
}

static void each_line_for_those_who_want_them(void **state)
{
    (void)state;
    struct seen seen;
    struct gp_scan *scan = scan_of(&seen, true);
    feed(scan, "one\ntwo\r\033[31mthr");
    assert_int_equal(seen.lines, 2);
    assert_string_equal(seen.line, "two");
    feed(scan, "ee\033[0m");
    assert_int_equal(seen.lines, 2);
    gp_scan_finish(scan); /* the last has no end */
    assert_int_equal(seen.lines, 3);
    assert_string_equal(seen.line, "three");
    gp_scan_finish(scan);
    assert_int_equal(seen.lines, 3);
    gp_scan_free(scan);
}

/* A line of 64 KiB is one, of a longer one each piece is. */
static void pieces_of_long_lines(void **state)
{
    (void)state;
    enum { LONG = 65535 };
    struct seen seen;
    struct gp_scan *scan = scan_of(&seen, true);
    char *text = malloc(LONG + 1);
    assert_non_null(text);
    memset(text, 'x', LONG);
    text[LONG] = '\n';
    gp_scan_feed(scan, text, LONG + 1);
    assert_int_equal(seen.lines, 1);
    text[LONG] = 'x';
    gp_scan_feed(scan, text, LONG + 1);
    assert_int_equal(seen.lines, 2);
    gp_scan_finish(scan);
    assert_int_equal(seen.lines, 3);
    assert_string_equal(seen.line, "x");
    free(text);
    gp_scan_free(scan);
}

static void without_memory(void **state)
{
    (void)state;
    const struct gp_scan_calls calls = {.found = count_found};
    alloc_fail_at(0);
    struct gp_scan *scan = gp_scan_new(&calls);
    alloc_fail_at(-1);
    assert_null(scan);
}

#define SCENE(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE(a_program_that_names_nobody),
        SCENE(what_the_program_says_itself_counts),
        SCENE(one_that_knows_what_it_has_itself),
        SCENE(what_was_given_back_since),
        SCENE(what_the_gpu_does_not_tell),
        SCENE(more_processes_than_there_is_room_for),
        SCENE(two_lines_for_each_cause),
        SCENE(as_json),
        cmocka_unit_test(lines_that_belong_to_a_message),
        cmocka_unit_test(numbers_in_the_line_itself),
        cmocka_unit_test(messages_about_one_thing),
        cmocka_unit_test(each_line_for_those_who_want_them),
        cmocka_unit_test(pieces_of_long_lines),
        cmocka_unit_test(without_memory),
    };
    gp_failure_prepare();
    return cmocka_run_group_tests_name("incident", tests, NULL, NULL);
}
