/* The columns of a report's tables, in all formats. */
#ifndef GP_TAPE_REPORT_COLUMNS_H
#define GP_TAPE_REPORT_COLUMNS_H

#include "tape/report.h"

struct gp_strbuf;

enum gp_report_kind {
    GP_REPORT_TEXT,
    GP_REPORT_COUNT,
    GP_REPORT_HOURS,
    GP_REPORT_PERCENT,
    GP_REPORT_BYTES,
    GP_REPORT_KWH,
    GP_REPORT_COST,
    GP_REPORT_INCIDENTS,
};

/* What a report is shown with. */
struct gp_report_look {
    const struct gp_report *report;
    bool has_price;
    double price;         /* of an hour in which a GPU is held */
    const char *currency; /* safe; may be "" */
};

struct gp_report_column {
    const char *name; /* in JSON and CSV */
    const char *heading;
    enum gp_report_kind kind;
    unsigned tables; /* bits of gp_report_by */
    const char *(*text)(const struct gp_report_row *row);
    /* Returns false if it is unknown. */
    bool (*number)(const struct gp_report_look *look, enum gp_report_by by,
                   const struct gp_report_row *row, double *ret);
    bool is_long; /* texts of many words */
};

extern const struct gp_report_column gp_report_columns[];
extern const size_t gp_report_column_count;

/* Whether tables of this kind have the column; and whether this table has anything in it. */
bool gp_report_has_column(const struct gp_report_look *look, enum gp_report_by by,
                          const struct gp_report_column *column);
bool gp_report_needs_column(const struct gp_report_look *look, const struct gp_report_table *table,
                            const struct gp_report_column *column);

/* "USER", "GPU", …: the heading of what the rows of a table are of. */
const char *gp_report_key_heading(enum gp_report_by by);
/* "By user": of a table. */
const char *gp_report_title(enum gp_report_by by);
/* What stands for a missing name: "(no job)". */
const char *gp_report_missing(enum gp_report_by by);

/* Appends a cell for people: "12.34 h", "71.2 GiB", "N/A". Texts are safe for a terminal. */
void gp_report_add_cell(struct gp_strbuf *sb, const struct gp_report_look *look,
                        enum gp_report_by by, const struct gp_report_row *row,
                        const struct gp_report_column *column);
/* Appends a number of that kind. */
void gp_report_add_number(struct gp_strbuf *sb, const struct gp_report_look *look,
                          enum gp_report_kind kind, double n);
/* Appends "xid 2, lost 1"; `between` separates them. */
void gp_report_add_incidents(struct gp_strbuf *sb, const uint32_t counts[GP_EVENT__COUNT],
                             const char *between);
uint64_t gp_report_count_incidents(const uint32_t counts[GP_EVENT__COUNT]);

/* The share of the time in which the GPUs whose utilization is ever known were observed, in
 * percent; false: there is none. */
bool gp_report_seen_percent(const struct gp_report *report, double *ret);
/* The share of the time in which the waiting line was recorded; false: never. */
bool gp_report_watched_percent(const struct gp_report *report, double *ret);
/* Appends what stands for a table without rows: a sentence. */
void gp_report_add_empty(struct gp_strbuf *sb, const struct gp_report *report,
                         enum gp_report_by by);
/* Hours. */
double gp_report_hours(int64_t us);
/* Appends "2026-11-27 03:10 to 2026-11-28 00:20 (21.2 h)". */
void gp_report_add_span(struct gp_strbuf *sb, const struct gp_report_look *look);
/* Appends "2026-11-27 03:10". */
void gp_report_add_time(struct gp_strbuf *sb, int64_t wall_us);
/* Appends what a reader must know about the numbers, one sentence a line. */
void gp_report_add_notes(struct gp_strbuf *sb, const struct gp_report_look *look);

#endif
