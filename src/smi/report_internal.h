/* What the files of the report share. */
#ifndef GP_SMI_REPORT_INTERNAL_H
#define GP_SMI_REPORT_INTERNAL_H

#include "smi/report.h"

struct gp_device;
struct gp_value;

/* The column of the colon in the log, before and since driver 545. */
enum { GP_SMI_OLD_COLUMN = 42, GP_SMI_NEW_COLUMN = 55, GP_SMI_DEPTH_MAX = 8 };

struct gp_smi_printer;

/* A row of the tree; see report.def. */
struct gp_smi_row {
    struct gp_smi_range drivers;
    const char *tag;
    const char *label;
    bool (*when)(const struct gp_smi_printer *p);
    union {
        const char *word;                                                      /* WORD */
        void (*print)(struct gp_smi_printer *p, const struct gp_smi_row *row); /* PART */
    };
    uint32_t section; /* its bit in the sections; 0: none */
    uint16_t metric;  /* VALUE */
    uint8_t level;
    uint8_t kind;  /* enum kind */
    uint8_t scope; /* PART: the subject */
    bool extra;    /* in the log only if -d selects it */
};

/* One document being written. */
struct gp_smi_printer {
    struct gp_strbuf *sb;
    const struct gp_smi_report *report;
    const struct gp_smi_form *form;
    const struct gp_snapshot *snapshot;
    const struct gp_device *device;
    size_t column; /* column of the colon in the log */
    unsigned depth;
    struct {
        unsigned level;
        const char *tag;
    } open[GP_SMI_DEPTH_MAX]; /* the open groups, outermost first */
};

/* ---- report_writer.c ---- */

void gp_smi_indent(struct gp_smi_printer *p);

void gp_smi_begin_group(struct gp_smi_printer *p, unsigned level, const char *tag,
                        const char *label);
/* Closes the groups that a row of this level does not belong to. */
void gp_smi_end_groups(struct gp_smi_printer *p, unsigned level);

/* The value is appended between these two. False: the row is not in this document. */
bool gp_smi_begin_value(struct gp_smi_printer *p, const char *tag, const char *label);
void gp_smi_end_value(struct gp_smi_printer *p, const char *tag);

void gp_smi_print_word(struct gp_smi_printer *p, const char *tag, const char *label,
                       const char *word);
void gp_smi_print_metric(struct gp_smi_printer *p, const char *tag, const char *label,
                         enum gp_metric m, const struct gp_value *v);

/* The value of the GPU. */
const struct gp_value *gp_smi_report_value(const struct gp_smi_printer *p, enum gp_metric m);

/* ---- report_parts.c ---- */

bool gp_smi_is_not_windows(const struct gp_smi_printer *p);
bool gp_smi_has_platform(const struct gp_smi_printer *p);
bool gp_smi_has_no_platform(const struct gp_smi_printer *p);
bool gp_smi_names_no_chassis(const struct gp_smi_printer *p);
bool gp_smi_names_chassis(const struct gp_smi_printer *p);
bool gp_smi_has_tlimits(const struct gp_smi_printer *p);
bool gp_smi_has_thresholds(const struct gp_smi_printer *p);
bool gp_smi_has_remapper(const struct gp_smi_printer *p);
bool gp_smi_has_no_remapper(const struct gp_smi_printer *p);
bool gp_smi_counts_bits(const struct gp_smi_printer *p);
bool gp_smi_counts_places(const struct gp_smi_printer *p);
bool gp_smi_counts_sram(const struct gp_smi_printer *p);
bool gp_smi_counts_parity(const struct gp_smi_printer *p);

void gp_smi_print_single_bit_pages(struct gp_smi_printer *p, const struct gp_smi_row *row);
void gp_smi_print_double_bit_pages(struct gp_smi_printer *p, const struct gp_smi_row *row);
void gp_smi_print_supported_clocks(struct gp_smi_printer *p, const struct gp_smi_row *row);
void gp_smi_print_samples(struct gp_smi_printer *p, const struct gp_smi_row *row);
void gp_smi_print_accounted(struct gp_smi_printer *p, const struct gp_smi_row *row);
void gp_smi_print_processes(struct gp_smi_printer *p, const struct gp_smi_row *row);

/* Adds the metrics of the list of processes. */
void gp_smi_want_processes(struct gp_want *want);

#endif
