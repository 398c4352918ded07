/* The guide of gpulse demo: its line names each key in turn, until the last one. */
#include "unit.h"

#include "tui/guide.h"
#include "tui_machine.h"

static const struct {
    enum gp_action action;
    const char *to_do, *opened;
} steps[] = {
#define STEP(action, to_do, opened) {GP_ACTION_##action, to_do, opened},
#include "tui/guide.def"
#undef STEP
};

static void guided(struct gp_ui *ui)
{
    watch(ui, 2);
    ui->guide.is_on = true;
}

static void every_step_follows_its_key(void **state)
{
    (void)state;
    struct gp_ui ui;
    guided(&ui);
    for (size_t i = 0; i < GP_ARRAY_LEN(steps); i++) {
        check_has(&ui, steps[i].to_do);
        (void)gp_ui_key(&ui, gp_action_key(steps[i].action, false));
        if (ui.mode != GP_UI_WATCH) {
            assert_true(*steps[i].opened);
            check_has(&ui, steps[i].opened);
            (void)gp_ui_key(&ui, GP_KEY_ESCAPE);
        }
        assert_int_equal(ui.mode, GP_UI_WATCH);
    }
    check_has(&ui, "The end. q: quit.");
    press(&ui, "gm");
    check_has(&ui, "The end. q: quit.");
    assert_int_equal(gp_ui_key(&ui, 'q'), GP_UI_QUIT);
    assert_true(gp_ui_fini(&ui));
}

static void other_keys_do_not_move_on(void **state)
{
    (void)state;
    struct gp_ui ui;
    guided(&ui);
    press(&ui, "gtm");
    check_has(&ui, steps[0].to_do);
    press(&ui, "?!q"); /* on the page of keys it is not the key of the step */
    check_has(&ui, steps[0].to_do);
    assert_true(gp_ui_fini(&ui));
}

static void a_page_that_no_step_opened_names_only_its_way_back(void **state)
{
    (void)state;
    struct gp_ui ui;
    guided(&ui);
    (void)gp_ui_key(&ui, GP_KEY_ENTER); /* the first step is another one */
    assert_int_not_equal(ui.mode, GP_UI_WATCH);
    check_has(&ui, "Esc: back to the tour");
    assert_null(strstr(picture(&ui, 100, 30), "Press"));
    (void)gp_ui_key(&ui, GP_KEY_ESCAPE);
    check_has(&ui, steps[0].to_do);
    press(&ui, "/"); /* where letters are text */
    check_has(&ui, "Esc: back to the tour");
    (void)gp_ui_key(&ui, GP_KEY_ESCAPE);
    check_has(&ui, steps[0].to_do);
    ui.guide.step = GP_ARRAY_LEN(steps);
    press(&ui, "?");
    check_has(&ui, "Esc: back to the tour");
    assert_null(strstr(picture(&ui, 100, 30), "The end"));
    assert_true(gp_ui_fini(&ui));
}

static void every_sentence_fits_eighty_columns(void **state)
{
    (void)state;
    for (size_t i = 0; i < GP_ARRAY_LEN(steps); i++) {
        struct gp_guide guide = {.is_on = true, .step = i};
        for (int pressed = 0; pressed < 2; pressed++) {
            struct gp_cells cells = {0, 0, NULL};
            struct gp_strbuf sb = GP_STRBUF_INIT(4096);
            guide.is_pressed = pressed;
            assert_int_equal(gp_cells_resize(&cells, 80, 1), 0);
            const struct gp_box box = {&cells, 0, 0, 80, 1};
            gp_guide_draw(&guide, &box, 0);
            cells_text(&sb, &cells);
            assert_null(strstr(sb.buf, "…"));
            gp_strbuf_fini(&sb);
            gp_cells_fini(&cells);
        }
    }
}

static void nothing_changes_without_it(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 2);
    press(&ui, "gtm");
    assert_int_equal(ui.guide.step, 0);
    assert_null(strstr(picture(&ui, 100, 30), "Press"));
    ui.guide.is_on = true;
    assert_null(strstr(picture(&ui, 100, 3), "Press")); /* no room */
    assert_non_null(strstr(picture(&ui, 100, 4), "Press"));
    assert_true(gp_ui_fini(&ui));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_step_follows_its_key),
        cmocka_unit_test(other_keys_do_not_move_on),
        cmocka_unit_test(a_page_that_no_step_opened_names_only_its_way_back),
        cmocka_unit_test(every_sentence_fits_eighty_columns),
        cmocka_unit_test(nothing_changes_without_it),
    };
    return cmocka_run_group_tests_name("tui_guide", tests, NULL, NULL);
}
