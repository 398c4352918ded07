#include "tape/derive.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "tape/frame.h"
#include "tape/roll.h"

#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

/* How a GPU was used in the current period, or by a process: microseconds and millijoules. */
struct use {
    uint64_t gpu, process; /* numbers in the file; process 0: the GPU itself */
    int64_t known_us;      /* the driver answered, or the process was listed */
    int64_t busy_us;       /* times the utilization */
    int64_t held_us;       /* a process computed on it, or had it open */
    int64_t idle_us;       /* of that, at a utilization of 0 % */
    int64_t reserved_us;
    double energy_mj;
    int64_t memory; /* the most */
    bool is_listed; /* of a GPU: its processes were known, so the time held is */
};

/* A process that is listed, or was since it was stored last. */
struct life {
    uint64_t process;
    int64_t last;
};

struct gp_derive {
    struct gp_store *store;
    int64_t pause_us;
    struct gp_scene scene;
    bool is_known; /* the scene: a key frame was seen */
    struct gp_roll roll;
    int64_t last;     /* the time of the scene; 0: none */
    int64_t period;   /* the start of the current one */
    int64_t done;     /* frames up to there are in `uses` and in the tables */
    struct use *uses; /* sorted */
    size_t use_count;
    struct life *lives; /* sorted */
    size_t life_count;
};

/* ---- sorted lists ---- */

static int compare_uses(const void *a, const void *b)
{
    const struct use *x = a;
    const struct use *y = b;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    return (x->gpu > y->gpu) - (x->gpu < y->gpu);
}

static int compare_lives(const void *a, const void *b)
{
    const struct life *x = a;
    const struct life *y = b;
    return (x->process > y->process) - (x->process < y->process);
}

/* The entry with this key in a sorted list of entries of `size` bytes, which is added if it is not
 * there; NULL without memory. */
static void *entry_of(void **list, size_t *count, size_t size, const void *key,
                      int (*compare)(const void *, const void *))
{
    void *found = *count ? bsearch(key, *list, *count, size, compare) : NULL;
    if (found)
        return found;
    char *grown = realloc(*list, (*count + 1) * size);
    if (!grown)
        return NULL;
    *list = grown;
    size_t at = *count;
    while (at > 0 && compare(key, grown + (at - 1) * size) < 0)
        at--;
    memmove(grown + (at + 1) * size, grown + at * size, (*count - at) * size);
    memcpy(grown + at * size, key, size);
    ++*count;
    return grown + at * size;
}

static struct use *use_of(struct gp_derive *d, uint64_t gpu, uint64_t process)
{
    const struct use key = {.gpu = gpu, .process = process};
    void *list = d->uses;
    struct use *use = entry_of(&list, &d->use_count, sizeof(key), &key, compare_uses);
    d->uses = list;
    return use;
}

static struct life *life_of(struct gp_derive *d, uint64_t process)
{
    const struct life key = {.process = process};
    void *list = d->lives;
    struct life *life = entry_of(&list, &d->life_count, sizeof(key), &key, compare_lives);
    d->lives = list;
    return life;
}

/* ---- usage ---- */

static bool number_now(const struct gp_derive *d, const struct gp_tape_row *row, int column,
                       double *ret)
{
    const struct gp_tape_cell *cell = gp_scene_cell(&d->scene, row, column);
    return cell && cell->status == GP_STATUS_OK && gp_scene_number(&d->scene, row, column, ret);
}

/* The GPU computes for it: it does more than draw. */
static bool computes(const struct gp_derive *d, const struct gp_tape_row *process)
{
    const struct gp_tape_cell *type = gp_scene_cell(&d->scene, process, GP_PROCESS_TYPE);
    return type && type->status == GP_STATUS_OK && type->text && strpbrk(type->text, "CM");
}

static void add_memory(const struct gp_derive *d, const struct gp_tape_row *row, int column,
                       struct use *use)
{
    double bytes;
    if (number_now(d, row, column, &bytes) && (int64_t)bytes > use->memory)
        use->memory = (int64_t)bytes;
}

/* Whether its processes are known; in files that do not say so, they are. */
static bool is_listed(const struct gp_derive *d, const struct gp_tape_row *gpu)
{
    double status;
    return !number_now(d, gpu, GP_TAPE_PROCESSES_STATUS, &status) || (int)status == GP_STATUS_OK;
}

static bool add_gpu(struct gp_derive *d, size_t i, int64_t us)
{
    const struct gp_tape_row *row = &d->scene.scopes[GP_TAPE_DEVICE].rows[i];
    const struct gp_tape_rows *processes = &d->scene.scopes[GP_TAPE_PROCESS];
    struct use *use = use_of(d, row->id, 0);
    double load;
    double n;
    if (!use)
        return false;
    bool held = false;
    for (size_t k = 0; k < processes->count && !held; k++)
        held = processes->rows[k].device == i && computes(d, &processes->rows[k]);
    const bool has_load = number_now(d, row, GP_UTILIZATION_GPU, &load);
    use->is_listed = use->is_listed || held || (us > 0 && is_listed(d, row));
    use->held_us += held ? us : 0;
    if (has_load) {
        use->known_us += us;
        use->busy_us += llround((double)us * load / 100);
        use->idle_us += held && load <= 0 ? us : 0;
    }
    if (number_now(d, row, GP_TAPE_RESERVED_BY, &n) && n > 0)
        use->reserved_us += us;
    if (number_now(d, row, GP_POWER_DRAW, &n))
        use->energy_mj += n * (double)us / 1000;
    add_memory(d, row, GP_MEMORY_USED, use);
    return true;
}

static bool add_process(struct gp_derive *d, const struct gp_tape_row *row, int64_t us)
{
    const uint64_t gpu = d->scene.scopes[GP_TAPE_DEVICE].rows[row->device].id;
    struct use *use = use_of(d, gpu, row->id);
    double n;
    if (!use)
        return false;
    use->held_us += us;
    if (number_now(d, row, GP_PROCESS_SM, &n)) {
        use->known_us += us;
        use->busy_us += llround((double)us * n / 100);
        use->idle_us += n <= 0 ? us : 0;
    }
    if (number_now(d, row, GP_PROCESS_POWER, &n))
        use->energy_mj += n * (double)us / 1000;
    add_memory(d, row, GP_PROCESS_MEMORY, use);
    return true;
}

/* Adds the time since the last sample, during which everything was as it is now. */
static bool add_time(struct gp_derive *d, int64_t us)
{
    const struct gp_tape_rows *processes = &d->scene.scopes[GP_TAPE_PROCESS];
    bool ok = true;
    for (size_t i = 0; ok && i < d->scene.scopes[GP_TAPE_DEVICE].count; i++)
        ok = add_gpu(d, i, us);
    for (size_t i = 0; ok && i < processes->count; i++)
        ok = add_process(d, &processes->rows[i], us);
    return ok;
}

static int store_uses(struct gp_derive *d, struct gp_err *err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < d->use_count; i++) {
        const struct use *u = &d->uses[i];
        if (u->process)
            r = gp_store_run(d->store, err, "REPLACE INTO share VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
                             "iiiiiiii", d->period, (int64_t)u->process, (int64_t)u->gpu,
                             u->held_us, u->busy_us, u->idle_us, (int64_t)llround(u->energy_mj),
                             u->memory);
        else
            r = gp_store_run(d->store, err,
                             "REPLACE INTO usage VALUES(?1, ?2, ?3, ?4, CASE WHEN ?10 THEN ?5 END, "
                             "CASE WHEN ?10 THEN ?6 END, ?7, ?8, ?9)",
                             "iiiiiiiiii", d->period, (int64_t)u->gpu, u->known_us, u->busy_us,
                             u->held_us, u->idle_us, u->reserved_us, (int64_t)llround(u->energy_mj),
                             u->memory, (int64_t)u->is_listed);
    }
    return r;
}

/* Continues the period in which the last process ended. */
static int load_uses(struct gp_derive *d, struct gp_err *err)
{
    int r = 0;
    d->period = d->done - d->done % GP_USAGE_PERIOD_US;
    for (int kind = 0; r == 0 && kind < 2; kind++) {
        sqlite3_stmt *rows = gp_store_statement(
            d->store,
            kind ? "SELECT gpu, process, 0, busy, held, idle, 0, energy, memory FROM share "
                   "WHERE t = ?"
                 : "SELECT gpu, 0, known, busy, held, idle, reserved, energy, memory FROM usage "
                   "WHERE t = ?",
            "i", d->period);
        while ((r = gp_store_step(d->store, rows, err)) == 1) {
            struct use *use =
                use_of(d, (uint64_t)gp_store_int(rows, 0), (uint64_t)gp_store_int(rows, 1));
            if (!use) {
                (void)sqlite3_reset(rows);
                return gp_err_set(err, GP_ENOMEM, "out of memory");
            }
            use->known_us = gp_store_int(rows, 2);
            use->busy_us = gp_store_int(rows, 3);
            use->held_us = gp_store_int(rows, 4);
            use->is_listed = !gp_store_is_null(rows, 4);
            use->idle_us = gp_store_int(rows, 5);
            use->reserved_us = gp_store_int(rows, 6);
            use->energy_mj = gp_store_real(rows, 7);
            use->memory = gp_store_int(rows, 8);
        }
    }
    return r;
}

/* ---- processes ---- */

static bool note_lives(struct gp_derive *d, int64_t t)
{
    const struct gp_tape_rows *processes = &d->scene.scopes[GP_TAPE_PROCESS];
    for (size_t i = 0; i < processes->count; i++) {
        struct life *life = life_of(d, processes->rows[i].id);
        if (!life)
            return false;
        life->last = t;
    }
    return true;
}

/* Those that were not in the last sample have ended. */
static int store_lives(struct gp_derive *d, struct gp_err *err)
{
    size_t kept = 0;
    int r = 0;
    for (size_t i = 0; r == 0 && i < d->life_count; i++) {
        const struct life *life = &d->lives[i];
        r = gp_store_run(d->store, err, "UPDATE process SET last = ?, ended = ? WHERE id = ?",
                         "iii", life->last, (int64_t)(life->last < d->last),
                         (int64_t)life->process);
        if (life->last >= d->last)
            d->lives[kept++] = *life;
    }
    if (r == 0)
        d->life_count = kept;
    return r;
}

static int store_gpus(struct gp_derive *d, struct gp_err *err)
{
    const struct gp_tape_rows *gpus = &d->scene.scopes[GP_TAPE_DEVICE];
    int r = 0;
    for (size_t i = 0; r == 0 && i < gpus->count; i++)
        r = gp_store_run(d->store, err, "UPDATE gpu SET last = ? WHERE id = ?", "ii", d->last,
                         (int64_t)gpus->rows[i].id);
    return r;
}

/* ---- frames ---- */

static int store_chunk(void *ctx, int64_t step_us, const struct gp_chunk *chunk)
{
    struct gp_derive *d = ctx;
    struct gp_strbuf data = GP_STRBUF_INIT(GP_FRAME_MAX);
    int r = gp_chunk_store(chunk, &data);
    if (r == 0)
        r = gp_store_run(d->store, NULL,
                         "INSERT INTO chunk(step, first, last, count, data) "
                         "VALUES(?1, ?2, ?3, ?4, ?5) ON CONFLICT(step, first) DO UPDATE "
                         "SET last = ?3, count = ?4, data = ?5",
                         "iiiib", step_us, chunk->first * step_us, (chunk->last + 1) * step_us,
                         (int64_t)chunk->count, data.buf, data.len);
    gp_strbuf_fini(&data);
    return r;
}

static int fail(const struct gp_derive *d, int r, struct gp_err *err)
{
    if (r == GP_EIO)
        return gp_err_set(err, r, "cannot write to '%.200s'", d->store->path);
    return gp_err_set(err, r, r == GP_ENOMEM ? "out of memory" : "a frame of '%.200s' is damaged",
                      d->store->path);
}

int gp_derive_flush(struct gp_derive *d, struct gp_err *err)
{
    if (!d->last)
        return 0;
    int r = gp_roll_flush(&d->roll, store_chunk, d);
    if (r < 0)
        return fail(d, r, err);
    r = store_uses(d, err);
    if (r == 0)
        r = store_lives(d, err);
    if (r == 0)
        r = store_gpus(d, err);
    if (r == 0)
        r = gp_store_run(d->store, err, "REPLACE INTO meta VALUES('derived', ?)", "i", d->last);
    d->done = d->last;
    return r;
}

static int begin_period(struct gp_derive *d, int64_t t, struct gp_err *err)
{
    const int64_t period = t - t % GP_USAGE_PERIOD_US;
    if (period == d->period)
        return 0;
    /* all of it, so that a crash does not count the rest of the period again */
    int r = gp_derive_flush(d, err);
    d->use_count = 0;
    d->period = period;
    return r;
}

int gp_derive_add(struct gp_derive *d, int64_t t, const void *frame, size_t size,
                  struct gp_err *err)
{
    int r = 0;
    if (!d->is_known && !gp_frame_is_key(frame, size))
        return 0;
    if (d->is_known)
        r = gp_roll_end(&d->roll, t, &d->scene, store_chunk, d);
    if (r == 0)
        r = gp_frame_decode(&d->scene, frame, size);
    d->is_known = r == 0;
    if (r == 0)
        r = gp_roll_add(&d->roll, t, &d->scene);
    if (r < 0)
        return fail(d, r, err);
    const int64_t us = t - d->last;
    if (t > d->done) {
        r = begin_period(d, t, err);
        if (r == 0 && d->last && us <= d->pause_us && !add_time(d, us))
            r = fail(d, GP_ENOMEM, err);
        if (r == 0 && !note_lives(d, t))
            r = fail(d, GP_ENOMEM, err);
    }
    d->last = t;
    return r;
}

int64_t gp_derive_needs_us(const struct gp_derive *d)
{
    const int64_t needs_us = gp_roll_needs_us(&d->roll);
    return needs_us < d->done ? needs_us : d->done;
}

/* ---- going on ---- */

/* The frames since the summaries that exist, from a key frame on. */
static int repeat_frames(struct gp_derive *d, struct gp_err *err)
{
    static const char from_key[] =
        "SELECT t, frame FROM tick WHERE t >= coalesce((SELECT base FROM tick WHERE t <= ? "
        "ORDER BY t DESC LIMIT 1), 0) ORDER BY t";
    sqlite3_stmt *rows = gp_store_statement(d->store, from_key, "i", gp_derive_needs_us(d));
    int r;
    while ((r = gp_store_step(d->store, rows, err)) == 1) {
        size_t size;
        const void *frame = gp_store_bytes(rows, 1, &size);
        r = gp_derive_add(d, gp_store_int(rows, 0), frame, size, err);
        if (r < 0 && r != GP_EFORMAT) {
            (void)sqlite3_reset(rows);
            return r;
        }
    }
    return r;
}

int gp_derive_open(struct gp_store *store, int64_t interval_us, struct gp_derive **ret,
                   struct gp_err *err)
{
    int64_t after_us[GP_ROLL_LEVELS];
    struct gp_derive *d = calloc(1, sizeof(*d));
    if (!d)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    d->store = store;
    d->pause_us = gp_store_pause_us(interval_us);
    d->done = gp_store_number(store, "SELECT value FROM meta WHERE key = 'derived'", 0);
    for (size_t i = 0; i < GP_ROLL_LEVELS; i++) {
        sqlite3_stmt *row = gp_store_statement(store, "SELECT max(last) FROM chunk WHERE step = ?",
                                               "i", gp_roll_levels[i].step_us);
        after_us[i] = gp_store_step(store, row, NULL) == 1 ? gp_store_int(row, 0) : 0;
        if (row)
            (void)sqlite3_reset(row);
    }
    int r = 0;
    if (!gp_scene_init(&d->scene, store->columns, false) ||
        !gp_roll_init(&d->roll, store->columns, interval_us, after_us))
        r = gp_err_set(err, GP_ENOMEM, "out of memory");
    if (r == 0)
        r = load_uses(d, err);
    if (r == 0)
        r = repeat_frames(d, err);
    if (r < 0)
        gp_derive_close(d);
    else
        *ret = d;
    return r;
}

void gp_derive_close(struct gp_derive *d)
{
    if (!d)
        return;
    gp_scene_fini(&d->scene);
    gp_roll_fini(&d->roll);
    free(d->uses);
    free(d->lives);
    free(d);
}
