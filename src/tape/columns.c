#include "tape/columns.h"

#include <string.h>

static const char *const state_names[] = {
#define X(id, name) name,
    GP_TAPE_STATE_COLUMNS(X)
#undef X
};

void gp_tape_columns_init(struct gp_tape_columns *columns)
{
    memset(columns, 0, sizeof(*columns));
    memset(columns->places, -1, sizeof(columns->places));
}

/* Only the owner of a process may see it: it is not among the cells of a recording, but with the
 * process itself. */
static bool is_private(enum gp_metric m)
{
    return m == GP_PROCESS_COMMAND || m == GP_PROCESS_PATH || m == GP_PROCESS_CWD;
}

/* The same, if everybody may read the file: what the environment of a process and the files of its
 * container say. */
static bool is_private_if_shared(int column)
{
    return column == GP_PROCESS_ORIGIN || column == GP_PROCESS_CONTAINER_NAME;
}

/* The time of a sample is that of the recording, and lists are not recorded. */
static bool is_recorded(int column)
{
    return column != GP_TIMESTAMP && !(column < GP_METRIC__COUNT && column >= GP_CLOCK__FIRST) &&
           !(column < GP_METRIC__COUNT && is_private((enum gp_metric)column));
}

const char *gp_tape_column_name(int column)
{
    return column < GP_METRIC__COUNT ? GP_METRIC_NAME(column)
                                     : state_names[column - GP_METRIC__COUNT];
}

enum gp_tape_scope gp_tape_column_scope(int column)
{
    if (column >= GP_METRIC__COUNT)
        return column == GP_TAPE_JOB ? GP_TAPE_PROCESS : GP_TAPE_DEVICE;
    switch (gp_metric_table[column].scope) {
    case GP_SCOPE_HOST:
        return GP_TAPE_HOST;
    case GP_SCOPE_DEVICE:
        return GP_TAPE_DEVICE;
    default:
        return GP_TAPE_PROCESS;
    }
}

double gp_tape_column_scale(int column)
{
    if (column >= GP_METRIC__COUNT || gp_metric_table[column].type != GP_TYPE_REAL ||
        gp_metric_table[column].unit == GP_UNIT_BYTES_PER_S)
        return 1;
    return 1000;
}

bool gp_tape_column_is_text(int column)
{
    return column < GP_METRIC__COUNT ? gp_metric_table[column].type == GP_TYPE_TEXT
                                     : column == GP_TAPE_STATUS_TEXT;
}

/* Most files have the columns in the order of this program: it begins after the last one. */
static int find(enum gp_tape_scope scope, const char *name, int last)
{
    for (int i = 1; i <= GP_TAPE_COLUMN__COUNT; i++) {
        const int column = (last + i) % GP_TAPE_COLUMN__COUNT;
        if (is_recorded(column) && gp_tape_column_scope(column) == scope &&
            strcmp(gp_tape_column_name(column), name) == 0)
            return column;
    }
    return GP_TAPE_COLUMN_UNKNOWN;
}

bool gp_tape_columns_add(struct gp_tape_columns *columns, enum gp_tape_scope scope,
                         const char *name, double scale)
{
    unsigned *count = &columns->counts[scope];
    if (*count == GP_TAPE_COLUMNS_MAX || !(scale > 0) || scale > 1e9)
        return false;
    const enum gp_tape_column last =
        *count ? columns->columns[scope][*count - 1].column : GP_TAPE_COLUMN_UNKNOWN;
    int column = find(scope, name, (int)last);
    if (column != GP_TAPE_COLUMN_UNKNOWN && columns->places[column] >= 0)
        return false; /* twice */
    if (column != GP_TAPE_COLUMN_UNKNOWN)
        columns->places[column] = (int16_t)*count;
    columns->columns[scope][(*count)++] =
        (struct gp_tape_column_info){(enum gp_tape_column)column, scale};
    return true;
}

int gp_tape_columns_missing(const struct gp_tape_columns *columns, int after)
{
    int column = after + 1;
    while (column < GP_TAPE_COLUMN__COUNT &&
           (!is_recorded(column) || columns->places[column] >= 0 ||
            (columns->is_shared && is_private_if_shared(column))))
        column++;
    return column;
}
