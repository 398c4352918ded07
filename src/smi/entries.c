#include "smi/entries.h"

#include "source/source.h"

void gp_smi_want_all(struct gp_want *want, const enum gp_metric *metrics)
{
    for (; *metrics; metrics++) {
        enum gp_scope scope = gp_metric_table[*metrics].scope;
        gp_metric_set_add(&want->metrics, *metrics);
        if (gp_scope_is_list(scope))
            want->lists |= UINT32_C(1) << gp_list_index(scope);
    }
}

const struct gp_entry *gp_smi_next_entry(const struct gp_snapshot *snapshot,
                                         const struct gp_device *device, enum gp_scope scope,
                                         const struct gp_entry *last)
{
    const struct gp_entries *list = &snapshot->lists[gp_list_index(scope)];
    size_t index = (size_t)(device - snapshot->devices);
    const struct gp_entry *e = last ? last + 1 : list->entries;
    while (e && e < list->entries + list->count && e->device != index)
        e++;
    return e && e < list->entries + list->count ? e : NULL;
}
