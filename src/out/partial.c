#include "out/partial.h"

#include "base/err.h"
#include "model/snapshot.h"

#include <stdio.h>
#include <string.h>

/* Fills err if a requested list of this device could not be read. */
static bool explain_list(const struct gp_device *device, enum gp_status status, enum gp_scope scope,
                         struct gp_err *err)
{
    const char *plural = gp_scope_table[scope].plural;
    if (status == GP_STATUS_NO_PERMISSION)
        (void)gp_err_set(err, GP_EPARTIAL, "GPU %u: no permission to list its %s", device->index,
                         plural);
    else if (status == GP_STATUS_ERROR)
        (void)gp_err_set(err, GP_EPARTIAL, "GPU %u: the driver cannot list its %s", device->index,
                         plural);
    else
        return false;
    return true;
}

static bool explain_device(const struct gp_device *device, struct gp_err *err)
{
    if (device->status == GP_STATUS_ASLEEP || device->status == GP_STATUS_RELEASED)
        return false;
    if (device->status != GP_STATUS_OK) {
        (void)gp_err_set(err, GP_EPARTIAL, "GPU %u: %s", device->index, device->status_text);
        return true;
    }
    bool told = explain_list(device, device->processes_status, GP_SCOPE_PROCESS, err);
    for (int scope = GP_SCOPE_LIST__FIRST; !told && scope < GP_SCOPE__COUNT; scope++)
        told = explain_list(device, device->list_status[gp_list_index((enum gp_scope)scope)],
                            (enum gp_scope)scope, err);
    return told;
}

void gp_partial_explain(const struct gp_snapshot *snapshot, struct gp_err *err)
{
    struct gp_err other;
    unsigned more = 0;
    size_t first = 0;
    size_t count = snapshot->partial ? snapshot->device_count : 0;
    while (first < count && !explain_device(&snapshot->devices[first], err))
        first++;
    for (size_t i = first + 1; i < count; i++)
        more += snapshot->devices[i].index != snapshot->devices[i - 1].index &&
                explain_device(&snapshot->devices[i], &other);
    size_t len = strlen(err->text);
    if (more > 0)
        (void)snprintf(err->text + len, sizeof(err->text) - len, "; %u more GPU%s cannot be read",
                       more, more == 1 ? "" : "s");
}
