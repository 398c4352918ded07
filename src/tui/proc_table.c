#include "tui/proc_table.h"

#include "base/strbuf.h"
#include "base/utf8.h"
#include "out/tree.h"
#include "tui/columns.h"

#include <stdio.h>
#include <string.h>

static const struct gp_column columns[GP_PROC_COLUMN__COUNT] = {
#define X(id, word, title, width, rank, grows, left, kind, field, shown, help)                     \
    [GP_PROC_##id##_COLUMN] = {title, width, rank, grows, left},
    GP_PROC_COLUMNS(X)
#undef X
};

/* ---- rows ---- */

static void draw_text(const struct gp_box *box, int y, const struct gp_column_place *place,
                      bool left, enum gp_ink ink, const char *text)
{
    if (left)
        gp_draw_left(box, place->x, y, place->w, ink, text);
    else
        gp_draw_right(box, place->x, y, place->w, ink, text);
}

static void draw_command(const struct gp_box *box, int y, const struct gp_column_place *place,
                         const struct gp_proc_row *row, enum gp_ink ink, int scroll)
{
    struct gp_box part = gp_box_part(box, place->x, y, place->w, 1);
    const char *command = row->command ? row->command : "?";
    char room[256] = "";
    struct gp_strbuf branch = GP_STRBUF_ON(room, 4096);
    if (row->members) {
        gp_proc_row_add_group(&branch, row);
        gp_draw_left(&part, 0, 0, part.w, ink, branch.buf);
        gp_strbuf_fini(&branch);
        return;
    }
    gp_tree_add_branch(&branch, row);
    gp_strbuf_adds(&branch, gp_proc_row_prefix(row));
    int x = gp_draw(&part, 0, 0, GP_INK_DIM, branch.buf);
    gp_strbuf_fini(&branch);
    for (; scroll > 0 && *command; scroll--) {
        do
            command++;
        while ((*command & 0xc0) == 0x80);
    }
    gp_draw_left(&part, x, 0, part.w - x, row->pid && *row->gpus ? ink : GP_INK_DIM, command);
}

/* What only single processes have is blank in the row of a group. */
static bool has_group_value(enum gp_proc_column column)
{
    return gp_proc_column_table[column].kind != GP_PROC_KIND_PID && column != GP_PROC_TYPE_COLUMN &&
           column != GP_PROC_STATE_COLUMN;
}

static void draw_row(const struct gp_box *box, int y, const struct gp_column_place *places,
                     const struct gp_proc_view *view, const struct gp_proc_row *row,
                     enum gp_ink own, struct gp_strbuf *sb)
{
    for (size_t i = 0; i < view->column_count; i++) {
        enum gp_proc_column c = view->columns[i];
        if (!places[i].w || (row->members && !has_group_value(c)))
            continue;
        enum gp_ink ink = gp_proc_amount(row, c).old ? GP_INK_STALE : own;
        if (c == GP_PROC_COMMAND_COLUMN) {
            draw_command(box, y, &places[i], row, ink, view->scroll);
            continue;
        }
        gp_strbuf_reset(sb);
        gp_proc_format(sb, row, c);
        if (c == GP_PROC_TYPE_COLUMN && sb->len > 1) { /* "C+G" and "M+C" as one letter */
            char letter = sb->buf[0] == 'M' ? 'M' : 'X';
            gp_strbuf_reset(sb);
            gp_strbuf_addc(sb, letter);
        }
        draw_text(box, y, &places[i], columns[c].left, ink, sb->buf);
    }
}

/* ---- title and heading ---- */

static int draw_title(const struct gp_box *box, const struct gp_proc_view *view)
{
    const struct gp_procs_options *options = view->options;
    const struct gp_proc_order *order = &options->order;
    static const char *const groups[] = {
        [GP_PROC_GROUPS_NONE] = "",
        [GP_PROC_GROUPS_USER] = " · by user",
        [GP_PROC_GROUPS_JOB] = " · by job",
        [GP_PROC_GROUPS_TREE] = " · tree",
    };
    const struct gp_procs *procs = view->procs;
    size_t count = procs->count - procs->ancestors - procs->reserved - procs->groups;
    gp_draw_fill(box, 0, 0, box->w, GP_INK_TITLE, 0x2500);
    char room[512] = "";
    struct gp_strbuf text = GP_STRBUF_ON(room, sizeof(room) - 1);
    gp_strbuf_adds(&text, view->has_focus ? " ▸ processes " : " processes ");
    gp_strbuf_add_int(&text, (long)count);
    if (view->procs->hidden) {
        gp_strbuf_adds(&text, " of ");
        gp_strbuf_add_int(&text, (long)(count + view->procs->hidden));
    }
    int x = gp_draw(box, 1, 0, GP_INK_TITLE, text.buf);
    if (view->tagged_count)
        x = gp_drawf(box, x, 0, GP_INK_TAGGED, " · %zu tagged", view->tagged_count);
    gp_strbuf_reset(&text);
    if (options->gpu >= 0) {
        gp_strbuf_adds(&text, " · GPU ");
        gp_strbuf_add_int(&text, options->gpu);
    }
    gp_strbuf_adds(&text, groups[options->groups]);
    gp_strbuf_adds(&text, " · sort");
    for (size_t i = 0; i < order->count; i++) {
        gp_strbuf_addc(&text, ' ');
        gp_strbuf_adds(&text, columns[order->by[i].column].title);
        gp_strbuf_adds(&text, order->by[i].reversed ? "▲" : "▼");
    }
    if (options->filter && *options->filter) {
        gp_strbuf_adds(&text, " · filter ");
        gp_strbuf_adds(&text, options->filter);
    }
    x = gp_draw(box, x, 0, GP_INK_TITLE, text.buf);
    return gp_draw(box, x, 0, GP_INK_TITLE, " ");
}

static void add_hit(const struct gp_proc_view *view, const struct gp_box *part,
                    enum gp_hit_kind kind, size_t value)
{
    if (view->hits)
        gp_hits_add(view->hits, part, kind, value);
}

static void draw_heading(const struct gp_box *box, const struct gp_column_place *places,
                         const struct gp_proc_view *view)
{
    for (size_t i = 0; i < view->column_count; i++) {
        enum gp_proc_column c = view->columns[i];
        if (!places[i].w)
            continue;
        draw_text(box, 0, &places[i], columns[c].left, GP_INK_TITLE, columns[c].title);
        struct gp_box part = gp_box_part(box, places[i].x, 0, places[i].w, 1);
        add_hit(view, &part, GP_HIT_COLUMN, c);
    }
}

void gp_draw_proc_rows(const struct gp_box *box, const struct gp_proc_view *view)
{
    struct gp_column chosen[GP_PROC_COLUMN__COUNT];
    struct gp_column_place places[GP_PROC_COLUMN__COUNT];
    struct gp_box inner = gp_box_part(box, 1, 0, box->w - 2, box->h);
    for (size_t i = 0; i < view->column_count; i++)
        chosen[i] = columns[view->columns[i]];
    gp_columns_place(chosen, view->column_count, inner.w, places);
    char room[257] = "";
    struct gp_strbuf sb = GP_STRBUF_ON(room, 256);
    draw_heading(&inner, places, view);
    for (int y = 1; y < box->h && view->first + (size_t)y - 1 < view->procs->count; y++) {
        size_t row = view->first + (size_t)y - 1;
        bool tagged =
            gp_procs_has_pid(view->tagged, view->tagged_count, view->procs->rows[row].pid);
        enum gp_ink ink = tagged                           ? GP_INK_TAGGED
                          : view->procs->rows[row].members ? GP_INK_STRONG
                                                           : GP_INK_PLAIN;
        draw_row(&inner, y, places, view, &view->procs->rows[row], ink, &sb);
        if (tagged)
            (void)gp_draw(box, 0, y, ink, "*");
        if (row == view->chosen)
            gp_draw_ink(box, y, view->has_focus ? GP_INK_SELECTED : GP_INK_STRONG);
        struct gp_box line = gp_box_part(box, 0, y, box->w, 1);
        add_hit(view, &line, GP_HIT_ROW, row);
    }
    gp_strbuf_fini(&sb);
}

int gp_draw_procs(const struct gp_box *box, const struct gp_proc_view *view)
{
    const struct gp_box rows = gp_box_part(box, 0, 1, box->w, box->h - 1);
    int end = draw_title(box, view);
    gp_draw_proc_rows(&rows, view);
    return end;
}
