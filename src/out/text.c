/* The table for people; csv and tsv for spreadsheets and scripts. */
#include "out/text.h"

#include "base/strbuf.h"
#include "base/utf8.h"
#include "out/rows.h"

#include <string.h>

static bool is_number(const struct gp_field *field)
{
    return gp_metric_table[field->metric].type != GP_TYPE_TEXT;
}

/* ---- table ---- */

static void add_cell(struct gp_strbuf *sb, const char *text, size_t width, bool right, bool last)
{
    size_t used = gp_utf8_width(text);
    if (right && used < width)
        gp_strbuf_fill(sb, ' ', width - used);
    gp_strbuf_adds(sb, text);
    if (!right && !last && used < width)
        gp_strbuf_fill(sb, ' ', width - used);
    if (!last)
        gp_strbuf_adds(sb, "  ");
}

static void format_cell(struct gp_strbuf *cell, const struct gp_view *view,
                        const struct gp_snapshot *snapshot, size_t row, size_t column)
{
    const struct gp_field *field = &view->fields.fields[column];
    gp_strbuf_reset(cell);
    gp_field_format(cell, field, gp_row_value(snapshot, gp_row_at(view, snapshot, row), field),
                    GP_STYLE_HUMAN);
}

/* Returns true if a column is wider than in the previous sample. */
static bool measure_columns(const struct gp_view *view, struct gp_writer_state *state,
                            const struct gp_snapshot *snapshot, struct gp_strbuf *cell)
{
    size_t rows = gp_row_count(view, snapshot);
    bool first = state->widths[0] == 0;
    bool wider = false;
    for (size_t c = 0; c < view->fields.count; c++) {
        size_t width = strlen(GP_METRIC_NAME(view->fields.fields[c].metric));
        if (!view->header)
            width = 0;
        for (size_t r = 0; r < rows; r++) {
            format_cell(cell, view, snapshot, r, c);
            size_t used = gp_utf8_width(cell->buf);
            width = used > width ? used : width;
        }
        wider = wider || width > state->widths[c];
        state->widths[c] = width > state->widths[c] ? width : state->widths[c];
    }
    return wider && !first;
}

static bool is_too_wide(const struct gp_view *view, const struct gp_writer_state *state)
{
    size_t width = 0;
    for (size_t c = 0; c < view->fields.count; c++)
        width += state->widths[c] + (c > 0 ? 2 : 0);
    return view->room > 0 && width > view->room;
}

/* Writes the only row of a table vertically, if it has too many fields for one line. */
static void write_upright(const struct gp_view *view, const struct gp_snapshot *snapshot,
                          struct gp_strbuf *sb, struct gp_strbuf *cell)
{
    size_t width = 0;
    for (size_t c = 0; c < view->fields.count; c++) {
        size_t used = strlen(GP_METRIC_NAME(view->fields.fields[c].metric));
        width = used > width ? used : width;
    }
    for (size_t c = 0; c < view->fields.count; c++) {
        add_cell(sb, GP_METRIC_NAME(view->fields.fields[c].metric), width, false, false);
        format_cell(cell, view, snapshot, 0, c);
        gp_strbuf_addf(sb, "%s\n", cell->buf);
    }
}

static void write_rows(const struct gp_view *view, const struct gp_writer_state *state,
                       const struct gp_snapshot *snapshot, struct gp_strbuf *sb,
                       struct gp_strbuf *cell)
{
    size_t columns = view->fields.count;
    for (size_t r = 0; r < gp_row_count(view, snapshot); r++) {
        for (size_t c = 0; c < columns; c++) {
            format_cell(cell, view, snapshot, r, c);
            add_cell(sb, cell->buf, state->widths[c], is_number(&view->fields.fields[c]),
                     c + 1 == columns);
        }
        gp_strbuf_addc(sb, '\n');
    }
}

static void write_header(const struct gp_view *view, const struct gp_writer_state *state,
                         struct gp_strbuf *sb)
{
    size_t columns = view->fields.count;
    for (size_t c = 0; c < columns; c++) {
        const struct gp_field *field = &view->fields.fields[c];
        add_cell(sb, GP_METRIC_NAME(field->metric), state->widths[c], is_number(field),
                 c + 1 == columns);
    }
    gp_strbuf_addc(sb, '\n');
}

static void write_table(const struct gp_view *view, struct gp_writer_state *state,
                        const struct gp_snapshot *snapshot, struct gp_strbuf *sb)
{
    struct gp_strbuf cell = GP_STRBUF_INIT(64 * 1024);
    /* In a loop the header is repeated when column widths change. */
    bool wider = measure_columns(view, state, snapshot, &cell);
    bool one = view->header && !view->looped && gp_row_count(view, snapshot) == 1;
    if (one && is_too_wide(view, state)) {
        write_upright(view, snapshot, sb, &cell);
    } else {
        if (view->header && (state->samples == 0 || wider))
            write_header(view, state, sb);
        write_rows(view, state, snapshot, sb, &cell);
    }
    if (cell.error && !sb->error)
        sb->error = cell.error;
    gp_strbuf_fini(&cell);
    state->samples++;
}

/* ---- csv, tsv ---- */

/* RFC 4180: quotes a cell that contains a separator, a quote or a newline. Texts contain neither
 * tabs nor newlines; they are sanitized when read. */
void gp_text_add_cell(struct gp_strbuf *sb, const char *text, char separator)
{
    if (separator != ',' || !strpbrk(text, ",\"\r\n")) {
        gp_strbuf_adds(sb, text);
        return;
    }
    gp_strbuf_addc(sb, '"');
    for (; *text; text++) {
        if (*text == '"')
            gp_strbuf_addc(sb, '"');
        gp_strbuf_addc(sb, *text);
    }
    gp_strbuf_addc(sb, '"');
}

static void add_header(const struct gp_view *view, struct gp_strbuf *sb, char separator)
{
    size_t columns = view->fields.count;
    for (size_t c = 0; view->header && c < columns; c++) {
        const struct gp_field *field = &view->fields.fields[c];
        const char *unit = gp_field_unit(field);
        gp_strbuf_adds(sb, GP_METRIC_NAME(field->metric));
        if (*unit && (view->units || field->unit))
            gp_strbuf_addf(sb, " [%s]", unit);
        gp_strbuf_addc(sb, c + 1 == columns ? '\n' : separator);
    }
}

static void write_separated(const struct gp_view *view, struct gp_writer_state *state,
                            const struct gp_snapshot *snapshot, struct gp_strbuf *sb,
                            char separator)
{
    struct gp_strbuf cell = GP_STRBUF_INIT(64 * 1024);
    size_t columns = view->fields.count;
    if (state->samples == 0)
        add_header(view, sb, separator);
    for (size_t r = 0; r < gp_row_count(view, snapshot); r++)
        for (size_t c = 0; c < columns; c++) {
            const struct gp_field *field = &view->fields.fields[c];
            gp_strbuf_reset(&cell);
            gp_field_format(&cell, field,
                            gp_row_value(snapshot, gp_row_at(view, snapshot, r), field),
                            GP_STYLE_CSV);
            gp_text_add_cell(sb, cell.buf, separator);
            gp_strbuf_addc(sb, c + 1 == columns ? '\n' : separator);
        }
    if (cell.error && !sb->error)
        sb->error = cell.error;
    gp_strbuf_fini(&cell);
    state->samples++;
}

static void write_csv(const struct gp_view *view, struct gp_writer_state *state,
                      const struct gp_snapshot *snapshot, struct gp_strbuf *sb)
{
    write_separated(view, state, snapshot, sb, ',');
}

static void write_tsv(const struct gp_view *view, struct gp_writer_state *state,
                      const struct gp_snapshot *snapshot, struct gp_strbuf *sb)
{
    write_separated(view, state, snapshot, sb, '\t');
}

static void csv_header(const struct gp_view *view, struct gp_strbuf *sb)
{
    add_header(view, sb, ',');
}

static void tsv_header(const struct gp_view *view, struct gp_strbuf *sb)
{
    add_header(view, sb, '\t');
}

const struct gp_writer gp_writer_table = {.name = "table", .sample = write_table};
const struct gp_writer gp_writer_csv = {.name = "csv", .sample = write_csv, .header = csv_header};
const struct gp_writer gp_writer_tsv = {.name = "tsv", .sample = write_tsv, .header = tsv_header};
