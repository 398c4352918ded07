#include "tui/gpus.h"

#include "base/utf8.h"
#include "model/snapshot.h"
#include "tui/columns.h"

#include <stdio.h>
#include <string.h>

enum { TEXT_SIZE = 64 };

static const struct gp_value *value_of(const struct gp_device *device, enum gp_metric m)
{
    return &device->values[m - GP_DEVICE__FIRST];
}

static bool number(const struct gp_device *device, enum gp_metric m, double *ret)
{
    const struct gp_value *v = value_of(device, m);
    if (!gp_value_is_present(v))
        return false;
    *ret = gp_metric_number(m, v);
    return true;
}

static const char *text_of(const struct gp_device *device, enum gp_metric m, const char *other)
{
    const struct gp_value *v = value_of(device, m);
    return gp_value_is_present(v) ? v->s : other;
}

/* Old values are marked as such, whatever they are. */
static enum gp_ink ink_of(const struct gp_device *device, enum gp_metric m, enum gp_ink ink)
{
    return value_of(device, m)->status == GP_STATUS_OK ? ink : GP_INK_STALE;
}

static void format_number(char out[TEXT_SIZE], const struct gp_device *device, enum gp_metric m,
                          const char *unit)
{
    double n;
    if (number(device, m, &n))
        (void)snprintf(out, TEXT_SIZE, "%.0f%s", n, unit);
    else
        (void)snprintf(out, TEXT_SIZE, "--");
}

/* The product's name without what all of them have in common. */
static const char *short_name(const struct gp_device *device)
{
    static const char *const heads[] = {"NVIDIA ", "GeForce "};
    const char *name = text_of(device, device->is_mig ? GP_MIG_PROFILE : GP_NAME, "?");
    for (size_t i = 0; i < GP_ARRAY_LEN(heads); i++)
        if (strncmp(name, heads[i], strlen(heads[i])) == 0)
            name += strlen(heads[i]);
    return name;
}

static void format_index(char out[TEXT_SIZE], const struct gp_device *device)
{
    if (device->is_mig)
        (void)snprintf(out, TEXT_SIZE, "└%u", device->mig_index);
    else
        (void)snprintf(out, TEXT_SIZE, "%u", device->index);
}

static void format_memory(char out[TEXT_SIZE], const struct gp_device *device)
{
    double used;
    double total;
    const double gib = 1024.0 * 1024 * 1024;
    if (number(device, GP_MEMORY_USED, &used) && number(device, GP_MEMORY_TOTAL, &total))
        (void)snprintf(out, TEXT_SIZE, "%.1f/%.1fG", used / gib, total / gib);
    else
        (void)snprintf(out, TEXT_SIZE, "--");
}

static void format_power(char out[TEXT_SIZE], const struct gp_device *device)
{
    double draw;
    double limit;
    if (!number(device, GP_POWER_DRAW, &draw))
        (void)snprintf(out, TEXT_SIZE, "--");
    else if (number(device, GP_POWER_LIMIT_ENFORCED, &limit))
        (void)snprintf(out, TEXT_SIZE, "%.0f/%.0f", draw, limit);
    else
        (void)snprintf(out, TEXT_SIZE, "%.0f", draw);
}

/* Hot is what the GPU itself calls hot. */
static enum gp_ink temperature_ink(const struct gp_device *device)
{
    double now;
    double limit;
    if (!number(device, GP_TEMPERATURE_GPU, &now))
        return GP_INK_STALE;
    if (!number(device, GP_THRESHOLD_SLOWDOWN, &limit))
        limit = 90;
    return now >= limit ? GP_INK_CRITICAL : now >= limit - 10 ? GP_INK_HIGH : GP_INK_PLAIN;
}

/* What holds the clocks down: nvmlClocksEventReasons, of nvml.h. */
static const struct {
    uint64_t bits;
    char letter;
    const char *word;
} limits[] = {
    {0x08 | 0x20 | 0x40, 'T', "heat"},
    {0x04 | 0x80, 'P', "power"},
    {0x10, 'S', "sync boost"},
};

static size_t find_limit(const struct gp_device *device)
{
    const struct gp_value *v = value_of(device, GP_REASONS_ACTIVE);
    size_t i = 0;
    while (i < GP_ARRAY_LEN(limits) &&
           !(v->status == GP_STATUS_OK && ((uint64_t)v->i & limits[i].bits)))
        i++;
    return i;
}

/* What is wrong with it, a letter each. */
static void format_flags(char out[TEXT_SIZE], const struct gp_device *device)
{
    size_t limit = find_limit(device);
    size_t n = 0;
    const char *action = text_of(device, GP_RECOVERY_ACTION, "None");
    if (device->status != GP_STATUS_OK)
        out[n++] = '!';
    if (strcmp(action, "None") != 0)
        out[n++] = 'R';
    if (limit < GP_ARRAY_LEN(limits))
        out[n++] = limits[limit].letter;
    out[n] = '\0';
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
    LINE__COUNT,
};

static const struct gp_column line_columns[LINE__COUNT] = {
    [LINE_INDEX] = {"GPU", 3, 0, 0, false},      [LINE_NAME] = {"NAME", 9, 6, 1, true},
    [LINE_UTIL] = {"UTIL", 4, 1, 0, false},      [LINE_SPARK] = {"", 10, 9, 2, true},
    [LINE_BAR] = {"MEMORY", 8, 8, 1, true},      [LINE_MEMORY] = {"USED/TOTAL", 11, 2, 0, false},
    [LINE_TEMPERATURE] = {"°C", 3, 3, 0, false}, [LINE_POWER] = {"W/LIM", 9, 5, 0, false},
    [LINE_FLAGS] = {"", 2, 4, 0, true},
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

/* A GPU that cannot be asked says why, in place of its graph. */
static void draw_line(const struct gp_box *box, int y, const struct gp_column_place *places,
                      const struct gp_device *device, const struct gp_gpus_view *view)
{
    char text[TEXT_SIZE];
    const struct gp_track *track = gp_history_find(view->history, device);
    int util = gp_series_permille(device, GP_SERIES_GPU);
    int memory = gp_series_permille(device, GP_SERIES_MEMORY);
#define CELL(id, ink) draw_cell(box, y, &places[id], &line_columns[id], ink, text)
    format_index(text, device);
    CELL(LINE_INDEX, GP_INK_STRONG);
    draw_cell(box, y, &places[LINE_NAME], &line_columns[LINE_NAME], GP_INK_PLAIN,
              short_name(device));
    if (device->status != GP_STATUS_OK) {
        int x = places[LINE_NAME].w ? places[LINE_NAME].x + places[LINE_NAME].w + 1 : 4;
        int end = places[LINE_FLAGS].w ? places[LINE_FLAGS].x : box->w;
        gp_draw_left(box, x, y, end - x, GP_INK_CRITICAL, device->status_text);
    } else {
        format_number(text, device, GP_UTILIZATION_GPU, "%");
        CELL(LINE_UTIL, gp_load_ink(GP_SERIES_GPU, util));
        if (places[LINE_SPARK].w)
            gp_draw_spark(box, places[LINE_SPARK].x, y, places[LINE_SPARK].w, track, GP_SERIES_GPU,
                          &view->span);
        if (places[LINE_BAR].w)
            gp_draw_bar(box, places[LINE_BAR].x, y, places[LINE_BAR].w,
                        gp_load_ink(GP_SERIES_MEMORY, memory), memory);
        format_memory(text, device);
        CELL(LINE_MEMORY, ink_of(device, GP_MEMORY_USED, GP_INK_PLAIN));
        format_number(text, device, GP_TEMPERATURE_GPU, "");
        CELL(LINE_TEMPERATURE, temperature_ink(device));
        format_power(text, device);
        CELL(LINE_POWER, ink_of(device, GP_POWER_DRAW, GP_INK_PLAIN));
    }
    format_flags(text, device);
    CELL(LINE_FLAGS, GP_INK_CRITICAL);
#undef CELL
}

static void draw_lines(const struct gp_box *box, const struct gp_gpus_view *view)
{
    struct gp_column_place places[LINE__COUNT];
    gp_columns_place(line_columns, LINE__COUNT, box->w - 1, places);
    struct gp_box inner = gp_box_part(box, 1, 0, box->w - 1, box->h);
    for (int c = 0; c < LINE__COUNT; c++)
        draw_cell(&inner, 0, &places[c], &line_columns[c], GP_INK_TITLE, line_columns[c].title);
    for (int i = 0; i < view->layout->shown; i++) {
        size_t row = view->first + (size_t)i;
        if (row >= view->snapshot->device_count)
            break;
        draw_line(&inner, i + 1, places, &view->snapshot->devices[row], view);
        if (row == view->chosen)
            gp_draw_ink(box, i + 1, GP_INK_SELECTED);
    }
}

/* ---- cards and bars ---- */

static void draw_title(const struct gp_box *box, const struct gp_device *device)
{
    char clocks[TEXT_SIZE];
    char power[TEXT_SIZE];
    char right[3 * TEXT_SIZE];
    double sm;
    double memory;
    double celsius;
    char index[TEXT_SIZE];
    format_index(index, device);
    int x = gp_drawf(box, 1, 0, GP_INK_STRONG, "%s %s", index, short_name(device));
    (void)gp_drawf(box, x + 2, 0, GP_INK_DIM, "%s", text_of(device, GP_PSTATE, ""));
    clocks[0] = '\0';
    if (number(device, GP_CLOCK_SM, &sm) && number(device, GP_CLOCK_MEMORY, &memory))
        (void)snprintf(clocks, sizeof(clocks), "  %.0f/%.0f MHz", sm, memory);
    format_power(power, device);
    (void)snprintf(right, sizeof(right), "%s W%s", power, clocks);
    int start = box->w - 1 - (int)gp_utf8_width(right);
    gp_draw_right(box, x + 1, 0, box->w - 1 - x - 1, GP_INK_PLAIN, right);
    char heat[TEXT_SIZE];
    char fan[TEXT_SIZE];
    if (!number(device, GP_TEMPERATURE_GPU, &celsius))
        return;
    int n = snprintf(heat, sizeof(heat), "%.0f°C", celsius);
    if (number(device, GP_TEMPERATURE_MEMORY, &celsius))
        (void)snprintf(heat + n, sizeof(heat) - (size_t)n, " mem %.0f°C", celsius);
    format_number(fan, device, GP_FAN_SPEED, "%");
    char all[3 * TEXT_SIZE];
    (void)snprintf(all, sizeof(all), "%s  fan %s", heat, fan);
    if (start - (int)gp_utf8_width(all) > x + 4)
        gp_draw_right(box, x + 5, 0, start - 2 - x - 5, temperature_ink(device), all);
}

static void draw_bars(const struct gp_box *box, const struct gp_device *device)
{
    static const struct {
        const char *label;
        enum gp_series series;
    } bars[] = {{"GPU", GP_SERIES_GPU}, {"MEM", GP_SERIES_MEMORY}};
    int half = box->w / 2;
    for (int i = 0; i < 2; i++) {
        int permille = gp_series_permille(device, bars[i].series);
        enum gp_ink ink = gp_load_ink(bars[i].series, permille);
        char text[TEXT_SIZE];
        int x = gp_draw(box, i * half + 1, 1, GP_INK_DIM, bars[i].label) + 1;
        int end = (i + 1) * half;
        int room = i == 0 ? 5 : 17;
        gp_draw_bar(box, x, 1, end - x - room, ink, permille);
        if (permille == GP_TRACK_GAP)
            (void)snprintf(text, sizeof(text), "--");
        else if (i == 0)
            (void)snprintf(text, sizeof(text), "%d%%", permille / 10);
        else
            format_memory(text, device);
        gp_draw_right(box, end - room + 1, 1, room - 1, ink, text);
    }
}

/* Bytes per second in three digits or fewer. */
static void add_rate(char *out, size_t size, const char *label, const struct gp_device *device,
                     enum gp_metric tx, enum gp_metric rx)
{
    double sent;
    double received;
    size_t n = strlen(out);
    if (n < size && number(device, tx, &sent) && number(device, rx, &received))
        (void)snprintf(out + n, size - n, "%s ↓%.1f ↑%.1f GB/s · ", label, received / 1e9,
                       sent / 1e9);
}

static void draw_links(const struct gp_box *box, const struct gp_device *device)
{
    char text[256] = "";
    char enc[TEXT_SIZE];
    char dec[TEXT_SIZE];
    char label[TEXT_SIZE] = "PCIe";
    double gen;
    double width;
    double gen_max;
    double width_max;
    size_t limit = find_limit(device);
    bool slow = false;
    if (number(device, GP_PCIE_GEN, &gen) && number(device, GP_PCIE_WIDTH, &width)) {
        (void)snprintf(label, sizeof(label), "PCIe %.0fx%.0f", gen, width);
        slow = number(device, GP_PCIE_GEN_MAX, &gen_max) &&
               number(device, GP_PCIE_WIDTH_MAX, &width_max) && width < width_max;
    }
    size_t before = strlen(text);
    add_rate(text, sizeof(text), label, device, GP_PCIE_TX, GP_PCIE_RX);
    if (strlen(text) == before)
        (void)snprintf(text, sizeof(text), "%s · ", label);
    add_rate(text, sizeof(text), "NVLink", device, GP_NVLINK_RATE_TX, GP_NVLINK_RATE_RX);
    format_number(enc, device, GP_UTILIZATION_ENCODER, "%");
    format_number(dec, device, GP_UTILIZATION_DECODER, "%");
    size_t n = strlen(text);
    (void)snprintf(text + n, sizeof(text) - n, "ENC %s DEC %s", enc, dec);
    int x = gp_draw(box, 1, 2, GP_INK_PLAIN, text) + 2;
    if (slow)
        x = gp_draw(box, x, 2, GP_INK_HIGH, "narrow PCIe") + 2;
    if (limit < GP_ARRAY_LEN(limits))
        x = gp_drawf(box, x, 2, GP_INK_HIGH, "limited: %s", limits[limit].word) + 2;
    const char *action = text_of(device, GP_RECOVERY_ACTION, "None");
    if (strcmp(action, "None") != 0)
        (void)gp_drawf(box, x, 2, GP_INK_CRITICAL, "recovery: %s", action);
}

static void draw_card(const struct gp_box *box, const struct gp_device *device,
                      const struct gp_gpus_view *view)
{
    if (device->status != GP_STATUS_OK) {
        char index[TEXT_SIZE];
        format_index(index, device);
        (void)gp_drawf(box, 1, 0, GP_INK_STRONG, "%s %s", index, short_name(device));
        (void)gp_drawf(box, 1, 1, GP_INK_CRITICAL, "! %s", device->status_text);
    } else {
        draw_title(box, device);
        draw_bars(box, device);
        draw_links(box, device);
    }
    if (box->h <= GP_TEXT_LINES)
        return;
    struct gp_box graph = gp_box_part(box, 6, GP_TEXT_LINES, box->w - 7, box->h - GP_TEXT_LINES);
    for (int y = 0; y < graph.h; y++)
        (void)gp_draw(box, 0, GP_TEXT_LINES + y, GP_INK_DIM,
                      y == 0             ? " 100%│"
                      : y == graph.h - 1 ? "   0%│"
                                         : "     │");
    gp_draw_graph(&graph, gp_history_find(view->history, device), GP_SERIES_GPU, &view->span,
                  view->blocks);
}

/* ---- a grid ---- */

static void draw_tile(const struct gp_box *box, const struct gp_device *device)
{
    char index[TEXT_SIZE];
    char text[TEXT_SIZE];
    int util = gp_series_permille(device, GP_SERIES_GPU);
    format_index(index, device);
    format_number(text, device, GP_UTILIZATION_GPU, "%");
    gp_draw_right(box, 0, 0, 3, GP_INK_STRONG, index);
    if (device->status != GP_STATUS_OK) {
        gp_draw_left(box, 4, 0, 5, GP_INK_CRITICAL, gp_device_state(device->status));
        return;
    }
    if (util != GP_TRACK_GAP)
        gp_draw_fill(box, 4, 0, 1, gp_load_ink(GP_SERIES_GPU, util),
                     (uint32_t)(0x2581 + util * 7 / 1000));
    gp_draw_right(box, 5, 0, 4, gp_load_ink(GP_SERIES_GPU, util), text);
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
            draw_card(&part, &view->snapshot->devices[row], view);
        if (row == view->chosen)
            gp_draw_ink(&part, 0, GP_INK_SELECTED);
    }
}

void gp_draw_gpus(const struct gp_box *box, const struct gp_gpus_view *view)
{
    if (view->layout->density == GP_DENSITY_LINE)
        draw_lines(box, view);
    else
        draw_blocks_of_gpus(box, view);
}

/* ---- the heading ---- */

static const char *host_text(const struct gp_snapshot *snapshot, enum gp_metric m,
                             const char *other)
{
    const struct gp_value *v = &snapshot->host[m];
    return gp_value_is_present(v) ? v->s : other;
}

/* "376/637 GiB", "3.1/5.6 kW": as short as it can be told. */
static int draw_share(const struct gp_box *box, int x, double part, double whole, const char *unit)
{
    return gp_drawf(box, x, 0, GP_INK_PLAIN, whole < 100 ? " · %.1f/%.1f %s" : " · %.0f/%.0f %s",
                    part, whole, unit);
}

/* Of all GPUs, their instances apart; what one does not tell is left out. */
static double sum(const struct gp_snapshot *snapshot, enum gp_metric m)
{
    double total = 0;
    double n;
    for (size_t i = 0; i < snapshot->device_count; i++)
        if (!snapshot->devices[i].is_mig && number(&snapshot->devices[i], m, &n))
            total += n;
    return total;
}

void gp_draw_header(const struct gp_box *box, const struct gp_snapshot *snapshot, const char *right)
{
    int end = box->w - 1 - (int)gp_utf8_width(right);
    gp_draw_right(box, 0, 0, box->w - 1, GP_INK_PLAIN, right);
    struct gp_box left = gp_box_part(box, 0, 0, end - 1, 1);
    if (!snapshot) {
        (void)gp_draw(&left, 1, 0, GP_INK_STRONG, "gpulse");
        return;
    }
    size_t gpus = 0;
    for (size_t i = 0; i < snapshot->device_count; i++)
        gpus += !snapshot->devices[i].is_mig;
    const double gib = 1024.0 * 1024 * 1024;
    int x = gp_draw(&left, 1, 0, GP_INK_STRONG, host_text(snapshot, GP_HOST_NAME, "?"));
    x = gp_drawf(&left, x, 0, GP_INK_PLAIN, " · %s · CUDA %s",
                 host_text(snapshot, GP_DRIVER_VERSION, "?"),
                 host_text(snapshot, GP_CUDA_VERSION, "?"));
    double limit = sum(snapshot, GP_POWER_LIMIT_ENFORCED);
    double scale = limit < 1000 ? 1 : 1000;
    x = gp_drawf(&left, x, 0, GP_INK_PLAIN, "  %zu GPU", gpus);
    if (limit > 0)
        x = draw_share(&left, x, sum(snapshot, GP_POWER_DRAW) / scale, limit / scale,
                       limit < 1000 ? "W" : "kW");
    (void)draw_share(&left, x, sum(snapshot, GP_MEMORY_USED) / gib,
                     sum(snapshot, GP_MEMORY_TOTAL) / gib, "GiB");
}
