#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

/* The first block of an arena; each further one is twice as large as the previous one, up to
 * LARGEST. An allocation that needs more gets a block of its own. */
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

static size_t round_up(size_t n, size_t align)
{
    return (n + align - 1) / align * align;
}

/* Adds a block of `size` bytes. With `current`, later allocations come from it. */
static struct gp_arena_block *add_block(struct gp_arena *arena, size_t bytes)
{
    struct gp_arena_block *last = arena->blocks;
    size_t room = last && last->size <= BLOCK_BYTES ? 2 * last->size : FIRST_BYTES;
    room = room > BLOCK_BYTES ? BLOCK_BYTES : room;
    bool own = bytes > room;
    struct gp_arena_block *block = malloc(sizeof(*block) + (own ? bytes : room));
    if (!block)
        return NULL;
    *block = (struct gp_arena_block){.size = own ? bytes : room};
    if (own && last) {
        block->next = last->next;
        last->next = block;
    } else {
        block->next = last;
        arena->blocks = block;
    }
    return block;
}

void gp_arena_reset(struct gp_arena *arena)
{
    struct gp_arena_block *block = arena->blocks;
    size_t bytes = 0;
    if (block && !block->next) {
        block->used = 0;
        return;
    }
    for (; block; block = block->next)
        bytes += block->size;
    gp_arena_fini(arena);
    if (bytes > 0)
        (void)add_block(arena, bytes);
}

static void *take(struct gp_arena *arena, size_t bytes, size_t align)
{
    struct gp_arena_block *block = arena->blocks;
    size_t at = block ? round_up(block->used, align) : 0;
    if (!block || at > block->size || block->size - at < bytes) {
        block = add_block(arena, bytes);
        at = 0;
    }
    if (!block)
        return NULL;
    block->used = at + bytes;
    return block->data + at;
}

void *gp_arena_take(struct gp_arena *arena, size_t count, size_t size)
{
    size_t bytes;
    if (gp_mul_overflows(count, size, &bytes) || bytes > SIZE_MAX / 2)
        return NULL;
    return take(arena, bytes, _Alignof(max_align_t));
}

void *gp_arena_alloc(struct gp_arena *arena, size_t count, size_t size)
{
    void *piece = gp_arena_take(arena, count, size);
    if (piece)
        memset(piece, 0, count * size);
    return piece;
}

char *gp_arena_strdup(struct gp_arena *arena, const char *s)
{
    size_t n = strlen(s) + 1;
    char *copy = take(arena, n, 1);
    if (copy)
        memcpy(copy, s, n);
    return copy;
}
