#include "unit.h"

#include "base/err.h"
#include "base/strbuf.h"

#include <limits.h>

static void starts_empty_without_allocating(void **state)
{
    (void)state;
    alloc_fail_from(0);
    struct gp_strbuf sb = GP_STRBUF_INIT(100);
    assert_string_equal(sb.buf, "");
    assert_int_equal(sb.len, 0);
    gp_strbuf_adds(&sb, "");
    gp_strbuf_addf(&sb, "%s", "");
    gp_strbuf_fill(&sb, 'x', 0);
    assert_int_equal(sb.error, 0);
    assert_int_equal(alloc_count(), 0);
    gp_strbuf_fini(&sb);
    alloc_fail_from(-1);
}

static void appends(void **state)
{
    (void)state;
    struct gp_strbuf sb = GP_STRBUF_INIT(1000);
    gp_strbuf_adds(&sb, "one");
    gp_strbuf_addc(&sb, ' ');
    gp_strbuf_add(&sb, "two and more", 3);
    gp_strbuf_fill(&sb, '.', 3);
    gp_strbuf_addf(&sb, "%d %s", 3, "three");
    assert_string_equal(sb.buf, "one two...3 three");
    assert_int_equal(sb.len, 17);
    gp_strbuf_fini(&sb);
    assert_string_equal(sb.buf, "");
    gp_strbuf_fini(&sb); /* twice is harmless */
}

static void keeps_nul_bytes(void **state)
{
    (void)state;
    struct gp_strbuf sb = GP_STRBUF_INIT(10);
    gp_strbuf_add(&sb, "a\0b", 3);
    assert_int_equal(sb.len, 3);
    assert_memory_equal(sb.buf, "a\0b", 4);
    gp_strbuf_fini(&sb);
}

static void long_formats_are_whole(void **state)
{
    (void)state;
    /* Around the size of the room on the stack, where the two ways of formatting meet. */
    for (int n = 250; n < 262; n++) {
        struct gp_strbuf sb = GP_STRBUF_INIT(10000);
        gp_strbuf_adds(&sb, "<");
        gp_strbuf_addf(&sb, "%*d>", n, 7);
        assert_int_equal(sb.len, n + 2);
        assert_int_equal(sb.buf[n], '7');
        assert_int_equal(sb.buf[n + 1], '>');
        assert_int_equal(sb.buf[n + 2], '\0');
        gp_strbuf_fini(&sb);
    }
}

static void ceiling_is_exact(void **state)
{
    (void)state;
    struct gp_strbuf sb = GP_STRBUF_INIT(5);
    gp_strbuf_adds(&sb, "12345");
    assert_int_equal(sb.error, 0);
    assert_string_equal(sb.buf, "12345");
    gp_strbuf_addc(&sb, '6');
    assert_int_equal(sb.error, GP_ETOOBIG);
    assert_string_equal(sb.buf, "12345");
    gp_strbuf_fini(&sb);
}

static void error_sticks_until_reset(void **state)
{
    (void)state;
    struct gp_strbuf sb = GP_STRBUF_INIT(5);
    gp_strbuf_adds(&sb, "abc");
    gp_strbuf_adds(&sb, "too long");
    assert_int_equal(sb.error, GP_ETOOBIG);
    gp_strbuf_adds(&sb, "d"); /* would fit */
    gp_strbuf_addf(&sb, "%d", 1);
    gp_strbuf_fill(&sb, 'x', 1);
    assert_false(gp_strbuf_reserve(&sb, 0));
    assert_string_equal(sb.buf, "abc");
    gp_strbuf_reset(&sb);
    assert_int_equal(sb.error, 0);
    assert_string_equal(sb.buf, "");
    gp_strbuf_adds(&sb, "d");
    assert_string_equal(sb.buf, "d");
    gp_strbuf_fini(&sb);
}

static void nothing_fits_below_a_ceiling_of_zero(void **state)
{
    (void)state;
    struct gp_strbuf sb = GP_STRBUF_INIT(0);
    gp_strbuf_adds(&sb, "");
    assert_int_equal(sb.error, 0);
    gp_strbuf_addc(&sb, 'x');
    assert_int_equal(sb.error, GP_ETOOBIG);
    assert_string_equal(sb.buf, "");
    gp_strbuf_fini(&sb);
}

static void absurd_sizes_do_not_wrap(void **state)
{
    (void)state;
    struct gp_strbuf sb = GP_STRBUF_INIT(SIZE_MAX);
    gp_strbuf_adds(&sb, "abc");
    assert_false(gp_strbuf_reserve(&sb, SIZE_MAX - 3));
    assert_int_equal(sb.error, GP_ETOOBIG);
    gp_strbuf_reset(&sb);
    gp_strbuf_adds(&sb, "abc");
    assert_false(gp_strbuf_reserve(&sb, SIZE_MAX - 4));
    assert_string_equal(sb.buf, "abc");
    gp_strbuf_fini(&sb);
}

/* A row of appends that grows the buffer several times; the n-th allocation fails. */
static void failing_allocation_keeps_the_content(void **state)
{
    (void)state;
    for (long n = 0; n < 20; n++) {
        struct gp_strbuf sb = GP_STRBUF_INIT(100000);
        size_t before = 0;
        alloc_fail_from(n);
        for (int i = 0; i < 200 && !sb.error; i++) {
            before = sb.len;
            if (i % 2)
                gp_strbuf_addf(&sb, "%0300d", i);
            else
                gp_strbuf_fill(&sb, 'x', 50);
        }
        long count = alloc_count();
        alloc_fail_from(-1);
        if (!sb.error) {
            assert_true(n >= count);
            gp_strbuf_fini(&sb);
            return;
        }
        assert_int_equal(sb.error, GP_ENOMEM);
        assert_int_equal(sb.len, before);
        assert_int_equal(sb.buf[sb.len], '\0');
        gp_strbuf_fini(&sb);
    }
    fail_msg("the row of appends allocates more often than expected");
}

static void it_begins_in_an_array_and_moves_when_that_is_full(void **state)
{
    (void)state;
    char room[8] = "";
    struct gp_strbuf sb = GP_STRBUF_ON(room, 100);
    assert_string_equal(sb.buf, "");
    gp_strbuf_adds(&sb, "1234567");
    assert_ptr_equal(sb.buf, room);
    assert_string_equal(room, "1234567");
    gp_strbuf_reset(&sb);
    gp_strbuf_adds(&sb, "abc");
    gp_strbuf_adds(&sb, "defgh"); /* one more than fits with its end */
    assert_ptr_not_equal(sb.buf, room);
    assert_string_equal(sb.buf, "abcdefgh");
    gp_strbuf_fill(&sb, 'x', 93);
    assert_int_equal(sb.error, GP_ETOOBIG);
    assert_string_equal(sb.buf, "abcdefgh");
    gp_strbuf_fini(&sb);
    assert_string_equal(sb.buf, "");
    struct gp_strbuf unused = GP_STRBUF_ON(room, 100);
    gp_strbuf_fini(&unused); /* nothing to free */
}

static void integers(void **state)
{
    static const long numbers[] = {0, 7, 10, -1, 1234567890, LONG_MAX, LONG_MIN};
    (void)state;
    for (size_t i = 0; i < GP_ARRAY_LEN(numbers); i++) {
        struct gp_strbuf sb = GP_STRBUF_INIT(100);
        char want[32];
        gp_strbuf_add_int(&sb, numbers[i]);
        (void)snprintf(want, sizeof(want), "%ld", numbers[i]);
        assert_string_equal(sb.buf, want);
        gp_strbuf_fini(&sb);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers),
        cmocka_unit_test(starts_empty_without_allocating),
        cmocka_unit_test(appends),
        cmocka_unit_test(keeps_nul_bytes),
        cmocka_unit_test(long_formats_are_whole),
        cmocka_unit_test(ceiling_is_exact),
        cmocka_unit_test(error_sticks_until_reset),
        cmocka_unit_test(nothing_fits_below_a_ceiling_of_zero),
        cmocka_unit_test(absurd_sizes_do_not_wrap),
        cmocka_unit_test(failing_allocation_keeps_the_content),
        cmocka_unit_test(it_begins_in_an_array_and_moves_when_that_is_full),
    };
    return cmocka_run_group_tests_name("strbuf", tests, NULL, NULL);
}
