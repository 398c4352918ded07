#include "tui/gpus.h"

#include "base/strbuf.h"
#include "base/utf8.h"
#include "model/snapshot.h"
#include "out/digits.h"
#include "tui/columns.h"

#include <inttypes.h>
#include <string.h>

/* A short text on the stack. */
#define TEXT(name)                                                                                 \
    char name##_room[TEXT_SIZE] = "";                                                              \
    struct gp_strbuf name = GP_STRBUF_ON(name##_room, TEXT_SIZE - 1)

enum {
    TEXT_SIZE = 256,
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

static void add_number(struct gp_strbuf *sb, const struct gp_device *device, enum gp_metric m,
                       const char *unit)
{
    double n;
    if (!gp_device_number(device, m, &n)) {
        gp_strbuf_adds(sb, "--");
        return;
    }
    gp_add_whole(sb, n);
    gp_strbuf_adds(sb, unit);
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

static void add_index(struct gp_strbuf *sb, const struct gp_device *device)
{
    if (device->is_mig)
        gp_strbuf_adds(sb, "└");
    gp_strbuf_add_int(sb, device->is_mig ? device->mig_index : device->index);
}

static void add_memory(struct gp_strbuf *sb, const struct gp_device *device)
{
    double used;
    double total;
    const double gib = 1024.0 * 1024 * 1024;
    if (!gp_device_number(device, GP_MEMORY_USED, &used) ||
        !gp_device_number(device, GP_MEMORY_TOTAL, &total)) {
        gp_strbuf_adds(sb, "--");
        return;
    }
    gp_add_tenths(sb, used / gib);
    gp_strbuf_addc(sb, '/');
    if (total < 100 * gib)
        gp_add_tenths(sb, total / gib);
    else
        gp_add_whole(sb, total / gib);
    gp_strbuf_addc(sb, 'G');
}

static void add_power(struct gp_strbuf *sb, const struct gp_device *device)
{
    double draw;
    double limit;
    add_number(sb, device, GP_POWER_DRAW, "");
    if (gp_device_number(device, GP_POWER_DRAW, &draw) &&
        gp_device_number(device, GP_POWER_LIMIT_ENFORCED, &limit)) {
        gp_strbuf_addc(sb, '/');
        gp_add_whole(sb, limit);
    }
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
static void add_flags(struct gp_strbuf *sb, const struct gp_device *device)
{
    size_t limit = find_limit(device);
    if (gp_gpu_trouble(device))
        gp_strbuf_addc(sb, '!');
    if (strcmp(gp_device_text(device, GP_RECOVERY_ACTION, "None"), "None") != 0)
        gp_strbuf_addc(sb, 'R');
    if (limit < GP_ARRAY_LEN(limits))
        gp_strbuf_addc(sb, limits[limit].letter);
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
    TEXT(text);
    const struct gp_plot plot = {gp_history_find(view->history, device), (int)view->series,
                                 gp_series_max(device, view->series), view->series};
    int util = gp_series_permille(device, GP_SERIES_GPU);
    int memory = gp_series_permille(device, GP_SERIES_MEMORY);
#define CELL(id, ink, add, ...)                                                                    \
    gp_strbuf_reset(&text);                                                                        \
    add(&text, __VA_ARGS__);                                                                       \
    draw_cell(box, y, &places[id], &line_columns[id], ink, text.buf)
    CELL(LINE_INDEX, GP_INK_STRONG, add_index, device);
    draw_cell(box, y, &places[LINE_NAME], &line_columns[LINE_NAME], GP_INK_PLAIN,
              short_name(device));
    const char *trouble = gp_gpu_trouble(device);
    if (trouble) {
        int x = places[LINE_NAME].w ? places[LINE_NAME].x + places[LINE_NAME].w + 1 : 4;
        int end = places[LINE_FLAGS].w ? places[LINE_FLAGS].x : box->w;
        gp_draw_left(box, x, y, end - x, GP_INK_CRITICAL, trouble);
    } else {
        CELL(LINE_UTIL, gp_load_ink(GP_SERIES_GPU, util), add_number, device, GP_UTILIZATION_GPU,
             "%");
        if (places[LINE_SPARK].w)
            gp_draw_spark(box, places[LINE_SPARK].x, y, places[LINE_SPARK].w, &plot, &view->span);
        if (places[LINE_BAR].w)
            gp_draw_bar(box, places[LINE_BAR].x, y, places[LINE_BAR].w,
                        gp_load_ink(GP_SERIES_MEMORY, memory), memory);
        CELL(LINE_MEMORY, ink_of(device, GP_MEMORY_USED, GP_INK_PLAIN), add_memory, device);
        CELL(LINE_TEMPERATURE, temperature_ink(device), add_number, device, GP_TEMPERATURE_GPU, "");
        CELL(LINE_POWER, ink_of(device, GP_POWER_DRAW, GP_INK_PLAIN), add_power, device);
    }
    CELL(LINE_FLAGS, GP_INK_CRITICAL, add_flags, device);
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

/* "0 H100 80GB": returns the column after it. */
static int draw_name(const struct gp_box *box, const struct gp_device *device)
{
    TEXT(text);
    add_index(&text, device);
    gp_strbuf_addc(&text, ' ');
    int x = gp_draw(box, 1, 0, GP_INK_STRONG, text.buf);
    return gp_draw(box, x, 0, GP_INK_STRONG, short_name(device));
}

/* "310/700 W  SM 1980 MEM 2619 MHz" */
static void add_power_and_clocks(struct gp_strbuf *sb, const struct gp_device *device, int w)
{
    double sm;
    double memory;
    const bool has_labels = w >= LABELS_FROM;
    add_power(sb, device);
    gp_strbuf_adds(sb, " W");
    if (!gp_device_number(device, GP_CLOCK_SM, &sm) ||
        !gp_device_number(device, GP_CLOCK_MEMORY, &memory))
        return;
    gp_strbuf_adds(sb, has_labels ? "  SM " : "  ");
    gp_add_whole(sb, sm);
    gp_strbuf_adds(sb, has_labels ? " MEM " : "/");
    gp_add_whole(sb, memory);
    gp_strbuf_adds(sb, " MHz");
}

/* "54°C mem 62°C  fan 30%" */
static void add_heat(struct gp_strbuf *sb, const struct gp_device *device)
{
    double celsius;
    add_number(sb, device, GP_TEMPERATURE_GPU, "°C");
    if (gp_device_number(device, GP_TEMPERATURE_MEMORY, &celsius)) {
        gp_strbuf_adds(sb, " mem ");
        add_number(sb, device, GP_TEMPERATURE_MEMORY, "°C");
    }
    gp_strbuf_adds(sb, "  fan ");
    add_number(sb, device, GP_FAN_SPEED, "%");
}

static void draw_title(const struct gp_box *box, const struct gp_device *device)
{
    TEXT(right);
    TEXT(heat);
    double celsius;
    int x = draw_name(box, device);
    (void)gp_draw(box, x + 2, 0, GP_INK_DIM, gp_device_text(device, GP_PSTATE, ""));
    add_power_and_clocks(&right, device, box->w);
    int start = box->w - 1 - (int)gp_utf8_width(right.buf);
    gp_draw_right(box, x + 1, 0, box->w - 1 - x - 1, GP_INK_PLAIN, right.buf);
    if (!gp_device_number(device, GP_TEMPERATURE_GPU, &celsius))
        return;
    add_heat(&heat, device);
    if (start - (int)gp_utf8_width(heat.buf) > x + 4)
        gp_draw_right(box, x + 5, 0, start - 2 - x - 5, temperature_ink(device), heat.buf);
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
        TEXT(text);
        int x = gp_draw(box, i * width + 1, 1, GP_INK_DIM, bars[i].label) + 1;
        int end = (i + 1) * width;
        int room = is_memory ? 17 : 5;
        if (is_memory)
            draw_memory_bar(box, x, 1, end - x - room, device);
        else
            gp_draw_bar(box, x, 1, end - x - room, ink, permille);
        if (permille < 0) {
            gp_strbuf_adds(&text, "--");
        } else if (is_memory) {
            add_memory(&text, device);
        } else {
            gp_strbuf_add_int(&text, (permille + 5) / 10);
            gp_strbuf_addc(&text, '%');
        }
        gp_draw_right(box, end - room + 1, 1, room - 1, ink, text.buf);
    }
}

/* "PCIe ↓1.2 ↑0.3 GB/s · ", or nothing. */
static void add_rate(struct gp_strbuf *sb, const char *label, const struct gp_device *device,
                     enum gp_metric tx, enum gp_metric rx)
{
    double sent;
    double received;
    if (!gp_device_number(device, tx, &sent) || !gp_device_number(device, rx, &received))
        return;
    gp_strbuf_adds(sb, label);
    gp_strbuf_adds(sb, " ↓");
    gp_add_tenths(sb, received / 1e9);
    gp_strbuf_adds(sb, " ↑");
    gp_add_tenths(sb, sent / 1e9);
    gp_strbuf_adds(sb, " GB/s · ");
}

/* "PCIe 5x16 ↓1.2 ↑0.3 GB/s". Returns whether fewer lanes are in use than possible. */
static bool add_pcie(struct gp_strbuf *sb, const struct gp_device *device)
{
    TEXT(label);
    double gen;
    double width;
    double width_max;
    bool known = gp_device_number(device, GP_PCIE_GEN, &gen) &&
                 gp_device_number(device, GP_PCIE_WIDTH, &width);
    gp_strbuf_adds(&label, "PCIe");
    if (known) {
        gp_strbuf_addc(&label, ' ');
        gp_add_whole(&label, gen);
        gp_strbuf_addc(&label, 'x');
        gp_add_whole(&label, width);
    }
    add_rate(sb, label.buf, device, GP_PCIE_TX, GP_PCIE_RX);
    if (sb->len == 0) {
        gp_strbuf_adds(sb, label.buf);
        gp_strbuf_adds(sb, " · ");
    }
    return known && gp_device_number(device, GP_PCIE_WIDTH_MAX, &width_max) && width < width_max;
}

/* Values that a wide card shows as bars instead. */
static void add_loads(struct gp_strbuf *sb, const struct gp_device *device)
{
    static const struct {
        const char *label;
        enum gp_metric metric;
        bool always;
    } loads[] = {
        {"ENC ", GP_UTILIZATION_ENCODER, true},
        {" DEC ", GP_UTILIZATION_DECODER, true},
        {" BUS ", GP_UTILIZATION_MEMORY, false},
        {" SM ", GP_GPM_SM, false},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(loads); i++) {
        double n;
        if (!loads[i].always && !gp_device_number(device, loads[i].metric, &n))
            continue;
        gp_strbuf_adds(sb, loads[i].label);
        add_number(sb, device, loads[i].metric, "%");
    }
}

/* A duration, coarse enough to rarely change. */
static void add_time(struct gp_strbuf *sb, uint64_t ns)
{
    uint64_t s = ns / GP_NS_PER_S;
    if (s >= 10)
        gp_strbuf_addf(sb, " %" PRIu64 "%c",
                       s < 60     ? s / 10 * 10
                       : s < 3600 ? s / 60
                                  : s / 3600,
                       s < 60     ? 's'
                       : s < 3600 ? 'm'
                                  : 'h');
}

/* Appends the problems in words. Returns the ink of the most severe one. */
static enum gp_ink add_troubles(struct gp_strbuf *sb, const struct gp_device *device,
                                const struct gp_track *track, bool narrow, uint64_t now_ns)
{
    size_t limit = find_limit(device);
    double errors;
    const char *action = gp_device_text(device, GP_RECOVERY_ACTION, "None");
    enum gp_ink ink = GP_INK_HIGH;
    if (strcmp(action, "None") != 0) {
        gp_strbuf_addf(sb, " recovery: %.40s", action);
        ink = GP_INK_CRITICAL;
    }
    if (gp_device_number(device, GP_ECC_UNCORRECTED_VOLATILE, &errors) && errors > 0) {
        gp_strbuf_addf(sb, " ECC errors: %ld", gp_whole(errors));
        ink = GP_INK_CRITICAL;
    }
    if (limit < GP_ARRAY_LEN(limits))
        gp_strbuf_addf(sb, " limited: %s", limits[limit].word);
    if (limit < GP_ARRAY_LEN(limits) && track && track->limited_since_ns)
        add_time(sb, now_ns - track->limited_since_ns);
    if (narrow)
        gp_strbuf_adds(sb, " narrow PCIe");
    return ink;
}

static void draw_links(const struct gp_box *box, const struct gp_device *device,
                       const struct gp_gpus_view *view)
{
    TEXT(text);
    TEXT(troubles);
    bool narrow = add_pcie(&text, device);
    add_rate(&text, "NVLink", device, GP_NVLINK_RATE_TX, GP_NVLINK_RATE_RX);
    add_loads(&text, device);
    enum gp_ink ink = add_troubles(&troubles, device, gp_history_find(view->history, device),
                                   narrow, view->snapshot->mono_ns);
    int end = box->w - 1 - (int)gp_utf8_width(troubles.buf);
    gp_draw_left(box, 1, 2, end - 1, GP_INK_PLAIN, text.buf);
    gp_draw_right(box, end, 2, box->w - 1 - end, ink, troubles.buf);
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
        (void)draw_name(box, device);
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
    TEXT(index);
    TEXT(text);
    int util = gp_series_permille(device, GP_SERIES_GPU);
    add_index(&index, device);
    add_number(&text, device, GP_UTILIZATION_GPU, "%");
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
