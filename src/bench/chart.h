/* Curves over two logarithmic axes, as dots in a terminal (braille) and as SVG. Pure functions. */
#ifndef GP_BENCH_CHART_H
#define GP_BENCH_CHART_H

#include "base/util.h"

struct gp_strbuf;

struct gp_chart_point {
    double x, y;      /* above 0 */
    double low, high; /* its error bar; 0: none */
};

struct gp_chart_curve {
    const char *name;
    const struct gp_chart_point *points; /* by x */
    size_t count;
};

enum { GP_CHART_CURVES = 8 };

struct gp_chart {
    const char *title, *x_title, *y_title;
    struct gp_chart_curve curves[GP_CHART_CURVES];
    size_t count;
};

/* Appends lines of at most `columns` columns (at least 40) with a graph of `rows` rows. The points
 * of each curve have a letter, which the legend explains. With `plain`, all is ASCII. Appends
 * nothing if there are no points. */
void gp_chart_add_text(struct gp_strbuf *sb, const struct gp_chart *chart, size_t columns,
                       size_t rows, bool plain);

/* Appends an SVG document. Texts are escaped. */
void gp_chart_add_svg(struct gp_strbuf *sb, const struct gp_chart *chart);

#endif
