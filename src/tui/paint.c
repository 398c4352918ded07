#include "tui/paint.h"

#include "base/strbuf.h"
#include "base/utf8.h"

#include <string.h>

enum {
    SMALL_GAP = 3, /* moving the cursor takes four bytes or more */
    BACKS = 3,     /* columns back, each a byte */
    FEW = 128, /* runs of changed cells, which are ordered by ink and column if that is shorter */
    ANY_INK = GP_INK__COUNT,
};

/* Changed cells of one ink side by side. */
struct run {
    int x, y, n;
    unsigned ink;
};

struct brush {
    struct gp_strbuf *sb;
    const struct gp_palette *palette;
    const struct gp_ink_look *look; /* what is on; NULL: that of an erased screen */
    int x, y;                       /* of the cursor; x is −1: unknown */
    int w;                          /* of the screen */
    bool is_sure; /* every terminal agrees on x: since it was placed, nothing of doubtful width */
};

static void add_move(struct gp_strbuf *sb, int n, char direction)
{
    gp_strbuf_adds(sb, "\033[");
    if (n > 1)
        gp_strbuf_add_int(sb, n);
    gp_strbuf_addc(sb, direction);
}

static void place(struct brush *brush, int x, int y)
{
    struct gp_strbuf *sb = brush->sb;
    if (brush->palette->place) {
        brush->palette->place(sb, x, y);
    } else if (y == brush->y && brush->is_sure && brush->x >= 0 && brush->x < x) {
        add_move(sb, x - brush->x, 'C');
    } else if (y > brush->y && brush->is_sure && brush->x - x >= 0 && brush->x - x <= BACKS) {
        add_move(sb, y - brush->y, 'B');
        gp_strbuf_fill(sb, '\b', (size_t)(brush->x - x));
    } else {
        gp_strbuf_adds(sb, "\033[");
        gp_strbuf_add_int(sb, y + 1);
        gp_strbuf_addc(sb, ';');
        gp_strbuf_add_int(sb, x + 1);
        gp_strbuf_addc(sb, 'H');
        brush->is_sure = true;
    }
    brush->x = x;
    brush->y = y;
}

static void take(struct brush *brush, const struct gp_ink_look *look)
{
    const struct gp_ink_look *old = brush->look;
    if (look == old)
        return;
    if (old && old->start[0] && !(old->replaces && look->replaces))
        gp_strbuf_adds(brush->sb, brush->palette->reset);
    gp_strbuf_adds(brush->sb, look->start);
    brush->look = look;
}

/* ASCII and the dots of graphs; of other characters, such as "°", terminals may differ. */
static bool has_sure_width(uint32_t cp)
{
    return cp < 0x80 || (cp >= 0x2800 && cp < 0x2900);
}

static bool is_control(uint32_t cp)
{
    return cp < ' ' || (cp >= 0x7f && cp < 0xa0);
}

/* Writes the cell at the cursor. */
static void put(struct brush *brush, const struct gp_cell *cell)
{
    const struct gp_palette *p = brush->palette;
    uint32_t cp = cell->cp || !p->ascii ? cell->cp : ' ';
    if (!cp) {
        brush->x = -1; /* the wide character before it has drawn it */
        return;
    }
    cp = is_control(cp)  ? '?'
         : p->ascii      ? gp_cell_ascii(cp)
         : p->is_console ? gp_cell_console(cp)
                         : cp;
    take(brush, &p->inks[cell->ink]);
    gp_utf8_add(brush->sb, cp);
    brush->x += gp_utf8_columns(cp) < 2 ? 1 : 2;
    /* after the last column, they differ in where the cursor is */
    brush->is_sure = brush->is_sure && has_sure_width(cp) && brush->x < brush->w;
}

static bool same(const struct gp_cell *a, const struct gp_cell *b)
{
    return a->cp == b->cp && a->ink == b->ink;
}

/* Whether the cells between the cursor and x are few and have the same ink: it writes them again.
 */
static bool is_near(const struct brush *brush, const struct gp_cell *row, int x, unsigned ink)
{
    if (brush->x < 0 || brush->x > x || x - brush->x > SMALL_GAP)
        return false;
    for (int i = brush->x; ink != ANY_INK && i < x; i++)
        if (row[i].ink != ink)
            return false;
    return true;
}

static void draw(struct brush *brush, const struct gp_cell *row, int x, int y, unsigned ink)
{
    if (!row[x].cp && !brush->palette->ascii) /* the wide character before it draws it */
        return;
    if (brush->y != y || !is_near(brush, row, x, ink))
        place(brush, x, y);
    while (brush->x >= 0 && brush->x <= x)
        put(brush, &row[brush->x]);
}

static void end(struct brush *brush)
{
    if (brush->look && brush->look->start[0])
        gp_strbuf_adds(brush->sb, brush->palette->reset);
}

/* Draws what changed, row by row. Returns the number of cells. The runs are in `runs`; if there are
 * more than FEW, *ret_count is 0. */
static size_t paint_in_order(struct brush *brush, const struct gp_cells *shown,
                             const struct gp_cells *frame, struct run runs[FEW], size_t *ret_count)
{
    size_t changed = 0, count = 0;
    for (int y = 0; y < frame->h; y++) {
        const size_t at = (size_t)y * (size_t)frame->w;
        const struct gp_cell *old = &shown->cells[at], *row = &frame->cells[at];
        const int w = frame->w - (brush->palette->spares_corner && y == frame->h - 1);
        if (memcmp(old, row, (size_t)frame->w * sizeof(*row)) == 0)
            continue;
        for (int x = 0; x < w; x++) {
            if (same(&old[x], &row[x]))
                continue;
            draw(brush, row, x, y, ANY_INK);
            changed++;
            struct run *last = count > 0 && count <= FEW ? &runs[count - 1] : NULL;
            if (last && last->y == y && last->x + last->n == x && last->ink == row[x].ink)
                last->n++;
            else if (count++ < FEW)
                runs[count - 1] = (struct run){x, y, 1, row[x].ink};
        }
    }
    end(brush);
    *ret_count = count <= FEW ? count : 0;
    return changed;
}

static bool is_before(const struct run *a, const struct run *b)
{
    return a->ink != b->ink ? a->ink < b->ink : a->x != b->x ? a->x < b->x : a->y < b->y;
}

/* They are few; qsort() of the C library may allocate memory. */
static void sort_runs(struct run *runs, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        const struct run run = runs[i];
        size_t k = i;
        for (; k > 0 && is_before(&run, &runs[k - 1]); k--)
            runs[k] = runs[k - 1];
        runs[k] = run;
    }
}

/* One ink after the other, and down the columns: starting a color takes more bytes than moving the
 * cursor, and in a table of GPUs the same columns change. */
static void paint_in_columns(struct brush *brush, const struct gp_cells *frame, struct run *runs,
                             size_t count)
{
    sort_runs(runs, count);
    for (size_t i = 0; i < count; i++) {
        const struct run *run = &runs[i];
        const struct gp_cell *row = &frame->cells[(size_t)run->y * (size_t)frame->w];
        for (int x = run->x; x < run->x + run->n; x++)
            draw(brush, row, x, run->y, run->ink);
    }
    end(brush);
}

size_t gp_paint(struct gp_strbuf *sb, const struct gp_palette *palette, struct gp_cells *shown,
                const struct gp_cells *frame)
{
    struct run runs[FEW];
    struct brush in_order = {sb, palette, NULL, -1, -1, frame->w, false}, in_columns = in_order;
    size_t count;
    const size_t start = sb->len;
    const size_t changed = paint_in_order(&in_order, shown, frame, runs, &count);
    const size_t middle = sb->len;
    if (count > 0) {
        paint_in_columns(&in_columns, frame, runs, count);
        const size_t shorter =
            sb->len - middle < middle - start ? sb->len - middle : middle - start;
        if (shorter < middle - start)
            memmove(sb->buf + start, sb->buf + middle, shorter);
        gp_strbuf_truncate(sb, start + shorter);
    }
    memcpy(shown->cells, frame->cells, (size_t)frame->w * (size_t)frame->h * sizeof(*frame->cells));
    return changed;
}
