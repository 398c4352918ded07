#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

/* The first block of an arena, and the largest one that is not made for a single large piece. */
enum { FIRST_BYTES = 1024, BLOCK_BYTES = 16 * 1024 };

struct gp_arena_block {
    struct gp_arena_block *next;
    size_t used;
    size_t size;
    _Alignas(max_align_t) char data[];
};

void gp_arena_fini(struct gp_arena *arena)
{
    struct gp_arena_block *block = arena->blocks;
    while (block) {
        struct gp_arena_block *next = block->next;
        free(block);
        block = next;
    }
    arena->blocks = NULL;
}

void *gp_arena_alloc(struct gp_arena *arena, size_t count, size_t size)
{
    size_t bytes;
    const size_t align = _Alignof(max_align_t);
    if (gp_mul_overflows(count, size, &bytes) || bytes > SIZE_MAX / 2)
        return NULL;
    bytes = (bytes + align - 1) / align * align;
    struct gp_arena_block *block = arena->blocks;
    if (!block || block->size - block->used < bytes) {
        size_t room = block ? BLOCK_BYTES : FIRST_BYTES;
        room = bytes > room ? bytes : room;
        block = malloc(sizeof(*block) + room);
        if (!block)
            return NULL;
        *block = (struct gp_arena_block){.next = arena->blocks, .size = room};
        arena->blocks = block;
    }
    void *result = block->data + block->used;
    block->used += bytes;
    memset(result, 0, bytes);
    return result;
}

char *gp_arena_strdup(struct gp_arena *arena, const char *s)
{
    size_t n = strlen(s) + 1;
    char *copy = gp_arena_alloc(arena, n, 1);
    if (copy)
        memcpy(copy, s, n);
    return copy;
}
