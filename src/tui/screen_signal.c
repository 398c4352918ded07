/* Sends a signal to the process under the cursor, or to all tagged processes. Pidfds are opened
 * before the first question, so that a recycled pid is never signalled. */
#include "tui/screen.h"

#include "base/err.h"
#include "model/snapshot.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static const struct {
    int number;
    const char *name, *help;
} signals[] = {
    {SIGTERM, "TERM", "terminate, after cleaning up"},
    {SIGINT, "INT", "interrupt, like Ctrl-C"},
    {SIGKILL, "KILL", "kill immediately; unsaved data is lost"},
    {SIGHUP, "HUP", "hang up, or reload the configuration"},
    {SIGQUIT, "QUIT", "quit with a core dump"},
    {SIGSTOP, "STOP", "stop; keeps its memory"},
    {SIGCONT, "CONT", "continue"},
    {SIGUSR1, "USR1", "defined by the program"},
    {SIGUSR2, "USR2", "defined by the program"},
};

static void leave_signal(struct gp_ui *ui)
{
    for (size_t i = 0; i < ui->targets.count; i++)
        (void)close(ui->targets.list[i].fd);
    ui->targets.count = 0;
    ui->targets.asks = false;
    gp_menu_open(&ui->menu, 0);
}

static void hold(struct gp_ui *ui, int64_t pid)
{
    struct gp_ui_targets *t = &ui->targets;
    struct gp_err err = {0};
    int fd;
    if (gp_proc_hold(pid, ui->snapshot->wall_ns, &fd, &err) < 0)
        gp_ui_say(ui, "%s", err.text);
    else
        t->list[t->count++] = (struct gp_ui_target){pid, fd};
}

/* Opens the processes. If there are none, the question is not asked. */
static void fill_signal(struct gp_ui *ui)
{
    struct gp_ui_targets *t = &ui->targets;
    const struct gp_proc_row *row = gp_ui_chosen_row(ui);
    if (t->count > 0)
        return;
    if (ui->prefs.read_only)
        gp_ui_say(ui, "read-only: no signals");
    else if (ui->outside.root && !ui->outside.root_is_simulated)
        gp_ui_say(ui, "the processes of %.60s cannot be signalled from here", ui->outside.root);
    else if (ui->tag_count == 0 && (!row || !row->pid))
        gp_ui_say(ui, "no process here");
    else if (ui->tag_count == 0)
        hold(ui, row->pid);
    else
        for (size_t i = 0; i < ui->tag_count; i++)
            hold(ui, ui->tags[i]);
    gp_menu_open(&ui->menu, GP_ARRAY_LEN(signals));
    if (t->count == 0)
        ui->mode = GP_UI_WATCH;
    else if (t->count == 1 && row && row->pid == t->list[0].pid)
        (void)snprintf(t->who, sizeof(t->who), "%lld %s %s", (long long)row->pid,
                       row->user ? row->user : "?", row->command ? row->command : "?");
    else
        (void)snprintf(t->who, sizeof(t->who), "%zu tagged processes", t->count);
}

static void send_all(struct gp_ui *ui)
{
    struct gp_ui_targets *t = &ui->targets;
    struct gp_err err = {0};
    const char *name = signals[ui->menu.chosen].name;
    size_t sent = 0;
    for (size_t i = 0; i < t->count; i++)
        sent += gp_proc_signal(t->list[i].fd, signals[ui->menu.chosen].number, &err) == 0;
    if (t->count == 1 && sent == 1)
        gp_ui_say(ui, "sent %s to %lld", name, (long long)t->list[0].pid);
    else if (t->count == 1)
        gp_ui_say(ui, "%s to %lld: %s", name, (long long)t->list[0].pid, err.text);
    else if (sent == t->count)
        gp_ui_say(ui, "sent %s to %zu processes", name, sent);
    else
        gp_ui_say(ui, "sent %s to %zu of %zu processes: %s", name, sent, t->count, err.text);
    ui->tag_count = 0;
}

static enum gp_ui_wish key_in_signal(struct gp_ui *ui, int key)
{
    struct gp_ui_targets *t = &ui->targets;
    bool leaves = key == GP_KEY_ESCAPE || key == 'n' || key == 'q';
    if (leaves && t->asks) {
        t->asks = false;
    } else if (leaves) {
        gp_ui_show(ui, GP_UI_WATCH);
    } else if (t->asks && (key == 'y' || key == 'Y')) {
        send_all(ui);
        gp_ui_show(ui, GP_UI_WATCH);
    } else if (!t->asks && key == GP_KEY_ENTER) {
        t->asks = true;
    } else if (!t->asks) {
        (void)gp_menu_key(&ui->menu, key, gp_ui_is_vi(ui));
    }
    return GP_UI_GO_ON;
}

static void draw_line(const struct gp_box *line, size_t i, const void *ctx)
{
    (void)ctx;
    (void)gp_drawf(line, 0, 0, GP_INK_PLAIN, "%-5s %s", signals[i].name, signals[i].help);
}

static void draw_signal(struct gp_ui *ui, const struct gp_box *box)
{
    const struct gp_ui_targets *t = &ui->targets;
    int count = (int)GP_ARRAY_LEN(signals);
    struct gp_box in = gp_draw_window(box, 72, count + 5, "signal · Enter select, Esc cancel");
    gp_draw_left(&in, 0, 0, in.w, GP_INK_STRONG, t->who);
    struct gp_box list = gp_box_part(&in, 0, 1, in.w, in.h - 3);
    gp_menu_draw(&ui->menu, &list, &ui->hits, draw_line, NULL);
    if (!t->asks)
        return;
    if (t->count == 1)
        (void)gp_drawf(&in, 0, in.h - 1, GP_INK_CRITICAL, "send %s to %lld? y/n",
                       signals[ui->menu.chosen].name, (long long)t->list[0].pid);
    else
        (void)gp_drawf(&in, 0, in.h - 1, GP_INK_CRITICAL, "send %s to %zu processes? y/n",
                       signals[ui->menu.chosen].name, t->count);
}

const struct gp_screen gp_screen_signal = {
    .key = key_in_signal, .draw = draw_signal, .fill = fill_signal, .leave = leave_signal};
