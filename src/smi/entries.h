/* The lists of a GPU: its links, its peers, its MIG profiles, … */
#ifndef GP_SMI_ENTRIES_H
#define GP_SMI_ENTRIES_H

#include "model/snapshot.h"

struct gp_want;

/* Requests metrics of a GPU or of its lists, up to the first 0. */
void gp_smi_want_all(struct gp_want *want, const enum gp_metric *metrics);

/* The entry after `last` (NULL: the first) in this device's list; NULL at the end. */
const struct gp_entry *gp_smi_next_entry(const struct gp_snapshot *snapshot,
                                         const struct gp_device *device, enum gp_scope scope,
                                         const struct gp_entry *last);

/* The status of a list: OK, or why it is unknown. */
static inline enum gp_status gp_smi_list_status(const struct gp_device *device, enum gp_scope scope)
{
    return device->list_status[gp_list_index(scope)];
}

static inline const struct gp_value *gp_smi_entry_value(const struct gp_entry *e, enum gp_metric m)
{
    return &e->values[m - gp_scope_table[gp_metric_table[m].scope].first];
}

#endif
