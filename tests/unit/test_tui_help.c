/* Help: the first page, the list, and the window that explains what is in front. Setup and lists.
 */
#include "unit.h"

#include "tui_machine.h"

#include <string.h>

static void has(struct gp_ui *ui, int w, int h, const char *words)
{
    const char *text = picture(ui, w, h);
    if (!strstr(text, words))
        fail_msg("'%s' is not in\n%s", words, text);
}

/* Twenty keys, the colours, the letters, and nothing is cut. */
static void the_first_page_fits_the_smallest_usual_screen(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 2);
    press(&ui, "?");
    static const char *const words[] = {
        "q  ",
        "Enter  ",
        "f u  ",
        "o          order of the GPUs",
        "k          end it; asks first",
        "C  ",
        "P M T",
        "load",
        "memory     in use",
        "trouble",
        "!          no answer",
        "R  ",
        "T H        slowed by heat, hardware",
        "P S  ",
        "Shift+drag",
        "PgDn all keys and columns",
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(words); i++)
        has(&ui, 80, 24, words[i]);
    for (const char *cut = picture(&ui, 80, 24); (cut = strstr(cut, "…")); cut++)
        assert_int_equal(strncmp(cut - 4, "PgUp…", strlen("PgUp…")), 0); /* ours */
    assert_true(gp_ui_fini(&ui));
}

/* A higher screen has more on the first page, a very high one everything. */
static void the_first_page_uses_the_height(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 2);
    press(&ui, "?");
    assert_null(strstr(picture(&ui, 120, 28), "more keys"));
    has(&ui, 120, 29, "more keys");
    has(&ui, 120, 40, "show the environment of the process");
    has(&ui, 120, 40, "Ctrl-Z     suspend"); /* the last one */
    has(&ui, 120, 40, "D          show or hide the GPUs");
    assert_null(strstr(picture(&ui, 120, 40), "columns of processes"));
    size_t told = 0;
    for (int a = 1; a < GP_ACTION__COUNT; a++)
        told += strstr(picture(&ui, 120, 40), gp_action_help((enum gp_action)a)) != NULL;
    assert_true(told >= 28); /* the rest have a row above, in fewer words */
    for (const char *cut = picture(&ui, 120, 40); (cut = strstr(cut, "…")); cut++)
        assert_int_equal(strncmp(cut - 4, "PgUp…", strlen("PgUp…")), 0); /* ours */
    for (int c = 0; c < GP_PROC_COLUMN__COUNT; c++)
        has(&ui, 200, 60, gp_proc_column_table[c].help);
    has(&ui, 120, 40, "PgDn all keys and columns");
    assert_null(strstr(picture(&ui, 200, 60), "PgDn all")); /* they are all here */
    (void)gp_ui_key(&ui, GP_KEY_PAGE_DOWN);
    has(&ui, 200, 60, "1–");
    assert_true(gp_ui_fini(&ui));
}

static void pages_follow_each_other(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 2);
    press(&ui, "?");
    has(&ui, 80, 24, "letters next to a GPU");
    (void)gp_ui_key(&ui, GP_KEY_PAGE_DOWN);
    has(&ui, 80, 24, "explain it");
    has(&ui, 80, 24, "1–21 of ");
    (void)gp_ui_key(&ui, GP_KEY_PAGE_DOWN);
    has(&ui, 80, 24, "21–41 of ");
    (void)gp_ui_key(&ui, GP_KEY_PAGE_UP);
    has(&ui, 80, 24, "1–21 of ");
    (void)gp_ui_key(&ui, GP_KEY_PAGE_UP);
    has(&ui, 80, 24, "letters next to a GPU");
    press(&ui, "/sampl\n"); /* into the list */
    has(&ui, 80, 24, "sample more often");
    press(&ui, "q");
    assert_int_equal(ui.mode, GP_UI_WATCH);
    press(&ui, "?"); /* it begins anew */
    has(&ui, 80, 24, "letters next to a GPU");
    press(&ui, "?"); /* closes it, too */
    assert_int_equal(ui.mode, GP_UI_WATCH);
    press(&ui, "?");
    has(&ui, 79, 24, "explain it"); /* too narrow, too low */
    has(&ui, 80, 23, "explain it");
    press(&ui, "q");
    assert_true(gp_ui_fini(&ui));
}

static void vi_has_its_own_letters(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 1);
    ui.prefs.keys = GP_KEYS_VI;
    press(&ui, "?");
    has(&ui, 80, 24, "K          end it; asks first");
    press(&ui, "j");
    has(&ui, 80, 24, "explain it");
    press(&ui, "k");
    has(&ui, 80, 24, "letters next to a GPU");
    assert_true(gp_ui_fini(&ui));
}

static void menus_and_pages_explain_themselves(void **state)
{
    (void)state;
    static const struct {
        const char *keys, *words;
        enum gp_ui_mode mode;
    } cases[] = {
        {"s", "sort by this column; the columns", GP_UI_SORT},
        {"u", "show only this user's processes", GP_UI_USERS},
        {"C", "previous, next value", GP_UI_SETUP},
        {"!", "The worst come first", GP_UI_ALERTS},
        {"i", "scroll long lines", GP_UI_COST},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_ui ui;
        watch(&ui, 2);
        press(&ui, cases[i].keys);
        assert_int_equal(ui.mode, cases[i].mode);
        const size_t chosen = ui.menu.chosen;
        press(&ui, "?");
        has(&ui, 80, 24, "help · any key: back");
        has(&ui, 80, 24, cases[i].words);
        (void)picture(&ui, 20, 5);
        (void)gp_ui_key(&ui, GP_KEY_DOWN); /* for the window */
        assert_int_equal(ui.menu.chosen, chosen);
        assert_null(strstr(picture(&ui, 80, 24), "any key: back"));
        assert_int_equal(ui.mode, cases[i].mode);
        press(&ui, "?q"); /* only the window */
        assert_int_equal(ui.mode, cases[i].mode);
        press(&ui, "q");
        assert_int_equal(ui.mode, GP_UI_WATCH);
        assert_true(gp_ui_fini(&ui));
    }
}

static void a_question_mark_that_is_typed_is_text(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 1);
    press(&ui, "f?");
    assert_string_equal(ui.prefs.filter, "?");
    assert_false(ui.help.explains);
    press(&ui, "\n");
    press(&ui, "i/?");
    assert_string_equal(ui.text.word, "?");
    assert_false(ui.help.explains);
    assert_true(gp_ui_fini(&ui));
}

/* ---- setup ---- */

/* The values that there are, with the present one in brackets; a mark at what was changed; and all
 * of what it does, at the smallest usual size. */
static void setup_shows_what_it_changes(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 2);
    press(&ui, "C");
    has(&ui, 80, 24, "  interval    1s");
    has(&ui, 80, 24, "  view        card  bar  line  grid [auto]");
    (void)gp_ui_key(&ui, GP_KEY_DOWN);
    (void)gp_ui_key(&ui, GP_KEY_LEFT);
    has(&ui, 80, 24, "* view        card  bar  line [grid] auto");
    (void)gp_ui_key(&ui, GP_KEY_RIGHT);
    has(&ui, 80, 24, "  view        card  bar  line  grid [auto]");
    for (int p = 0; p < GP_PREF__COUNT; p++) {
        ui.menu.chosen = (size_t)p;
        const char *last = strrchr(gp_pref_table[p].help, ' ');
        has(&ui, 80, 24, last + 1);
        has(&ui, 80, 24, gp_pref_table[p].name);
    }
    ui.menu.chosen = GP_PREF_THEME;
    has(&ui, 80, 24, "load  ██ memory  ██ held  ██ trouble   lost   old  tagged");
    for (int w = 1; w < 100; w += 7)
        for (int h = 1; h < 50; h += 3)
            (void)picture(&ui, w, h);
    assert_true(gp_ui_fini(&ui));
}

/* Arrows say that a list goes on, and nothing stands below them. */
static void lists_say_that_there_is_more(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 2);
    press(&ui, "C");
    const char *line = line_with(&ui, 80, 24, "  interval  ");
    assert_null(strstr(line, "↑"));
    assert_non_null(strstr(picture(&ui, 80, 24), " ↓ │"));
    (void)gp_ui_key(&ui, GP_KEY_END);
    assert_null(strstr(picture(&ui, 80, 24), "↓ │"));
    assert_non_null(strstr(picture(&ui, 80, 24), " ↑ │"));
    press(&ui, "q");
    (void)picture(&ui, 80, 60);
    press(&ui, "s");
    assert_null(strstr(picture(&ui, 80, 60), "↓ │")); /* all of it is there */
    assert_true(gp_ui_fini(&ui));
}

/* What a column means is not cut. */
static void lists_say_all_of_it(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 2);
    press(&ui, "s");
    for (int c = 0; c < GP_PROC_COLUMN__COUNT; c++) {
        ui.menu.chosen = (size_t)c;
        has(&ui, 80, 24, gp_proc_column_table[c].help);
    }
    assert_true(gp_ui_fini(&ui));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_page_fits_the_smallest_usual_screen),
        cmocka_unit_test(the_first_page_uses_the_height),
        cmocka_unit_test(pages_follow_each_other),
        cmocka_unit_test(vi_has_its_own_letters),
        cmocka_unit_test(menus_and_pages_explain_themselves),
        cmocka_unit_test(a_question_mark_that_is_typed_is_text),
        cmocka_unit_test(setup_shows_what_it_changes),
        cmocka_unit_test(lists_say_that_there_is_more),
        cmocka_unit_test(lists_say_all_of_it),
    };
    return cmocka_run_group_tests_name("tui_help", tests, NULL, NULL);
}
