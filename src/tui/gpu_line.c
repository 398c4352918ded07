#include "tui/gpu_line.h"

#include "base/utf8.h"
#include "model/snapshot.h"
#include "out/digits.h"
#include "tui/columns.h"
#include "tui/gpu_flags.h"
#include "tui/gpu_text.h"
#include "tui/gpus.h"
#include "tui/mig.h"
#include "tui/owners.h"

#include <stdio.h>

enum {
    NAMES_FROM = 72, /* columns from which names may have two words, and from which all of them */
    NAMES_WHOLE_FROM = 110,
    LIMITS_FROM = 96, /* columns from which the power limit is shown */
    SHARE_FROM = 26,  /* columns for the ids of an instance and its share of the GPU */
};

/* Values that are not current are drawn as stale, whatever their level. */
static enum gp_ink ink_of(const struct gp_device *device, enum gp_metric m, enum gp_ink ink)
{
    return device->values[m - GP_DEVICE__FIRST].status == GP_STATUS_OK ? ink : GP_INK_STALE;
}

/* Of who uses it: those of a GPU that does not answer are the last known ones. */
static enum gp_ink owners_ink(const struct gp_device *device)
{
    return gp_gpu_is_ill(device) ? GP_INK_STALE : device->process_count ? GP_INK_PLAIN : GP_INK_DIM;
}

static void draw_text(const struct gp_box *box, int y, const struct gp_column_place *place,
                      const struct gp_column *column, enum gp_ink ink, const char *text)
{
    if (!place->w)
        return;
    if (column->left)
        gp_draw_left(box, place->x, y, place->w, ink, text);
    else
        gp_draw_right(box, place->x, y, place->w, ink, text);
}

void gp_draw_more_gpus(const struct gp_box *box, int y, size_t count)
{
    (void)gp_drawf(box, 1, y, GP_INK_DIM, "+%zu more", count);
}

/* ---- lines ---- */

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
    LINE_OWNERS,
    LINE__COUNT,
};

static const struct gp_column line_columns[LINE__COUNT] = {
    [LINE_INDEX] = {"GPU", 3, 0, 0, false},      [LINE_NAME] = {"NAME", 4, 6, 0, true},
    [LINE_UTIL] = {"UTIL", 4, 1, 0, false},      [LINE_SPARK] = {"", 11, 9, 2, true},
    [LINE_BAR] = {"MEMORY", 6, 8, 1, true},      [LINE_MEMORY] = {"USED/TOTAL", 10, 2, 0, false},
    [LINE_TEMPERATURE] = {"°C", 3, 3, 0, false}, [LINE_POWER] = {"W", 4, 5, 0, false},
    [LINE_FLAGS] = {"!", 2, 4, 0, true},         [LINE_OWNERS] = {"USED BY", 9, 7, 3, true},
};

struct line_table {
    struct gp_column columns[LINE__COUNT];
    struct gp_column_place places[LINE__COUNT];
    char used_by[64];
    char past[32]; /* how long the sparkline is */
};

/* The widest name, cut at a word. */
static int width_of_names(const struct gp_snapshot *snapshot, int w)
{
    int most = w < NAMES_FROM ? 8 : w < NAMES_WHOLE_FROM ? 12 : 24;
    int width = line_columns[LINE_NAME].width;
    for (size_t i = 0; i < snapshot->device_count; i++) {
        const char *name = gp_gpu_short_name(&snapshot->devices[i]);
        int fit = (int)gp_gpu_name_fit(name, most);
        fit = fit ? fit : most;
        width = fit > width ? fit : width;
    }
    return width;
}

/* "last 40s", or what else is graphed. */
static void set_past(struct line_table *t, const struct gp_gpus_view *view)
{
    const uint64_t ns = 2 * view->span.step_ns * (uint64_t)t->places[LINE_SPARK].w;
    t->past[0] = '\0';
    struct gp_strbuf text = GP_STRBUF_ON(t->past, sizeof(t->past) - 1);
    gp_strbuf_adds(&text, "last ");
    gp_add_back(&text, (ns + GP_NS_PER_S / 2) / GP_NS_PER_S);
    t->columns[LINE_SPARK].title =
        view->series == GP_SERIES_GPU ? t->past : gp_series_titles[view->series];
}

/* The column of what the GPUs are ordered by: the last one to be dropped. */
static void keep_ordered(const struct gp_gpus_view *view, struct gp_column *temperature,
                         struct gp_column *memory)
{
    if (view->order->by == GP_ORDER_TEMPERATURE)
        temperature->rank = 1;
    if (view->order->by == GP_ORDER_FREE)
        memory->rank = 1;
}

static void set_table(struct line_table *t, const struct gp_gpus_view *view, int w)
{
    for (int i = 0; i < LINE__COUNT; i++)
        t->columns[i] = line_columns[i];
    t->columns[LINE_NAME].width = width_of_names(view->snapshot, w);
    if (view->no_graphs)
        t->columns[LINE_SPARK].width = 0;
    keep_ordered(view, &t->columns[LINE_TEMPERATURE], &t->columns[LINE_MEMORY]);
    if (w >= LIMITS_FROM) {
        t->columns[LINE_POWER].title = "W/LIM";
        t->columns[LINE_POWER].width = 9;
    }
    if (view->owner && *view->owner != '?') {
        (void)snprintf(t->used_by, sizeof(t->used_by), "USED BY %.48s", view->owner);
        t->columns[LINE_OWNERS].title = t->used_by;
    }
    gp_columns_place(t->columns, LINE__COUNT, w - 1, t->places);
    if (t->places[LINE_SPARK].w)
        set_past(t, view);
}

static void draw_name(const struct gp_box *box, int y, const struct gp_column_place *place,
                      const struct gp_device *device)
{
    const char *name = gp_gpu_short_name(device);
    size_t fit = gp_gpu_name_fit(name, place->w);
    if (fit > 0)
        (void)gp_drawf(box, place->x, y, GP_INK_PLAIN, "%.*s", (int)fit, name);
    else
        gp_draw_left(box, place->x, y, place->w, GP_INK_PLAIN, name);
}

static int end_of(const struct gp_column_place *place)
{
    return place->x + place->w;
}

/* Utilization and its past. The driver reports none for MIG instances and their GPU: there are the
 * ids of the instance, or the memory of all instances. */
static void draw_load(const struct gp_box *box, int y, const struct line_table *t,
                      const struct gp_device *device, const struct gp_gpus_view *view)
{
    const struct gp_column_place *util = &t->places[LINE_UTIL];
    const struct gp_column_place *spark = &t->places[LINE_SPARK];
    const struct gp_column_place *bar = &t->places[LINE_BAR];
    const struct gp_track *track = gp_history_find(view->history, device);
    const struct gp_plot plot = {track, (int)view->series,
                                 gp_track_max(track, device, view->series), view->series};
    int load = gp_series_permille(device, GP_SERIES_GPU);
    int memory = gp_series_permille(device, GP_SERIES_MEMORY);
    GP_GPU_TEXT(text);
    if (device->is_mig && load < 0 && spark->w) {
        const int room = end_of(spark) - util->x;
        gp_mig_add_ids(&text, device);
        if (room >= SHARE_FROM) {
            gp_strbuf_adds(&text, "  ");
            gp_mig_add_share(&text, view->snapshot, device);
        }
        gp_draw_left(box, util->x, y, room, GP_INK_DIM, text.buf);
    } else {
        gp_gpu_add_number(&text, device, GP_UTILIZATION_GPU, "%");
        draw_text(box, y, util, &t->columns[LINE_UTIL], gp_load_ink(GP_SERIES_GPU, load), text.buf);
    }
    int x = spark->w ? spark->x : bar->x;
    if (bar->w && gp_draw_mig_strip(box, x, y, end_of(bar) - x, view->snapshot, device))
        return;
    if (spark->w && !device->is_mig) /* not next to the bar */
        gp_draw_spark(box, spark->x, y, spark->w - (bar->w > 0), &plot, &view->span);
    if (bar->w)
        gp_draw_low_bar(box, bar->x, y, bar->w,
                        gp_gpu_memory_ink(device, track, view->snapshot->mono_ns), memory);
}

static void draw_values(const struct gp_box *box, int y, const struct line_table *t,
                        const struct gp_device *device, const struct gp_gpus_view *view)
{
    GP_GPU_TEXT(text);
#define CELL(id, ink, add, ...)                                                                    \
    gp_strbuf_reset(&text);                                                                        \
    add(&text, __VA_ARGS__);                                                                       \
    draw_text(box, y, &t->places[id], &t->columns[id], ink, text.buf)
    draw_load(box, y, t, device, view);
    CELL(LINE_MEMORY, ink_of(device, GP_MEMORY_USED, GP_INK_PLAIN), gp_gpu_add_memory, device);
    if (device->is_mig)
        return; /* it has no sensors of its own */
    CELL(LINE_TEMPERATURE, gp_gpu_temperature_ink(device), gp_gpu_add_number, device,
         GP_TEMPERATURE_GPU, "");
    const struct gp_flags_of of = {device, view->xids, view->snapshot->wall_ns};
    gp_gpu_draw_flags(box, t->places[LINE_FLAGS].x, y, t->places[LINE_FLAGS].w, &of);
    if (t->places[LINE_POWER].w < line_columns[LINE_POWER].width + 1) {
        CELL(LINE_POWER, ink_of(device, GP_POWER_DRAW, GP_INK_PLAIN), gp_gpu_add_number, device,
             GP_POWER_DRAW, "");
    } else {
        CELL(LINE_POWER, ink_of(device, GP_POWER_DRAW, GP_INK_PLAIN), gp_gpu_add_power, device);
    }
#undef CELL
}

static void draw_line(const struct gp_box *box, int y, const struct line_table *t,
                      const struct gp_device *device, const struct gp_gpus_view *view)
{
    GP_GPU_TEXT(text);
    const struct gp_column_place *owners = &t->places[LINE_OWNERS];
    const char *trouble = gp_gpu_trouble(device);
    gp_gpu_add_index(&text, device);
    draw_text(box, y, &t->places[LINE_INDEX], &t->columns[LINE_INDEX], GP_INK_STRONG, text.buf);
    if (t->places[LINE_NAME].w)
        draw_name(box, y, &t->places[LINE_NAME], device);
    if (trouble) { /* the reason replaces the values */
        int x = t->places[LINE_NAME].w ? end_of(&t->places[LINE_NAME]) + 1 : 4;
        int end = owners->w && device->process_count ? owners->x - 1 : box->w;
        const enum gp_ink ink = gp_gpu_is_ill(device) ? GP_INK_CRITICAL : GP_INK_DIM;
        if (gp_gpu_is_ill(device))
            x = gp_draw(box, x, y, ink, "! ");
        gp_gpu_draw_trouble(box, x, y, end - x, ink, device, false);
        if (!device->process_count)
            return;
    } else {
        draw_values(box, y, t, device, view);
    }
    if (!owners->w)
        return;
    gp_strbuf_reset(&text);
    gp_add_owners(&text, view->snapshot, device, view->owner, owners->w);
    gp_draw_left(box, owners->x, y, owners->w, owners_ink(device), text.buf);
}

bool gp_gpu_lines_have_past(const struct gp_gpus_view *view, int w)
{
    struct line_table t;
    set_table(&t, view, w - 1);
    return t.places[LINE_SPARK].w > 0;
}

void gp_draw_gpu_lines(const struct gp_box *box, const struct gp_gpus_view *view, size_t first,
                       void (*mark)(const struct gp_box *box, int y, size_t row,
                                    const struct gp_gpus_view *view))
{
    struct line_table t;
    set_table(&t, view, box->w - 1);
    struct gp_box inner = gp_box_part(box, 1, 0, box->w - 1, box->h);
    for (int c = 0; c < LINE__COUNT; c++)
        draw_text(&inner, 0, &t.places[c], &t.columns[c], GP_INK_TITLE, t.columns[c].title);
    const size_t places = view->order->count;
    const size_t end = view->first + (size_t)view->layout->shown;
    for (int y = 1; y < box->h && first < places; y++, first++) {
        const size_t row = gp_gpu_order_row(view->order, first);
        if (view->layout->has_more && first >= end) {
            gp_draw_more_gpus(&inner, y, places - (size_t)view->layout->shown);
            return;
        }
        draw_line(&inner, y, &t, &view->snapshot->devices[row], view);
        mark(box, y, row, view);
    }
}

/* ---- cells ---- */

enum {
    CELL_INDEX,
    CELL_LOAD, /* a block for utilization, one for memory, and the utilization */
    CELL_SPARK,
    CELL_MEMORY,
    CELL_TEMPERATURE,
    CELL_FLAGS,
    CELL_POWER,
    CELL_OWNERS,
    CELL__COUNT,
};

static const struct gp_column cell_columns[CELL__COUNT] = {
    [CELL_INDEX] = {"", 3, 0, 0, false},       [CELL_LOAD] = {"", 6, 0, 0, false},
    [CELL_SPARK] = {"", 6, 7, 1, true},        [CELL_MEMORY] = {"", 5, 2, 0, false},
    [CELL_TEMPERATURE] = {"", 3, 3, 0, false}, [CELL_FLAGS] = {"", 1, 0, 0, true},
    [CELL_POWER] = {"", 4, 5, 0, false},       [CELL_OWNERS] = {"", 10, 6, 1, true},
};

/* Why there are no values, in a word. */
static const char *trouble_word(const struct gp_device *device)
{
    switch (device->status) {
    case GP_STATUS_TIMEOUT:
        return "no answer";
    case GP_STATUS_ASLEEP:
        return "asleep";
    case GP_STATUS_LOST:
        return "lost";
    default:
        return "error";
    }
}

/* Free memory, in four columns. */
static void add_free(struct gp_strbuf *sb, const struct gp_device *device)
{
    double used;
    double total;
    if (!gp_device_number(device, GP_MEMORY_USED, &used) ||
        !gp_device_number(device, GP_MEMORY_TOTAL, &total)) {
        gp_strbuf_adds(sb, "--");
        return;
    }
    gp_add_whole(sb, (total - used) / (1 << 30));
    gp_strbuf_addc(sb, 'G');
}

/* Not higher than ▇, so that it does not touch the one above it. */
static void draw_block(const struct gp_box *box, int x, enum gp_ink ink, int permille)
{
    if (permille >= 0)
        gp_draw_fill(box, x, 0, 1, ink, (uint32_t)(0x2581 + permille * 6 / 1000));
}

static void draw_cell_owners(const struct gp_box *box, const struct gp_column_place *place,
                             const struct gp_gpus_view *view, const struct gp_device *device)
{
    GP_GPU_TEXT(text);
    if (!place->w)
        return;
    gp_add_owner_names(&text, view->snapshot, device, view->owner, place->w);
    gp_draw_left(box, place->x, 0, place->w, owners_ink(device), text.buf);
}

/* Places the columns. Returns the width without the gap to the next cell. */
static int place_cell(const struct gp_gpus_view *view, int w, struct gp_column columns[CELL__COUNT],
                      struct gp_column_place places[CELL__COUNT])
{
    const int inner = w - (w > GP_GRID_COLUMNS);
    for (int i = 0; i < CELL__COUNT; i++)
        columns[i] = cell_columns[i];
    if (view->no_graphs)
        columns[CELL_SPARK].width = 0;
    keep_ordered(view, &columns[CELL_TEMPERATURE], &columns[CELL_MEMORY]);
    gp_columns_place(columns, CELL__COUNT, inner, places);
    return inner;
}

bool gp_gpu_cell_has_past(const struct gp_gpus_view *view, int w)
{
    struct gp_column_place places[CELL__COUNT];
    struct gp_column columns[CELL__COUNT];
    (void)place_cell(view, w, columns, places);
    return places[CELL_SPARK].w > 0;
}

void gp_draw_gpu_cell(const struct gp_box *box, const struct gp_device *device,
                      const struct gp_gpus_view *view)
{
    struct gp_column_place places[CELL__COUNT];
    struct gp_column columns[CELL__COUNT];
    const struct gp_snapshot *s = view->snapshot;
    const struct gp_box inner =
        gp_box_part(box, 0, 0, place_cell(view, box->w, columns, places), 1);
    const int load_x = places[CELL_LOAD].x;
    const int load = gp_series_permille(device, GP_SERIES_GPU);
    double used;
    GP_GPU_TEXT(text);
#define CELL(id, ink, add, ...)                                                                    \
    gp_strbuf_reset(&text);                                                                        \
    add(&text, __VA_ARGS__);                                                                       \
    draw_text(&inner, 0, &places[id], &columns[id], ink, text.buf)
    CELL(CELL_INDEX, GP_INK_STRONG, gp_gpu_add_index, device);
    if (gp_gpu_trouble(device)) {
        gp_draw_left(box, load_x, 0, (places[CELL_OWNERS].w ? inner.w : box->w) - load_x,
                     gp_gpu_is_ill(device) ? GP_INK_CRITICAL : GP_INK_DIM, trouble_word(device));
        draw_cell_owners(&inner, &places[CELL_OWNERS], view, device);
        return;
    }
    draw_block(&inner, load_x, gp_load_ink(GP_SERIES_GPU, load), load);
    draw_block(&inner, load_x + 1,
               gp_gpu_memory_ink(device, gp_history_find(view->history, device), s->mono_ns),
               gp_series_permille(device, GP_SERIES_MEMORY));
    if (view->order->by == GP_ORDER_TEMPERATURE && !places[CELL_TEMPERATURE].w) {
        CELL(CELL_LOAD, gp_gpu_temperature_ink(device), gp_gpu_add_number, device,
             GP_TEMPERATURE_GPU, "°");
    } else if (view->order->by == GP_ORDER_FREE && !places[CELL_MEMORY].w) {
        CELL(CELL_LOAD, GP_INK_PLAIN, add_free, device);
    } else {
        CELL(CELL_LOAD, gp_load_ink(GP_SERIES_GPU, load), gp_gpu_add_number, device,
             GP_UTILIZATION_GPU, "%");
    }
    if (places[CELL_SPARK].w) {
        const struct gp_track *track = gp_history_find(view->history, device);
        const struct gp_plot plot = {track, (int)view->series,
                                     gp_track_max(track, device, view->series), view->series};
        gp_draw_spark(&inner, places[CELL_SPARK].x, 0, places[CELL_SPARK].w, &plot, &view->span);
    }
    if (gp_device_number(device, GP_MEMORY_USED, &used)) {
        CELL(CELL_MEMORY, ink_of(device, GP_MEMORY_USED, GP_INK_PLAIN), gp_gpu_add_gib, used);
    }
    CELL(CELL_TEMPERATURE, gp_gpu_temperature_ink(device), gp_gpu_add_number, device,
         GP_TEMPERATURE_GPU, "°");
    const struct gp_flags_of of = {device, view->xids, s->wall_ns};
    gp_gpu_draw_flags(&inner, places[CELL_FLAGS].x, 0, places[CELL_FLAGS].w, &of);
    CELL(CELL_POWER, ink_of(device, GP_POWER_DRAW, GP_INK_PLAIN), gp_gpu_add_number, device,
         GP_POWER_DRAW, "W");
    draw_cell_owners(&inner, &places[CELL_OWNERS], view, device);
#undef CELL
}
