/* The main screen: the GPUs and the processes. */
#include "tui/screen.h"

#include "base/strbuf.h"
#include "base/utf8.h"
#include "model/snapshot.h"
#include "tui/alert_line.h"
#include "tui/alerts.h"
#include "tui/frame.h"
#include "tui/gpu_flags.h"
#include "tui/gpu_text.h"
#include "tui/gpus.h"
#include "tui/header.h"
#include "tui/owners.h"
#include "tui/playback.h"
#include "tui/proc_table.h"
#include "tui/watch_arrange.h"
#include "tui/watch_gpus.h"
#include "tui/watch_keys.h"
#include "tui/watch_tree.h"

#include <stdio.h>
#include <string.h>

enum {
    HOST_FROM = 30, /* minimum lines to show the machine */
    KEYS_FROM = 8,
    SCROLL_STEP = 8,
    ZOOM_MAX = 6,
};

/* ---- the cursor ---- */

static void move_row(struct gp_ui *ui, enum gp_action action)
{
    size_t page = ui->page > 1 ? ui->page - 1 : 1;
    size_t at = ui->chosen;
    if (action == GP_ACTION_UP)
        at -= at > 0;
    else if (action == GP_ACTION_DOWN)
        at++;
    else if (action == GP_ACTION_PAGE_UP)
        at -= at < page ? at : page;
    else if (action == GP_ACTION_PAGE_DOWN)
        at += page;
    else
        at = action == GP_ACTION_FIRST ? 0 : ui->procs.count;
    gp_ui_choose(ui, at);
}

static void move_gpus(struct gp_ui *ui, enum gp_action action)
{
    const bool is_page = action == GP_ACTION_PAGE_UP || action == GP_ACTION_PAGE_DOWN;
    const long step = is_page && ui->gpu_page > 1 ? (long)ui->gpu_page : 1;
    if (action == GP_ACTION_FIRST || action == GP_ACTION_LAST)
        gp_watch_choose_gpu(ui, -1);
    const bool is_back =
        action == GP_ACTION_UP || action == GP_ACTION_PAGE_UP || action == GP_ACTION_LAST;
    gp_watch_move_gpu(ui, is_back ? -step : step);
}

/* Moves the cursor; returns false for any other action. */
static bool move(struct gp_ui *ui, enum gp_action action)
{
    switch (action) {
    case GP_ACTION_UP:
    case GP_ACTION_DOWN:
    case GP_ACTION_PAGE_UP:
    case GP_ACTION_PAGE_DOWN:
    case GP_ACTION_FIRST:
    case GP_ACTION_LAST:
        if (ui->gpus_have_focus)
            move_gpus(ui, action);
        else
            move_row(ui, action);
        return true;
    case GP_ACTION_LEFT:
        ui->scroll = 0;
        return true;
    case GP_ACTION_RIGHT:
        ui->scroll += SCROLL_STEP;
        return true;
    case GP_ACTION_PANE:
        gp_watch_turn_pane(ui);
        return true;
    case GP_ACTION_GPU_UP:
        ui->first_gpu -= ui->first_gpu > 0;
        return true;
    case GP_ACTION_GPU_DOWN:
        ui->first_gpu++;
        return true;
    default:
        return false;
    }
}

/* ---- searching and filtering ---- */

/* The first match in a row and the closed ones below it, apart from `skipped` ones; NULL: none. */
static const struct gp_proc_row *match_in(const struct gp_ui *ui, size_t at, bool forward,
                                          size_t skipped)
{
    const struct gp_proc_row *row = &ui->procs.rows[at];
    const struct gp_rows_below below = gp_rows_below(&ui->procs, at);
    for (size_t i = skipped; i <= row->closed; i++) {
        const size_t n = forward ? i : row->closed - i;
        const struct gp_proc_row *of = n == 0 ? row : &below.first[n - 1];
        if (gp_procs_matches(of, ui->search))
            return of;
    }
    return NULL;
}

static void search(struct gp_ui *ui, size_t from, bool forward, bool unfolds)
{
    size_t count = ui->procs.count;
    for (size_t i = 0; *ui->search && i < count; i++) {
        const size_t row = (forward ? from + i : from + count - i) % count;
        const struct gp_proc_row *match = match_in(ui, row, forward, 0);
        if (!match)
            continue;
        if (match == &ui->procs.rows[row] || !unfolds)
            gp_ui_choose(ui, row);
        else
            (void)gp_ui_go_to_process(ui, match->pid);
        return;
    }
    if (*ui->search)
        gp_ui_say(ui, "'%s' not found", ui->search);
}

/* The closed rows below this one come before the next one. */
static void search_on(struct gp_ui *ui)
{
    const bool has_row = *ui->search && gp_ui_chosen_row(ui);
    const struct gp_proc_row *below = has_row ? match_in(ui, ui->chosen, true, 1) : NULL;
    if (!below || !gp_ui_go_to_process(ui, below->pid))
        search(ui, ui->chosen + 1, true, true);
}

static void on_search(struct gp_ui *ui, enum gp_edit_step step)
{
    if (step != GP_EDIT_DROPPED)
        search(ui, ui->chosen, true, step == GP_EDIT_KEPT);
}

static void on_filter(struct gp_ui *ui, enum gp_edit_step step)
{
    (void)step;
    gp_ui_refilter(ui);
}

/* ---- keys ---- */

static void hold(struct gp_ui *ui)
{
    if (ui->held && ui->newest) {
        gp_snapshot_free(ui->held);
        ui->held = NULL;
        ui->snapshot = ui->newest;
        ui->shown = ui->cost.ticks;
    } else if (ui->held) {
        ui->newest = ui->held;
        ui->held = NULL;
    } else if (ui->newest) {
        ui->held = ui->newest;
        ui->newest = NULL;
    }
}

static void sort_beside(struct gp_ui *ui, size_t step)
{
    size_t at = 0;
    while (at + 1 < ui->column_count && ui->columns[at] != ui->order.by[0].column)
        at++;
    at = (at + step) % ui->column_count;
    if ((int)ui->columns[at] == GP_TOP_PAST_COLUMN) /* which has no order */
        at = (at + step) % ui->column_count;
    if ((int)ui->columns[at] == GP_TOP_PAST_COLUMN)
        return;
    ui->order = (struct gp_proc_order){.by = {{.column = ui->columns[at]}}, .count = 1};
}

/* The GPU, the tags, what is followed, the marks of a search; if there is none of the first three,
 * the filter. */
static void clear_choice(struct gp_ui *ui)
{
    ui->search[0] = '\0';
    if (ui->gpu < 0 && ui->tag_count == 0 && ui->followed == 0)
        ui->prefs.filter[0] = '\0';
    gp_watch_choose_gpu(ui, -1);
    gp_watch_focus(ui, ui->gpus_have_focus && !ui->prefs.processes);
    ui->tag_count = 0;
    ui->followed = 0;
}

static bool has_gpu(const struct gp_ui *ui, int gpu)
{
    for (size_t i = 0; ui->snapshot && i < ui->snapshot->device_count; i++)
        if ((int)ui->snapshot->devices[i].index == gpu)
            return true;
    return false;
}

/* Two digits in a row select a GPU with that number, if there is one. Selecting the same GPU again
 * shows all GPUs. */
static void choose_by_digit(struct gp_ui *ui, int digit)
{
    const int longer = ui->digit_typed && ui->gpu > 0 ? ui->gpu * 10 + digit : -1;
    gp_watch_choose_gpu(ui, has_gpu(ui, longer) ? longer : ui->gpu == digit ? -1 : digit);
}

/* Changes which processes are shown and in which order; returns false for any other action. */
static bool arrange(struct gp_ui *ui, enum gp_action action, int key)
{
    switch (action) {
    case GP_ACTION_SORT_LEFT:
        sort_beside(ui, ui->column_count - 1);
        return true;
    case GP_ACTION_SORT_RIGHT:
        sort_beside(ui, 1);
        return true;
    case GP_ACTION_SORT_MEMORY:
        gp_proc_order_put(&ui->order, GP_PROC_MEMORY_COLUMN);
        return true;
    case GP_ACTION_SORT_SM:
        gp_proc_order_put(&ui->order, GP_PROC_SM_COLUMN);
        return true;
    case GP_ACTION_SORT_TIME:
        gp_proc_order_put(&ui->order, GP_PROC_TIME_COLUMN);
        return true;
    case GP_ACTION_REVERSE:
        ui->order.by[0].reversed = !ui->order.by[0].reversed;
        return true;
    case GP_ACTION_TREE:
        gp_pref_step(&ui->prefs, GP_PREF_TREE, true);
        return true;
    case GP_ACTION_PER_GPU:
        ui->prefs.per_gpu = !ui->prefs.per_gpu;
        return true;
    case GP_ACTION_DIGIT:
        choose_by_digit(ui, key - '0');
        return true;
    case GP_ACTION_CLEAR:
        clear_choice(ui);
        return true;
    case GP_ACTION_PAUSE:
        hold(ui);
        return true;
    default:
        return false;
    }
}

static void say_series(struct gp_ui *ui)
{
    const char *place = ui->prefs.graphs ? ui->series_place : NULL;
    gp_ui_say(ui, place ? "graphs: %s (%s)" : "graphs: %s", gp_series_titles[ui->prefs.series],
              place);
}

/* Changes how things look; returns false for any other action. */
static bool look(struct gp_ui *ui, enum gp_action action)
{
    static const struct {
        enum gp_action action;
        enum gp_pref pref;
        bool forward;
    } steps[] = {
        {GP_ACTION_DENSITY, GP_PREF_VIEW, true},        {GP_ACTION_GRAPH, GP_PREF_GRAPH, true},
        {GP_ACTION_GPU_ORDER, GP_PREF_GPU_ORDER, true}, {GP_ACTION_SERIES, GP_PREF_SERIES, true},
        {GP_ACTION_MOUSE, GP_PREF_MOUSE, true},         {GP_ACTION_FASTER, GP_PREF_INTERVAL, false},
        {GP_ACTION_SLOWER, GP_PREF_INTERVAL, true},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(steps); i++)
        if (steps[i].action == action) {
            gp_pref_step(&ui->prefs, steps[i].pref, steps[i].forward);
            if (action == GP_ACTION_GPU_ORDER && ui->prefs.gpu_order == GP_ORDER_INDEX &&
                gp_gpu_order_is_index(&ui->gpu_order))
                gp_pref_step(&ui->prefs, steps[i].pref, true); /* nothing would change */
            if (action == GP_ACTION_SERIES)
                say_series(ui);
            if (action == GP_ACTION_GPU_ORDER)
                gp_watch_reorder(ui);
            return true;
        }
    switch (action) {
    case GP_ACTION_ZOOM_OUT:
        ui->zoom += ui->zoom < ZOOM_MAX;
        return true;
    case GP_ACTION_ZOOM_IN:
        ui->zoom -= ui->zoom > 0;
        return true;
    case GP_ACTION_EARLIER:
        ui->earlier += GP_TRACK_SAMPLES / 32;
        return true;
    case GP_ACTION_LATER:
        ui->earlier -= ui->earlier > 0 ? GP_TRACK_SAMPLES / 32 : 0;
        return true;
    default:
        return false;
    }
}

static void follow(struct gp_ui *ui)
{
    const struct gp_proc_row *row = gp_ui_chosen_row(ui);
    ui->followed = row && ui->followed != row->pid ? row->pid : 0;
    if (!ui->followed)
        return;
    gp_ui_choose(ui,
                 ui->chosen); /* pins the cursor, which may have followed the top row until now */
    gp_ui_say(ui, "following %lld", (long long)ui->followed);
}

static void open_details(struct gp_ui *ui, bool to_environment)
{
    const struct gp_proc_row *row = gp_ui_chosen_row(ui);
    ui->details.to_environment = to_environment;
    bool typed = ui->digit_typed && ui->gpu >= 0; /* "37" and Enter */
    if ((ui->gpus_have_focus || typed || !row || !row->pid) && !to_environment)
        gp_ui_show(ui, GP_UI_GPU);
    else if (row && row->pid)
        gp_ui_show(ui, GP_UI_PROCESS);
    else
        gp_ui_say(ui, "no process here");
}

static enum gp_ui_wish act(struct gp_ui *ui, enum gp_action action)
{
    static const struct {
        enum gp_action action;
        enum gp_ui_mode mode;
    } opens[] = {
        {GP_ACTION_HELP, GP_UI_HELP},     {GP_ACTION_SORT, GP_UI_SORT},
        {GP_ACTION_USER, GP_UI_USERS},    {GP_ACTION_KILL, GP_UI_SIGNAL},
        {GP_ACTION_SETUP, GP_UI_SETUP},   {GP_ACTION_ADJUST, GP_UI_ADJUST},
        {GP_ACTION_ALERTS, GP_UI_ALERTS}, {GP_ACTION_COST, GP_UI_COST},
    };
    if (gp_playback_refuses(ui, action))
        return GP_UI_GO_ON;
    for (size_t i = 0; i < GP_ARRAY_LEN(opens); i++)
        if (opens[i].action == action)
            gp_ui_show(ui, opens[i].mode == GP_UI_SORT && ui->gpus_have_focus ? GP_UI_GPU_ORDER
                                                                              : opens[i].mode);
    switch (action) {
    case GP_ACTION_QUIT:
        return GP_UI_QUIT;
    case GP_ACTION_FILTER:
        gp_ui_edit(ui, ui->prefs.filter, "filter", on_filter);
        ui->edit.hint = "words, user: pid: gpu: cmd: type: container:";
        break;
    case GP_ACTION_SEARCH:
        ui->search[0] = '\0';
        gp_ui_edit(ui, ui->search, "search", on_search);
        break;
    case GP_ACTION_NEXT:
        search_on(ui);
        break;
    case GP_ACTION_PREVIOUS:
        search(ui, ui->chosen + ui->procs.count - 1, false, true);
        break;
    case GP_ACTION_TAG:
        gp_tags_turn(ui);
        break;
    case GP_ACTION_TAG_CHILDREN:
        gp_tags_add_children(ui);
        break;
    case GP_ACTION_UNTAG:
        ui->tag_count = 0;
        break;
    case GP_ACTION_FOLLOW:
        follow(ui);
        break;
    case GP_ACTION_DETAILS:
    case GP_ACTION_ENVIRONMENT:
        open_details(ui, action == GP_ACTION_ENVIRONMENT);
        break;
    case GP_ACTION_SAVE:
        gp_ui_save(ui);
        break;
    default:
        break;
    }
    return GP_UI_GO_ON;
}

static enum gp_ui_wish key_in_watch(struct gp_ui *ui, int key)
{
    enum gp_action action = gp_key_action(key, gp_ui_is_vi(ui));
    if (gp_watch_arrange_key(ui, action, key) || gp_watch_tree_key(ui, action) ||
        move(ui, action) || look(ui, action))
        return GP_UI_GO_ON;
    if (arrange(ui, action, key)) {
        gp_ui_build_rows(ui);
        return GP_UI_GO_ON;
    }
    return act(ui, action);
}

/* ---- drawing ---- */

/* Draws the alerts at the right of the separator line, so that nothing moves when one appears. */
static void draw_alerts(struct gp_ui *ui, const struct gp_box *box)
{
    enum { MOST = 12 }; /* in one line */
    struct gp_alert list[MOST];
    if (!ui->prefs.alerts)
        return;
    const size_t found = gp_alerts_find(ui->snapshot, &ui->history, &ui->xids, list, MOST);
    if (found == 0)
        return;
    gp_draw_alerts(box, list, found < MOST ? found : MOST, found);
    gp_hits_add(&ui->hits, box, GP_HIT_ACTION, GP_ACTION_ALERTS);
}

/* Keeps the cursor within the visible rows. */
static void scroll_rows(struct gp_ui *ui, int rows)
{
    ui->page = rows > 0 ? (size_t)rows : 1;
    if (ui->chosen < ui->first)
        ui->first = ui->chosen;
    if (ui->chosen >= ui->first + ui->page)
        ui->first = ui->chosen - ui->page + 1;
    size_t most = ui->procs.count > ui->page ? ui->procs.count - ui->page : 0;
    ui->first = ui->first > most ? most : ui->first;
}

static bool has_column(const struct gp_ui *ui, enum gp_proc_column column)
{
    for (size_t i = 0; i < ui->column_count; i++)
        if (ui->columns[i] == column)
            return true;
    return false;
}

static void draw_snapshot(struct gp_ui *ui, const struct gp_box *box)
{
    const struct gp_snapshot *snapshot = ui->snapshot;
    bool host =
        ui->prefs.host == GP_HOST_YES || (ui->prefs.host == GP_HOST_AUTO && box->h >= HOST_FROM);
    struct gp_layout l = gp_watch_arrange(ui, box, host);
    size_t chosen = gp_watch_gpu_row(ui);
    ui->shows_rates =
        (l.gpus.h > 0 && (l.density <= GP_DENSITY_BAR ||
                          (l.density == GP_DENSITY_LINE && gp_series_is_rate[ui->prefs.series]))) ||
        ui->mode == GP_UI_GPU;
    const struct gp_gpus_view view = {
        .snapshot = snapshot,
        .history = &ui->history,
        .xids = &ui->xids,
        .layout = &l,
        .span = gp_ui_span(ui, snapshot->mono_ns),
        .series = (enum gp_series)ui->prefs.series,
        .order = &ui->gpu_order,
        .first = ui->first_gpu,
        .chosen = chosen,
        .has_focus = ui->gpus_have_focus,
        .blocks = ui->prefs.graph,
        .no_graphs = !ui->prefs.graphs,
        .owner = gp_owners_one(snapshot),
        .hits = &ui->hits,
    };
    ui->series_place = ui->prefs.gpus ? gp_gpus_series_place(&view) : "GPUs: D";
    struct gp_box part = gp_box_part(box, l.host.x, l.host.y, l.host.w, l.host.h);
    gp_draw_host(&part, snapshot);
    part = gp_box_part(box, l.gpus.x, l.gpus.y, l.gpus.w, l.gpus.h);
    gp_draw_gpus(&part, &view);
    part = gp_box_part(box, l.processes.x, l.processes.y, l.processes.w, l.processes.h);
    scroll_rows(ui, part.h > 2 ? part.h - 2 : 0);
    ui->shows_cpu_past =
        part.h > 0 && ui->prefs.graphs &&
        (*ui->prefs.columns ? has_column(ui, (enum gp_proc_column)GP_TOP_PAST_COLUMN)
                            : box->w >= GP_CPU_PAST_FROM);
    const struct gp_procs_options options = gp_ui_procs_options(ui);
    GP_GPU_TEXT(range);
    if (l.density < GP_DENSITY_LINE && l.shown > 0 && (size_t)l.shown < ui->gpu_order.count)
        gp_gpus_add_range(&range, &view);
    const struct gp_proc_view rows = {
        .procs = &ui->procs,
        .options = &options,
        .columns = ui->columns,
        .column_count = ui->column_count,
        .first = ui->first,
        .chosen = ui->chosen,
        .search = ui->search,
        .scroll = ui->scroll,
        .may_add = !*ui->prefs.columns,
        .has_focus = !ui->gpus_have_focus,
        .is_unknown = gp_watch_is_silent(ui, options.gpu),
        .gpus = range.buf,
        .gpu_order = l.has_rule || l.gpus.h == 0 ? NULL : &ui->gpu_order,
        .cpu_past = ui->cpu_past,
        .has_cpu_past = ui->shows_cpu_past,
        .has_codecs = ui->shows_codecs,
        .children = ui->prefs.tree == GP_TREE_YES ? ui->children : NULL,
        .tagged = ui->tags,
        .tagged_count = ui->tag_count,
        .hits = &ui->hits,
    };
    int end = gp_draw_procs(&part, &rows);
    part = gp_box_part(&part, end + 1, 0, part.w - end - 2, 1);
    draw_alerts(ui, &part);
    gp_draw_frame(box, &l);
}

static void draw_watch(struct gp_ui *ui, const struct gp_box *box)
{
    const int lines = gp_playback_lines(ui, box->h);
    const struct gp_box above = gp_box_part(box, 0, 0, box->w, box->h - lines);
    if (ui->snapshot)
        draw_snapshot(ui, &above);
    else if (ui->notice)
        (void)gp_draw(box, 1, box->h / 2, GP_INK_STRONG, ui->notice);
    struct gp_box keys = gp_box_part(box, 0, box->h - 1, box->w, 1);
    if (box->h >= KEYS_FROM || ui->message[0]) {
        gp_draw_fill(&keys, 0, 0, keys.w, GP_INK_PLAIN, ' ');
        gp_watch_draw_keys(ui, &keys);
    }
    if (lines > 0) {
        const struct gp_box bottom = gp_box_part(box, 0, box->h - 1 - lines, box->w, lines);
        gp_playback_draw(ui, &bottom);
    }
}

const struct gp_screen gp_screen_watch = {.key = key_in_watch, .draw = draw_watch};
