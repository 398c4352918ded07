#include "tui/gpus.h"

#include "base/utf8.h"
#include "model/snapshot.h"
#include "tui/frame.h"
#include "tui/gpu_card.h"
#include "tui/gpu_line.h"
#include "tui/gpu_text.h"

int gp_gpus_flat(const struct gp_snapshot *snapshot, const struct gp_gpu_order *order)
{
    int count = 0;
    for (size_t i = 0; i < order->count; i++)
        count += gp_gpu_is_flat(&snapshot->devices[gp_gpu_order_row(order, i)]);
    return count;
}

const char *gp_gpus_series_place(const struct gp_gpus_view *view)
{
    const struct gp_layout *l = view->layout;
    const int columns = l->density == GP_DENSITY_LINE ? l->columns : 1;
    const bool lines_have = gp_gpu_lines_have_past(view, l->gpus.w / columns);
    const bool shows[GP_DENSITY__COUNT] = {
        [GP_DENSITY_CARD] = true,
        [GP_DENSITY_LINE] = lines_have,
        [GP_DENSITY_GRID] = gp_gpu_cell_has_past(view, gp_layout_column(l, 0).w),
    };
    if (shows[l->density] || view->order->count == 0)
        return NULL;
    return lines_have && l->density != GP_DENSITY_LINE ? "in cards and lines: g" : "in cards: g";
}

/* Where its index stands in its first row, and in cards and bars its name. */
static struct gp_box name_of(const struct gp_box *box, int y, const struct gp_device *device,
                             const struct gp_gpus_view *view)
{
    enum { INDEX = 4, EDGES = 2, ELBOW = 2 };
    const struct gp_layout *l = view->layout;
    if (l->density >= GP_DENSITY_LINE)
        return gp_box_part(box, 0, y, INDEX + (l->density == GP_DENSITY_LINE), 1);
    GP_GPU_TEXT(text);
    gp_gpu_add_index(&text, device);
    const char *name = gp_gpu_short_name(device);
    return gp_box_part(box, device->is_mig ? ELBOW : l->frame.h > 0, y,
                       (int)(gp_utf8_width(text.buf) + 1 + gp_utf8_width(name)) + EDGES, 1);
}

/* Marks the selected GPU, also with an arrow unless the title of the GPUs has it, and makes the
 * rows clickable. */
static void mark(const struct gp_box *box, int y, size_t row, const struct gp_gpus_view *view)
{
    struct gp_box line = gp_box_part(box, 0, y, box->w, box->h - y);
    if (view->layout->density == GP_DENSITY_LINE)
        line.h = 1;
    gp_hits_add(view->hits, &line, GP_HIT_GPU, row);
    if (row == view->chosen && view->has_focus && !view->layout->has_rule)
        (void)gp_draw(box, 0, y, GP_INK_TITLE, "▸");
    if (row != view->chosen)
        return;
    gp_draw_ink(box, y, view->has_focus ? GP_INK_SELECTED : GP_INK_STRONG);
    const struct gp_box name = name_of(box, y, &view->snapshot->devices[row], view);
    gp_draw_ink(&name, 0, GP_INK_SELECTED);
}

static void draw_lines(const struct gp_box *box, const struct gp_gpus_view *view)
{
    int columns = view->layout->columns;
    int width = box->w / columns;
    for (int i = 0; i < columns; i++) {
        struct gp_box part = gp_box_part(box, i * width, 0, width, box->h);
        gp_draw_gpu_lines(&part, view, view->first + (size_t)i * (size_t)(box->h - 1), mark);
    }
}

/* Whether cards have titles in the lines of a frame. */
static bool has_titles(const struct gp_layout *l)
{
    return l->frame.h > 0 && l->density < GP_DENSITY_LINE;
}

/* What is left at the right of cards of equal width. */
static void draw_rest_of_title(const struct gp_box *box, int x, int y)
{
    const struct gp_box rest = gp_box_part(box, x, y, box->w - x, 1);
    gp_draw_rule(&rest, 0);
}

/* Cards and bars side by side. Returns the lines that are used. */
static int draw_side_by_side(const struct gp_box *box, const struct gp_gpus_view *view)
{
    const struct gp_layout *l = view->layout;
    const struct gp_snapshot *s = view->snapshot;
    int column = 0;
    int y = 0;
    for (size_t i = 0; i < (size_t)l->shown && view->first + i < view->order->count; i++) {
        const size_t row = gp_gpu_order_row(view->order, view->first + i);
        int height = gp_gpu_is_flat(&s->devices[row]) ? 1 : l->gpu_height;
        const struct gp_rect at = gp_layout_column(l, column);
        struct gp_box part = gp_box_part(box, at.x, y, at.w, height);
        if (column == l->columns - 1 && column > 0 && has_titles(l))
            draw_rest_of_title(box, at.x + at.w, y);
        column = (column + 1) % l->columns;
        y += column == 0 ? height : 0;
        gp_draw_gpu(&part, &s->devices[row], view);
        mark(&part, 0, row, view);
    }
    return column == 0 ? y : y + l->gpu_height;
}

/* Cells below each other, like lines, so that neighbors stay together. Returns the lines that are
 * used. */
static int draw_grid(const struct gp_box *box, const struct gp_gpus_view *view)
{
    const struct gp_layout *l = view->layout;
    const int cells = l->shown + l->has_more;
    const int h = (cells + l->columns - 1) / l->columns;
    for (int i = 0; i < cells; i++) {
        const struct gp_rect at = gp_layout_column(l, i / h);
        const struct gp_box part = gp_box_part(box, at.x, i % h, at.w, 1);
        const size_t place = view->first + (size_t)i;
        if (i == l->shown) {
            gp_draw_more_gpus(&part, 0, view->order->count - (size_t)l->shown);
        } else if (place < view->order->count) {
            const size_t row = gp_gpu_order_row(view->order, place);
            gp_draw_gpu_cell(&part, &view->snapshot->devices[row], view);
            mark(&part, 0, row, view);
        }
    }
    return h;
}

/* "all  UTIL  62% ▃▃▃▃▄▄▄  MEM  59% ▅▅▅▅▅▅▅": means over all GPUs, and their past. The inks of
 * the labels tell which bar of a cell is which. */
static void draw_total(const struct gp_box *box, int y, const struct gp_gpus_view *view)
{
    static const struct {
        const char *label;
        enum gp_series series;
    } parts[] = {{"UTIL", GP_SERIES_GPU}, {"MEM", GP_SERIES_MEMORY}};
    enum { NAME = 5, LABEL = 5, NUMBER = 4 };
    const int count = GP_ARRAY_LEN(parts);
    (void)gp_draw(box, 1, y, GP_INK_STRONG, "all");
    for (int i = 0; i < count; i++) {
        const double value = gp_series_of_all(view->snapshot, parts[i].series);
        const int permille = value < 0 ? -1 : (int)(10 * value + 0.5);
        const int end = NAME + (box->w - NAME) * (i + 1) / count;
        const struct gp_plot plot = {&view->history->all, (int)parts[i].series, 100,
                                     parts[i].series};
        GP_GPU_TEXT(text);
        int x = NAME + (box->w - NAME) * i / count;
        (void)gp_draw(box, x, y, gp_load_ink(parts[i].series, 0), parts[i].label);
        x += LABEL;
        if (value < 0)
            gp_strbuf_adds(&text, "--");
        else
            gp_strbuf_addf(&text, "%d%%", (permille + 5) / 10);
        gp_draw_right(box, x, y, NUMBER, gp_load_ink(parts[i].series, permille), text.buf);
        x += NUMBER + 1;
        if (!view->no_graphs)
            gp_draw_spark(box, x, y, end - 2 - x, &plot, &view->span);
    }
}

/* Whether the GPUs are 0, 1, 2 and so on, in this order. */
static bool are_counted(const struct gp_gpus_view *view)
{
    const struct gp_snapshot *s = view->snapshot;
    unsigned count = 0;
    for (size_t i = 0; i < s->device_count; i++) {
        const unsigned index = s->devices[i].index;
        if (index != count && index + 1 != count) /* an instance has that of its GPU */
            return false;
        count = index + 1;
    }
    return gp_gpu_order_is_index(view->order);
}

static unsigned index_at(const struct gp_gpus_view *view, size_t place)
{
    return view->snapshot->devices[gp_gpu_order_row(view->order, place)].index;
}

void gp_gpus_add_range(struct gp_strbuf *sb, const struct gp_gpus_view *view)
{
    const size_t places = view->order->count;
    const size_t shown = (size_t)view->layout->shown;
    if (shown >= places || shown == 0) {
        gp_strbuf_addf(sb, "GPUs %zu", places);
    } else if (are_counted(view)) {
        const unsigned first = index_at(view, view->first);
        const unsigned last = index_at(view, view->first + shown - 1);
        gp_strbuf_addf(sb, last > first ? "GPUs %u-%u" : "GPU %u", first, last);
        gp_strbuf_addf(sb, " of %u", index_at(view, places - 1) + 1);
    } else {
        const size_t below = places - view->first - shown;
        gp_strbuf_addf(sb, "GPUs %zu of %zu", shown, places);
        if (view->first > 0)
            gp_strbuf_addf(sb, " ↑%zu", view->first);
        if (below > 0)
            gp_strbuf_addf(sb, " ↓%zu", below);
    }
}

static void draw_blocks_of_gpus(const struct gp_box *box, const struct gp_gpus_view *view)
{
    const struct gp_layout *l = view->layout;
    int used = l->density == GP_DENSITY_GRID ? draw_grid(box, view) : draw_side_by_side(box, view);
    if (l->has_total)
        draw_total(box, used, view);
    if ((size_t)l->shown >= view->order->count || used >= box->h)
        return;
    if (l->frame.h > 0)
        gp_draw_rule(box, used);
    GP_GPU_TEXT(text);
    gp_strbuf_addc(&text, ' ');
    gp_gpus_add_range(&text, view);
    gp_strbuf_addc(&text, ' ');
    (void)gp_draw(box, l->frame.h > 0, used, GP_INK_DIM, text.buf);
}

/* "─ GPUs 64 · by load ───" */
static void draw_rule(const struct gp_box *box, const struct gp_gpus_view *view)
{
    GP_GPU_TEXT(text);
    gp_strbuf_adds(&text, view->has_focus ? " ▸ " : " ");
    gp_gpus_add_range(&text, view);
    gp_gpu_order_add(&text, view->order, " · by ");
    gp_draw_rule(box, 0);
    (void)gp_draw(box, gp_draw(box, 1, 0, GP_INK_TITLE, text.buf), 0, GP_INK_TITLE, " ");
}

void gp_draw_gpus(const struct gp_box *box, const struct gp_gpus_view *view)
{
    const struct gp_layout *l = view->layout;
    const struct gp_box below = gp_box_part(box, 0, l->has_rule, box->w, box->h - l->has_rule);
    if (l->has_rule && box->h > 0)
        draw_rule(box, view);
    if (l->density == GP_DENSITY_LINE)
        draw_lines(&below, view);
    else
        draw_blocks_of_gpus(&below, view);
}
