#include "bench/chart.h"

#include "base/strbuf.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEFT = 9, /* columns of the labels of the y axis */
    COLUMNS_MAX = 200,
    ROWS_MAX = 60,
    DECADES_MAX = 20,
};

/* An axis: its ends, as powers of ten. */
struct axis {
    double first, last;
};

/* 1, 2, 5, 10, 20, …: number `step`, which may be negative. */
static double round_number(long step)
{
    static const double of_decade[] = {1, 2, 5};
    long decade = step >= 0 ? step / 3 : -((2 - step) / 3);
    return of_decade[step - 3 * decade] * pow(10, (double)decade);
}

/* The next mark of an axis after *step, which is moved to it: round numbers, or only powers of ten
 * if it is long. False: no more. */
static bool next_mark(const struct axis *axis, long *step, double *ret)
{
    static const double long_axis = 2.5, error = 1e-9;
    do
        *ret = round_number(++*step);
    while (log10(*ret) < axis->first - error ||
           (axis->last - axis->first > long_axis && *step % 3 != 0));
    return log10(*ret) <= axis->last + error;
}

/* Before the first mark of an axis. */
static long before_marks(const struct axis *axis)
{
    double decade = floor(axis->first);
    return 3 * (long)decade - 1;
}

static bool ranges(const struct gp_chart *chart, struct axis *x, struct axis *y)
{
    *x = *y = (struct axis){(double)INFINITY, -(double)INFINITY};
    for (size_t c = 0; c < chart->count; c++)
        for (size_t i = 0; i < chart->curves[c].count; i++) {
            const struct gp_chart_point *p = &chart->curves[c].points[i];
            x->first = fmin(x->first, log10(p->x));
            x->last = fmax(x->last, log10(p->x));
            y->first = fmin(y->first, log10(p->low > 0 ? p->low : p->y));
            y->last = fmax(y->last, log10(p->high > 0 ? p->high : p->y));
        }
    if (!(x->first <= x->last && y->first <= y->last))
        return false;
    struct axis *axes[] = {x, y};
    for (size_t i = 0; i < 2; i++) {
        long step = before_marks(axes[i]);
        double low = round_number(step);
        while (log10(round_number(step + 1)) <= axes[i]->first + 1e-9)
            low = round_number(++step);
        double high = round_number(++step);
        while (log10(high) < axes[i]->last - 1e-9)
            high = round_number(++step);
        axes[i]->first = log10(low);
        axes[i]->last = fmin(log10(high), axes[i]->first + DECADES_MAX);
    }
    return true;
}

/* From 0 to 1 along the axis. */
static double along(const struct axis *axis, double value)
{
    double part = (log10(value) - axis->first) / (axis->last - axis->first);
    return fmax(0, fmin(1, part));
}

/* "100", "2k", "0.05" */
static void mark_text(double value, char text[16])
{
    static const char *const units[] = {"n", "u", "m", "", "k", "M", "G", "T", "P"};
    double power = floor(log10(value) + 1e-9);
    int whole = (int)power;
    int group = whole >= 0 ? whole / 3 : -((2 - whole) / 3);
    struct gp_strbuf sb = {.buf = text, .cap = 16, .max = 15, .lent = text};
    text[0] = '\0';
    if (whole < 0 && whole >= -3)
        gp_strbuf_addf(&sb, "%.*f", -whole, value);
    else if (group < -3 || group > 5)
        gp_strbuf_addf(&sb, "%.0e", value);
    else
        gp_strbuf_addf(&sb, "%.0f%s", value / pow(1000, group), units[group + 3]);
}

/* ---- text ---- */

struct canvas {
    size_t columns, rows;
    uint8_t dots[ROWS_MAX][COLUMNS_MAX]; /* as in braille: bit = column + … */
    char marks[ROWS_MAX][COLUMNS_MAX];   /* a letter, or 0 */
};

/* Dots are counted from the left and from the bottom, 2 by 4 in a cell. */
static void set_dot(struct canvas *canvas, long x, long y)
{
    static const uint8_t bits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    long row = (long)canvas->rows * 4 - 1 - y;
    if (x < 0 || row < 0 || y < 0 || x >= (long)canvas->columns * 2)
        return;
    canvas->dots[row / 4][x / 2] |= bits[row % 4][x % 2];
}

static void draw_line(struct canvas *canvas, const long from[2], const long to[2])
{
    long dx = to[0] - from[0];
    long dy = to[1] - from[1];
    long steps = labs(dx) > labs(dy) ? labs(dx) : labs(dy);
    for (long i = 0; i <= steps; i++)
        set_dot(canvas, from[0] + (steps ? dx * i / steps : 0),
                from[1] + (steps ? dy * i / steps : 0));
}

static void draw_curve(struct canvas *canvas, const struct gp_chart_curve *curve, char letter,
                       const struct axis *x, const struct axis *y)
{
    long before[2] = {0, 0};
    for (size_t i = 0; i < curve->count; i++) {
        long at[2] = {
            lround(along(x, curve->points[i].x) * (double)(canvas->columns * 2 - 1)),
            lround(along(y, curve->points[i].y) * (double)(canvas->rows * 4 - 1)),
        };
        draw_line(canvas, i > 0 ? before : at, at);
        canvas->marks[canvas->rows - 1 - (size_t)at[1] / 4][at[0] / 2] = letter;
        memcpy(before, at, sizeof(at));
    }
}

static void add_cell(struct gp_strbuf *sb, uint8_t dots, bool plain)
{
    if (!dots)
        gp_strbuf_addc(sb, ' ');
    else if (plain)
        gp_strbuf_addc(sb, '.');
    else /* U+2800 and the dots, in UTF-8 */
        gp_strbuf_addf(sb, "\xE2%c%c", 0xA0 | dots >> 6, 0x80 | (dots & 0x3F));
}

static void add_row(struct gp_strbuf *sb, const struct canvas *canvas, size_t row,
                    const struct axis *y, bool plain)
{
    char label[16] = "";
    double value;
    for (long step = before_marks(y); next_mark(y, &step, &value);) {
        long dot = lround(along(y, value) * (double)(canvas->rows * 4 - 1));
        if (canvas->rows - 1 - (size_t)dot / 4 == row)
            mark_text(value, label);
    }
    gp_strbuf_addf(sb, "%*s %s", LEFT - 2, label, plain ? "|" : label[0] ? "┤" : "│");
    size_t last = canvas->columns;
    while (last > 0 && !canvas->dots[row][last - 1] && !canvas->marks[row][last - 1])
        last--;
    for (size_t i = 0; i < last; i++)
        if (canvas->marks[row][i])
            gp_strbuf_addc(sb, canvas->marks[row][i]);
        else
            add_cell(sb, canvas->dots[row][i], plain);
    gp_strbuf_addc(sb, '\n');
}

static void add_x_axis(struct gp_strbuf *sb, const struct canvas *canvas, const struct axis *x,
                       const char *title, bool plain)
{
    char line[LEFT + COLUMNS_MAX + 32];
    char label[16];
    double value;
    size_t end = 0;
    memset(line, ' ', sizeof(line));
    for (long step = before_marks(x); next_mark(x, &step, &value);) {
        size_t at = LEFT + (size_t)lround(along(x, value) * (double)(canvas->columns - 1));
        mark_text(value, label);
        size_t length = strlen(label);
        size_t start = at + 1 - length;
        if (start < end)
            continue;
        for (size_t i = 0; i < length; i++)
            line[start + i] = label[i];
        end = start + length + 1;
    }
    gp_strbuf_fill(sb, ' ', LEFT - 1);
    gp_strbuf_adds(sb, plain ? "+" : "└");
    for (size_t i = 0; i < canvas->columns; i++)
        gp_strbuf_adds(sb, plain ? "-" : "─");
    gp_strbuf_addf(sb, "\n%.*s  %s\n", (int)end, line, title);
}

void gp_chart_add_text(struct gp_strbuf *sb, const struct gp_chart *chart, size_t columns,
                       size_t rows, bool plain)
{
    struct axis x;
    struct axis y;
    struct canvas canvas = {.rows = rows < ROWS_MAX ? rows : ROWS_MAX};
    columns = columns < 40 ? 40 : columns;
    canvas.columns = columns - LEFT < COLUMNS_MAX ? columns - LEFT : COLUMNS_MAX;
    if (canvas.rows == 0 || !ranges(chart, &x, &y))
        return;
    for (size_t c = 0; c < chart->count; c++)
        draw_curve(&canvas, &chart->curves[c], (char)('a' + c), &x, &y);
    gp_strbuf_addf(sb, "%*s\n", (int)strlen(chart->y_title) < LEFT - 2 ? LEFT - 2 : 0,
                   chart->y_title);
    for (size_t row = 0; row < canvas.rows; row++)
        add_row(sb, &canvas, row, &y, plain);
    add_x_axis(sb, &canvas, &x, chart->x_title, plain);
    for (size_t c = 0; c < chart->count; c++)
        gp_strbuf_addf(sb, "%*c  %s\n", LEFT, (char)('a' + c), chart->curves[c].name);
}

/* ---- SVG ---- */

enum {
    WIDTH = 800,
    HEIGHT = 500,
    PLOT_LEFT = 80,
    PLOT_RIGHT = 780,
    PLOT_TOP = 90,
    PLOT_BOTTOM = 440,
    LEGEND_TOP = 54,
    LEGEND_COLUMNS = 4,
    LEGEND_WIDTH = 175
};

/* Distinguishable with the common forms of colour blindness (Okabe and Ito). */
static const char *const inks[GP_CHART_CURVES] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                  "#e69f00", "#56b4e9", "#000000", "#999999"};

static void add_escaped(struct gp_strbuf *sb, const char *text)
{
    for (; *text; text++)
        if (*text == '<' || *text == '&' || *text == '>')
            gp_strbuf_addf(sb, "&#%d;", *text);
        else
            gp_strbuf_addc(sb, *text);
}

static double x_of(const struct axis *axis, double value)
{
    return PLOT_LEFT + along(axis, value) * (PLOT_RIGHT - PLOT_LEFT);
}

static double y_of(const struct axis *axis, double value)
{
    return PLOT_BOTTOM - along(axis, value) * (PLOT_BOTTOM - PLOT_TOP);
}

static void add_svg_text(struct gp_strbuf *sb, double x, double y, const char *attributes,
                         const char *text)
{
    gp_strbuf_addf(sb, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, attributes);
    add_escaped(sb, text);
    gp_strbuf_adds(sb, "</text>\n");
}

static void add_grid(struct gp_strbuf *sb, const struct axis *x, const struct axis *y)
{
    char label[16];
    double value;
    for (long step = before_marks(x); next_mark(x, &step, &value);) {
        double at = x_of(x, value);
        mark_text(value, label);
        gp_strbuf_addf(sb, "<path d=\"M%.1f %dV%d\" stroke=\"#ddd\"/>\n", at, PLOT_TOP,
                       PLOT_BOTTOM);
        add_svg_text(sb, at, PLOT_BOTTOM + 18, "text-anchor=\"middle\"", label);
    }
    for (long step = before_marks(y); next_mark(y, &step, &value);) {
        double at = y_of(y, value);
        mark_text(value, label);
        gp_strbuf_addf(sb, "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/>\n", PLOT_LEFT, at,
                       PLOT_RIGHT);
        add_svg_text(sb, PLOT_LEFT - 8, at + 4, "text-anchor=\"end\"", label);
    }
}

static void add_svg_curve(struct gp_strbuf *sb, const struct gp_chart *chart, size_t c,
                          const struct axis *x, const struct axis *y)
{
    const struct gp_chart_curve *curve = &chart->curves[c];
    const char *ink = inks[c];
    gp_strbuf_adds(sb, "<polyline fill=\"none\" stroke-width=\"2\" points=\"");
    for (size_t i = 0; i < curve->count; i++)
        gp_strbuf_addf(sb, "%s%.1f,%.1f", i ? " " : "", x_of(x, curve->points[i].x),
                       y_of(y, curve->points[i].y));
    gp_strbuf_addf(sb, "\" stroke=\"%s\"/>\n", ink);
    for (size_t i = 0; i < curve->count; i++) {
        const struct gp_chart_point *p = &curve->points[i];
        if (p->low > 0 && p->high > 0)
            gp_strbuf_addf(sb, "<path d=\"M%.1f %.1fV%.1f\" stroke=\"%s\"/>\n", x_of(x, p->x),
                           y_of(y, p->low), y_of(y, p->high), ink);
        gp_strbuf_addf(sb, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", x_of(x, p->x),
                       y_of(y, p->y), ink);
    }
    const size_t row = c / LEGEND_COLUMNS;
    const size_t column = c % LEGEND_COLUMNS;
    double left = PLOT_LEFT + (double)(column * LEGEND_WIDTH);
    double at = LEGEND_TOP + 18 * (double)row;
    gp_strbuf_addf(sb, "<path d=\"M%.1f %.1fh20\" stroke=\"%s\" stroke-width=\"3\"/>\n", left,
                   at - 4, ink);
    add_svg_text(sb, left + 26, at, "", curve->name);
}

void gp_chart_add_svg(struct gp_strbuf *sb, const struct gp_chart *chart)
{
    struct axis x;
    struct axis y;
    gp_strbuf_addf(sb,
                   "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                   "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"13\">\n"
                   "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
                   WIDTH, HEIGHT, WIDTH, HEIGHT);
    add_svg_text(sb, WIDTH / 2.0, 28, "text-anchor=\"middle\" font-size=\"16\"", chart->title);
    if (ranges(chart, &x, &y)) {
        add_grid(sb, &x, &y);
        for (size_t c = 0; c < chart->count; c++)
            add_svg_curve(sb, chart, c, &x, &y);
    }
    add_svg_text(sb, (PLOT_LEFT + PLOT_RIGHT) / 2.0, HEIGHT - 20, "text-anchor=\"middle\"",
                 chart->x_title);
    add_svg_text(sb, PLOT_RIGHT, HEIGHT - 20, "text-anchor=\"end\" fill=\"#666\"",
                 "bars: 95 % intervals");
    gp_strbuf_addf(sb, "<g transform=\"rotate(-90)\">");
    add_svg_text(sb, -(PLOT_TOP + PLOT_BOTTOM) / 2.0, 24, "text-anchor=\"middle\"", chart->y_title);
    gp_strbuf_adds(sb, "</g>\n</svg>\n");
}
