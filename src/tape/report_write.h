/* A report in each format. */
#ifndef GP_TAPE_REPORT_WRITE_H
#define GP_TAPE_REPORT_WRITE_H

#include "tape/report_columns.h"

/* For people; at most `width` columns wide if there are commands to cut, 0: no limit. */
void gp_report_add_text(struct gp_strbuf *sb, const struct gp_report_look *look, size_t width);
void gp_report_add_markdown(struct gp_strbuf *sb, const struct gp_report_look *look);

/* All tables below one header, the first column says of which table a row is. */
void gp_report_add_csv(struct gp_strbuf *sb, const struct gp_report_look *look);

/* The document gpulse.report/1. */
void gp_report_add_json(struct gp_strbuf *sb, const struct gp_report_look *look);

/* A page that needs nothing else; the report must have been read with charts. */
void gp_report_add_html(struct gp_strbuf *sb, const struct gp_report_look *look);

#endif
