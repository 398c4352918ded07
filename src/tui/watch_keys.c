#include "tui/watch_keys.h"

#include "base/strbuf.h"
#include "base/utf8.h"
#include "model/snapshot.h"
#include "tui/gpu_flags.h"
#include "tui/playback.h"
#include "tui/screen.h"
#include "tui/watch_gpus.h"

#include <stdio.h>
#include <string.h>

/* Draws a text at the right, with a head before it. Returns the columns for what is before both. */
static int draw_at_right(const struct gp_box *box, const char *head, const char *text)
{
    enum { GAP = 2 };
    const int w = (int)(gp_utf8_width(head) + gp_utf8_width(text)) + 1;
    const int x = box->w > w ? box->w - w : 1;
    const int end = gp_draw(box, x, 0, GP_INK_STRONG, head);
    gp_draw_left(box, end, 0, box->w - end, GP_INK_STRONG, text);
    return x - GAP;
}

/* What the letters of the selected GPU mean. Returns the columns before it. */
static int draw_flags(const struct gp_ui *ui, const struct gp_box *box)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1024);
    const size_t row = ui->snapshot ? gp_watch_gpu_row(ui) : 0;
    int x = box->w;
    if (ui->snapshot && row < ui->snapshot->device_count) {
        const struct gp_flags_of of = {&ui->snapshot->devices[row], &ui->xids,
                                       ui->snapshot->wall_ns};
        gp_gpu_add_flag_words(&sb, &of);
    }
    if (sb.len > 0) {
        char gpu[16];
        (void)snprintf(gpu, sizeof(gpu), "GPU %d ", ui->gpu);
        x = draw_at_right(box, gpu, sb.buf);
    }
    gp_strbuf_fini(&sb);
    return x;
}

struct key_word {
    enum gp_action action;
    const char *word;
};

/* A key and what it does. Returns the column after it; 0 if there is no room. */
static int draw_key(struct gp_ui *ui, const struct gp_box *box, int x, const struct key_word *key)
{
    const char letter[2] = {gp_ui_is_vi(ui) ? gp_action_vi_letter(key->action) : '\0'};
    const char *first = *letter ? letter : gp_action_keys(key->action);
    const int width = (int)strcspn(first, " ");
    const int end = x + width + (int)strlen(key->word) + 1;
    if (end > box->w)
        return 0;
    const struct gp_box part = gp_box_part(box, x, 0, end - x, 1);
    const struct gp_box name = gp_box_part(&part, 0, 0, width, 1);
    x = gp_draw(box, x + gp_draw(&name, 0, 0, GP_INK_KEY, first), 0, GP_INK_PLAIN, ":");
    x = gp_draw(box, x, 0, GP_INK_PLAIN, key->word) + 1;
    gp_hits_add(&ui->hits, &part, GP_HIT_ACTION, (size_t)key->action);
    return x;
}

/* What "c" would take back; NULL: nothing. */
static const char *what_clears(const struct gp_ui *ui)
{
    return ui->gpu >= 0          ? "all GPUs"
           : ui->tag_count > 0   ? "untag"
           : ui->followed != 0   ? "unfollow"
           : ui->prefs.filter[0] ? "no filter"
                                 : NULL;
}

/* Whether the key would do something. */
static bool is_of_use(const struct gp_ui *ui, enum gp_action action)
{
    switch (action) {
    case GP_ACTION_PANE:
        return gp_watch_may_turn(ui);
    case GP_ACTION_SHOW_GPUS: /* the part that is hidden */
    case GP_ACTION_SHOW_PROCESSES:
        return !gp_watch_may_turn(ui);
    case GP_ACTION_SERIES:
        return ui->prefs.graphs && !ui->series_place;
    default:
        return !gp_playback_hides(ui, action);
    }
}

/* A window in front has keys of its own. */
static void draw_keys_of_window(const struct gp_box *box, int x)
{
    x = gp_draw(box, x, 0, GP_INK_KEY, "Esc");
    x = gp_draw(box, x, 0, GP_INK_PLAIN, ":back") + 1;
    x = gp_draw(box, x, 0, GP_INK_KEY, "?");
    (void)gp_draw(box, x, 0, GP_INK_PLAIN, ":keys of this window");
}

void gp_watch_draw_keys(struct gp_ui *ui, const struct gp_box *box)
{
    const char *const clears = what_clears(ui);
    const bool has_many = ui->snapshot && ui->snapshot->device_count >= 16;
    const struct key_word view = {GP_ACTION_DENSITY, "view"},
                          order = {GP_ACTION_GPU_ORDER, "order"};
    const struct key_word none = {GP_ACTION_NONE, NULL},
                          pause = {GP_ACTION_PAUSE, ui->held ? "resume" : "pause"};
    const struct key_word resume = ui->held ? pause : none, may_pause = ui->held ? none : pause;
    /* while paused, the one to quit keeps its room */
    const struct key_word first = has_many ? order : view, late = has_many ? view : order;
    const struct key_word early = ui->held ? none : first, held_back = ui->held ? first : none;
    const struct key_word of_processes[] = {
        resume,
        {GP_ACTION_HELP, "help"},
        {GP_ACTION_CLEAR, clears},
        {GP_ACTION_SEARCH, "search"},
        {GP_ACTION_FILTER, "filter"},
        {GP_ACTION_SORT, "sort"},
        {GP_ACTION_KILL, "kill"},
        {GP_ACTION_DETAILS, "detail"},
        early,
        {GP_ACTION_PANE, "GPUs"},
        {GP_ACTION_SHOW_GPUS, "GPUs"},
        {GP_ACTION_QUIT, "quit"},
        held_back,
        late,
        {GP_ACTION_TREE, "tree"},
        {GP_ACTION_SETUP, "setup"},
        {GP_ACTION_SERIES, "metric"},
        {GP_ACTION_ADJUST, "adjust"},
        {GP_ACTION_USER, "user"},
        may_pause,
        {GP_ACTION_ALERTS, "alerts"},
        {GP_ACTION_TAG, "tag"},
        {GP_ACTION_PRESET, "preset"},
        {GP_ACTION_COST, "cost"},
    };
    const struct key_word of_gpus[] = {
        resume,
        {GP_ACTION_HELP, "help"},
        {GP_ACTION_CLEAR, clears},
        {GP_ACTION_SORT, "order"},
        {GP_ACTION_DETAILS, "detail"},
        {GP_ACTION_PANE, "processes"},
        {GP_ACTION_SHOW_PROCESSES, "processes"},
        {GP_ACTION_QUIT, "quit"},
        {GP_ACTION_DENSITY, "view"},
        {GP_ACTION_SERIES, "metric"},
        {GP_ACTION_ADJUST, "adjust"},
        {GP_ACTION_ALERTS, "alerts"},
        {GP_ACTION_SETUP, "setup"},
        may_pause,
        {GP_ACTION_PRESET, "preset"},
        {GP_ACTION_COST, "cost"},
    };
    const struct key_word *shown = ui->gpus_have_focus ? of_gpus : of_processes;
    const size_t count = ui->gpus_have_focus ? GP_ARRAY_LEN(of_gpus) : GP_ARRAY_LEN(of_processes);
    const int w = ui->message[0] ? draw_at_right(box, "", ui->message) : draw_flags(ui, box);
    const struct gp_box left = gp_box_part(box, 0, 0, w, 1);
    int x = 1;
    if (ui->mode != GP_UI_WATCH) {
        draw_keys_of_window(&left, x);
        return;
    }
    x = gp_playback_draw_keys(ui, &left, x);
    for (size_t i = 0; i < count && x > 0; i++)
        if (shown[i].word && is_of_use(ui, shown[i].action))
            x = draw_key(ui, &left, x, &shown[i]);
}
