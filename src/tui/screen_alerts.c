/* The list of everything that needs attention. Enter goes to the GPU or the process of a line. */
#include "tui/screen.h"

#include "base/utf8.h"
#include "model/snapshot.h"
#include "tui/alerts.h"
#include "tui/watch_gpus.h"

#include <stdio.h>

/* The chosen alert stays chosen while others come and go. */
static void fill_alerts(struct gp_ui *ui)
{
    struct gp_ui_alerts *alerts = &ui->alerts;
    const bool is_open = ui->menu.count > 0;
    const struct gp_alert chosen = alerts->list[ui->menu.chosen];
    alerts->found = ui->snapshot ? gp_alerts_find(ui->snapshot, &ui->history, &ui->xids,
                                                  alerts->list, GP_UI_ALERTS_MAX)
                                 : 0;
    const size_t count = alerts->found < GP_UI_ALERTS_MAX ? alerts->found : GP_UI_ALERTS_MAX;
    if (!is_open)
        gp_menu_open(&ui->menu, count);
    ui->menu.count = count;
    for (size_t i = 0; is_open && i < count; i++)
        if (gp_alert_is(&alerts->list[i], &chosen)) {
            ui->menu.chosen = i;
            return;
        }
    if (ui->menu.chosen >= count)
        ui->menu.chosen = count ? count - 1 : 0;
}

static void leave_alerts(struct gp_ui *ui)
{
    gp_menu_open(&ui->menu, 0);
}

static const struct gp_alert *chosen_alert(const struct gp_ui *ui)
{
    return ui->menu.count ? &ui->alerts.list[ui->menu.chosen] : NULL;
}

/* Selects the GPU of the alert and, if it has a row there, the process. */
static void go_there(struct gp_ui *ui, const struct gp_alert *alert)
{
    gp_watch_choose_gpu(ui, (int)alert->gpu);
    gp_watch_focus(ui, true);
    gp_ui_build_rows(ui);
    if (gp_ui_go_to_process(ui, alert->pid))
        gp_watch_focus(ui, false);
    gp_watch_focus_shown(ui);
}

static enum gp_ui_wish key_in_alerts(struct gp_ui *ui, int key)
{
    const enum gp_action action = gp_key_action(key, gp_ui_is_vi(ui));
    const struct gp_alert *alert = chosen_alert(ui);
    if (gp_menu_key(&ui->menu, key, gp_ui_is_vi(ui)))
        return GP_UI_GO_ON;
    if (action == GP_ACTION_DETAILS && alert)
        go_there(ui, alert);
    if (action == GP_ACTION_DETAILS || action == GP_ACTION_QUIT || action == GP_ACTION_CLEAR ||
        action == GP_ACTION_ALERTS)
        gp_ui_show(ui, GP_UI_WATCH);
    return GP_UI_GO_ON;
}

enum { GAP = 4 }; /* between what it is and what to do */

/* The columns of the widest of all texts. */
static int width_of_texts(const struct gp_ui *ui)
{
    int w = 0;
    for (size_t i = 0; i < ui->menu.count; i++) {
        const int text = (int)gp_utf8_width(ui->alerts.list[i].text);
        w = text > w ? text : w;
    }
    return w;
}

/* What it is, and next to it what to do, in one column for all if there is room for that. */
static void draw_line(const struct gp_box *line, size_t i, const void *ctx)
{
    const struct gp_ui *ui = ctx;
    const struct gp_alert *alert = &ui->alerts.list[i];
    const int text = (int)gp_utf8_width(alert->text);
    const int next = (int)gp_utf8_width(alert->next);
    const int x = width_of_texts(ui) + GAP;
    gp_draw_left(line, 0, 0, line->w, alert->ink, alert->text);
    if (x + (int)sizeof(alert->next) <= line->w)
        (void)gp_draw(line, x, 0, GP_INK_KEY, alert->next);
    else if (text + 2 + next <= line->w)
        gp_draw_right(line, text, 0, line->w - text, GP_INK_KEY, alert->next);
}

/* What the chosen one means, below the list. */
static void draw_about(const struct gp_box *box, const struct gp_alert *alert)
{
    gp_draw_fill(box, 0, 0, box->w, GP_INK_TITLE, 0x2500);
    (void)gp_draw_wrapped(box, 1, GP_INK_PLAIN, alert->about);
}

/* As high and as wide as its contents, so that the GPUs stay visible. */
static void draw_alerts(struct gp_ui *ui, const struct gp_box *box)
{
    enum { EDGES = 4, WIDTH = 76, ABOUT_LINES = 6, NEXT = sizeof(ui->alerts.list[0].next) };
    const struct gp_alert *alert = chosen_alert(ui);
    char title[64] = "alerts · q back";
    if (alert)
        (void)snprintf(title, sizeof(title), "alerts %zu · Enter go there, q back",
                       ui->alerts.found);
    const int needed = width_of_texts(ui) + GAP + NEXT + EDGES;
    const int lines = (int)ui->menu.count + 1; /* and a gap */
    struct gp_box in = gp_draw_window(box, needed > WIDTH ? needed : WIDTH,
                                      alert ? lines + ABOUT_LINES + 2 : 3, title);
    if (!alert) {
        (void)gp_draw(&in, 0, 0, GP_INK_PLAIN, "nothing needs attention");
        return;
    }
    const int about = in.h >= ABOUT_LINES + 2 ? ABOUT_LINES : 0;
    const int most = in.h - about;
    const struct gp_box list = gp_box_part(&in, 0, 0, in.w, lines < most ? lines : most);
    gp_menu_draw(&ui->menu, &list, &ui->hits, draw_line, ui);
    const struct gp_box bottom = gp_box_part(&in, 0, list.h, in.w, about);
    if (about > 0)
        draw_about(&bottom, alert);
}

const struct gp_screen gp_screen_alerts = {
    .key = key_in_alerts, .draw = draw_alerts, .fill = fill_alerts, .leave = leave_alerts};
