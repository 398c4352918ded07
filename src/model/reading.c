#include "model/reading.h"

#include <stdlib.h>
#include <string.h>

struct gp_reading *gp_reading_new(void)
{
    struct gp_reading *r = calloc(1, sizeof(*r));
    if (r)
        atomic_init(&r->refs, 1);
    return r;
}

struct gp_reading *gp_reading_ref(struct gp_reading *r)
{
    atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
    return r;
}

struct gp_reading *gp_reading_unref(struct gp_reading *r)
{
    if (r && atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) == 1) {
        gp_arena_fini(&r->arena);
        free(r);
    }
    return NULL;
}

struct gp_reading *gp_reading_recycle(struct gp_reading *r)
{
    if (!r || atomic_load_explicit(&r->refs, memory_order_acquire) > 1)
        return gp_reading_unref(r);
    struct gp_arena arena = r->arena;
    gp_arena_reset(&arena);
    memset(r, 0, sizeof(*r));
    r->arena = arena;
    atomic_init(&r->refs, 1);
    return r;
}
