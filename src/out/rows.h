/* Iterates over the rows of a view of a snapshot. */
#ifndef GP_OUT_ROWS_H
#define GP_OUT_ROWS_H

#include "model/snapshot.h"
#include "out/writer.h"

struct gp_row {
    const struct gp_device *device;   /* NULL in a host row */
    const struct gp_process *process; /* NULL in host, device and list rows */
    const struct gp_entry *entry;     /* NULL in all but list rows */
};

static inline size_t gp_row_count(const struct gp_view *view, const struct gp_snapshot *snapshot)
{
    return gp_scope_is_list(view->scope)    ? snapshot->lists[gp_list_index(view->scope)].count
           : view->scope == GP_SCOPE_HOST   ? 1
           : view->scope == GP_SCOPE_DEVICE ? snapshot->device_count
                                            : snapshot->process_count;
}

static inline struct gp_row gp_row_at(const struct gp_view *view,
                                      const struct gp_snapshot *snapshot, size_t i)
{
    struct gp_row row = {0};
    if (view->scope == GP_SCOPE_DEVICE)
        row.device = &snapshot->devices[i];
    if (view->scope == GP_SCOPE_PROCESS) {
        row.process = &snapshot->processes[i];
        row.device = &snapshot->devices[row.process->device];
    }
    if (gp_scope_is_list(view->scope)) {
        row.entry = &snapshot->lists[gp_list_index(view->scope)].entries[i];
        row.device = &snapshot->devices[row.entry->device];
    }
    return row;
}

static inline const struct gp_value *gp_row_value(const struct gp_snapshot *snapshot,
                                                  struct gp_row row, const struct gp_field *field)
{
    enum gp_scope scope = gp_metric_table[field->metric].scope;
    if (row.entry && gp_scope_is_list(scope))
        return &row.entry->values[field->metric - gp_scope_table[scope].first];
    return gp_snapshot_value(snapshot, row.device, row.process, field->metric);
}

#endif
