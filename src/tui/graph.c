#include "tui/graph.h"

enum {
    BLOCK = 0x2581, /* ▁ of eight lower blocks */
    LEFT = 0x258f,  /* ▏ of eight left blocks, counted down */
    FULL = 0x2588,  /* █ */
    DOT = 0x00b7,   /* · */
    DOTS = 0x2800,  /* braille */
    EIGHTHS = 8,
};

enum gp_ink gp_load_ink(enum gp_series series, int permille)
{
    if (permille == GP_TRACK_GAP)
        return GP_INK_STALE;
    if (permille < 100)
        return GP_INK_LOW;
    return permille < (series == GP_SERIES_MEMORY ? 800 : 750) ? GP_INK_MEDIUM : GP_INK_HIGH;
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

/* The sample of this step, counted from the right. */
static int step_value(const struct gp_track *track, enum gp_series series,
                      const struct gp_span *span, int step)
{
    uint64_t back = (uint64_t)step * span->step_ns;
    if (!track || back > span->end_ns)
        return GP_TRACK_GAP;
    return gp_track_value(track, series, span->end_ns - back, span->step_ns);
}

void gp_draw_spark(const struct gp_box *box, int x, int y, int w, const struct gp_track *track,
                   enum gp_series series, const struct gp_span *span)
{
    for (int i = 0; i < w; i++) {
        int value = step_value(track, series, span, i);
        if (value == GP_TRACK_GAP)
            continue;
        uint32_t cp = (uint32_t)(BLOCK + (value * (EIGHTHS - 1) + 500) / 1000);
        gp_draw_fill(box, x + w - 1 - i, y, 1, gp_load_ink(series, value), cp);
    }
}

/* A column of blocks as high as the value. */
static void draw_blocks(const struct gp_box *box, int x, int value, enum gp_ink ink)
{
    int eighths = (value * box->h * EIGHTHS + 500) / 1000;
    eighths = eighths < 1 ? 1 : eighths;
    for (int y = box->h - 1; y >= 0 && eighths > 0; y--, eighths -= EIGHTHS)
        gp_draw_fill(box, x, y, 1, ink,
                     (uint32_t)(eighths >= EIGHTHS ? FULL : BLOCK + eighths - 1));
}

/* Two samples in a column of cells, each 4 × h dots high, filled below. */
static void draw_dots(const struct gp_box *box, int x, const int values[2])
{
    static const uint32_t masks[2][5] = {{0, 0x40, 0x44, 0x46, 0x47}, {0, 0x80, 0xa0, 0xb0, 0xb8}};
    int high = values[0] > values[1] ? values[0] : values[1];
    for (int y = 0; y < box->h; y++) {
        uint32_t cp = DOTS;
        for (int i = 0; i < 2; i++) {
            if (values[i] == GP_TRACK_GAP)
                continue;
            int dots = (values[i] * box->h * 4 + 500) / 1000;
            dots = (dots < 1 ? 1 : dots) - (box->h - 1 - y) * 4;
            cp |= masks[i][dots <= 0 ? 0 : dots >= 4 ? 4 : dots];
        }
        if (cp != DOTS)
            gp_draw_fill(box, x, y, 1, gp_load_ink(GP_SERIES_GPU, high), cp);
    }
}

void gp_draw_graph(const struct gp_box *box, const struct gp_track *track, enum gp_series series,
                   const struct gp_span *span, bool blocks)
{
    for (int x = 0; x < box->w; x++) {
        int column = box->w - 1 - x;
        if (blocks) {
            int value = step_value(track, series, span, column);
            if (value != GP_TRACK_GAP)
                draw_blocks(box, x, value, gp_load_ink(series, value));
            continue;
        }
        const int values[2] = {step_value(track, series, span, 2 * column + 1),
                               step_value(track, series, span, 2 * column)};
        draw_dots(box, x, values);
    }
}
