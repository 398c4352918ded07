#include "tape/before.h"

#include "base/err.h"
#include "model/event.h"
#include "model/snapshot.h"
#include "tape/chunk.h"
#include "tape/frame.h"
#include "tape/moments.h"
#include "tape/queue.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 10 }; /* frames from one key frame to the next: they are dropped together */
#define HOUR_US INT64_C(3600000000)

struct gp_before_frame {
    struct gp_before_frame *next;
    int64_t t;
    size_t size;
    bool is_key;
    uint8_t data[];
};

/* ---- what is kept, and when it is stored ---- */

static const enum gp_metric metrics[] = {
    GP_STATUS,
    GP_STATUS_TEXT,
    GP_UTILIZATION_GPU,
    GP_UTILIZATION_MEMORY,
    GP_MEMORY_USED,
    GP_MEMORY_FREE,
    GP_PSTATE,
    GP_TEMPERATURE_GPU,
    GP_TEMPERATURE_MEMORY,
    GP_FAN_SPEED,
    GP_POWER_DRAW,
    GP_POWER_DRAW_INSTANT,
    GP_CLOCK_SM,
    GP_CLOCK_MEMORY,
    GP_REASONS_ACTIVE,
    GP_REASON_GPU_IDLE,
    GP_REASON_APPLICATIONS_CLOCKS,
    GP_REASON_SW_POWER_CAP,
    GP_REASON_HW_SLOWDOWN,
    GP_REASON_HW_THERMAL,
    GP_REASON_HW_POWER_BRAKE,
    GP_REASON_SW_THERMAL,
    GP_REASON_SYNC_BOOST,
    GP_REASON_DISPLAY_CLOCKS,
};

static const enum gp_tape_column states[] = {GP_TAPE_INDEX, GP_TAPE_STATUS, GP_TAPE_STATUS_TEXT};

struct gp_metric_set gp_before_metrics(void)
{
    struct gp_metric_set set = {{0}};
    for (size_t i = 0; i < GP_ARRAY_LEN(metrics); i++)
        gp_metric_set_add(&set, metrics[i]);
    return set;
}

bool gp_before_is_incident(const struct gp_event *event)
{
    const struct gp_xid_info *xid;
    switch (event->kind) {
    case GP_EVENT_LOST:
    case GP_EVENT_SILENT:
    case GP_EVENT_UNAVAILABLE:
    case GP_EVENT_POISON:
    case GP_EVENT_ECC_UNCORRECTED:
        return true;
    case GP_EVENT_XID:
        xid = gp_xid_find(event->number);
        return !xid || strcmp(xid->fault, "application") != 0;
    default:
        return false;
    }
}

/* ---- opening and closing ---- */

static bool is_kept(enum gp_tape_column column)
{
    bool is_kept = (int)column == GP_UUID;
    for (size_t i = 0; i < GP_ARRAY_LEN(metrics); i++)
        is_kept = is_kept || (int)column == (int)metrics[i];
    for (size_t i = 0; i < GP_ARRAY_LEN(states); i++)
        is_kept = is_kept || column == states[i];
    return is_kept;
}

bool gp_before_init(struct gp_before *b, const struct gp_tape_columns *columns, int64_t length_us)
{
    *b = (struct gp_before){.columns = *columns, .length_us = length_us};
    for (size_t s = 0; s < GP_TAPE_SCOPE__COUNT; s++)
        for (unsigned i = 0; i < columns->counts[s]; i++)
            if (!is_kept(columns->columns[s][i].column))
                b->columns.columns[s][i].column = GP_TAPE_COLUMN_UNKNOWN;
    return gp_scene_init(&b->scene, &b->columns, false);
}

static void drop_first(struct gp_before *b)
{
    struct gp_before_frame *frame = b->first;
    b->first = frame->next;
    if (!b->first)
        b->last = NULL;
    free(frame);
}

void gp_before_fini(struct gp_before *b)
{
    while (b->first)
        drop_first(b);
    gp_scene_fini(&b->scene);
}

/* ---- samples ---- */

/* Drops what is before t; a frame goes with those that depend on it. */
static void drop_before(struct gp_before *b, int64_t t)
{
    for (;;) {
        const struct gp_before_frame *next = b->first ? b->first->next : NULL;
        while (next && !next->is_key)
            next = next->next;
        if (!next || next->t > t)
            return;
        while (b->first != next)
            drop_first(b);
    }
}

static bool append(struct gp_before *b, int64_t t, bool is_key, const struct gp_strbuf *data)
{
    struct gp_before_frame *frame = malloc(sizeof(*frame) + data->len);
    if (!frame)
        return false;
    *frame = (struct gp_before_frame){.t = t, .size = data->len, .is_key = is_key};
    memcpy(frame->data, data->buf, data->len);
    if (b->last)
        b->last->next = frame;
    else
        b->first = frame;
    b->last = frame;
    return true;
}

int gp_before_add(struct gp_before *b, int64_t t, const struct gp_snapshot *snapshot,
                  const uint64_t *gpus)
{
    struct gp_strbuf data = GP_STRBUF_INIT(GP_FRAME_MAX);
    const struct gp_frame_sample sample = {snapshot, gpus, NULL};
    const bool is_key = b->in_block == 0;
    int r = gp_frame_encode(&b->scene, &sample, is_key, &data);
    if (r == 0 && !append(b, t, is_key, &data))
        r = GP_ENOMEM;
    b->in_block = r < 0 ? 0 : (b->in_block + 1) % BLOCK;
    gp_strbuf_fini(&data);
    drop_before(b, b->until ? b->from : t - b->length_us);
    return r;
}

/* ---- incidents ---- */

void gp_before_note(struct gp_before *b, int64_t t)
{
    b->begun[b->turn] = t;
    b->turn = (b->turn + 1) % GP_BEFORE_PER_HOUR;
}

bool gp_before_begin(struct gp_before *b, int64_t t)
{
    const int64_t oldest = b->begun[b->turn];
    const int64_t from = t - b->length_us;
    if (b->until || (oldest && t - oldest < HOUR_US) || !b->last || b->last->t <= b->stored_to)
        return false;
    b->from = from > b->stored_to ? from : b->stored_to + 1;
    b->until = t + GP_BEFORE_AFTER_US;
    gp_before_note(b, t);
    return true;
}

bool gp_before_is_over(const struct gp_before *b, int64_t t)
{
    return b->until && t >= b->until;
}

void gp_before_end(struct gp_before *b)
{
    b->stored_to = b->last ? b->last->t : b->stored_to;
    b->until = 0;
}

/* Adds the samples of the incident to a chunk. */
static int fill_chunk(const struct gp_before *b, struct gp_scene *scene, struct gp_chunk *chunk,
                      int64_t *ret_first)
{
    int64_t first = 0;
    int r = 0;
    for (const struct gp_before_frame *f = b->first; r == 0 && f; f = f->next) {
        r = gp_frame_decode(scene, f->data, f->size);
        if (r < 0 || f->t < b->from)
            continue;
        first = first ? first : f->t;
        const int64_t number = (f->t - first) / GP_MOMENT_STEP_US;
        if (chunk->count == 0 || number > chunk->last)
            r = gp_chunk_add(chunk, number, scene, scene);
    }
    *ret_first = first;
    return r;
}

struct gp_tape_item *gp_before_item(const struct gp_before *b)
{
    struct gp_tape_item *item = NULL;
    struct gp_strbuf data = GP_STRBUF_INIT(GP_FRAME_MAX);
    struct gp_scene scene;
    struct gp_chunk chunk;
    int64_t first;
    bool ok = gp_scene_init(&scene, &b->columns, true);
    ok = gp_chunk_init(&chunk, &b->columns) && ok;
    if (ok && fill_chunk(b, &scene, &chunk, &first) == 0 && chunk.count > 0 &&
        gp_chunk_store(&chunk, &data) == 0)
        item = gp_tape_item_moments(first, first + (chunk.last + 1) * GP_MOMENT_STEP_US,
                                    chunk.count, data.buf, data.len);
    gp_chunk_fini(&chunk);
    gp_scene_fini(&scene);
    gp_strbuf_fini(&data);
    return item;
}
