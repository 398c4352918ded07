#include "sample/assemble_internal.h"

#include "model/snapshot.h"

const struct gp_reading *gp_taken_shown(const struct gp_taken *t)
{
    const bool had = t->status == GP_STATUS_TIMEOUT || t->status == GP_STATUS_LOST;
    return t->status == GP_STATUS_OK ? t->latest : had ? t->good : NULL;
}

const struct gp_taken *gp_taken_of(const struct gp_assembler *a, const struct gp_device *device)
{
    for (size_t i = 0; i < a->taken_count; i++)
        if (a->taken[i].index == device->index)
            return &a->taken[i];
    return NULL;
}

void gp_assemble_own(struct gp_assembler *a, enum gp_metric m, struct gp_value *v)
{
    if (gp_metric_table[m].type != GP_TYPE_TEXT || !gp_value_is_present(v))
        return;
    v->s = gp_arena_strdup(&a->snapshot->arena, v->s);
    if (!v->s)
        gp_value_set_absent(v, GP_STATUS_ERROR, "out of memory", gp_value_time_ns(v));
}
