/* A report as one page: it needs no network and no script, and follows the colors of the reader's
 * system. */
#include "tape/report_charts.h"
#include "tape/report_write.h"

#include "base/strbuf.h"

#include <string.h>

enum { ROWS_MAX = 200 }; /* of a table; a browser gets slow with more */

/* The text colors have a contrast of at least 4.5 to 1 on their backgrounds. */
static const char style[] =
    ":root{color-scheme:light dark;--page:#fff;--text:#1a2028;--soft:#4d5866;--line:#c9d0d9;"
    "--card:#f3f5f8;--used:#1f6fb2;--idle:#c2590a;--free:#d9dfe6;--watts:#6b4fa0;--hatch:#9aa4b1}\n"
    "@media (prefers-color-scheme:dark){:root{--page:#14181d;--text:#e6eaef;--soft:#a9b4c0;"
    "--line:#3a434e;--card:#1d232a;--used:#5aa9e6;--idle:#f0a04b;--free:#3a434e;--watts:#b39ae0;"
    "--hatch:#5d6874}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0;background:var(--page);color:var(--text);font:16px/1.45 system-ui,sans-serif}\n"
    "main{max-width:70rem;margin:0 auto;padding:1rem}\n"
    "h1{font-size:1.6rem;margin:.5rem 0 0}h2{font-size:1.2rem;margin:2rem 0 .5rem}\n"
    "p{margin:.25rem 0}.soft,.axis,.legend,.strip p{color:var(--soft)}\n"
    ".tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(9rem,1fr));gap:.75rem;"
    "margin:1rem 0}\n"
    ".tiles div{background:var(--card);border:1px solid var(--line);border-radius:.5rem;"
    "padding:.6rem .8rem;overflow-wrap:anywhere}\n"
    ".tiles dt{color:var(--soft);font-size:.9rem}.tiles dd{margin:0;font-size:1.35rem;"
    "font-weight:600}.tiles small{display:block;font-size:.85rem;font-weight:400;"
    "color:var(--soft)}\n"
    ".bar{display:grid;grid-template-columns:minmax(6rem,14rem) 1fr 7rem;gap:0 .75rem;"
    "align-items:center;margin:.25rem 0}\n"
    ".name{overflow-wrap:anywhere}.value{text-align:right}\n"
    "svg{display:block;width:100%;shape-rendering:crispEdges}.bar svg{height:1.1rem}"
    ".strip svg{height:2.5rem;border:1px solid var(--line);"
    "background:repeating-linear-gradient(45deg,var(--page) 0 4px,var(--hatch) 4px 5px)}"
    ".power svg{height:6rem}\n"
    ".strip{margin:.6rem 0 0}.strip p{font-size:.9rem;overflow-wrap:anywhere}"
    ".strip b{color:var(--text)}\n"
    ".used{fill:var(--used);background:var(--used)}.idle{fill:var(--idle);background:var(--idle)}"
    ".free{fill:var(--free);background:var(--free)}.watts{fill:var(--watts)}"
    ".none{fill:var(--page)}.unknown{background:repeating-linear-gradient(45deg,var(--page) 0 3px,"
    "var(--hatch) 3px 4px)}\n"
    ".axis{display:flex;justify-content:space-between;font-size:.85rem;gap:1rem}\n"
    ".legend{font-size:.9rem}.key{display:inline-block;width:.9em;height:.9em;margin:0 .35em 0 "
    ".8em;border:1px solid var(--line);vertical-align:-.1em}.key:first-child{margin-left:0}\n"
    "table{border-collapse:collapse;width:100%;font-size:.9rem;font-variant-numeric:tabular-nums}\n"
    ".wide{overflow-x:auto}\n"
    "th,td{padding:.3rem .5rem;border-bottom:1px solid var(--line);text-align:left;"
    "vertical-align:top}\n"
    "td{overflow-wrap:anywhere;min-width:4.5rem}th{color:var(--soft);font-weight:600}"
    ".n{text-align:right;white-space:nowrap;min-width:0}.w{min-width:12rem}\n"
    /* on a phone, a row is a card */
    "@media screen and (max-width:60rem){.bar{grid-template-columns:1fr auto}.bar "
    "svg{grid-column:1/3;"
    "grid-row:2}thead{display:none}table,tbody{display:block}"
    "tr{display:grid;grid-template-columns:1fr 1fr;column-gap:1.5rem;border:1px solid var(--line);"
    "border-radius:.5rem;padding:.4rem .7rem;margin:.6rem 0}"
    "td,.n{display:flex;justify-content:space-between;gap:1rem;border:0;padding:.1rem 0;"
    "min-width:0;white-space:normal;text-align:right}"
    "td::before{content:attr(data-h);color:var(--soft);flex:none}"
    "td:first-child{font-weight:600}td:first-child,.w{grid-column:1/3}"
    "td:has(span:empty){display:none}"
    ".axis span:nth-child(2):nth-last-child(2){display:none}}\n"
    "@media print{:root{--page:#fff;--text:#000;--soft:#333;--line:#999;--card:#fff;--used:#1f6fb2;"
    "--idle:#c2590a;--free:#d9dfe6;--watts:#6b4fa0;--hatch:#9aa4b1}"
    "*{print-color-adjust:exact;-webkit-print-color-adjust:exact}"
    "html{font-size:10px}body{font-size:1rem}.w{min-width:8rem}main{padding:0;max-width:none}tr,."
    "strip,.bar,.tiles div"
    "{break-inside:avoid}h2{break-after:avoid}}\n";

static void add_safe_text(struct gp_strbuf *sb, struct gp_strbuf *text)
{
    gp_report_add_escaped(sb, text->buf);
    if (text->error && !sb->error)
        sb->error = text->error;
    gp_strbuf_fini(text);
}

/* ---- tiles ---- */

static void add_tile(struct gp_strbuf *sb, const struct gp_report_look *look, const char *name,
                     enum gp_report_kind kind, double n, const char *note)
{
    struct gp_strbuf text = GP_STRBUF_INIT(1 << 12);
    gp_strbuf_addf(sb, "<div><dt>%s</dt><dd>", name);
    gp_report_add_number(&text, look, kind, n);
    add_safe_text(sb, &text);
    if (*note)
        gp_strbuf_addf(sb, " <small>%s</small>", note);
    gp_strbuf_adds(sb, "</dd></div>\n");
}

static void add_part_tile(struct gp_strbuf *sb, const struct gp_report_look *look, const char *name,
                          int64_t us, int64_t of_us, const char *of)
{
    struct gp_strbuf note = GP_STRBUF_INIT(256);
    if (of_us > 0)
        gp_strbuf_addf(&note, "%.0f %% of %s", 100 * (double)us / (double)of_us, of);
    add_tile(sb, look, name, GP_REPORT_HOURS, gp_report_hours(us), note.buf);
    gp_strbuf_fini(&note);
}

static void add_tiles(struct gp_strbuf *sb, const struct gp_report_look *look)
{
    const struct gp_report *report = look->report;
    const struct gp_report_sums *total = &report->total;
    const uint64_t incidents = gp_report_count_incidents(report->incidents);
    gp_strbuf_adds(sb, "<dl class=\"tiles\">\n");
    if (gp_report_knows_holders(report))
        add_part_tile(sb, look, "GPUs held", total->held_us, total->known_us - total->unlisted_us,
                      "the time seen");
    else
        gp_strbuf_adds(sb, "<div><dt>GPUs held</dt><dd>N/A <small>no list of processes</small>"
                           "</dd></div>\n");
    if (total->measured_us > 0) {
        add_tile(sb, look, "Utilization while held", GP_REPORT_PERCENT,
                 100 * (double)total->used_us / (double)total->measured_us, "");
        add_part_tile(sb, look, "Held, but idle", total->idle_us, total->held_us, "the time held");
    }
    if (gp_report_has_energy(GP_REPORT_GPU, total))
        add_tile(sb, look, "Energy", GP_REPORT_KWH, (double)total->energy_mj / 3.6e9, "");
    if (look->has_price && gp_report_knows_holders(report))
        add_tile(sb, look, "Cost", GP_REPORT_COST, look->price * gp_report_hours(total->held_us),
                 "of the time held");
    struct gp_strbuf kinds = GP_STRBUF_INIT(1 << 12);
    gp_report_add_incidents(&kinds, report->incidents, ", ");
    add_tile(sb, look, "Incidents", GP_REPORT_COUNT, (double)incidents, kinds.buf);
    gp_strbuf_fini(&kinds);
    gp_strbuf_adds(sb, "</dl>\n");
}

/* ---- tables ---- */

/* Of a cell: a number, or a text that needs room. */
static const char *class_of(const struct gp_report_column *column)
{
    if (column->number)
        return " class=\"n\"";
    return column->is_long ? " class=\"w\"" : "";
}

static void add_row(struct gp_strbuf *sb, const struct gp_report_look *look,
                    const struct gp_report_table *table, const struct gp_report_row *row)
{
    gp_strbuf_adds(sb, "<tr>");
    for (size_t c = 0; c < gp_report_column_count; c++) {
        const struct gp_report_column *column = &gp_report_columns[c];
        struct gp_strbuf cell = GP_STRBUF_INIT(1 << 16);
        if (!gp_report_needs_column(look, table, column))
            continue;
        gp_strbuf_addf(sb, "<td%s data-h=\"%s\">", class_of(column),
                       *column->heading ? column->heading : gp_report_key_heading(table->by));
        gp_report_add_cell(&cell, look, table->by, row, column);
        gp_strbuf_adds(sb, "<span>");
        if (column->kind == GP_REPORT_TEXT && !column->is_long)
            gp_report_add_short(sb, cell.buf);
        else
            gp_report_add_escaped(sb, cell.buf);
        if (cell.error && !sb->error)
            sb->error = cell.error;
        gp_strbuf_fini(&cell);
        gp_strbuf_adds(sb, "</span></td>");
    }
    gp_strbuf_adds(sb, "</tr>\n");
}

static void add_table(struct gp_strbuf *sb, const struct gp_report_look *look,
                      const struct gp_report_table *table)
{
    gp_strbuf_adds(sb, "<div class=\"wide\"><table><thead><tr>");
    for (size_t c = 0; c < gp_report_column_count; c++) {
        const struct gp_report_column *column = &gp_report_columns[c];
        if (gp_report_needs_column(look, table, column))
            gp_strbuf_addf(sb, "<th%s>%s</th>", column->number ? " class=\"n\"" : "",
                           *column->heading ? column->heading : gp_report_key_heading(table->by));
    }
    gp_strbuf_adds(sb, "</tr></thead><tbody>\n");
    for (size_t i = 0; i < table->count && i < ROWS_MAX; i++)
        add_row(sb, look, table, &table->rows[i]);
    gp_strbuf_adds(sb, "</tbody></table></div>\n");
    if (table->count > ROWS_MAX)
        gp_strbuf_addf(sb,
                       "<p class=\"soft\">These are the first %d of %zu; gpulse report -f csv "
                       "lists all.</p>\n",
                       (int)ROWS_MAX, table->count);
}

static void add_section(struct gp_strbuf *sb, const struct gp_report_look *look,
                        const struct gp_report_table *table)
{
    gp_strbuf_addf(sb, "<section><h2>%s</h2>\n", gp_report_title(table->by));
    if (table->count == 0) {
        gp_strbuf_adds(sb, "<p>");
        gp_report_add_empty(sb, look->report, table->by);
        gp_strbuf_adds(sb, "</p>\n");
    }
    if (table->by != GP_REPORT_GPU && table->by != GP_REPORT_IDLE && table->by != GP_REPORT_WAIT)
        gp_report_add_bars(sb, look, table);
    if (table->count > 0)
        add_table(sb, look, table);
    gp_strbuf_adds(sb, "</section>\n");
}

/* ---- the page ---- */

static void add_head(struct gp_strbuf *sb, const struct gp_report_look *look)
{
    const struct gp_report *report = look->report;
    gp_strbuf_adds(sb, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                       "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
                       "<title>GPU report");
    if (report->host[0]) {
        gp_strbuf_adds(sb, ": ");
        gp_report_add_escaped(sb, report->host);
    }
    gp_strbuf_addf(sb, "</title>\n<style>\n%s</style></head>\n<body><main>\n<h1>GPU report</h1>\n",
                   style);
    gp_strbuf_adds(sb, "<p>");
    if (report->host[0]) {
        gp_report_add_escaped(sb, report->host);
        gp_strbuf_adds(sb, " · ");
    }
    gp_report_add_span(sb, look);
    gp_strbuf_adds(sb, "</p>\n");
}

static void add_notes(struct gp_strbuf *sb, const struct gp_report_look *look)
{
    struct gp_strbuf notes = GP_STRBUF_INIT(1 << 12);
    gp_report_add_notes(&notes, look);
    if (look->report->is_of_some)
        gp_strbuf_adds(&notes, "The figures and charts of the GPUs are those of all users.\n");
    gp_strbuf_adds(sb, "<p class=\"soft\">");
    add_safe_text(sb, &notes);
    gp_strbuf_adds(sb, "</p>\n");
}

void gp_report_add_html(struct gp_strbuf *sb, const struct gp_report_look *look)
{
    const struct gp_report *report = look->report;
    add_head(sb, look);
    add_notes(sb, look);
    add_tiles(sb, look);
    gp_report_add_strips(sb, look);
    gp_report_add_power(sb, look);
    for (size_t i = 0; i < report->table_count; i++)
        add_section(sb, look, &report->tables[i]);
    gp_strbuf_addf(sb, "<p class=\"soft\">gpulse %s</p>\n</main></body></html>\n", GPULSE_VERSION);
}
