/* What is read from a recording besides the database itself: the first byte of the input selects a
 * frame after a key frame, a chunk, the points of a chunk, or private texts.
 * fuzz-sources: src/tape/bytes.c src/tape/chunk.c src/tape/columns.c src/tape/frame.c
 * fuzz-sources: src/tape/private.c src/tape/scene.c
 * fuzz-sources: src/model/metric.c src/model/snapshot.c src/base/arena.c src/base/clock.c
 * fuzz-sources: src/base/cli.c src/base/err.c src/base/io.c src/base/parse.c src/base/shared.c
 * fuzz-sources: src/base/strbuf.c src/base/utf8.c
 * fuzz-libs: libzstd */
#include "tape/chunk.h"
#include "tape/frame.h"
#include "tape/private.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct gp_tape_columns columns;

static void choose_columns(void)
{
    if (columns.counts[GP_TAPE_HOST])
        return;
    gp_tape_columns_init(&columns);
    for (int c = gp_tape_columns_missing(&columns, -1); c < GP_TAPE_COLUMN__COUNT;
         c = gp_tape_columns_missing(&columns, c))
        if (!gp_tape_columns_add(&columns, gp_tape_column_scope(c), gp_tape_column_name(c),
                                 gp_tape_column_scale(c)))
            abort();
    if (!gp_tape_columns_add(&columns, GP_TAPE_DEVICE, "of a newer program", 1))
        abort();
}

/* All cells are as the columns say, and all processes are on a device. */
static void look(const struct gp_scene *scene)
{
    for (int s = 0; s < GP_TAPE_SCOPE__COUNT; s++) {
        const struct gp_tape_rows *rows = &scene->scopes[s];
        for (size_t i = 0; i < rows->count; i++) {
            if (s == GP_TAPE_PROCESS && rows->rows[i].device >= scene->scopes[GP_TAPE_DEVICE].count)
                abort();
            for (unsigned c = 0; c < rows->width; c++) {
                const struct gp_tape_cell *cell = &rows->rows[i].cells[c];
                if (cell->status < GP_STATUS_NONE || cell->status > GP_STATUS_ERROR)
                    abort();
                if (cell->text && strlen(cell->text) > GP_FRAME_MAX)
                    abort();
            }
        }
    }
}

static int on_point(void *ctx, int64_t number)
{
    if (number < 0)
        abort();
    look(ctx);
    return 0;
}

/* The points of a chunk that the input is; otherwise, hardly any input would be compressed data. */
static void read_points(const uint8_t *data, size_t size, struct gp_scene *scene)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    char room[16] = "";
    size_t len = 0;
    for (size_t n = size; n || len == 0; n >>= 7)
        room[len++] = (char)((n & 0x7f) | (n >= 0x80 ? 0x80 : 0));
    gp_strbuf_add(&sb, room, len);
    if (!gp_strbuf_reserve(&sb, ZSTD_compressBound(size)))
        abort();
    const size_t packed = ZSTD_compress(sb.buf + sb.len, ZSTD_compressBound(size), data, size, 1);
    const int r = gp_chunk_read(sb.buf, sb.len + packed, scene, on_point, scene);
    if (r > 0)
        abort();
    gp_strbuf_fini(&sb);
}

static void find_private(const uint8_t *data, size_t size)
{
    struct gp_private_entry entry;
    uint8_t *copy = malloc(size + 32);
    if (!copy)
        abort();
    memcpy(copy, "gpulse private 1\n", 17);
    memcpy(copy + 17, data, size);
    const struct gp_private_file file = {copy, size + 17};
    if (gp_private_find(&file, 1, 2, 3, &entry)) {
        size_t total = 0;
        for (int i = 0; i < GP_PRIVATE__COUNT; i++)
            total += entry.texts[i] ? strlen(entry.texts[i]) : 0;
        if (total > size || entry.id != 1 || entry.pid != 2 || entry.start_ns != 3)
            abort();
    }
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gp_scene scene;
    choose_columns();
    if (size == 0)
        return 0;
    const uint8_t kind = *data++;
    size--;
    if (!gp_scene_init(&scene, &columns, kind & 4))
        abort();
    if (kind % 4 == 0) {
        const size_t first = size > 0 ? data[0] : 0;
        if (first < size && gp_frame_decode(&scene, data + 1, first) == 0) {
            look(&scene);
            if (gp_frame_decode(&scene, data + 1 + first, size - 1 - first) == 0)
                look(&scene);
        }
    } else if (kind % 4 == 1) {
        if (gp_chunk_read(data, size, &scene, on_point, &scene) > 0)
            abort();
    } else if (kind % 4 == 2) {
        read_points(data, size, &scene);
    } else {
        find_private(data, size);
    }
    gp_scene_fini(&scene);
    return 0;
}
