#include "tui/paint.h"

#include "base/strbuf.h"
#include "base/utf8.h"

#include <string.h>

/* Moving the cursor takes six bytes or more. */
enum { SMALL_GAP = 4 };

struct brush {
    struct gp_strbuf *sb;
    const struct gp_palette *palette;
    const struct gp_ink_look *look; /* what is on; NULL: that of an erased screen */
    int x, y;                       /* of the cursor; x is −1: unknown */
};

static void place(struct brush *brush, int x, int y)
{
    struct gp_strbuf *sb = brush->sb;
    if (brush->palette->place) {
        brush->palette->place(sb, x, y);
    } else {
        gp_strbuf_adds(sb, "\033[");
        gp_strbuf_add_int(sb, y + 1);
        gp_strbuf_addc(sb, ';');
        gp_strbuf_add_int(sb, x + 1);
        gp_strbuf_addc(sb, 'H');
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
}

static bool same(const struct gp_cell *a, const struct gp_cell *b)
{
    return a->cp == b->cp && a->ink == b->ink;
}

static size_t paint_row(struct brush *brush, const struct gp_cell *old, const struct gp_cell *row,
                        int w, int y)
{
    size_t changed = 0;
    for (int x = 0; x < w; x++) {
        if (same(&old[x], &row[x]))
            continue;
        changed++;
        if (brush->y != y || brush->x < 0 || x - brush->x > SMALL_GAP)
            place(brush, x, y);
        while (brush->x >= 0 && brush->x <= x)
            put(brush, &row[brush->x]);
    }
    return changed;
}

size_t gp_paint(struct gp_strbuf *sb, const struct gp_palette *palette, struct gp_cells *shown,
                const struct gp_cells *frame)
{
    struct brush brush = {sb, palette, NULL, -1, -1};
    size_t changed = 0;
    for (int y = 0; y < frame->h; y++) {
        const size_t at = (size_t)y * (size_t)frame->w;
        const size_t bytes = (size_t)frame->w * sizeof(*frame->cells);
        const int w = frame->w - (palette->spares_corner && y == frame->h - 1);
        if (memcmp(&shown->cells[at], &frame->cells[at], bytes) == 0)
            continue;
        changed += paint_row(&brush, &shown->cells[at], &frame->cells[at], w, y);
        memcpy(&shown->cells[at], &frame->cells[at], bytes);
    }
    if (brush.look && brush.look->start[0])
        gp_strbuf_adds(sb, palette->reset);
    return changed;
}
