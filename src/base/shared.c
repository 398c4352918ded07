#include "base/shared.h"

#include <stdlib.h>

void *gp_shared_new(size_t bytes)
{
    struct gp_shared *shared = calloc(1, bytes);
    if (shared)
        atomic_init(&shared->holders, 1);
    return shared;
}

struct gp_shared *gp_shared_hold(struct gp_shared *shared)
{
    if (shared)
        (void)atomic_fetch_add_explicit(&shared->holders, 1, memory_order_relaxed);
    return shared;
}

void gp_shared_drop(struct gp_shared *shared)
{
    if (shared && atomic_fetch_sub_explicit(&shared->holders, 1, memory_order_acq_rel) == 1)
        free(shared);
}
