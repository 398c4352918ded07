#include "tui/paint.h"

#include "base/strbuf.h"
#include "base/utf8.h"

#include <string.h>

enum {
    SMALL_GAP = 3, /* moving the cursor takes four bytes or more */
    FEW = 128,     /* changed cells, which are ordered by their ink if that is shorter */
    ANY_INK = GP_INK__COUNT,
};

struct spot {
    int x, y;
};

struct brush {
    struct gp_strbuf *sb;
    const struct gp_palette *palette;
    const struct gp_ink_look *look; /* what is on; NULL: that of an erased screen */
    int x, y;                       /* of the cursor; x is −1: unknown */
    bool is_sure; /* every terminal agrees on x: since it was placed, nothing of doubtful width */
};

static void place(struct brush *brush, int x, int y)
{
    struct gp_strbuf *sb = brush->sb;
    if (brush->palette->place) {
        brush->palette->place(sb, x, y);
    } else if (y == brush->y && brush->is_sure && brush->x >= 0 && brush->x < x) {
        gp_strbuf_adds(sb, "\033[");
        gp_strbuf_add_int(sb, x - brush->x);
        gp_strbuf_addc(sb, 'C');
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
    brush->is_sure = brush->is_sure && has_sure_width(cp);
    brush->x += gp_utf8_columns(cp) < 2 ? 1 : 2;
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

/* Draws what changed, row by row. Returns the number of cells; the first FEW are in `spots`. */
static size_t paint_in_order(struct brush *brush, const struct gp_cells *shown,
                             const struct gp_cells *frame, struct spot spots[FEW])
{
    size_t changed = 0;
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
            if (changed < FEW)
                spots[changed] = (struct spot){x, y};
            changed++;
        }
    }
    end(brush);
    return changed;
}

/* One ink after the other: where graphs of two colors stand side by side, starting a color takes
 * more bytes than moving the cursor. */
static void paint_by_ink(struct brush *brush, const struct gp_cells *frame,
                         const struct spot *spots, size_t count)
{
    for (unsigned ink = 0; ink < GP_INK__COUNT; ink++)
        for (size_t i = 0; i < count; i++) {
            const struct gp_cell *row = &frame->cells[(size_t)spots[i].y * (size_t)frame->w];
            if (row[spots[i].x].ink == ink)
                draw(brush, row, spots[i].x, spots[i].y, ink);
        }
    end(brush);
}

size_t gp_paint(struct gp_strbuf *sb, const struct gp_palette *palette, struct gp_cells *shown,
                const struct gp_cells *frame)
{
    struct spot spots[FEW];
    struct brush in_order = {sb, palette, NULL, -1, -1, false}, by_ink = in_order;
    const size_t start = sb->len;
    const size_t changed = paint_in_order(&in_order, shown, frame, spots);
    const size_t middle = sb->len;
    if (changed > 0 && changed <= FEW) {
        paint_by_ink(&by_ink, frame, spots, changed);
        const size_t shorter =
            sb->len - middle < middle - start ? sb->len - middle : middle - start;
        if (shorter < middle - start)
            memmove(sb->buf + start, sb->buf + middle, shorter);
        gp_strbuf_truncate(sb, start + shorter);
    }
    memcpy(shown->cells, frame->cells, (size_t)frame->w * (size_t)frame->h * sizeof(*frame->cells));
    return changed;
}
