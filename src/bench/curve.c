#include "bench/curve.h"

#include "base/strbuf.h"
#include "base/utf8.h"
#include "bench/chart.h"
#include "bench/figure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMN = 18, ROWS = 16, WIDTH = 80, CURVES = GP_CHART_CURVES };

/* A column of the table. */
struct column {
    const char *what, *device;
    char title[48];
};

static size_t columns_of(const struct gp_bench *bench, struct column columns[CURVES])
{
    size_t count = 0;
    columns[count++] = (struct column){"cpu", "cpu", "CPU"};
    for (size_t i = 0; i < bench->count && count + 2 <= CURVES; i++) {
        char title[GP_BENCH_TITLE_SIZE];
        gp_bench_title(bench, i, title);
        columns[count] = (struct column){"gpu", bench->names[i], ""};
        (void)snprintf(columns[count++].title, sizeof(columns[0].title), "%s", title);
        columns[count] = (struct column){"gpu+copies", bench->names[i], ""};
        (void)snprintf(columns[count++].title, sizeof(columns[0].title), "%s, copies", title);
    }
    return count;
}

static const struct gp_bench_result *cell_of(const struct gp_bench *bench,
                                             const struct column *column, uint64_t size)
{
    return gp_bench_results_find(&bench->results, "matmul", column->what, column->device, size);
}

/* The next larger size that was measured; 0: none. */
static uint64_t next_size(const struct gp_bench *bench, uint64_t after)
{
    uint64_t next = 0;
    for (size_t i = 0; i < bench->results.count; i++) {
        const struct gp_bench_result *r = &bench->results.list[i];
        if (strcmp(r->test, "matmul") == 0 && r->size > after && (next == 0 || r->size < next))
            next = r->size;
    }
    return next;
}

static void add_cell(struct gp_strbuf *sb, const struct gp_bench_result *r)
{
    char text[64] = "";
    struct gp_strbuf cell = GP_STRBUF_ON(text, sizeof(text) - 1);
    if (r && r->outcome == GP_BENCH_MEASURED) {
        gp_bench_add_value(&cell, &r->value);
        if (r->conditions.other_pid)
            gp_strbuf_addc(&cell, '!');
        else if (!r->is_steady)
            gp_strbuf_addc(&cell, '*');
    } else
        gp_strbuf_adds(&cell, r ? gp_bench_outcome_word(r->outcome) : "-");
    size_t width = gp_utf8_width(text);
    gp_strbuf_fill(sb, ' ', width < COLUMN ? COLUMN - width : 1);
    gp_strbuf_adds(sb, text);
}

static bool is_measured(const struct gp_bench_result *r)
{
    return r && r->outcome == GP_BENCH_MEASURED;
}

/* From which size on the column is faster than the CPU. */
static void add_crossover(struct gp_strbuf *sb, const struct gp_bench *bench,
                          const struct column *column, const struct column *cpu)
{
    uint64_t from = 0;
    uint64_t last = 0;
    double factor = 0;
    enum gp_bench_change change = GP_BENCH_SAME;
    for (uint64_t size = next_size(bench, 0); size; size = next_size(bench, size)) {
        const struct gp_bench_result *ours = cell_of(bench, column, size);
        const struct gp_bench_result *theirs = cell_of(bench, cpu, size);
        if (!is_measured(ours) || !is_measured(theirs))
            continue;
        change = gp_bench_compare(&theirs->value, &ours->value, 0);
        from = change != GP_BENCH_HIGHER ? 0 : from ? from : size;
        factor = ours->value.median / theirs->value.median;
        last = size;
    }
    if (!last)
        return;
    gp_strbuf_addf(sb, "  %s: ", column->title);
    if (from)
        gp_strbuf_addf(sb, "faster than the CPU from %llu rows on; ", (unsigned long long)from);
    if (change == GP_BENCH_SAME) {
        gp_strbuf_addf(sb, "no difference to the CPU at %llu rows\n", (unsigned long long)last);
        return;
    }
    if (factor < 1)
        gp_strbuf_adds(sb, "the CPU is ");
    gp_bench_add_number(sb, factor < 1 ? 1 / factor : factor);
    gp_strbuf_addf(sb, " times as fast%s at %llu rows\n", factor < 1 ? "" : " as the CPU",
                   (unsigned long long)last);
}

static void add_notes(struct gp_strbuf *sb, const struct gp_bench *bench)
{
    const char *before = "";
    bool is_unsteady = false;
    bool is_shared = false;
    for (size_t i = 0; i < bench->results.count; i++) {
        const struct gp_bench_result *r = &bench->results.list[i];
        is_shared |= strcmp(r->test, "matmul") == 0 && r->conditions.other_pid;
        is_unsteady |= strcmp(r->test, "matmul") == 0 && is_measured(r) && !r->is_steady;
        if (strcmp(r->test, "matmul") != 0 || !r->note[0] || strcmp(r->note, before) == 0)
            continue;
        gp_strbuf_addf(sb, "  %s %s, %llu rows: %s\n", r->device, r->what,
                       (unsigned long long)r->size, r->note);
        before = r->note;
    }
    if (is_unsteady)
        gp_strbuf_adds(sb, "  *  not steady: still changing while it was measured\n");
    if (is_shared)
        gp_strbuf_adds(sb, "  !  another process used the GPU\n");
    if (2 * bench->count + 1 > CURVES)
        gp_strbuf_adds(sb, "  More GPUs are in the output of -f csv and -f json.\n");
}

/* The curves: those with points, which the caller frees. */
static struct gp_chart_point *chart_of(const struct gp_bench *bench, struct column columns[CURVES],
                                       struct gp_chart *ret)
{
    size_t count = columns_of(bench, columns);
    struct gp_chart_point *points = calloc(count * bench->results.count + 1, sizeof(*points));
    size_t used = 0;
    *ret = (struct gp_chart){
        .title = "Product of square matrices, FP32", .x_title = "rows", .y_title = "GFLOP/s"};
    for (size_t c = 0; points && c < count; c++) {
        struct gp_chart_curve *curve = &ret->curves[ret->count];
        *curve = (struct gp_chart_curve){columns[c].title, points + used, 0};
        for (uint64_t size = next_size(bench, 0); size; size = next_size(bench, size)) {
            const struct gp_bench_result *r = cell_of(bench, &columns[c], size);
            if (!is_measured(r) || r->value.median <= 0)
                continue;
            points[used++] =
                (struct gp_chart_point){(double)size, r->value.median, r->value.low, r->value.high};
            curve->count++;
        }
        ret->count += curve->count > 0;
    }
    return points;
}

void gp_bench_add_curve(struct gp_strbuf *sb, const struct gp_bench *bench, size_t columns,
                        bool plain)
{
    struct column table[CURVES];
    struct gp_chart chart;
    size_t count = columns_of(bench, table);
    if (!next_size(bench, 0))
        return;
    gp_strbuf_adds(sb, "\nmatmul  FP32, GFLOP/s\n    rows");
    for (size_t c = 0; c < count; c++)
        gp_strbuf_addf(sb, "%*s", COLUMN, table[c].title);
    gp_strbuf_addc(sb, '\n');
    for (uint64_t size = next_size(bench, 0); size; size = next_size(bench, size)) {
        gp_strbuf_addf(sb, "%8llu", (unsigned long long)size);
        for (size_t c = 0; c < count; c++)
            add_cell(sb, cell_of(bench, &table[c], size));
        gp_strbuf_addc(sb, '\n');
    }
    for (size_t c = 1; c < count; c++)
        add_crossover(sb, bench, &table[c], &table[0]);
    add_notes(sb, bench);
    struct gp_chart_point *points = chart_of(bench, table, &chart);
    if (points && chart.count > 0) {
        gp_strbuf_addc(sb, '\n');
        gp_chart_add_text(sb, &chart, columns > 0 && columns < WIDTH ? columns : WIDTH, ROWS,
                          plain);
    }
    free(points);
}

bool gp_bench_add_curve_svg(struct gp_strbuf *sb, const struct gp_bench *bench)
{
    struct column table[CURVES];
    struct gp_chart chart;
    struct gp_chart_point *points = chart_of(bench, table, &chart);
    bool has_points = points && chart.count > 0;
    if (has_points)
        gp_chart_add_svg(sb, &chart);
    free(points);
    return has_points;
}
