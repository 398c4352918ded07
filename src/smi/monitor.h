/* The scrolling views: `dmon` (one line per GPU), `pmon` (one line per process), `encodersessions`
 * and `fbcsessions` (one line per session). One table of columns, each for one metric. */
#ifndef GP_SMI_MONITOR_H
#define GP_SMI_MONITOR_H

#include "smi/form.h"

struct gp_snapshot;
struct gp_strbuf;
struct gp_want;

enum gp_smi_monitor_kind {
    GP_SMI_DMON,
    GP_SMI_PMON,
    GP_SMI_ENCODER_SESSIONS,
    GP_SMI_FBC_SESSIONS,
};

enum { GP_SMI_GROUPS = 8, GP_SMI_GPM_COLUMNS = 32, GP_SMI_GPM_HIGHEST = 209 };

struct gp_smi_monitor {
    enum gp_smi_monitor_kind kind;
    char groups[GP_SMI_GROUPS];      /* letters, each once, in the order of the columns */
    uint8_t gpm[GP_SMI_GPM_COLUMNS]; /* numbers of the GPM metrics after them */
    size_t gpm_count;
    bool date, time;
    bool csv, no_header, no_unit;
    unsigned rows; /* number of rows printed so far */
};

/* Sets nvidia-smi's defaults. */
void gp_smi_monitor_init(struct gp_smi_monitor *m, enum gp_smi_monitor_kind kind);

/* Each parses the value of an option; false: it is invalid, and nvidia-smi's words for that were
 * appended. */

/* "pucm": the groups of columns. */
bool gp_smi_monitor_select(struct gp_smi_monitor *m, const char *letters,
                           struct gp_strbuf *words) GP_MUST_CHECK;
/* "DT": date and time in front. */
bool gp_smi_monitor_stamp(struct gp_smi_monitor *m, const char *letters,
                          struct gp_strbuf *words) GP_MUST_CHECK;
/* "csv,nounit,noheader". */
bool gp_smi_monitor_format(struct gp_smi_monitor *m, const char *list,
                           struct gp_strbuf *words) GP_MUST_CHECK;
/* "2,3,60": numbers of GPM metrics. One that has no name gets an empty column. */
bool gp_smi_monitor_gpm(struct gp_smi_monitor *m, const char *list,
                        struct gp_strbuf *words) GP_MUST_CHECK;

/* For the help: the groups that are shown without -s; all groups with their columns; the GPM
 * metrics. */
const char *gp_smi_monitor_default(enum gp_smi_monitor_kind kind);
void gp_smi_monitor_add_groups(struct gp_strbuf *sb, enum gp_smi_monitor_kind kind);
void gp_smi_monitor_add_gpm(struct gp_strbuf *sb);

void gp_smi_monitor_want(const struct gp_smi_monitor *m, struct gp_want *want);

/* Whether no GPU of the snapshot reports what its processes use, so that there is nothing to
 * monitor. */
bool gp_smi_monitor_is_refused(const struct gp_smi_monitor *m, const struct gp_snapshot *snapshot);

/* Appends the lines of a snapshot, with the header when it is due. */
void gp_smi_monitor_print(struct gp_smi_monitor *m, struct gp_strbuf *sb,
                          const struct gp_smi_form *form, const struct gp_snapshot *snapshot);

#endif
