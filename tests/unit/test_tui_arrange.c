/* What is on the main screen: presets, and keys that show and hide each region. */
#include "unit.h"

#include "base/err.h"
#include "tui/presets.h"
#include "tui_scene.h"

#include <stdlib.h>
#include <string.h>

static void words_of_a_preset_follow_others(void **state)
{
    (void)state;
    static const struct {
        struct gp_preset preset;
        const char *words;
    } cases[] = {
        {{.graphs = true}, "preset: graphs"},
        {{.processes = true}, "preset: processes"},
        {{.first = true, .processes = true, .graphs = true}, "preset: processes, graphs"},
        {{.gpus = true, .host = GP_HOST_YES}, "preset: GPUs, machine"},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_strbuf sb = GP_STRBUF_INIT(256);
        struct gp_preset preset = cases[i].preset;
        preset.view = GP_DENSITY_AUTO;
        gp_strbuf_adds(&sb, "preset: ");
        gp_preset_add_words(&sb, &preset);
        assert_string_equal(sb.buf, cases[i].words);
        gp_strbuf_fini(&sb);
    }
}

static void presets_are_lists_of_regions(void **state)
{
    (void)state;
    static const char text[] = " gpus:line:load,processes  processes,gpus,graphs,host:auto "
                               "host,processes gpus:grid";
    static const struct gp_preset wanted[] = {
        {true, false, true, GP_HOST_NO, 0, GP_DENSITY_LINE, GP_ORDER_LOAD},
        {true, true, true, GP_HOST_AUTO, 1, GP_DENSITY_AUTO, GP_ORDER_AUTO},
        {false, false, true, GP_HOST_YES, 0, GP_DENSITY_AUTO, GP_ORDER_AUTO},
        {true, false, false, GP_HOST_NO, 0, GP_DENSITY_GRID, GP_ORDER_AUTO},
    };
    struct gp_err err = {0};
    struct gp_preset preset;
    assert_int_equal(gp_presets_check(text, &err), 0);
    for (int i = 0; i < (int)GP_ARRAY_LEN(wanted); i++) {
        assert_true(gp_preset_get(text, i, &preset));
        assert_int_equal(gp_preset_find(text, &wanted[i]), i);
        assert_int_equal(gp_preset_find(text, &preset), i);
    }
    assert_false(gp_preset_get(text, GP_ARRAY_LEN(wanted), &preset));
    preset = wanted[0];
    preset.graphs = true;
    assert_int_equal(gp_preset_find(text, &preset), -1);
    assert_int_equal(gp_presets_check("", &err), 0);
    assert_int_equal(gp_presets_check(GP_PRESETS_USUAL, &err), 0);
    assert_true(strlen(GP_PRESETS_USUAL) < GP_PREF_TEXT_SIZE);
}

static void a_bad_preset_says_which_and_what_is_right(void **state)
{
    (void)state;
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"gpus gpu", "bad preset 2, 'gpu': expected a list of gpus graphs processes host, "
                     "separated by commas"},
        {"gpus:cards", "bad preset 1, 'gpus:cards': expected one of card bar line grid auto after "
                       "'gpus:'"},
        {"gpus:", "bad preset 1, 'gpus:': expected one of card bar"},
        {"gpus:line:name",
         "bad preset 1, 'gpus:line:name': expected one of auto index load idle free "
         "temperature trouble after the view"},
        {"gpus:line:load:x", "bad preset 1, 'gpus:line:load:x': expected no further ':'"},
        {"processes:x", "bad preset 1, 'processes:x': expected no further ':'"},
        {"host:maybe,gpus", "bad preset 1, 'host:maybe,gpus': expected one of auto yes no after "
                            "'host:'"},
        {"graphs,host", "bad preset 1, 'graphs,host': expected gpus, processes or both in it"},
        {"gpus,,host", "bad preset 1, 'gpus,,host': expected a list of"},
        {"gpus gpus gpus gpus gpus gpus gpus gpus gpus gpus",
         "bad preset 10, 'gpus': expected at most 9 presets"},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_err err = {0};
        assert_int_equal(gp_presets_check(cases[i].text, &err), GP_EUSAGE);
        if (strncmp(err.text, cases[i].error, strlen(cases[i].error)) != 0)
            fail_msg("%s\n%s", cases[i].error, err.text);
    }
}

static void p_takes_the_next_one_and_a_number_that_one(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 4);
    press(&ui, "p");
    assert_string_equal(ui.message, "preset 2 of 5: GPUs as lines, processes");
    assert_int_equal(ui.prefs.view, GP_DENSITY_LINE);
    assert_false(ui.prefs.graphs);
    press(&ui, "4");
    assert_int_equal(ui.preset, 3);
    assert_int_equal(ui.gpu, -1); /* no GPU was meant */
    assert_true(ui.prefs.first && ui.prefs.processes && ui.prefs.gpus);
    press(&ui, "3"); /* the key before was no p */
    assert_int_equal(ui.gpu, 3);
    assert_int_equal(ui.preset, 3);
    press(&ui, "33p"); /* 33: there is none */
    assert_int_equal(ui.preset, 4);
    press(&ui, "p");
    assert_int_equal(ui.preset, 0);
    assert_true(ui.prefs.graphs && !ui.prefs.first);
    press(&ui, "p9");
    assert_string_equal(ui.message, "there is no preset 9; there are 5");
    press(&ui, "p3");
    assert_true(ui.gpus_have_focus && !ui.prefs.processes && ui.prefs.host == GP_HOST_YES);
    ui.prefs.host = GP_HOST_NO; /* it is like none of them now */
    press(&ui, "p");
    assert_int_equal(ui.preset, 3);
    ui.prefs.presets[0] = '\0';
    press(&ui, "p");
    assert_string_equal(ui.message, "there are no presets; C sets them");
    assert_true(gp_ui_fini(&ui));
}

/* Of a text that is longer than the screen, the end is visible, where it is changed. */
static void a_long_text_is_edited_at_its_end(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 2);
    press(&ui, "C");
    ui.menu.chosen = GP_PREF_PRESETS;
    press(&ui, "\n");
    check_has(&ui, "graphs,processes");
    const char *text = picture(&ui, 60, 20);
    assert_non_null(strstr(text, "presets:…"));
    assert_non_null(strstr(text, "gpus:grid:trouble,graphs,processes\n"));
    press(&ui, ",");
    assert_non_null(strstr(picture(&ui, 60, 20), ":grid:trouble,graphs,processes,\n"));
    press(&ui, "x\n");
    assert_string_equal(ui.prefs.presets, GP_PRESETS_USUAL); /* no such region */
    assert_non_null(strstr(ui.message, "bad preset 5, "));
    for (int w = 1; w < 40; w++)
        (void)picture(&ui, w, 10);
    assert_true(gp_ui_fini(&ui));
}

static bool shows(struct gp_ui *ui, const char *words)
{
    return strstr(picture(ui, 100, 30), words) != NULL;
}

static void each_region_has_a_key(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 2);
    assert_true(shows(&ui, "100%│") && shows(&ui, "H100") && shows(&ui, "COMMAND"));
    press(&ui, "R");
    assert_true(!shows(&ui, "100%│") && shows(&ui, "H100") && shows(&ui, "COMMAND"));
    press(&ui, "RD");
    assert_true(!shows(&ui, "100%│") && !shows(&ui, "UTIL") && shows(&ui, "COMMAND"));
    press(&ui, "L");
    assert_string_equal(ui.message, "one of GPUs (D) and processes (L) stays");
    assert_true(shows(&ui, "UTIL") && !shows(&ui, "COMMAND") && ui.gpus_have_focus);
    press(&ui, "LD");
    assert_true(!shows(&ui, "UTIL") && shows(&ui, "COMMAND") && !ui.gpus_have_focus);
    press(&ui, "D");
    assert_true(shows(&ui, "UTIL") && shows(&ui, "COMMAND"));
    assert_true(gp_ui_fini(&ui));
}

/* Without graphs, no view has one. */
static void without_graphs_there_are_only_present_values(void **state)
{
    (void)state;
    static const struct {
        int w, h;
    } sizes[] = {{80, 24}, {120, 40}, {200, 60}};
    struct gp_ui ui;
    watch(&ui, 4);
    ui.prefs.graphs = false;
    ui.prefs.host = GP_HOST_NO;
    for (int view = 0; view <= GP_DENSITY_AUTO; view++)
        for (size_t i = 0; i < GP_ARRAY_LEN(sizes); i++) {
            ui.prefs.view = view;
            const char *text = picture(&ui, sizes[i].w, sizes[i].h);
            if (strstr(text, "▁▁") || strstr(text, "▄▄") || strstr(text, "⣿") || strstr(text, "⣀"))
                fail_msg("view %d: %s", view, text);
        }
    assert_true(gp_ui_fini(&ui));
}

/* The areas are the same ones, in another order. */
static void the_processes_may_be_above(void **state)
{
    (void)state;
    for (int w = 1; w < 220; w += 9)
        for (int h = 1; h < 80; h += 3) {
            struct gp_layout_options o = {.w = w, .h = h, .gpus = 5, .density = GP_DENSITY_AUTO};
            const struct gp_layout usual = gp_layout_of(&o);
            o.processes_first = true;
            const struct gp_layout l = gp_layout_of(&o);
            assert_int_equal(l.gpus.h, usual.gpus.h);
            assert_int_equal(l.processes.h, usual.processes.h);
            assert_int_equal(l.processes.y, usual.gpus.y);
            assert_int_equal(l.gpus.y, l.processes.y + l.processes.h);
        }
}

static void presets_look_like_that(void **state)
{
    (void)state;
    struct gp_strbuf all = GP_STRBUF_INIT(1 << 20);
    struct gp_ui ui;
    watch(&ui, 4);
    static const char *const keys[] = {"p1", "p2", "p3", "p4", "p5"};
    for (size_t i = 0; i < GP_ARRAY_LEN(keys); i++) {
        press(&ui, keys[i]);
        add_scene(&all, &ui, 80, 24, keys[i]);
        add_scene(&all, &ui, 130, 34, keys[i]);
    }
    golden_check("top-presets.txt", all.buf, all.len);
    gp_strbuf_fini(&all);
    assert_true(gp_ui_fini(&ui));
}

static bool ends_with(const char *text, const char *end)
{
    return strlen(text) >= strlen(end) && strcmp(text + strlen(text) - strlen(end), end) == 0;
}

/* One around the GPUs and the processes, whatever is shown and in which order. */
static void a_frame_where_it_has_room(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 1);
    const char *line = line_with(&ui, 119, 30, "processes 2");
    assert_ptr_equal(strstr(line, "─ ▸ "), line);
    line = line_with(&ui, 120, 30, "processes 2");
    assert_ptr_equal(strstr(line, "├─ ▸ processes 2 · sort GPU-MEM▼ ─"), line);
    assert_true(ends_with(line, "─┤"));
    line = line_with(&ui, 120, 30, "0 H100");
    assert_ptr_equal(strstr(line, "┌─ 0 H100"), line);
    assert_true(ends_with(line, "─┐"));
    static const char *const inside[] = {"UTIL", "PCIe", "100%", "vllm serve"};
    for (size_t i = 0; i < GP_ARRAY_LEN(inside); i++) {
        line = line_with(&ui, 120, 30, inside[i]);
        assert_ptr_equal(strstr(line, "│"), line);
        assert_true(ends_with(line, " │"));
    }
    size_t page = ui.page;
    (void)picture(&ui, 119, 30);
    assert_int_equal(ui.page, page + 1);
    const char *bottom = strstr(picture(&ui, 120, 30), "└──────────");
    assert_non_null(bottom);
    assert_non_null(strstr(bottom, "?:help"));
    assert_null(strstr(picture(&ui, 120, 11), "┌"));
    press(&ui, "L");
    assert_non_null(strstr(picture(&ui, 120, 30), "└──────────"));
    ui.prefs.gpus = false; /* nothing is left to be framed */
    assert_null(strstr(picture(&ui, 120, 30), "└──────────"));
    assert_true(gp_ui_fini(&ui));
}

static void walls_between_cards(void **state)
{
    (void)state;
    struct gp_ui ui;
    watch(&ui, 5);
    const char *line = line_with(&ui, 200, 60, "1 H100");
    assert_non_null(strstr(line, "─┬─ 1 H100"));
    assert_non_null(strstr(line_with(&ui, 200, 60, "3 H100"), "─┼─ 3 H100"));
    line = line_with(&ui, 200, 60, "4 H100"); /* beside nothing */
    assert_non_null(strstr(line, "─┤ "));
    assert_true(ends_with(line, " │"));
    line = line_with(&ui, 200, 60, "processes");
    assert_non_null(strstr(line, "─┴─"));
    ui.prefs.first = 1;
    line = line_with(&ui, 200, 60, "processes");
    assert_ptr_equal(strstr(line, "┌─ ▸ "), line);
    assert_non_null(strstr(line_with(&ui, 200, 60, "1 H100"), "─┬─ 1 H100"));
    assert_true(gp_ui_fini(&ui));
    watch(&ui, 64); /* lines have no titles of their own */
    line = line_with(&ui, 200, 60, "GPUs 64");
    assert_ptr_equal(strstr(line, "┌─ GPUs 64 ──"), line);
    assert_true(gp_ui_fini(&ui));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_of_a_preset_follow_others),
        cmocka_unit_test(presets_are_lists_of_regions),
        cmocka_unit_test(a_bad_preset_says_which_and_what_is_right),
        cmocka_unit_test(p_takes_the_next_one_and_a_number_that_one),
        cmocka_unit_test(a_long_text_is_edited_at_its_end),
        cmocka_unit_test(each_region_has_a_key),
        cmocka_unit_test(without_graphs_there_are_only_present_values),
        cmocka_unit_test(the_processes_may_be_above),
        cmocka_unit_test(presets_look_like_that),
        cmocka_unit_test(a_frame_where_it_has_room),
        cmocka_unit_test(walls_between_cards),
    };
    return cmocka_run_group_tests_name("tui_arrange", tests, NULL, NULL);
}
