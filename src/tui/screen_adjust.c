/* Changes settings of a GPU: shows values and ranges, asks before each change, and undoes changes.
 * A thread talks to the driver, with the same changer as `gpulse set`. */
#include "tui/screen.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "model/snapshot.h"
#include "sample/changer.h"
#include "tui/gpu_text.h"
#include "tui/task.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const enum gp_control_id offered[] = {
    GP_CONTROL_POWER_LIMIT,        GP_CONTROL_LOCK_GPU_CLOCKS,    GP_CONTROL_LOCK_MEMORY_CLOCKS,
    GP_CONTROL_APPLICATION_CLOCKS, GP_CONTROL_PERSISTENCE,        GP_CONTROL_COMPUTE_MODE,
    GP_CONTROL_FAN_SPEED,          GP_CONTROL_TARGET_TEMPERATURE,
};

enum { OFFERED = GP_ARRAY_LEN(offered), WIDTH = 76, VALUE = 22, RANGE = 47 };

/* Lines: the settings, the description of the selected one, and the question or answer. */
enum { LIST = OFFERED + 1, HELP = 5, ANSWER = 4 };

/* A job for the thread and its result. */
struct gp_adjust_job {
    int (*open)(unsigned index, struct gp_changer **ret, struct gp_err *err);
    unsigned gpu;
    int change; /* index into `offered`; −1: only read */
    struct gp_control_value value;
    struct gp_err err;
    bool is_stuck;
    enum gp_outcome outcome;
    char words[400]; /* of the outcome */
    bool is_known;   /* whether the settings have been read */
    struct gp_setting settings[OFFERED];
};

/* ---- on the thread ---- */

static struct gp_target *find_target(struct gp_changer *changer)
{
    size_t count;
    struct gp_target *targets = gp_changer_targets(changer, &count);
    for (size_t i = 0; i < count; i++) {
        targets[i].left_alone = targets[i].is_mig;
        if (!targets[i].is_mig)
            return &targets[i];
    }
    return NULL;
}

static int change(struct gp_adjust_job *job, struct gp_changer *changer, struct gp_target *target)
{
    enum gp_control_id id = offered[job->change];
    struct gp_change *change = &target->changes[id];
    change->wanted = true;
    change->value = job->value;
    int r = gp_control_check(id, &target->settings[id], &change->value, &job->err);
    if (r == 0)
        r = gp_changer_check(changer, &job->err);
    if (r < 0)
        return r;
    gp_changer_apply(changer);
    job->outcome = gp_target_outcome(target, id);
    (void)snprintf(job->words, sizeof(job->words), "%s",
                   job->outcome == GP_OUTCOME_HUNG ? target->words : change->words);
    return 0;
}

static int work_with(struct gp_adjust_job *job, struct gp_changer *changer)
{
    uint32_t controls = 0;
    struct gp_target *target = find_target(changer);
    if (!target)
        return gp_err_set(&job->err, GP_ENODEV, "GPU %u does not exist", job->gpu);
    for (size_t i = 0; i < OFFERED; i++)
        controls |= UINT32_C(1) << offered[i];
    if (target->code == 0)
        gp_changer_read(changer, controls);
    if (target->code)
        return gp_err_set(&job->err, target->code, "GPU %u: %s", job->gpu, target->words);
    int r = job->change >= 0 ? change(job, changer, target) : 0;
    for (size_t i = 0; i < OFFERED; i++) {
        const struct gp_change *done = &target->changes[offered[i]];
        bool is_after = job->outcome != GP_OUTCOME_HUNG && done->after.status != GP_STATUS_NONE;
        job->settings[i] = is_after ? done->after : target->settings[offered[i]];
    }
    job->is_known = true;
    return r;
}

static void work(void *ctx)
{
    struct gp_adjust_job *job = ctx;
    struct gp_changer *changer;
    int r = job->open(job->gpu, &changer, &job->err);
    job->is_stuck = r == GP_ETIMEOUT;
    if (r < 0)
        return;
    if (work_with(job, changer) < 0) /* before any change */
        job->outcome = GP_OUTCOME_FAILED;
    if (!gp_changer_free(changer))
        job->is_stuck = true;
}

/* ---- on the screen ---- */

static void GP_PRINTF(2, 3) tell(struct gp_ui_adjust *a, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(a->result, sizeof(a->result), fmt, args);
    va_end(args);
}

static void format_value(struct gp_strbuf *sb, const struct gp_adjust_job *job, size_t i)
{
    const struct gp_setting *s = &job->settings[i];
    if (!job->is_known)
        gp_strbuf_adds(sb, "(unknown)");
    else if (s->status == GP_STATUS_OK && s->known)
        gp_control_format(sb, offered[i], &s->value, true);
    else if (s->status == GP_STATUS_OK)
        gp_strbuf_adds(sb, "(not reported)");
    else if (s->status == GP_STATUS_NO_PERMISSION)
        gp_strbuf_adds(sb, "(no permission)");
    else
        gp_strbuf_adds(sb, "(not supported by this GPU)");
}

/* Starts the thread. Does nothing if there is no job. */
static void start(struct gp_ui *ui)
{
    struct gp_ui_adjust *a = &ui->adjust;
    a->job->is_known = false;
    a->job->outcome = GP_OUTCOME_NONE;
    a->job->err = (struct gp_err){0};
    a->job->words[0] = '\0';
    a->task = gp_task_start(work, a->job);
    if (!a->task)
        tell(a, "cannot start a thread");
}

static void describe_result(struct gp_ui *ui)
{
    static const char *const words[] = {
        [GP_OUTCOME_NONE] = "not attempted",
        [GP_OUTCOME_SAME] = "already set",
        [GP_OUTCOME_DONE] = "done",
        [GP_OUTCOME_PENDING] = "accepted; takes effect after a reset",
        [GP_OUTCOME_UNVERIFIED] = "accepted; the driver does not report whether it took effect",
        [GP_OUTCOME_FAILED] = "failed",
        [GP_OUTCOME_HUNG] = "no answer: it is unknown whether the change was made",
    };
    struct gp_ui_adjust *a = &ui->adjust;
    const struct gp_adjust_job *job = a->job;
    const char *more = job->err.code ? job->err.text : job->words;
    if (job->change < 0)
        tell(a, "%.*s", job->err.code ? (int)gp_gpu_trouble_words(job->err.text) : 0,
             job->err.text);
    else
        tell(a, "%s %s: %s%s%s", gp_control_table[offered[job->change]].name, a->text,
             words[job->outcome], *more ? ": " : "", more);
}

/* The newest change of this GPU that can be undone; NULL if there is none. */
static struct gp_ui_undo *newest_change(struct gp_ui_adjust *a)
{
    for (size_t i = a->done_count; i > 0; i--)
        if (a->done[i - 1].gpu == a->gpu)
            return &a->done[i - 1];
    return NULL;
}

static void remove_change(struct gp_ui_adjust *a, struct gp_ui_undo *undo)
{
    size_t i = (size_t)(undo - a->done);
    memmove(undo, undo + 1, (--a->done_count - i) * sizeof(*undo));
}

/* Records a change, or that it was undone. */
static void note_change(struct gp_ui_adjust *a)
{
    struct gp_ui_undo *newest = newest_change(a);
    /* A change that cannot be undone does not block older ones. */
    if (a->undoes && newest)
        remove_change(a, newest);
    if (a->undoes || !gp_outcome_may_have_changed(a->job->outcome) || !a->change.value[0])
        return;
    if (a->done_count == GP_UI_UNDOS)
        remove_change(a, &a->done[0]);
    a->done[a->done_count++] = a->change;
}

void gp_adjust_collect(struct gp_ui *ui)
{
    struct gp_ui_adjust *a = &ui->adjust;
    if (!a->task || !gp_task_end(a->task, 0))
        return;
    a->task = NULL;
    ui->is_stuck = ui->is_stuck || a->job->is_stuck;
    describe_result(ui);
    if (a->job->change >= 0)
        note_change(a);
}

static void fill_adjust(struct gp_ui *ui)
{
    struct gp_ui_adjust *a = &ui->adjust;
    const struct gp_device *device = gp_ui_chosen_gpu(ui);
    if (a->job)
        return; /* already open */
    if (!device || !ui->outside.open_changer) {
        gp_ui_say(ui, "no GPU here");
        ui->mode = GP_UI_WATCH;
        return;
    }
    a->job = calloc(1, sizeof(*a->job));
    if (!a->job) {
        gp_ui_say(ui, "out of memory");
        ui->mode = GP_UI_WATCH;
        return;
    }
    gp_menu_open(&ui->menu, OFFERED);
    a->gpu = device->index;
    a->job->open = ui->outside.open_changer;
    a->job->gpu = device->index;
    a->job->change = -1;
    a->result[0] = '\0';
    a->asks = false;
    start(ui);
}

static void leave_adjust(struct gp_ui *ui)
{
    struct gp_ui_adjust *a = &ui->adjust;
    if (a->task && !gp_task_end(a->task, GP_TASK_PATIENCE_MS)) {
        ui->is_stuck = true; /* the thread owns the job, and may never finish */
    } else {
        if (a->task && a->job->change >= 0)
            note_change(a);
        free(a->job);
    }
    a->job = NULL;
    a->task = NULL;
    gp_menu_open(&ui->menu, 0);
}

/* ---- keys ---- */

/* Asks for confirmation, unless the value is out of range. */
static void ask_for(struct gp_ui_adjust *a, size_t i)
{
    struct gp_err err = {0};
    struct gp_control_value value;
    a->asks = gp_control_parse(offered[i], a->text, &value, &err) == 0 &&
              gp_control_check(offered[i], &a->job->settings[i], &value, &err) == 0;
    if (a->asks)
        a->job->value = value;
    else
        tell(a, "%s", err.text);
}

static void on_value(struct gp_ui *ui, enum gp_edit_step step)
{
    ui->adjust.undoes = false;
    if (step == GP_EDIT_KEPT)
        ask_for(&ui->adjust, ui->menu.chosen);
}

static void begin_change(struct gp_ui *ui)
{
    struct gp_ui_adjust *a = &ui->adjust;
    size_t i = ui->menu.chosen;
    if (ui->prefs.read_only) {
        tell(a, "read-only: cannot change settings");
        return;
    }
    if (!a->job->is_known || a->job->settings[i].status != GP_STATUS_OK)
        return;
    struct gp_strbuf sb = GP_STRBUF_INIT(GP_PREF_TEXT_SIZE - 1);
    if (a->job->settings[i].known)
        gp_control_format(&sb, offered[i], &a->job->settings[i].value, false);
    (void)snprintf(a->text, sizeof(a->text), "%s", sb.buf);
    gp_strbuf_fini(&sb);
    a->result[0] = '\0';
    gp_ui_edit(ui, a->text, gp_control_table[offered[i]].name, on_value);
}

/* Starts the change, and records how to undo it. */
static void send(struct gp_ui *ui, size_t i)
{
    struct gp_ui_adjust *a = &ui->adjust;
    struct gp_strbuf sb = GP_STRBUF_INIT(GP_PREF_TEXT_SIZE - 1);
    (void)gp_control_undo(&sb, offered[i], &a->job->settings[i], &a->job->value);
    a->change = (struct gp_ui_undo){.gpu = a->gpu, .control = i};
    (void)snprintf(a->change.value, sizeof(a->change.value), "%s", sb.buf);
    gp_strbuf_fini(&sb);
    a->job->change = (int)i;
    a->asks = false;
    start(ui);
}

/* Asks to restore the value from before the newest change. */
static void undo(struct gp_ui *ui)
{
    struct gp_ui_adjust *a = &ui->adjust;
    struct gp_ui_undo *newest = newest_change(a);
    if (!newest) {
        tell(a, "nothing to undo");
        return;
    }
    (void)snprintf(a->text, sizeof(a->text), "%s", newest->value);
    ui->menu.chosen = newest->control;
    a->undoes = true;
    ask_for(a, newest->control);
    if (!a->asks)
        remove_change(a, newest);
}

static enum gp_ui_wish key_in_adjust(struct gp_ui *ui, int key)
{
    struct gp_ui_adjust *a = &ui->adjust;
    bool vi = gp_ui_is_vi(ui);
    enum gp_action action = gp_key_action(key, vi);
    bool leaves = action == GP_ACTION_CLEAR || action == GP_ACTION_QUIT;
    if (a->asks && (key == 'y' || key == 'Y'))
        send(ui, ui->menu.chosen);
    else if (a->asks && (leaves || key == 'n'))
        a->asks = false;
    else if (a->asks)
        return GP_UI_GO_ON;
    else if (leaves)
        gp_ui_show(ui, GP_UI_WATCH);
    else if (a->task) /* the thread owns the settings */
        (void)gp_menu_key(&ui->menu, key, vi);
    else if (key == GP_KEY_ENTER)
        begin_change(ui);
    else if (key == 'u')
        undo(ui);
    else
        (void)gp_menu_key(&ui->menu, key, vi);
    return GP_UI_GO_ON;
}

/* ---- drawing ---- */

/* What may be set: in the column of ranges, or as far before it, from column x on, as it needs. */
static void draw_range(const struct gp_box *line, int x, const struct gp_setting *s,
                       enum gp_control_id id)
{
    const bool is_power = id == GP_CONTROL_POWER_LIMIT;
    const double unit = is_power ? 1000 : 1;
    char text[GP_UI_TEXT_SIZE];
    if (s->has_range)
        (void)snprintf(text, sizeof(text), is_power ? "%.0f to %.0f W" : "%.0f to %.0f",
                       (double)s->min / unit, (double)s->max / unit);
    else
        (void)snprintf(text, sizeof(text), "%s", gp_control_table[id].syntax);
    const int room = line->w - (int)gp_utf8_width(text);
    const int at = room >= RANGE ? RANGE : room > x ? room : x;
    if (room >= x || RANGE < line->w)
        gp_draw_left(line, at, 0, line->w - at, GP_INK_PLAIN, text);
}

static void draw_setting(const struct gp_box *line, size_t i, const void *ctx)
{
    const struct gp_ui *ui = ctx;
    const struct gp_ui_adjust *a = &ui->adjust;
    const struct gp_setting *s = &a->job->settings[i];
    struct gp_strbuf sb = GP_STRBUF_INIT(GP_CONTROL_TEXT_SIZE);
    (void)gp_draw(line, 0, 0, GP_INK_KEY, gp_control_table[offered[i]].name);
    if (a->task)
        return;
    format_value(&sb, a->job, i);
    if (s->status == GP_STATUS_OK && a->job->is_known) {
        gp_draw_left(line, VALUE, 0, RANGE - VALUE - 1, GP_INK_STRONG, sb.buf);
        draw_range(line, VALUE + (int)gp_utf8_width(sb.buf) + 2, s, offered[i]);
    } else {
        gp_draw_left(line, VALUE, 0, line->w - VALUE, GP_INK_DIM, sb.buf);
    }
    gp_strbuf_fini(&sb);
}

/* "set power-limit of GPU 3 from 700 W to 400 W? y/n" */
static void draw_question(const struct gp_box *box, const struct gp_ui *ui)
{
    const struct gp_ui_adjust *a = &ui->adjust;
    size_t i = ui->menu.chosen;
    const struct gp_setting *s = &a->job->settings[i];
    struct gp_strbuf sb = GP_STRBUF_INIT(4096);
    gp_strbuf_addf(&sb, "set %s of GPU %u ", gp_control_table[offered[i]].name, a->gpu);
    if (s->known) {
        gp_strbuf_adds(&sb, "from ");
        gp_control_format(&sb, offered[i], &s->value, true);
        gp_strbuf_addc(&sb, ' ');
    }
    gp_strbuf_adds(&sb, "to ");
    gp_control_format(&sb, offered[i], &a->job->value, true);
    gp_strbuf_adds(&sb, "? y/n");
    (void)gp_draw_wrapped(box, 0, GP_INK_CRITICAL, sb.buf);
    gp_strbuf_fini(&sb);
}

/* The question, progress or result. Its lines are reserved even on a small screen. */
static void draw_answer(const struct gp_box *box, struct gp_ui *ui)
{
    struct gp_ui_adjust *a = &ui->adjust;
    if (a->task) {
        (void)gp_draw(box, 0, 0, GP_INK_STRONG, "waiting for the driver…");
        return;
    }
    if (a->asks) {
        draw_question(box, ui);
        return;
    }
    int y = gp_draw_wrapped(box, 0, GP_INK_STRONG, a->result);
    const struct gp_ui_undo *newest = newest_change(a);
    if (newest)
        (void)gp_drawf(box, 0, y, GP_INK_PLAIN, "u: restore %s %s",
                       gp_control_table[offered[newest->control]].name, newest->value);
}

static void draw_adjust(struct gp_ui *ui, const struct gp_box *box)
{
    const struct gp_ui_adjust *a = &ui->adjust;
    const struct gp_control *control = &gp_control_table[offered[ui->menu.chosen]];
    char text[512];
    (void)snprintf(text, sizeof(text), "GPU %u · Enter change, u undo, q back", a->gpu);
    struct gp_box in = gp_draw_window(box, WIDTH, LIST + HELP + ANSWER + 2, text);
    int answer = in.h > LIST ? ANSWER : in.h > 4 ? 2 : 1;
    int help = in.h >= LIST + HELP + ANSWER ? HELP : 0;
    struct gp_box part = gp_box_part(&in, 0, 0, in.w, in.h - help - answer);
    gp_menu_draw(&ui->menu, &part, &ui->hits, draw_setting, ui);
    part = gp_box_part(&in, 0, in.h - help - answer, in.w, help - 1);
    (void)snprintf(text, sizeof(text), "%s; %s; needs %s; lasts %s", control->summary,
                   control->syntax, control->needs, control->lasts);
    (void)gp_draw_wrapped(&part, 0, GP_INK_DIM, text);
    part = gp_box_part(&in, 0, in.h - answer, in.w, answer);
    draw_answer(&part, ui);
}

const struct gp_screen gp_screen_adjust = {
    .key = key_in_adjust, .draw = draw_adjust, .fill = fill_adjust, .leave = leave_adjust};
