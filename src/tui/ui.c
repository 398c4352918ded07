#include "tui/ui.h"

#include "base/err.h"
#include "model/snapshot.h"
#include "proc/signal.h"
#include "tui/gpus.h"
#include "tui/keys.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    int number;
    const char *name, *help;
} signals[] = {
    {SIGTERM, "TERM", "end, in its own time"},
    {SIGINT, "INT", "as Ctrl-C"},
    {SIGKILL, "KILL", "end at once; it can save nothing"},
    {SIGHUP, "HUP", "its terminal is gone, or: read the configuration again"},
    {SIGQUIT, "QUIT", "end, with a core dump"},
    {SIGSTOP, "STOP", "stand still; its memory stays"},
    {SIGCONT, "CONT", "go on"},
    {SIGUSR1, "USR1", "whatever the program makes of it"},
    {SIGUSR2, "USR2", "whatever the program makes of it"},
};

static void GP_PRINTF(2, 3) say(struct gp_ui *ui, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(ui->message, sizeof(ui->message), fmt, args);
    va_end(args);
}

/* ---- life ---- */

void gp_ui_init(struct gp_ui *ui)
{
    *ui = (struct gp_ui){
        .interval_ns = GP_NS_PER_S, .density = GP_DENSITY_AUTO, .gpu = -1, .target.fd = -1};
}

static void forget_target(struct gp_ui *ui)
{
    if (ui->target.fd >= 0)
        (void)close(ui->target.fd);
    ui->target = (struct gp_ui_target){.fd = -1};
}

void gp_ui_fini(struct gp_ui *ui)
{
    forget_target(ui);
    gp_procs_fini(&ui->procs);
    gp_history_fini(&ui->history);
    gp_snapshot_free(ui->newest);
    gp_snapshot_free(ui->held);
}

/* ---- the rows ---- */

static struct gp_procs_options procs_options(const struct gp_ui *ui)
{
    return (struct gp_procs_options){ui->order, ui->reversed, ui->filter, ui->gpu};
}

/* The cursor stays on its process; when that is gone, on its place. */
static void find_chosen(struct gp_ui *ui)
{
    for (size_t i = 0; i < ui->procs.count; i++)
        if (ui->chosen_pid && ui->procs.rows[i].pid == ui->chosen_pid) {
            ui->chosen = i;
            return;
        }
    if (ui->chosen >= ui->procs.count)
        ui->chosen = ui->procs.count ? ui->procs.count - 1 : 0;
}

static void build_rows(struct gp_ui *ui)
{
    const struct gp_procs_options options = procs_options(ui);
    if (ui->snapshot && gp_procs_build(&ui->procs, ui->snapshot, &options) < 0)
        say(ui, "out of memory");
    find_chosen(ui);
}

void gp_ui_take(struct gp_ui *ui, struct gp_snapshot *snapshot)
{
    gp_history_add(&ui->history, snapshot, ui->interval_ns);
    gp_snapshot_free(ui->newest);
    ui->newest = snapshot;
    if (ui->held)
        return;
    ui->snapshot = snapshot;
    build_rows(ui);
}

static const struct gp_proc_row *chosen_row(const struct gp_ui *ui)
{
    return ui->chosen < ui->procs.count ? &ui->procs.rows[ui->chosen] : NULL;
}

static void choose(struct gp_ui *ui, size_t row)
{
    ui->chosen = ui->procs.count == 0 ? 0 : row >= ui->procs.count ? ui->procs.count - 1 : row;
    const struct gp_proc_row *chosen = chosen_row(ui);
    ui->chosen_pid = chosen ? chosen->pid : 0;
}

static int compare_numbers(const void *a, const void *b)
{
    const uint32_t *x = a;
    const uint32_t *y = b;
    return (*x > *y) - (*x < *y);
}

bool gp_ui_watched(const struct gp_ui *ui, uint32_t *pids, size_t max, size_t *ret_count)
{
    size_t count = 0;
    if (ui->order == GP_ORDER_CPU || ui->order == GP_ORDER_RSS)
        return false;
    for (size_t i = ui->first; i < ui->procs.count && i < ui->first + ui->page && count < max; i++)
        if (ui->procs.rows[i].pid)
            pids[count++] = (uint32_t)ui->procs.rows[i].pid;
    qsort(pids, count, sizeof(*pids), compare_numbers);
    *ret_count = count;
    return true;
}

/* ---- keys ---- */

static void search(struct gp_ui *ui, size_t from)
{
    for (size_t i = 0; *ui->search && i < ui->procs.count; i++) {
        size_t row = (from + i) % ui->procs.count;
        if (gp_procs_matches(&ui->procs.rows[row], ui->search)) {
            choose(ui, row);
            return;
        }
    }
    if (*ui->search)
        say(ui, "'%s' is not there", ui->search);
}

/* Tab: the next GPU that is shown, and behind the last one all. */
static void choose_next_gpu(struct gp_ui *ui)
{
    int next = -1;
    for (size_t i = 0; ui->snapshot && i < ui->snapshot->device_count; i++) {
        int index = (int)ui->snapshot->devices[i].index;
        if (index > ui->gpu && (next < 0 || index < next))
            next = index;
    }
    ui->gpu = next;
}

static void hold(struct gp_ui *ui)
{
    if (ui->held && ui->newest) {
        gp_snapshot_free(ui->held);
        ui->held = NULL;
        ui->snapshot = ui->newest;
    } else if (ui->held) {
        ui->newest = ui->held;
        ui->held = NULL;
    } else if (ui->newest) {
        ui->held = ui->newest;
        ui->newest = NULL;
    }
}

static void change_interval(struct gp_ui *ui, bool faster)
{
    static const uint64_t steps_ms[] = {100, 250, 500, 1000, 2000, 5000, 10000, 30000, 60000};
    size_t at = 0;
    while (at + 1 < GP_ARRAY_LEN(steps_ms) && steps_ms[at] * GP_NS_PER_MS < ui->interval_ns)
        at++;
    if (faster && at > 0)
        at--;
    else if (!faster && steps_ms[at] * GP_NS_PER_MS <= ui->interval_ns &&
             at + 1 < GP_ARRAY_LEN(steps_ms))
        at++;
    ui->interval_ns = steps_ms[at] * GP_NS_PER_MS;
}

static void begin_edit(struct gp_ui *ui, enum gp_ui_mode mode)
{
    const char *text = mode == GP_UI_FILTER ? ui->filter : ui->search;
    (void)snprintf(ui->before, sizeof(ui->before), "%s", text);
    if (mode == GP_UI_SEARCH)
        ui->search[0] = '\0';
    ui->mode = mode;
}

static void begin_signal(struct gp_ui *ui)
{
    const struct gp_proc_row *row = chosen_row(ui);
    struct gp_err err = {0};
    if (ui->read_only || !row || !row->pid) {
        say(ui, "%s", ui->read_only ? "--read-only: no signals" : "there is no process here");
        return;
    }
    forget_target(ui);
    if (gp_proc_hold(row->pid, ui->snapshot->wall_ns, &ui->target.fd, &err) < 0) {
        say(ui, "%s", err.text);
        return;
    }
    ui->target.pid = row->pid;
    (void)snprintf(ui->target.who, sizeof(ui->target.who), "%lld %s %s", (long long)row->pid,
                   row->user ? row->user : "?", row->command ? row->command : "?");
    ui->mode = GP_UI_SIGNAL;
}

static void send_signal(struct gp_ui *ui)
{
    struct gp_err err = {0};
    if (gp_proc_signal(ui->target.fd, signals[ui->target.signal].number, &err) < 0)
        say(ui, "%s to %lld: %s", signals[ui->target.signal].name, (long long)ui->target.pid,
            err.text);
    else
        say(ui, "sent %s to %lld", signals[ui->target.signal].name, (long long)ui->target.pid);
    forget_target(ui);
    ui->mode = GP_UI_WATCH;
}

static enum gp_ui_wish key_in_signal(struct gp_ui *ui, int key)
{
    enum gp_action action = gp_key_action(key);
    struct gp_ui_target *target = &ui->target;
    bool leaves = key == GP_KEY_ESCAPE || key == 'n' || key == 'q';
    if (leaves && target->asks) {
        target->asks = false;
    } else if (leaves) {
        forget_target(ui);
        ui->mode = GP_UI_WATCH;
    } else if (target->asks && (key == 'y' || key == 'Y')) {
        send_signal(ui);
    } else if (target->asks) {
        return GP_UI_GO_ON;
    } else if (key == GP_KEY_ENTER) {
        target->asks = true;
    } else if (action == GP_ACTION_UP && target->signal > 0) {
        target->signal--;
    } else if (action == GP_ACTION_DOWN && target->signal + 1 < GP_ARRAY_LEN(signals)) {
        target->signal++;
    }
    return GP_UI_GO_ON;
}

static enum gp_ui_wish key_in_edit(struct gp_ui *ui, int key)
{
    char *text = ui->mode == GP_UI_FILTER ? ui->filter : ui->search;
    size_t n = strlen(text);
    if (key == GP_KEY_ESCAPE) {
        memcpy(text, ui->before, sizeof(ui->before));
        ui->mode = GP_UI_WATCH;
    } else if (key == GP_KEY_ENTER) {
        ui->mode = GP_UI_WATCH;
    } else if (key == GP_KEY_BACKSPACE && n > 0) {
        text[n - 1] = '\0';
    } else if (key >= ' ' && key < GP_KEY_BACKSPACE && n + 1 < sizeof(ui->filter)) {
        text[n] = (char)key;
        text[n + 1] = '\0';
    }
    if (text == ui->filter)
        build_rows(ui);
    else
        search(ui, ui->chosen);
    return GP_UI_GO_ON;
}

static enum gp_ui_wish key_in_help(struct gp_ui *ui, int key)
{
    enum gp_action action = gp_key_action(key);
    if (action == GP_ACTION_DOWN || action == GP_ACTION_PAGE_DOWN)
        ui->help_first++;
    else if ((action == GP_ACTION_UP || action == GP_ACTION_PAGE_UP) && ui->help_first > 0)
        ui->help_first--;
    else if (action != GP_ACTION_UP && action != GP_ACTION_PAGE_UP)
        ui->mode = GP_UI_WATCH;
    return GP_UI_GO_ON;
}

/* Moves the cursor; false if the action is another one. */
static bool move(struct gp_ui *ui, enum gp_action action)
{
    size_t page = ui->page > 1 ? ui->page - 1 : 1;
    switch (action) {
    case GP_ACTION_UP:
        choose(ui, ui->chosen > 0 ? ui->chosen - 1 : 0);
        return true;
    case GP_ACTION_DOWN:
        choose(ui, ui->chosen + 1);
        return true;
    case GP_ACTION_PAGE_UP:
        choose(ui, ui->chosen > page ? ui->chosen - page : 0);
        return true;
    case GP_ACTION_PAGE_DOWN:
        choose(ui, ui->chosen + page);
        return true;
    case GP_ACTION_FIRST:
        choose(ui, 0);
        return true;
    case GP_ACTION_LAST:
        choose(ui, ui->procs.count);
        return true;
    case GP_ACTION_LEFT:
        ui->scroll = 0;
        return true;
    case GP_ACTION_RIGHT:
        ui->scroll += 8;
        return true;
    default:
        return false;
    }
}

/* Changes which processes are shown, in which order; false if the action is another one. */
static bool arrange(struct gp_ui *ui, enum gp_action action)
{
    switch (action) {
    case GP_ACTION_SORT_LEFT:
        ui->order = (enum gp_order)((ui->order + GP_ORDER__COUNT - 1) % GP_ORDER__COUNT);
        return true;
    case GP_ACTION_SORT_RIGHT:
        ui->order = (enum gp_order)((ui->order + 1) % GP_ORDER__COUNT);
        return true;
    case GP_ACTION_SORT_MEMORY:
        ui->order = GP_ORDER_MEMORY;
        return true;
    case GP_ACTION_SORT_SM:
        ui->order = GP_ORDER_SM;
        return true;
    case GP_ACTION_SORT_TIME:
        ui->order = GP_ORDER_TIME;
        return true;
    case GP_ACTION_REVERSE:
        ui->reversed = !ui->reversed;
        return true;
    case GP_ACTION_GPU_NEXT:
        choose_next_gpu(ui);
        return true;
    case GP_ACTION_GPU_ALL:
        ui->gpu = -1;
        return true;
    case GP_ACTION_PAUSE:
        hold(ui);
        return true;
    default:
        return false;
    }
}

static enum gp_ui_wish act(struct gp_ui *ui, enum gp_action action)
{
    switch (action) {
    case GP_ACTION_QUIT:
        return GP_UI_QUIT;
    case GP_ACTION_SUSPEND:
        return GP_UI_SUSPEND;
    case GP_ACTION_REDRAW:
        return GP_UI_REDRAW;
    case GP_ACTION_FASTER:
    case GP_ACTION_SLOWER:
        change_interval(ui, action == GP_ACTION_FASTER);
        return GP_UI_INTERVAL;
    case GP_ACTION_HELP:
        ui->mode = GP_UI_HELP;
        break;
    case GP_ACTION_FILTER:
        begin_edit(ui, GP_UI_FILTER);
        break;
    case GP_ACTION_SEARCH:
        begin_edit(ui, GP_UI_SEARCH);
        break;
    case GP_ACTION_NEXT:
        search(ui, ui->chosen + 1);
        break;
    case GP_ACTION_KILL:
        begin_signal(ui);
        break;
    case GP_ACTION_DENSITY:
        ui->density = (enum gp_density)((ui->density + 1) % (GP_DENSITY_AUTO + 1));
        break;
    case GP_ACTION_GRAPH:
        ui->blocks = !ui->blocks;
        break;
    case GP_ACTION_GPUS:
        ui->no_gpus = !ui->no_gpus;
        break;
    case GP_ACTION_PROCESSES:
        ui->no_processes = !ui->no_processes;
        break;
    case GP_ACTION_GPU_UP:
        ui->first_gpu -= ui->first_gpu > 0;
        break;
    case GP_ACTION_GPU_DOWN:
        ui->first_gpu++;
        break;
    default:
        break;
    }
    return GP_UI_GO_ON;
}

enum gp_ui_wish gp_ui_key(struct gp_ui *ui, int key)
{
    ui->message[0] = '\0';
    if (ui->mode == GP_UI_HELP)
        return key_in_help(ui, key);
    if (ui->mode == GP_UI_SIGNAL)
        return key_in_signal(ui, key);
    if (ui->mode == GP_UI_FILTER || ui->mode == GP_UI_SEARCH)
        return key_in_edit(ui, key);
    enum gp_action action = gp_key_action(key);
    if (move(ui, action))
        return GP_UI_GO_ON;
    if (arrange(ui, action)) {
        build_rows(ui);
        return GP_UI_GO_ON;
    }
    return act(ui, action);
}

/* ---- drawing ---- */

static void draw_keys(const struct gp_ui *ui, const struct gp_box *box)
{
    static const struct {
        enum gp_action action;
        const char *word;
    } shown[] = {
        {GP_ACTION_HELP, "help"},       {GP_ACTION_FILTER, "filter"}, {GP_ACTION_SEARCH, "search"},
        {GP_ACTION_SORT_RIGHT, "sort"}, {GP_ACTION_KILL, "kill"},     {GP_ACTION_GPU_NEXT, "gpu"},
        {GP_ACTION_DENSITY, "view"},    {GP_ACTION_PAUSE, "pause"},   {GP_ACTION_QUIT, "quit"},
    };
    if (ui->mode == GP_UI_FILTER || ui->mode == GP_UI_SEARCH) {
        int x = gp_draw(box, 1, 0, GP_INK_KEY, ui->mode == GP_UI_FILTER ? "filter:" : "search:");
        x = gp_draw(box, x + 1, 0, GP_INK_PLAIN,
                    ui->mode == GP_UI_FILTER ? ui->filter : ui->search);
        (void)gp_draw(box, x, 0, GP_INK_SELECTED, " ");
        return;
    }
    if (ui->message[0]) {
        (void)gp_draw(box, 1, 0, GP_INK_STRONG, ui->message);
        return;
    }
    int x = 1;
    for (size_t i = 0; i < GP_ARRAY_LEN(shown); i++) {
        char key[16];
        (void)snprintf(key, sizeof(key), "%.*s", (int)strcspn(gp_action_keys(shown[i].action), " "),
                       gp_action_keys(shown[i].action));
        x = gp_draw(box, x, 0, GP_INK_KEY, key);
        x = gp_drawf(box, x, 0, GP_INK_PLAIN, ":%s ", shown[i].word);
    }
}

/* A window in the middle, with a line around it. */
static struct gp_box draw_window(const struct gp_box *box, int w, int h, const char *title)
{
    w = w > box->w ? box->w : w;
    h = h > box->h ? box->h : h;
    struct gp_box window = gp_box_part(box, (box->w - w) / 2, (box->h - h) / 2, w, h);
    for (int y = 0; y < h; y++) {
        bool edge = y == 0 || y == h - 1;
        gp_draw_fill(&window, 0, y, w, GP_INK_TITLE, edge ? 0x2500 : ' ');
        gp_draw_fill(&window, 0, y, 1, GP_INK_TITLE, y == 0 ? 0x250c : edge ? 0x2514 : 0x2502);
        gp_draw_fill(&window, w - 1, y, 1, GP_INK_TITLE, y == 0 ? 0x2510 : edge ? 0x2518 : 0x2502);
    }
    (void)gp_drawf(&window, 2, 0, GP_INK_TITLE, " %s ", title);
    return gp_box_part(&window, 2, 1, w - 4, h - 2);
}

static void draw_help(struct gp_ui *ui, const struct gp_box *box)
{
    enum { KEYS_WIDTH = 10, WIDTH = 76 };
    int lines = GP_ACTION__COUNT - 1;
    struct gp_box in = draw_window(box, WIDTH, lines + 2, "keys · any other key leaves");
    size_t most = lines > in.h ? (size_t)(lines - in.h) : 0;
    ui->help_first = ui->help_first > most ? most : ui->help_first;
    for (int y = 0; y < in.h && (int)ui->help_first + y < lines; y++) {
        enum gp_action action = (enum gp_action)((int)ui->help_first + y + 1);
        gp_draw_left(&in, 0, y, KEYS_WIDTH, GP_INK_KEY, gp_action_keys(action));
        gp_draw_left(&in, KEYS_WIDTH + 1, y, in.w - KEYS_WIDTH - 1, GP_INK_PLAIN,
                     gp_action_help(action));
    }
}

static void draw_signals(const struct gp_ui *ui, const struct gp_box *box)
{
    const struct gp_ui_target *target = &ui->target;
    int count = (int)GP_ARRAY_LEN(signals);
    struct gp_box in = draw_window(box, 72, count + 5, "signal · Enter chooses, Esc leaves");
    gp_draw_left(&in, 0, 0, in.w, GP_INK_STRONG, target->who);
    for (int i = 0; i < count; i++) {
        (void)gp_drawf(&in, 0, i + 1, GP_INK_PLAIN, "%-5s %s", signals[i].name, signals[i].help);
        if ((size_t)i == target->signal)
            gp_draw_ink(&in, i + 1, GP_INK_SELECTED);
    }
    if (target->asks)
        (void)gp_drawf(&in, 0, count + 2, GP_INK_CRITICAL, "send %s to %lld? y/n",
                       signals[target->signal].name, (long long)target->pid);
}

/* Keeps the cursor within the rows that are shown. */
static void scroll_rows(struct gp_ui *ui, int height)
{
    ui->page = height > 2 ? (size_t)height - 2 : 1;
    if (ui->chosen < ui->first)
        ui->first = ui->chosen;
    if (ui->chosen >= ui->first + ui->page)
        ui->first = ui->chosen - ui->page + 1;
    size_t most = ui->procs.count > ui->page ? ui->procs.count - ui->page : 0;
    ui->first = ui->first > most ? most : ui->first;
}

static void draw_snapshot(struct gp_ui *ui, const struct gp_box *box)
{
    const struct gp_snapshot *snapshot = ui->snapshot;
    struct gp_layout l = gp_layout_of(&(struct gp_layout_options){
        box->w, box->h, (int)snapshot->device_count, ui->density, ui->no_gpus, ui->no_processes});
    size_t most = snapshot->device_count - (size_t)l.shown;
    ui->first_gpu = ui->first_gpu > most ? most : ui->first_gpu;
    const struct gp_gpus_view view = {
        .snapshot = snapshot,
        .history = &ui->history,
        .layout = &l,
        .span = {snapshot->mono_ns, ui->interval_ns},
        .first = ui->first_gpu,
        .chosen = snapshot->device_count,
        .blocks = ui->blocks,
    };
    struct gp_box gpus = gp_box_part(box, l.gpus.x, l.gpus.y, l.gpus.w, l.gpus.h);
    if (l.gpus.h > 0)
        gp_draw_gpus(&gpus, &view);
    struct gp_box rows =
        gp_box_part(box, l.processes.x, l.processes.y, l.processes.w, l.processes.h);
    const struct gp_procs_options options = procs_options(ui);
    scroll_rows(ui, l.processes.h);
    if (l.processes.h > 0)
        gp_draw_procs(&rows, &ui->procs, &options, ui->first, ui->chosen, ui->scroll);
}

void gp_ui_draw(struct gp_ui *ui, struct gp_cells *cells, const char *clock)
{
    struct gp_box box = {cells, 0, 0, cells->w, cells->h};
    char corner[64];
    gp_cells_clear(cells);
    if (ui->snapshot)
        draw_snapshot(ui, &box);
    else if (ui->notice)
        (void)gp_draw(&box, 1, cells->h / 2, GP_INK_STRONG, ui->notice);
    (void)snprintf(corner, sizeof(corner), "%s%.1fs %s", ui->held ? "paused " : "",
                   (double)ui->interval_ns / 1e9, clock);
    if (cells->h >= 2)
        gp_draw_header(&box, ui->snapshot, corner);
    struct gp_box keys = gp_box_part(&box, 0, cells->h - 1, cells->w, 1);
    if (cells->h >= 8 || ui->mode != GP_UI_WATCH || ui->message[0]) {
        gp_draw_fill(&keys, 0, 0, keys.w, GP_INK_PLAIN, ' ');
        draw_keys(ui, &keys);
    }
    if (ui->mode == GP_UI_HELP)
        draw_help(ui, &box);
    if (ui->mode == GP_UI_SIGNAL)
        draw_signals(ui, &box);
}
