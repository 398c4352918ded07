#include "tui/gpu_card.h"

#include "base/utf8.h"
#include "model/snapshot.h"
#include "out/digits.h"
#include "tui/gpu_text.h"
#include "tui/gpus.h"

#include <inttypes.h>
#include <string.h>

enum { LABELS_FROM = 100 }; /* minimum columns of a card to label both clocks */

/* "0 H100 80GB": returns the column after it. */
static int draw_name(const struct gp_box *box, const struct gp_device *device)
{
    GP_GPU_TEXT(text);
    gp_gpu_add_index(&text, device);
    gp_strbuf_addc(&text, ' ');
    int x = gp_draw(box, 1, 0, GP_INK_STRONG, text.buf);
    return gp_draw(box, x, 0, GP_INK_STRONG, gp_gpu_short_name(device));
}

/* "310/700 W  SM 1980 MEM 2619 MHz" */
static void add_power_and_clocks(struct gp_strbuf *sb, const struct gp_device *device, int w)
{
    double sm;
    double memory;
    const bool has_labels = w >= LABELS_FROM;
    gp_gpu_add_power(sb, device);
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
    gp_gpu_add_number(sb, device, GP_TEMPERATURE_GPU, "°C");
    if (gp_device_number(device, GP_TEMPERATURE_MEMORY, &celsius)) {
        gp_strbuf_adds(sb, " mem ");
        gp_gpu_add_number(sb, device, GP_TEMPERATURE_MEMORY, "°C");
    }
    gp_strbuf_adds(sb, "  fan ");
    gp_gpu_add_number(sb, device, GP_FAN_SPEED, "%");
}

static void draw_title(const struct gp_box *box, const struct gp_device *device)
{
    GP_GPU_TEXT(right);
    GP_GPU_TEXT(heat);
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
        gp_draw_right(box, x + 5, 0, start - 2 - x - 5, gp_gpu_temperature_ink(device), heat.buf);
}

/* Used memory, followed by the memory that the driver and firmware reserve. */
static void draw_memory_bar(const struct gp_box *box, int x, int y, int w,
                            const struct gp_device *device, enum gp_ink ink)
{
    double reserved;
    double total;
    int used = gp_series_permille(device, GP_SERIES_MEMORY);
    gp_draw_bar(box, x, y, w, ink, used);
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

static void draw_bars(const struct gp_box *box, const struct gp_device *device,
                      const struct gp_gpus_view *view)
{
    int count = 2;
    while (count < (int)GP_ARRAY_LEN(bars) && box->w >= bars[count].from &&
           gp_series_permille(device, bars[count].series) >= 0)
        count++;
    int width = box->w / count;
    for (int i = 0; i < count; i++) {
        bool is_memory = bars[i].series == GP_SERIES_MEMORY;
        int permille = gp_series_permille(device, bars[i].series);
        enum gp_ink ink = is_memory
                              ? gp_gpu_memory_ink(device, gp_history_find(view->history, device),
                                                  view->snapshot->mono_ns)
                              : gp_load_ink(bars[i].series, permille);
        GP_GPU_TEXT(text);
        int x = gp_draw(box, i * width + 1, 1, GP_INK_DIM, bars[i].label) + 1;
        int end = (i + 1) * width;
        int room = is_memory ? 17 : 5;
        if (is_memory)
            draw_memory_bar(box, x, 1, end - x - room, device, ink);
        else
            gp_draw_bar(box, x, 1, end - x - room, ink, permille);
        if (permille < 0) {
            gp_strbuf_adds(&text, "--");
        } else if (is_memory) {
            gp_gpu_add_memory(&text, device);
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
    GP_GPU_TEXT(label);
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
        gp_gpu_add_number(sb, device, loads[i].metric, "%");
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
    const char *limit = gp_gpu_limit(device);
    double errors;
    const char *action = gp_device_text(device, GP_RECOVERY_ACTION, "None");
    enum gp_ink ink = narrow ? GP_INK_HIGH : gp_gpu_limit_ink(device);
    if (strcmp(action, "None") != 0) {
        gp_strbuf_addf(sb, " recovery: %.40s", action);
        ink = GP_INK_CRITICAL;
    }
    if (gp_device_number(device, GP_ECC_UNCORRECTED_VOLATILE, &errors) && errors > 0) {
        gp_strbuf_addf(sb, " ECC errors: %ld", gp_whole(errors));
        ink = GP_INK_CRITICAL;
    }
    if (limit)
        gp_strbuf_addf(sb, " limited: %s", limit);
    if (limit && track && track->limited_since_ns)
        add_time(sb, now_ns - track->limited_since_ns);
    if (narrow)
        gp_strbuf_adds(sb, " narrow PCIe");
    return ink;
}

static void draw_links(const struct gp_box *box, const struct gp_device *device,
                       const struct gp_gpus_view *view)
{
    GP_GPU_TEXT(text);
    GP_GPU_TEXT(troubles);
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
        draw_bars(box, device, view);
        draw_links(box, device, view);
    }
    if (box->h <= GP_TEXT_LINES)
        return;
    struct gp_box rest = gp_box_part(box, 0, GP_TEXT_LINES, box->w - 1, box->h - GP_TEXT_LINES);
    draw_graphs(&rest, device, view);
}
