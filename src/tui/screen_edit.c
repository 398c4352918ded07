/* A line editor at the bottom of the screen, in front of another screen. */
#include "tui/screen.h"

#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

void gp_ui_edit(struct gp_ui *ui, char *text, const char *label,
                void (*on_change)(struct gp_ui *ui, enum gp_edit_step step))
{
    ui->edit.text = text;
    ui->edit.label = label;
    ui->edit.hint = NULL;
    ui->edit.behind = ui->mode;
    ui->edit.on_change = on_change;
    memcpy(ui->edit.before, text, GP_PREF_TEXT_SIZE);
    ui->mode = GP_UI_EDIT; /* the screen below stays open */
}

/* Drops the last character, which may be several bytes. */
static void drop_last(char *text)
{
    size_t n = strlen(text);
    while (n > 0 && (text[n - 1] & 0xc0) == 0x80)
        n--;
    text[n > 0 ? n - 1 : 0] = '\0';
}

static void drop_word(char *text)
{
    size_t n = strlen(text);
    while (n > 0 && text[n - 1] == ' ')
        n--;
    while (n > 0 && text[n - 1] != ' ')
        n--;
    text[n] = '\0';
}

static void add_character(char *text, int key)
{
    size_t n = strlen(text);
    (void)snprintf(text + n, GP_PREF_TEXT_SIZE - n, "%c", key); /* excess characters are dropped */
}

static enum gp_ui_wish key_in_edit(struct gp_ui *ui, int key)
{
    struct gp_ui_edit *edit = &ui->edit;
    enum gp_edit_step step = GP_EDIT_TYPED;
    if (key == GP_KEY_ESCAPE) {
        memcpy(edit->text, edit->before, GP_PREF_TEXT_SIZE);
        step = GP_EDIT_DROPPED;
    } else if (key == GP_KEY_ENTER) {
        step = GP_EDIT_KEPT;
    } else if (key == GP_KEY_BACKSPACE) {
        drop_last(edit->text);
    } else if (key == GP_KEY_CTRL('U')) {
        edit->text[0] = '\0';
    } else if (key == GP_KEY_CTRL('W')) {
        drop_word(edit->text);
    } else if (key >= ' ' && key < GP_KEY_BACKSPACE) {
        add_character(edit->text, key);
    }
    if (step != GP_EDIT_TYPED)
        ui->mode = edit->behind;
    edit->on_change(ui, step);
    return GP_UI_GO_ON;
}

/* The end of a text that is longer than w columns. */
static const char *end_of(const char *text, int w)
{
    while (*text && (int)gp_utf8_width(text) > w) {
        do
            text++;
        while ((*text & 0xc0) == 0x80);
    }
    return text;
}

static void draw_edit(struct gp_ui *ui, const struct gp_box *box)
{
    struct gp_box line = gp_box_part(box, 0, box->h - 1, box->w, 1);
    gp_draw_fill(&line, 0, 0, line.w, GP_INK_PLAIN, ' ');
    int x = gp_drawf(&line, 1, 0, GP_INK_KEY, "%s:", ui->edit.label);
    const char *text = end_of(ui->edit.text, line.w - x - 2);
    if (text != ui->edit.text) {
        text = end_of(text, line.w - x - 3);
        x = gp_draw(&line, x, 0, GP_INK_DIM, "…") - 1;
    }
    x = gp_draw(&line, x + 1, 0, GP_INK_PLAIN, text);
    x = gp_draw(&line, x, 0, GP_INK_SELECTED, " ");
    if (!*text && ui->edit.hint && !ui->message[0])
        (void)gp_draw(&line, x + 1, 0, GP_INK_DIM, ui->edit.hint);
    if (ui->message[0])
        (void)gp_drawf(&line, x + 2, 0, GP_INK_HIGH, "%s", ui->message);
}

const struct gp_screen gp_screen_edit = {.key = key_in_edit, .draw = draw_edit};
