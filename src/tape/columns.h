/* What a recording can contain of a row: its columns.
 *
 * They are the metrics of metric.def, and for a GPU also its state. A file has a table of its own
 * of them, with numbers of its own: metrics are added to metric.def in the middle, and a file is
 * read by newer programs. Within a scope, a column's number is its place in a row's cells. */
#ifndef GP_TAPE_COLUMNS_H
#define GP_TAPE_COLUMNS_H

#include "model/metric.h"

/* The scopes that are recorded. */
enum gp_tape_scope {
    GP_TAPE_HOST,
    GP_TAPE_DEVICE,
    GP_TAPE_PROCESS,
    GP_TAPE_SCOPE__COUNT,
};

/* The columns of a GPU that are no metrics; the last one is of a process. X(id, name) */
#define GP_TAPE_STATE_COLUMNS(X)                                                                   \
    X(INDEX, "@index")                                                                             \
    X(MIG_INDEX, "@mig_index")                                                                     \
    X(STATUS, "@status")                                                                           \
    X(STATUS_TEXT, "@status_text")                                                                 \
    X(DRIVER_CODE, "@driver_code")                                                                 \
    X(REFUSED, "@refused")                                                                         \
    X(RESERVED_BY, "@reserved_by")                                                                 \
    X(SILENT, "@silent_ms")                                                                        \
    X(PROCESSES_STATUS, "@processes_status")                                                       \
    X(JOB, "@job")

/* A column, for this program: a metric, or one of these. */
enum gp_tape_column {
    GP_TAPE_COLUMN__FIRST = GP_METRIC__COUNT - 1,
#define X(id, name) GP_TAPE_##id,
    GP_TAPE_STATE_COLUMNS(X)
#undef X
        GP_TAPE_COLUMN__COUNT,
    GP_TAPE_COLUMN_UNKNOWN = GP_TAPE_COLUMN__COUNT, /* written by a newer program */
};

/* More than this program knows, for the columns of newer ones. */
enum { GP_TAPE_COLUMNS_MAX = 1024 };

struct gp_tape_column_info {
    enum gp_tape_column column;
    double scale; /* the number in the file is the value times this */
};

/* The columns of a file. */
struct gp_tape_columns {
    struct gp_tape_column_info columns[GP_TAPE_SCOPE__COUNT][GP_TAPE_COLUMNS_MAX];
    unsigned counts[GP_TAPE_SCOPE__COUNT];
    int16_t places[GP_TAPE_COLUMN__COUNT]; /* −1: the file does not have it */
    bool is_shared;                        /* everybody may read the file */
};

/* None. */
void gp_tape_columns_init(struct gp_tape_columns *columns);

/* Adds a column of a file: the next of its scope. A name that this program does not know is kept as
 * unknown. False: there are too many, or the scale is no positive number. */
bool gp_tape_columns_add(struct gp_tape_columns *columns, enum gp_tape_scope scope,
                         const char *name, double scale) GP_MUST_CHECK;

/* The next column that this program records and the file lacks, after `after` (−1: the first);
 * GP_TAPE_COLUMN__COUNT: none. */
int gp_tape_columns_missing(const struct gp_tape_columns *columns, int after);

/* Its name in files, its scope, and the scale for new files: numbers are recorded in thousandths
 * of their unit, bytes per second as integers. */
const char *gp_tape_column_name(int column);
enum gp_tape_scope gp_tape_column_scope(int column);
double gp_tape_column_scale(int column);
bool gp_tape_column_is_text(int column);

#endif
