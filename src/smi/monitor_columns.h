/* The columns of the scrolling views, and how their lines look with each driver. */
#ifndef GP_SMI_MONITOR_COLUMNS_H
#define GP_SMI_MONITOR_COLUMNS_H

#include "model/metric.h"
#include "smi/form.h"
#include "smi/monitor.h"

struct gp_device;
struct gp_entry;
struct gp_process;
struct gp_snapshot;
struct gp_strbuf;
struct gp_value;
struct gp_want;

/* The subject of a line. */
struct gp_smi_monitor_row {
    const struct gp_smi_form *form;
    const struct gp_snapshot *snapshot;
    const struct gp_device *device;
    const struct gp_process *process; /* NULL: the GPU has none */
    const struct gp_entry *entry;     /* NULL: the GPU has none */
};

enum { GP_SMI_NAME_BYTES = 15 };

/* Position of groups without a letter: before or after the selected ones. */
enum { GP_SMI_FRONT = '<', GP_SMI_BACK = '>' };

/* Columns whose width depends on the driver; the other columns state theirs. */
enum gp_smi_width {
    GP_SMI_WIDTH_PID,
    GP_SMI_WIDTH_TYPE,
    GP_SMI_WIDTH_SM,
    GP_SMI_WIDTH_OTHER,
    GP_SMI_WIDTH_NAME,
    GP_SMI_WIDTH__COUNT
};

struct gp_smi_monitor_column {
    char group;
    uint8_t width; /* enum gp_smi_width, or a number of characters */
    const char *head;
    const char *unit;
    enum gp_metric metric; /* GP_METRIC__COUNT: none, so "-" is printed */
    /* Appends the value; if it appends nothing, "-" is printed. NULL: a whole number, truncated. */
    void (*add)(struct gp_strbuf *sb, const struct gp_smi_monitor_row *row,
                const struct gp_value *v);
    struct gp_smi_range in;
};

struct gp_smi_gpm {
    uint8_t number;
    const char *words;
    struct gp_smi_monitor_column column;
};

/* The layout of a line. In the output of one driver, header and rows may have different layouts,
 * like in nvidia-smi. */
struct gp_smi_monitor_line {
    uint8_t width[GP_SMI_WIDTH__COUNT]; /* of the name: the gap before it */
    bool blank; /* an additional one at the end, or before the GPM columns */
};

/* The widths of date and time at the start, together or alone. */
struct gp_smi_monitor_stamp {
    uint8_t date, time, date_alone, time_alone;
};

struct gp_smi_monitor_era {
    struct gp_smi_range in;
    const struct gp_smi_monitor_line *head, *row;
    const struct gp_smi_monitor_stamp *stamp;
    bool gpm_blank; /* after each GPM column */
};

struct gp_smi_monitor_view {
    enum gp_scope scope; /* of the rows */
    const struct gp_smi_monitor_column *columns;
    size_t column_count;
    const struct gp_smi_monitor_era *eras;
    const char *index[2]; /* of the GPU, in both header lines */
    const char *groups;   /* shown without -s */
    unsigned rows_per_header;
};

extern const struct gp_smi_monitor_view gp_smi_monitor_views[]; /* by enum gp_smi_monitor_kind */

/* By NVML's GPM metric ids. */
enum { GP_SMI_GPM_METRICS = 16 };
extern const struct gp_smi_gpm gp_smi_gpm_table[GP_SMI_GPM_METRICS];

/* Replaces the cell by the value of a column; "-" if it is not known. */
void gp_smi_monitor_add_cell(struct gp_strbuf *cell, const struct gp_smi_monitor_column *c,
                             const struct gp_smi_monitor_row *row);

/* Adds the metrics that the column needs. */
void gp_smi_monitor_want_column(const struct gp_smi_monitor_column *c, struct gp_want *want);

#endif
