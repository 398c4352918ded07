#include "unit.h"

#include "base/arena.h"

static void memory_is_zeroed_aligned_and_apart(void **state)
{
    (void)state;
    enum { COUNT = 3000 };
    static unsigned char *pieces[COUNT];
    struct gp_arena arena = {0};
    for (size_t i = 0; i < COUNT; i++) {
        size_t size = 1 + i % 61;
        pieces[i] = gp_arena_alloc(&arena, size, 1);
        assert_non_null(pieces[i]);
        assert_int_equal((uintptr_t)pieces[i] % _Alignof(max_align_t), 0);
        for (size_t k = 0; k < size; k++)
            assert_int_equal(pieces[i][k], 0);
        memset(pieces[i], (int)(i & 0xff), size);
    }
    for (size_t i = 0; i < COUNT; i++)
        for (size_t k = 0; k < 1 + i % 61; k++)
            assert_int_equal(pieces[i][k], i & 0xff);
    gp_arena_fini(&arena);
    assert_null(arena.blocks);
    gp_arena_fini(&arena); /* twice is harmless */
}

static void takes_large_pieces(void **state)
{
    (void)state;
    struct gp_arena arena = {0};
    char *small = gp_arena_alloc(&arena, 1, 8);
    char *large = gp_arena_alloc(&arena, 1024, 1024);
    assert_non_null(small);
    assert_non_null(large);
    memset(large, 'x', 1024 * 1024);
    char *exact = gp_arena_alloc(&arena, 16 * 1024, 1);
    assert_non_null(exact);
    memset(exact, 'y', 16 * 1024);
    gp_arena_fini(&arena);
}

static void a_large_piece_leaves_the_room_for_small_ones(void **state)
{
    (void)state;
    struct gp_arena arena = {0};
    assert_non_null(gp_arena_strdup(&arena, "small"));
    assert_non_null(gp_arena_alloc(&arena, 100, 1024));
    alloc_fail_from(0);
    char *text = gp_arena_strdup(&arena, "x");
    char *next = gp_arena_strdup(&arena, "y");
    long *aligned = gp_arena_alloc(&arena, 1, sizeof(*aligned));
    alloc_fail_from(-1);
    assert_string_equal(text, "x");
    assert_ptr_equal(next, text + 2);
    assert_non_null(aligned);
    assert_int_equal((uintptr_t)aligned % _Alignof(max_align_t), 0);
    gp_arena_fini(&arena);
}

static void nothing_is_something(void **state)
{
    (void)state;
    struct gp_arena arena = {0};
    assert_non_null(gp_arena_alloc(&arena, 0, 8));
    assert_non_null(gp_arena_alloc(&arena, 8, 0));
    gp_arena_fini(&arena);
}

static void products_do_not_wrap(void **state)
{
    (void)state;
    struct gp_arena arena = {0};
    assert_null(gp_arena_alloc(&arena, SIZE_MAX / 2, 3));
    assert_null(gp_arena_alloc(&arena, SIZE_MAX, 1));
    assert_null(gp_arena_alloc(&arena, SIZE_MAX / 16 + 1, 16));
    assert_null(arena.blocks);
    gp_arena_fini(&arena);
}

static void copies_text(void **state)
{
    (void)state;
    struct gp_arena arena = {0};
    char text[] = "NVIDIA H100 80GB HBM3";
    char *copy = gp_arena_strdup(&arena, text);
    text[0] = '\0';
    assert_string_equal(copy, "NVIDIA H100 80GB HBM3");
    assert_string_equal(gp_arena_strdup(&arena, ""), "");
    gp_arena_fini(&arena);
}

static void failing_allocation_keeps_the_rest(void **state)
{
    (void)state;
    struct gp_arena arena = {0};
    char *first = gp_arena_strdup(&arena, "first");
    alloc_fail_from(0);
    assert_null(gp_arena_alloc(&arena, 1, 64 * 1024));
    char *fits = gp_arena_strdup(&arena, "still fits the block");
    alloc_fail_from(-1);
    assert_string_equal(first, "first");
    assert_string_equal(fits, "still fits the block");
    gp_arena_fini(&arena);
    alloc_fail_from(0);
    assert_null(gp_arena_strdup(&arena, "x"));
    alloc_fail_from(-1);
    gp_arena_fini(&arena);
}

static void fill(struct gp_arena *arena)
{
    for (size_t i = 0; i < 100; i++) {
        unsigned char *piece = gp_arena_alloc(arena, 1 + i, 8);
        assert_non_null(piece);
        for (size_t k = 0; k < 8 * (1 + i); k++)
            assert_int_equal(piece[k], 0);
        memset(piece, 'x', 8 * (1 + i));
    }
    assert_non_null(gp_arena_alloc(arena, 3, 64 * 1024));
}

static void as_much_again_allocates_nothing(void **state)
{
    (void)state;
    struct gp_arena arena = {0};
    gp_arena_reset(&arena);
    assert_null(arena.blocks);
    fill(&arena);
    gp_arena_reset(&arena);
    alloc_fail_from(0);
    fill(&arena);
    gp_arena_reset(&arena);
    fill(&arena);
    alloc_fail_from(-1);
    gp_arena_fini(&arena);
}

static void without_memory_a_reset_arena_is_empty(void **state)
{
    (void)state;
    struct gp_arena arena = {0};
    fill(&arena);
    alloc_fail_from(0);
    gp_arena_reset(&arena);
    alloc_fail_from(-1);
    assert_null(arena.blocks);
    fill(&arena);
    gp_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_aligned_and_apart),
        cmocka_unit_test(takes_large_pieces),
        cmocka_unit_test(a_large_piece_leaves_the_room_for_small_ones),
        cmocka_unit_test(nothing_is_something),
        cmocka_unit_test(products_do_not_wrap),
        cmocka_unit_test(copies_text),
        cmocka_unit_test(failing_allocation_keeps_the_rest),
        cmocka_unit_test(as_much_again_allocates_nothing),
        cmocka_unit_test(without_memory_a_reset_arena_is_empty),
    };
    return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
