#include "tui/graph.h"

#include "out/digits.h"

enum {
    BLOCK = 0x2581, /* ▁, the first of eight lower blocks */
    LEFT = 0x258f, /* ▏, the last of eight left blocks, which get wider towards lower code points */
    FULL = 0x2588, /* █ */
    DOT = 0x00b7,  /* · */
    DOTS = 0x2800, /* braille */
    AXIS = 0x2502, /* │ */
    DASH = 0x2500, /* ─ */
    EIGHTHS = 8,
    STEPS_MAX = 1024, /* maximum columns of a graph */
    AXIS_WIDTH = 6,
    WORDS_WIDTH = 14,
    WORDS_FROM = 60, /* minimum columns for text */
    TIME_FROM = 6,   /* minimum lines for a time axis */
};

enum gp_ink gp_load_ink(enum gp_series series, int permille)
{
    if (permille < 0)
        return GP_INK_STALE;
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
    int lows[2];    /* of a line: dots that are not drawn below it */
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
        int under = column->lows[i] - below;
        cp |= masks[i][dots <= 0   ? 0
                       : dots >= 4 ? 4
                                   : dots] &
              ~masks[i][under <= 0   ? 0
                        : under >= 4 ? 4
                                     : under];
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

/* Draws a line over columns that draw_dots() has drawn. In a cell that is full, only the line is
 * left, so that it is seen without colors too. */
static void draw_line(const struct gp_box *box, const struct dots *line, const struct dots *columns,
                      int w)
{
    for (int i = 0; i < w; i++) {
        const int *high = line[i].heights;
        const int *low = line[i].lows;
        const int top = high[0] > high[1] ? high[0] : high[1];
        const int bottom = high[0] == 0      ? low[1]
                           : high[1] == 0    ? low[0]
                           : low[0] < low[1] ? low[0]
                                             : low[1];
        for (int y = box->h - (top + 3) / 4; y < box->h - bottom / 4; y++) {
            const int below = (box->h - 1 - y) * 4;
            const uint32_t over = dots_above(&line[i], below);
            const uint32_t under = dots_above(&columns[i], below);
            if (over != DOTS)
                gp_draw_fill(box, box->w - 1 - i, y, 1, line[i].ink,
                             under == (DOTS | 0xff) ? over : over | under);
        }
    }
}

/* Makes a line of columns: as high as the samples, and connected to the older ones. */
static void make_line(struct dots *columns, int w)
{
    for (int i = 0; i < 2 * w; i++) {
        struct dots *at = &columns[i / 2]; /* the newer sample of a column is its second one */
        const int height = at->heights[1 - i % 2];
        const int older = i % 2 == 0 ? at->heights[0] : i / 2 + 1 < w ? at[1].heights[1] : 0;
        const int low = older > 0 && older < height ? older : height - 1;
        at->lows[1 - i % 2] = low > 0 ? low : 0;
    }
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
    if (facts.max <= 0)
        facts.max = round_up(facts.of.highest);
    return facts;
}

/* In the i-th column from the right. */
static struct gp_cell spark_cell(const struct gp_plot *plot, int permille, int i)
{
    if (permille < 0)
        return (struct gp_cell){i > 0 ? DOT : ' ', GP_INK_DIM};
    const uint32_t block = (uint32_t)(permille * (EIGHTHS - 1) + 500) / 1000;
    return (struct gp_cell){(BLOCK + block) & 0xffffff, gp_load_ink(plot->like, permille)};
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

static struct dots dots_of(const float pair[2], int h, double max, enum gp_series like)
{
    const int permille[2] = {permille_of(pair[0], max), permille_of(pair[1], max)};
    struct dots dots = {
        .ink = gp_load_ink(like, permille[0] > permille[1] ? permille[0] : permille[1])};
    for (int i = 0; i < 2; i++) {
        const int height = (permille[i] * h * 4 + 500) / 1000;
        dots.heights[i] = permille[i] < 0 ? 0 : height < 1 ? 1 : height;
    }
    return dots;
}

/* Returns the height of the highest column. Columns with the same values are computed once. */
static int find_dots(const float *values, int half, int h, double max, enum gp_series like,
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
        ret[column] = dots_of(pair, h, max, like);
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

static void read_curve(struct curve *ret, const struct gp_box *box, const struct gp_plot *plot,
                       const struct gp_span *span, bool blocks, bool has_words)
{
    const int per_column = blocks ? 1 : 2;
    ret->w = box->w * per_column > STEPS_MAX ? STEPS_MAX / per_column : box->w;
    const int half = span->half && !blocks;
    const int steps = ret->w > 0 ? ret->w * per_column - half : 0;
    gp_track_read(plot->track, plot->channel, span->end_ns, span->step_ns, ret->values,
                  (size_t)steps);
    ret->facts = (struct facts){.max = plot->max};
    if (has_words || plot->max <= 0)
        ret->facts = look_at(plot, span, steps, ret->values);
    if (!blocks)
        ret->highest =
            find_dots(ret->values, half, box->h, ret->facts.max, plot->like, ret->columns, ret->w);
}

static void draw_blocks_of(const struct gp_box *box, const struct curve *curve,
                           const struct gp_plot *plot)
{
    for (int i = 0; i < curve->w; i++) {
        int permille = permille_of(curve->values[i], curve->facts.max);
        if (permille >= 0)
            draw_blocks(box, box->w - 1 - i, permille, gp_load_ink(plot->like, permille));
        else
            draw_gap(box, box->w - 1 - i, box->h - 1, i);
    }
}

static void draw_line_of(const struct gp_box *box, const struct curve *curve,
                         const struct gp_plot *plot)
{
    for (int i = 0; i < curve->w; i++) {
        int permille = permille_of(curve->values[i], curve->facts.max);
        int y = box->h - 1 - permille * box->h / 1000;
        if (permille >= 0)
            gp_draw_fill(box, box->w - 1 - i, y < 0 ? 0 : y, 1, gp_load_ink(plot->like, permille),
                         DASH);
    }
}

static void draw_graph(const struct gp_box *box, const struct gp_panel *panel,
                       const struct gp_span *span, bool has_words, struct facts ret[2])
{
    struct curve area;
    struct curve line;
    read_curve(&area, box, &panel->plot, span, panel->blocks, has_words);
    if (panel->blocks)
        draw_blocks_of(box, &area, &panel->plot);
    else
        draw_dots(box, area.columns, area.w, area.highest);
    ret[0] = area.facts;
    if (!panel->line.track)
        return;
    read_curve(&line, box, &panel->line, span, panel->blocks, has_words);
    ret[1] = line.facts;
    if (panel->blocks) {
        draw_line_of(box, &line, &panel->line);
        return;
    }
    make_line(line.columns, line.w);
    draw_line(box, line.columns, area.columns, line.w);
}

/* ---- axes and text ---- */

/* "87", "2.4": at most three digits for small values. */
static void add_value(struct gp_strbuf *sb, double value, const char *unit)
{
    if (value < 10 && value > 0 && *unit != '%')
        gp_add_tenths(sb, value);
    else
        gp_add_whole(sb, value);
    if (*unit != '%' && *unit != '\0')
        gp_strbuf_addc(sb, ' ');
    gp_strbuf_adds(sb, unit);
}

/* What a curve is called, and what it looks like. */
struct legend {
    enum gp_ink ink;
    uint32_t mark; /* 0: none */
    const char *title, *unit;
};

/* Returns where the next text starts. */
static int draw_title(const struct gp_box *box, int x, const struct legend *legend)
{
    if (legend->mark)
        gp_draw_fill(box, x, 0, 1, legend->ink, legend->mark);
    return gp_draw(box, x + 2 * (legend->mark != 0), 0, legend->ink, legend->title);
}

/* The area, and the line over it. */
static void set_legends(struct legend ret[2], const struct gp_panel *panel)
{
    const bool has_line = panel->line.track != NULL;
    ret[0] = (struct legend){has_line ? gp_load_ink(panel->plot.like, 0) : GP_INK_STRONG,
                             has_line ? FULL : 0, panel->title, panel->unit};
    ret[1] = (struct legend){gp_load_ink(panel->line.like, 0), DASH, panel->line_title,
                             panel->line_unit};
}

/* A title and as many of its numbers as there are lines. A graph of the past has no "now". */
static void draw_facts(const struct gp_box *box, const struct legend *legend,
                       const struct facts *facts, bool is_past)
{
    char room[24] = "";
    struct gp_strbuf text = GP_STRBUF_ON(room, sizeof(room) - 1);
    const struct {
        const char *word;
        double value;
        bool known;
    } lines[] = {{is_past ? "end" : "now", facts->of.last, facts->has_now},
                 {"avg", facts->of.mean, facts->has_any},
                 {"max", facts->of.highest, facts->has_any}};
    (void)draw_title(box, 1, legend);
    for (int i = 0; i < (int)GP_ARRAY_LEN(lines); i++) {
        (void)gp_draw(box, 1, i + 1, GP_INK_DIM, lines[i].word);
        gp_strbuf_reset(&text);
        if (lines[i].known)
            add_value(&text, lines[i].value, legend->unit);
        else
            gp_strbuf_adds(&text, "--");
        gp_draw_right(box, 5, i + 1, box->w - 5, GP_INK_PLAIN, text.buf);
    }
}

/* At the right of a graph. Two curves share the lines. */
static void draw_side(const struct gp_box *box, const struct gp_panel *panel,
                      const struct gp_span *span, const struct facts facts[2])
{
    enum { LINES = 4 };
    struct legend legends[2];
    const bool is_past = panel->now_ns >= span->end_ns + span->step_ns;
    const int count = panel->line.track ? 2 : 1;
    const int each = box->h / count < LINES ? box->h / count : LINES;
    set_legends(legends, panel);
    for (int i = 0; i < count; i++) {
        const struct gp_box part = gp_box_part(box, 0, i * each, box->w, each);
        draw_facts(&part, &legends[i], &facts[i], is_past);
    }
}

/* Writes "now", "-45s" or "-2m05s". */
static void set_back(struct gp_strbuf *sb, uint64_t ns)
{
    long s = (long)((ns + GP_NS_PER_S / 2) / GP_NS_PER_S);
    gp_strbuf_reset(sb);
    if (s == 0) {
        gp_strbuf_adds(sb, "now");
        return;
    }
    gp_strbuf_addc(sb, '-');
    if (s >= 60) {
        gp_strbuf_add_int(sb, s / 60);
        gp_strbuf_adds(sb, s % 60 < 10 ? "m0" : "m");
    }
    gp_strbuf_add_int(sb, s % 60);
    gp_strbuf_addc(sb, 's');
}

static void draw_time(const struct gp_box *box, const struct gp_panel *panel,
                      const struct gp_span *span)
{
    char room[32] = "";
    struct gp_strbuf text = GP_STRBUF_ON(room, sizeof(room) - 1);
    uint64_t back_ns = panel->now_ns > span->end_ns ? panel->now_ns - span->end_ns : 0;
    uint64_t wide_ns = span->step_ns * (uint64_t)box->w * (panel->blocks ? 1 : 2);
    set_back(&text, back_ns + wide_ns);
    (void)gp_draw(box, 0, 0, GP_INK_DIM, text.buf);
    set_back(&text, back_ns + wide_ns / 2);
    gp_draw_right(box, box->w / 2 - 10, 0, 10, GP_INK_DIM, text.buf);
    set_back(&text, back_ns);
    gp_draw_right(box, box->w - 10, 0, 10, GP_INK_DIM, text.buf);
}

void gp_draw_panel(const struct gp_box *box, const struct gp_panel *panel,
                   const struct gp_span *span)
{
    char room[24] = "";
    struct gp_strbuf text = GP_STRBUF_ON(room, sizeof(room) - 1);
    int words = box->w >= WORDS_FROM && box->h >= 4 ? WORDS_WIDTH : 0;
    int h = box->h >= TIME_FROM ? box->h - 1 : box->h;
    struct gp_box graph = gp_box_part(box, AXIS_WIDTH, 0, box->w - AXIS_WIDTH - words, h);
    struct facts facts[2] = {{.max = 0}};
    draw_graph(&graph, panel, span, words > 0, facts);
    add_value(&text, facts[0].max, *panel->unit == '%' ? "%" : "");
    for (int y = 0; y < h; y++)
        gp_draw_fill(box, AXIS_WIDTH - 1, y, 1, GP_INK_DIM, AXIS);
    gp_draw_right(box, 0, 0, AXIS_WIDTH - 1, GP_INK_DIM, text.buf);
    gp_draw_right(box, 0, h - 1, AXIS_WIDTH - 1, GP_INK_DIM, *panel->unit == '%' ? "0%" : "0");
    if (h < box->h) {
        struct gp_box time = gp_box_part(box, AXIS_WIDTH, h, graph.w, 1);
        (void)gp_draw(box, AXIS_WIDTH - 1, h, GP_INK_DIM, "└");
        draw_time(&time, panel, span);
    }
    struct gp_box side = gp_box_part(box, box->w - words, 0, words, h);
    if (words > 0) {
        draw_side(&side, panel, span, facts);
        return;
    }
    struct legend legends[2];
    set_legends(legends, panel);
    int x = draw_title(&graph, 1, &legends[0]);
    if (panel->line.track) {
        (void)draw_title(&graph, x + 2, &legends[1]);
    } else if (*panel->unit != '%') {
        x = gp_draw(&graph, x, 0, GP_INK_STRONG, ", ");
        (void)gp_draw(&graph, x, 0, GP_INK_STRONG, panel->unit);
    }
}
