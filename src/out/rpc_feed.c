#include "out/rpc_feed.h"

#include "base/clock.h"
#include "base/err.h"
#include "model/select.h"
#include "model/snapshot.h"
#include "out/json.h"
#include "out/proc_list.h"
#include "out/reservation.h"
#include "sample/event_stream.h"
#include "sample/observed.h"
#include "sample/sampler.h"

#include <stdlib.h>
#include <time.h>

enum {
    PRIME_MS = 110, /* GPM needs 100 ms between its samples */
    STUCK_MAX = 16,
};

struct gp_rpc_feed {
    struct gp_selection selection;
    struct gp_sampler *sampler;
    struct gp_view views[GP_SCOPE__COUNT]; /* none: the processes */
    size_t view_count;
    bool is_late;
    struct gp_rpc_feed *next; /* see abandon() */
};

/* ---- opening and closing ---- */

/* A thread that hangs in the driver may still use these: they are kept. */
static struct gp_rpc_feed *abandoned;
static unsigned abandoned_count;

static void abandon(struct gp_rpc_feed *feed)
{
    feed->next = abandoned;
    abandoned = feed;
    abandoned_count++;
}

static void free_feed(struct gp_rpc_feed *feed)
{
    for (size_t i = 0; i < feed->view_count; i++)
        gp_field_list_fini(&feed->views[i].fields);
    free(feed);
}

/* Frees those whose thread has returned. */
static void free_abandoned(void)
{
    for (struct gp_rpc_feed **at = &abandoned; *at;) {
        struct gp_rpc_feed *feed = *at;
        if (gp_sampler_is_busy(feed->sampler) || !gp_sampler_free(feed->sampler)) {
            at = &feed->next;
            continue;
        }
        *at = feed->next;
        free_feed(feed);
        abandoned_count--;
    }
}

bool gp_rpc_feed_is_stuck(void)
{
    free_abandoned();
    return abandoned_count > 0;
}

void gp_rpc_feed_close(struct gp_rpc_feed *feed)
{
    if (!feed)
        return;
    if (gp_sampler_free(feed->sampler))
        free_feed(feed);
    else
        abandon(feed);
}

/* A view for each kind of row that has a field. */
static int add_views(struct gp_rpc_feed *feed, const char *fields, struct gp_want *want,
                     struct gp_err *err)
{
    struct gp_field_list all;
    int r = gp_field_list_parse(fields, GP_SCOPE_ANY, &all, err);
    if (r < 0)
        return r;
    want->host_only = true;
    for (int s = 0; r == 0 && s < GP_SCOPE__COUNT; s++) {
        struct gp_view *view = &feed->views[feed->view_count];
        view->scope = (enum gp_scope)s;
        r = gp_field_list_of(&all, view->scope, &view->fields);
        if (r < 0 || view->fields.count == 0)
            continue;
        gp_want_view(want, view);
        feed->view_count++;
    }
    gp_field_list_fini(&all);
    return r < 0 ? gp_err_set(err, r, "out of memory") : 0;
}

static struct gp_want want_processes(void)
{
    struct gp_want want = {.mig = true};
    gp_want_rows(&want, GP_SCOPE_PROCESS);
    want.process_names = true;
    gp_metric_set_add(&want.metrics, GP_PID);
    gp_metric_set_add(&want.metrics, GP_MEMORY_UNATTRIBUTED);
    gp_reservation_want(&want.metrics);
    for (int c = 0; c < GP_PROC_COLUMN__COUNT; c++)
        gp_proc_column_want((enum gp_proc_column)c, &want.metrics);
    return want;
}

/* Rates are differences between two samples: takes the first of them. */
static int prime(struct gp_rpc_feed *feed, struct gp_err *err)
{
    const struct timespec gap = gp_clock_timespec(PRIME_MS * GP_NS_PER_MS);
    struct gp_snapshot *snapshot;
    int r = gp_sampler_tick(feed->sampler, &snapshot, err);
    if (r < 0)
        return r;
    gp_snapshot_free(snapshot);
    (void)nanosleep(&gap, NULL);
    return 0;
}

/* What must be sampled; sets the views. */
static int choose(struct gp_rpc_feed *feed, const struct gp_rpc_feed_config *config,
                  struct gp_want *ret, struct gp_err *err)
{
    int r = config->gpus ? gp_selection_parse(config->gpus, &feed->selection, err) : 0;
    if (config->kinds)
        *ret = gp_event_stream_want(config->kinds);
    else if (!config->fields)
        *ret = want_processes();
    else if (r == 0)
        r = add_views(feed, config->fields, ret, err);
    ret->mig = ret->mig || config->mig || gp_selection_names_mig(&feed->selection);
    return r;
}

static int open_sampler(struct gp_rpc_feed *feed, const struct gp_want *want,
                        const struct gp_rpc_feed_config *from, struct gp_err *err)
{
    struct gp_sampler_config config = {
        .selection = &feed->selection,
        .root = from->machine->prefix,
        .timeout_ns = from->timeout_ns,
        .want = *want,
    };
    int r = gp_observed_source(from->machine, &config.source, err);
    return r < 0 ? r : gp_sampler_new(&config, &feed->sampler, err);
}

int gp_rpc_feed_open(const struct gp_rpc_feed_config *config, struct gp_rpc_feed **ret,
                     struct gp_err *err)
{
    free_abandoned();
    if (abandoned_count >= STUCK_MAX)
        return gp_err_set(err, GP_EBUSY,
                          "%u calls hang in the driver; it is asked again when some have returned",
                          abandoned_count);
    struct gp_want want = {.mig = false};
    struct gp_rpc_feed *feed = calloc(1, sizeof(*feed));
    if (!feed)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    int r = choose(feed, config, &want, err);
    if (r == 0)
        r = open_sampler(feed, &want, config, err);
    if (r < 0) {
        gp_rpc_feed_close(feed);
        return r;
    }
    if (!config->kinds && gp_metric_set_has_tier(&want.metrics, GP_TIER_RATE))
        r = prime(feed, err);
    if (r < 0)
        gp_rpc_feed_close(feed);
    else
        *ret = feed;
    return r;
}

struct gp_sampler *gp_rpc_feed_sampler(struct gp_rpc_feed *feed)
{
    return feed->sampler;
}

/* ---- samples ---- */

static json_t *rows_of(const struct gp_rpc_feed *feed, const struct gp_snapshot *snapshot)
{
    json_t *document = gp_json_document(snapshot, "gpulse.sample/1");
    for (size_t i = 0; i < feed->view_count; i++)
        gp_json_set_rows(document, &feed->views[i], snapshot);
    return document;
}

static json_t *processes_of(const struct gp_snapshot *snapshot)
{
    struct gp_procs procs = {.rows = NULL};
    struct gp_procs_options options = {.gpu = -1};
    json_t *document = NULL;
    if (gp_proc_order_parse("memory", &options.order, NULL) == 0 &&
        gp_procs_build(&procs, snapshot, &options) == 0)
        document = gp_proc_list_document(snapshot, &procs);
    gp_procs_fini(&procs);
    return document;
}

int gp_rpc_feed_take(struct gp_rpc_feed *feed, json_t **ret, struct gp_err *err)
{
    struct gp_snapshot *snapshot;
    int r = gp_sampler_tick(feed->sampler, &snapshot, err);
    if (r < 0)
        return r;
    json_t *document = feed->view_count > 0 ? rows_of(feed, snapshot) : processes_of(snapshot);
    if (document)
        (void)json_object_set_new(document, "partial", json_boolean(snapshot->partial));
    feed->is_late = false;
    for (size_t i = 0; i < snapshot->device_count; i++)
        feed->is_late = feed->is_late || snapshot->devices[i].status == GP_STATUS_TIMEOUT;
    gp_snapshot_free(snapshot);
    *ret = document;
    return document ? 0 : gp_err_set(err, GP_ENOMEM, "out of memory");
}

bool gp_rpc_feed_is_late(const struct gp_rpc_feed *feed)
{
    return feed->is_late;
}
