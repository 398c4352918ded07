/* The setup screen: all preferences with their values. Changes show at once on the screen above
 * it. */
#include "tui/screen.h"

#include "base/err.h"
#include "base/strbuf.h"

#include <stdio.h>
#include <string.h>

static void fill_setup(struct gp_ui *ui)
{
    if (ui->menu.count != GP_PREF__COUNT)
        gp_menu_open(&ui->menu, GP_PREF__COUNT);
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
    gp_pref_step(&ui->prefs, pref, forward);
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

static void draw_pref(const struct gp_box *line, size_t i, const void *ctx)
{
    const struct gp_ui *ui = ctx;
    struct gp_strbuf sb = GP_STRBUF_INIT(GP_PREF_TEXT_SIZE);
    gp_pref_format(&sb, &ui->prefs, (enum gp_pref)i);
    (void)gp_draw(line, 0, 0, GP_INK_KEY, gp_pref_table[i].name);
    gp_draw_left(line, 11, 0, 15, GP_INK_STRONG, *sb.buf ? sb.buf : "-");
    gp_draw_left(line, 27, 0, line->w - 27, GP_INK_PLAIN, gp_pref_table[i].help);
    gp_strbuf_fini(&sb);
}

static void draw_setup(struct gp_ui *ui, const struct gp_box *box)
{
    /* At the bottom, so that the effect of a change is visible above. */
    int h = box->h > GP_PREF__COUNT + 12 ? GP_PREF__COUNT + 2 : (box->h + 1) / 2;
    struct gp_box part = gp_box_part(box, 0, box->h - h - 1, box->w, h);
    struct gp_box in = gp_draw_window(&part, part.w, h, "setup · ← → change, S save, q back");
    gp_menu_draw(&ui->menu, &in, &ui->hits, draw_pref, ui);
}

const struct gp_screen gp_screen_setup = {
    .key = key_in_setup, .draw = draw_setup, .fill = fill_setup, .leave = leave_setup};
