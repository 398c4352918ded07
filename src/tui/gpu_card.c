#include "tui/gpu_card.h"

#include "base/utf8.h"
#include "model/snapshot.h"
#include "out/digits.h"
#include "tui/alerts.h"
#include "tui/frame.h"
#include "tui/gpu_fault.h"
#include "tui/gpu_flags.h"
#include "tui/gpu_graphs.h"
#include "tui/gpu_text.h"
#include "tui/gpus.h"
#include "tui/mig.h"
#include "tui/owners.h"
#include "tui/words.h"

#include <inttypes.h>
#include <string.h>

enum {
    LABELS_FROM = 98,   /* minimum columns of a card to label both clocks */
    SENSORS_FROM = 98,  /* and to show the sensors next to the bars */
    SENSORS_WIDTH = 42, /* temperatures, power and clocks */
    OWNERS_LEAST = 8,   /* columns for who uses the GPU */
    OWNERS_NARROW = 18, /* next to the sensors */
    OWNERS_WIDE = 32,
    WIDE_FROM = 110, /* columns of a card for both */
    LETTERS = 2,     /* for troubles */
    PAST_FROM = 12,  /* columns for a bar and its past */
};

/* ---- the title ---- */

/* "0 H100 80GB": returns the column after it. */
static int draw_name(const struct gp_box *box, int x, const struct gp_device *device)
{
    GP_GPU_TEXT(text);
    gp_gpu_add_index(&text, device);
    gp_strbuf_addc(&text, ' ');
    x = gp_draw(box, x, 0, GP_INK_STRONG, text.buf);
    return gp_draw(box, x, 0, GP_INK_STRONG, gp_gpu_short_name(device));
}

/* What a title may say at its right, in the order of the screen. It is also that of importance, the
 * least first, so what gives way is at the left, and the others stay in their columns. */
enum {
    PART_TROUBLE,
    PART_PSTATE,
    PART_CLOCKS,
    PART_TEMPERATURES,
    PART_POWER,
    PART_OWNERS,
    PART__COUNT
};

struct part {
    struct gp_words *words;
    int w; /* 0: not shown */
};

/* Drops the blanks at the end, which keep the columns for longer numbers. */
static void trim(struct gp_strbuf *sb)
{
    while (sb->len > 0 && sb->buf[sb->len - 1] == ' ')
        gp_strbuf_truncate(sb, sb->len - 1);
}

/* Shows it in as many columns, or as it needs, if there is room for that and the gap before it. */
static void admit(struct part *part, int columns, int *room)
{
    const int needed = (int)gp_utf8_width(part->words->text.buf);
    const int w = needed > columns ? needed : columns;
    if (w == 0 || w + 2 > *room)
        return;
    trim(&part->words->text);
    part->w = w;
    *room -= w + 2;
}

static void draw_parts(const struct gp_box *box, const struct part parts[], int end)
{
    for (int i = PART__COUNT - 1; i >= 0; end -= parts[i].w ? parts[i].w + 2 : 0, i--) {
        const int w = (int)gp_utf8_width(parts[i].words->text.buf);
        const int x = end - parts[i].w;
        if (!parts[i].w || !w)
            continue;
        gp_draw_fill(box, x - 1, 0, w + 2, GP_INK_PLAIN, ' ');
        (void)gp_words_draw(box, x, 0, parts[i].words);
    }
}

static bool has_frame(const struct gp_gpus_view *view)
{
    return view->layout && view->layout->frame.h > 0;
}

/* The sensors: each in as many columns on every card. */
static void set_sensors(struct part parts[PART__COUNT], const struct gp_device *device, int w,
                        int room)
{
    gp_words_add(parts[PART_PSTATE].words, GP_INK_DIM, "%s", gp_device_text(device, GP_PSTATE, ""));
    gp_gpu_add_temperatures(parts[PART_TEMPERATURES].words, device, room);
    gp_gpu_add_watts(&parts[PART_POWER].words->text, device);
    gp_gpu_add_clocks(&parts[PART_CLOCKS].words->text, device, w >= LABELS_FROM);
}

/* Who uses the GPU: in as many columns on every card, or in twice as many where they need more and
 * have the line for themselves. */
static void set_owners(struct part *part, const struct gp_device *device,
                       const struct gp_gpus_view *view, bool has_others, int columns, int *room)
{
    const int most = has_others ? columns : 2 * columns;
    const int w = *room - 2 < most ? *room - 2 : most;
    struct gp_strbuf *text = &part->words->text;
    if (w >= OWNERS_LEAST)
        gp_add_owners(text, view->snapshot, device, view->owner, w);
    gp_words_end(part->words, gp_gpu_is_ill(device) ? GP_INK_STALE : GP_INK_PLAIN);
    admit(part, (int)gp_utf8_width(text->buf) > columns ? w : columns, room);
}

/* The name, and at the right as much as fits. Cards that show the sensors below have no need of
 * them here, and those that show the troubles below none of those: then `trouble` is NULL. Where
 * the words may have no room next to the sensors, the letters stand after the name. */
static void draw_title(const struct gp_box *box, const struct gp_device *device,
                       const struct gp_gpus_view *view, bool has_sensors, struct gp_words *trouble)
{
    struct gp_words words[PART__COUNT];
    struct part parts[PART__COUNT];
    for (int i = 0; i < PART__COUNT; i++) {
        gp_words_init(&words[i]);
        parts[i] = (struct part){&words[i], 0};
    }
    if (trouble)
        parts[PART_TROUBLE].words = trouble;
    const bool in_frame = has_frame(view);
    if (in_frame)
        gp_draw_rule(box, 0);
    int x = draw_name(box, in_frame ? 2 : 1, device);
    if (in_frame) {
        (void)gp_draw(box, 1, 0, GP_INK_PLAIN, " ");
        x = gp_draw(box, x, 0, GP_INK_PLAIN, " ");
    }
    if (has_sensors && parts[PART_TROUBLE].words->text.len > 0) {
        const struct gp_flags_of of = {device, view->xids, view->snapshot->wall_ns};
        gp_gpu_draw_flags(box, x + !in_frame, 0, LETTERS, &of);
        x += LETTERS - in_frame;
    }
    const int end = box->w - 1 - in_frame;
    const int owners = has_sensors && box->w < WIDE_FROM ? OWNERS_NARROW : OWNERS_WIDE;
    int room = end - x - 1;
    if (has_sensors && !gp_gpu_trouble(device))
        set_sensors(parts, device, box->w, room);
    const bool has_others = has_sensors || (trouble && trouble->text.len > 0);
    set_owners(&parts[PART_OWNERS], device, view, has_others, owners, &room);
    for (int i = PART_OWNERS - 1; i > PART_TROUBLE; i--)
        admit(&parts[i], 0, &room);
    gp_words_fit(parts[PART_TROUBLE].words, room - 2);
    admit(&parts[PART_TROUBLE], 0, &room);
    draw_parts(box, parts, end);
}

/* ---- bars ---- */

/* Used memory, followed by the memory that the driver and firmware reserve. */
static void draw_memory_bar(const struct gp_box *box, int x, int y, int w,
                            const struct gp_device *device, enum gp_ink ink)
{
    double reserved;
    double total;
    int used = gp_series_permille(device, GP_SERIES_MEMORY);
    if (y > 1) /* below another bar */
        gp_draw_low_bar(box, x, y, w, ink, used);
    else
        gp_draw_bar(box, x, y, w, ink, used);
    if (used < 0 || !gp_device_number(device, GP_MEMORY_RESERVED, &reserved) ||
        !gp_device_number(device, GP_MEMORY_TOTAL, &total) || total <= 0)
        return;
    int from = (used * w + 999) / 1000;
    int columns = (int)(reserved / total * w + 0.5);
    columns = columns > w - from ? w - from : columns;
    gp_draw_fill(box, x + from, y, columns, GP_INK_DIM, 0x2591);
}

static const struct gauge {
    const char *label;
    enum gp_series series;
    int words; /* columns of its number */
} gauges[] = {{"UTIL", GP_SERIES_GPU, 4}, {"MEM", GP_SERIES_MEMORY, 10}};

/* The columns after a bar of w columns and its number. */
static struct gp_box past_of(const struct gp_box *box, int w, int words)
{
    const int x = 6 + w + 1 + words + 1;
    return gp_box_part(box, x, 0, box->w - 1 - x, box->h);
}

/* A label, a bar of w columns, the number in as many columns as `words`, and the past in the
 * remaining columns of the box. */
static void draw_gauge(const struct gp_box *box, int y, const struct gauge *gauge, int w, int words,
                       const struct gp_device *device, const struct gp_gpus_view *view)
{
    const int permille = gp_series_permille(device, gauge->series);
    const struct gp_track *track = gp_history_find(view->history, device);
    const enum gp_ink ink = gauge->series == GP_SERIES_MEMORY
                                ? gp_gpu_memory_ink(device, track, view->snapshot->mono_ns)
                                : gp_load_ink(gauge->series, permille);
    GP_GPU_TEXT(text);
    const int x = 6;
    (void)gp_draw(box, 1, y, GP_INK_DIM, gauge->label);
    if (gauge->series == GP_SERIES_MEMORY) {
        gp_gpu_add_memory(&text, device);
        if (!gp_draw_mig_strip(box, x, y, w, view->snapshot, device))
            draw_memory_bar(box, x, y, w, device, ink);
    } else {
        gp_gpu_add_number(&text, device, GP_UTILIZATION_GPU, "%");
        gp_draw_bar(box, x, y, w, ink, permille);
    }
    gp_draw_right(box, x + w + 1, y, words, ink, text.buf);
    const struct gp_box past = past_of(box, w, words);
    if (past.w <= 0)
        return;
    const struct gp_plot plot = {track, (int)gauge->series,
                                 gp_track_max(track, device, gauge->series), gauge->series};
    gp_draw_spark(&past, 0, y, past.w, &plot, &view->span);
}

/* Utilization and memory side by side, each above its graph; if has_past, next to their pasts,
 * which are as wide as each other. */
static void draw_gauges(const struct gp_box *box, const struct gp_device *device,
                        const struct gp_gpus_view *view, bool has_past)
{
    const bool is_pair = gp_gpu_has_load(device, view);
    const int least = gp_gpu_half(box, true).w - 6 - 1 - gauges[1].words - 1;
    const int past = has_past && is_pair && least >= PAST_FROM ? least - least / 2 : 0;
    for (size_t i = !is_pair; i < GP_ARRAY_LEN(gauges); i++) {
        const struct gp_box part = is_pair ? gp_gpu_half(box, i > 0) : *box;
        const int room = part.w - 6 - 1 - gauges[i].words - 1; /* for the bar */
        draw_gauge(&part, 1, &gauges[i], room - past, gauges[i].words, device, view);
    }
}

/* ---- what is below them ---- */

/* Appends a part, after a dot unless it is the first one, if it fits into w columns. */
static void add_part(struct gp_strbuf *sb, const struct gp_strbuf *part, int w)
{
    const char *gap = sb->len ? " · " : "";
    if (part->len == 0 ||
        (int)(gp_utf8_width(sb->buf) + gp_utf8_width(gap) + gp_utf8_width(part->buf)) > w)
        return;
    gp_strbuf_adds(sb, gap);
    gp_strbuf_adds(sb, part->buf);
}

/* "NVLink ↓1.2 ↑0.3", or nothing while nothing is transferred. */
static void add_rate(struct gp_strbuf *sb, const char *label, const struct gp_device *device,
                     enum gp_metric tx, enum gp_metric rx)
{
    const double least = 0.05e9; /* less is 0.0 GB/s */
    const double most = 99.95e9;
    double sent;
    double received;
    if (!gp_device_number(device, tx, &sent) || !gp_device_number(device, rx, &received) ||
        (sent < least && received < least))
        return;
    void (*add)(struct gp_strbuf *, double) =
        sent < most && received < most ? gp_add_tenths : gp_add_whole;
    gp_strbuf_adds(sb, label);
    gp_strbuf_adds(sb, " ↓");
    add(sb, received / 1e9);
    gp_strbuf_adds(sb, " ↑");
    add(sb, sent / 1e9);
}

/* " 5x16", " 4x8 of 16" */
static void add_pcie(struct gp_strbuf *sb, const struct gp_device *device)
{
    double gen;
    double width;
    double most;
    if (!gp_device_number(device, GP_PCIE_GEN, &gen) ||
        !gp_device_number(device, GP_PCIE_WIDTH, &width))
        return;
    gp_strbuf_addc(sb, ' ');
    gp_add_whole(sb, gen);
    gp_strbuf_addc(sb, 'x');
    gp_add_whole(sb, width);
    if (!gp_device_number(device, GP_PCIE_WIDTH_MAX, &most) || width >= most)
        return;
    gp_strbuf_adds(sb, " of ");
    gp_add_whole(sb, most);
}

/* It has had more lanes. A laptop with fewer than the GPU could use is built like that. */
static bool has_lost_lanes(const struct gp_device *device, const struct gp_track *track)
{
    double width;
    return track && gp_device_number_now(device, GP_PCIE_WIDTH, &width) &&
           width < track->lanes_most;
}

/* What the GPU does besides computing, as far as it does: links, encoder and decoder, memory
 * bandwidth. The width of the link to the machine is always shown if has_pcie. */
static void add_links(struct gp_strbuf *sb, const struct gp_device *device, bool has_pcie, int w)
{
    static const struct {
        const char *label;
        enum gp_metric metric;
    } loads[] = {
        {"ENC ", GP_UTILIZATION_ENCODER},
        {"DEC ", GP_UTILIZATION_DECODER},
        {"BW ", GP_UTILIZATION_MEMORY},
        {"SM ", GP_GPM_SM},
    };
    GP_GPU_TEXT(part);
    GP_GPU_TEXT(label);
    double n;
    gp_strbuf_adds(&label, "PCIe");
    if (has_pcie)
        add_pcie(&label, device);
    add_rate(&part, label.buf, device, GP_PCIE_TX, GP_PCIE_RX);
    bool is_moving = part.len > 0;
    if (!is_moving && has_pcie)
        gp_strbuf_adds(&part, label.buf);
    add_part(sb, &part, w);
    gp_strbuf_reset(&part);
    add_rate(&part, "NVLink", device, GP_NVLINK_RATE_TX, GP_NVLINK_RATE_RX);
    is_moving = is_moving || part.len > 0;
    add_part(sb, &part, w - (int)sizeof(" GB/s") + 1);
    gp_strbuf_adds(sb, is_moving ? " GB/s" : "");
    for (size_t i = 0; i < GP_ARRAY_LEN(loads); i++) {
        if (!gp_device_number(device, loads[i].metric, &n) || n < 0.5)
            continue;
        gp_strbuf_reset(&part);
        gp_strbuf_adds(&part, loads[i].label);
        gp_gpu_add_number(&part, device, loads[i].metric, "%");
        add_part(sb, &part, w);
    }
}

/* " 30s", " 1m ": a duration, coarse enough to rarely change, in as many columns whatever it is. */
static void add_time(struct gp_strbuf *sb, uint64_t ns)
{
    const uint64_t s = ns / GP_NS_PER_S;
    const uint64_t n = s < 60 ? s / 10 * 10 : s < 3600 ? s / 60 : s < 360000 ? s / 3600 : 99;
    if (s < 10)
        gp_strbuf_adds(sb, "    ");
    else
        gp_strbuf_addf(sb, " %" PRIu64 "%c%s", n,
                       s < 60     ? 's'
                       : s < 3600 ? 'm'
                                  : 'h',
                       n < 10 ? " " : "");
}

static void add_limited_time(struct gp_strbuf *sb, const struct gp_device *device,
                             const struct gp_gpus_view *view)
{
    const struct gp_track *track = gp_history_find(view->history, device);
    if (track && track->limited_since_ns)
        add_time(sb, view->snapshot->mono_ns - track->limited_since_ns);
}

/* Appends what the card says of a fault; returns false if the GPU does not have it. */
static bool add_fault(struct gp_strbuf *sb, enum gp_fault fault, const struct gp_device *device,
                      const struct gp_gpus_view *view)
{
    const bool is_narrow =
        fault == GP_FAULT_LANES && has_lost_lanes(device, gp_history_find(view->history, device));
    if (is_narrow)
        gp_strbuf_adds(sb, gp_fault_words[fault]);
    else if (!gp_fault_add(sb, fault, device))
        return false;
    if (gp_fault_slows(fault)) {
        add_limited_time(sb, device, view);
        trim(sb); /* others may follow */
    }
    return true;
}

/* The problems, each in its ink, the worst first. */
static void add_troubles(struct gp_words *words, const struct gp_device *device,
                         const struct gp_gpus_view *view)
{
    const struct gp_xid *xid =
        view->xids ? gp_xid_worst(view->xids, device->index, view->snapshot->wall_ns) : NULL;
    const char *limit = gp_gpu_limit(device);
    gp_words_init(words);
    for (enum gp_fault fault = 0; fault < GP_FAULT__COUNT; fault++) {
        GP_GPU_TEXT(text);
        if (fault == GP_FAULT_XID && xid)
            gp_words_add(words, gp_xid_ink(xid), "Xid %" PRIu64, xid->number);
        else if (add_fault(&text, fault, device, view))
            gp_words_add(words, gp_fault_ink(fault), "%s", text.buf);
    }
    if (!limit)
        return;
    GP_GPU_TEXT(text);
    gp_strbuf_adds(&text, limit);
    add_limited_time(&text, device, view);
    gp_words_add(words, GP_INK_DIM, "%s", text.buf);
}

static void draw_links(const struct gp_box *box, const struct gp_device *device,
                       const struct gp_gpus_view *view)
{
    GP_GPU_TEXT(text);
    struct gp_words troubles;
    add_troubles(&troubles, device, view);
    gp_words_fit(&troubles, box->w - 2);
    const int end = box->w - 1 - (int)gp_utf8_width(troubles.text.buf);
    add_links(&text, device, true, end - 3);
    gp_draw_left(box, 1, 2, end - 1, GP_INK_PLAIN, text.buf);
    (void)gp_words_draw(box, end, 2, &troubles);
}

/* At the right of the bars, below each other. */
static void draw_sensors(const struct gp_box *box, const struct gp_device *device)
{
    GP_GPU_TEXT(text);
    struct gp_words temperatures;
    gp_words_init(&temperatures);
    gp_gpu_add_temperatures(&temperatures, device, 16);
    (void)gp_words_draw(box, 0, 1, &temperatures);
    gp_gpu_add_watts(&text, device);
    gp_draw_right(box, 16, 1, 11, GP_INK_PLAIN, text.buf);
    gp_strbuf_reset(&text);
    gp_gpu_add_clocks(&text, device, false);
    trim(&text);
    gp_draw_right(box, 28, 1, box->w - 28, GP_INK_PLAIN, text.buf);
    gp_strbuf_reset(&text);
    add_links(&text, device, false, box->w);
    (void)gp_draw(box, 0, 2, GP_INK_PLAIN, text.buf);
}

/* ---- the whole ---- */

/* "└0 1g.20gb  GI  3 CI 0  25% of memory  ███···  9.5/19.5G  49%  www 9.5G", or why a GPU says
 * nothing. */
static void draw_flat(const struct gp_box *box, const struct gp_device *device,
                      const struct gp_gpus_view *view)
{
    enum {
        NAME = 18,
        IDS = 12,
        IDS_FROM = 72,
        SHARE = 15,
        SHARE_FROM = 100,
        NUMBER = 11,
        PERCENT = 5
    };
    GP_GPU_TEXT(text);
    const char *trouble = gp_gpu_trouble(device);
    const int memory = gp_series_permille(device, GP_SERIES_MEMORY);
    if (!device->is_mig && has_frame(view)) {
        struct gp_words words;
        gp_words_init(&words);
        if (trouble)
            gp_words_add(&words, gp_gpu_is_ill(device) ? GP_INK_CRITICAL : GP_INK_DIM, "%s",
                         trouble);
        draw_title(box, device, view, false, &words);
        return;
    }
    int x = draw_name(box, device->is_mig ? 3 : 1, device) + 2;
    if (trouble) {
        enum gp_ink ink = device->status == GP_STATUS_ASLEEP ? GP_INK_DIM : GP_INK_CRITICAL;
        gp_gpu_draw_trouble(box, x, 0, box->w - 1 - x, ink, device, false);
        return;
    }
    x = NAME;
    if (box->w >= IDS_FROM) {
        gp_mig_add_ids(&text, device);
        (void)gp_draw(box, x, 0, GP_INK_DIM, text.buf);
        x += IDS;
    }
    if (box->w >= SHARE_FROM) {
        gp_strbuf_reset(&text);
        gp_mig_add_share(&text, view->snapshot, device);
        (void)gp_draw(box, x, 0, GP_INK_DIM, text.buf);
        x += SHARE;
    }
    const int w = (box->w - x - NUMBER) / 2;
    const enum gp_ink ink =
        gp_gpu_memory_ink(device, gp_history_find(view->history, device), view->snapshot->mono_ns);
    gp_draw_low_bar(box, x, 0, w, ink, memory);
    gp_strbuf_reset(&text);
    gp_gpu_add_memory(&text, device);
    gp_draw_right(box, x + w, 0, NUMBER, GP_INK_PLAIN, text.buf);
    gp_strbuf_reset(&text);
    x += w + NUMBER + 2;
    if (box->w >= SHARE_FROM && memory >= 0) {
        (void)gp_drawf(box, x - 1, 0, ink, "%3d%%", (memory + 5) / 10);
        x += PERCENT;
    }
    gp_add_owners(&text, view->snapshot, device, view->owner, box->w - 1 - x);
    gp_draw_left(box, x, 0, box->w - 1 - x, GP_INK_PLAIN, text.buf);
}

/* The times of the sparklines, in the frame above the first ones; or, if something else stands
 * there, how long they are: " last 1m2s ". */
static void draw_span(const struct gp_box *past, const struct gp_gpus_view *view)
{
    const uint64_t column_ns = 2 * view->span.step_ns;
    if (gp_rule_is_free(past, 0)) {
        gp_draw_times(past, &view->span, view->snapshot->mono_ns, column_ns);
        return;
    }
    GP_GPU_TEXT(text);
    gp_strbuf_adds(&text, " last ");
    gp_add_back(&text, (column_ns * (uint64_t)past->w + GP_NS_PER_S / 2) / GP_NS_PER_S);
    gp_strbuf_addc(&text, ' ');
    const struct gp_box part = gp_box_part(past, 0, 0, (int)text.len + 1, 1);
    if (part.w == (int)text.len + 1 && gp_rule_is_free(&part, 0))
        (void)gp_draw(past, 0, 0, GP_INK_DIM, text.buf);
}

/* Two or three lines with bars and the recent past. */
static void draw_compact(const struct gp_box *box, const struct gp_device *device,
                         const struct gp_gpus_view *view)
{
    struct gp_words troubles;
    add_troubles(&troubles, device, view);
    const bool is_high = box->h >= GP_TEXT_LINES;
    const bool is_wide = is_high && box->w >= SENSORS_FROM;
    draw_title(box, device, view, !is_wide, is_high && !is_wide ? NULL : &troubles);
    if (!is_wide) {
        draw_gauges(box, device, view, !view->no_graphs);
        if (is_high)
            draw_links(box, device, view);
        return;
    }
    const int w = box->w - SENSORS_WIDTH - 2;
    struct gp_box left = gp_box_part(box, 0, 0, w, box->h);
    struct gp_box right = gp_box_part(box, w + 1, 0, SENSORS_WIDTH, box->h);
    const int most = w - 6 - 1 - gauges[1].words - 1; /* without the past */
    for (size_t i = 0; i < GP_ARRAY_LEN(gauges); i++) {
        bool is_strip =
            gauges[i].series == GP_SERIES_MEMORY && gp_mig_is_split(view->snapshot, device);
        draw_gauge(&left, (int)i + 1, &gauges[i], is_strip || view->no_graphs ? most : w / 3,
                   gauges[1].words, device, view);
    }
    draw_sensors(&right, device);
    const struct gp_box past = past_of(&left, w / 3, gauges[1].words);
    if (has_frame(view) && box->y == view->layout->gpus.y && !view->no_graphs)
        draw_span(&past, view);
}

void gp_draw_gpu(const struct gp_box *box, const struct gp_device *device,
                 const struct gp_gpus_view *view)
{
    const char *trouble = gp_gpu_trouble(device);
    const bool is_card = !view->layout || view->layout->density == GP_DENSITY_CARD;
    if (box->h == 1 || device->is_mig) {
        struct gp_box below = gp_box_part(box, 0, 1, box->w, box->h - 1);
        draw_flat(box, device, view);
        if (below.h > 1 && !trouble)
            gp_draw_gpu_graphs(&below, device, view);
        return;
    }
    if (trouble) {
        const bool has_sensors = is_card || box->h < GP_TEXT_LINES || box->w < SENSORS_FROM;
        draw_title(box, device, view, has_sensors, NULL); /* as the others */
        int x = gp_draw(box, 1, 1, GP_INK_CRITICAL, "! ");
        gp_gpu_draw_trouble(box, x, 1, box->w - 1 - x, GP_INK_CRITICAL, device, !view->layout);
    } else if (is_card) {
        draw_title(box, device, view, true, NULL);
        draw_gauges(box, device, view, !gp_gpu_graphs_gauge(view));
        draw_links(box, device, view);
    } else {
        draw_compact(box, device, view);
    }
    if (!is_card || box->h <= GP_TEXT_LINES)
        return;
    struct gp_box rest = gp_box_part(box, 0, GP_TEXT_LINES, box->w, box->h - GP_TEXT_LINES);
    gp_draw_gpu_graphs(&rest, device, view);
}
