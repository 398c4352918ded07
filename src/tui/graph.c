#include "tui/graph.h"

#include "out/digits.h"

#include <string.h>

enum {
    BLOCK = 0x2581, /* ▁, the first of eight lower blocks */
    LEFT = 0x258f, /* ▏, the last of eight left blocks, which get wider towards lower code points */
    FULL = 0x2588,   /* █ */
    LOW = 0x2586,    /* ▆ */
    TOP = 6,         /* of a sparkline: ▇, so that it does not touch the one above it */
    DOT = 0x00b7,    /* · */
    DOTS = 0x2800,   /* braille */
    AXIS = 0x2502,   /* │ */
    DASH = 0x2500,   /* ─ */
    CORNER = 0x2514, /* └ */
    EIGHTHS = 8,
    STEPS_MAX = 1024, /* maximum columns of a graph */
    AXIS_WIDTH = 6,
    WORDS_WIDTH = 14,
    WORDS_FROM = 60, /* minimum columns for text */
    TIME_FROM = 4,   /* minimum lines for a time axis */
    LABEL_FROM = 3,  /* for what is graphed, next to the axis */
    UNIT_FROM = 4,   /* for a unit that has no room at the numbers */
    HALF_FROM = 5,   /* for the middle of the scale, too */
};

enum gp_ink gp_load_ink(enum gp_series series, int permille)
{
    if (permille < 0)
        return GP_INK_STALE;
    if (series == GP_SERIES_POWER || series == GP_SERIES_TEMPERATURE)
        return GP_INK_PLAIN;
    if (series != GP_SERIES_MEMORY)
        return GP_INK_LOW;
    return permille < GP_FULL_PERMILLE ? GP_INK_MEMORY : GP_INK_HIGH;
}

void gp_draw_bar(const struct gp_box *box, int x, int y, int w, enum gp_ink ink, int permille)
{
    int eighths = permille <= 0 ? 0 : (permille * w * EIGHTHS + 500) / 1000;
    int full = eighths / EIGHTHS;
    int rest = eighths % EIGHTHS;
    gp_draw_fill(box, x, y, full, ink, FULL);
    if (rest > 0)
        gp_draw_fill(box, x + full, y, 1, ink, (uint32_t)(LEFT - rest + 1));
    full += rest > 0;
    gp_draw_fill(box, x + full, y, w - full, GP_INK_DIM, DOT);
}

void gp_draw_low_bar(const struct gp_box *box, int x, int y, int w, enum gp_ink ink, int permille)
{
    enum { LITTLE = 10 }; /* from here on, it is not nothing */
    int full = permille <= 0 ? 0 : (permille * w + 500) / 1000;
    full += full == 0 && permille >= LITTLE && w > 0;
    gp_draw_fill(box, x, y, full, ink, LOW);
    gp_draw_fill(box, x + full, y, w - full, GP_INK_DIM, DOT);
}

/* Returns −1 for a gap. The axis starts at 0. */
static int permille_of(float value, double max)
{
    if (value < 0)
        return -1;
    double permille = 1000 * (double)value / max;
    return permille > 1000 ? 1000 : (int)(permille + 0.5);
}

/* What was not seen, in the i-th column from the right. The newest sample may still come. */
static void draw_gap(const struct gp_box *box, int x, int y, int i)
{
    if (i > 0)
        gp_draw_fill(box, x, y, 1, GP_INK_DIM, DOT);
}

/* Draws a column of blocks as high as the value. */
static void draw_blocks(const struct gp_box *box, int x, int permille, enum gp_ink ink)
{
    int eighths = (permille * box->h * EIGHTHS + 500) / 1000;
    eighths = eighths < 1 ? 1 : eighths;
    for (int y = box->h - 1; y >= 0 && eighths > 0; y--, eighths -= EIGHTHS)
        gp_draw_fill(box, x, y, 1, ink,
                     (uint32_t)(eighths >= EIGHTHS ? FULL : BLOCK + eighths - 1));
}

/* A column of cells shows two samples, each 4 × h dots high. */
struct dots {
    int heights[2]; /* 0: a gap */
    enum gp_ink ink;
};

static bool is_gap(const struct dots *column)
{
    return column->heights[0] == 0 && column->heights[1] == 0;
}

static uint32_t dots_above(const struct dots *column, int below)
{
    static const uint32_t masks[2][5] = {{0, 0x40, 0x44, 0x46, 0x47}, {0, 0x80, 0xa0, 0xb0, 0xb8}};
    uint32_t cp = DOTS;
    for (int i = 0; i < 2; i++) {
        int dots = column->heights[i] - below;
        cp |= masks[i][dots <= 0 ? 0 : dots >= 4 ? 4 : dots];
    }
    return cp;
}

/* Draws columns, the first at the right, filled to the bottom. Equal cells are drawn at once. */
static void draw_dots(const struct gp_box *box, const struct dots *columns, int w, int highest)
{
    for (int y = box->h - (highest + 3) / 4; y < box->h; y++) {
        int below = (box->h - 1 - y) * 4;
        for (int from = 0, to; from < w; from = to) {
            uint32_t cp = dots_above(&columns[from], below);
            to = from + 1;
            while (to < w && columns[to].ink == columns[from].ink &&
                   dots_above(&columns[to], below) == cp)
                to++;
            if (cp != DOTS)
                gp_draw_fill(box, box->w - to, y, to - from, columns[from].ink, cp);
        }
    }
    for (int i = 0; i < w; i++)
        if (is_gap(&columns[i]))
            draw_gap(box, box->w - 1 - i, box->h - 1, i);
}

/* Rounds up to 1, 2 or 5 times a power of ten. */
static double round_up(double n)
{
    double power = 0.1;
    while (power * 10 <= n)
        power *= 10;
    return n <= power       ? power
           : n <= 2 * power ? 2 * power
           : n <= 5 * power ? 5 * power
                            : 10 * power;
}

/* The numbers shown in words next to a graph. */
struct facts {
    struct gp_track_facts of;
    bool has_now, has_any;
    double max; /* of the axis */
};

static struct facts look_at(const struct gp_plot *plot, const struct gp_span *span, int steps,
                            const float *values)
{
    struct facts facts = {.max = plot->max};
    facts.has_any = gp_track_look(plot->track, plot->channel, span->end_ns,
                                  span->step_ns * (uint64_t)steps, &facts.of);
    facts.has_now = steps > 0 && values[0] >= 0;
    if (facts.max <= 0 && facts.has_any)
        facts.max = round_up(facts.of.highest);
    return facts;
}

/* What reaches the top of an axis that ends in some round number is not full. */
static enum gp_ink ink_of(const struct gp_plot *plot, int permille)
{
    return gp_load_ink(plot->like, permille > 0 && plot->max <= 0 ? 0 : permille);
}

/* In the i-th column from the right. */
static struct gp_cell spark_cell(const struct gp_plot *plot, int permille, int i)
{
    if (permille < 0)
        return (struct gp_cell){i > 0 ? DOT : ' ', GP_INK_DIM};
    const uint32_t block = (uint32_t)(permille * TOP + 500) / 1000;
    return (struct gp_cell){(BLOCK + block) & 0xffffff, ink_of(plot, permille)};
}

static bool is_same(struct gp_cell a, struct gp_cell b)
{
    return a.cp == b.cp && a.ink == b.ink;
}

void gp_draw_spark(const struct gp_box *box, int x, int y, int w, const struct gp_plot *plot,
                   const struct gp_span *span)
{
    float values[STEPS_MAX];
    const uint64_t step_ns = 2 * span->step_ns;
    /* Half of the last column may be still to come. */
    const uint64_t end_ns = span->end_ns + (span->half ? span->step_ns : 0);
    w = w > STEPS_MAX ? STEPS_MAX : w;
    if (w <= 0)
        return;
    gp_track_read(plot->track, plot->channel, end_ns, step_ns, values, (size_t)w);
    const struct gp_span all = {end_ns, step_ns, false};
    const double max = plot->max > 0 ? plot->max : look_at(plot, &all, w, values).max;
    for (int from = 0, to; from < w; from = to) {
        const struct gp_cell cell = spark_cell(plot, permille_of(values[from], max), from);
        to = from + 1;
        while (to < w && is_same(cell, spark_cell(plot, permille_of(values[to], max), to)))
            to++;
        if (cell.cp != ' ')
            gp_draw_fill(box, x + w - to, y, to - from, (enum gp_ink)cell.ink, cell.cp);
    }
}

static bool are_equal(const float a[2], const float b[2])
{
    return a[0] >= b[0] && a[0] <= b[0] && a[1] >= b[1] && a[1] <= b[1];
}

static struct dots dots_of(const float pair[2], int h, double max, const struct gp_plot *plot)
{
    const int permille[2] = {permille_of(pair[0], max), permille_of(pair[1], max)};
    struct dots dots = {.ink = ink_of(plot, permille[0] > permille[1] ? permille[0] : permille[1])};
    for (int i = 0; i < 2; i++) {
        const int height = (permille[i] * h * 4 + 500) / 1000;
        dots.heights[i] = permille[i] < 0 ? 0 : height < 1 ? 1 : height;
    }
    return dots;
}

/* Returns the height of the highest column. Columns with the same values are computed once. */
static int find_dots(const float *values, int half, int h, double max, const struct gp_plot *plot,
                     struct dots *ret, int w)
{
    int highest = 0;
    float last[2] = {0, 0};
    for (int column = 0; column < w; column++) {
        int older = 2 * column - half + 1;
        int newer = older > 0 ? older - 1 : 0; /* no newer sample yet: the older value continues */
        const float pair[2] = {values[older], values[newer]};
        if (column > 0 && are_equal(pair, last)) {
            ret[column] = ret[column - 1];
            continue;
        }
        last[0] = pair[0];
        last[1] = pair[1];
        ret[column] = dots_of(pair, h, max, plot);
        for (int i = 0; i < 2; i++)
            highest = ret[column].heights[i] > highest ? ret[column].heights[i] : highest;
    }
    return highest;
}

/* The values of a plot in the columns of a graph. */
struct curve {
    float values[STEPS_MAX]; /* one for each step */
    struct dots columns[STEPS_MAX / 2];
    struct facts facts;
    int w, highest;
};

static void read_curve(struct curve *ret, const struct gp_box *box, const struct gp_panel *panel,
                       const struct gp_span *span, bool has_words)
{
    const struct gp_plot *plot = &panel->plot;
    const bool blocks = panel->blocks;
    const int per_column = blocks ? 1 : 2;
    ret->w = box->w * per_column > STEPS_MAX ? STEPS_MAX / per_column : box->w;
    const int half = span->half && !blocks;
    const int steps = ret->w > 0 ? ret->w * per_column - half : 0;
    gp_track_read(plot->track, plot->channel, span->end_ns, span->step_ns, ret->values,
                  (size_t)steps);
    ret->facts = (struct facts){.max = plot->max};
    if (has_words || plot->max <= 0)
        ret->facts = look_at(plot, span, steps, ret->values);
    if (ret->facts.max < panel->least)
        ret->facts.max = panel->least;
    if (!blocks)
        ret->highest =
            find_dots(ret->values, half, box->h, ret->facts.max, plot, ret->columns, ret->w);
}

static void draw_blocks_of(const struct gp_box *box, const struct curve *curve,
                           const struct gp_plot *plot)
{
    for (int i = 0; i < curve->w; i++) {
        int permille = permille_of(curve->values[i], curve->facts.max);
        if (permille >= 0)
            draw_blocks(box, box->w - 1 - i, permille, ink_of(plot, permille));
        else
            draw_gap(box, box->w - 1 - i, box->h - 1, i);
    }
}

static void draw_graph(const struct gp_box *box, const struct gp_panel *panel,
                       const struct gp_span *span, bool has_words, struct facts *ret)
{
    struct curve curve;
    read_curve(&curve, box, panel, span, has_words);
    if (panel->blocks)
        draw_blocks_of(box, &curve, &panel->plot);
    else
        draw_dots(box, curve.columns, curve.w, curve.highest);
    *ret = curve.facts;
}

/* ---- axes and text ---- */

/* "87", "2.4": at most three digits for small values; "1.6 MiB" rather than "0.0 GiB". */
static void add_value(struct gp_strbuf *sb, double value, const char *unit)
{
    const bool is_small = strcmp(unit, "GiB") == 0 && value > 0 && value < 0.1;
    value *= is_small ? 1024 : 1;
    unit = is_small ? "MiB" : unit;
    if (value < 10 && value > 0 && *unit != '%')
        gp_add_tenths(sb, value);
    else
        gp_add_whole(sb, value);
    if (*unit != '%' && *unit != '\0')
        gp_strbuf_addc(sb, ' ');
    gp_strbuf_adds(sb, unit);
}

/* At the axis: "7.6G", "80G", "700W", "50%"; rates have no room for a unit. */
static void add_scale(struct gp_strbuf *sb, double value, const char *unit)
{
    static const char *const signs[][2] = {{"GiB", "G"}, {"W", "W"}, {"°C", "°"}};
    const long whole = gp_whole(value);
    const double rest = value - (double)whole;
    if (strcmp(unit, "GiB") != 0)
        add_value(sb, value, *unit == '%' ? unit : "");
    else if (value < 10 && (rest > 0.05 || rest < -0.05))
        gp_add_tenths(sb, value);
    else
        gp_add_whole(sb, value);
    for (size_t i = 0; i < GP_ARRAY_LEN(signs); i++)
        if (strcmp(unit, signs[i][0]) == 0)
            gp_strbuf_adds(sb, signs[i][1]);
}

/* The title and as many numbers as there are lines. A graph of the past has no "now". */
static void draw_side(const struct gp_box *box, const struct gp_panel *panel,
                      const struct gp_span *span, const struct facts *facts)
{
    char room[24] = "";
    struct gp_strbuf text = GP_STRBUF_ON(room, sizeof(room) - 1);
    const bool is_past = panel->now_ns >= span->end_ns + span->step_ns;
    const struct {
        const char *word;
        double value;
        bool known;
    } lines[] = {{is_past ? "end" : "now", facts->of.last, facts->has_now},
                 {"avg", facts->of.mean, facts->has_any},
                 {"max", facts->of.highest, facts->has_any}};
    (void)gp_draw(box, 1, 0, gp_load_ink(panel->plot.like, 0), panel->title);
    for (int i = 0; i < (int)GP_ARRAY_LEN(lines); i++) {
        (void)gp_draw(box, 1, i + 1, GP_INK_DIM, lines[i].word);
        gp_strbuf_reset(&text);
        if (lines[i].known)
            add_value(&text, lines[i].value, panel->unit);
        else
            gp_strbuf_adds(&text, "--");
        gp_draw_right(box, 5, i + 1, box->w - 5, GP_INK_PLAIN, text.buf);
    }
}

/* ---- time ---- */

void gp_add_back(struct gp_strbuf *sb, uint64_t s)
{
    static const struct {
        uint64_t s;
        char name;
    } units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
    int parts = 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(units) && parts < 2; i++) {
        const uint64_t n = s / units[i].s;
        s %= units[i].s;
        parts += n > 0 || parts > 0;
        if (n == 0)
            continue;
        gp_strbuf_add_int(sb, (long)n);
        gp_strbuf_addc(sb, units[i].name);
    }
}

/* The round time between two marks that are at least this many columns apart. */
static uint64_t tick_of(uint64_t column_ns, uint64_t columns)
{
    static const unsigned seconds[] = {1,   2,   5,    10,   15,   30,    60,    120,  300,
                                       600, 900, 1800, 3600, 7200, 21600, 43200, 86400};
    uint64_t tick_ns = 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(seconds); i++) {
        tick_ns = seconds[i] * GP_NS_PER_S;
        if (tick_ns >= columns * column_ns)
            return tick_ns;
    }
    while (tick_ns < columns * column_ns)
        tick_ns *= 2;
    return tick_ns;
}

/* Each time is below or above its column. They are the same for graphs whose widths differ a
 * little. */
void gp_draw_times(const struct gp_box *box, const struct gp_span *span, uint64_t now_ns,
                   uint64_t column_ns)
{
    enum { APART = 12, WIDE_FROM = 150 };
    char room[32] = "";
    struct gp_strbuf text = GP_STRBUF_ON(room, sizeof(room) - 1);
    const uint64_t back_ns = now_ns > span->end_ns ? now_ns - span->end_ns : 0;
    const uint64_t back_s = (back_ns + GP_NS_PER_S / 2) / GP_NS_PER_S;
    const uint64_t tick_ns = tick_of(column_ns, box->w < WIDE_FROM ? APART : 2 * APART);
    gp_draw_fill(box, 0, 0, box->w, GP_INK_DIM, DASH);
    if (back_s)
        gp_add_back(&text, back_s);
    else
        gp_strbuf_adds(&text, "now");
    gp_draw_right(box, 0, 0, box->w, GP_INK_DIM, text.buf);
    const int end = box->w - (int)text.len;
    for (uint64_t at = tick_ns; column_ns > 0; at += tick_ns) {
        if (at <= back_ns)
            continue;
        const uint64_t columns = (at - back_ns + column_ns / 2) / column_ns;
        gp_strbuf_reset(&text);
        gp_add_back(&text, at / GP_NS_PER_S);
        if (columns + text.len / 2 > (uint64_t)box->w)
            return;
        const int x = box->w - (int)columns - (int)(text.len / 2);
        if (x + (int)text.len < end)
            (void)gp_draw(box, x, 0, GP_INK_DIM, text.buf);
    }
}

/* ---- the whole ---- */

/* Whether it has no sign: see add_scale(). */
static bool is_long(const char *unit)
{
    return strcmp(unit, "GB/s") == 0;
}

/* The scale at the left, and without words also what is graphed. */
static void draw_axis(const struct gp_box *box, int h, const struct gp_panel *panel, double max,
                      bool has_words)
{
    char room[24] = "";
    struct gp_strbuf text = GP_STRBUF_ON(room, sizeof(room) - 1);
    for (int y = 0; y < h; y++)
        gp_draw_fill(box, AXIS_WIDTH - 1, y, 1, GP_INK_DIM, AXIS);
    if (max > 0) /* otherwise nothing was seen, and how much there could be is unknown */
        add_scale(&text, max, panel->unit);
    gp_draw_right(box, 0, 0, AXIS_WIDTH - 1, GP_INK_DIM, text.buf);
    if (!has_words && h >= LABEL_FROM)
        gp_draw_right(box, 0, 1, AXIS_WIDTH - 1, gp_load_ink(panel->plot.like, 0), panel->label);
    if (!has_words && h >= UNIT_FROM && is_long(panel->unit))
        gp_draw_right(box, 0, 2, AXIS_WIDTH - 1, GP_INK_DIM, panel->unit);
    else if (h >= HALF_FROM && max >= 1) {
        gp_strbuf_reset(&text);
        add_scale(&text, max / 2, panel->unit);
        gp_draw_right(box, 0, h / 2, AXIS_WIDTH - 1, GP_INK_DIM, text.buf);
    }
    if (max > 0)
        gp_draw_right(box, 0, h - 1, AXIS_WIDTH - 1, GP_INK_DIM, *panel->unit == '%' ? "0%" : "0");
}

static void draw_absence(const struct gp_box *box)
{
    static const char *const words[] = {"not reported by the driver", "not reported", "--"};
    for (size_t i = 0; i < GP_ARRAY_LEN(words); i++) {
        const int w = (int)strlen(words[i]);
        if (w > box->w)
            continue;
        (void)gp_draw(box, (box->w - w) / 2, box->h / 2, GP_INK_DIM, words[i]);
        return;
    }
}

void gp_draw_panel(const struct gp_box *box, const struct gp_panel *panel,
                   const struct gp_span *span)
{
    const int words = box->w >= WORDS_FROM && box->h >= 4 ? WORDS_WIDTH : 0;
    const int h = box->h >= TIME_FROM ? box->h - 1 : box->h;
    const struct gp_box graph = gp_box_part(box, AXIS_WIDTH, 0, box->w - AXIS_WIDTH - words, h);
    struct facts facts = {.max = panel->plot.max};
    if (panel->is_absent)
        draw_absence(&graph);
    else
        draw_graph(&graph, panel, span, words > 0, &facts);
    draw_axis(box, h, panel, facts.max, words > 0);
    if (h < box->h) {
        const struct gp_box time = gp_box_part(box, AXIS_WIDTH, h, graph.w, 1);
        gp_draw_fill(box, AXIS_WIDTH - 1, h, 1, GP_INK_DIM, CORNER);
        gp_draw_times(&time, span, panel->now_ns, span->step_ns * (panel->blocks ? 1 : 2));
    }
    const struct gp_box side = gp_box_part(box, box->w - words, 0, words, h);
    if (words > 0)
        draw_side(&side, panel, span, &facts);
}
