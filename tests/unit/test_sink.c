/* Documents over several files: rotated, cut off, appended to. The writers themselves are tested in
 * test_writer.c, the files in test_outfile.c. */
#include "unit.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "out/sink.h"
#include "snapshot_fixture.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

static struct fixture fixture;
static char folder[64];
static char file[96];

static struct gp_field field = {.metric = GP_INDEX};
static struct gp_view view = {
    .scope = GP_SCOPE_DEVICE, .fields = {&field, 1}, .header = true, .looped = true};

static int set_up(void **state)
{
    (void)state;
    fixture_init(&fixture);
    fixture.snapshot.device_count = 1;
    temporary_name(folder, sizeof(folder), "sink");
    if (!mkdtemp(folder))
        return -1;
    (void)snprintf(file, sizeof(file), "%s/file", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        char path[128];
        (void)snprintf(path, sizeof(path), i ? "%s.%u" : "%s", file, i);
        (void)unlink(path);
    }
    return rmdir(folder);
}

static const char *content(unsigned number)
{
    static char text[4096];
    char path[128];
    (void)snprintf(path, sizeof(path), number ? "%s.%u" : "%s", file, number);
    long n = gp_io_read(path, text, sizeof(text));
    return n < 0 ? "none" : text;
}

/* Writes samples of the GPU numbers first … last, and the end. */
static void write_samples(const char *format, struct gp_outfile_config config, int first, int last)
{
    struct gp_sink sink;
    struct gp_err err = {0};
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    config.path = file;
    config.keep = 3;
    int r = gp_sink_open(&sink, gp_writer_find(format), &view, &config, &err);
    for (int i = first; r == 0 && i <= last; i++) {
        *fixture_value(&fixture, 0, GP_INDEX) = fixture_int(i);
        r = gp_sink_sample(&sink, &view, &fixture.snapshot, &sb, &err);
    }
    if (r == 0)
        r = gp_sink_end(&sink, &view, &sb, &err);
    if (r < 0)
        fail_msg("%s", err.text);
    gp_strbuf_fini(&sb);
}

/* "index\n" and two numbers are 10 bytes: a third one would be 12. */
static void every_file_has_its_header(void **state)
{
    (void)state;
    write_samples("csv", (struct gp_outfile_config){.size_max = 11}, 1, 5);
    assert_string_equal(content(2), "index\n1\n2\n");
    assert_string_equal(content(1), "index\n3\n4\n");
    assert_string_equal(content(0), "index\n5\n");
}

#define JSON_OF(i)                                                                                 \
    "{\n  \"schema\": \"gpulse.query/1\",\n  \"time\": \"2026-11-20T15:04:05.123+01:00\",\n"       \
    "  \"host\": \"node1\",\n  \"driver\": \"580.95.05\",\n"                                       \
    "  \"gpus\": [\n    {\n      \"index\": " #i "\n    }\n  ]\n}"

/* The limit counts what closes the document too. */
static void every_json_file_is_one_document(void **state)
{
    (void)state;
    const char two[] = "[\n" JSON_OF(1) ",\n" JSON_OF(2) "\n]\n";
    write_samples("json", (struct gp_outfile_config){.size_max = sizeof(two) - 1}, 1, 3);
    assert_string_equal(content(1), two);
    assert_string_equal(content(0), "[\n" JSON_OF(3) "\n]\n");
    assert_int_equal(unlink(file), 0);
    write_samples("json", (struct gp_outfile_config){.size_max = sizeof(two) - 2}, 1, 3);
    assert_string_equal(content(0), "[\n" JSON_OF(3) "\n]\n");
    assert_string_equal(content(1), "[\n" JSON_OF(2) "\n]\n");
    assert_string_equal(content(2), "[\n" JSON_OF(1) "\n]\n");
}

static void every_exposition_ends(void **state)
{
    (void)state;
    write_samples("openmetrics", (struct gp_outfile_config){.size_max = 1}, 1, 2);
    for (unsigned i = 0; i < 2; i++) {
        const char *text = content(i);
        assert_memory_equal(text, "# TYPE ", 7);
        assert_string_equal(text + strlen(text) - 6, "# EOF\n");
    }
}

static void the_header_is_not_repeated_in_an_appended_file(void **state)
{
    (void)state;
    write_samples("csv", (struct gp_outfile_config){.append = true}, 1, 1);
    write_samples("csv", (struct gp_outfile_config){.append = true}, 2, 2);
    assert_string_equal(content(0), "index\n1\n2\n");
    write_samples("csv", (struct gp_outfile_config){.append = true, .size_max = 10}, 3, 3);
    assert_string_equal(content(0), "index\n3\n");
    assert_string_equal(content(1), "index\n1\n2\n");
}

/* What the columns of a file are is said by its first line. */
static void other_columns_are_not_mixed_into_an_appended_file(void **state)
{
    (void)state;
    static const struct {
        const char *there;
        const char *format;
        bool header;
        int answer;
    } cases[] = {
        {"", "csv", true, 0},
        {"index", "csv", true, 0},
        {"index\n7\n", "csv", true, 0},
        {"index\n7\n", "tsv", true, 0},
        {"index,name\n7,x\n", "csv", true, GP_EUSAGE},
        {"inde", "csv", true, GP_EUSAGE},
        {"7\n", "tsv", true, GP_EUSAGE},
        {"7\n", "tsv", false, 0},
        {"{}\n", "ndjson", true, 0},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        const struct gp_outfile_config config = {.path = file, .append = true};
        struct gp_view this_view = view;
        struct gp_sink sink;
        struct gp_err err = {0};
        FILE *f = fopen(file, "w");
        assert_non_null(f);
        (void)fputs(cases[i].there, f);
        (void)fclose(f);
        this_view.header = cases[i].header;
        int r = gp_sink_open(&sink, gp_writer_find(cases[i].format), &this_view, &config, &err);
        assert_int_equal(r, cases[i].answer);
        if (r == 0)
            assert_int_equal(gp_outfile_close(&sink.file, &err), 0);
        else
            assert_string_equal(content(0), cases[i].there);
    }
}

static void a_replaced_file_is_one_document(void **state)
{
    (void)state;
    struct gp_sink sink;
    struct gp_err err = {0};
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    gp_sink_replace(&sink, gp_writer_find("json"), file);
    *fixture_value(&fixture, 0, GP_INDEX) = fixture_int(1);
    assert_int_equal(gp_sink_sample(&sink, &view, &fixture.snapshot, &sb, &err), 0);
    assert_string_equal(content(0), JSON_OF(1) "\n");
    *fixture_value(&fixture, 0, GP_INDEX) = fixture_int(2);
    assert_int_equal(gp_sink_sample(&sink, &view, &fixture.snapshot, &sb, &err), 0);
    assert_int_equal(gp_sink_end(&sink, &view, &sb, &err), 0);
    assert_string_equal(content(0), JSON_OF(2) "\n");
    gp_strbuf_fini(&sb);
}

/* A limit on the size of files stands for a disk that is full. */
static void a_full_disk_leaves_a_document(void **state)
{
    (void)state;
    struct gp_sink sink;
    struct gp_err err = {0};
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    struct rlimit before;
    const struct gp_outfile_config config = {.path = file};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit small = {.rlim_cur = sizeof(JSON_OF(1)) + 20, .rlim_max = before.rlim_max};
    void (*action)(int) = signal(SIGXFSZ, SIG_IGN);
    *fixture_value(&fixture, 0, GP_INDEX) = fixture_int(1);
    int open = gp_sink_open(&sink, gp_writer_find("json"), &view, &config, &err);
    (void)setrlimit(RLIMIT_FSIZE, &small);
    int first = gp_sink_sample(&sink, &view, &fixture.snapshot, &sb, &err);
    int second = gp_sink_sample(&sink, &view, &fixture.snapshot, &sb, &err);
    int end = gp_sink_end(&sink, &view, &sb, NULL);
    (void)setrlimit(RLIMIT_FSIZE, &before);
    (void)signal(SIGXFSZ, action);
    gp_strbuf_fini(&sb);
    assert_int_equal(open, 0);
    assert_int_equal(first, 0);
    assert_int_equal(second, GP_EIO);
    assert_non_null(strstr(err.text, "File too large"));
    assert_int_equal(end, 0);
    assert_string_equal(content(0), "[\n" JSON_OF(1) "\n]\n");
}

/* What went out to a descriptor cannot be taken back: nothing follows it. */
static void a_broken_descriptor_gets_no_more(void **state)
{
    (void)state;
    struct gp_sink sink;
    struct gp_err err = {0};
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    gp_sink_init(&sink, gp_writer_find("json"), -1);
    assert_int_equal(gp_sink_sample(&sink, &view, &fixture.snapshot, &sb, &err), GP_EIO);
    assert_string_equal(err.text, "cannot write the output: Bad file descriptor");
    assert_int_equal(gp_sink_end(&sink, &view, &sb, &err), 0);
    gp_strbuf_fini(&sb);
}

static void a_sample_that_cannot_be_built(void **state)
{
    (void)state;
    struct gp_sink sink;
    struct gp_err err = {0};
    struct gp_strbuf sb = GP_STRBUF_INIT(20);
    const struct gp_outfile_config config = {.path = file, .size_max = 1000, .keep = 3};
    assert_int_equal(gp_sink_open(&sink, gp_writer_find("json"), &view, &config, &err), 0);
    assert_int_equal(gp_sink_sample(&sink, &view, &fixture.snapshot, &sb, &err), GP_ETOOBIG);
    assert_string_equal(err.text, "cannot build the output: larger than its limit");
    assert_int_equal(gp_sink_end(&sink, &view, &sb, &err), 0);
    gp_strbuf_fini(&sb);
    assert_string_equal(content(0), "[]\n");
    assert_string_equal(content(1), "none");
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(every_file_has_its_header),
        WITH_FOLDER(every_json_file_is_one_document),
        WITH_FOLDER(every_exposition_ends),
        WITH_FOLDER(the_header_is_not_repeated_in_an_appended_file),
        WITH_FOLDER(other_columns_are_not_mixed_into_an_appended_file),
        WITH_FOLDER(a_replaced_file_is_one_document),
        WITH_FOLDER(a_full_disk_leaves_a_document),
        WITH_FOLDER(a_broken_descriptor_gets_no_more),
        WITH_FOLDER(a_sample_that_cannot_be_built),
    };
    return cmocka_run_group_tests_name("sink", tests, NULL, NULL);
}
