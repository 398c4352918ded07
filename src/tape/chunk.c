#include "tape/chunk.h"

#include "base/err.h"
#include "tape/bytes.h"
#include "tape/frame.h"

#include <stdlib.h>
#include <zstd.h>

enum { LEVEL = 3 };
enum { POINTS_MAX = 4096 }; /* in a chunk: more than any program stores */

bool gp_chunk_init(struct gp_chunk *chunk, const struct gp_tape_columns *columns)
{
    *chunk = (struct gp_chunk){.points = GP_STRBUF_INIT(GP_FRAME_MAX)};
    return gp_scene_init(&chunk->scene, columns, false);
}

void gp_chunk_fini(struct gp_chunk *chunk)
{
    gp_scene_fini(&chunk->scene);
    gp_strbuf_fini(&chunk->points);
}

void gp_chunk_reset(struct gp_chunk *chunk)
{
    gp_strbuf_reset(&chunk->points);
    chunk->count = 0;
}

int gp_chunk_add(struct gp_chunk *chunk, int64_t number, const struct gp_scene *from,
                 const struct gp_scene *ranges)
{
    struct gp_strbuf frame = GP_STRBUF_INIT(GP_FRAME_MAX);
    const bool is_first = chunk->count == 0;
    int r = gp_frame_encode_scene(&chunk->scene, from, ranges, is_first, &frame);
    if (r == 0) {
        gp_bytes_add(&chunk->points, is_first ? 0 : (uint64_t)(number - chunk->last));
        gp_bytes_add(&chunk->points, frame.len);
        gp_strbuf_add(&chunk->points, frame.buf, frame.len);
        r = chunk->points.error;
    }
    gp_strbuf_fini(&frame);
    if (r < 0) {
        gp_chunk_reset(chunk);
        return r;
    }
    if (is_first)
        chunk->first = number;
    chunk->last = number;
    chunk->count++;
    return 0;
}

int gp_chunk_store(const struct gp_chunk *chunk, struct gp_strbuf *out)
{
    const size_t room = ZSTD_compressBound(chunk->points.len);
    gp_bytes_add(out, chunk->points.len);
    if (!gp_strbuf_reserve(out, room))
        return out->error;
    size_t size =
        ZSTD_compress(out->buf + out->len, room, chunk->points.buf, chunk->points.len, LEVEL);
    if (ZSTD_isError(size))
        return GP_ENOMEM;
    out->len += size;
    out->buf[out->len] = '\0';
    return 0;
}

static int read_points(struct gp_bytes *in, struct gp_scene *scene,
                       int (*on_point)(void *ctx, int64_t number), void *ctx)
{
    int64_t number = 0;
    unsigned count = 0;
    int r = 0;
    while (r == 0 && in->at < in->end) {
        if (count++ == POINTS_MAX)
            return GP_EFORMAT;
        const char *frame;
        number += (int64_t)gp_bytes_read_upto(in, INT32_MAX);
        size_t size = gp_bytes_read_text(in, &frame);
        r = in->failed ? GP_EFORMAT : scene ? gp_frame_decode(scene, frame, size) : 0;
        if (r == 0)
            r = on_point(ctx, number);
    }
    return r;
}

int gp_chunk_read(const void *data, size_t size, struct gp_scene *scene,
                  int (*on_point)(void *ctx, int64_t number), void *ctx)
{
    struct gp_bytes in = {data, (const uint8_t *)data + size, false};
    uint64_t full = gp_bytes_read_upto(&in, GP_FRAME_MAX);
    uint8_t *points = in.failed ? NULL : malloc(full + 1);
    if (!points)
        return in.failed ? GP_EFORMAT : GP_ENOMEM;
    size_t got = ZSTD_decompress(points, full, in.at, (size_t)(in.end - in.at));
    struct gp_bytes inside = {points, points + full, false};
    int r =
        ZSTD_isError(got) || got != full ? GP_EFORMAT : read_points(&inside, scene, on_point, ctx);
    free(points);
    return r;
}
