/* The rows of a view over a snapshot. */
#ifndef GP_OUT_ROWS_H
#define GP_OUT_ROWS_H

#include "model/snapshot.h"
#include "out/writer.h"

struct gp_row {
    const struct gp_device *device;   /* NULL in a host row */
    const struct gp_process *process; /* NULL in host and device rows */
};

static inline size_t gp_row_count(const struct gp_view *view, const struct gp_snapshot *snapshot)
{
    return view->scope == GP_SCOPE_HOST     ? 1
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
    return row;
}

static inline const struct gp_value *gp_row_value(const struct gp_snapshot *snapshot,
                                                  struct gp_row row, const struct gp_field *field)
{
    return gp_snapshot_value(snapshot, row.device, row.process, field->metric);
}

#endif
