#include "unit.h"

#include "base/strbuf.h"
#include "out/columns.h"

enum { NAME, SIZE, AGE, JOB, COUNT };

static const struct gp_text_column columns[COUNT] = {
    [NAME] = {"NAME", 6, .drop = 2, .is_left = true},
    [SIZE] = {"SIZE", 5},
    [AGE] = {"AGE", 3, .drop = 1},
    [JOB] = {"JOB", 4, .is_left = true},
};

enum { ALL = (1 << COUNT) - 1 };

/* 6 + 2 + 5 + 2 + 3 + 2 + 4 */
static void least_important_ones_are_left_out(void **state)
{
    (void)state;
    static const struct {
        size_t rest, room;
        uint32_t shown;
    } rows[] = {
        {0, 0, ALL},
        {90, 0, ALL},
        {0, 24, ALL},
        {0, 23, ALL & ~(1U << AGE)},
        {1, 24, ALL & ~(1U << AGE)},
        {0, 19, ALL & ~(1U << AGE)},
        {0, 18, 1U << SIZE | 1U << JOB},
        {0, 1, 1U << SIZE | 1U << JOB},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(rows); i++)
        assert_int_equal(gp_text_columns_fit(columns, COUNT, ALL, rows[i].rest, rows[i].room),
                         rows[i].shown);
    assert_int_equal(gp_text_columns_fit(columns, COUNT, ALL & ~(1U << AGE), 0, 19),
                     ALL & ~(1U << AGE));
    assert_int_equal(gp_text_columns_width(columns, COUNT, ALL), 24);
    assert_int_equal(gp_text_columns_width(columns, COUNT, 1U << SIZE | 1U << JOB), 11);
}

static void expect(uint32_t shown, const char *const *cells, const char *line)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(4096);
    gp_text_columns_add(&sb, columns, COUNT, shown, cells);
    assert_string_equal(sb.buf, line);
    gp_strbuf_fini(&sb);
}

static void cells_are_below_their_titles(void **state)
{
    (void)state;
    static const char *const cells[COUNT] = {
        [NAME] = "\xe6\x97\xa5", [SIZE] = "12", [AGE] = "5", [JOB] = "a long one"};
    static const char *const wide[COUNT] = {
        [NAME] = "too long", [SIZE] = "123456", [AGE] = "", [JOB] = ""};
    expect(ALL, NULL, "NAME     SIZE  AGE  JOB");
    expect(ALL, cells, "\xe6\x97\xa5         12    5  a long one");
    expect(ALL, wide, "too long  123456       ");
    expect(1U << SIZE | 1U << AGE, cells, "   12    5");
    expect(1U << NAME, cells, "\xe6\x97\xa5");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(least_important_ones_are_left_out),
        cmocka_unit_test(cells_are_below_their_titles),
    };
    return cmocka_run_group_tests_name("columns", tests, NULL, NULL);
}
