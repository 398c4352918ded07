/* Bars, sparklines and graphs. */
#ifndef GP_TUI_GRAPH_H
#define GP_TUI_GRAPH_H

#include "tui/cells.h"
#include "tui/history.h"

struct gp_strbuf;

/* From this share on, in thousandths, memory is full. */
enum { GP_FULL_PERMILLE = 950 };

/* The ink for a load in thousandths, or −1. Only memory that is full is trouble. */
enum gp_ink gp_load_ink(enum gp_series series, int permille);

/* Draws a bar of w columns; the empty rest is dotted. */
void gp_draw_bar(const struct gp_box *box, int x, int y, int w, enum gp_ink ink, int permille);

/* The same, not as high, so that it does not touch a bar above it: to a whole column, and at least
 * one from a percent on. */
void gp_draw_low_bar(const struct gp_box *box, int x, int y, int w, enum gp_ink ink, int permille);

/* The time range of a graph: its right edge and the length of one step. */
struct gp_span {
    uint64_t end_ns, step_ns;
    bool half; /* the last step alone fills the last column of dots. Columns then move only every
                  second step, which saves output on a slow line. */
};

/* What to draw of a track. */
struct gp_plot {
    const struct gp_track *track; /* NULL: nothing was seen */
    int channel;
    double max;          /* top of the axis; 0: a round number above the highest value shown */
    enum gp_series like; /* series whose inks to use */
};

/* One line with a block per two steps, the newest at the right; what was not seen is dotted. It
 * does not touch what is above it. */
void gp_draw_spark(const struct gp_box *box, int x, int y, int w, const struct gp_plot *plot,
                   const struct gp_span *span);

/* Appends a number of seconds as "45s", "1m30s", "2h": the two largest units. */
void gp_add_back(struct gp_strbuf *sb, uint64_t s);

/* The time axis of a graph or a sparkline, "────1m────30s────now": round times before now. */
void gp_draw_times(const struct gp_box *box, const struct gp_span *span, uint64_t now_ns,
                   uint64_t column_ns);

/* A graph with axes and, if there is room, the current, mean and highest value of the visible
 * range. A column shows two samples as dots, or one as a block. What was not seen is dotted. It has
 * one curve: two in one graph would share cells, and a cell has one color. */
struct gp_panel {
    struct gp_plot plot;
    const char *title, *unit;
    const char *label; /* the title in at most five columns, where there is no room for it */
    double least;      /* what an axis without a fixed top reaches at least */
    uint64_t now_ns;   /* for the time axis; the span may end earlier */
    bool blocks;
    bool is_absent; /* the driver does not report it: that is said instead */
};

void gp_draw_panel(const struct gp_box *box, const struct gp_panel *panel,
                   const struct gp_span *span);

#endif
