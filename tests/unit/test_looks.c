/* The colors that a terminal shows: what it is sent for each ink of each theme, after each other
 * one, is read as a terminal reads it. */
#include "unit.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "tui/looks.h"

/* ---- terminals ---- */

static void add_attr(struct gp_strbuf *sb, enum gp_attr attr)
{
    gp_strbuf_addf(sb, "\033[%dm", attr == GP_ATTR_BOLD ? 1 : attr == GP_ATTR_UNDERLINE ? 4 : 7);
}

/* As xterm-256color has it. */
static void add_color(struct gp_strbuf *sb, bool is_behind, int color)
{
    const int more = is_behind ? 10 : 0;
    if (color < 16)
        gp_strbuf_addf(sb, "\033[%dm", more + (color < 8 ? 30 + color : 90 + color - 8));
    else
        gp_strbuf_addf(sb, "\033[%d;5;%dm", more + 38, color);
}

static const struct gp_look_codes terminals[] = {
    {0, false, add_attr, add_color},   {8, false, add_attr, add_color},
    {8, true, add_attr, add_color},    {16, false, add_attr, add_color},
    {256, false, add_attr, add_color}, {256, true, add_attr, add_color},
};

struct shown {
    unsigned attrs;
    int fg, bg;
};

static int read_color(const int *n)
{
    return n[0] == 5 ? n[1] : GP_COLOR_RGB | n[1] << 16 | n[2] << 8 | n[3];
}

/* Takes "1;38;5;79m", after the "ESC [". */
static const char *take_look(const char *text, struct shown *now)
{
    int n[8] = {0};
    int count = 0;
    for (char *end; *text != 'm'; text = *end == ';' ? end + 1 : end)
        n[count++] = (int)strtol(text, &end, 10);
    const int digit = n[0] % 10;
    int *color = n[0] / 10 % 10 == 4 || n[0] >= 100 ? &now->bg : &now->fg;
    if (n[0] == 0)
        *now = (struct shown){0, -1, -1};
    else if (n[0] < 10)
        now->attrs |= 1U << n[0];
    else
        *color = digit == 8 ? read_color(n + 1) : n[0] >= 90 ? digit + 8 : digit;
    return text + 1;
}

/* The look of the last "x". */
static struct shown look_of_x(const char *text)
{
    static const struct shown none = {0, -1, -1};
    struct shown now = none;
    struct shown last = none;
    while (*text) {
        const bool is_code = strncmp(text, "\033[", 2) == 0;
        const size_t n = is_code ? strspn(text + 2, "0123456789;") : 0;
        if (is_code && text[2 + n] == 'm') {
            text = take_look(text + 2, &now);
            continue;
        }
        last = *text == 'x' ? now : last;
        text += is_code ? n + 3 : 1;
    }
    assert_memory_equal(&now, &none, sizeof(now)); /* it is reset at the end */
    return last;
}

static struct shown look_after(const struct gp_palette *palette, enum gp_ink before,
                               enum gp_ink ink)
{
    struct gp_cell blank[2] = {{' ', GP_INK_PLAIN}, {' ', GP_INK_PLAIN}};
    struct gp_cell cells[2] = {{'b', before}, {'x', ink}};
    struct gp_cells shown = {2, 1, blank};
    const struct gp_cells frame = {2, 1, cells};
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 12);
    assert_int_equal(gp_paint(&sb, palette, &shown, &frame), 2);
    const struct shown ret = look_of_x(sb.buf);
    gp_strbuf_fini(&sb);
    return ret;
}

/* ---- themes ---- */

enum { THEMES = GP_THEME__COUNT + 1 };

/* The built-in ones, and one of a file. */
static struct gp_colors theme_of(int t)
{
    struct gp_colors colors = {.theme = (enum gp_theme)t};
    struct gp_err err;
    if (t == GP_THEME__COUNT)
        assert_int_equal(gp_theme_parse("load = #a0b0c0\nmemory = bold #405060 on #0a0b0c\n"
                                        "trouble = 12\nheld = 201\ndim = on blue\n",
                                        "x", &colors, &err),
                         0);
    return colors;
}

static void an_ink_looks_the_same_after_any_other_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < GP_ARRAY_LEN(terminals); i++)
        for (int t = 0; t < 2 * THEMES; t++) {
            struct gp_palette palette = {.reset = "\033[m"};
            const struct gp_colors colors = theme_of(t / 2);
            gp_looks_set(palette.inks, &colors, t % 2, &terminals[i]);
            for (int pair = 0; pair < GP_INK__COUNT * GP_INK__COUNT; pair++) {
                const enum gp_ink before = (enum gp_ink)(pair / GP_INK__COUNT);
                const enum gp_ink ink = (enum gp_ink)(pair % GP_INK__COUNT);
                char alone[GP_LOOK_SIZE + 8];
                (void)snprintf(alone, sizeof(alone), "%sx\033[m", palette.inks[ink].start);
                const struct shown a = look_of_x(alone);
                const struct shown b = look_after(&palette, before, ink);
                if (memcmp(&a, &b, sizeof(a)) != 0)
                    fail_msg("terminal %zu, theme %d, ink %d after %d", i, t, ink, before);
            }
        }
}

/* Of the first 16 colors, which differ between terminals, these are too light for white. */
static void nothing_is_too_light_on_a_light_background(void **state)
{
    (void)state;
    static const enum gp_theme themes[] = {GP_THEME_DEFAULT, GP_THEME_LIGHT, GP_THEME_TERMINAL,
                                           GP_THEME_SAFE};
    static const int light[] = {2, 3, 6, 7}; /* green, yellow, cyan, white */
    for (size_t t = 0; t < GP_ARRAY_LEN(themes); t++)
        for (size_t i = 0; i < GP_ARRAY_LEN(terminals); i++) {
            struct gp_ink_look inks[GP_INK__COUNT];
            gp_looks_set(inks, &(struct gp_colors){.theme = themes[t]}, true, &terminals[i]);
            for (int ink = 0; ink < GP_INK__COUNT; ink++)
                for (size_t l = 0; l < GP_ARRAY_LEN(light); l++) {
                    char code[8];
                    (void)snprintf(code, sizeof(code), "[3%dm", light[l]);
                    assert_null(strstr(inks[ink].start, code));
                }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_ink_looks_the_same_after_any_other_one),
        cmocka_unit_test(nothing_is_too_light_on_a_light_background),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
