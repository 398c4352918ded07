#include "tui/gpus.h"

#include "model/snapshot.h"
#include "tui/columns.h"
#include "tui/gpu_card.h"
#include "tui/gpu_text.h"

enum { RESERVED_FROM = 96 }; /* columns of the terminal that leave the names of GPUs readable */

/* Values that are not current are drawn as stale, whatever their level. */
static enum gp_ink ink_of(const struct gp_device *device, enum gp_metric m, enum gp_ink ink)
{
    return device->values[m - GP_DEVICE__FIRST].status == GP_STATUS_OK ? ink : GP_INK_STALE;
}

/* ---- a line ---- */

enum {
    LINE_INDEX,
    LINE_NAME,
    LINE_UTIL,
    LINE_SPARK,
    LINE_BAR,
    LINE_MEMORY,
    LINE_TEMPERATURE,
    LINE_POWER,
    LINE_FLAGS,
    LINE_RESERVED, /* only if a GPU is reserved, and there is room */
    LINE__COUNT,
};

static const struct gp_column line_columns[LINE__COUNT] = {
    [LINE_INDEX] = {"GPU", 3, 0, 0, false},      [LINE_NAME] = {"NAME", 9, 6, 1, true},
    [LINE_UTIL] = {"UTIL", 4, 1, 0, false},      [LINE_SPARK] = {"", 10, 9, 2, true},
    [LINE_BAR] = {"MEMORY", 8, 8, 1, true},      [LINE_MEMORY] = {"USED/TOTAL", 11, 2, 0, false},
    [LINE_TEMPERATURE] = {"°C", 3, 3, 0, false}, [LINE_POWER] = {"W/LIM", 9, 5, 0, false},
    [LINE_FLAGS] = {"", 2, 4, 0, true},          [LINE_RESERVED] = {"RESERVED", 9, 10, 0, true},
};

static void draw_cell(const struct gp_box *box, int y, const struct gp_column_place *place,
                      const struct gp_column *column, enum gp_ink ink, const char *text)
{
    if (!place->w)
        return;
    if (column->left)
        gp_draw_left(box, place->x, y, place->w, ink, text);
    else
        gp_draw_right(box, place->x, y, place->w, ink, text);
}

/* If the GPU cannot be queried, the reason replaces its graph. */
static void draw_line(const struct gp_box *box, int y, const struct gp_column_place *places,
                      const struct gp_device *device, const struct gp_gpus_view *view)
{
    GP_GPU_TEXT(text);
    const struct gp_plot plot = {gp_history_find(view->history, device), (int)view->series,
                                 gp_series_max(device, view->series), view->series};
    int util = gp_series_permille(device, GP_SERIES_GPU);
    int memory = gp_series_permille(device, GP_SERIES_MEMORY);
#define CELL(id, ink, add, ...)                                                                    \
    gp_strbuf_reset(&text);                                                                        \
    add(&text, __VA_ARGS__);                                                                       \
    draw_cell(box, y, &places[id], &line_columns[id], ink, text.buf)
    CELL(LINE_INDEX, GP_INK_STRONG, gp_gpu_add_index, device);
    draw_cell(box, y, &places[LINE_NAME], &line_columns[LINE_NAME], GP_INK_PLAIN,
              gp_gpu_short_name(device));
    const char *trouble = gp_gpu_trouble(device);
    if (trouble) {
        int x = places[LINE_NAME].w ? places[LINE_NAME].x + places[LINE_NAME].w + 1 : 4;
        int end = places[LINE_FLAGS].w ? places[LINE_FLAGS].x : box->w;
        gp_draw_left(box, x, y, end - x, GP_INK_CRITICAL, trouble);
    } else {
        CELL(LINE_UTIL, gp_load_ink(GP_SERIES_GPU, util), gp_gpu_add_number, device,
             GP_UTILIZATION_GPU, "%");
        if (places[LINE_SPARK].w)
            gp_draw_spark(box, places[LINE_SPARK].x, y, places[LINE_SPARK].w, &plot, &view->span);
        if (places[LINE_BAR].w)
            gp_draw_bar(box, places[LINE_BAR].x, y, places[LINE_BAR].w,
                        gp_gpu_memory_ink(device, plot.track, view->snapshot->mono_ns), memory);
        CELL(LINE_MEMORY, ink_of(device, GP_MEMORY_USED, GP_INK_PLAIN), gp_gpu_add_memory, device);
        CELL(LINE_TEMPERATURE, gp_gpu_temperature_ink(device), gp_gpu_add_number, device,
             GP_TEMPERATURE_GPU, "");
        CELL(LINE_POWER, ink_of(device, GP_POWER_DRAW, GP_INK_PLAIN), gp_gpu_add_power, device);
    }
    CELL(LINE_FLAGS, gp_gpu_flags_ink(device), gp_gpu_add_flags, device);
    draw_cell(box, y, &places[LINE_RESERVED], &line_columns[LINE_RESERVED], GP_INK_DIM,
              gp_device_text(device, GP_RESERVATION_USER, ""));
#undef CELL
}

/* Marks the selected GPU, and makes the rows clickable. */
static void mark(const struct gp_box *box, int y, size_t row, const struct gp_gpus_view *view)
{
    struct gp_box line = gp_box_part(box, 0, y, box->w, box->h - y);
    if (view->layout->density == GP_DENSITY_LINE)
        line.h = 1;
    gp_hits_add(view->hits, &line, GP_HIT_GPU, row);
    if (row == view->chosen)
        gp_draw_ink(box, y, view->has_focus ? GP_INK_SELECTED : GP_INK_STRONG);
}

/* Draws GPUs from `first` on, below a heading. */
static void draw_list(const struct gp_box *box, const struct gp_gpus_view *view, size_t first)
{
    struct gp_column_place places[LINE__COUNT] = {{0}};
    bool any = false;
    for (size_t i = 0; i < view->snapshot->device_count; i++)
        any = any || gp_device_text(&view->snapshot->devices[i], GP_RESERVATION_USER, NULL);
    gp_columns_place(line_columns, any && box->w >= RESERVED_FROM ? LINE__COUNT : LINE_RESERVED,
                     box->w - 1, places);
    struct gp_box inner = gp_box_part(box, 1, 0, box->w - 1, box->h);
    for (int c = 0; c < LINE__COUNT; c++)
        draw_cell(&inner, 0, &places[c], &line_columns[c], GP_INK_TITLE,
                  c == LINE_SPARK && view->series != GP_SERIES_GPU ? gp_series_titles[view->series]
                                                                   : line_columns[c].title);
    for (int y = 1; y < box->h && first < view->snapshot->device_count; y++, first++) {
        draw_line(&inner, y, places, &view->snapshot->devices[first], view);
        mark(box, y, first, view);
    }
}

static void draw_lines(const struct gp_box *box, const struct gp_gpus_view *view)
{
    int columns = view->layout->columns;
    int width = box->w / columns;
    for (int i = 0; i < columns; i++) {
        struct gp_box part = gp_box_part(box, i * width, 0, width, box->h);
        draw_list(&part, view, view->first + (size_t)i * (size_t)(box->h - 1));
    }
}

/* ---- a grid ---- */

static void draw_tile(const struct gp_box *box, const struct gp_device *device)
{
    GP_GPU_TEXT(index);
    GP_GPU_TEXT(text);
    int util = gp_series_permille(device, GP_SERIES_GPU);
    gp_gpu_add_index(&index, device);
    gp_gpu_add_number(&text, device, GP_UTILIZATION_GPU, "%");
    gp_draw_right(box, 0, 0, 3, GP_INK_STRONG, index.buf);
    if (gp_gpu_trouble(device)) {
        gp_draw_left(box, 4, 0, 5, GP_INK_CRITICAL,
                     device->status == GP_STATUS_TIMEOUT  ? "hangs"
                     : device->status == GP_STATUS_ASLEEP ? "sleep"
                     : device->status == GP_STATUS_LOST   ? "lost"
                                                          : "error");
        return;
    }
    if (util >= 0)
        gp_draw_fill(box, 4, 0, 1, gp_load_ink(GP_SERIES_GPU, util),
                     (uint32_t)(0x2581 + util * 7 / 1000));
    gp_draw_right(box, 5, 0, 4, gp_load_ink(GP_SERIES_GPU, util), text.buf);
}

static void draw_blocks_of_gpus(const struct gp_box *box, const struct gp_gpus_view *view)
{
    const struct gp_layout *l = view->layout;
    int width = box->w / l->columns;
    for (int i = 0; i < l->shown; i++) {
        size_t row = view->first + (size_t)i;
        if (row >= view->snapshot->device_count)
            break;
        struct gp_box part = gp_box_part(box, i % l->columns * width,
                                         i / l->columns * l->gpu_height, width, l->gpu_height);
        if (l->density == GP_DENSITY_GRID)
            draw_tile(&part, &view->snapshot->devices[row]);
        else
            gp_draw_gpu(&part, &view->snapshot->devices[row], view);
        mark(&part, 0, row, view);
    }
    int used = (l->shown + l->columns - 1) / l->columns * l->gpu_height;
    if ((size_t)l->shown >= view->snapshot->device_count || used >= box->h)
        return;
    if (l->shown == 1)
        (void)gp_drawf(box, 0, used, GP_INK_DIM, "%zu of %zu GPUs", view->first + 1,
                       view->snapshot->device_count);
    else
        (void)gp_drawf(box, 0, used, GP_INK_DIM, "%zu-%zu of %zu GPUs", view->first + 1,
                       view->first + (size_t)l->shown, view->snapshot->device_count);
}

void gp_draw_gpus(const struct gp_box *box, const struct gp_gpus_view *view)
{
    if (view->layout->density == GP_DENSITY_LINE)
        draw_lines(box, view);
    else
        draw_blocks_of_gpus(box, view);
}
