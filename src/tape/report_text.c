/* A report as text, Markdown and CSV. */
#include "tape/report_write.h"

#include "base/strbuf.h"
#include "base/utf8.h"
#include "out/text.h"

#include <string.h>

enum {
    COLUMNS_MAX = 20,
    KEY_WIDTH = 40,
    COMMAND_WIDTH = 80, /* without a terminal */
    COMMAND_LEAST = 20,
};

/* The columns of a table that are shown, and their widths. */
struct grid {
    const struct gp_report_look *look;
    const struct gp_report_table *table;
    const struct gp_report_column *columns[COLUMNS_MAX];
    size_t widths[COLUMNS_MAX];
    size_t count;
};

static bool is_text(const struct gp_report_column *column)
{
    return column->kind == GP_REPORT_TEXT || column->kind == GP_REPORT_INCIDENTS;
}

static const char *heading_of(const struct grid *grid, size_t c)
{
    return *grid->columns[c]->heading ? grid->columns[c]->heading
                                      : gp_report_key_heading(grid->table->by);
}

/* ---- text ---- */

static size_t limit_of(const struct grid *grid, size_t c)
{
    const bool is_last = c + 1 == grid->count;
    return is_last && is_text(grid->columns[c]) ? COMMAND_WIDTH : KEY_WIDTH;
}

static void set_cell(struct gp_strbuf *cell, const struct grid *grid,
                     const struct gp_report_row *row, size_t c, size_t limit)
{
    struct gp_strbuf whole = GP_STRBUF_INIT(1 << 16);
    gp_strbuf_reset(cell);
    gp_report_add_cell(&whole, grid->look, grid->table->by, row, grid->columns[c]);
    gp_utf8_add_safe(cell, whole.buf, whole.len, limit);
    if (whole.error)
        cell->error = whole.error;
    gp_strbuf_fini(&whole);
}

static void choose_columns(struct grid *grid, const struct gp_report_look *look,
                           const struct gp_report_table *table)
{
    *grid = (struct grid){.look = look, .table = table};
    for (size_t i = 0; i < gp_report_column_count; i++)
        if (gp_report_needs_column(look, table, &gp_report_columns[i]))
            grid->columns[grid->count++] = &gp_report_columns[i];
}

static void measure(struct grid *grid, size_t width)
{
    struct gp_strbuf cell = GP_STRBUF_INIT(1 << 16);
    size_t used = 0;
    for (size_t c = 0; c < grid->count; c++) {
        size_t limit = limit_of(grid, c);
        if (c + 1 == grid->count && width > 0 && is_text(grid->columns[c]))
            limit = width > used + COMMAND_LEAST ? width - used : COMMAND_LEAST;
        grid->widths[c] = gp_utf8_width(heading_of(grid, c));
        for (size_t i = 0; i < grid->table->count; i++) {
            set_cell(&cell, grid, &grid->table->rows[i], c, limit);
            const size_t n = gp_utf8_width(cell.buf);
            grid->widths[c] = n > grid->widths[c] ? n : grid->widths[c];
        }
        used += grid->widths[c] + 2;
    }
    gp_strbuf_fini(&cell);
}

static void add_padded(struct gp_strbuf *sb, const struct grid *grid, size_t c, const char *text)
{
    const size_t n = gp_utf8_width(text);
    const size_t gap = grid->widths[c] > n ? grid->widths[c] - n : 0;
    const bool is_last = c + 1 == grid->count;
    if (c > 0)
        gp_strbuf_adds(sb, "  ");
    if (!is_text(grid->columns[c]))
        gp_strbuf_fill(sb, ' ', gap);
    gp_strbuf_adds(sb, text);
    if (is_text(grid->columns[c]) && !is_last)
        gp_strbuf_fill(sb, ' ', gap);
}

/* Without blanks at the end. */
static void end_line(struct gp_strbuf *sb)
{
    size_t len = sb->len;
    while (len > 0 && sb->buf[len - 1] == ' ')
        len--;
    gp_strbuf_truncate(sb, len);
    gp_strbuf_addc(sb, '\n');
}

static void add_table(struct gp_strbuf *sb, const struct gp_report_look *look,
                      const struct gp_report_table *table, size_t width)
{
    struct gp_strbuf cell = GP_STRBUF_INIT(1 << 16);
    struct grid grid;
    choose_columns(&grid, look, table);
    measure(&grid, width);
    for (size_t c = 0; c < grid.count; c++)
        add_padded(sb, &grid, c, heading_of(&grid, c));
    end_line(sb);
    for (size_t i = 0; i < table->count; i++) {
        for (size_t c = 0; c < grid.count; c++) {
            set_cell(&cell, &grid, &table->rows[i], c,
                     grid.widths[c] ? grid.widths[c] : limit_of(&grid, c));
            add_padded(sb, &grid, c, cell.buf);
        }
        end_line(sb);
    }
    if (cell.error && !sb->error)
        sb->error = cell.error;
    gp_strbuf_fini(&cell);
}

static void add_head(struct gp_strbuf *sb, const struct gp_report_look *look)
{
    const struct gp_report *report = look->report;
    gp_report_add_span(sb, look);
    if (report->host[0])
        gp_strbuf_addf(sb, ", %s", report->host);
    gp_strbuf_adds(sb, ", from ");
    gp_utf8_add_safe(sb, report->path, strlen(report->path), 1 << 16);
    gp_strbuf_addc(sb, '\n');
}

void gp_report_add_text(struct gp_strbuf *sb, const struct gp_report_look *look, size_t width)
{
    const struct gp_report *report = look->report;
    add_head(sb, look);
    gp_report_add_notes(sb, look);
    for (size_t i = 0; i < report->table_count; i++) {
        gp_strbuf_addc(sb, '\n');
        if (report->tables[i].count == 0)
            gp_report_add_empty(sb, report, report->tables[i].by);
        else
            add_table(sb, look, &report->tables[i], width);
    }
}

/* ---- Markdown ---- */

/* Whatever Markdown or HTML could mean by it. */
static void add_markdown_text(struct gp_strbuf *sb, const char *text)
{
    for (; *text; text++) {
        if (*text == '<')
            gp_strbuf_adds(sb, "&lt;");
        else if (*text == '&')
            gp_strbuf_adds(sb, "&amp;");
        else if (strchr("\\`*_{}[]()#+-!|>~:@", *text))
            gp_strbuf_addf(sb, "\\%c", *text);
        else
            gp_strbuf_addc(sb, *text);
    }
}

static void add_markdown_table(struct gp_strbuf *sb, const struct gp_report_look *look,
                               const struct gp_report_table *table)
{
    struct gp_strbuf cell = GP_STRBUF_INIT(1 << 16);
    struct grid grid;
    choose_columns(&grid, look, table);
    for (size_t c = 0; c < grid.count; c++)
        gp_strbuf_addf(sb, "| %s ", heading_of(&grid, c));
    gp_strbuf_adds(sb, "|\n");
    for (size_t c = 0; c < grid.count; c++)
        gp_strbuf_adds(sb, is_text(grid.columns[c]) ? "| --- " : "| ---: ");
    gp_strbuf_adds(sb, "|\n");
    for (size_t i = 0; i < table->count; i++) {
        for (size_t c = 0; c < grid.count; c++) {
            gp_strbuf_adds(sb, "| ");
            gp_strbuf_reset(&cell);
            gp_report_add_cell(&cell, look, table->by, &table->rows[i], grid.columns[c]);
            if (grid.columns[c]->kind == GP_REPORT_TEXT)
                add_markdown_text(sb, cell.buf);
            else
                gp_strbuf_adds(sb, cell.buf);
            gp_strbuf_addc(sb, ' ');
        }
        gp_strbuf_adds(sb, "|\n");
    }
    if (cell.error && !sb->error)
        sb->error = cell.error;
    gp_strbuf_fini(&cell);
}

void gp_report_add_markdown(struct gp_strbuf *sb, const struct gp_report_look *look)
{
    const struct gp_report *report = look->report;
    gp_strbuf_adds(sb, "# GPU report\n\n");
    if (report->host[0]) {
        add_markdown_text(sb, report->host);
        gp_strbuf_adds(sb, ", ");
    }
    gp_report_add_span(sb, look);
    gp_strbuf_adds(sb, ".\n");
    gp_report_add_notes(sb, look);
    for (size_t i = 0; i < report->table_count; i++) {
        const struct gp_report_table *table = &report->tables[i];
        gp_strbuf_addf(sb, "\n## %s\n\n", gp_report_title(table->by));
        if (table->count == 0)
            gp_report_add_empty(sb, report, table->by);
        else
            add_markdown_table(sb, look, table);
    }
}

/* ---- CSV ---- */

/* A spreadsheet would compute a text that begins like a formula. */
static void add_csv_text(struct gp_strbuf *sb, const char *text)
{
    struct gp_strbuf quoted = GP_STRBUF_INIT(1 << 16);
    if (*text && strchr("=+-@", *text))
        gp_strbuf_addc(&quoted, '\'');
    gp_strbuf_adds(&quoted, text);
    gp_text_add_cell(sb, quoted.buf, ',');
    if (quoted.error && !sb->error)
        sb->error = quoted.error;
    gp_strbuf_fini(&quoted);
}

static void add_csv_cell(struct gp_strbuf *sb, const struct gp_report_look *look,
                         enum gp_report_by by, const struct gp_report_row *row,
                         const struct gp_report_column *column)
{
    double n;
    if (!gp_report_has_column(look, by, column))
        return;
    if (column->kind == GP_REPORT_INCIDENTS)
        gp_report_add_incidents(sb, row->incidents, "; ");
    else if (column->text)
        add_csv_text(sb, column->text(row));
    else if (column->number(look, by, row, &n))
        gp_strbuf_addf(sb, "%.15g", n);
}

void gp_report_add_csv(struct gp_strbuf *sb, const struct gp_report_look *look)
{
    const struct gp_report *report = look->report;
    gp_strbuf_adds(sb, "by");
    for (size_t c = 0; c < gp_report_column_count; c++)
        gp_strbuf_addf(sb, ",%s", gp_report_columns[c].name);
    gp_strbuf_addc(sb, '\n');
    for (size_t i = 0; i < report->table_count; i++) {
        const struct gp_report_table *table = &report->tables[i];
        for (size_t k = 0; k < table->count; k++) {
            gp_strbuf_adds(sb, gp_report_by_word(table->by));
            for (size_t c = 0; c < gp_report_column_count; c++) {
                gp_strbuf_addc(sb, ',');
                add_csv_cell(sb, look, table->by, &table->rows[k], &gp_report_columns[c]);
            }
            gp_strbuf_addc(sb, '\n');
        }
    }
}
