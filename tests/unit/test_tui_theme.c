/* Themes: the colours of files. */
#include "unit.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "tui/theme_file.h"
#include "tui_machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void a_file_replaces_what_it_names(void **state)
{
    (void)state;
    struct gp_colors colors;
    struct gp_err err = {0};
    assert_int_equal(gp_theme_parse("# mine\n"
                                    "load = #5fd7af\n"
                                    "  memory=141\r\n"
                                    "\n"
                                    "; trouble\n"
                                    "trouble = bold underline red on 16\n"
                                    "selected = reverse default",
                                    "x", &colors, &err),
                     0);
    const struct gp_look *load = gp_colors_look(&colors, GP_INK_LOW, false);
    assert_int_equal(load->fg, GP_COLOR_RGB | 0x5fd7af);
    assert_int_equal(load->bg, -1);
    assert_int_equal(load->fg_of_8, 6);
    assert_int_equal(gp_colors_look(&colors, GP_INK_MEMORY, true)->fg, 141);
    const struct gp_look *trouble = gp_colors_look(&colors, GP_INK_HIGH, true);
    assert_int_equal(trouble->fg, 1);
    assert_int_equal(trouble->bg, 16);
    assert_int_equal(trouble->attrs, GP_ATTR_BOLD | GP_ATTR_UNDERLINE);
    assert_int_equal(trouble->no_color, GP_ATTR_BOLD); /* as without the file */
    assert_int_equal(gp_colors_look(&colors, GP_INK_SELECTED, false)->attrs, GP_ATTR_REVERSE);
    /* all others follow the background */
    for (int light = 0; light < 2; light++)
        assert_ptr_equal(gp_colors_look(&colors, GP_INK_KEY, light),
                         &gp_theme_looks(GP_THEME_DEFAULT, light)[GP_INK_KEY]);
}

static void each_look_has_a_word(void **state)
{
    (void)state;
    for (int i = 0; i < GP_INK__COUNT; i++) {
        char text[80];
        struct gp_colors colors;
        struct gp_err err = {0};
        (void)snprintf(text, sizeof(text), "%s = blue\n", gp_ink_words[i]);
        assert_int_equal(gp_theme_parse(text, "x", &colors, &err), 0);
        assert_int_equal(colors.replaced, UINT32_C(1) << i);
    }
}

/* The line, the reason, and what to write. */
static void errors_say_where_and_what_to_write(void **state)
{
    (void)state;
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"load\n", "f:1: 'load' has no '='; write NAME = COLOR, for example load = #5fd7af"},
        {"\n\nlode = red", "f:3: unknown name 'lode'; use one of: plain strong dim title load held "
                           "trouble critical stale selected tagged key memory paused"},
        {"load = #12345\n", "f:1: bad color '#12345' for load; write for example #5fd7af, 79, "
                            "green, bold red on black, or default"},
        {"load = 256\n", "f:1: bad color '256' for load"},
        {"load = #12345g\n", "f:1: bad color '#12345g'"},
        {"load = -1\n", "f:1: bad color '-1'"},
        {"load =\n", "f:1: bad color '' for load"},
        {"load = red blue\n", "f:1: bad color 'blue'"},
        {"load = red on blue green\n", "f:1: bad color 'green'"},
        {"load = \033]0;x\a\n", "f:1: bad color '?]0;x?'"},
        {"= red\n", "f:1: unknown name ''"},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        struct gp_colors colors = {.replaced = 77};
        struct gp_err err = {0};
        assert_int_equal(gp_theme_parse(cases[i].text, "f", &colors, &err), GP_EFORMAT);
        if (strncmp(err.text, cases[i].error, strlen(cases[i].error)) != 0)
            fail_msg("%s\n%s", cases[i].error, err.text);
        assert_int_equal(colors.replaced, 77);
    }
    char longest[400];
    struct gp_colors colors;
    struct gp_err err = {0};
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    assert_int_equal(gp_theme_parse(longest, "f", &colors, &err), GP_EFORMAT);
    assert_string_equal(err.text, "f:1: longer than 255 bytes; shorten the line");
}

static void colors_have_a_near_one_on_other_terminals(void **state)
{
    (void)state;
    static const struct {
        int color, of_256, of_8;
    } cases[] = {
        {-1, -1, -1},       {3, 3, 3},          {11, 11, 3},        {79, 79, 6},
        {16, 16, 0},        {231, 231, 7},      {203, 203, 1},      {0x000000, 16, 0},
        {0xffffff, 231, 7}, {0x5fd7af, 79, 6},  {0x949494, 246, 7}, {0x8080ff, 105, 7},
        {0x0000ff, 21, 4},  {0xff5f00, 202, 1}, {0x101010, 233, 0}, {0xfeff01, 226, 3},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        const int color = i < 7 ? cases[i].color : cases[i].color | GP_COLOR_RGB;
        if (gp_color_of_256(color) != cases[i].of_256 || gp_color_of_8(color) != cases[i].of_8)
            fail_msg("%x: %d, %d", (unsigned)cases[i].color, gp_color_of_256(color),
                     gp_color_of_8(color));
    }
}

/* ---- files ---- */

static char folder[] = "/tmp/gpulse-themes-XXXXXX";

static const char *path_of(const char *name)
{
    static char path[128];
    (void)snprintf(path, sizeof(path), "%s/%s.theme", folder, name);
    return path;
}

static void write_file(const char *name, const char *text, size_t n)
{
    FILE *file = fopen(path_of(name), "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

static void refuses(const char *name, int code, const char *part)
{
    struct gp_colors colors;
    struct gp_err err = {0};
    assert_int_equal(gp_theme_load(folder, name, &colors, &err), code);
    if (!strstr(err.text, part))
        fail_msg("%s: %s", name, err.text);
    assert_int_equal(colors.theme, GP_THEME_DEFAULT);
    assert_int_equal(colors.replaced, 0);
}

static void drop(const char *name)
{
    assert_int_equal(unlink(path_of(name)), 0);
}

static void only_plain_files_of_this_user_are_read(void **state)
{
    (void)state;
    static const char huge[GP_THEME_FILE_MAX + 1] = "load = red\n";
    struct gp_colors colors;
    struct gp_err err = {0};
    write_file("night", "load = red\n", 11);
    assert_int_equal(gp_theme_load(folder, "night", &colors, &err), 0);
    assert_int_equal(colors.replaced, 1U << GP_INK_LOW);
    assert_int_equal(gp_theme_load(NULL, "mono", &colors, &err), 0);
    assert_int_equal(colors.theme, GP_THEME_MONO);
    refuses("nightly", GP_EUSAGE,
            "no theme 'nightly'; use one of: default dark light terminal "
            "safe contrast mono, or write /tmp/");
    refuses("../night", GP_EUSAGE, "no theme '../night'");
    assert_int_equal(chmod(path_of("night"), 0646), 0);
    refuses("night", GP_EPERM, "others can write to it; run chmod o-w on it");
    assert_int_equal(chmod(path_of("night"), 0644), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(path_of("night"), 12345, 0), 0);
        refuses("night", GP_EPERM, "belongs to another user; copy it, so that it is yours");
        assert_int_equal(chown(path_of("night"), 0, 0), 0);
        assert_int_equal(symlink("night.theme", path_of("link")), 0);
        assert_int_equal(lchown(path_of("link"), 12345, 0), 0);
        refuses("link", GP_EPERM, "belongs to another user");
        drop("link");
    }
    assert_int_equal(chmod(folder, 0757), 0);
    refuses("night", GP_EPERM, "others can write to it");
    assert_int_equal(chmod(folder, 0700), 0);
    assert_int_equal(symlink("night.theme", path_of("link")), 0);
    assert_int_equal(gp_theme_load(folder, "link", &colors, &err), 0);
    drop("link");
    assert_int_equal(symlink("/dev/zero", path_of("link")), 0);
    refuses("link", GP_EPERM, "is not a regular file; remove it");
    drop("link");
    assert_int_equal(mkfifo(path_of("pipe"), 0600), 0);
    refuses("pipe", GP_EPERM, "is not a regular file; remove it");
    drop("pipe");
    assert_int_equal(mkdir(path_of("dir"), 0700), 0);
    refuses("dir", GP_EPERM, "is not a regular file");
    assert_int_equal(rmdir(path_of("dir")), 0);
    write_file("huge", huge, sizeof(huge));
    refuses("huge", GP_EPERM, "is larger than 16 KiB; shorten it");
    drop("huge");
    write_file("data", huge, GP_THEME_FILE_MAX);
    refuses("data", GP_EPERM, "is not a text");
    drop("data");
    drop("night");
}

static bool has(struct gp_ui *ui, int w, int h, const char *text)
{
    const char *shown = picture(ui, w, h);
    return strstr(shown, text) != NULL;
}

static void setup_lists_them_and_says_what_is_wrong(void **state)
{
    (void)state;
    struct gp_ui ui;
    write_file("a-night", "load = red\n", 11);
    write_file("b-bad", "load = pink\n", 12);
    write_file("c;x", "load = red\n", 11);  /* no name of a theme */
    write_file("mono", "load = red\n", 11); /* the built-in one wins */
    watch(&ui, 2);
    ui.outside.themes = folder;
    press(&ui, "C");
    ui.menu.chosen = GP_PREF_THEME;
    assert_true(has(&ui, 120, 40,
                    "[default] dark  light  terminal  safe  contrast  mono  a-night  b-bad "));
    (void)gp_ui_key(&ui, GP_KEY_LEFT);
    assert_string_equal(ui.prefs.theme, "b-bad");
    assert_int_equal(ui.theme.colors.replaced, 0);
    assert_string_equal(ui.message, "b-bad.theme:1: bad color 'pink' for load; write for example "
                                    "#5fd7af, 79, green, bold red on black, or default");
    assert_true(has(&ui, 120, 40, "b-bad.theme:1: bad color 'pink' for load; write for example"));
    assert_true(has(&ui, 80, 24, "[b-bad]")); /* the first ones have no room */
    (void)gp_ui_key(&ui, GP_KEY_LEFT);
    assert_string_equal(ui.prefs.theme, "a-night");
    assert_int_equal(ui.theme.colors.looks[GP_INK_LOW].fg, 1);
    assert_false(has(&ui, 120, 40, "pink"));
    (void)gp_ui_key(&ui, GP_KEY_LEFT);
    assert_int_equal(ui.theme.colors.theme, GP_THEME_MONO);
    assert_int_equal(ui.theme.colors.replaced, 0);
    assert_true(gp_ui_fini(&ui));
    drop("a-night");
    drop("b-bad");
    drop("c;x");
    drop("mono");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_replaces_what_it_names),
        cmocka_unit_test(each_look_has_a_word),
        cmocka_unit_test(errors_say_where_and_what_to_write),
        cmocka_unit_test(colors_have_a_near_one_on_other_terminals),
        cmocka_unit_test(only_plain_files_of_this_user_are_read),
        cmocka_unit_test(setup_lists_them_and_says_what_is_wrong),
    };
    if (!mkdtemp(folder))
        return 1;
    int r = cmocka_run_group_tests_name("tui_theme", tests, NULL, NULL);
    (void)rmdir(folder);
    return r;
}
