#include "tui/proc_table.h"

#include "base/strbuf.h"
#include "base/utf8.h"
#include "tui/closed.h"
#include "tui/columns.h"
#include "tui/cpu_past.h"
#include "tui/frame.h"
#include "tui/gpu_order.h"
#include "tui/proc_command.h"
#include "tui/top_columns.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { PAST = GP_TOP_PAST_COLUMN, COLUMNS = GP_TOP_COLUMNS };

static const struct gp_column columns[COLUMNS] = {
#define X(id, word, title, width, rank, grows, left, kind, field, shown, help)                     \
    [GP_PROC_##id##_COLUMN] = {title, width, rank, grows, left},
    GP_PROC_COLUMNS(X)
#undef X
        [PAST] = {"CPU-PAST", GP_CPU_PAST_COLUMNS, 15, 0, true},
};

/* The columns that are shown, and where. */
struct table {
    enum gp_proc_column columns[COLUMNS];
    struct gp_column_place places[COLUMNS];
    size_t count;
};

static void add_hit(const struct gp_proc_view *view, const struct gp_box *part,
                    enum gp_hit_kind kind, size_t value)
{
    if (view->hits)
        gp_hits_add(view->hits, part, kind, value);
}

/* ---- rows ---- */

static void draw_text(const struct gp_box *box, int y, const struct gp_column_place *place,
                      bool left, enum gp_ink ink, const char *text)
{
    if (left)
        gp_draw_left(box, place->x, y, place->w, ink, text);
    else
        gp_draw_right(box, place->x, y, place->w, ink, text);
}

/* Whether the row shows all of its GPUs in their column. */
static bool shows_gpus(const struct table *table, const struct gp_proc_row *row)
{
    for (size_t i = 0; i < table->count; i++)
        if (table->columns[i] == GP_PROC_GPU_COLUMN)
            return (int)strlen(row->gpus) <= table->places[i].w;
    return true;
}

/* The hits of a search in a row. */
static void mark_hits(const struct gp_box *box, int y, const char *search)
{
    const struct gp_cells *cells = box->cells;
    const int n = search ? (int)strlen(search) : 0;
    for (int x = 0; n > 0 && x + n <= box->w; x++) {
        const struct gp_cell *cell =
            &cells->cells[(size_t)(box->y + y) * (size_t)cells->w + (size_t)(box->x + x)];
        int i = 0;
        while (i < n && cell[i].cp < 0x80 &&
               tolower((int)cell[i].cp) == tolower((unsigned char)search[i]))
            i++;
        const struct gp_box hit = gp_box_part(box, x, y, n, 1);
        if (i == n)
            gp_draw_ink(&hit, 0, GP_INK_TAGGED);
    }
}

/* What only single processes have is blank in the row of a group. */
static bool has_group_value(enum gp_proc_column column)
{
    if ((int)column == PAST)
        return false;
    static const enum gp_proc_column blank[] = {GP_PROC_TYPE_COLUMN, GP_PROC_STATE_COLUMN,
                                                GP_PROC_SHARE_COLUMN, GP_PROC_CONTAINER_COLUMN};
    for (size_t i = 0; i < GP_ARRAY_LEN(blank); i++)
        if (column == blank[i])
            return false;
    return gp_proc_column_table[column].kind != GP_PROC_KIND_PID;
}

/* Whether the keys move the cursor, and it is on this row. */
static bool is_selected(const struct gp_proc_view *view, size_t at)
{
    return view->has_focus && at == view->chosen;
}

static void draw_row(const struct gp_box *box, int y, const struct table *table,
                     const struct gp_proc_view *view, size_t at, enum gp_ink own,
                     struct gp_strbuf *sb)
{
    const struct gp_column_place *places = table->places;
    const struct gp_proc_row *row = &view->procs->rows[at];
    struct gp_proc_row sum;
    if (row->closed && !row->members) {
        sum = gp_closed_sum(view->procs, at);
        row = &sum;
    }
    for (size_t i = 0; i < table->count; i++) {
        enum gp_proc_column c = table->columns[i];
        if (!places[i].w || (row->members && !has_group_value(c)))
            continue;
        if ((int)c == PAST) {
            gp_draw_cpu_past(box, places[i].x, y,
                             is_selected(view, at) ? GP_INK_SELECTED : GP_INK_LOW, view->cpu_past,
                             row->pid);
            continue;
        }
        const bool is_old = gp_proc_amount(row, c).old;
        enum gp_ink ink = is_old ? GP_INK_STALE : own;
        if (c == GP_PROC_COMMAND_COLUMN) {
            const struct gp_box part = gp_box_part(box, places[i].x, y, places[i].w, 1);
            gp_draw_command(&part, view, at, ink, shows_gpus(table, row) ? NULL : row->gpus);
            continue;
        }
        gp_strbuf_reset(sb);
        gp_proc_format(sb, row, c);
        if (is_old)
            gp_strbuf_addc(sb, '?');
        if (c == GP_PROC_TYPE_COLUMN && sb->len > 1) { /* "C+G" and "M+C" as one letter */
            char letter = sb->buf[0] == 'M' ? 'M' : 'X';
            gp_strbuf_reset(sb);
            gp_strbuf_addc(sb, letter);
        }
        draw_text(box, y, &places[i], columns[c].left, ink, sb->buf);
    }
}

/* ---- title and heading ---- */

enum { ALERT_LEAST = 8 }; /* columns that are left for the number of alerts: "─ ! 12 ─" */

/* "6", "1-5 of 6" if there is no room for all rows, "4 of 6" with a filter. */
static void add_count(struct gp_strbuf *sb, const struct gp_proc_view *view, int rows)
{
    const struct gp_procs *procs = view->procs;
    const size_t count =
        procs->count + procs->closed - procs->ancestors - procs->reserved - procs->groups;
    const size_t shown = rows > 0 ? (size_t)rows : 0;
    if (view->is_unknown && procs->count == 0) {
        gp_strbuf_adds(sb, "unknown");
        return;
    }
    if (shown > 0 && shown < count && count == procs->count && !procs->closed) {
        const size_t last = view->first + shown;
        gp_strbuf_add_int(sb, (long)view->first + 1);
        gp_strbuf_addc(sb, '-');
        gp_strbuf_add_int(sb, (long)(last < count ? last : count));
        gp_strbuf_adds(sb, " of ");
    }
    gp_strbuf_add_int(sb, (long)count);
    if (procs->hidden) {
        gp_strbuf_adds(sb, " of ");
        gp_strbuf_add_int(sb, (long)(count + procs->hidden));
    }
}

/* " · sort GPU-MEM▼", if all of the text then fits into w columns. */
static void add_order(struct gp_strbuf *sb, const struct gp_proc_order *order, int w)
{
    const size_t before = sb->len;
    gp_strbuf_adds(sb, " · sort");
    for (size_t i = 0; i < order->count; i++) {
        gp_strbuf_addc(sb, ' ');
        gp_strbuf_adds(sb, columns[order->by[i].column].title);
        gp_strbuf_adds(sb, order->by[i].reversed ? "▲" : "▼");
    }
    if ((int)gp_utf8_width(sb->buf) > w)
        gp_strbuf_truncate(sb, before);
}

/* "GPU 3", "MIG 3:1" */
static void add_place(struct gp_strbuf *sb, const struct gp_procs_options *options)
{
    gp_strbuf_adds(sb, options->gpu < 0 ? "a GPU" : options->only_mig ? "MIG " : "GPU ");
    if (options->gpu >= 0)
        gp_strbuf_add_int(sb, options->gpu);
    if (options->gpu >= 0 && options->only_mig) {
        gp_strbuf_addc(sb, ':');
        gp_strbuf_add_int(sb, (long)options->mig);
    }
}

/* Of a part with its label; one without text is left out. */
static int width_of_part(const char *label, const char *text)
{
    return *text ? (int)(gp_utf8_width(label) + gp_utf8_width(text)) : 0;
}

static void add_part(struct gp_strbuf *sb, const char *label, const char *text)
{
    gp_strbuf_adds(sb, *text ? label : "");
    gp_strbuf_adds(sb, text);
}

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
    gp_draw_rule(box, 0);
    char room[512] = "";
    struct gp_strbuf text = GP_STRBUF_ON(room, sizeof(room) - 1);
    gp_strbuf_adds(&text, view->has_focus ? " ▸ processes " : " processes ");
    add_count(&text, view, box->h - 2);
    int x = gp_draw(box, 1, 0, GP_INK_TITLE, text.buf);
    if (view->tagged_count)
        x = gp_drawf(box, x, 0, GP_INK_TAGGED, " · %zu tagged", view->tagged_count);
    gp_strbuf_reset(&text);
    if (options->gpu >= 0) {
        gp_strbuf_adds(&text, " · ");
        add_place(&text, options);
    }
    gp_strbuf_adds(&text, groups[options->groups]);
    const char *const filter = options->filter ? options->filter : "";
    const int needed = width_of_part(" · filter ", filter) + width_of_part(" · ", view->gpus);
    add_order(&text, order, box->w - ALERT_LEAST - needed - x);
    add_part(&text, " · filter ", filter);
    add_part(&text, " · ", view->gpus);
    const size_t before = text.len;
    if (view->gpu_order)
        gp_gpu_order_add(&text, view->gpu_order, *view->gpus ? " by " : " · GPUs by ");
    if (x + (int)gp_utf8_width(text.buf) >= box->w)
        gp_strbuf_truncate(&text, before);
    x = gp_draw(box, x, 0, GP_INK_TITLE, text.buf);
    return gp_draw(box, x, 0, GP_INK_TITLE, " ");
}

/* ---- the columns ---- */

enum {
    WIDE_FROM = 110,   /* columns that are only shown with much room */
    WIDE_COMMAND = 28, /* least width of a command with much room, */
    MIDDLE_FROM = 80,
    MIDDLE_COMMAND = 24, /* and on a usual screen */
    WIDE_USER_MAX = 16,  /* a longer name is cut */
    ROOMY_FROM = 158,    /* columns of a screen that has room for containers, and for GPUs: */
    GPUS_MAX = 16,
    GAP_MAX = 2, /* blanks between columns, if all have room */
};

/* Those of sums do not make their column wider, so that it is the same in all views. */
static bool has_long_gpus(const struct gp_proc_row *row, enum gp_proc_column column)
{
    return column == GP_PROC_GPU_COLUMN && (row->members || row->below);
}

/* The longest text in a column, of closed rows as well, within these limits; `least` if there is
 * none at all. */
static int width_of(const struct gp_procs *procs, enum gp_proc_column column, int least, int most)
{
    int w = least;
    for (size_t i = 0; i < procs->count + procs->closed && w < most; i++) {
        const char *text = gp_proc_text(&procs->rows[i], column);
        if (!text || strlen(text) <= (size_t)w || has_long_gpus(&procs->rows[i], column))
            continue; /* no character has more columns than bytes */
        int width = (int)gp_utf8_width(text);
        w = width > w ? width : w;
    }
    return w < most ? w : most;
}

/* Encoder and decoder are left out of the default columns as long as nothing uses them. */
static bool is_needless(const struct gp_proc_view *view, enum gp_proc_column column)
{
    if (!view->may_add || view->has_codecs ||
        (column != GP_PROC_ENC_COLUMN && column != GP_PROC_DEC_COLUMN))
        return false;
    const struct gp_proc_order *order = &view->options->order;
    for (size_t i = 0; i < order->count; i++)
        if (order->by[i].column == column)
            return false;
    return true;
}

/* With the default columns and much room: what a process has of its GPUs, and where it runs, as
 * soon as one is in a container or a job. */
static void choose(struct table *table, const struct gp_proc_view *view, int container_w)
{
    for (size_t i = 0; i < view->column_count; i++) {
        if (view->columns[i] == GP_PROC_COMMAND_COLUMN && container_w > 0)
            table->columns[table->count++] = GP_PROC_CONTAINER_COLUMN;
        if (!is_needless(view, view->columns[i]) &&
            ((int)view->columns[i] != PAST || view->has_cpu_past))
            table->columns[table->count++] = view->columns[i];
        if (view->columns[i] == GP_PROC_MEMORY_COLUMN && container_w >= 0)
            table->columns[table->count++] = GP_PROC_SHARE_COLUMN;
        if (view->columns[i] == GP_PROC_CPU_COLUMN && container_w >= 0 && view->has_cpu_past)
            table->columns[table->count++] = (enum gp_proc_column)PAST;
    }
}

/* The command has the room of a screen of 160 columns, the container what there is besides. */
static int container_max(int w)
{
    return columns[GP_PROC_CONTAINER_COLUMN].width + (w > ROOMY_FROM ? w - ROOMY_FROM : 0);
}

/* On a usual screen, the age of a process gives way before how long it is idle. */
static int rank_of(enum gp_proc_column column, int w, bool is_wide)
{
    const bool is_middle = !is_wide && w >= MIDDLE_FROM - 2;
    const enum gp_proc_column ranked = !is_middle                      ? column
                                       : column == GP_PROC_TIME_COLUMN ? GP_PROC_IDLE_COLUMN
                                       : column == GP_PROC_IDLE_COLUMN ? GP_PROC_TIME_COLUMN
                                                                       : column;
    return columns[ranked].rank;
}

static void place(struct table *table, const struct gp_proc_view *view, int w)
{
    const bool is_wide = w >= WIDE_FROM - 2;
    const bool has_groups = view->may_add && view->options->groups; /* which name the container */
    const int container_w =
        !is_wide || !view->may_add ? -1
        : has_groups               ? 0
                     : width_of(view->procs, GP_PROC_CONTAINER_COLUMN, 0, container_max(w));
    const int least = (int)strlen(columns[GP_PROC_CONTAINER_COLUMN].title);
    struct gp_column chosen[COLUMNS];
    choose(table, view, container_w);
    for (size_t i = 0; i < table->count; i++) {
        struct gp_column *c = &chosen[i];
        *c = columns[table->columns[i]];
        c->rank = rank_of(table->columns[i], w, is_wide);
        if (table->columns[i] == GP_PROC_CONTAINER_COLUMN && container_w > 0)
            c->width = container_w > least ? container_w : least;
        else if (table->columns[i] == GP_PROC_USER_COLUMN)
            c->width = width_of(view->procs, GP_PROC_USER_COLUMN, (int)strlen(c->title),
                                is_wide ? WIDE_USER_MAX : c->width);
        else if (table->columns[i] == GP_PROC_GPU_COLUMN && w >= ROOMY_FROM)
            c->width = width_of(view->procs, GP_PROC_GPU_COLUMN, c->width, GPUS_MAX);
        else if (table->columns[i] == GP_PROC_COMMAND_COLUMN && is_wide)
            c->width = WIDE_COMMAND;
        else if (table->columns[i] == GP_PROC_COMMAND_COLUMN && w >= MIDDLE_FROM - 2)
            c->width = MIDDLE_COMMAND;
    }
    const int spare = gp_columns_place_apart(chosen, table->count, w, 1, table->places);
    if (is_wide && spare >= (GAP_MAX - 1) * (int)table->count)
        (void)gp_columns_place_apart(chosen, table->count, w, GAP_MAX, table->places);
}

/* ---- the table ---- */

static void draw_heading(const struct gp_box *box, const struct table *table,
                         const struct gp_proc_view *view)
{
    for (size_t i = 0; i < table->count; i++) {
        enum gp_proc_column c = table->columns[i];
        const struct gp_column_place *at = &table->places[i];
        if (!at->w)
            continue;
        draw_text(box, 0, at, columns[c].left, GP_INK_TITLE, columns[c].title);
        struct gp_box part = gp_box_part(box, at->x, 0, at->w, 1);
        if ((int)c != PAST)
            add_hit(view, &part, GP_HIT_COLUMN, c);
    }
}

/* A closed group is, as soon as one of its processes is. */
static bool is_tagged(const struct gp_proc_view *view, size_t at)
{
    const struct gp_proc_row *row = &view->procs->rows[at];
    const struct gp_proc_row *below = gp_rows_below(view->procs, at).first;
    bool is = gp_procs_has_pid(view->tagged, view->tagged_count, row->pid);
    for (size_t i = 0; !is && row->members && i < row->closed; i++)
        is = gp_procs_has_pid(view->tagged, view->tagged_count, below[i].pid);
    return is;
}

void gp_draw_proc_rows(const struct gp_box *box, const struct gp_proc_view *view)
{
    struct table table = {.count = 0};
    struct gp_box inner = gp_box_part(box, 1, 0, box->w - 2, box->h);
    place(&table, view, inner.w);
    char room[257] = "";
    struct gp_strbuf sb = GP_STRBUF_ON(room, 256);
    draw_heading(&inner, &table, view);
    for (int y = 1; y < box->h && view->first + (size_t)y - 1 < view->procs->count; y++) {
        size_t row = view->first + (size_t)y - 1;
        const struct gp_proc_row *shown = &view->procs->rows[row];
        const bool tagged = is_tagged(view, row);
        const bool has_sums = shown->members || shown->below || shown->closed;
        const struct gp_box line = gp_box_part(box, 0, y, box->w, 1);
        add_hit(view, &line, GP_HIT_ROW, row);
        enum gp_ink ink = tagged ? GP_INK_TAGGED : has_sums ? GP_INK_STRONG : GP_INK_PLAIN;
        draw_row(&inner, y, &table, view, row, ink, &sb);
        if (tagged)
            (void)gp_draw(box, 0, y, ink, "*");
        if (row == view->chosen)
            gp_draw_ink(box, y, view->has_focus ? GP_INK_SELECTED : GP_INK_STRONG);
        mark_hits(&inner, y, view->search);
    }
    gp_strbuf_fini(&sb);
}

/* In place of the first row: "no process of GPU 3 matches 'vllm'". */
static void draw_why_empty(const struct gp_box *box, const struct gp_proc_view *view)
{
    const struct gp_procs_options *options = view->options;
    const char *const filter = options->filter ? options->filter : "";
    char room[256] = "";
    struct gp_strbuf text = GP_STRBUF_ON(room, sizeof(room) - 1);
    const bool has_place = options->gpu >= 0 || !*filter;
    gp_strbuf_adds(&text, view->is_unknown ? "unknown: no answer from "
                          : !has_place     ? "no process"
                          : *filter        ? "no process of "
                                           : "no process uses ");
    if (has_place)
        add_place(&text, options);
    if (*filter && !view->is_unknown)
        gp_strbuf_addf(&text, " matches '%s'%s", filter, has_place ? "" : " · Esc: no filter");
    gp_draw_left(box, 2, 2, box->w - 4, GP_INK_DIM, text.buf);
}

int gp_draw_procs(const struct gp_box *box, const struct gp_proc_view *view)
{
    const struct gp_box rows = gp_box_part(box, 0, 1, box->w, box->h - 1);
    int end = draw_title(box, view);
    gp_draw_proc_rows(&rows, view);
    if (view->procs->count == 0)
        draw_why_empty(box, view);
    return end;
}
