/* The setup screen: all preferences with their values. Changes show at once on the screen above
 * it. */
#include "tui/screen.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "tui/watch_gpus.h"

#include <stdio.h>
#include <string.h>

static void fill_setup(struct gp_ui *ui)
{
    struct gp_strbuf words = GP_STRBUF_ON(ui->theme.words, sizeof(ui->theme.words) - 1);
    if (ui->menu.count == GP_PREF__COUNT)
        return;
    gp_menu_open(&ui->menu, GP_PREF__COUNT);
    gp_strbuf_adds(&words, GP_THEME_WORDS);
    if (ui->outside.themes)
        gp_themes_add_names(&words, ui->outside.themes);
    gp_strbuf_fini(&words);
}

static void leave_setup(struct gp_ui *ui)
{
    gp_menu_open(&ui->menu, 0);
}

/* Invalid text is replaced by the previous value. */
static void on_text(struct gp_ui *ui, enum gp_edit_step step)
{
    enum gp_pref pref = (enum gp_pref)ui->menu.chosen;
    struct gp_err err = {0};
    struct gp_prefs changed = ui->prefs;
    if (step == GP_EDIT_KEPT && gp_pref_set(&changed, pref, ui->edit.text, &err) < 0) {
        memcpy(ui->edit.text, ui->edit.before, GP_PREF_TEXT_SIZE);
        gp_ui_say(ui, "%s", err.text);
    }
    if (step != GP_EDIT_TYPED)
        gp_ui_apply(ui);
}

static void change(struct gp_ui *ui, bool forward)
{
    enum gp_pref pref = (enum gp_pref)ui->menu.chosen;
    const struct gp_pref_info *info = &gp_pref_table[pref];
    if (info->type == GP_PREF_TEXT) {
        gp_ui_edit(ui, (char *)&ui->prefs + info->offset, info->name, on_text);
        return;
    }
    if (pref == GP_PREF_READ_ONLY && ui->prefs.read_only) {
        gp_ui_say(ui, "read-only stays on until the program exits");
        return;
    }
    if (pref == GP_PREF_THEME) {
        gp_pref_step_name(&ui->prefs, pref, ui->theme.words, forward);
        gp_ui_set_theme(ui);
        return;
    }
    gp_pref_step(&ui->prefs, pref, forward);
    gp_watch_focus_shown(ui);
    gp_ui_build_rows(ui);
}

static enum gp_ui_wish key_in_setup(struct gp_ui *ui, int key)
{
    enum gp_action action = gp_key_action(key, gp_ui_is_vi(ui));
    if (gp_menu_key(&ui->menu, key, gp_ui_is_vi(ui)))
        return GP_UI_GO_ON;
    if (action == GP_ACTION_LEFT || action == GP_ACTION_RIGHT || key == GP_KEY_ENTER || key == ' ')
        change(ui, action != GP_ACTION_LEFT);
    else if (action == GP_ACTION_SAVE)
        gp_ui_save(ui);
    else if (action == GP_ACTION_QUIT || action == GP_ACTION_CLEAR || action == GP_ACTION_SETUP)
        gp_ui_show(ui, GP_UI_WATCH);
    return GP_UI_GO_ON;
}

/* The columns that the choices up to this one take; 0: it is none of them. */
static int width_until(const char *choices, const char *value)
{
    const size_t wanted = strlen(value);
    int width = 0;
    for (size_t n; *choices; choices += n + (choices[n] == ' ')) {
        n = strcspn(choices, " ");
        width += (int)n + 2;
        if (n == wanted && strncmp(choices, value, n) == 0)
            return width;
    }
    return 0;
}

/* "card bar [line] grid auto": all values, the present one in brackets. If they do not fit into w
 * columns, the first ones are left out until that one does. */
static void add_choices(struct gp_strbuf *sb, const char *choices, const char *value, int w)
{
    const size_t wanted = strlen(value);
    while (width_until(choices, value) > w && strchr(choices, ' '))
        choices += strcspn(choices, " ") + 1;
    for (size_t n; *choices; choices += n + (choices[n] == ' ')) {
        n = strcspn(choices, " ");
        const bool is_it = n == wanted && strncmp(choices, value, n) == 0;
        gp_strbuf_adds(sb, is_it ? "[" : " ");
        gp_strbuf_add(sb, choices, n);
        gp_strbuf_adds(sb, is_it ? "]" : " ");
    }
}

/* A mark, the name, and the value. The mark says that the value is not the usual one. */
static void draw_pref(const struct gp_box *line, size_t i, const void *ctx)
{
    const struct gp_ui *ui = ctx;
    const struct gp_pref_info *info = &gp_pref_table[i];
    struct gp_prefs usual;
    char value_room[GP_PREF_TEXT_SIZE + 1] = "";
    char usual_room[GP_PREF_TEXT_SIZE + 1] = "";
    char text_room[GP_PREF_TEXT_SIZE + 1] = "";
    struct gp_strbuf value = GP_STRBUF_ON(value_room, GP_PREF_TEXT_SIZE);
    struct gp_strbuf old = GP_STRBUF_ON(usual_room, GP_PREF_TEXT_SIZE);
    struct gp_strbuf text = GP_STRBUF_ON(text_room, GP_PREF_TEXT_SIZE);
    gp_prefs_init(&usual);
    gp_pref_format(&value, &ui->prefs, (enum gp_pref)i);
    gp_pref_format(&old, &usual, (enum gp_pref)i);
    const bool is_usual = strcmp(value.buf, old.buf) == 0;
    if (info->choices)
        add_choices(&text, i == GP_PREF_THEME ? ui->theme.words : info->choices, value.buf,
                    line->w - 13 < GP_PREF_TEXT_SIZE - 2 ? line->w - 13 : GP_PREF_TEXT_SIZE - 2);
    else
        gp_strbuf_addf(&text, " %s", *value.buf ? value.buf : "-");
    (void)gp_draw(line, 0, 0, GP_INK_TAGGED, is_usual ? " " : "*");
    (void)gp_draw(line, 2, 0, GP_INK_KEY, info->name);
    gp_draw_left(line, 13, 0, line->w - 13, is_usual ? GP_INK_PLAIN : GP_INK_STRONG, text.buf);
}

/* The colors of the theme. */
static void draw_sample(const struct gp_box *box)
{
    static const struct {
        enum gp_ink ink;
        const char *text;
    } samples[] = {
        {GP_INK_TITLE, "title"},      {GP_INK_KEY, "key"},        {GP_INK_LOW, "██ load"},
        {GP_INK_MEMORY, "██ memory"}, {GP_INK_MEDIUM, "██ held"}, {GP_INK_HIGH, "██ trouble"},
        {GP_INK_CRITICAL, " lost "},  {GP_INK_STALE, "old"},      {GP_INK_TAGGED, "tagged"},
    };
    int x = 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(samples); i++)
        x = gp_draw(box, x, 0, samples[i].ink, samples[i].text) + 2;
}

/* What the chosen preference does, and what it is without a change. */
static void draw_about(const struct gp_ui *ui, const struct gp_box *box)
{
    const enum gp_pref pref = (enum gp_pref)ui->menu.chosen;
    struct gp_box part = *box;
    if (pref == GP_PREF_THEME) {
        part = gp_box_part(box, 0, box->h - 1, box->w, 1);
        draw_sample(&part);
        part = gp_box_part(box, 0, 0, box->w, box->h - 1);
    }
    const bool is_wrong = pref == GP_PREF_THEME && ui->theme.problem[0];
    (void)gp_draw_wrapped(&part, 0, is_wrong ? GP_INK_HIGH : GP_INK_DIM,
                          is_wrong ? ui->theme.problem : gp_pref_table[pref].help);
}

static void draw_setup(struct gp_ui *ui, const struct gp_box *box)
{
    /* At the bottom, so that the effect of a change is visible above. */
    enum { ABOUT = 3, MOST = GP_PREF__COUNT + ABOUT };
    int h = box->h > MOST + 12 ? MOST + 2 : (box->h + 1) / 2;
    struct gp_box part = gp_box_part(box, 0, box->h - h - 1, box->w, h);
    struct gp_box in =
        gp_draw_window(&part, part.w, h, "setup · ← → change, S save, ? help, q back");
    const int about = in.h >= 2 * ABOUT ? ABOUT : 0;
    const struct gp_box list = gp_box_part(&in, 0, 0, in.w, in.h - about);
    gp_menu_draw(&ui->menu, &list, &ui->hits, draw_pref, ui);
    const struct gp_box bottom = gp_box_part(&in, 0, list.h, in.w, about);
    if (about > 0)
        draw_about(ui, &bottom);
}

const struct gp_screen gp_screen_setup = {
    .key = key_in_setup, .draw = draw_setup, .fill = fill_setup, .leave = leave_setup};
