/* A chunk: the summaries of some steps of time after each other, compressed together. */
#ifndef GP_TAPE_CHUNK_H
#define GP_TAPE_CHUNK_H

#include "base/strbuf.h"
#include "tape/scene.h"

/* One that is being made. */
struct gp_chunk {
    struct gp_scene scene; /* of the last point */
    struct gp_strbuf points;
    int64_t first, last; /* numbers of the steps */
    unsigned count;
};

bool gp_chunk_init(struct gp_chunk *chunk, const struct gp_tape_columns *columns) GP_MUST_CHECK;
void gp_chunk_fini(struct gp_chunk *chunk);

/* Adds the summary of step `number`, which is greater than the last one: the values of `from` at
 * its end, and the ranges of another scene with the same rows. GP_ENOMEM, GP_ETOOBIG: the chunk is
 * then empty. */
int gp_chunk_add(struct gp_chunk *chunk, int64_t number, const struct gp_scene *from,
                 const struct gp_scene *ranges) GP_MUST_CHECK;

/* Appends the chunk as it is stored. */
int gp_chunk_store(const struct gp_chunk *chunk, struct gp_strbuf *out) GP_MUST_CHECK;

/* Starts the next one. */
void gp_chunk_reset(struct gp_chunk *chunk);

/* Decodes a stored chunk into a scene with ranges, point by point: on_point is called after each,
 * with its number counted from that of the first, and ends the reading with anything but 0. Without
 * a scene (NULL), only the numbers are read. Returns that, 0, GP_EFORMAT or GP_ENOMEM. */
int gp_chunk_read(const void *data, size_t size, struct gp_scene *scene,
                  int (*on_point)(void *ctx, int64_t number), void *ctx) GP_MUST_CHECK;

#endif
