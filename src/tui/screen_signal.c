/* Ends the process under the cursor, or all tagged processes, or sends them another signal; then
 * shows whether they have ended and their memory is free. Pidfds are opened before the question, so
 * that a recycled pid is never signalled. */
#include "tui/screen.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "model/snapshot.h"
#include "tui/proc_table.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct {
    int number;
    bool ends; /* the process is expected to end: wait for that */
    const char *name, *help;
} signals[] = {
    {SIGTERM, true, "TERM", "terminate, after cleaning up"},
    {SIGINT, true, "INT", "interrupt, like Ctrl-C"},
    {SIGKILL, true, "KILL", "kill immediately; unsaved data is lost"},
    {SIGHUP, false, "HUP", "hang up, or reload the configuration"},
    {SIGQUIT, true, "QUIT", "quit with a core dump"},
    {SIGSTOP, false, "STOP", "stop; keeps its memory"},
    {SIGCONT, false, "CONT", "continue"},
    {SIGUSR1, false, "USR1", "defined by the program"},
    {SIGUSR2, false, "USR2", "defined by the program"},
};

enum { KILL = 2, WIDTH_MAX = 92, COMMAND_LINES = 2, LINES_LEAST = 3 };

static const enum gp_proc_column columns[] = {GP_PROC_PID_COLUMN,  GP_PROC_USER_COLUMN,
                                              GP_PROC_GPU_COLUMN,  GP_PROC_MEMORY_COLUMN,
                                              GP_PROC_TIME_COLUMN, GP_PROC_COMMAND_COLUMN};

static void leave_signal(struct gp_ui *ui)
{
    struct gp_ui_targets *t = &ui->targets;
    for (size_t i = 0; i < t->count; i++)
        (void)close(t->list[i].fd);
    gp_procs_fini(&t->rows);
    t->count = 0;
    t->whose[0] = '\0';
    t->below = 0;
    t->sent_ns = 0;
    gp_menu_open(&ui->menu, 0);
}

/* ---- the processes ---- */

static void hold(struct gp_ui *ui, int64_t pid)
{
    struct gp_ui_targets *t = &ui->targets;
    struct gp_err err = {0};
    int fd;
    if (gp_proc_is_own_ancestor(pid))
        gp_ui_say(ui, "process %lld is an ancestor of this gpulse", (long long)pid);
    else if (gp_proc_hold(pid, ui->snapshot->wall_ns, &fd, &err) < 0)
        gp_ui_say(ui, "%s", err.text);
    else
        t->list[t->count++] = (struct gp_ui_target){.pid = pid, .fd = fd};
}

static bool is_held(const struct gp_ui_targets *t, int64_t pid)
{
    size_t i = 0;
    while (i < t->count && t->list[i].pid != pid)
        i++;
    return i < t->count;
}

/* The processes of a group that use GPUs, as for their tags. */
static void hold_group(struct gp_ui *ui, const struct gp_proc_row *group)
{
    struct gp_ui_targets *t = &ui->targets;
    struct gp_strbuf job = GP_STRBUF_ON(t->whose, sizeof(t->whose) - 1);
    gp_proc_row_add_job(&job, group);
    if (!group->container)
        gp_utf8_copy_safe(t->whose, sizeof(t->whose), group->user ? group->user : "?");
    const struct gp_rows_below below = gp_rows_below(&ui->procs, ui->chosen);
    for (size_t i = 0; i < below.count; i++) {
        const struct gp_proc_row *row = &below.first[i];
        if (gp_proc_row_uses_any(row) && t->count < GP_UI_TAGS && !is_held(t, row->pid))
            hold(ui, row->pid);
    }
}

static void hold_one(struct gp_ui *ui, int64_t pid)
{
    const struct gp_rows_below below = gp_rows_below(&ui->procs, ui->chosen);
    for (size_t i = 0; i < below.count; i++)
        ui->targets.below += gp_proc_row_uses_any(&below.first[i]);
    hold(ui, pid);
}

/* The rows of the list: of all GPUs, whatever the table shows. Their texts are copied, because the
 * rows outlive the snapshot. Without memory only the pids are shown. */
static void fill_rows(struct gp_ui *ui)
{
    struct gp_ui_targets *t = &ui->targets;
    const bool tree = ui->snapshot->ancestor_count > 0;
    const struct gp_procs_options all = {ui->order, NULL, -1, tree, false, false};
    struct gp_procs *rows = &t->rows;
    if (gp_procs_build(rows, ui->snapshot, &all) < 0)
        return;
    size_t kept = 0;
    for (size_t i = 0; i < rows->count; i++)
        for (size_t j = kept; j < t->count; j++) {
            const struct gp_proc_row *row = &rows->rows[i];
            struct gp_ui_target *target = &t->list[kept];
            if (row->pid != t->list[j].pid)
                continue;
            const struct gp_ui_target found = t->list[j]; /* the list gets the order of the rows */
            t->list[j] = *target;
            *target = found;
            gp_utf8_copy_safe(target->user, sizeof(target->user), row->user ? row->user : "?");
            gp_utf8_copy_safe(target->command, sizeof(target->command),
                              row->command ? row->command : "?");
            rows->rows[kept] = *row;
            rows->rows[kept].depth = 0;
            rows->rows[kept].user = target->user;
            rows->rows[kept++].command = target->command;
            break;
        }
    rows->count = kept;
}

/* ---- after the signal ---- */

static bool has_ended(int fd)
{
    struct pollfd end = {.fd = fd, .events = POLLIN};
    return poll(&end, 1, 0) == 1;
}

static size_t count_ended(const struct gp_ui_targets *t)
{
    size_t ended = 0;
    for (size_t i = 0; i < t->count; i++)
        ended += t->list[i].ended;
    return ended;
}

/* Bytes of memory in use on the GPUs of the processes. */
static double used_by_gpus(const struct gp_ui_targets *t, const struct gp_snapshot *s)
{
    double sum = 0;
    for (size_t g = 0; g < s->device_count; g++) {
        bool is_theirs = false;
        for (size_t i = 0; i < t->rows.count; i++)
            is_theirs = is_theirs || gp_proc_row_uses(&t->rows.rows[i], s->devices[g].index);
        double used;
        if (is_theirs && !s->devices[g].is_mig &&
            gp_device_number(&s->devices[g], GP_MEMORY_USED, &used))
            sum += used;
    }
    return sum;
}

/* "10869 ended, 60.0G free again", or what others, such as its children, still hold of it. */
static void say_ended(struct gp_ui *ui)
{
    struct gp_ui_targets *t = &ui->targets;
    char room[64] = "";
    struct gp_strbuf sb = GP_STRBUF_ON(room, sizeof(room) - 1);
    struct gp_amount freed = {0};
    for (size_t i = 0; i < t->rows.count; i++) {
        freed.n += t->rows.rows[i].memory.n;
        freed.known = freed.known || t->rows.rows[i].memory.known;
    }
    const double released = t->used_before - used_by_gpus(t, ui->snapshot);
    const bool is_free = released >= 0.9 * freed.n;
    freed.n -= is_free || released < 0 ? 0 : released;
    if (freed.known) {
        gp_strbuf_adds(&sb, is_free ? ", " : ", but ");
        gp_proc_format_amount(&sb, GP_PROC_MEMORY_COLUMN, freed);
        gp_strbuf_adds(&sb, is_free ? " free again" : " not free yet");
    }
    if (t->count == 1)
        gp_ui_say(ui, "%lld ended%s", (long long)t->list[0].pid, sb.buf);
    else
        gp_ui_say(ui, "%zu processes ended%s", t->count, sb.buf);
}

/* When all have ended, and no GPU lists them any more, the table is shown again. */
static void look_after(struct gp_ui *ui)
{
    struct gp_ui_targets *t = &ui->targets;
    bool is_over = true;
    for (size_t i = 0; i < t->count; i++) {
        t->list[i].ended = t->list[i].ended || has_ended(t->list[i].fd);
        is_over = is_over && t->list[i].ended && !gp_snapshot_lists(ui->snapshot, t->list[i].pid);
    }
    if (!is_over)
        return;
    say_ended(ui);
    gp_ui_show(ui, GP_UI_WATCH);
}

int gp_signal_fd(const struct gp_ui *ui)
{
    const struct gp_ui_targets *t = &ui->targets;
    for (size_t i = 0; t->sent_ns && i < t->count; i++)
        if (!t->list[i].ended)
            return t->list[i].fd;
    return -1;
}

void gp_signal_collect(struct gp_ui *ui)
{
    if (ui->targets.sent_ns)
        look_after(ui);
}

/* ---- the screen ---- */

/* Opens the processes. If there are none, the question is not asked. */
static void fill_signal(struct gp_ui *ui)
{
    struct gp_ui_targets *t = &ui->targets;
    const struct gp_proc_row *row = gp_ui_chosen_row(ui);
    if (t->count > 0) {
        gp_signal_collect(ui);
        return;
    }
    if (ui->prefs.read_only)
        gp_ui_say(ui, "read-only: no signals");
    else if (ui->outside.root && !ui->outside.root_is_simulated)
        gp_ui_say(ui, "the processes of %.60s cannot be signalled from here", ui->outside.root);
    else if (ui->tag_count == 0 && row && row->members)
        hold_group(ui, row);
    else if (ui->tag_count == 0 && (!row || !row->pid))
        gp_ui_say(ui, "no process here");
    else if (ui->tag_count == 0)
        hold_one(ui, row->pid);
    else
        for (size_t i = 0; i < ui->tag_count; i++)
            hold(ui, ui->tags[i]);
    if (t->count == 0) {
        ui->mode = GP_UI_WATCH;
        return;
    }
    gp_menu_open(&ui->menu, GP_ARRAY_LEN(signals));
    fill_rows(ui);
    t->used_before = used_by_gpus(t, ui->snapshot);
}

/* Sends it to those that have not ended. Returns whether it waits for their end. */
static bool send_all(struct gp_ui *ui, size_t number)
{
    struct gp_ui_targets *t = &ui->targets;
    struct gp_err err = {0};
    const char *name = signals[number].name;
    size_t sent = 0;
    size_t count = t->count - count_ended(t);
    long long pid = 0; /* the last one */
    for (size_t i = 0; i < t->count; i++) {
        if (t->list[i].ended)
            continue;
        pid = t->list[i].pid;
        sent += gp_proc_signal(t->list[i].fd, signals[number].number, &err) == 0;
    }
    if (count == 1 && sent == 1)
        gp_ui_say(ui, "sent %s to %lld", name, pid);
    else if (count == 1)
        gp_ui_say(ui, "%s to %lld: %s", name, pid, err.text);
    else if (sent == count)
        gp_ui_say(ui, "sent %s to %zu processes", name, sent);
    else
        gp_ui_say(ui, "sent %s to %zu of %zu processes: %s", name, sent, count, err.text);
    ui->tag_count = 0;
    if (sent == 0 || !signals[number].ends)
        return false;
    t->signal = number;
    t->sent_ns = gp_clock_mono_ns();
    return true;
}

static enum gp_ui_wish key_in_signal(struct gp_ui *ui, int key)
{
    const struct gp_ui_targets *t = &ui->targets;
    const bool is_sent = t->sent_ns > 0;
    bool stays = true;
    if (key == GP_KEY_ESCAPE || key == 'n' || key == 'q')
        stays = false;
    else if (key == 'K' && gp_ui_is_vi(ui) && ui->menu.chosen != KILL && !is_sent)
        ui->menu.chosen = KILL; /* it has opened the box, too: held down, it must not kill */
    else if (key == 'K')
        stays = count_ended(t) == t->count || send_all(ui, KILL);
    else if (key == GP_KEY_ENTER)
        stays = !is_sent && send_all(ui, ui->menu.chosen);
    else if (!is_sent)
        (void)gp_menu_key(&ui->menu, key, gp_ui_is_vi(ui));
    if (!stays)
        gp_ui_show(ui, GP_UI_WATCH);
    return GP_UI_GO_ON;
}

/* ---- drawing ---- */

static void draw_line(const struct gp_box *line, size_t i, const void *ctx)
{
    (void)ctx;
    (void)gp_drawf(line, 1, 0, GP_INK_PLAIN, "%-5s %s", signals[i].name, signals[i].help);
}

/* The heading, the processes, and how many of them have no room. A single one has its command below
 * it. */
static void draw_rows(const struct gp_ui_targets *t, const struct gp_box *box)
{
    const bool is_one = t->rows.count == 1;
    const struct gp_proc_view view = {.procs = &t->rows,
                                      .columns = columns,
                                      .column_count = GP_ARRAY_LEN(columns) - is_one,
                                      .chosen = SIZE_MAX};
    const struct gp_box command = gp_box_part(box, 1, 2, box->w - 1, is_one ? COMMAND_LINES : 0);
    gp_draw_proc_rows(box, &view);
    (void)gp_draw_wrapped(&command, 0, GP_INK_STRONG, t->list[0].command);
    const int room = box->h - 1;
    if (room > 0 && t->rows.count > (size_t)room) {
        gp_draw_fill(box, 0, box->h - 1, box->w, GP_INK_PLAIN, ' ');
        (void)gp_drawf(box, 2, box->h - 1, GP_INK_DIM, "… and %zu more",
                       t->rows.count - (size_t)room + 1);
    }
    for (size_t i = 0; i < t->rows.count && (int)i < room; i++)
        if (t->list[i].ended)
            gp_draw_ink(box, (int)i + 1, GP_INK_DIM);
}

static void draw_choice(struct gp_ui *ui, const struct gp_box *box)
{
    struct gp_box list = gp_box_part(box, 0, 0, box->w, box->h - 1);
    gp_menu_draw(&ui->menu, &list, &ui->hits, draw_line, NULL);
    (void)gp_drawf(box, 1, box->h - 1, GP_INK_STRONG, "Enter: %s%s   Esc: cancel",
                   signals[ui->menu.chosen].name, ui->menu.chosen == KILL ? "" : "   K: KILL");
}

static void draw_sent(const struct gp_ui_targets *t, const struct gp_box *box)
{
    const char *name = signals[t->signal].name;
    const size_t ended = count_ended(t);
    unsigned long ago_s = (gp_clock_mono_ns() - t->sent_ns) / GP_NS_PER_S;
    if (ended == t->count)
        (void)gp_draw(box, 1, 0, GP_INK_STRONG, "ended; in the last sample it still has memory");
    else if (t->count == 1)
        (void)gp_drawf(box, 1, 0, GP_INK_HIGH, "%s sent %lu s ago, still there", name, ago_s);
    else
        (void)gp_drawf(box, 1, 0, GP_INK_HIGH, "%s sent %lu s ago, %zu of %zu left", name, ago_s,
                       t->count - ended, t->count);
    (void)gp_draw(box, 1, 1, GP_INK_STRONG,
                  ended == t->count ? "Esc: back" : "K: KILL   Esc: back");
}

/* "end 8 processes of news" */
static void name_targets(const struct gp_ui_targets *t, char *ret, size_t size)
{
    const char *of = t->whose[0] ? " of " : "";
    if (t->count == 1)
        (void)snprintf(ret, size, "end this process%s%s", of, t->whose);
    else
        (void)snprintf(ret, size, "end %zu processes%s%s", t->count, of, t->whose);
}

/* After the signal, the window keeps its place and height. */
static void draw_signal(struct gp_ui *ui, const struct gp_box *box)
{
    const struct gp_ui_targets *t = &ui->targets;
    char title[2 * GP_UI_TEXT_SIZE];
    name_targets(t, title, sizeof(title));
    int below = (int)GP_ARRAY_LEN(signals) + 2;
    int above = 1 + (int)t->rows.count + (t->rows.count == 1 ? COMMAND_LINES : 0);
    int h = above + below + 3; /* with an empty line and the frame */
    int w = box->w < WIDTH_MAX ? box->w : WIDTH_MAX;
    struct gp_box in = gp_draw_window(box, w, h, title);
    int rows = above < in.h - below - 1 ? above : in.h - below - 1;
    rows = rows < LINES_LEAST ? LINES_LEAST : rows; /* the list of signals scrolls */
    struct gp_box part = gp_box_part(&in, 0, 0, in.w, rows);
    draw_rows(t, &part);
    int gap = in.h - rows > below;
    if (gap && t->below > 0 && !t->sent_ns)
        (void)gp_drawf(&in, 1, rows, GP_INK_DIM, "%zu %s GPUs, too; Esc, c, k ends all", t->below,
                       t->below == 1 ? "process below it uses" : "processes below it use");
    part = gp_box_part(&in, 0, rows + gap, in.w, in.h - rows - gap);
    if (t->sent_ns)
        draw_sent(t, &part);
    else
        draw_choice(ui, &part);
}

const struct gp_screen gp_screen_signal = {
    .key = key_in_signal, .draw = draw_signal, .fill = fill_signal, .leave = leave_signal};
