#include "tui/ui.h"

#include "base/clock.h"
#include "model/snapshot.h"
#include "out/digits.h"
#include "tui/children.h"
#include "tui/cpu_past.h"
#include "tui/feed.h"
#include "tui/header.h"
#include "tui/playback.h"
#include "tui/screen.h"
#include "tui/task.h"
#include "tui/watch_gpus.h"
#include "tui/watch_tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    GUIDE_FROM = 4,     /* lines of the screen that has room for the guide */
    INTERVAL_FROM = 64, /* columns of one that has room for the interval */
};

static const struct gp_screen *const screens[GP_UI__COUNT] = {
    [GP_UI_WATCH] = &gp_screen_watch,     [GP_UI_EDIT] = &gp_screen_edit,
    [GP_UI_SORT] = &gp_screen_sort,       [GP_UI_GPU_ORDER] = &gp_screen_gpu_order,
    [GP_UI_USERS] = &gp_screen_users,     [GP_UI_SIGNAL] = &gp_screen_signal,
    [GP_UI_SETUP] = &gp_screen_setup,     [GP_UI_ADJUST] = &gp_screen_adjust,
    [GP_UI_HELP] = &gp_screen_help,       [GP_UI_ALERTS] = &gp_screen_alerts,
    [GP_UI_COST] = &gp_screen_cost,       [GP_UI_GPU] = &gp_screen_gpu,
    [GP_UI_PROCESS] = &gp_screen_process,
};

/* ---- life ---- */

void gp_ui_init(struct gp_ui *ui)
{
    *ui = (struct gp_ui){.screens = screens,
                         .gpu = -1,
                         .mig = -1,
                         .tab_gpu = -1,
                         .preset = -1,
                         .cost.since_ns = gp_clock_mono_ns()};
    gp_prefs_init(&ui->prefs);
    gp_page_init(&ui->text);
    gp_ui_apply(ui);
}

bool gp_ui_fini(struct gp_ui *ui)
{
    if (ui->mode == GP_UI_EDIT)
        ui->mode = ui->edit.behind; /* so that the screen below is left as well */
    gp_ui_show(ui, GP_UI_WATCH);
    if (!gp_verdict_watch_stop(ui->details.leaving, GP_TASK_PATIENCE_MS))
        ui->is_stuck = true;
    if (!gp_children_free(ui->children))
        ui->is_stuck = true;
    gp_cpu_past_free(ui->cpu_past);
    gp_procs_fini(&ui->procs);
    gp_closed_fini(&ui->closed);
    gp_closed_fini(&ui->closed_of_filter);
    gp_history_fini(&ui->history);
    gp_gpu_order_fini(&ui->gpu_order);
    gp_page_fini(&ui->text);
    gp_snapshot_free(ui->newest);
    gp_snapshot_free(ui->held);
    return !ui->is_stuck;
}

/* ---- snapshots ---- */

/* Drops the tags of processes that are gone, because their pids may be recycled. */
static void drop_tags(struct gp_ui *ui)
{
    size_t kept = 0;
    for (size_t i = 0; i < ui->tag_count; i++)
        if (gp_ui_has_process(ui, ui->tags[i]))
            ui->tags[kept++] = ui->tags[i];
    ui->tag_count = kept;
}

static bool has_process(const void *ctx, int64_t pid)
{
    return gp_ui_has_process(ctx, pid);
}

/* In the tree. /proc is that of this machine. */
static void look_at_children(struct gp_ui *ui)
{
    if (ui->prefs.tree != GP_TREE_YES || ui->outside.player || !ui->outside.sees_processes)
        return;
    if (!ui->children)
        ui->children = gp_children_new(ui->outside.root);
    if (ui->children)
        gp_children_look(ui->children, ui->snapshot);
}

/* Of the rows on the screen, whose values are new in each sample. */
static void add_cpu_past(struct gp_ui *ui)
{
    const size_t first = ui->first < ui->procs.count ? ui->first : ui->procs.count;
    const size_t left = ui->procs.count - first;
    if (ui->shows_cpu_past)
        gp_cpu_past_add(&ui->cpu_past, &ui->procs.rows[first], left < ui->page ? left : ui->page,
                        ui->snapshot->mono_ns, ui->prefs.interval_ns);
}

static void look_at_codecs(struct gp_ui *ui)
{
    for (size_t i = 0; !ui->shows_codecs && i < ui->procs.count + ui->procs.closed; i++) {
        const struct gp_proc_row *row = &ui->procs.rows[i];
        ui->shows_codecs = (row->enc.known && row->enc.n > 0) || (row->dec.known && row->dec.n > 0);
    }
}

void gp_ui_take(struct gp_ui *ui, struct gp_snapshot *snapshot, uint64_t took_ns)
{
    struct gp_ui_cost *cost = &ui->cost;
    cost->ticks++;
    cost->ticks_ns += took_ns;
    cost->ticks_max_ns = took_ns > cost->ticks_max_ns ? took_ns : cost->ticks_max_ns;
    if (ui->outside.player)
        gp_playback_add_history(ui, snapshot);
    else
        gp_history_add(&ui->history, snapshot, ui->prefs.interval_ns);
    gp_snapshot_free(ui->newest);
    ui->newest = snapshot;
    if (ui->held)
        return;
    ui->snapshot = snapshot;
    ui->shown = cost->ticks;
    drop_tags(ui);
    gp_closed_forget(&ui->closed, has_process, ui);
    gp_closed_forget(&ui->closed_of_filter, has_process, ui);
    gp_ui_build_rows(ui);
    add_cpu_past(ui);
    look_at_codecs(ui);
    look_at_children(ui);
    if (screens[ui->mode]->fill)
        screens[ui->mode]->fill(ui);
}

static bool asks_container(const char *filter)
{
    return strstr(filter, "container") || strstr(filter, "job");
}

bool gp_ui_others_matter(const struct gp_ui *ui)
{
    static const enum gp_proc_column of_proc[] = {
        GP_PROC_CPU_COLUMN, GP_PROC_RSS_COLUMN, GP_PROC_CONTAINER_COLUMN,
        GP_PROC_CONTAINER_NAME_COLUMN, GP_PROC_ORIGIN_COLUMN};
    for (size_t i = 0; i < ui->order.count; i++)
        for (size_t j = 0; j < GP_ARRAY_LEN(of_proc); j++)
            if (ui->order.by[i].column == of_proc[j])
                return true;
    /* sums and jobs are of all */
    return ui->prefs.tree || asks_container(ui->prefs.filter) || asks_container(ui->search);
}

size_t gp_ui_watched(const struct gp_ui *ui, uint32_t *pids, size_t max)
{
    size_t count = 0;
    for (size_t i = ui->first; i < ui->procs.count && i < ui->first + ui->page && count < max; i++)
        if (ui->procs.rows[i].pid)
            pids[count++] = (uint32_t)ui->procs.rows[i].pid;
    qsort(pids, count, sizeof(*pids), gp_compare_u32);
    return count;
}

/* ---- screens ---- */

/* Keys that work on every screen. */
static bool is_everywhere(enum gp_action action)
{
    return action == GP_ACTION_REDRAW || action == GP_ACTION_SUSPEND;
}

/* The screens that show a sample, below which the lines of a recording stay visible. */
static bool is_of_sample(const struct gp_ui *ui)
{
    return ui->mode == GP_UI_WATCH || ui->mode == GP_UI_GPU || ui->mode == GP_UI_PROCESS;
}

enum gp_ui_wish gp_ui_key(struct gp_ui *ui, int key)
{
    enum gp_action action = gp_key_action(key, gp_ui_is_vi(ui));
    ui->message[0] = '\0';
    if (is_everywhere(action))
        return action == GP_ACTION_REDRAW ? GP_UI_REDRAW : GP_UI_SUSPEND;
    if (gp_help_key(ui, key))
        return GP_UI_GO_ON;
    if (is_of_sample(ui) && !ui->text.is_typing && gp_playback_key(ui, key)) {
        ui->digit_typed = ui->preset_typed = false;
        return GP_UI_GO_ON;
    }
    bool digit = ui->mode == GP_UI_WATCH && action == GP_ACTION_DIGIT;
    bool is_preset = ui->mode == GP_UI_WATCH && action == GP_ACTION_PRESET;
    if (ui->preset_typed)
        digit = false; /* it is that of a preset */
    bool is_main = ui->mode == GP_UI_WATCH;
    enum gp_ui_wish wish = screens[ui->mode]->key(ui, key);
    ui->digit_typed = digit;
    ui->preset_typed = is_preset;
    gp_guide_key(&ui->guide, is_main ? action : GP_ACTION_NONE, ui->mode);
    return wish;
}

enum gp_ui_wish gp_ui_click(struct gp_ui *ui, int x, int y, bool again)
{
    const struct gp_hit hit = gp_hits_find(&ui->hits, x, y);
    ui->message[0] = '\0';
    ui->digit_typed = ui->preset_typed = false;
    ui->help.explains = false;
    if (gp_playback_click(ui, &hit, x))
        return GP_UI_GO_ON;
    switch (hit.kind) {
    case GP_HIT_GPU:
        gp_watch_focus(ui, true);
        gp_watch_choose(ui, ui->snapshot ? &ui->snapshot->devices[hit.value] : NULL);
        gp_ui_build_rows(ui);
        break;
    case GP_HIT_ROW:
        ui->gpus_have_focus = false; /* rows stay where they are, for the second click */
        gp_ui_choose(ui, hit.value);
        break;
    case GP_HIT_FOLD:
        ui->gpus_have_focus = false;
        gp_ui_choose(ui, hit.value);
        gp_watch_turn_branch(ui);
        return GP_UI_GO_ON;
    case GP_HIT_COLUMN:
        if (ui->order.count && ui->order.by[0].column == (enum gp_proc_column)hit.value)
            ui->order.by[0].reversed = !ui->order.by[0].reversed;
        else
            gp_proc_order_put(&ui->order, (enum gp_proc_column)hit.value);
        gp_ui_build_rows(ui);
        return GP_UI_GO_ON;
    case GP_HIT_ITEM:
        if (ui->adjust.asks)
            return GP_UI_GO_ON; /* the question is about another row */
        ui->menu.chosen = hit.value;
        break;
    case GP_HIT_ACTION:
        return gp_ui_key(ui, gp_action_key((enum gp_action)hit.value, gp_ui_is_vi(ui)));
    case GP_HIT_TIME:
    case GP_HIT_NONE:
        return GP_UI_GO_ON;
    }
    return again ? gp_ui_key(ui, GP_KEY_ENTER) : GP_UI_GO_ON;
}

/* ---- threads ---- */

void gp_ui_fds(const struct gp_ui *ui, int ret[GP_UI_FDS])
{
    ret[0] = ui->details.feed ? gp_feed_fd(ui->details.feed) : -1;
    ret[1] = ui->details.task ? gp_task_fd(ui->details.task) : -1;
    ret[2] = ui->adjust.task ? gp_task_fd(ui->adjust.task) : -1;
    ret[3] = gp_signal_fd(ui);
}

void gp_ui_collect(struct gp_ui *ui)
{
    gp_gpu_collect(ui);
    gp_process_collect(ui);
    gp_adjust_collect(ui);
    gp_signal_collect(ui);
}

/* ---- drawing ---- */

/* "simulated PAUSED 1.0s 14:02": while paused, the time of the pause. */
static void draw_header(struct gp_ui *ui, const struct gp_box *box, const char *clock)
{
    struct gp_words corner;
    gp_words_init(&corner);
    if (!ui->held)
        (void)snprintf(ui->clock, sizeof(ui->clock), "%s", clock);
    gp_strbuf_adds(&corner.text, ui->outside.player    ? "recorded "
                                 : ui->outside.machine ? "simulated "
                                                       : "");
    gp_words_end(&corner, GP_INK_PLAIN);
    if (ui->held) {
        gp_strbuf_adds(&corner.text, "PAUSED");
        gp_words_end(&corner, GP_INK_PAUSED);
        gp_strbuf_addc(&corner.text, ' ');
    }
    if (!ui->outside.player && box->w >= INTERVAL_FROM) {
        gp_add_tenths(&corner.text, (double)ui->prefs.interval_ns / 1e9);
        gp_strbuf_adds(&corner.text, "s ");
    }
    gp_strbuf_adds(&corner.text, ui->clock);
    gp_draw_header(box, ui->snapshot, &corner);
}

void gp_ui_draw(struct gp_ui *ui, struct gp_cells *cells, const char *clock)
{
    struct gp_box box = {cells, 0, 0, cells->w, cells->h};
    uint64_t before_ns = gp_clock_mono_ns();
    gp_cells_clear(cells);
    ui->hits.count = 0;
    if (ui->guide.is_on && box.h >= GUIDE_FROM) {
        struct gp_box line = gp_box_part(&box, 0, box.h - 1, box.w, 1);
        gp_guide_draw(&ui->guide, &line, ui->mode);
        box.h--;
    }
    gp_screen_watch.draw(ui, &box);
    if (box.h >= 2)
        draw_header(ui, &box, clock);
    if (ui->mode != GP_UI_WATCH) {
        ui->hits.count = 0; /* areas behind it are not clickable */
        const int lines = is_of_sample(ui) ? gp_playback_lines(ui, box.h) : 0;
        box.h -= lines ? lines + 1 : 0; /* and the keys */
        screens[ui->mode]->draw(ui, &box);
        gp_help_draw(ui, &box);
    }
    ui->cost.frames++;
    ui->cost.frames_ns += gp_clock_mono_ns() - before_ns;
}
