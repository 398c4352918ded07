/* Tables from files: what the build accepts is read as the build reads it, and the rest is refused
 * with its place. */
#include "unit.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/io.h"
#include "doctor/tables.h"
#include "doctor/tables_load.h"

static char *read_csv(const char *table, size_t *ret_size)
{
    char path[GP_PATH_SIZE];
    const char *source = getenv("GPULSE_SOURCE");
    (void)snprintf(path, sizeof(path), "%s/data/tables/%s.csv", source ? source : ".", table);
    enum { MOST = 4 << 20 };
    char *text = malloc(MOST);
    assert_non_null(text);
    long n = gp_io_read(path, text, MOST);
    assert_true(n > 0);
    *ret_size = (size_t)n;
    return text;
}

static const void *rows_of(const struct gp_table *table)
{
    const void *rows;
    memcpy(&rows, table->rows, sizeof(rows));
    return rows;
}

static size_t size_of(enum gp_table_store store)
{
    return store == GP_STORE_TEXT   ? sizeof(char *)
           : store == GP_STORE_REAL ? sizeof(double)
           : store == GP_STORE_YES  ? sizeof(bool)
                                    : sizeof(unsigned);
}

static void assert_same_cell(const struct gp_table *table, const struct gp_table_column *column,
                             const char *a, const char *b)
{
    const char *text_a, *text_b;
    if (column->store != GP_STORE_TEXT) {
        if (memcmp(a + column->offset, b + column->offset, size_of(column->store)) != 0)
            fail_msg("%s.%s differs", table->name, column->name);
        return;
    }
    memcpy(&text_a, a + column->offset, sizeof(text_a));
    memcpy(&text_b, b + column->offset, sizeof(text_b));
    if (strcmp(text_a, text_b) != 0)
        fail_msg("%s.%s is '%s', not '%s'", table->name, column->name, text_a, text_b);
}

static void files_are_read_as_the_build_reads_them(void **test_state)
{
    (void)test_state;
    assert_true(gp_table_count > 15);
    for (size_t t = 0; t < gp_table_count; t++) {
        const struct gp_table *table = &gp_tables[t];
        struct gp_arena arena = {0};
        struct gp_err err = {0};
        void *rows;
        size_t size, count;
        char *text = read_csv(table->name, &size);
        if (gp_table_parse(table, table->name, text, size, &arena, &rows, &count, &err) != 0)
            fail_msg("%s", err.text);
        assert_int_equal(count, *table->count);
        for (size_t i = 0; i < count; i++)
            for (size_t c = 0; c < table->column_count; c++)
                assert_same_cell(table, &table->columns[c], (char *)rows + i * table->row_size,
                                 (const char *)rows_of(table) + i * table->row_size);
        gp_arena_fini(&arena);
        free(text);
    }
}

static const struct gp_table *table_named(const char *name)
{
    for (size_t i = 0; i < gp_table_count; i++)
        if (strcmp(gp_tables[i].name, name) == 0)
            return &gp_tables[i];
    return NULL;
}

/* Of texts that are refused: the rows would point into the copy. */
static int parse(const char *table, const char *text, size_t size, struct gp_err *err)
{
    struct gp_arena arena = {0};
    void *rows;
    size_t count;
    char *copy = malloc(size + 1);
    assert_non_null(copy);
    memcpy(copy, text, size);
    copy[size] = '\0';
    int r = gp_table_parse(table_named(table), "f.csv", copy, size, &arena, &rows, &count, err);
    gp_arena_fini(&arena);
    free(copy);
    return r;
}

#define HEAD "major,driver,source\n"

static void what_does_not_fit_is_refused_with_its_place(void **test_state)
{
    static const struct {
        const char *text, *reason;
        size_t size; /* 0: of the text */
    } cases[] = {
        {"", "f.csv:1: column 1 is '', not 'major'", 0},
        {"major,driver\n", "f.csv:1: column 3 is '', not 'source'", 0},
        {"major,drivers,source\n", "f.csv:1: column 2 is 'drivers', not 'driver'", 0},
        {"major,driver,source,more\n", "f.csv:1: more than 3 columns", 0},
        {HEAD, "f.csv:1: no row after the header", 0},
        {HEAD "11,450.80\n", "f.csv:2: 2 cells, not 3", 0},
        {HEAD "11,450.80,x,y\n", "f.csv:2: more than 3 cells", 0},
        {HEAD "11,450.80,x\n\n", "f.csv:3: major is '': nothing where a text is needed", 0},
        {HEAD "11,450.80,\n", "f.csv:2: source is '': nothing where a text is needed", 0},
        {HEAD "eleven,450.80,x\n", "f.csv:2: major is 'eleven': no number", 0},
        {HEAD "-1,450.80,x\n", "f.csv:2: major is '-1': no number", 0},
        {HEAD "9999999999,450.80,x\n", "f.csv:2: major is '9999999999': no number", 0},
        {HEAD "11,R450,x\n", "f.csv:2: driver is 'R450': no version", 0},
        {HEAD "11,450,x\n12,5,y\n11,460,z\n", "f.csv:4: its key is that of line 2", 0},
        {HEAD "11,450,\"x\n", "f.csv:2: a quotation mark is not closed", 0},
        {HEAD "11,450,\"x\"y\n", "f.csv:2: a quotation mark inside of a cell", 0},
        {HEAD "11,450,x\"y\"\n", "f.csv:2: a quotation mark inside of a cell", 0},
        {HEAD "11,450,x\ty\n", "f.csv:2: a control character", 0},
        {HEAD "11,450,x\ry\n", "f.csv:2: a control character", 0},
        {HEAD "11,450,x\177\n", "f.csv:2: a control character", 0},
        {HEAD "11,450,\xff\n", "f.csv:2: not UTF-8", 0},
        {HEAD "11,450,x\0\n", "f.csv:2: a control character", sizeof(HEAD) + 9},
    };
    (void)test_state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gp_err err = {0};
        size_t size = cases[i].size ? cases[i].size : strlen(cases[i].text);
        int r = parse("cuda_majors", cases[i].text, size, &err);
        if (r != GP_EFORMAT || !strstr(err.text, cases[i].reason))
            fail_msg("case %zu: %d, '%s' instead of '%s'", i, r, err.text, cases[i].reason);
    }
}

static void kinds_of_cells_are_checked(void **test_state)
{
    static const struct {
        const char *table, *line, *reason;
    } cases[] = {
        {"drivers", "580,13.0,long-term,June 2028,both,x", "ends is 'June 2028': no month"},
        {"drivers", "580,13.0,long-term,,all,x", "none of: proprietary open both"},
        {"archs", "8,A,e,1.0,,1,,both,no,x", "compute_capability is '8': no compute capability"},
        {"archs", "8.0,A,e,1.0,,1,,both,maybe,x", "is_integrated is 'maybe': neither yes nor no"},
        {"chips", "20G0,n,a,8.0,,no,x", "device is '20G0': no hexadecimal number"},
        {"offers", "Gentoo,,580,both,p,x", "distribution is 'Gentoo': none of: Debian"},
        {"jax_builds", "0.7.1,e,12.9.1,3.11,8.0,x", "archs is '8.0': no list"},
        {"memory_states", "w,words,bad,,x", "verdict is 'bad': none of: ok info warn fail"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct gp_table *table = table_named(cases[i].table);
        struct gp_err err = {0};
        char text[1024] = "";
        (void)test_state;
        for (size_t c = 0; c < table->column_count; c++)
            (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s",
                           c > 0 ? "," : "", table->columns[c].name);
        (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "\n%s\n", cases[i].line);
        int r = parse(cases[i].table, text, strlen(text), &err);
        if (r != GP_EFORMAT || !strstr(err.text, cases[i].reason))
            fail_msg("case %zu: %d, '%s' instead of '%s'", i, r, err.text, cases[i].reason);
    }
}

static void rows_are_sorted_and_cells_unquoted(void **test_state)
{
    char text[] = "cuda,driver,source\r\n12.10,2.0,\"a, \"\"b\"\"\"\r\n12.9,1.0,x\r\n12.9.1,1.5,y";
    struct gp_arena arena = {0};
    void *rows;
    size_t count;
    (void)test_state;
    assert_int_equal(gp_table_parse(table_named("toolkits"), "f.csv", text, sizeof(text) - 1,
                                    &arena, &rows, &count, NULL),
                     0);
    const struct gp_toolkit *toolkits = rows;
    assert_int_equal(count, 3);
    assert_string_equal(toolkits[0].cuda, "12.9");
    assert_string_equal(toolkits[1].cuda, "12.9.1");
    assert_string_equal(toolkits[2].cuda, "12.10");
    assert_string_equal(toolkits[2].source, "a, \"b\"");
    gp_arena_fini(&arena);
}

static void memory_may_run_out(void **test_state)
{
    static const char csv[] = HEAD "11,450,x\n";
    (void)test_state;
    for (long n = 0; n < 3; n++) {
        char text[sizeof(csv)];
        struct gp_arena arena = {0};
        struct gp_err err = {0};
        void *rows;
        size_t count;
        memcpy(text, csv, sizeof(csv));
        alloc_fail_from(n);
        int r = gp_table_parse(table_named("cuda_majors"), "f.csv", text, sizeof(csv) - 1, &arena,
                               &rows, &count, &err);
        alloc_fail_from(-1);
        if (r < 0)
            assert_int_equal(r, GP_ENOMEM);
        gp_arena_fini(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_read_as_the_build_reads_them),
        cmocka_unit_test(what_does_not_fit_is_refused_with_its_place),
        cmocka_unit_test(kinds_of_cells_are_checked),
        cmocka_unit_test(rows_are_sorted_and_cells_unquoted),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
