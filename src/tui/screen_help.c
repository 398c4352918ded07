/* Help: a first page with what matters, in two columns; a list of everything, which can be
 * searched; and a window that explains the menu or page in front. */
#include "tui/screen.h"

#include "tui/playback.h"

#include <stdio.h>
#include <string.h>

/* ---- the first page ---- */

/* The keys of the action, or the label. */
struct row {
    enum gp_action action;
    const char *label, *words;
    enum gp_ink ink; /* of the label */
};

struct part {
    const char *title;
    const struct row *rows;
    int count;
};

enum {
    LABEL = 12,
    SHEET_W = 76,
    SHEET_H = 22,
    HALF_MAX = 44,
    TWO_COLUMNS_FROM = 110, /* whose words are long */
    MORE_LEAST = 3,         /* lines of a part below the first ones */
};

#define DOES(action, words)                                                                        \
    {                                                                                              \
        GP_ACTION_##action, NULL, words, GP_INK_KEY                                                \
    }
#define KEYS(label, words)                                                                         \
    {                                                                                              \
        GP_ACTION_NONE, label, words, GP_INK_KEY                                                   \
    }
#define SIGN(ink, label, words)                                                                    \
    {                                                                                              \
        GP_ACTION_NONE, label, words, GP_INK_##ink                                                 \
    }

static const struct row keys[] = {
    DOES(QUIT, "quit; in a page: back"),
    KEYS("↑ ↓ PgUp…", "move"),
    DOES(PANE, "to GPUs or processes"),
    DOES(DETAILS, "all about it"),
    DOES(DIGIT, "only this GPU; again: all"),
    KEYS("f u", "filter; only one user"),
    DOES(SEARCH, "search; n N: next, back"),
    DOES(SORT, "sort; I reverses"),
    KEYS("P M T", "by SMs, memory, time"),
    KEYS("t ← → *", "tree; fold one, or all"),
    DOES(TAG, "tag; Esc untags all"),
    DOES(KILL, "end it; asks first"),
    DOES(DENSITY, "cards, bars, lines, grid"),
    DOES(GPU_ORDER, "order of the GPUs"),
    DOES(SERIES, "graph another metric"),
    KEYS("p D L R H", "presets; show, hide"),
    DOES(ALERTS, "what needs attention"),
    DOES(ADJUST, "power, clocks of the GPU"),
    DOES(PAUSE, "freeze"),
    DOES(SETUP, "setup; S saves it"),
};

static const struct row colors[] = {
    SIGN(LOW, "load", "any utilization"),
    SIGN(MEMORY, "memory", "in use"),
    SIGN(MEDIUM, "idle", "memory held, nothing runs"),
    SIGN(HIGH, "trouble", "full, hot, slowed by heat"),
    SIGN(CRITICAL, "failed", "lost, errors"),
    SIGN(STALE, "stale", "last known value"),
};

static const struct row letters[] = {
    SIGN(CRITICAL, "!", "no answer"),
    SIGN(CRITICAL, "E", "memory errors"),
    SIGN(CRITICAL, "R", "needs a reset"),
    SIGN(CRITICAL, "X", "Xid error in the last hour"),
    SIGN(HIGH, "O", "orphaned memory"),
    SIGN(HIGH, "T H", "slowed by heat, hardware"),
    SIGN(DIM, "P S", "power limit, sync boost"),
};

static const struct row mouse[] = {
    KEYS("click", "select; twice: details"),
    KEYS("heading", "sort by it; again: reverse"),
    KEYS("Shift+drag", "select text"),
};

#define PART(title, rows)                                                                          \
    {                                                                                              \
        title, rows, (int)GP_ARRAY_LEN(rows)                                                       \
    }

static const struct part left[] = {PART("keys", keys)};
static const struct part right[] = {PART("colors", colors), PART("letters next to a GPU", letters),
                                    PART("mouse", mouse)};

/* Actions that a row above is about, though it does not name them. */
static const enum gp_action covered[] = {
    GP_ACTION_UP,        GP_ACTION_DOWN,        GP_ACTION_PAGE_UP, GP_ACTION_PAGE_DOWN,
    GP_ACTION_NEXT,      GP_ACTION_CLEAR,       GP_ACTION_REVERSE, GP_ACTION_SORT_SM,
    GP_ACTION_SORT_TIME, GP_ACTION_SORT_MEMORY, GP_ACTION_HELP,    GP_ACTION_PRESET,
    GP_ACTION_FILTER,    GP_ACTION_PREVIOUS,    GP_ACTION_SAVE,    GP_ACTION_UNTAG,
    GP_ACTION_USER,      GP_ACTION_TREE,        GP_ACTION_FOLD_ALL,
};

static bool is_above(enum gp_action action)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(covered); i++)
        if (covered[i] == action)
            return true;
    for (size_t i = 0; i < GP_ARRAY_LEN(keys); i++)
        if (keys[i].action == action)
            return true;
    return false;
}

/* The first key of an action. */
static void add_label(const struct gp_ui *ui, const struct row *row, char ret[GP_UI_TEXT_SIZE])
{
    const char *names = row->action ? gp_action_keys(row->action) : row->label;
    const char letter[2] = {gp_ui_is_vi(ui) ? gp_action_vi_letter(row->action) : '\0'};
    const int n = row->action ? (int)strcspn(names, " ") : (int)strlen(names);
    (void)snprintf(ret, GP_UI_TEXT_SIZE, "%.*s", *letter ? 1 : n, *letter ? letter : names);
}

static void draw_parts(const struct gp_ui *ui, const struct gp_box *box, const struct part *parts,
                       size_t count)
{
    int y = 0;
    for (size_t p = 0; p < count; p++) {
        (void)gp_draw(box, 0, y++, GP_INK_TITLE, parts[p].title);
        for (int i = 0; i < parts[p].count; i++, y++) {
            const struct row *row = &parts[p].rows[i];
            char label[GP_UI_TEXT_SIZE];
            add_label(ui, row, label);
            (void)gp_draw(box, 1, y, row->ink, label);
            gp_draw_left(box, LABEL, y, box->w - LABEL, GP_INK_PLAIN, row->words);
        }
        y++;
    }
}

/* A part that has room below the first ones. */
struct more {
    const char *title;
    struct row rows[(int)GP_ACTION__COUNT > (int)GP_PROC_COLUMN__COUNT
                        ? (int)GP_ACTION__COUNT
                        : (int)GP_PROC_COLUMN__COUNT];
    int count;
};

static void add_more(struct more *more, enum gp_ink ink, const char *label, const char *words)
{
    more->rows[more->count++] = (struct row){GP_ACTION_NONE, label, words, ink};
}

/* In two columns, if words have room there. Returns the line after it. */
static int draw_more(const struct gp_ui *ui, const struct gp_box *box, int y,
                     const struct more *more)
{
    const int columns = box->w >= TWO_COLUMNS_FROM ? 2 : 1;
    const int room = box->h - y - 1; /* below the title */
    const int each = (more->count + columns - 1) / columns;
    const int lines = each < room ? each : room;
    if (lines < MORE_LEAST)
        return y;
    for (int i = 0; i < columns; i++) {
        const int rest = more->count - i * lines;
        const struct part part = {i == 0 ? more->title : "", &more->rows[i * lines],
                                  rest < lines ? rest : lines};
        const struct gp_box half =
            gp_box_part(box, i * box->w / columns, y, box->w / columns - 1, lines + 1);
        draw_parts(ui, &half, &part, 1);
    }
    return y + lines + 2;
}

static int line_count(const struct gp_box *box, const struct more *more)
{
    const int columns = box->w >= TWO_COLUMNS_FROM ? 2 : 1;
    return (more->count + columns - 1) / columns + 2;
}

/* The other keys, and the columns. Returns whether there is room for all of them. */
static bool draw_others(const struct gp_ui *ui, const struct gp_box *box, int y)
{
    struct more others = {.title = "more keys"};
    struct more shown = {.title = "columns of processes"};
    for (int a = 1; a < GP_ACTION__COUNT; a++)
        if (!is_above((enum gp_action)a))
            add_more(&others, GP_INK_KEY, gp_action_keys((enum gp_action)a),
                     gp_action_help((enum gp_action)a));
    for (int c = 0; c < GP_PROC_COLUMN__COUNT; c++)
        add_more(&shown, GP_INK_TITLE, gp_proc_column_table[c].title, gp_proc_column_table[c].help);
    const int after = draw_more(ui, box, y, &others);
    const int end = draw_more(ui, box, after, &shown);
    const int lines = line_count(box, &others) + line_count(box, &shown);
    return end - y >= lines;
}

static void draw_sheet(const struct gp_ui *ui, const struct gp_box *box)
{
    const struct gp_box above = gp_box_part(box, 0, 0, box->w, box->h - 1);
    /* in the columns of what is below, if that has two */
    const int most = box->w >= TWO_COLUMNS_FROM ? box->w : HALF_MAX;
    const int half = box->w / 2 < most ? box->w / 2 : most;
    const struct gp_box first = gp_box_part(box, 0, 0, half - 1, box->h - 1);
    const struct gp_box second = gp_box_part(box, half, 0, half, box->h - 1);
    draw_parts(ui, &first, left, GP_ARRAY_LEN(left));
    draw_parts(ui, &second, right, GP_ARRAY_LEN(right));
    const bool is_all = draw_others(ui, &above, SHEET_H);
    const int x =
        is_all ? 0 : gp_draw(box, 0, box->h - 1, GP_INK_DIM, "PgDn all keys and columns · ");
    (void)gp_draw(box, x, box->h - 1, GP_INK_DIM, "/ search · q back · ? explains menus, too");
}

/* ---- the list ---- */

static void add_rows(struct gp_ui *ui, const struct part *part)
{
    gp_page_head(&ui->text, part->title);
    for (int i = 0; i < part->count; i++)
        gp_page_add(&ui->text, GP_INK_PLAIN, part->rows[i].label, part->rows[i].words);
}

static void fill_help(struct gp_ui *ui)
{
    struct gp_page *page = &ui->text;
    gp_page_clear(page);
    if (ui->outside.player) {
        for (int a = 1; a < GP_PLAY__COUNT; a++)
            gp_page_add(page, GP_INK_PLAIN, gp_play_keys((enum gp_play_action)a),
                        gp_play_help((enum gp_play_action)a));
        gp_page_head(page, "other keys");
    }
    for (int a = 1; a < GP_ACTION__COUNT; a++) {
        char names[32];
        char vi = gp_ui_is_vi(ui) ? gp_action_vi_letter((enum gp_action)a) : '\0';
        (void)snprintf(names, sizeof(names), vi ? "%s %c" : "%s", gp_action_keys((enum gp_action)a),
                       vi);
        gp_page_add(page, GP_INK_PLAIN, names, gp_action_help((enum gp_action)a));
    }
    for (size_t p = 0; p < GP_ARRAY_LEN(right); p++)
        add_rows(ui, &right[p]);
    gp_page_head(page, "processes");
    for (int c = 0; c < GP_PROC_COLUMN__COUNT; c++)
        gp_page_add(page, GP_INK_PLAIN, gp_proc_column_table[c].title,
                    gp_proc_column_table[c].help);
}

/* The list follows the first page, and precedes it in a recording, which has keys of its own. */
static enum gp_ui_wish key_in_help(struct gp_ui *ui, int key)
{
    const enum gp_action action = gp_key_action(key, gp_ui_is_vi(ui));
    const bool was_sheet = ui->help.is_sheet;
    const bool is_back = action == GP_ACTION_UP || action == GP_ACTION_PAGE_UP;
    if (was_sheet && (action == GP_ACTION_DOWN || action == GP_ACTION_PAGE_DOWN ||
                      action == GP_ACTION_RIGHT || key == ' ')) {
        ui->help.on_list = true;
        return GP_UI_GO_ON;
    }
    if (!was_sheet && !ui->text.is_typing && ui->text.first == 0 && is_back) {
        ui->help.on_list = false;
        return GP_UI_GO_ON;
    }
    if (was_sheet && action == GP_ACTION_SEARCH)
        ui->help.on_list = true;
    return gp_page_screen_key(ui, key);
}

static void draw_help(struct gp_ui *ui, const struct gp_box *box)
{
    struct gp_box in = gp_draw_window(box, box->w, box->h, "help · q back");
    ui->help.is_sheet =
        !ui->outside.player && !ui->help.on_list && in.w >= SHEET_W && in.h >= SHEET_H;
    if (ui->help.is_sheet)
        draw_sheet(ui, &in);
    else
        gp_page_draw(&ui->text, &in);
}

static void leave_help(struct gp_ui *ui)
{
    ui->help.on_list = ui->help.is_sheet = false;
}

const struct gp_screen gp_screen_help = {
    .key = key_in_help, .draw = draw_help, .fill = fill_help, .leave = leave_help};

/* ---- what is in front ---- */

#define MOVES "↑ ↓ PgUp PgDn\tmove\n"
#define READS "↑ ↓ PgUp PgDn\tscroll\n← →\tscroll long lines\n/ n N\tsearch, next, previous match\n"

/* Lines of keys and what they do. */
static const char *const explanations[GP_UI__COUNT] = {
    [GP_UI_SORT] = MOVES "a letter\tto the next column that begins with it\n"
                         "Enter\tsort by this column; the columns before it break ties\n"
                         "I\tthe same in the opposite order\n"
                         "Esc q\tback, without a change\n"
                         "\tIn the table, I reverses the order, and a click on a heading sorts.\n",
    [GP_UI_GPU_ORDER] = MOVES "a letter\tto the next order that begins with it\n"
                              "Enter\torder the GPUs like that; the cursor goes to the first\n"
                              "Esc q\tback, without a change\n"
                              "\tOn the main screen, o goes to the next order.\n",
    [GP_UI_USERS] = MOVES "a letter\tto the next user that begins with it\n"
                          "Enter\tshow only this user's processes: user=NAME in the filter\n"
                          "Esc q\tback, without a change\n",
    [GP_UI_SIGNAL] =
        MOVES "Enter\tsend the chosen signal\n"
              "K\tsend KILL\n"
              "Esc q n\tback, without another signal\n"
              "\tTERM asks a program to end, so that it can save its work. KILL ends it "
              "at once. The signal reaches only the processes that are named here, even if "
              "their numbers are used again.\n",
    [GP_UI_SETUP] = MOVES "← → Space\tprevious, next value; the screen above follows at once\n"
                          "Enter\ttype a text; Esc drops it\n"
                          "S\tsave all of it\n"
                          "q Esc C\tback; what is not saved stays until gpulse top ends\n",
    [GP_UI_ADJUST] = MOVES "Enter\tchange this setting: type or choose a value, then y\n"
                           "Esc q\tback\n"
                           "\tBelow the list stands what the GPU allows, and how to undo a change. "
                           "Most settings need root.\n",
    [GP_UI_ALERTS] =
        MOVES "Enter\tgo to the GPU or the process of the alert\n"
              "! q Esc\tback\n"
              "\tThe worst come first. Below stands what the chosen one means and what "
              "helps; at the right a command or a hint.\n",
    [GP_UI_GPU] = READS "q Esc Enter\tback\n",
    [GP_UI_PROCESS] = READS "q Esc Enter\tback\n",
    [GP_UI_COST] = READS "q Esc Enter\tback\n",
};

bool gp_help_key(struct gp_ui *ui, int key)
{
    if (ui->help.explains) {
        ui->help.explains = false;
        return true;
    }
    if ((key != '?' && key != GP_KEY_F1) || !explanations[ui->mode] || ui->text.is_typing ||
        ui->adjust.asks)
        return false;
    ui->help.explains = true;
    return true;
}

void gp_help_draw(const struct gp_ui *ui, const struct gp_box *box)
{
    enum { WIDTH = 72, KEYS_W = 15, MORE = 5 }; /* lines of the frame, and wrapped ones */
    if (!ui->help.explains || !explanations[ui->mode])
        return;
    int lines = MORE;
    for (const char *p = explanations[ui->mode]; *p; p++)
        lines += *p == '\n';
    struct gp_box in = gp_draw_window(box, WIDTH, lines, "help · any key: back");
    int y = 0;
    for (const char *line = explanations[ui->mode]; *line; line = strchr(line, '\n') + 1) {
        const int label = (int)strcspn(line, "\t");
        const char *words = line + label + 1;
        const int from = label ? KEYS_W : 0;
        char text[256];
        (void)snprintf(text, sizeof(text), "%.*s", (int)strcspn(words, "\n"), words);
        const struct gp_box part = gp_box_part(&in, from, 0, in.w - from, in.h);
        (void)gp_drawf(&in, 0, y, GP_INK_KEY, "%.*s", label, line);
        y = gp_draw_wrapped(&part, y, GP_INK_PLAIN, text);
    }
}
