#include "tui/gpus.h"

#include "base/strbuf.h"
#include "base/utf8.h"
#include "model/snapshot.h"
#include "out/digits.h"
#include "tui/columns.h"

#include <stdio.h>
#include <string.h>

enum {
    TEXT_SIZE = 64,
    RESERVED_FROM = 96, /* columns of the terminal that leave the names of GPUs readable */
    LABELS_FROM = 100,  /* minimum columns of a card to label both clocks */
};

static const struct gp_value *value_of(const struct gp_device *device, enum gp_metric m)
{
    return &device->values[m - GP_DEVICE__FIRST];
}

/* Values that are not current are drawn as stale, whatever their level. */
static enum gp_ink ink_of(const struct gp_device *device, enum gp_metric m, enum gp_ink ink)
{
    return value_of(device, m)->status == GP_STATUS_OK ? ink : GP_INK_STALE;
}

static void format_number(char out[TEXT_SIZE], const struct gp_device *device, enum gp_metric m,
                          const char *unit)
{
    double n;
    if (gp_device_number(device, m, &n))
        (void)snprintf(out, TEXT_SIZE, "%ld%s", gp_whole(n), unit);
    else
        (void)snprintf(out, TEXT_SIZE, "--");
}

/* The product name without the common prefixes. */
static const char *short_name(const struct gp_device *device)
{
    static const char *const heads[] = {"NVIDIA ", "GeForce "};
    const char *name = gp_device_text(device, device->is_mig ? GP_MIG_PROFILE : GP_NAME, "?");
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
    if (!gp_device_number(device, GP_MEMORY_USED, &used) ||
        !gp_device_number(device, GP_MEMORY_TOTAL, &total))
        (void)snprintf(out, TEXT_SIZE, "--");
    else if (total < 100 * gib)
        (void)snprintf(out, TEXT_SIZE, GP_TENTHS "/" GP_TENTHS "G", GP_TENTHS_OF(used / gib),
                       GP_TENTHS_OF(total / gib));
    else
        (void)snprintf(out, TEXT_SIZE, GP_TENTHS "/%ldG", GP_TENTHS_OF(used / gib),
                       gp_whole(total / gib));
}

static void format_power(char out[TEXT_SIZE], const struct gp_device *device)
{
    double draw;
    double limit;
    if (!gp_device_number(device, GP_POWER_DRAW, &draw))
        (void)snprintf(out, TEXT_SIZE, "--");
    else if (gp_device_number(device, GP_POWER_LIMIT_ENFORCED, &limit))
        (void)snprintf(out, TEXT_SIZE, "%ld/%ld", gp_whole(draw), gp_whole(limit));
    else
        (void)snprintf(out, TEXT_SIZE, "%ld", gp_whole(draw));
}

/* The limits are the GPU's own thresholds. */
static enum gp_ink temperature_ink(const struct gp_device *device)
{
    double now;
    double limit;
    if (!gp_device_number(device, GP_TEMPERATURE_GPU, &now))
        return GP_INK_STALE;
    if (!gp_device_number(device, GP_THRESHOLD_SLOWDOWN, &limit))
        limit = 90;
    return now >= limit ? GP_INK_CRITICAL : now >= limit - 10 ? GP_INK_HIGH : GP_INK_PLAIN;
}

/* Reasons that limit the clocks: nvmlClocksEventReasons in nvml.h. */
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

const char *gp_gpu_trouble(const struct gp_device *device)
{
    static const enum gp_metric told[] = {GP_UTILIZATION_GPU, GP_MEMORY_USED, GP_TEMPERATURE_GPU,
                                          GP_POWER_DRAW};
    double n;
    enum gp_status why = GP_STATUS_NONE;
    if (device->status != GP_STATUS_OK)
        return gp_device_trouble(device);
    for (size_t i = 0; i < GP_ARRAY_LEN(told); i++) {
        enum gp_status status = value_of(device, told[i])->status;
        if (gp_device_number(device, told[i], &n) || status == GP_STATUS_NONE)
            return NULL;
        why = status != GP_STATUS_UNSUPPORTED ? status : why;
    }
    return why == GP_STATUS_NONE ? NULL : gp_device_state(why);
}

bool gp_gpu_is_ill(const struct gp_device *device)
{
    return gp_gpu_trouble(device) && device->status != GP_STATUS_ASLEEP &&
           device->status != GP_STATUS_RELEASED;
}

/* One letter for each problem. */
static void format_flags(char out[TEXT_SIZE], const struct gp_device *device)
{
    size_t limit = find_limit(device);
    size_t n = 0;
    const char *action = gp_device_text(device, GP_RECOVERY_ACTION, "None");
    if (gp_gpu_trouble(device))
        out[n++] = '!';
    if (strcmp(action, "None") != 0)
        out[n++] = 'R';
    if (limit < GP_ARRAY_LEN(limits))
        out[n++] = limits[limit].letter;
    out[n] = '\0';
}

void gp_gpu_add_flag_words(struct gp_strbuf *sb, const struct gp_device *device)
{
    size_t limit = find_limit(device);
    const char *trouble = gp_gpu_trouble(device);
    const char *action = gp_device_text(device, GP_RECOVERY_ACTION, "None");
    if (trouble)
        gp_strbuf_addf(sb, "!: %s", trouble);
    if (strcmp(action, "None") != 0)
        gp_strbuf_addf(sb, "%sR: needs recovery: %s", sb->len ? "; " : "", action);
    if (limit < GP_ARRAY_LEN(limits))
        gp_strbuf_addf(sb, "%s%c: %s limits the clocks", sb->len ? "; " : "", limits[limit].letter,
                       limits[limit].word);
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
    char text[TEXT_SIZE];
    const struct gp_plot plot = {gp_history_find(view->history, device), (int)view->series,
                                 gp_series_max(device, view->series), view->series};
    int util = gp_series_permille(device, GP_SERIES_GPU);
    int memory = gp_series_permille(device, GP_SERIES_MEMORY);
#define CELL(id, ink) draw_cell(box, y, &places[id], &line_columns[id], ink, text)
    format_index(text, device);
    CELL(LINE_INDEX, GP_INK_STRONG);
    draw_cell(box, y, &places[LINE_NAME], &line_columns[LINE_NAME], GP_INK_PLAIN,
              short_name(device));
    const char *trouble = gp_gpu_trouble(device);
    if (trouble) {
        int x = places[LINE_NAME].w ? places[LINE_NAME].x + places[LINE_NAME].w + 1 : 4;
        int end = places[LINE_FLAGS].w ? places[LINE_FLAGS].x : box->w;
        gp_draw_left(box, x, y, end - x, GP_INK_CRITICAL, trouble);
    } else {
        format_number(text, device, GP_UTILIZATION_GPU, "%");
        CELL(LINE_UTIL, gp_load_ink(GP_SERIES_GPU, util));
        if (places[LINE_SPARK].w)
            gp_draw_spark(box, places[LINE_SPARK].x, y, places[LINE_SPARK].w, &plot, &view->span);
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
    (void)gp_drawf(box, x + 2, 0, GP_INK_DIM, "%s", gp_device_text(device, GP_PSTATE, ""));
    clocks[0] = '\0';
    if (gp_device_number(device, GP_CLOCK_SM, &sm) &&
        gp_device_number(device, GP_CLOCK_MEMORY, &memory))
        (void)snprintf(clocks, sizeof(clocks),
                       box->w >= LABELS_FROM ? "  SM %ld MEM %ld MHz" : "  %ld/%ld MHz",
                       gp_whole(sm), gp_whole(memory));
    format_power(power, device);
    (void)snprintf(right, sizeof(right), "%s W%s", power, clocks);
    int start = box->w - 1 - (int)gp_utf8_width(right);
    gp_draw_right(box, x + 1, 0, box->w - 1 - x - 1, GP_INK_PLAIN, right);
    char heat[TEXT_SIZE];
    char fan[TEXT_SIZE];
    if (!gp_device_number(device, GP_TEMPERATURE_GPU, &celsius))
        return;
    int n = snprintf(heat, sizeof(heat), "%ld°C", gp_whole(celsius));
    if (gp_device_number(device, GP_TEMPERATURE_MEMORY, &celsius))
        (void)snprintf(heat + n, sizeof(heat) - (size_t)n, " mem %ld°C", gp_whole(celsius));
    format_number(fan, device, GP_FAN_SPEED, "%");
    char all[3 * TEXT_SIZE];
    (void)snprintf(all, sizeof(all), "%s  fan %s", heat, fan);
    if (start - (int)gp_utf8_width(all) > x + 4)
        gp_draw_right(box, x + 5, 0, start - 2 - x - 5, temperature_ink(device), all);
}

/* Used memory, followed by the memory that the driver and firmware reserve. */
static void draw_memory_bar(const struct gp_box *box, int x, int y, int w,
                            const struct gp_device *device)
{
    double reserved;
    double total;
    int used = gp_series_permille(device, GP_SERIES_MEMORY);
    gp_draw_bar(box, x, y, w, gp_load_ink(GP_SERIES_MEMORY, used), used);
    if (used < 0 || !gp_device_number(device, GP_MEMORY_RESERVED, &reserved) ||
        !gp_device_number(device, GP_MEMORY_TOTAL, &total) || total <= 0)
        return;
    int from = (used * w + 999) / 1000;
    int columns = (int)(reserved / total * w + 0.5);
    columns = columns > w - from ? w - from : columns;
    gp_draw_fill(box, x + from, y, columns, GP_INK_DIM, 0x2591);
}

/* The bars of a card. The later ones need a wide card, or a GPU that reports the value. */
static const struct {
    const char *label;
    enum gp_series series;
    int from; /* minimum columns of the card */
} bars[] = {
    {"GPU", GP_SERIES_GPU, 0},
    {"MEM", GP_SERIES_MEMORY, 0},
    {"BUS", GP_SERIES_BANDWIDTH, 110},
    {"SM", GP_SERIES_SM, 140},
};

static void draw_bars(const struct gp_box *box, const struct gp_device *device)
{
    int count = 2;
    while (count < (int)GP_ARRAY_LEN(bars) && box->w >= bars[count].from &&
           gp_series_permille(device, bars[count].series) >= 0)
        count++;
    int width = box->w / count;
    for (int i = 0; i < count; i++) {
        bool is_memory = bars[i].series == GP_SERIES_MEMORY;
        int permille = gp_series_permille(device, bars[i].series);
        enum gp_ink ink = gp_load_ink(bars[i].series, permille);
        char text[TEXT_SIZE] = "--";
        int x = gp_draw(box, i * width + 1, 1, GP_INK_DIM, bars[i].label) + 1;
        int end = (i + 1) * width;
        int room = is_memory ? 17 : 5;
        if (is_memory)
            draw_memory_bar(box, x, 1, end - x - room, device);
        else
            gp_draw_bar(box, x, 1, end - x - room, ink, permille);
        if (is_memory && permille >= 0)
            format_memory(text, device);
        else if (permille >= 0)
            (void)snprintf(text, sizeof(text), "%d%%", (permille + 5) / 10);
        gp_draw_right(box, end - room + 1, 1, room - 1, ink, text);
    }
}

/* Bytes per second in at most three digits. */
static void add_rate(char *out, size_t size, const char *label, const struct gp_device *device,
                     enum gp_metric tx, enum gp_metric rx)
{
    double sent;
    double received;
    size_t n = strlen(out);
    if (n < size && gp_device_number(device, tx, &sent) && gp_device_number(device, rx, &received))
        (void)snprintf(out + n, size - n, "%s ↓" GP_TENTHS " ↑" GP_TENTHS " GB/s · ", label,
                       GP_TENTHS_OF(received / 1e9), GP_TENTHS_OF(sent / 1e9));
}

/* "PCIe 5x16 ↓1.2 ↑0.3 GB/s". Returns whether fewer lanes are in use than possible. */
static bool add_pcie(char *out, size_t size, const struct gp_device *device)
{
    char label[TEXT_SIZE] = "PCIe";
    double gen;
    double width;
    double width_max;
    bool known = gp_device_number(device, GP_PCIE_GEN, &gen) &&
                 gp_device_number(device, GP_PCIE_WIDTH, &width);
    if (known)
        (void)snprintf(label, sizeof(label), "PCIe %ldx%ld", gp_whole(gen), gp_whole(width));
    size_t before = strlen(out);
    add_rate(out, size, label, device, GP_PCIE_TX, GP_PCIE_RX);
    if (strlen(out) == before)
        (void)snprintf(out, size, "%s · ", label);
    return known && gp_device_number(device, GP_PCIE_WIDTH_MAX, &width_max) && width < width_max;
}

/* Values that a wide card shows as bars instead. */
static void add_loads(char *out, size_t size, const struct gp_device *device)
{
    static const struct {
        const char *label;
        enum gp_metric metric;
    } loads[] = {
        {"ENC", GP_UTILIZATION_ENCODER},
        {"DEC", GP_UTILIZATION_DECODER},
        {"BUS", GP_UTILIZATION_MEMORY},
        {"SM", GP_GPM_SM},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(loads); i++) {
        char text[TEXT_SIZE];
        size_t n = strlen(out);
        format_number(text, device, loads[i].metric, "%");
        if (n < size && (i < 2 || text[0] != '-'))
            (void)snprintf(out + n, size - n, "%s%s %s", i == 0 ? "" : " ", loads[i].label, text);
    }
}

/* A duration, coarse enough to rarely change. */
static size_t add_time(char *out, size_t size, uint64_t ns)
{
    unsigned long long s = ns / GP_NS_PER_S;
    if (s < 10)
        return 0;
    if (s < 60)
        return (size_t)snprintf(out, size, " %llus", s / 10 * 10);
    if (s < 3600)
        return (size_t)snprintf(out, size, " %llum", s / 60);
    return (size_t)snprintf(out, size, " %lluh", s / 3600);
}

/* Appends the problems in words. Returns the ink of the most severe one. */
static enum gp_ink add_troubles(char *out, size_t size, const struct gp_device *device,
                                const struct gp_track *track, bool narrow, uint64_t now_ns)
{
    size_t limit = find_limit(device);
    double errors;
    const char *action = gp_device_text(device, GP_RECOVERY_ACTION, "None");
    enum gp_ink ink = GP_INK_HIGH;
    size_t n = 0;
    if (strcmp(action, "None") != 0) {
        n += (size_t)snprintf(out + n, size - n, " recovery: %.40s", action);
        ink = GP_INK_CRITICAL;
    }
    if (gp_device_number(device, GP_ECC_UNCORRECTED_VOLATILE, &errors) && errors > 0) {
        n += (size_t)snprintf(out + n, size - n, " ECC errors: %ld", gp_whole(errors));
        ink = GP_INK_CRITICAL;
    }
    if (limit < GP_ARRAY_LEN(limits))
        n += (size_t)snprintf(out + n, size - n, " limited: %s", limits[limit].word);
    if (limit < GP_ARRAY_LEN(limits) && track && track->limited_since_ns)
        n += add_time(out + n, size - n, now_ns - track->limited_since_ns);
    if (narrow)
        (void)snprintf(out + n, size - n, " narrow PCIe");
    return ink;
}

static void draw_links(const struct gp_box *box, const struct gp_device *device,
                       const struct gp_gpus_view *view)
{
    char text[256] = "";
    char troubles[256] = "";
    bool narrow = add_pcie(text, sizeof(text), device);
    add_rate(text, sizeof(text), "NVLink", device, GP_NVLINK_RATE_TX, GP_NVLINK_RATE_RX);
    add_loads(text, sizeof(text), device);
    enum gp_ink ink =
        add_troubles(troubles, sizeof(troubles), device, gp_history_find(view->history, device),
                     narrow, view->snapshot->mono_ns);
    int end = box->w - 1 - (int)gp_utf8_width(troubles);
    gp_draw_left(box, 1, 2, end - 1, GP_INK_PLAIN, text);
    gp_draw_right(box, end, 2, box->w - 1 - end, ink, troubles);
}

/* The graphs below a card: the selected series, followed by as many others as fit. */
static void draw_graphs(const struct gp_box *box, const struct gp_device *device,
                        const struct gp_gpus_view *view)
{
    enum { LINES = 8 };
    int count = box->h / LINES < 1 ? 1 : box->h / LINES;
    for (int i = 0; i < count; i++) {
        enum gp_series series = (enum gp_series)(((int)view->series + i) % GP_SERIES__COUNT);
        int y = box->h * i / count;
        struct gp_box part = gp_box_part(box, 0, y, box->w, box->h * (i + 1) / count - y);
        const struct gp_panel panel = {
            .plot = {gp_history_find(view->history, device), (int)series,
                     gp_series_max(device, series), series},
            .title = gp_series_titles[series],
            .unit = gp_series_units[series],
            .now_ns = view->snapshot->mono_ns,
            .blocks = view->blocks,
        };
        gp_draw_panel(&part, &panel, &view->span);
    }
}

void gp_draw_gpu(const struct gp_box *box, const struct gp_device *device,
                 const struct gp_gpus_view *view)
{
    const char *trouble = gp_gpu_trouble(device);
    if (trouble) {
        char index[TEXT_SIZE];
        format_index(index, device);
        (void)gp_drawf(box, 1, 0, GP_INK_STRONG, "%s %s", index, short_name(device));
        (void)gp_drawf(box, 1, 1, GP_INK_CRITICAL, "! %s", trouble);
    } else {
        draw_title(box, device);
        draw_bars(box, device);
        draw_links(box, device, view);
    }
    if (box->h <= GP_TEXT_LINES)
        return;
    struct gp_box rest = gp_box_part(box, 0, GP_TEXT_LINES, box->w - 1, box->h - GP_TEXT_LINES);
    draw_graphs(&rest, device, view);
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
