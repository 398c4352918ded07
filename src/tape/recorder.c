#include "tape/recorder.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "model/event.h"
#include "model/snapshot.h"
#include "sample/thread.h"
#include "source/source.h"
#include "tape/before.h"
#include "tape/frame.h"
#include "tape/keeper.h"
#include "tape/moments.h"
#include "tape/queue.h"
#include "tape/registry.h"
#include "tape/waits.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BLOCK = 64 }; /* frames from one key frame to the next */
#define REST_NS GP_NS_PER_S
#define QUEUE_BYTES (UINT64_C(8) << 20)

struct gp_recorder {
    struct gp_recorder_config config;
    /* Of whoever samples. */
    struct gp_tape_columns columns;
    struct gp_scene scene;
    struct gp_registry registry;
    struct gp_waits waits;
    struct gp_axis_mark mark;
    char boot[GP_BOOT_ID_SIZE];
    int64_t last;      /* the time of the last sample or event */
    int64_t base;      /* of the key frame that later frames change */
    unsigned in_block; /* frames since then, with it; 0: the next one is a key frame */
    struct gp_before before;
    uint64_t *glance_gpus; /* the numbers of its GPUs */
    size_t glance_room;
    /* Of the thread. */
    struct gp_keeper keeper;
    pthread_t thread;
    /* Shared. */
    pthread_mutex_t lock;
    pthread_cond_t wake, rested;
    struct gp_tape_queue queue;
    struct gp_recorder_state state;
    bool quit;
    bool is_hurried; /* somebody may wait: store as soon as it is worth it */
};

struct gp_want gp_recorder_want(void)
{
    struct gp_want want = {
        .processes = true, .process_names = true, .owners = true, .jobs = true, .mig = true};
    for (int m = 0; m < GP_CLOCK__FIRST; m++)
        if (m != GP_TIMESTAMP)
            gp_metric_set_add(&want.metrics, (enum gp_metric)m);
    return want;
}

static void read_clocks(void *ctx, struct gp_axis_clocks *ret)
{
    const struct gp_recorder *rec = ctx;
    struct timespec boot;
    (void)clock_gettime(CLOCK_BOOTTIME, &boot);
    *ret = (struct gp_axis_clocks){
        .wall_us = (int64_t)(gp_clock_wall_ns() / GP_NS_PER_US),
        .boottime_us = (int64_t)boot.tv_sec * 1000000 + boot.tv_nsec / 1000,
        .boot = rec->boot,
    };
}

/* ---- the thread ---- */

/* Stores the items; the ones that were not stored stay in the list. */
static void store(struct gp_recorder *rec, struct gp_tape_item **items, uint64_t samples)
{
    struct gp_err err = {0};
    int r = gp_keeper_store(&rec->keeper, *items, &err);
    const uint64_t size = gp_keeper_size(&rec->keeper);
    (void)pthread_mutex_lock(&rec->lock);
    if (r == 0) {
        gp_tape_items_free(*items);
        *items = NULL;
        rec->state.stored += samples;
    } else {
        (void)snprintf(rec->state.problem, sizeof(rec->state.problem), "%s", err.text);
    }
    rec->state.is_failing = r < 0;
    rec->state.size = size;
    (void)pthread_mutex_unlock(&rec->lock);
}

/* Waits for a moment, or until the recorder is closed; requires the lock. */
static void rest(struct gp_recorder *rec)
{
    const struct timespec until = gp_clock_timespec(gp_clock_mono_ns() + REST_NS);
    while (!rec->quit && !(rec->is_hurried && rec->queue.bytes > QUEUE_BYTES / 4) &&
           pthread_cond_timedwait(&rec->wake, &rec->lock, &until) == 0)
        ;
}

static void *thread_main(void *arg)
{
    struct gp_recorder *rec = arg;
    (void)pthread_mutex_lock(&rec->lock);
    while (!rec->quit || rec->queue.first) {
        while (!rec->quit && !rec->queue.first)
            (void)pthread_cond_wait(&rec->wake, &rec->lock);
        const uint64_t samples = rec->queue.samples;
        struct gp_tape_item *items = gp_tape_queue_take(&rec->queue);
        (void)pthread_cond_signal(&rec->rested);
        if (!items)
            continue;
        (void)pthread_mutex_unlock(&rec->lock);
        store(rec, &items, samples);
        (void)pthread_mutex_lock(&rec->lock);
        gp_tape_queue_put_back(&rec->queue, items, samples);
        if (items && rec->quit)
            break; /* it was tried once more */
        rest(rec); /* more samples are stored together, or the disk recovers */
    }
    (void)pthread_mutex_unlock(&rec->lock);
    return NULL;
}

/* ---- queueing ---- */

/* Drops all samples that wait, and leaves a mark: frames that depend on dropped ones cannot be
 * read, so the next one is a key frame. Where many processes come and go, those are dropped, too.
 */
static void drop(struct gp_recorder *rec)
{
    struct gp_tape_hole hole = gp_tape_queue_drop(&rec->queue, false);
    if (rec->queue.bytes > QUEUE_BYTES / 2) {
        (void)gp_tape_queue_drop(&rec->queue, true);
        gp_registry_forget(&rec->registry);
    }
    rec->state.dropped += hole.samples;
    gp_tape_queue_add(&rec->queue, gp_tape_item_hole(&hole));
    rec->in_block = 0;
}

/* Passes an item to the thread. */
static int put(struct gp_recorder *rec, struct gp_tape_item *item)
{
    if (!item)
        return GP_ENOMEM;
    (void)pthread_mutex_lock(&rec->lock);
    gp_tape_queue_add(&rec->queue, item);
    if (rec->queue.bytes > QUEUE_BYTES)
        drop(rec);
    (void)pthread_cond_signal(&rec->wake);
    (void)pthread_mutex_unlock(&rec->lock);
    return 0;
}

/* The place of now on the axis. */
static int place_now(struct gp_recorder *rec, int64_t *ret)
{
    struct gp_axis_clocks clocks;
    struct gp_axis_mark mark = rec->mark;
    bool marked;
    rec->config.clocks(rec->config.ctx, &clocks);
    const int64_t t = gp_axis_at(&mark, &clocks, rec->last, &marked);
    int r = marked ? put(rec, gp_tape_item_mark(&mark)) : 0;
    if (r < 0)
        return r;
    rec->mark = mark;
    rec->last = *ret = t;
    return 0;
}

/* ---- incidents ---- */

/* Stores what there is of it; a part of it that cannot be stored is missing. */
static void store_incident(struct gp_recorder *rec)
{
    (void)put(rec, gp_before_item(&rec->before));
}

static void end_incident(struct gp_recorder *rec, int64_t t)
{
    if (!gp_before_is_over(&rec->before, t))
        return;
    store_incident(rec);
    gp_before_end(&rec->before);
}

/* ---- sampling ---- */

struct news {
    struct gp_recorder *rec;
    int64_t t;
};

static int on_gpu(void *ctx, uint64_t id, const char *uuid, const struct gp_device *device)
{
    const struct news *news = ctx;
    return put(news->rec, gp_tape_item_gpu(id, uuid, device, news->t));
}

static int on_process(void *ctx, uint64_t id, const struct gp_process *process, uint32_t pid,
                      uint64_t start_ns)
{
    const struct news *news = ctx;
    return put(news->rec, gp_tape_item_process(id, process, pid, start_ns, news->t));
}

int gp_recorder_sample(struct gp_recorder *rec, const struct gp_snapshot *snapshot,
                       struct gp_err *err)
{
    struct news news = {.rec = rec, .t = rec->last};
    struct gp_strbuf frame = GP_STRBUF_INIT(GP_FRAME_MAX);
    int r = place_now(rec, &news.t);
    if (r == 0)
        r = gp_registry_take(&rec->registry, snapshot,
                             &(struct gp_registry_news){on_gpu, on_process, &news});
    const bool is_key = rec->in_block == 0;
    if (is_key)
        rec->base = news.t;
    const struct gp_frame_sample sample = {snapshot, rec->registry.device_ids,
                                           rec->registry.process_ids};
    if (r == 0)
        r = gp_frame_encode(&rec->scene, &sample, is_key, &frame);
    rec->in_block = r < 0 ? 0 : (rec->in_block + 1) % BLOCK; /* put() may end the block */
    if (r == 0)
        r = put(rec, gp_tape_item_frame(news.t, rec->base, frame.buf, frame.len));
    if (r < 0) /* what follows must not depend on it */
        rec->in_block = 0;
    gp_strbuf_fini(&frame);
    end_incident(rec, news.t);
    return r < 0 ? gp_err_set(err, r, "cannot record this sample: %s", gp_err_text(r)) : 0;
}

/* The number of a GPU in the file; 0: none. */
static uint64_t gpu_of(const struct gp_recorder *rec, const char *uuid)
{
    for (size_t i = 0; i < rec->registry.gpu_count; i++)
        if (strcmp(rec->registry.gpus[i].uuid, uuid) == 0)
            return rec->registry.gpus[i].id;
    return 0;
}

int gp_recorder_glance(struct gp_recorder *rec, const struct gp_snapshot *snapshot,
                       struct gp_err *err)
{
    int64_t t;
    bool is_known = rec->config.before_ns > 0;
    if (snapshot->device_count > rec->glance_room) {
        uint64_t *grown = realloc(rec->glance_gpus, snapshot->device_count * sizeof(*grown));
        if (!grown)
            return gp_err_set(err, GP_ENOMEM, "out of memory");
        rec->glance_gpus = grown;
        rec->glance_room = snapshot->device_count;
    }
    for (size_t i = 0; is_known && i < snapshot->device_count; i++) {
        rec->glance_gpus[i] = gpu_of(rec, gp_device_text(&snapshot->devices[i], GP_UUID, ""));
        is_known = rec->glance_gpus[i] > 0;
    }
    if (!is_known) /* after the next sample it is */
        return 0;
    int r = place_now(rec, &t);
    if (r == 0)
        r = gp_before_add(&rec->before, t, snapshot, rec->glance_gpus);
    end_incident(rec, t);
    return r < 0 ? gp_err_set(err, r, "cannot keep this sample: %s", gp_err_text(r)) : 0;
}

int gp_recorder_event(struct gp_recorder *rec, const struct gp_event *event, struct gp_err *err)
{
    int64_t t;
    int r = place_now(rec, &t);
    if (r == 0)
        r = put(rec, gp_tape_item_event(t, event->has_gpu ? gpu_of(rec, event->uuid) : 0, event));
    if (r == 0 && gp_before_is_incident(event) && gp_before_begin(&rec->before, t))
        store_incident(rec); /* now: the machine may crash next */
    return r < 0 ? gp_err_set(err, r, "cannot record an event: %s", gp_err_text(r)) : 0;
}

static int store_wait(void *ctx, const struct gp_wait *wait)
{
    return put(ctx, gp_tape_item_wait(wait));
}

int gp_recorder_line(struct gp_recorder *rec, const struct gp_leases *leases, struct gp_err *err)
{
    struct gp_axis_clocks clocks;
    int64_t t;
    if (!leases)
        return 0;
    int r = place_now(rec, &t);
    rec->config.clocks(rec->config.ctx, &clocks);
    if (r == 0)
        r = gp_waits_look(&rec->waits, leases, t, clocks.wall_us,
                          gp_store_pause_us((int64_t)(rec->config.interval_ns / GP_NS_PER_US)));
    return r < 0 ? gp_err_set(err, r, "cannot record who waits: %s", gp_err_text(r)) : 0;
}

/* ---- opening and closing ---- */

static void read_boot_id(struct gp_recorder *rec)
{
    long n = gp_io_read("/proc/sys/kernel/random/boot_id", rec->boot, sizeof(rec->boot));
    if (n > 0)
        rec->boot[strcspn(rec->boot, "\n")] = '\0';
    else /* in a sandbox: it holds for this run */
        (void)snprintf(rec->boot, sizeof(rec->boot), "run %llx",
                       (unsigned long long)gp_io_random());
}

/* Where the file ends: its axis, and the numbers that were given away. */
static int load(struct gp_recorder *rec, struct gp_store *store, struct gp_err *err)
{
    struct gp_axis_mark *marks;
    struct gp_axis_clocks now;
    size_t count;
    int r = gp_store_marks(store, &marks, &count, err);
    if (r < 0)
        return r;
    if (count)
        rec->mark = marks[count - 1];
    free(marks);
    r = gp_store_get_number(store,
                            "SELECT max(coalesce((SELECT max(t) FROM tick), 0), "
                            "coalesce((SELECT max(t) FROM event), 0), "
                            "coalesce((SELECT max(t) FROM clock), 0))",
                            0, &rec->last, err);
    if (r < 0)
        return r;
    r = gp_store_get_number(store, "SELECT max(id) FROM line", 0, &rec->waits.next_id, err);
    if (r == 0 && rec->waits.next_id > GP_STORE_TIME_MAX)
        r = gp_store_decode_error(store->path, GP_EFORMAT, err);
    if (r < 0)
        return r;
    rec->waits.next_id++;
    rec->waits.store = store_wait;
    rec->waits.ctx = rec;
    rec->config.clocks(rec->config.ctx, &now);
    r = gp_registry_load(&rec->registry, store, count && strcmp(rec->mark.boot, now.boot) == 0,
                         err);
    if (r == 0) /* those that go on are marked again */
        r = gp_store_run(store, err, "UPDATE process SET ended = 1 WHERE ended = 0", "");
    return r;
}

/* The incidents of the last hours count, also if they are an earlier recorder's. */
static int load_incidents(struct gp_recorder *rec, struct gp_store *store, struct gp_err *err)
{
    sqlite3_stmt *rows = gp_store_statement(
        store,
        "SELECT last FROM (SELECT first, last FROM chunk WHERE step = ? ORDER BY first DESC "
        "LIMIT ?) ORDER BY first",
        "ii", GP_MOMENT_STEP_US, (int64_t)GP_BEFORE_PER_HOUR);
    int r;
    while ((r = gp_store_step(store, rows, err)) == 1)
        gp_before_note(&rec->before, gp_store_int(rows, 0));
    return r;
}

static void free_recorder(struct gp_recorder *rec)
{
    gp_keeper_close(&rec->keeper);
    gp_registry_fini(&rec->registry);
    gp_scene_fini(&rec->scene);
    gp_before_fini(&rec->before);
    free(rec->glance_gpus);
    gp_tape_items_free(gp_tape_queue_take(&rec->queue));
    (void)pthread_cond_destroy(&rec->wake);
    (void)pthread_cond_destroy(&rec->rested);
    (void)pthread_mutex_destroy(&rec->lock);
    free(rec);
}

int gp_recorder_open(const struct gp_recorder_config *config, struct gp_recorder **ret,
                     struct gp_err *err)
{
    struct gp_recorder *rec = calloc(1, sizeof(*rec));
    if (!rec)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    rec->config = *config;
    if (!rec->config.clocks) {
        rec->config.clocks = read_clocks;
        rec->config.ctx = rec;
    }
    read_boot_id(rec);
    (void)pthread_mutex_init(&rec->lock, NULL);
    gp_thread_cond_init(&rec->wake);
    gp_thread_cond_init(&rec->rested);
    int r = gp_keeper_open(&rec->keeper, config, err);
    if (r == 0)
        r = load(rec, rec->keeper.store, err);
    if (r == 0) {
        rec->columns = *rec->keeper.store->columns;
        if (!gp_scene_init(&rec->scene, &rec->columns, false) ||
            !gp_before_init(&rec->before, &rec->columns,
                            (int64_t)(config->before_ns / GP_NS_PER_US)))
            r = gp_err_set(err, GP_ENOMEM, "out of memory");
    }
    if (r == 0)
        r = load_incidents(rec, rec->keeper.store, err);
    if (r == 0)
        r = gp_store_announce(rec->keeper.store, err);
    if (r == 0 && pthread_create(&rec->thread, NULL, thread_main, rec) != 0)
        r = gp_err_set(err, GP_ENOMEM, "cannot start a thread");
    if (r < 0)
        free_recorder(rec);
    else
        *ret = rec;
    return r;
}

void gp_recorder_wait(struct gp_recorder *rec)
{
    (void)pthread_mutex_lock(&rec->lock);
    rec->is_hurried = true;
    (void)pthread_cond_signal(&rec->wake);
    while (rec->queue.bytes > QUEUE_BYTES / 2 && !rec->state.is_failing)
        (void)pthread_cond_wait(&rec->rested, &rec->lock);
    (void)pthread_mutex_unlock(&rec->lock);
}

void gp_recorder_state(struct gp_recorder *rec, struct gp_recorder_state *ret)
{
    (void)pthread_mutex_lock(&rec->lock);
    *ret = rec->state;
    ret->lacks_private = rec->keeper.private && !gp_private_works(rec->keeper.private);
    ret->waiting = rec->queue.samples;
    (void)pthread_mutex_unlock(&rec->lock);
}

int gp_recorder_close(struct gp_recorder *rec, struct gp_err *err)
{
    end_incident(rec, INT64_MAX);
    (void)gp_waits_end(&rec->waits); /* without memory, a minute of waiting is missing */
    (void)pthread_mutex_lock(&rec->lock);
    rec->quit = true;
    (void)pthread_cond_signal(&rec->wake);
    (void)pthread_mutex_unlock(&rec->lock);
    (void)pthread_join(rec->thread, NULL);
    const struct gp_recorder_state state = rec->state;
    const uint64_t lost = rec->queue.samples;
    int r = 0;
    if (lost)
        r = gp_err_set(err, GP_EIO, "%llu sample%s not recorded: %s", (unsigned long long)lost,
                       lost == 1 ? " was" : "s were", state.problem);
    else
        r = gp_keeper_finish(&rec->keeper, err);
    free_recorder(rec);
    return r;
}
