#include "tape/export.h"

#include "base/err.h"
#include "base/utf8.h"
#include "out/trace.h"
#include "tape/series.h"
#include "tape/store.h"
#include "tape/tape.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GPUS_MAX = 512, FIRST_PID = GP_TRACE_PID + 1, FLUSH_PIECES = 256 };

/* Rows with the same name are series of one counter, next to each other. */
static const struct {
    const char *name, *series;
    enum gp_metric metric;
    double unit; /* of the metric, in one of the series */
} counters[] = {
    {"utilization", "%", GP_UTILIZATION_GPU, 1},
    {"memory controller", "%", GP_UTILIZATION_MEMORY, 1},
    {"memory", "MiB", GP_MEMORY_USED, 0x1p20},
    {"SM active", "%", GP_GPM_SM, 1},
    {"tensor cores active", "%", GP_GPM_TENSOR, 1},
    {"memory bandwidth", "%", GP_GPM_DRAM, 1},
    {"power", "W", GP_POWER_DRAW, 1},
    {"temperature", "°C", GP_TEMPERATURE_GPU, 1},
    {"SM clock", "MHz", GP_CLOCK_SM, 1},
    {"memory clock", "MHz", GP_CLOCK_MEMORY, 1},
    {"PCIe", "to GPU MB/s", GP_PCIE_RX, 1e6},
    {"PCIe", "from GPU MB/s", GP_PCIE_TX, 1e6},
};
enum { COUNTERS = GP_ARRAY_LEN(counters) };

struct gpu {
    uint64_t id; /* in the recording */
    double last[COUNTERS];
};

struct export
{
    struct gp_trace *trace;
    struct gpu *gpus;
    size_t gpu_count;
    uint64_t pieces;
    bool has_begun, is_repeated;
    int64_t from, to;
};

/* ---- GPUs ---- */

static void name_gpu(struct export *e, size_t i, const struct gp_series_piece *piece,
                     const struct gp_tape_row *row)
{
    char model[96];
    char name[160];
    struct gp_series_number index = {.mean = (double)i};
    const char *text = gp_series_text(piece, row, GP_NAME);
    if (!gp_series_number(piece, row, GP_TAPE_INDEX, &index))
        index.mean = (double)i;
    gp_utf8_copy_safe(model, sizeof(model), text ? text : "");
    (void)snprintf(name, sizeof(name), "GPU %.0f: %s", index.mean, model);
    gp_trace_name_process(e->trace, FIRST_PID + (uint32_t)i, name, 1 + (int)i);
}

/* NULL: there are too many. */
static struct gpu *gpu_of(struct export *e, const struct gp_series_piece *piece,
                          const struct gp_tape_row *row)
{
    for (size_t i = 0; i < e->gpu_count; i++)
        if (e->gpus[i].id == row->id)
            return &e->gpus[i];
    if (e->gpu_count == GPUS_MAX)
        return NULL;
    struct gpu *gpu = &e->gpus[e->gpu_count];
    *gpu = (struct gpu){.id = row->id};
    for (size_t k = 0; k < COUNTERS; k++)
        gpu->last[k] = (double)NAN;
    name_gpu(e, e->gpu_count++, piece, row);
    return gpu;
}

/* The number of row k, or NAN. A counter whose value is unknown keeps its last one in the viewer.
 */
static double value_of(const struct gp_series_piece *piece, const struct gp_tape_row *row, size_t k)
{
    struct gp_series_number number;
    return gp_series_number(piece, row, (int)counters[k].metric, &number)
               ? number.mean / counters[k].unit
               : (double)NAN;
}

static bool is_same(double a, double b)
{
    return (isnan(a) && isnan(b)) || fabs(a - b) < 1e-9;
}

static void add_gpu(struct export *e, const struct gp_series_piece *piece,
                    const struct gp_tape_row *row)
{
    struct gpu *gpu = gpu_of(e, piece, row);
    for (size_t k = 0, next; gpu && k < COUNTERS; k = next) {
        struct gp_trace_value values[COUNTERS];
        size_t count = 0;
        bool changed = false;
        for (next = k; next < COUNTERS && strcmp(counters[next].name, counters[k].name) == 0;
             next++) {
            const double now = value_of(piece, row, next);
            changed = changed || !is_same(now, gpu->last[next]);
            gpu->last[next] = now;
            if (!isnan(now))
                values[count++] = (struct gp_trace_value){counters[next].series, now};
        }
        if (changed && count > 0)
            gp_trace_count(e->trace, FIRST_PID + (uint32_t)(gpu - e->gpus), counters[k].name,
                           (uint64_t)piece->t * GP_NS_PER_US, values, count);
    }
}

/* ---- pieces ---- */

static void begin(void *ctx)
{
    struct export *e = ctx;
    e->is_repeated = e->has_begun;
    e->has_begun = true;
}

static int add_piece(void *ctx, const struct gp_series_piece *piece, struct gp_err *err)
{
    struct export *e = ctx;
    const struct gp_tape_rows *rows = &piece->scene->scopes[GP_TAPE_DEVICE];
    if (e->is_repeated) /* what is in the trace cannot be taken back */
        return gp_err_set(err, GP_EBUSY, "the recording is being written; try again");
    if (e->pieces == 0)
        gp_trace_begin(e->trace, (uint64_t)piece->t * GP_NS_PER_US);
    for (size_t i = 0; i < rows->count; i++)
        add_gpu(e, piece, &rows->rows[i]);
    if (e->pieces++ % FLUSH_PIECES == 0)
        (void)gp_trace_flush(e->trace);
    return 0;
}

/* ---- events ---- */

static int add_events(void *ctx, struct gp_store *store, struct gp_err *err)
{
    struct export *e = ctx;
    sqlite3_stmt *rows = gp_store_statement(
        store, "SELECT t, gpu, kind, words FROM event WHERE t >= ? AND t < ? ORDER BY t", "ii",
        e->from, e->to);
    int r;
    while ((r = gp_store_step(store, rows, err)) == 1) {
        char name[400];
        const uint64_t gpu = (uint64_t)gp_store_int(rows, 1);
        uint32_t pid = GP_TRACE_PID;
        for (size_t i = 0; i < e->gpu_count; i++)
            if (e->gpus[i].id == gpu)
                pid = FIRST_PID + (uint32_t)i;
        (void)snprintf(name, sizeof(name), "%.60s: %.300s", gp_store_text(rows, 2),
                       gp_store_text(rows, 3));
        gp_trace_note(e->trace, (struct gp_trace_place){pid, 0}, name,
                      (uint64_t)gp_store_int(rows, 0) * GP_NS_PER_US);
    }
    return r;
}

int gp_export_trace(struct gp_tape *tape, int64_t from, int64_t to, const char *path,
                    uint64_t *ret_pieces, struct gp_err *err)
{
    struct export e = {.gpus = calloc(GPUS_MAX, sizeof(*e.gpus)), .from = from, .to = to};
    const struct gp_series_reader reader = {begin, add_piece, add_piece, &e};
    struct gp_trace_sum sum;
    struct gp_err close_err = {0};
    if (!e.gpus)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    int r = gp_trace_open(&e.trace, path, err);
    if (r == 0) {
        gp_trace_name_process(e.trace, GP_TRACE_PID, "recording", 0);
        r = gp_series_read(tape, from, to, &reader, err);
        if (r == 0)
            r = gp_tape_do(tape, add_events, &e, err);
        int closed = gp_trace_close(e.trace, &sum, &close_err);
        if (r == 0 && closed < 0)
            r = gp_err_copy(err, &close_err);
    }
    *ret_pieces = e.pieces;
    free(e.gpus);
    return r;
}
