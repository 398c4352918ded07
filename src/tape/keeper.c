#include "tape/keeper.h"

#include "base/err.h"
#include "tape/moments.h"
#include "tape/recorder.h"
#include "tape/roll.h"

#include <sqlite3.h>
#include <string.h>

#define S INT64_C(1000000)
#define FLUSH_US (60 * S)
#define PRUNE_US (600 * S)
#define CHECKPOINT_US (3600 * S)
#define LOG_MAX (UINT64_C(4) << 20)
#define KEEP_US (3600 * S)
enum { BYTES_PER_PROCESS = 4096 }; /* of the size of the file; a row has much less on average */
#define RESTED_US (600 * S)
#define EVENTS_KEEP_US (366 * 86400 * S)
#define USES_KEEP_US (2 * EVENTS_KEEP_US)
enum { MOMENTS_PART = 16 }; /* at most this part of the file is samples of incidents */

_Static_assert(GP_MOMENT_STEP_US == 1000, "the statements have it, too");

static const int private_texts[GP_PRIVATE__COUNT] = {
    [GP_PRIVATE_PATH] = GP_TAPE_PROCESS_PATH,
    [GP_PRIVATE_COMMAND] = GP_TAPE_PROCESS_COMMAND,
    [GP_PRIVATE_CWD] = GP_TAPE_PROCESS_CWD,
    [GP_PRIVATE_CONTAINER_NAME] = GP_TAPE_PROCESS_CONTAINER_NAME,
    [GP_PRIVATE_ORIGIN] = GP_TAPE_PROCESS_ORIGIN,
};

/* One statement for each kind; the numbers of an item are ?1 to ?5, its texts ?6 to ?13. */
static const char *const statements[] = {
    [GP_TAPE_ITEM_FRAME] = "INSERT INTO tick VALUES(?1, ?2, ?14)",
    [GP_TAPE_ITEM_GPU] = "INSERT INTO gpu VALUES(?1, ?6, ?2, ?3, ?7, ?8, ?4, ?4)",
    [GP_TAPE_ITEM_PROCESS] = ("INSERT INTO process VALUES(?1, ?2, ?3, ?6, ?7, ?8, ?9, ?10, ?11, "
                              "?12, ?13, ?4, ?4, 0)"),
    [GP_TAPE_ITEM_MARK] = "INSERT INTO clock VALUES(?1, ?2, ?6, ?3)",
    [GP_TAPE_ITEM_EVENT] = "INSERT INTO event VALUES(NULL, ?1, ?2, ?6, ?3, ?4, ?7, ?8, ?9)",
    [GP_TAPE_ITEM_HOLE] = "INSERT INTO event VALUES(NULL, ?1, ?2, ?6, ?3, 0, ?7, ?8, ?9)",
    [GP_TAPE_ITEM_WAIT] = ("INSERT INTO line VALUES(?1, ?2, ?6, ?7, ?3, ?4, ?5) "
                           "ON CONFLICT(id) DO UPDATE SET last = excluded.last"),
    [GP_TAPE_ITEM_MOMENTS] = ("INSERT INTO chunk VALUES(NULL, ?1, ?2, ?3, ?4, ?14) "
                              "ON CONFLICT(step, first) DO UPDATE SET last = ?3, count = ?4, "
                              "data = ?14"),
};

/* The texts of an item that go into the file. */
static void select_texts(const struct gp_keeper *k, const struct gp_tape_item *item,
                         const char *ret[GP_TAPE_ITEM_TEXTS])
{
    memcpy(ret, item->texts, sizeof(item->texts));
    for (size_t i = 0; k->private && item->kind == GP_TAPE_ITEM_PROCESS && i < GP_PRIVATE__COUNT;
         i++)
        ret[private_texts[i]] = NULL;
}

/* Stores what only the owner of a process may read, if the owner is known. A text that cannot be
 * stored is missing: nothing else depends on it. */
static void store_private(struct gp_keeper *k, const struct gp_tape_item *items)
{
    for (const struct gp_tape_item *item = items; k->private && item; item = item->next) {
        if (item->kind != GP_TAPE_ITEM_PROCESS || item->numbers[4] == 0)
            continue;
        struct gp_private_entry entry = {.id = (uint64_t)item->numbers[0],
                                         .pid = (uint64_t)item->numbers[1],
                                         .start_ns = (uint64_t)item->numbers[2]};
        for (size_t i = 0; i < GP_PRIVATE__COUNT; i++)
            entry.texts[i] = item->texts[private_texts[i]];
        if (!gp_private_add(k->private, (uint32_t)(item->numbers[4] - 1), &entry))
            continue;
    }
}

static bool is_stored_process(void *ctx, uint64_t id)
{
    const struct gp_keeper *k = ctx;
    sqlite3_stmt *row =
        gp_store_statement(k->store, "SELECT 1 FROM process WHERE id = ?", "i", (int64_t)id);
    const int r = gp_store_step(k->store, row, NULL);
    if (row)
        (void)sqlite3_reset(row);
    return r != 0;
}

static int store_item(struct gp_keeper *k, const struct gp_tape_item *i, struct gp_err *err)
{
    const int64_t *n = i->numbers;
    const char *t[GP_TAPE_ITEM_TEXTS];
    select_texts(k, i, t);
    return gp_store_run(k->store, err, statements[i->kind],
                        i->data ? "iiiiittttttttb" : "iiiiitttttttt", n[0], n[1], n[2], n[3], n[4],
                        t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7], i->data, i->size);
}

/* Whether it is time again, at the last sample; for the first time after `every_us`. */
static bool is_due(const struct gp_keeper *k, int64_t *at, int64_t every_us)
{
    const bool is_due = *at && k->last >= *at;
    if (k->last && (is_due || !*at))
        *at = k->last + every_us;
    return is_due;
}

/* ---- dropping ---- */

static int drop_before(struct gp_keeper *k, const char *sql, int64_t t, struct gp_err *err)
{
    return gp_store_run(k->store, err, sql, "i", t);
}

/* Samples go with the key frame that they need. */
static int drop_samples(struct gp_keeper *k, int64_t before, struct gp_err *err)
{
    const int64_t needs_us = gp_derive_needs_us(k->derive);
    return drop_before(k,
                       "DELETE FROM tick WHERE t < (SELECT base FROM tick WHERE t <= ?1 "
                       "ORDER BY t DESC LIMIT 1)",
                       before < needs_us ? before : needs_us, err);
}

/* A user who starts very many processes or requests must not fill the file with them. The shortest
 * go first: those of others, which did something, stay. */
static int drop_short_waits(struct gp_keeper *k, struct gp_err *err)
{
    const int64_t most = (int64_t)(k->size_max / BYTES_PER_PROCESS);
    const int64_t excess = gp_store_number(k->store, "SELECT count(*) FROM line", 0) - most;
    return excess <= 0
               ? 0
               : gp_store_run(k->store, err,
                              "DELETE FROM line WHERE id IN (SELECT id FROM line WHERE last < ?1 "
                              "AND user IS NOT NULL ORDER BY last - first, id LIMIT ?2)",
                              "ii", k->last - RESTED_US, excess + most / 10);
}

static int drop_short_processes(struct gp_keeper *k, struct gp_err *err)
{
    static const char shares[] =
        "DELETE FROM share WHERE process IN (SELECT id FROM process WHERE last < ?1 "
        "ORDER BY last - first, id LIMIT ?2)";
    static const char processes[] =
        "DELETE FROM process WHERE id IN (SELECT id FROM process WHERE last < ?1 "
        "ORDER BY last - first, id LIMIT ?2)";
    const int64_t most = (int64_t)(k->size_max / BYTES_PER_PROCESS);
    const int64_t excess = gp_store_number(k->store, "SELECT count(*) FROM process", 0) - most;
    if (excess <= 0)
        return 0;
    const int64_t before = k->last - RESTED_US;
    int r = gp_store_run(k->store, err, shares, "ii", before, excess + most / 10);
    return r < 0 ? r : gp_store_run(k->store, err, processes, "ii", before, excess + most / 10);
}

/* They are kept as long as their event, if there is room: the last ones stay. */
static int drop_moments(struct gp_keeper *k, int64_t keep_us, struct gp_err *err)
{
    static const char excess[] =
        "DELETE FROM chunk WHERE step = 1000 AND first <= (SELECT max(first) FROM (SELECT first, "
        "sum(length(data)) OVER (ORDER BY first DESC) AS bytes FROM chunk WHERE step = 1000) "
        "WHERE bytes > ?)";
    int r =
        drop_before(k, "DELETE FROM chunk WHERE step = 1000 AND last < ?", k->last - keep_us, err);
    return r < 0 ? r
                 : gp_store_run(k->store, err, excess, "i", (int64_t)(k->size_max / MOMENTS_PART));
}

static int drop_old(struct gp_keeper *k, struct gp_err *err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < GP_ROLL_LEVELS; i++) {
        const struct gp_roll_level *level = &gp_roll_levels[i];
        const int64_t keep_us =
            k->age_max_us && k->age_max_us < level->keep_us ? k->age_max_us : level->keep_us;
        r = gp_store_run(k->store, err, "DELETE FROM chunk WHERE step = ? AND last < ?", "ii",
                         level->step_us, k->last - keep_us);
    }
    const int64_t uses_us = k->age_max_us ? k->age_max_us : USES_KEEP_US;
    const int64_t events_us = k->age_max_us ? k->age_max_us : EVENTS_KEEP_US;
    if (r == 0)
        r = drop_before(k, "DELETE FROM share WHERE t < ?", k->last - uses_us, err);
    if (r == 0)
        r = drop_before(k, "DELETE FROM usage WHERE t < ?", k->last - uses_us, err);
    if (r == 0)
        r = drop_before(k, "DELETE FROM process WHERE last < ?", k->last - uses_us, err);
    if (r == 0)
        r = drop_before(k, "DELETE FROM line WHERE last < ?", k->last - uses_us, err);
    if (r == 0)
        r = drop_before(k, "DELETE FROM event WHERE t < ?", k->last - events_us, err);
    if (r == 0)
        r = drop_short_waits(k, err);
    if (r == 0)
        r = drop_moments(k, events_us, err);
    return r < 0 ? r : drop_short_processes(k, err);
}

/* The pages that are in use, without those that await the next truncation. */
static uint64_t used_bytes(struct gp_keeper *k)
{
    const int64_t pages = gp_store_number(k->store, "PRAGMA page_count", 0);
    const int64_t spare = gp_store_number(k->store, "PRAGMA freelist_count", 0);
    return (uint64_t)(pages - spare) *
           (uint64_t)gp_store_number(k->store, "PRAGMA page_size", 4096);
}

/* Drops the oldest of the finest summaries until the file is small enough; finally those of the
 * next step. The samples of incidents stay: they are few. */
static int drop_excess(struct gp_keeper *k, struct gp_err *err)
{
    int r = 0;
    while (r == 0 && used_bytes(k) > k->size_max) {
        const int64_t step_us =
            gp_store_number(k->store, "SELECT min(step) FROM chunk WHERE step > 1000", 0);
        if (step_us == 0)
            return drop_samples(k, k->last, err);
        r = gp_store_run(k->store, err,
                         "DELETE FROM chunk WHERE id IN (SELECT id FROM chunk WHERE step = ? "
                         "ORDER BY first LIMIT 64)",
                         "i", step_us);
    }
    return r;
}

static int prune(struct gp_keeper *k, struct gp_err *err)
{
    int r = drop_samples(k, k->last - k->keep_us, err);
    if (r == 0 && is_due(k, &k->prune_at, PRUNE_US)) {
        r = drop_old(k, err);
        if (r == 0)
            r = drop_excess(k, err);
        if (r == 0)
            r = gp_store_run(k->store, err, "PRAGMA incremental_vacuum(4096)", "");
    }
    return r;
}

/* ---- storing ---- */

static int store_items(struct gp_keeper *k, const struct gp_tape_item *items, struct gp_err *err)
{
    int r = k->derive ? 0 : gp_derive_open(k->store, k->interval_us, &k->derive, err);
    for (const struct gp_tape_item *i = items; r == 0 && i; i = i->next) {
        r = store_item(k, i, err);
        if (r < 0 || i->kind != GP_TAPE_ITEM_FRAME)
            continue;
        r = gp_derive_add(k->derive, i->numbers[0], i->data, i->size, err);
        k->last = i->numbers[0];
    }
    if (r == 0 && is_due(k, &k->flush_at, FLUSH_US)) {
        r = gp_derive_flush(k->derive, err);
        if (r == 0)
            r = prune(k, err);
    }
    return r;
}

/* Undoes what the transaction did; the memory of it goes, too. */
static void undo(struct gp_keeper *k)
{
    struct gp_err ignored;
    if (gp_store_run(k->store, &ignored, "ROLLBACK", "") < 0)
        ignored.code = 0; /* SQLite did it already */
    gp_derive_close(k->derive);
    k->derive = NULL;
    k->flush_at = 0;
}

int gp_keeper_store(struct gp_keeper *k, const struct gp_tape_item *items, struct gp_err *err)
{
    int r = gp_store_run(k->store, err, "BEGIN", "");
    if (r < 0)
        return r;
    r = store_items(k, items, err);
    if (r == 0)
        r = gp_store_run(k->store, err, "COMMIT", "");
    if (r < 0) {
        undo(k);
        return r;
    }
    if (k->private && is_due(k, &k->private_at, PRUNE_US))
        gp_private_prune(k->private, is_stored_process, k);
    store_private(k, items);
    /* If the log cannot be moved to the file, everything still is in the log. */
    if (gp_store_log_size(k->store) > LOG_MAX || is_due(k, &k->checkpoint_at, CHECKPOINT_US))
        k->has_failed_checkpoint = gp_store_checkpoint(k->store, NULL) < 0;
    return 0;
}

uint64_t gp_keeper_size(const struct gp_keeper *k)
{
    return gp_store_size(k->store) + gp_store_log_size(k->store);
}

int gp_keeper_open(struct gp_keeper *k, const struct gp_recorder_config *config, struct gp_err *err)
{
    *k = (struct gp_keeper){
        .interval_us = (int64_t)(config->interval_ns / GP_NS_PER_US),
        .keep_us = config->keep_ns ? (int64_t)(config->keep_ns / GP_NS_PER_US) : KEEP_US,
        .age_max_us = (int64_t)(config->age_max_ns / GP_NS_PER_US),
        .size_max = config->size_max ? config->size_max : GP_RECORDER_SIZE_MAX,
    };
    int r = gp_store_create(config->path, config->is_shared, &k->store, err);
    if (r == 0 && config->is_shared)
        r = gp_private_create(config->path, &k->private, err);
    if (r == 0 && k->private) /* what a crash left there */
        gp_private_prune(k->private, is_stored_process, k);
    if (r == 0)
        r = gp_store_run(k->store, err, "REPLACE INTO meta VALUES('interval', ?)", "i",
                         k->interval_us);
    return r;
}

int gp_keeper_finish(struct gp_keeper *k, struct gp_err *err)
{
    k->flush_at = k->prune_at = k->last; /* now */
    int r = gp_keeper_store(k, NULL, err);
    return r < 0 ? r : gp_store_checkpoint(k->store, err);
}

void gp_keeper_close(struct gp_keeper *k)
{
    gp_derive_close(k->derive);
    gp_private_close(k->private);
    gp_store_close(k->store);
    *k = (struct gp_keeper){0};
}
