#include "model/snapshot.h"

#include "base/shared.h"

#include <stdlib.h>

const char *gp_device_state(enum gp_status status)
{
    static const char *const words[] = {
#define X(id, word) [GP_STATUS_##id] = (word),
        GP_DEVICE_STATES(X)
#undef X
    };
    const char *word = status < GP_ARRAY_LEN(words) ? words[status] : NULL;
    return word ? word : words[GP_STATUS_ERROR];
}

const struct gp_value *gp_snapshot_value(const struct gp_snapshot *snapshot,
                                         const struct gp_device *device,
                                         const struct gp_process *process, enum gp_metric m)
{
    static const struct gp_value none;
    if (m < GP_DEVICE__FIRST)
        return &snapshot->host[m];
    if (m < GP_PROCESS__FIRST)
        return device ? &device->values[m - GP_DEVICE__FIRST] : &none;
    bool has = process && gp_metric_table[m].scope == GP_SCOPE_PROCESS;
    return has ? &process->values[m - GP_PROCESS__FIRST] : &none;
}

void gp_snapshot_free(struct gp_snapshot *snapshot)
{
    if (!snapshot)
        return;
    for (size_t i = 0; i < snapshot->process_count; i++)
        gp_shared_drop(snapshot->processes[i].texts);
    for (size_t i = 0; i < snapshot->ancestor_count; i++)
        gp_shared_drop(snapshot->ancestors[i].texts);
    gp_arena_fini(&snapshot->arena);
    free(snapshot);
}
