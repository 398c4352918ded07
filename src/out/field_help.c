#include "out/field_help.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "out/json.h"
#include "out/text.h"

#include <string.h>

static const char *const types[] = {"whole number", "number", "text"};

/* ---- --list ---- */

enum { COLUMNS = 6 };

static const struct {
    const char *title; /* the same as the JSON key */
    bool in_table;
} columns[COLUMNS] = {{"name", true},  {"rows", true},     {"unit", true},
                      {"type", false}, {"aliases", false}, {"help", true}};

/* In the order of `columns`. */
static void set_cells(const struct gp_metric_info *info, const char *cells[COLUMNS])
{
    cells[0] = gp_metric_name(info);
    cells[1] = gp_scope_table[info->scope].plural;
    cells[2] = gp_unit_name(info->unit);
    cells[3] = types[info->type];
    cells[4] = gp_metric_aliases(info);
    cells[5] = gp_metric_help(info);
}

/* The cells of line i; line 0 is the header. False for a field that was not selected. */
static bool line_at(const struct gp_field_list *fields, size_t i, const char *cells[COLUMNS])
{
    for (size_t c = 0; i == 0 && c < COLUMNS; c++)
        cells[c] = columns[c].title;
    if (i > 0)
        set_cells(&gp_metric_table[fields->fields[i - 1].metric], cells);
    return i == 0 || !fields->fields[i - 1].identity;
}

static void add_table(struct gp_strbuf *sb, const struct gp_field_list *fields, bool header)
{
    const char *cells[COLUMNS];
    size_t widths[COLUMNS] = {0};
    for (size_t i = !header; i <= fields->count; i++) {
        (void)line_at(fields, i, cells);
        for (size_t c = 0; c < COLUMNS; c++) {
            size_t width = gp_utf8_width(cells[c]);
            widths[c] = width > widths[c] ? width : widths[c];
        }
    }
    for (size_t i = !header; i <= fields->count; i++) {
        if (!line_at(fields, i, cells))
            continue;
        for (size_t c = 0; c + 1 < COLUMNS; c++)
            if (columns[c].in_table) {
                gp_utf8_add_padded(sb, cells[c], widths[c], false);
                gp_strbuf_adds(sb, "  ");
            }
        gp_strbuf_addf(sb, "%s\n", cells[COLUMNS - 1]);
    }
}

static void add_separated(struct gp_strbuf *sb, const struct gp_field_list *fields, bool header,
                          char separator)
{
    const char *cells[COLUMNS];
    for (size_t i = !header; i <= fields->count; i++) {
        if (!line_at(fields, i, cells))
            continue;
        for (size_t c = 0; c < COLUMNS; c++) {
            gp_text_add_cell(sb, cells[c], separator);
            gp_strbuf_addc(sb, c + 1 == COLUMNS ? '\n' : separator);
        }
    }
}

json_t *gp_field_help_document(const struct gp_field_list *fields)
{
    const char *cells[COLUMNS];
    json_t *list = json_array();
    for (size_t i = 1; i <= fields->count; i++) {
        if (!line_at(fields, i, cells))
            continue;
        json_t *object = json_object();
        for (size_t c = 0; c < COLUMNS; c++)
            (void)json_object_set_new(object, columns[c].title, json_string(cells[c]));
        (void)json_array_append_new(list, object);
    }
    return json_pack("{s:s, s:o}", "schema", "gpulse.field-list/1", "fields", list);
}

static void add_json(struct gp_strbuf *sb, const struct gp_field_list *fields)
{
    gp_json_add(sb, gp_field_help_document(fields), 2);
    gp_strbuf_addc(sb, '\n');
}

int gp_field_help_list(struct gp_strbuf *sb, const struct gp_field_list *fields, const char *format,
                       bool header, struct gp_err *err)
{
    if (strcmp(format, "table") == 0)
        add_table(sb, fields, header);
    else if (strcmp(format, "csv") == 0)
        add_separated(sb, fields, header, ',');
    else if (strcmp(format, "tsv") == 0)
        add_separated(sb, fields, header, '\t');
    else if (strcmp(format, "json") == 0)
        add_json(sb, fields);
    else
        return gp_err_set(err, GP_EUSAGE, "--list goes with --format table, csv, tsv or json");
    return 0;
}

/* ---- --describe ---- */

static void describe(struct gp_strbuf *sb, const struct gp_metric_info *info)
{
    static const char *const tiers[] = {
        [GP_TIER_STATIC] = "once per driver session",
        [GP_TIER_FAST] = "every sample",
        [GP_TIER_SLOW] = "at most every 5 seconds",
        [GP_TIER_RATE] = "every sample, over the time since the one before",
    };
    const char *unit = gp_unit_name(info->unit);
    const char *aliases = gp_metric_aliases(info);
    gp_strbuf_addf(sb, "%s\n  %s\n\n  %-10s%s\n  %-10s%s%s%s\n  %-10s%s\n", gp_metric_name(info),
                   gp_metric_help(info), "rows", gp_scope_table[info->scope].plural, "type",
                   types[info->type], *unit ? ", in " : "", unit, "read", tiers[info->tier]);
    if (*aliases)
        gp_strbuf_addf(sb, "  %-10s%s\n", "also", aliases);
    gp_strbuf_addf(sb, "  %-10s%s\n", "origin",
                   info->origin == GP_ORIGIN_SMI ? "nvidia-smi has a field of this name"
                                                 : "gpulse's own name");
}

void gp_field_help_describe(struct gp_strbuf *sb, const struct gp_field_list *fields)
{
    for (size_t i = 0; i < fields->count; i++) {
        if (fields->fields[i].identity)
            continue;
        gp_strbuf_adds(sb, sb->len > 0 ? "\n" : "");
        describe(sb, &gp_metric_table[fields->fields[i].metric]);
    }
}

/* ---- the manual page ---- */

void gp_field_help_man(struct gp_strbuf *sb)
{
    static const char *const titles[] = {"OF THE HOST", "OF A GPU OR MIG INSTANCE", "OF A PROCESS"};
    static const char lists[] =
        "\n# FIELDS OF THE LISTS OF A GPU\n\nSelect these with *gpulse query --rows* and the first "
        "word of their names, which may then be omitted.\n";
    gp_strbuf_adds(
        sb, "gpulse-metrics(7)\n\n# NAME\n\ngpulse-metrics - the fields of gpulse query\n\n# "
            "DESCRIPTION\n\nUsed by *gpulse query* and by *gpulse status --line*. A field may be "
            "followed by a colon and another unit: memory.used:GiB.\n");
    for (int m = 0; m < GP_METRIC__COUNT; m++) {
        const struct gp_metric_info *info = &gp_metric_table[m];
        const char *unit = gp_unit_name(info->unit);
        const char *aliases = gp_metric_aliases(info);
        if (m == GP_HOST__FIRST || m == GP_DEVICE__FIRST || m == GP_PROCESS__FIRST)
            gp_strbuf_addf(sb, "\n# FIELDS %s\n", titles[info->scope]);
        if (m == (int)gp_scope_table[GP_SCOPE_LIST__FIRST].first)
            gp_strbuf_adds(sb, lists);
        gp_strbuf_adds(sb, "\n*");
        for (const char *p = gp_metric_name(info); *p; p++)
            gp_strbuf_addf(sb, *p == '_' ? "\\_" : "%c", *p);
        gp_strbuf_addf(sb, "*%s%s%s\n\t%s", *unit ? " (" : "", unit, *unit ? ")" : "",
                       gp_metric_help(info));
        for (const char *p = aliases; *p; p++)
            gp_strbuf_addf(sb, p == aliases ? "; also %c" : *p == '_' ? "\\_" : "%c", *p);
        gp_strbuf_addc(sb, '\n');
    }
}
