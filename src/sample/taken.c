#include "sample/assemble_internal.h"

#include "model/snapshot.h"

const struct gp_reading *gp_taken_shown(const struct gp_taken *t)
{
    return t->status == GP_STATUS_OK ? t->latest : t->status == GP_STATUS_TIMEOUT ? t->good : NULL;
}

const struct gp_taken *gp_taken_of(const struct gp_assembler *a, const struct gp_device *device)
{
    for (size_t i = 0; i < a->taken_count; i++)
        if (a->taken[i].index == device->index)
            return &a->taken[i];
    return NULL;
}
