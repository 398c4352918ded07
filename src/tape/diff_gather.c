#include "tape/diff_gather.h"

#include "base/err.h"
#include "base/utf8.h"
#include "model/event.h"
#include "tape/series.h"
#include "tape/store.h"
#include "tape/tape.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

enum {
    LOAD_PERCENT = 50,            /* a GPU is at work from this utilization on */
    REPEAT_US = 60 * 1000 * 1000, /* errors of the same kind within this time count once */
};

enum when { ALWAYS, LOAD, IDLE };

static const struct {
    int column;
    int64_t bits;
    enum when when;
} metrics[GP_DIFF__COUNT] = {
#define DIFF(id, column, bits, name, words, unit, when, quantum, share, least)                     \
    [GP_DIFF_##id] = {column, bits, when},
#include "tape/diff.def"
#undef DIFF
};

static const enum gp_event_kind error_kinds[GP_DIFF_ERROR__COUNT] = {
#define X(id, words) [GP_DIFF_ERROR_##id] = GP_EVENT_##id,
    GP_DIFF_ERRORS(X)
#undef X
};

enum { KNOWN = 1024 };

struct gather {
    struct gp_diff_side *side;
    int64_t from, to;
    struct known { /* the programs of processes, by their number */
        uint64_t process;
        struct gp_diff_program *program;
    } known[KNOWN];
};

/* ---- facts ---- */

static void take_fact(struct gp_diff_fact *fact, const struct gp_series_piece *piece,
                      const struct gp_tape_row *row, enum gp_diff_fact_id id)
{
    const int column = (int)gp_diff_facts[id].metric;
    struct gp_series_number n;
    if (gp_tape_column_is_text(column)) {
        const char *text = gp_series_text(piece, row, column);
        if (text)
            gp_diff_set_text(fact, text);
    } else if (gp_series_number(piece, row, column, &n)) {
        gp_diff_set_number(fact, n.mean);
    }
}

static void take_text(const struct gp_series_piece *piece, const struct gp_tape_row *row,
                      int column, char *ret, size_t size)
{
    const char *text = gp_series_text(piece, row, column);
    if (text && strcmp(text, ret) != 0)
        gp_utf8_copy_safe(ret, size, text);
}

static void take_host(struct gp_diff_side *side, const struct gp_series_piece *piece)
{
    const struct gp_tape_row *row = piece->scene->scopes[GP_TAPE_HOST].rows;
    take_text(piece, row, GP_HOST_NAME, side->host, sizeof(side->host));
    for (size_t i = 0; i < GP_DIFF_FACT__GPU; i++)
        take_fact(&side->facts[i], piece, row, (enum gp_diff_fact_id)i);
}

static void take_identity(struct gp_diff_gpu *gpu, const struct gp_series_piece *piece,
                          const struct gp_tape_row *row)
{
    struct gp_series_number index;
    struct gp_series_number mig;
    take_text(piece, row, GP_UUID, gpu->uuid, sizeof(gpu->uuid));
    take_text(piece, row, GP_NAME, gpu->name, sizeof(gpu->name));
    for (size_t i = GP_DIFF_FACT__GPU; i < GP_DIFF_FACT__COUNT; i++)
        take_fact(&gpu->facts[i], piece, row, (enum gp_diff_fact_id)i);
    if (!gp_series_number(piece, row, GP_TAPE_INDEX, &index))
        return;
    if (gp_series_number(piece, row, GP_TAPE_MIG_INDEX, &mig))
        (void)snprintf(gpu->label, sizeof(gpu->label), "%.4g:%.4g", index.mean, mig.mean);
    else
        (void)snprintf(gpu->label, sizeof(gpu->label), "%.4g", index.mean);
}

/* ---- numbers ---- */

/* A GPU whose utilization is unknown, such as a MIG instance, counts as at work. */
static bool is_when(enum when when, bool has_load, const struct gp_series_number *load)
{
    switch (when) {
    case LOAD:
        return !has_load || load->mean >= LOAD_PERCENT;
    case IDLE:
        return has_load && load->max <= 0;
    default:
        return true;
    }
}

/* Masks have no mean: of a summary it is the last one. */
static bool mask_share(const struct gp_series_piece *piece, const struct gp_tape_row *row,
                       int column, int64_t bits, double *ret)
{
    const struct gp_tape_cell *cell = gp_scene_cell(piece->scene, row, column);
    if (!cell || cell->status != GP_STATUS_OK || cell->text)
        return false;
    *ret = cell->number & bits ? 100 : 0;
    return true;
}

static bool take_gpu(struct gp_diff_gpu *gpu, const struct gp_series_piece *piece,
                     const struct gp_tape_row *row)
{
    struct gp_series_number load;
    const bool has_load = gp_series_number(piece, row, GP_UTILIZATION_GPU, &load);
    bool ok = true;
    gpu->seen_us += piece->us;
    take_identity(gpu, piece, row);
    for (size_t i = 0; ok && i < GP_DIFF__COUNT; i++) {
        struct gp_series_number n;
        if (!is_when(metrics[i].when, has_load, &load))
            continue;
        const bool has = metrics[i].bits
                             ? mask_share(piece, row, metrics[i].column, metrics[i].bits, &n.mean)
                             : gp_series_number(piece, row, metrics[i].column, &n);
        if (has)
            ok = gp_line_add(&gpu->lines[i], n.mean, piece->us);
    }
    return ok;
}

/* ---- programs ---- */

static struct gp_diff_program *program_of(struct gather *gather,
                                          const struct gp_series_piece *piece,
                                          const struct gp_tape_row *row)
{
    struct known *known = &gather->known[row->id % KNOWN];
    if (known->program && known->process == row->id)
        return known->program;
    const char *name = gp_series_text(piece, row, GP_PROCESS_NAME);
    const char *user = gp_series_text(piece, row, GP_PROCESS_USER);
    if (!name)
        return NULL;
    *known = (struct known){row->id, gp_diff_side_program(gather->side, name, user ? user : "")};
    return known->program;
}

static void take_process(struct gather *gather, const struct gp_series_piece *piece,
                         const struct gp_tape_row *row)
{
    struct gp_diff_program *program = program_of(gather, piece, row);
    struct gp_series_number n;
    if (!program)
        return;
    program->is_listed = true;
    if (gp_series_number(piece, row, GP_PROCESS_MEMORY, &n)) {
        program->memory_sum += n.mean;
        program->memory_count++;
    }
    if (gp_series_number(piece, row, GP_PROCESS_SM, &n)) {
        program->sm_sum += n.mean;
        program->sm_count++;
    }
}

static bool take_programs(struct gather *gather, const struct gp_series_piece *piece)
{
    struct gp_diff_side *side = gather->side;
    const struct gp_tape_rows *rows = &piece->scene->scopes[GP_TAPE_PROCESS];
    bool ok = true;
    for (size_t i = 0; i < side->program_count; i++) {
        struct gp_diff_program *p = &side->programs[i];
        p->memory_sum = p->sm_sum = 0;
        p->memory_count = p->sm_count = 0;
        p->is_listed = false;
    }
    for (size_t i = 0; i < rows->count; i++)
        take_process(gather, piece, &rows->rows[i]);
    for (size_t i = 0; ok && i < side->program_count; i++) {
        struct gp_diff_program *p = &side->programs[i];
        p->seen_us += p->is_listed ? piece->us : 0;
        if (p->memory_count)
            ok = gp_line_add(&p->memory, p->memory_sum / p->memory_count, piece->us);
        if (ok && p->sm_count)
            ok = gp_line_add(&p->sm, p->sm_sum / p->sm_count, piece->us);
    }
    return ok;
}

/* ---- the recording ---- */

static void begin(void *ctx)
{
    struct gather *gather = ctx;
    gp_diff_side_reset(gather->side);
    memset(gather->known, 0, sizeof(gather->known));
}

static int on_piece(void *ctx, const struct gp_series_piece *piece, struct gp_err *err)
{
    struct gather *gather = ctx;
    const struct gp_tape_rows *rows = &piece->scene->scopes[GP_TAPE_DEVICE];
    bool ok = true;
    if (gather->side->seen_us == 0)
        gather->from = piece->t;
    gather->to = piece->t + piece->us;
    gather->side->seen_us += piece->us;
    take_host(gather->side, piece);
    for (size_t i = 0; ok && i < rows->count; i++) {
        struct gp_diff_gpu *gpu = gp_diff_side_gpu(gather->side, rows->rows[i].id);
        ok = !gpu || take_gpu(gpu, piece, &rows->rows[i]);
    }
    ok = ok && take_programs(gather, piece);
    return ok ? 0 : gp_err_set(err, GP_ENOMEM, "out of memory");
}

static int read_errors(void *ctx, struct gp_store *store, struct gp_err *err)
{
    const struct gather *gather = ctx;
    int r = 0;
    for (size_t i = 0; r == 0 && i < gather->side->gpu_count; i++) {
        struct gp_diff_gpu *gpu = &gather->side->gpus[i];
        for (size_t k = 0; r == 0 && k < GP_DIFF_ERROR__COUNT; k++) {
            sqlite3_stmt *rows = gp_store_statement(
                store,
                "SELECT t FROM event WHERE gpu = ? AND kind = ? AND t >= ? AND t < ? ORDER BY t",
                "itii", (int64_t)gpu->id, gp_event_table[error_kinds[k]].name, gather->from,
                gather->to);
            int64_t counted = -REPEAT_US;
            gpu->errors[k] = 0;
            while ((r = gp_store_step(store, rows, err)) == 1) {
                const int64_t t = gp_store_int(rows, 0);
                if (t - counted < REPEAT_US)
                    continue;
                counted = t;
                gpu->errors[k]++;
            }
        }
    }
    return r;
}

static int read_tape(struct gp_tape *tape, struct gather *gather, struct gp_err *err)
{
    const struct gp_series_reader reader = {.begin = begin, .piece = on_piece, .ctx = gather};
    int r = gp_series_read(tape, gather->from, gather->to, &reader, err);
    if (r == 0 && gather->side->seen_us == 0)
        r = gp_err_set(err, GP_EIO, "nothing was recorded at that time in '%.200s'",
                       gather->side->source);
    if (r == 0)
        r = gp_tape_do(tape, read_errors, gather, err);
    if (r == 0) {
        gather->side->from_us = gp_tape_wall(tape, gather->from);
        gather->side->to_us = gp_tape_wall(tape, gather->to);
    }
    return r;
}

int gp_diff_gather(const char *file, const char *name, int64_t from_us, int64_t to_us,
                   struct gp_diff_side *ret, struct gp_err *err)
{
    struct gp_tape *tape;
    struct gp_tape_bounds bounds;
    int r = gp_tape_open(file, &tape, err);
    if (r < 0)
        return r;
    r = gp_tape_bounds(tape, &bounds, err);
    if (r == 0 && !gp_diff_side_init(ret, name, bounds.interval_us))
        r = gp_err_set(err, GP_ENOMEM, "out of memory");
    if (r == 0) {
        struct gather gather = {.side = ret, .from = 0, .to = INT64_MAX};
        if (from_us > 0)
            gather.from = gp_tape_place(tape, from_us);
        if (to_us > 0)
            gather.to = gp_tape_place(tape, to_us);
        r = gather.from < 0
                ? gp_err_set(err, GP_EIO, "nothing was recorded at that time in '%.200s'",
                             ret->source)
                : read_tape(tape, &gather, err);
        if (r < 0)
            gp_diff_side_fini(ret);
    }
    gp_tape_close(tape);
    return r;
}
