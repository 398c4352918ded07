#include "tui/screen.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "model/snapshot.h"
#include "tui/task.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- messages and preferences ---- */

void gp_ui_say(struct gp_ui *ui, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(ui->message, sizeof(ui->message), fmt, args);
    va_end(args);
}

bool gp_ui_is_vi(const struct gp_ui *ui)
{
    return ui->prefs.keys == GP_KEYS_VI;
}

void gp_ui_set_theme(struct gp_ui *ui)
{
    struct gp_err err = {0};
    struct gp_ui_theme *theme = &ui->theme;
    const char *folder = ui->outside.themes;
    const size_t n = folder ? strlen(folder) : 0;
    theme->changes++;
    theme->problem[0] = '\0';
    if (gp_theme_load(folder, ui->prefs.theme, &theme->colors, &err) == 0)
        return;
    (void)snprintf(theme->problem, sizeof(theme->problem), "%.*s", (int)sizeof(theme->problem) - 1,
                   err.text);
    /* there is little room for a message: the name of the file says enough */
    const bool is_below = n > 0 && strncmp(err.text, folder, n) == 0 && err.text[n] == '/';
    gp_ui_say(ui, "%s", err.text + (is_below ? n + 1 : 0));
}

void gp_ui_apply(struct gp_ui *ui)
{
    struct gp_err err = {0};
    gp_ui_set_theme(ui);
    /* Invalid texts were rejected by gp_pref_set(). */
    if (gp_proc_order_parse(*ui->prefs.sort ? ui->prefs.sort : "memory", &ui->order, &err) < 0 ||
        gp_top_columns_parse(ui->prefs.columns, ui->columns, &ui->column_count, &err) < 0)
        gp_ui_say(ui, "%s", err.text);
    gp_ui_build_rows(ui);
}

void gp_ui_save(struct gp_ui *ui)
{
    struct gp_err err = {0};
    if (!ui->outside.config_path)
        gp_ui_say(ui, "cannot save: HOME is not set");
    else if (gp_prefs_save(&ui->prefs, ui->outside.config_path, &err) < 0)
        gp_ui_say(ui, "%s", err.text);
    else
        gp_ui_say(ui, "saved to %s", ui->outside.config_path);
}

/* ---- rows ---- */

const struct gp_proc_row *gp_ui_chosen_row(const struct gp_ui *ui)
{
    return ui->chosen < ui->procs.count ? &ui->procs.rows[ui->chosen] : NULL;
}

static struct gp_ui_pin pin_of(const struct gp_proc_row *row)
{
    return row ? (struct gp_ui_pin){row->pid, row->gpu, row->members ? gp_closed_name(row) : 0}
               : (struct gp_ui_pin){0};
}

static bool is_pinned(const struct gp_ui *ui, const struct gp_proc_row *row,
                      const struct gp_ui_pin *pin)
{
    if (pin->group)
        return row->members && gp_closed_name(row) == pin->group;
    return row->pid == pin->pid && (!ui->prefs.per_gpu || row->gpu == pin->gpu);
}

static bool is_below(const struct gp_ui *ui, size_t row, const struct gp_ui_pin *pin)
{
    const struct gp_rows_below below = gp_rows_below(&ui->procs, row);
    for (size_t i = 0; i < below.count; i++)
        if (is_pinned(ui, &below.first[i], pin))
            return true;
    return false;
}

/* Moves the cursor to the row, or to the closed one it is below; returns false if there is none. */
static bool go_to(struct gp_ui *ui, const struct gp_ui_pin *pin)
{
    for (size_t i = 0; (pin->pid || pin->group) && i < ui->procs.count; i++) {
        const struct gp_proc_row *row = &ui->procs.rows[i];
        if (is_pinned(ui, row, pin) || (row->closed && is_below(ui, i, pin))) {
            ui->chosen = i;
            return true;
        }
    }
    return false;
}

/* Moves the cursor to a row, or to the last one. */
static void go_to_row(struct gp_ui *ui, size_t row)
{
    ui->chosen = ui->procs.count == 0 ? 0 : row >= ui->procs.count ? ui->procs.count - 1 : row;
}

void gp_ui_choose(struct gp_ui *ui, size_t row)
{
    go_to_row(ui, row);
    ui->pin = pin_of(gp_ui_chosen_row(ui));
    ui->stand_in = (struct gp_ui_pin){0};
}

bool gp_ui_go_to_process(struct gp_ui *ui, int64_t pid)
{
    struct gp_ui_pin pin = {0};
    for (size_t i = 0; pid && !pin.pid && i < ui->procs.count + ui->procs.closed; i++)
        if (ui->procs.rows[i].pid == pid)
            pin = pin_of(&ui->procs.rows[i]);
    while (go_to(ui, &pin)) {
        const struct gp_proc_row *row = gp_ui_chosen_row(ui);
        if (is_pinned(ui, row, &pin)) {
            gp_ui_choose(ui, ui->chosen);
            return true;
        }
        gp_closed_turn(gp_ui_closed(ui), row);
        gp_ui_build_rows(ui);
    }
    return false;
}

struct gp_closed *gp_ui_closed(struct gp_ui *ui)
{
    return *ui->prefs.filter ? &ui->closed_of_filter : &ui->closed;
}

static bool has_pid(const struct gp_process *processes, size_t count, int64_t pid)
{
    for (size_t i = 0; i < count; i++)
        if (gp_process_value(&processes[i], GP_PID)->i == pid)
            return true;
    return false;
}

bool gp_ui_has_process(const struct gp_ui *ui, int64_t pid)
{
    const struct gp_snapshot *s = ui->snapshot;
    return s && (has_pid(s->processes, s->process_count, pid) ||
                 has_pid(s->ancestors, s->ancestor_count, pid));
}

/* The cursor follows its process, or its group. While a filter or the choice of a GPU hides that,
 * it follows the one that was in its row then; when it is gone, for good. */
static void find_chosen(struct gp_ui *ui)
{
    if (go_to(ui, &ui->pin)) {
        ui->stand_in = (struct gp_ui_pin){0};
        return;
    }
    const bool is_gone = ui->pin.pid && !gp_ui_has_process(ui, ui->pin.pid);
    if (is_gone && ui->followed == ui->pin.pid) {
        gp_ui_say(ui, "process %lld is no longer shown", (long long)ui->followed);
        ui->followed = 0;
    }
    if (!go_to(ui, &ui->stand_in)) {
        go_to_row(ui, ui->chosen);
        ui->stand_in = ui->pin.pid ? pin_of(gp_ui_chosen_row(ui)) : ui->pin;
    }
    if (is_gone && ui->procs.count > 0)
        gp_ui_choose(ui, ui->chosen);
}

struct gp_procs_options gp_ui_procs_options(const struct gp_ui *ui)
{
    static const enum gp_proc_groups groups[GP_TREE__COUNT] = {
        [GP_TREE_YES] = GP_PROC_GROUPS_TREE,
        [GP_TREE_USER] = GP_PROC_GROUPS_USER,
        [GP_TREE_JOB] = GP_PROC_GROUPS_JOB,
    };
    return (struct gp_procs_options){
        .order = ui->order,
        .filter = ui->prefs.filter,
        .gpu = ui->gpu,
        .only_mig = ui->mig >= 0,
        .mig = ui->mig >= 0 ? (unsigned)ui->mig : 0,
        .per_gpu = ui->prefs.per_gpu,
        .reserved = true,
        .groups = groups[ui->prefs.tree],
    };
}

void gp_ui_build_rows(struct gp_ui *ui)
{
    char room[GP_PREF_TEXT_SIZE] = "";
    struct gp_strbuf sort = GP_STRBUF_ON(room, GP_PREF_TEXT_SIZE - 1);
    gp_proc_order_format(&sort, &ui->order);
    (void)snprintf(ui->prefs.sort, sizeof(ui->prefs.sort), "%s", sort.buf);
    gp_strbuf_fini(&sort);
    const struct gp_procs_options options = gp_ui_procs_options(ui);
    if (ui->snapshot && gp_procs_build(&ui->procs, ui->snapshot, &options) < 0)
        gp_ui_say(ui, "out of memory");
    if (!*ui->prefs.filter)
        gp_closed_turn_all(&ui->closed_of_filter, false);
    if (options.groups)
        gp_closed_hide(gp_ui_closed(ui), &ui->procs);
    find_chosen(ui);
}

void gp_ui_refilter(struct gp_ui *ui)
{
    gp_closed_turn_all(&ui->closed_of_filter, false);
    gp_ui_build_rows(ui);
}

/* ---- GPUs ---- */

const struct gp_device *gp_ui_chosen_gpu(const struct gp_ui *ui)
{
    const struct gp_proc_row *row = gp_ui_chosen_row(ui);
    const struct gp_snapshot *s = ui->snapshot;
    unsigned wanted = ui->gpu >= 0 ? (unsigned)ui->gpu : row ? row->gpu : 0;
    for (size_t i = 0; s && i < s->device_count; i++)
        if (s->devices[i].index == wanted && !s->devices[i].is_mig)
            return &s->devices[i];
    return s && s->device_count && ui->gpu < 0 ? &s->devices[0] : NULL;
}

struct gp_span gp_ui_span(const struct gp_ui *ui, uint64_t now_ns)
{
    uint64_t step_ns = ui->prefs.interval_ns << ui->zoom;
    /* A sample may come slightly early or late: it lies in the middle of its step. Steps of several
     * samples are aligned to fixed times, so that older columns do not change. */
    uint64_t end_ns = ui->zoom ? (now_ns / step_ns + 1) * step_ns : now_ns + step_ns / 2;
    uint64_t back_ns = (uint64_t)ui->earlier * step_ns;
    uint64_t number = ui->zoom ? end_ns / step_ns : ui->shown;
    return (struct gp_span){back_ns < end_ns ? end_ns - back_ns : 0, step_ns, number % 2};
}

/* ---- verdicts ---- */

void gp_ui_observe(struct gp_ui *ui, struct gp_verdict_topic topic)
{
    topic.root = ui->outside.root;
    topic.sees_processes = ui->outside.sees_processes;
    ui->details.topic = topic;
    ui->details.has_topic = ui->outside.open_verdict != NULL;
}

/* There is one at a time: that of an earlier page may take a while to end. */
static void start_verdict(struct gp_ui *ui)
{
    struct gp_ui_details *d = &ui->details;
    if (gp_verdict_watch_stop(d->leaving, 0)) {
        d->leaving = NULL;
        d->verdict = gp_verdict_watch_start(&d->topic, ui->outside.open_verdict);
    }
}

void gp_ui_write_verdict(struct gp_ui *ui)
{
    if (ui->details.has_topic && !ui->details.verdict)
        start_verdict(ui);
    const struct gp_verdict_answer answer = gp_verdict_watch_answer(ui->details.verdict);
    gp_verdict_write(&answer, &ui->text);
}

void gp_ui_observe_no_more(struct gp_ui *ui)
{
    struct gp_ui_details *d = &ui->details;
    if (!gp_verdict_watch_stop(d->verdict, GP_TASK_PATIENCE_MS))
        d->leaving = d->verdict;
    d->verdict = NULL;
    d->has_topic = false;
}

/* ---- the screen in front ---- */

void gp_ui_show(struct gp_ui *ui, enum gp_ui_mode mode)
{
    if (ui->screens[ui->mode]->leave)
        ui->screens[ui->mode]->leave(ui);
    ui->mode = mode;
    ui->help.explains = false;
    gp_page_open(&ui->text);
    if (ui->screens[mode]->fill)
        ui->screens[mode]->fill(ui);
}

enum gp_ui_wish gp_page_screen_key(struct gp_ui *ui, int key)
{
    if (!gp_page_key(&ui->text, key, gp_ui_is_vi(ui)))
        gp_ui_show(ui, GP_UI_WATCH);
    return GP_UI_GO_ON;
}

void gp_page_screen_draw(struct gp_ui *ui, const struct gp_box *box)
{
    struct gp_box in = gp_draw_window(box, box->w, box->h, ui->screens[ui->mode]->title);
    gp_page_draw(&ui->text, &in);
}
