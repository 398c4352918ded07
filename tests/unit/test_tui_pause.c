/* A paused screen does not look like a live one. */
#include "unit.h"

#include "tui_scene.h"

enum { W = 100, H = 30 };

/* The first line at a time of the day, and below it the inks. */
static const char *header_at(struct gp_ui *ui, const char *clock)
{
    static struct gp_strbuf sb = GP_STRBUF_INIT(1 << 16);
    struct gp_cells cells = {0, 0, NULL};
    assert_int_equal(gp_cells_resize(&cells, W, H), 0);
    gp_ui_draw(ui, &cells, clock);
    const struct gp_cells first = {W, 1, cells.cells};
    gp_strbuf_reset(&sb);
    add_cells(&sb, &first);
    gp_cells_fini(&cells);
    return sb.buf;
}

static void the_corner_says_so_and_its_time_stands_still(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 2);
    assert_non_null(strstr(header_at(&ui, "14:02"), "    1.0s 14:02\n"));
    press(&ui, "z");
    const char *header = header_at(&ui, "14:07");
    assert_non_null(strstr(header, " PAUSED 1.0s 14:02\n"));
    assert_non_null(strstr(header, " pppppp\n"));
    press(&ui, "z");
    header = header_at(&ui, "14:07");
    assert_null(strstr(header, "PAUSED"));
    assert_non_null(strstr(header, " 1.0s 14:07\n"));
    assert_true(gp_ui_fini(&ui));
}

static void the_first_key_resumes(void **state)
{
    (void)state;
    static const char *const live[] = {" ?:help", " ?:help Esc:all GPUs"};
    static const char *const paused[] = {" z:resume ?:help", " z:resume ?:help Esc:all GPUs"};
    struct gp_ui ui;
    watch(&ui, 2);
    for (int i = 0; i < 2; i++) { /* the processes, the GPUs */
        assert_ptr_equal(strstr(line_with(&ui, W, H, "q:quit"), live[i]),
                         line_with(&ui, W, H, "q:quit"));
        press(&ui, "z");
        assert_ptr_equal(strstr(line_with(&ui, W, H, "q:quit"), paused[i]),
                         line_with(&ui, W, H, "q:quit"));
        assert_null(strstr(line_with(&ui, 300, H, "q:quit"), "z:pause"));
        (void)line_with(&ui, 80, 24, "q:quit");
        press(&ui, "z\t");
    }
    assert_true(gp_ui_fini(&ui));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_corner_says_so_and_its_time_stands_still),
        cmocka_unit_test(the_first_key_resumes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
