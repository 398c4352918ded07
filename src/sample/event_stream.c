#include "sample/event_stream.h"

#include "base/clock.h"
#include "base/err.h"
#include "model/snapshot.h"
#include "sample/changes.h"
#include "sample/waiter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HELD_NS = 1000000000, /* a change was seen before its event: take the next sample sooner */
    AFTER_NS = 250000000, /* events that arrive together share a sample */
    TAKE_MAX = 64,
    GLANCE_PATIENCE_NS = 50000000,
};

struct run {
    const struct gp_event_stream *stream;
    struct gp_waiter *waiter;
    struct gp_changes changes;
    char host[256];
    uint64_t told;  /* events so far */
    bool has_ended; /* the driver's session, as last seen by the waiter */
    bool is_stuck;  /* whether the hung driver call was reported */
    size_t ill;     /* GPUs that were lost in the last sample */
};

struct gp_want gp_event_stream_want(gp_event_kinds kinds)
{
    struct gp_want want = {.events = kinds};
    gp_changes_want(kinds, &want);
    gp_metric_set_add(&want.metrics, GP_HOST_NAME);
    return want;
}

static gp_event_kinds delivered(void *ctx, unsigned index)
{
    return gp_waiter_kinds(ctx, index);
}

static bool is_complete(const struct run *run)
{
    return run->stream->count && run->told >= run->stream->count;
}

static int deliver(struct run *run, struct gp_err *err)
{
    struct gp_event_list *out = &run->changes.out;
    int r = 0;
    for (size_t i = 0; r == 0 && i < out->count && !is_complete(run); i++) {
        r = run->stream->on_event(run->stream->ctx, &out->items[i], run->host, err);
        run->told += gp_event_table[out->items[i].kind].group != GP_EVENT_GROUP_STREAM;
    }
    out->count = 0;
    if (r == 0 && run->changes.no_memory)
        r = gp_err_set(err, GP_ENOMEM, "out of memory for events");
    return r;
}

/* How many GPUs are lost or the like. One that is only slow may have its time in the next sample.
 */
static size_t count_ill(const struct gp_snapshot *snapshot)
{
    size_t ill = 0;
    for (size_t i = 0; i < snapshot->device_count; i++) {
        const struct gp_device *device = &snapshot->devices[i];
        ill += !device->is_mig && device->status != GP_STATUS_OK &&
               device->status != GP_STATUS_TIMEOUT;
    }
    return ill;
}

static int compare(struct run *run, struct gp_err *err)
{
    struct gp_snapshot *snapshot;
    int r = gp_sampler_tick(run->stream->sampler, &snapshot, err);
    if (r < 0)
        return r;
    run->ill = count_ill(snapshot);
    gp_changes_compare(&run->changes, snapshot, delivered, run->waiter);
    if (!run->host[0] && snapshot->host[GP_HOST_NAME].status == GP_STATUS_OK)
        (void)snprintf(run->host, sizeof(run->host), "%s", snapshot->host[GP_HOST_NAME].s);
    if (run->stream->on_sample)
        r = run->stream->on_sample(run->stream->ctx, snapshot, err);
    gp_snapshot_free(snapshot);
    return r;
}

/* Takes all events that the driver has reported. *ret_sample: a sample is needed now. */
static int take_reports(struct run *run, bool *ret_sample, struct gp_err *err)
{
    struct gp_source_event reports[TAKE_MAX];
    struct gp_waiter_gap gap;
    char text[64];
    uint64_t missed;
    size_t n;
    bool any = false;
    int r;
    do {
        n = gp_waiter_take(run->waiter, reports, TAKE_MAX, &missed);
        any = any || n > 0;
        for (size_t i = 0; i < n; i++)
            *ret_sample = gp_changes_report(&run->changes, &reports[i]) || *ret_sample;
        if (missed) {
            (void)snprintf(text, sizeof(text), "%llu events lost: they arrived too fast",
                           (unsigned long long)missed);
            gp_changes_note(&run->changes, GP_EVENT_MISSED, missed, text);
        }
        while (n < TAKE_MAX && gp_waiter_take_gap(run->waiter, &gap))
            gp_changes_gap(&run->changes, &gap);
        r = deliver(run, err);
    } while (r == 0 && n == TAKE_MAX && !is_complete(run));
    bool ended = gp_waiter_has_ended(run->waiter);
    *ret_sample = *ret_sample || any || (ended && !run->has_ended);
    run->has_ended = ended;
    return r;
}

static void tell_if_stuck(struct run *run)
{
    char text[160];
    double late_s;
    const char *call = gp_waiter_stuck_in(run->waiter, &late_s);
    if (call && !run->is_stuck) {
        (void)snprintf(text, sizeof(text),
                       "the driver's events: no answer for %.0f s (%s); only changes between "
                       "samples are reported",
                       late_s, call);
        gp_changes_note(&run->changes, GP_EVENT_STUCK, 0, text);
    } else if (!call && run->is_stuck) {
        gp_changes_note(&run->changes, GP_EVENT_START, 0,
                        "the driver's events are available again");
    }
    run->is_stuck = call != NULL;
}

/* Takes the first sample, and waits until every GPU was asked for its events, or for the limit. */
static int settle(struct run *run, struct gp_err *err)
{
    int r = compare(run, err);
    uint64_t until_ns = gp_clock_mono_ns() + run->stream->settle_ns;
    while (r == 0 && !gp_waiter_is_settled(run->waiter) && gp_clock_mono_ns() < until_ns) {
        /* nothing is read and the descriptor stays readable, so poll again after a moment */
        uint64_t soon_ns = gp_clock_mono_ns() + 2 * GP_NS_PER_MS;
        r = run->stream->sleep(run->stream->ctx, soon_ns < until_ns ? soon_ns : until_ns, -1);
    }
    return r;
}

/* The stream begins with its start event, even if the first sample already contains events. */
static void put_last_first(struct gp_event_list *list)
{
    if (list->count == 0)
        return;
    const struct gp_event last = list->items[list->count - 1];
    memmove(list->items + 1, list->items, (list->count - 1) * sizeof(*list->items));
    list->items[0] = last;
}

static int begin(struct run *run, struct gp_err *err)
{
    char text[96];
    int r = settle(run, err);
    if (r < 0)
        return r;
    struct gp_waiter_gap before_start;
    while (gp_waiter_take_gap(run->waiter, &before_start))
        ;
    size_t reporting = 0;
    for (size_t i = 0; i < run->changes.seen_count; i++)
        reporting += delivered(run->waiter, gp_changes_gpu(&run->changes, i)) != 0;
    (void)snprintf(text, sizeof(text), "watching %zu GPU%s; the driver reports events for %zu",
                   run->changes.seen_count, run->changes.seen_count == 1 ? "" : "s", reporting);
    gp_changes_note(&run->changes, GP_EVENT_START, 0, text);
    put_last_first(&run->changes.out);
    return deliver(run, err);
}

/* When samples are taken. */
struct pace {
    uint64_t due_ns; /* the next one in turn; it is not postponed by those that are needed sooner */
    uint64_t last_ns;   /* the last one */
    bool is_wanted;     /* one is needed now */
    uint64_t glance_ns; /* the next brief one; UINT64_MAX: none */
};

static uint64_t next_sample_ns(const struct run *run, const struct pace *pace)
{
    uint64_t sooner_ns = pace->is_wanted                        ? pace->last_ns + AFTER_NS
                         : gp_changes_is_holding(&run->changes) ? pace->last_ns + HELD_NS
                                                                : pace->due_ns;
    return sooner_ns < pace->due_ns ? sooner_ns : pace->due_ns;
}

/* The next turn after now; missed ones are skipped. */
static uint64_t turn_after(uint64_t due_ns, uint64_t interval_ns, uint64_t now_ns)
{
    return now_ns < due_ns ? due_ns : due_ns + ((now_ns - due_ns) / interval_ns + 1) * interval_ns;
}

static void next_turn(const struct run *run, struct pace *pace, uint64_t now_ns)
{
    pace->last_ns = now_ns;
    pace->is_wanted = false;
    pace->due_ns = turn_after(pace->due_ns, run->stream->interval_ns, now_ns);
}

static int glance(struct run *run, struct pace *pace, uint64_t now_ns, struct gp_err *err)
{
    struct gp_snapshot *snapshot;
    pace->glance_ns = turn_after(pace->glance_ns, run->stream->glance_ns, now_ns);
    int r = gp_sampler_glance(run->stream->sampler, GLANCE_PATIENCE_NS, &snapshot, err);
    if (r < 0 || !snapshot)
        return r;
    pace->is_wanted = pace->is_wanted || count_ill(snapshot) > run->ill;
    r = run->stream->on_glance(run->stream->ctx, snapshot, err);
    gp_snapshot_free(snapshot);
    return r;
}

static int follow(struct run *run, struct gp_err *err)
{
    const struct gp_event_stream *stream = run->stream;
    uint64_t start_ns = gp_clock_mono_ns();
    uint64_t end_ns = stream->duration_ns ? start_ns + stream->duration_ns : UINT64_MAX;
    struct pace pace = {
        .due_ns = start_ns + stream->interval_ns,
        .last_ns = start_ns,
        .glance_ns = stream->glance_ns ? start_ns + stream->glance_ns : UINT64_MAX,
    };
    int r = begin(run, err);
    while (r == 0 && !is_complete(run)) {
        uint64_t next_ns = next_sample_ns(run, &pace);
        if (pace.glance_ns < next_ns)
            next_ns = pace.glance_ns;
        if (gp_clock_mono_ns() >= end_ns)
            break;
        r = stream->sleep(stream->ctx, next_ns < end_ns ? next_ns : end_ns,
                          gp_waiter_fd(run->waiter));
        if (r == 0)
            r = take_reports(run, &pace.is_wanted, err);
        uint64_t now_ns = gp_clock_mono_ns();
        if (r == 0 && now_ns >= next_sample_ns(run, &pace)) {
            next_turn(run, &pace, now_ns);
            r = compare(run, err);
            tell_if_stuck(run);
            if (r == 0)
                r = deliver(run, err);
        } else if (r == 0 && now_ns >= pace.glance_ns) {
            r = glance(run, &pace, now_ns, err);
        }
    }
    return r;
}

static struct run run_of(const struct gp_event_stream *stream)
{
    struct run run = {.stream = stream, .waiter = gp_sampler_waiter(stream->sampler)};
    gp_changes_init(&run.changes, stream->kinds);
    return run;
}

int gp_event_stream_run(const struct gp_event_stream *stream, struct gp_err *err)
{
    struct run run = run_of(stream);
    int r = follow(&run, err);
    gp_changes_fini(&run.changes);
    return r;
}

int gp_event_stream_sources(const struct gp_event_stream *stream, struct gp_event_source **ret,
                            size_t *ret_count, struct gp_err *err)
{
    struct run run = run_of(stream);
    struct gp_event_source *sources = NULL;
    int r = settle(&run, err);
    const size_t count = run.changes.seen_count;
    if (r == 0 && !(sources = calloc(count + 1, sizeof(*sources))))
        r = gp_err_set(err, GP_ENOMEM, "out of memory");
    for (size_t i = 0; r == 0 && i < count; i++) {
        const unsigned index = gp_changes_gpu(&run.changes, i);
        sources[i] = (struct gp_event_source){index, delivered(run.waiter, index)};
    }
    gp_changes_fini(&run.changes);
    if (r == 0) {
        *ret = sources;
        *ret_count = count;
    }
    return r;
}
