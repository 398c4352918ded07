#include "tui/frame.h"

#include "tui/layout.h"

enum { RULE = 0x2500, WALL = 0x2502 }; /* ─ │ */

void gp_draw_rule(const struct gp_box *box, int y)
{
    gp_draw_fill(box, 0, y, box->w, GP_INK_DIM, RULE);
}

static bool is_rule(const struct gp_box *box, int x, int y)
{
    const struct gp_cells *cells = box->cells;
    return x >= 0 && x < box->w && y >= 0 && y < box->h &&
           cells->cells[(size_t)(box->y + y) * (size_t)cells->w + (size_t)(box->x + x)].cp == RULE;
}

bool gp_rule_is_free(const struct gp_box *box, int y)
{
    int x = 0;
    while (x < box->w && is_rule(box, x, y))
        x++;
    return x > 0 && x == box->w;
}

/* The character that joins what is next to it. */
static uint32_t joint(bool up, bool down, bool left, bool right)
{
    static const uint32_t joints[2][2][2][2] = {
        [false][true] = {{WALL, 0x250c}, {0x2510, 0x252c}}, /* down: ┌ ┐ ┬ */
        [true][false] = {{WALL, 0x2514}, {0x2518, 0x2534}}, /* up: └ ┘ ┴ */
        [true][true] = {{WALL, 0x251c}, {0x2524, 0x253c}},  /* both: ├ ┤ ┼ */
    };
    return joints[up][down][left][right];
}

static void draw_wall(const struct gp_box *box, int x, int from, int to)
{
    for (int y = from; y <= to; y++)
        gp_draw_fill(box, x, y, 1, GP_INK_DIM,
                     joint(y > from, y < to, is_rule(box, x - 1, y), is_rule(box, x + 1, y)));
}

void gp_draw_frame(const struct gp_box *box, const struct gp_layout *layout)
{
    const struct gp_rect *f = &layout->frame;
    const struct gp_rect *gpus = &layout->gpus;
    if (f->h == 0)
        return;
    const struct gp_box bottom = gp_box_part(box, f->x, f->y + f->h - 1, f->w, 1);
    gp_draw_rule(&bottom, 0);
    draw_wall(box, f->x, f->y, f->y + f->h - 1);
    draw_wall(box, f->x + f->w - 1, f->y, f->y + f->h - 1);
    for (int i = 1; gpus->h > 0 && layout->density < GP_DENSITY_LINE && i < layout->columns; i++) {
        const int x = gpus->x + gp_layout_column(layout, i).x - 1;
        const int end = gpus->y + gpus->h; /* in the line below, unless its title is there */
        draw_wall(box, x, gpus->y, is_rule(box, x, end) ? end : end - 1);
    }
}
