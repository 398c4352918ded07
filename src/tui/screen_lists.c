/* Lists to select from: the sort column, the order of the GPUs, and the user whose processes are
 * shown. */
#include "tui/screen.h"

#include "tui/watch_gpus.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef const char *(*list_name)(const struct gp_ui *ui, size_t i);

/* Goes to the next line whose name begins with this letter. */
static void choose_by_letter(struct gp_ui *ui, int letter, list_name name)
{
    size_t count = ui->menu.count;
    for (size_t step = 1; step <= count; step++) {
        size_t i = (ui->menu.chosen + step) % count;
        if (tolower((unsigned char)*name(ui, i)) == tolower(letter)) {
            ui->menu.chosen = i;
            return;
        }
    }
}

/* Enter selects, Esc and q leave the list, and no other key does. */
static enum gp_ui_wish key_in_list(struct gp_ui *ui, int key, list_name name,
                                   void (*take)(struct gp_ui *ui))
{
    bool leaves = key == GP_KEY_ENTER || key == GP_KEY_ESCAPE || key == 'q';
    if (key == GP_KEY_ENTER)
        take(ui);
    if (leaves)
        gp_ui_show(ui, GP_UI_WATCH);
    else if (!gp_menu_key(&ui->menu, key, gp_ui_is_vi(ui)) && key > ' ' && key < 0x7f)
        choose_by_letter(ui, key, name);
    return GP_UI_GO_ON;
}

static void draw_list(struct gp_ui *ui, const struct gp_box *box, int w, const char *title,
                      void (*draw)(const struct gp_box *line, size_t i, const void *ctx))
{
    struct gp_box in = gp_draw_window(box, w, (int)ui->menu.count + 2, title);
    gp_menu_draw(&ui->menu, &in, &ui->hits, draw, ui);
}

/* ---- sorting ---- */

static void fill_sort(struct gp_ui *ui)
{
    if (ui->menu.count != GP_PROC_COLUMN__COUNT) {
        gp_menu_open(&ui->menu, GP_PROC_COLUMN__COUNT);
        ui->menu.chosen = ui->order.count ? (size_t)ui->order.by[0].column : 0;
    }
}

static void take_sort(struct gp_ui *ui)
{
    gp_proc_order_put(&ui->order, (enum gp_proc_column)ui->menu.chosen);
    gp_ui_build_rows(ui);
}

static const char *column_name(const struct gp_ui *ui, size_t i)
{
    (void)ui;
    return gp_proc_column_table[i].title;
}

/* I: in the opposite order, at once. */
static enum gp_ui_wish key_in_sort(struct gp_ui *ui, int key)
{
    if (gp_key_action(key, gp_ui_is_vi(ui)) == GP_ACTION_REVERSE) {
        const bool is_new = ui->menu.chosen != (size_t)ui->order.by[0].column;
        const bool was = ui->order.by[0].reversed;
        gp_proc_order_put(&ui->order, (enum gp_proc_column)ui->menu.chosen);
        ui->order.by[0].reversed = is_new || !was;
        gp_ui_build_rows(ui);
        gp_ui_show(ui, GP_UI_WATCH);
        return GP_UI_GO_ON;
    }
    return key_in_list(ui, key, column_name, take_sort);
}

static void draw_column(const struct gp_box *line, size_t i, const void *ctx)
{
    (void)ctx;
    (void)gp_draw(line, 0, 0, GP_INK_KEY, gp_proc_column_table[i].title);
    gp_draw_left(line, 11, 0, line->w - 11, GP_INK_PLAIN, gp_proc_column_table[i].help);
}

static void draw_sort(struct gp_ui *ui, const struct gp_box *box)
{
    draw_list(ui, box, 78, "sort by · Enter select, I reversed, Esc cancel", draw_column);
}

static void leave_list(struct gp_ui *ui)
{
    gp_menu_open(&ui->menu, 0);
}

const struct gp_screen gp_screen_sort = {
    .key = key_in_sort, .draw = draw_sort, .fill = fill_sort, .leave = leave_list};

/* ---- the order of the GPUs ---- */

static const char *const orders[] = {
    [GP_ORDER_AUTO] = "by index; problems first in a grid that does not show all",
    [GP_ORDER_INDEX] = "as the driver numbers them",
    [GP_ORDER_LOAD] = "the busiest first; within 3 % they keep their places",
    [GP_ORDER_IDLE] = "the least used first",
    [GP_ORDER_FREE] = "the most free memory first",
    [GP_ORDER_TEMPERATURE] = "the hottest first",
    [GP_ORDER_TROUBLE] = "those with problems first",
};

static void fill_gpu_order(struct gp_ui *ui)
{
    if (ui->menu.count > 0)
        return;
    gp_menu_open(&ui->menu, GP_ARRAY_LEN(orders));
    ui->menu.chosen = (size_t)ui->prefs.gpu_order;
}

static void take_gpu_order(struct gp_ui *ui)
{
    ui->prefs.gpu_order = (int)ui->menu.chosen;
    gp_watch_reorder(ui);
}

static const char *order_name(const struct gp_ui *ui, size_t i)
{
    (void)ui;
    return i == GP_ORDER_AUTO ? "auto" : gp_gpu_order_words[i];
}

static enum gp_ui_wish key_in_gpu_order(struct gp_ui *ui, int key)
{
    return key_in_list(ui, key, order_name, take_gpu_order);
}

static void draw_order(const struct gp_box *line, size_t i, const void *ctx)
{
    (void)gp_draw(line, 0, 0, GP_INK_KEY, order_name(ctx, i));
    gp_draw_left(line, 13, 0, line->w - 13, GP_INK_PLAIN, orders[i]);
}

static void draw_gpu_order(struct gp_ui *ui, const struct gp_box *box)
{
    draw_list(ui, box, 76, "GPUs by · Enter select, Esc cancel", draw_order);
}

const struct gp_screen gp_screen_gpu_order = {
    .key = key_in_gpu_order, .draw = draw_gpu_order, .fill = fill_gpu_order, .leave = leave_list};

/* ---- users ---- */

enum { USERS_MAX = 64 };

static int compare_names(const void *a, const void *b)
{
    const char *const *x = a;
    const char *const *y = b;
    return strcmp(*x, *y);
}

/* The users with processes in the snapshot, sorted. The names belong to the snapshot. */
static size_t find_users(const struct gp_ui *ui, const char *ret[USERS_MAX])
{
    size_t count = 0;
    struct gp_procs procs = {.rows = NULL};
    const struct gp_procs_options all = {.gpu = -1};
    if (!ui->snapshot || gp_procs_build(&procs, ui->snapshot, &all) < 0)
        return 0;
    for (size_t i = 0; i < procs.count && count < USERS_MAX; i++) {
        const char *user = procs.rows[i].user;
        size_t at = 0;
        while (user && at < count && strcmp(ret[at], user) != 0)
            at++;
        if (user && at == count)
            ret[count++] = user;
    }
    gp_procs_fini(&procs);
    qsort(ret, count, sizeof(*ret), compare_names);
    return count;
}

/* Filled once when it is opened, so that lines do not change while one is selected. */
static void fill_users(struct gp_ui *ui)
{
    const char *users[USERS_MAX];
    if (ui->menu.count > 0)
        return;
    size_t count = find_users(ui, users);
    gp_page_add(&ui->text, GP_INK_PLAIN, "", "all");
    for (size_t i = 0; i < count; i++)
        gp_page_add(&ui->text, GP_INK_PLAIN, "", users[i]);
    gp_menu_open(&ui->menu, ui->text.count);
}

static bool is_about_user(const char *word)
{
    return strncmp(word, "user:", 5) == 0 || strncmp(word, "user=", 5) == 0;
}

/* Replaces the user in the filter with the selected one. */
static void take_user(struct gp_ui *ui)
{
    char text[GP_PREF_TEXT_SIZE] = "";
    for (const char *p = ui->prefs.filter; *p;) {
        size_t n = strcspn(p, " ");
        size_t at = strlen(text);
        if (n > 0 && !is_about_user(p))
            (void)snprintf(text + at, sizeof(text) - at, "%s%.*s", at ? " " : "", (int)n, p);
        p += n + (p[n] == ' ');
    }
    size_t at = strlen(text);
    if (ui->menu.chosen > 0)
        (void)snprintf(text + at, sizeof(text) - at, "%suser=%s", at ? " " : "",
                       gp_page_value(&ui->text, ui->menu.chosen));
    memcpy(ui->prefs.filter, text, sizeof(text));
    gp_ui_refilter(ui);
}

static const char *user_name(const struct gp_ui *ui, size_t i)
{
    return gp_page_value(&ui->text, i);
}

static enum gp_ui_wish key_in_users(struct gp_ui *ui, int key)
{
    return key_in_list(ui, key, user_name, take_user);
}

static void draw_user(const struct gp_box *line, size_t i, const void *ctx)
{
    const struct gp_ui *ui = ctx;
    (void)gp_draw(line, 0, 0, GP_INK_PLAIN, user_name(ui, i));
}

static void draw_users(struct gp_ui *ui, const struct gp_box *box)
{
    draw_list(ui, box, 44, "processes of · Enter select, Esc cancel", draw_user);
}

const struct gp_screen gp_screen_users = {
    .key = key_in_users, .draw = draw_users, .fill = fill_users, .leave = leave_list};
