/* Pictures with what each cell means, for golden files: below each line of text that is not plain
 * stands a line with a letter for the ink of each cell. */
#ifndef GP_TEST_TUI_SCENE_H
#define GP_TEST_TUI_SCENE_H

#include "golden.h"
#include "tui_machine.h"

static inline void add_inks(struct gp_strbuf *sb, const struct gp_cells *cells, int y)
{
    static const char letters[GP_INK__COUNT] = {
        [GP_INK_PLAIN] = ' ',    [GP_INK_STRONG] = 's',   [GP_INK_DIM] = 'd',
        [GP_INK_TITLE] = 't',    [GP_INK_LOW] = 'l',      [GP_INK_MEDIUM] = 'm',
        [GP_INK_HIGH] = 'h',     [GP_INK_CRITICAL] = 'c', [GP_INK_STALE] = 'o',
        [GP_INK_SELECTED] = '#', [GP_INK_TAGGED] = '*',   [GP_INK_KEY] = 'k',
        [GP_INK_MEMORY] = 'y',   [GP_INK_PAUSED] = 'p',
    };
    const struct gp_cell *row = &cells->cells[(size_t)y * (size_t)cells->w];
    int end = cells->w;
    while (end > 0 && row[end - 1].ink == GP_INK_PLAIN)
        end--;
    for (int x = 0; x < end; x++)
        if (row[x].cp) /* a wide character has one letter */
            gp_strbuf_addc(sb, letters[row[x].ink]);
    if (end > 0)
        gp_strbuf_addc(sb, '\n');
}

static inline void add_cells(struct gp_strbuf *sb, const struct gp_cells *cells)
{
    for (int y = 0; y < cells->h; y++) {
        struct gp_cells line = {cells->w, 1, &cells->cells[(size_t)y * (size_t)cells->w]};
        cells_text(sb, &line);
        add_inks(sb, cells, y);
    }
}

/* The picture of a monitor, below a heading. */
static inline void add_scene(struct gp_strbuf *sb, struct gp_ui *ui, int w, int h, const char *name)
{
    struct gp_cells cells = {0, 0, NULL};
    assert_int_equal(gp_cells_resize(&cells, w, h), 0);
    gp_ui_draw(ui, &cells, "14:02");
    gp_strbuf_addf(sb, "==== %s\n", name);
    add_cells(sb, &cells);
    gp_cells_fini(&cells);
}

#endif
