/* A frame is a byte of flags and a body, which is compressed if it is large:
 *
 *   cells of the host
 *   0, or 1 + the number of GPUs, and the number of each in the file: a new list of GPUs
 *   cells of each GPU
 *   0, or 1 + the number of processes, and of each its number in the file, as the difference to
 *      the previous one, and the place of its GPU in the list
 *   cells of each process
 *
 * Cells are the number of those that changed, and of each the number of unchanged ones before it
 * and a code. The lowest two bits of a code say what it is. */
#include "tape/frame.h"

#include "base/err.h"
#include "model/snapshot.h"
#include "tape/bytes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum { KEY = 1, COMPRESSED = 2 };
enum { COMPRESSED_FROM = 1024, LEVEL = 1 };
enum { ROWS_MAX = 1 << 17, DEVICES_MAX = 1 << 12 };
enum { CELLS_MAX = 1 << 22 }; /* of all rows of a scope: a few bytes of a file make many */

enum code {
    CODE_NUMBER, /* the difference to the previous number, above the two bits */
    CODE_TEXT,   /* the length, then the text */
    CODE_ABSENT, /* the status, then the reason as a text */
    CODE_OTHER,  /* one of those below */
};
enum {
    OTHER_STALE, /* the code of an old value follows */
    OTHER_LARGE, /* a number that CODE_NUMBER has no room for */
    OTHER_RANGE, /* how far the minimum is below the last number and the maximum above it, the
                    mean's difference to it, and its code */
};
enum { CODE_BITS = 2 };

/* What a cell becomes. */
struct change {
    enum gp_status status;
    int64_t number;
    const char *text; /* NULL: a number, or a missing value without a reason */
    int64_t min, max, mean;
    bool has_range; /* the number was not always the same */
};

/* Where changes come from: a sample or a scene. */
struct origin {
    const struct gp_frame_sample *sample;
    const struct gp_scene *from, *ranges;
};

/* ---- a sample becomes cells ---- */

static struct gp_value whole(int64_t n)
{
    return (struct gp_value){.i = n, .status = GP_STATUS_OK};
}

static struct gp_value state_of(const struct gp_device *device, enum gp_tape_column column)
{
    switch (column) {
    case GP_TAPE_INDEX:
        return whole(device->index);
    case GP_TAPE_MIG_INDEX:
        return device->is_mig ? whole(device->mig_index)
                              : (struct gp_value){.status = GP_STATUS_NONE};
    case GP_TAPE_STATUS:
        return whole(device->status);
    case GP_TAPE_STATUS_TEXT:
        return (struct gp_value){.s = device->status_text, .status = GP_STATUS_OK};
    case GP_TAPE_DRIVER_CODE:
        return whole(device->driver_code);
    case GP_TAPE_REFUSED:
        return whole(device->refused);
    case GP_TAPE_RESERVED_BY:
        return whole(device->reserved_by);
    case GP_TAPE_SILENT:
        return whole((int64_t)(device->silent_s * 1000));
    default:
        return whole(device->processes_status);
    }
}

static struct change change_of_value(const struct gp_value *v,
                                     const struct gp_tape_column_info *info)
{
    struct change to = {.status = v->status};
    if (!gp_value_is_present(v)) {
        to.text = v->s && *v->s ? v->s : NULL;
    } else if (gp_tape_column_is_text((int)info->column)) {
        to.text = v->s;
    } else if ((int)info->column < GP_METRIC__COUNT &&
               gp_metric_table[info->column].type == GP_TYPE_REAL) {
        const double scaled = v->f * info->scale;
        if (scaled > -9e18 && scaled < 9e18)
            to.number = llround(scaled);
        else
            to = (struct change){.status = GP_STATUS_ERROR, .text = "too large for a recording"};
    } else {
        to.number = v->i;
    }
    return to;
}

static struct change change_of_cell(const struct gp_tape_cell *cell, const struct gp_range *range)
{
    struct change to = {.status = cell->status, .number = cell->number, .text = cell->text};
    if (range->count == 0 || cell->status != GP_STATUS_OK || cell->text ||
        (range->min == cell->number && range->max == cell->number))
        return to;
    to.has_range = true;
    to.min = range->min < cell->number ? range->min : cell->number;
    to.max = range->max > cell->number ? range->max : cell->number;
    to.mean = llround(range->sum / (double)range->count);
    return to;
}

/* What the cell in this place of row i becomes. */
static struct change change_of(const struct origin *origin, enum gp_tape_scope scope, size_t i,
                               unsigned place, const struct gp_tape_column_info *info)
{
    if (origin->from)
        return change_of_cell(&origin->from->scopes[scope].rows[i].cells[place],
                              &origin->ranges->scopes[scope].rows[i].ranges[place]);
    const struct gp_snapshot *snapshot = origin->sample->snapshot;
    const struct gp_device *device = scope == GP_TAPE_DEVICE ? &snapshot->devices[i] : NULL;
    const struct gp_process *process = scope == GP_TAPE_PROCESS ? &snapshot->processes[i] : NULL;
    const struct gp_value v =
        info->column == GP_TAPE_JOB
            ? (process->job ? whole(process->job) : (struct gp_value){.status = GP_STATUS_NONE})
        : (int)info->column >= GP_METRIC__COUNT
            ? state_of(device, info->column)
            : *gp_snapshot_value(snapshot, device, process, (enum gp_metric)info->column);
    return change_of_value(&v, info);
}

static bool is_present(enum gp_status status)
{
    return status == GP_STATUS_OK || status == GP_STATUS_STALE;
}

static bool is_same(const struct gp_tape_cell *cell, const struct change *to)
{
    if (to->has_range || cell->status != to->status || !cell->text != !to->text)
        return false;
    if (to->text)
        return strcmp(cell->text, to->text) == 0;
    return !is_present(to->status) || cell->number == to->number;
}

static void add_code(struct gp_strbuf *out, uint64_t n, enum code code)
{
    gp_bytes_add(out, n << CODE_BITS | code);
}

static void add_change(struct gp_strbuf *out, const struct gp_tape_cell *cell,
                       const struct change *to)
{
    if (!is_present(to->status)) {
        add_code(out, to->status, CODE_ABSENT);
        gp_bytes_add_text(out, to->text ? to->text : "");
        return;
    }
    if (to->status == GP_STATUS_STALE)
        add_code(out, OTHER_STALE, CODE_OTHER);
    if (to->has_range) {
        add_code(out, OTHER_RANGE, CODE_OTHER);
        gp_bytes_add(out, (uint64_t)to->number - (uint64_t)to->min);
        gp_bytes_add(out, (uint64_t)to->max - (uint64_t)to->number);
        gp_bytes_add(out, gp_zigzag(gp_minus(to->mean, to->number)));
    }
    if (to->text) {
        size_t len = strlen(to->text);
        add_code(out, len, CODE_TEXT);
        gp_strbuf_add(out, to->text, len);
        return;
    }
    uint64_t difference = gp_zigzag(gp_minus(to->number, cell->number));
    if (difference >> (64 - CODE_BITS) == 0) {
        add_code(out, difference, CODE_NUMBER);
    } else {
        add_code(out, OTHER_LARGE, CODE_OTHER);
        gp_bytes_add(out, gp_zigzag(to->number));
    }
}

/* One encoding: the scene and where it goes. */
struct encoder {
    struct gp_scene *scene;
    const struct origin *origin;
    bool is_key;
    struct gp_strbuf body, scratch;
};

static int encode_cells(struct encoder *e, enum gp_tape_scope scope, size_t row)
{
    const struct gp_tape_column_info *columns = e->scene->columns->columns[scope];
    unsigned changed = 0;
    unsigned same = 0;
    gp_strbuf_reset(&e->scratch);
    for (unsigned i = 0; i < e->scene->scopes[scope].width; i++) {
        struct gp_tape_cell *cell = &e->scene->scopes[scope].rows[row].cells[i];
        struct change to = {.status = GP_STATUS_NONE};
        if (columns[i].column != GP_TAPE_COLUMN_UNKNOWN)
            to = change_of(e->origin, scope, row, i, &columns[i]);
        if (is_same(cell, &to)) {
            same++;
            continue;
        }
        gp_bytes_add(&e->scratch, same);
        add_change(&e->scratch, cell, &to);
        if (!gp_tape_cell_set_text(cell, to.text, to.text ? strlen(to.text) : 0))
            return GP_ENOMEM;
        cell->status = to.status;
        if (is_present(to.status) && !to.text)
            cell->number = to.number;
        changed++;
        same = 0;
    }
    gp_bytes_add(&e->body, changed);
    gp_strbuf_add(&e->body, e->scratch.buf, e->scratch.len);
    return e->scratch.error;
}

/* ---- lists ---- */

static size_t count_rows(const struct origin *origin, enum gp_tape_scope scope)
{
    if (origin->from)
        return origin->from->scopes[scope].count;
    return scope == GP_TAPE_DEVICE ? origin->sample->snapshot->device_count
                                   : origin->sample->snapshot->process_count;
}

static struct gp_tape_key key_of(const struct origin *origin, enum gp_tape_scope scope, size_t i)
{
    if (origin->from) {
        const struct gp_tape_row *row = &origin->from->scopes[scope].rows[i];
        return (struct gp_tape_key){row->id, row->device};
    }
    if (scope == GP_TAPE_DEVICE)
        return (struct gp_tape_key){origin->sample->devices[i], 0};
    return (struct gp_tape_key){origin->sample->processes[i],
                                origin->sample->snapshot->processes[i].device};
}

static int encode_list(struct encoder *e, enum gp_tape_scope scope, const struct gp_tape_key *keys,
                       size_t count)
{
    if (!e->is_key && gp_scene_is_listed(e->scene, scope, keys, count)) {
        gp_bytes_add(&e->body, 0);
        return 0;
    }
    uint64_t before = 0;
    gp_bytes_add(&e->body, count + 1);
    for (size_t i = 0; i < count; i++) {
        gp_bytes_add(&e->body, gp_zigzag(gp_minus((int64_t)keys[i].id, (int64_t)before)));
        if (scope == GP_TAPE_PROCESS)
            gp_bytes_add(&e->body, keys[i].device);
        before = keys[i].id;
    }
    return gp_scene_list(e->scene, scope, keys, count) ? 0 : GP_ENOMEM;
}

static int encode_rows(struct encoder *e, enum gp_tape_scope scope)
{
    const size_t count = count_rows(e->origin, scope);
    struct gp_tape_key *keys = calloc(count + 1, sizeof(*keys));
    if (!keys)
        return GP_ENOMEM;
    for (size_t i = 0; i < count; i++)
        keys[i] = key_of(e->origin, scope, i);
    int r = encode_list(e, scope, keys, count);
    free(keys);
    for (size_t i = 0; r == 0 && i < count; i++)
        r = encode_cells(e, scope, i);
    return r;
}

/* ---- bodies ---- */

static int add_compressed(struct gp_strbuf *out, const struct gp_strbuf *body, unsigned flags)
{
    size_t room = ZSTD_compressBound(body->len);
    gp_strbuf_addc(out, (char)(flags | COMPRESSED));
    gp_bytes_add(out, body->len);
    if (!gp_strbuf_reserve(out, room))
        return out->error;
    size_t size = ZSTD_compress(out->buf + out->len, room, body->buf, body->len, LEVEL);
    if (ZSTD_isError(size))
        return GP_ENOMEM;
    out->len += size;
    out->buf[out->len] = '\0';
    return 0;
}

static int encode(struct gp_scene *scene, const struct origin *origin, bool is_key,
                  struct gp_strbuf *out)
{
    struct encoder e = {.scene = scene, .origin = origin, .is_key = is_key};
    gp_strbuf_init(&e.body, GP_FRAME_MAX);
    gp_strbuf_init(&e.scratch, GP_FRAME_MAX);
    if (is_key)
        gp_scene_forget(scene);
    int r = encode_cells(&e, GP_TAPE_HOST, 0);
    if (r == 0)
        r = encode_rows(&e, GP_TAPE_DEVICE);
    if (r == 0)
        r = encode_rows(&e, GP_TAPE_PROCESS);
    if (r == 0)
        r = e.body.error;
    if (r == 0 && origin->sample && e.body.len >= COMPRESSED_FROM) {
        r = add_compressed(out, &e.body, is_key ? KEY : 0);
    } else if (r == 0) {
        gp_strbuf_addc(out, is_key ? KEY : 0);
        gp_strbuf_add(out, e.body.buf, e.body.len);
        r = out->error;
    }
    gp_strbuf_fini(&e.scratch);
    gp_strbuf_fini(&e.body);
    return r;
}

int gp_frame_encode(struct gp_scene *scene, const struct gp_frame_sample *sample, bool is_key,
                    struct gp_strbuf *out)
{
    return encode(scene, &(struct origin){.sample = sample}, is_key, out);
}

int gp_frame_encode_scene(struct gp_scene *scene, const struct gp_scene *from,
                          const struct gp_scene *ranges, bool is_key, struct gp_strbuf *out)
{
    return encode(scene, &(struct origin){.from = from, .ranges = ranges}, is_key, out);
}

/* ---- reading ---- */

static int set_text(struct gp_bytes *in, size_t len, struct gp_tape_cell *cell)
{
    const char *text = (const char *)in->at;
    if (len > (size_t)(in->end - in->at) || memchr(text, '\0', len))
        return GP_EFORMAT;
    in->at += len;
    return gp_tape_cell_set_text(cell, text, len) ? 0 : GP_ENOMEM;
}

/* Whether the column takes texts; an unknown one takes anything. */
static bool takes(const struct gp_tape_column_info *info, bool text)
{
    return info->column == GP_TAPE_COLUMN_UNKNOWN ||
           gp_tape_column_is_text((int)info->column) == text;
}

/* How far a range goes below and above the last number, and the mean's difference to it. */
struct spread {
    uint64_t below, above;
    int64_t mean;
};

static void set_range(struct gp_range *range, int64_t last, const struct spread *spread)
{
    range->min = gp_minus(last, (int64_t)spread->below);
    range->max = gp_plus(last, (int64_t)spread->above);
    const int64_t mean = gp_plus(last, spread->mean);
    range->sum = (double)mean;
    range->count = 1;
}

/* range: NULL: not wanted. */
static int decode_cell(struct gp_bytes *in, const struct gp_tape_column_info *info,
                       struct gp_tape_cell *cell, struct gp_range *range)
{
    uint64_t n = gp_bytes_read(in);
    enum gp_status status = GP_STATUS_OK;
    struct spread spread = {0};
    if (n == (OTHER_STALE << CODE_BITS | CODE_OTHER)) {
        status = GP_STATUS_STALE;
        n = gp_bytes_read(in);
    } else if (n == (OTHER_RANGE << CODE_BITS | CODE_OTHER)) {
        spread.below = gp_bytes_read(in);
        spread.above = gp_bytes_read(in);
        spread.mean = gp_unzigzag(gp_bytes_read(in));
        n = gp_bytes_read(in);
    }
    const enum code code = (enum code)(n & ((1U << CODE_BITS) - 1));
    n >>= CODE_BITS;
    if (code == CODE_TEXT) {
        cell->status = status;
        return takes(info, true) ? set_text(in, n, cell) : GP_EFORMAT;
    }
    if (code == CODE_ABSENT) {
        if (n > GP_STATUS_ERROR || n == GP_STATUS_OK || n == GP_STATUS_STALE)
            return GP_EFORMAT;
        cell->status = (enum gp_status)n;
        const char *reason;
        size_t len = gp_bytes_read_text(in, &reason);
        if (len && memchr(reason, '\0', len))
            return GP_EFORMAT;
        return gp_tape_cell_set_text(cell, len ? reason : NULL, len) ? 0 : GP_ENOMEM;
    }
    if ((code == CODE_OTHER && n != OTHER_LARGE) || !takes(info, false))
        return GP_EFORMAT;
    cell->number =
        code == CODE_OTHER ? gp_unzigzag(gp_bytes_read(in)) : gp_plus(cell->number, gp_unzigzag(n));
    cell->status = status;
    if (range)
        set_range(range, cell->number, &spread);
    return gp_tape_cell_set_text(cell, NULL, 0) ? 0 : GP_ENOMEM;
}

/* A cell that is not in the frame stayed as it was, during all of the time. */
static void keep_ranges(const struct gp_tape_row *row, unsigned width)
{
    for (unsigned i = 0; row->ranges && i < width; i++) {
        row->ranges[i] = (struct gp_range){0};
        if (is_present(row->cells[i].status) && !row->cells[i].text)
            set_range(&row->ranges[i], row->cells[i].number, &(struct spread){0});
    }
}

static int decode_cells(const struct gp_scene *scene, enum gp_tape_scope scope,
                        struct gp_tape_row *row, struct gp_bytes *in)
{
    const unsigned width = scene->scopes[scope].width;
    uint64_t changed = gp_bytes_read_upto(in, width);
    int r = 0;
    keep_ranges(row, width);
    for (uint64_t place = 0; r == 0 && changed > 0; changed--, place++) {
        place += gp_bytes_read_upto(in, width);
        if (place >= width)
            return GP_EFORMAT;
        if (row->ranges)
            row->ranges[place] = (struct gp_range){0};
        r = decode_cell(in, &scene->columns->columns[scope][place], &row->cells[place],
                        row->ranges ? &row->ranges[place] : NULL);
    }
    return r < 0 ? r : in->failed ? GP_EFORMAT : 0;
}

static int decode_list(struct gp_scene *scene, enum gp_tape_scope scope, struct gp_bytes *in)
{
    const size_t devices = scene->scopes[GP_TAPE_DEVICE].count;
    uint64_t count = gp_bytes_read_upto(in, scope == GP_TAPE_DEVICE ? DEVICES_MAX : ROWS_MAX);
    if (count == 0)
        return 0;
    if (--count > (uint64_t)(in->end - in->at) || /* an entry has at least a byte */
        count * scene->scopes[scope].width > CELLS_MAX)
        return GP_EFORMAT;
    struct gp_tape_key *keys = calloc(count + 1, sizeof(*keys));
    uint64_t before = 0;
    if (!keys)
        return GP_ENOMEM;
    for (uint64_t i = 0; i < count; i++) {
        before = (uint64_t)gp_plus((int64_t)before, gp_unzigzag(gp_bytes_read(in)));
        keys[i].id = before;
        if (scope == GP_TAPE_PROCESS)
            keys[i].device = (uint32_t)gp_bytes_read_upto(in, devices ? devices - 1 : 0);
    }
    int r = in->failed || (count && scope == GP_TAPE_PROCESS && !devices) ? GP_EFORMAT
            : gp_scene_list(scene, scope, keys, count)                    ? 0
                                                                          : GP_ENOMEM;
    free(keys);
    return r;
}

static int decode_rows(struct gp_scene *scene, enum gp_tape_scope scope, struct gp_bytes *in)
{
    int r = decode_list(scene, scope, in);
    struct gp_tape_rows *rows = &scene->scopes[scope];
    for (size_t i = 0; r == 0 && i < rows->count; i++)
        r = decode_cells(scene, scope, &rows->rows[i], in);
    return r;
}

static int decode_body(struct gp_scene *scene, struct gp_bytes *in)
{
    int r = decode_cells(scene, GP_TAPE_HOST, scene->scopes[GP_TAPE_HOST].rows, in);
    if (r == 0)
        r = decode_rows(scene, GP_TAPE_DEVICE, in);
    for (size_t i = 0; r == 0 && i < scene->scopes[GP_TAPE_PROCESS].count; i++)
        if (scene->scopes[GP_TAPE_PROCESS].rows[i].device >= scene->scopes[GP_TAPE_DEVICE].count)
            r = in->at < in->end && *in->at != 0 ? 0 : GP_EFORMAT; /* a new list must follow */
    if (r == 0)
        r = decode_rows(scene, GP_TAPE_PROCESS, in);
    return r < 0 ? r : in->failed || in->at != in->end ? GP_EFORMAT : 0;
}

static int decode_compressed(struct gp_scene *scene, struct gp_bytes *in)
{
    uint64_t size = gp_bytes_read_upto(in, GP_FRAME_MAX);
    uint8_t *body = in->failed ? NULL : malloc(size + 1);
    if (!body)
        return in->failed ? GP_EFORMAT : GP_ENOMEM;
    size_t got = ZSTD_decompress(body, size, in->at, (size_t)(in->end - in->at));
    struct gp_bytes inside = {body, body + size, false};
    int r = ZSTD_isError(got) || got != size ? GP_EFORMAT : decode_body(scene, &inside);
    free(body);
    return r;
}

bool gp_frame_is_key(const void *frame, size_t size)
{
    return size > 0 && (*(const uint8_t *)frame & KEY);
}

int gp_frame_decode(struct gp_scene *scene, const void *frame, size_t size)
{
    struct gp_bytes in = {frame, (const uint8_t *)frame + size, false};
    if (size == 0 || *in.at > (KEY | COMPRESSED))
        return GP_EFORMAT;
    const unsigned flags = *in.at++;
    if (flags & KEY)
        gp_scene_forget(scene);
    return flags & COMPRESSED ? decode_compressed(scene, &in) : decode_body(scene, &in);
}
