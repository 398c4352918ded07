#include "tui/cells.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int gp_cells_resize(struct gp_cells *cells, int w, int h)
{
    w = w < 1 ? 1 : w;
    h = h < 1 ? 1 : h;
    struct gp_cells grown = {w, h, calloc((size_t)w * (size_t)h, sizeof(*grown.cells))};
    if (!grown.cells)
        return GP_ENOMEM;
    gp_cells_clear(&grown);
    free(cells->cells);
    *cells = grown;
    return 0;
}

void gp_cells_clear(struct gp_cells *cells)
{
    static const struct gp_cell blank = {' ', GP_INK_PLAIN};
    size_t row = (size_t)cells->w;
    for (size_t i = 0; i < row; i++)
        cells->cells[i] = blank;
    for (size_t y = 1; y < (size_t)cells->h; y++)
        memcpy(cells->cells + y * row, cells->cells, row * sizeof(*cells->cells));
}

void gp_cells_fini(struct gp_cells *cells)
{
    free(cells->cells);
    *cells = (struct gp_cells){0, 0, NULL};
}

static struct gp_cell *cell_at(const struct gp_cells *cells, int x, int y)
{
    return &cells->cells[(size_t)y * (size_t)cells->w + (size_t)x];
}

uint32_t gp_cell_ascii(uint32_t cp)
{
    static const struct {
        uint32_t from, to;
        char as;
    } ranges[] = {
        {0x2500, 0x2501, '-'}, {0x2502, 0x2503, '|'}, {0x250c, 0x254b, '+'}, {0x2581, 0x2582, '.'},
        {0x2583, 0x2585, ':'}, {0x2586, 0x2588, '#'}, {0x2589, 0x258b, '#'}, {0x258c, 0x258f, '|'},
        {0x00b7, 0x00b7, '.'}, {0x2026, 0x2026, '~'}, {0x25b2, 0x25b2, '^'}, {0x25bc, 0x25bc, 'v'},
        {0x2190, 0x2190, '<'}, {0x2191, 0x2191, '^'}, {0x2192, 0x2192, '>'}, {0x2193, 0x2193, 'v'},
        {0x00b0, 0x00b0, ' '}, {0x25b8, 0x25b8, '>'}, {0x25be, 0x25be, 'v'}, {0x2013, 0x2013, '-'},
        {0x2591, 0x2591, ':'}, {0x2265, 0x2265, '>'}, {0x2595, 0x2595, '|'}, {0x203a, 0x203a, '>'},
    };
    if (cp < 0x7f)
        return cp;
    if (cp > 0x2800 && cp < 0x2900) { /* braille: by number of dots */
        int dots = __builtin_popcount(cp & 0xff);
        return dots < 3 ? '.' : dots < 6 ? ':' : '#';
    }
    for (size_t i = 0; i < GP_ARRAY_LEN(ranges); i++)
        if (cp >= ranges[i].from && cp <= ranges[i].to)
            return (uint32_t)ranges[i].as;
    return '?';
}

uint32_t gp_cell_console(uint32_t cp)
{
    enum { LOWER = 0x2584, FULL = 0x2588, LEFT = 0x258c };
    static const uint32_t levels[] = {'_', '_', LOWER, LOWER, LOWER, LOWER, FULL, FULL};
    static const uint32_t missing[] = {0x2013, 0x2026, 0x203a, 0x2595, 0x25b8, 0x25be};
    if (cp < 0x2000)
        return cp;
    if (cp >= 0x2581 && cp <= FULL)
        return levels[cp - 0x2581];
    if (cp > FULL && cp < 0x2590)
        return cp < LEFT - 1 ? FULL : LEFT;
    if (cp > 0x2800 && cp < 0x2900)
        return levels[__builtin_popcount(cp & 0xff) - 1];
    for (size_t i = 0; i < GP_ARRAY_LEN(missing); i++)
        if (cp == missing[i])
            return gp_cell_ascii(cp);
    return cp;
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

struct gp_box gp_box_part(const struct gp_box *box, int x, int y, int w, int h)
{
    x = x < 0 ? 0 : smaller(x, box->w);
    y = y < 0 ? 0 : smaller(y, box->h);
    w = w < 0 ? 0 : smaller(w, box->w - x);
    h = h < 0 ? 0 : smaller(h, box->h - y);
    return (struct gp_box){box->cells, box->x + x, box->y + y, w, h};
}

/* The first of w cells to be overwritten. If that is half of a wide character, the other half
 * becomes blank. */
static struct gp_cell *take_cells(const struct gp_box *box, int x, int y, int w)
{
    struct gp_cell *cell = cell_at(box->cells, box->x + x, box->y + y);
    if (!cell->cp && box->x + x > 0)
        cell[-1].cp = ' ';
    if (box->x + x + w < box->cells->w && !cell[w].cp)
        cell[w].cp = ' ';
    return cell;
}

/* Puts a character of two columns, if all of it fits. */
static void put_wide(const struct gp_box *box, int x, int y, enum gp_ink ink, uint32_t cp)
{
    if (x < 0 || y < 0 || y >= box->h || x + 2 > box->w)
        return;
    struct gp_cell *cell = take_cells(box, x, y, 2);
    cell[0] = (struct gp_cell){cp & 0xffffff, ink};
    cell[1] = (struct gp_cell){0, ink};
}

/* Puts w characters of one column, as far as they fit: ASCII text, or the same one (NULL). */
static void put_narrow(const struct gp_box *box, int x, int y, int w, enum gp_ink ink, uint32_t cp,
                       const char *ascii)
{
    int from = x < 0 ? -x : 0;
    int to = smaller(w, box->w - x);
    if (from >= to || y < 0 || y >= box->h)
        return;
    struct gp_cell *cell = take_cells(box, x + from, y, to - from);
    for (int i = from; i < to; i++)
        *cell++ = (struct gp_cell){ascii ? (uint32_t)ascii[i] & 0x7f : cp & 0xffffff, ink};
}

static bool is_plain(char c)
{
    return c >= ' ' && c < 0x7f;
}

int gp_draw(const struct gp_box *box, int x, int y, enum gp_ink ink, const char *text)
{
    for (size_t i = 0; text[i] && x < box->w;) {
        uint32_t cp;
        int plain = 0;
        while (is_plain(text[i + (size_t)plain]))
            plain++;
        if (plain > 0) {
            put_narrow(box, x, y, plain, ink, 0, text + i);
            x = smaller(x + plain, box->w);
            i += (size_t)plain;
            continue;
        }
        i += gp_utf8_decode(text + i, strnlen(text + i, GP_UTF8_MAX), &cp);
        int width = gp_utf8_columns(cp);
        if (width == 1)
            put_narrow(box, x, y, 1, ink, cp, NULL);
        else if (width == 2)
            put_wide(box, x, y, ink, cp);
        x += width;
    }
    return x;
}

int gp_drawf(const struct gp_box *box, int x, int y, enum gp_ink ink, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return gp_draw(box, x, y, ink, text);
}

static void draw_cut(const struct gp_box *box, int x, int y, int w, enum gp_ink ink,
                     const char *text)
{
    struct gp_box part = gp_box_part(box, x, y, w, 1);
    if (part.w <= 0)
        return;
    struct gp_box head = gp_box_part(&part, 0, 0, part.w - 1, 1);
    (void)gp_draw(&head, 0, 0, ink, text);
    (void)gp_draw(&part, part.w - 1, 0, ink, "…");
}

void gp_draw_left(const struct gp_box *box, int x, int y, int w, enum gp_ink ink, const char *text)
{
    struct gp_box part = gp_box_part(box, x, y, w, 1);
    if ((int)gp_utf8_width(text) > w)
        draw_cut(box, x, y, w, ink, text);
    else
        (void)gp_draw(&part, 0, 0, ink, text);
}

void gp_draw_right(const struct gp_box *box, int x, int y, int w, enum gp_ink ink, const char *text)
{
    int width = (int)gp_utf8_width(text);
    if (width > w)
        draw_cut(box, x, y, w, ink, text);
    else
        (void)gp_draw(box, x + w - width, y, ink, text);
}

/* Bytes of the first line, which has at most w columns and ends at a blank if the text
 * continues. */
static size_t first_line(const char *text, int w)
{
    size_t n = strlen(text);
    size_t blank = 0;
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        size_t bytes = gp_utf8_decode(text + i, n - i, &cp);
        blank = cp == ' ' ? i : blank;
        w -= gp_utf8_columns(cp);
        if (w < 0)
            return blank ? blank : i ? i : bytes;
        i += bytes;
    }
    return n;
}

int gp_draw_wrapped(const struct gp_box *box, int y, enum gp_ink ink, const char *text)
{
    while (box->w > 0 && y < box->h && *text) {
        size_t n = first_line(text, box->w);
        if (y == box->h - 1 && text[n])
            gp_draw_left(box, 0, y, box->w, ink, text);
        else
            (void)gp_drawf(box, 0, y, ink, "%.*s", (int)n, text);
        text += n + strspn(text + n, " ");
        y++;
    }
    return y;
}

void gp_draw_fill(const struct gp_box *box, int x, int y, int w, enum gp_ink ink, uint32_t cp)
{
    put_narrow(box, x, y, w, ink, cp, NULL);
}

/* Blocks, braille, or a dot where a bar or a graph has nothing. */
static bool is_chart(const struct gp_cell *cell)
{
    return (cell->cp >= 0x2580 && cell->cp <= 0x259f) ||
           (cell->cp >= 0x2800 && cell->cp <= 0x28ff) ||
           (cell->cp == 0xb7 && cell->ink == GP_INK_DIM);
}

/* An alarm stays one under the cursor: the block of a critical one stands out from its line. A
 * chart with its own background would be a hole there. */
static enum gp_ink ink_over(const struct gp_cell *cell, enum gp_ink ink)
{
    const bool is_alarm = cell->ink == GP_INK_HIGH || cell->ink == GP_INK_CRITICAL;
    if (is_chart(cell))
        return ink == GP_INK_SELECTED ? ink : (enum gp_ink)cell->ink;
    if (is_alarm && ink == GP_INK_SELECTED)
        return GP_INK_CRITICAL;
    return is_alarm && ink == GP_INK_STRONG ? (enum gp_ink)cell->ink : ink;
}

void gp_draw_ink(const struct gp_box *box, int y, enum gp_ink ink)
{
    for (int x = 0; x < box->w && y >= 0 && y < box->h; x++) {
        struct gp_cell *cell = cell_at(box->cells, box->x + x, box->y + y);
        cell->ink = ink_over(cell, ink);
    }
}
