/* The charts of a report's page, as HTML with inline SVG.
 *
 * Texts are HTML and only areas are SVG, which is stretched to the width of the page: so a phone
 * shows the same charts with letters of a readable size. */
#ifndef GP_TAPE_REPORT_CHARTS_H
#define GP_TAPE_REPORT_CHARTS_H

#include "tape/report_columns.h"

/* Appends a text with HTML's characters escaped. */
void gp_report_add_escaped(struct gp_strbuf *sb, const char *text);

/* The same with a long text cut, as for a name. */
void gp_report_add_short(struct gp_strbuf *sb, const char *text);

/* A bar for each row of a table, of the time that it held GPUs. */
void gp_report_add_bars(struct gp_strbuf *sb, const struct gp_report_look *look,
                        const struct gp_report_table *table);
/* A strip for each GPU: in use, held but idle, free and unknown over time. */
void gp_report_add_strips(struct gp_strbuf *sb, const struct gp_report_look *look);
/* The mean power of all GPUs over time; nothing if it is unknown. */
void gp_report_add_power(struct gp_strbuf *sb, const struct gp_report_look *look);

#endif
