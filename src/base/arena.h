/* Memory of one tick: many small allocations, freed together. */
#ifndef GP_BASE_ARENA_H
#define GP_BASE_ARENA_H

#include "base/util.h"

struct gp_arena_block;

struct gp_arena {
    struct gp_arena_block *blocks;
};

void gp_arena_fini(struct gp_arena *arena);

/* Frees what was allocated, and keeps memory for as much: a tick that needs no more than the
 * previous one then allocates nothing. */
void gp_arena_reset(struct gp_arena *arena);

/* Zeroed memory for count × size bytes, aligned for any type; NULL if out of memory. */
void *gp_arena_alloc(struct gp_arena *arena, size_t count, size_t size) GP_MUST_CHECK;

/* The same, not zeroed. */
void *gp_arena_take(struct gp_arena *arena, size_t count, size_t size) GP_MUST_CHECK;

/* Copies of a string; NULL if out of memory. */
char *gp_arena_strdup(struct gp_arena *arena, const char *s) GP_MUST_CHECK;

#endif
