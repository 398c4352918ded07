/* A few values of each GPU between two ticks. What ticks have found out stays as it is. */
#include "base/clock.h"
#include "base/err.h"
#include "model/snapshot.h"
#include "sample/sampler_internal.h"

#include <stdio.h>

/* Whether the driver may be asked now. */
static bool can_look(const struct gp_sampler *s)
{
    return s->tick > 0 && !s->ahead && !s->looked && !s->closing && s->held &&
           s->session_state == TASK_IDLE && s->open_result == 0 &&
           s->config.source->ops->power(s->config.source) == GP_POWER_FIXED;
}

/* Whether the GPU responded to the last tick, and nobody reads it now. */
static bool is_ready(const struct gp_sampler_task *t)
{
    return t->state == TASK_IDLE && t->device && t->slot.latest &&
           t->slot.latest->status == GP_STATUS_OK;
}

/* What is known of a GPU; values: NULL: nothing but why. */
struct view {
    enum gp_status status;
    const char *text;
    const struct gp_value *values;
};

static struct view view_of(const struct gp_sampler_task *t, uint64_t begin_ns)
{
    const struct gp_reading *latest = t->slot.latest;
    const struct gp_reading *r = t->glance && t->glance->time_ns >= begin_ns ? t->glance : NULL;
    if (r)
        return (struct view){r->status, r->status_text,
                             r->status == GP_STATUS_OK ? r->values : NULL};
    if (latest && latest->status != GP_STATUS_OK)
        return (struct view){latest->status, latest->status_text, NULL};
    return (struct view){GP_STATUS_TIMEOUT, "no answer yet", NULL};
}

static bool add_row(const struct gp_sampler *s, const struct gp_sampler_task *t, uint64_t begin_ns,
                    struct gp_snapshot *snapshot)
{
    const struct view view = view_of(t, begin_ns);
    const struct gp_metric_set *brief = &s->config.brief;
    struct gp_device *device = &snapshot->devices[snapshot->device_count++];
    *device = (struct gp_device){.index = t->slot.index,
                                 .status = view.status,
                                 .status_text = gp_arena_strdup(&snapshot->arena, view.text)};
    bool ok = device->status_text != NULL;
    for (int m = gp_metric_set_next(brief, GP_DEVICE__FIRST); ok && m < GP_PROCESS__FIRST;
         m = gp_metric_set_next(brief, m + 1)) {
        struct gp_value *v = gp_device_value(device->values, (enum gp_metric)m);
        if (!view.values) {
            gp_value_set_absent(v, view.status, NULL, snapshot->mono_ns);
            continue;
        }
        *v = view.values[m - GP_DEVICE__FIRST];
        if (gp_value_is_present(v) && gp_metric_table[m].type == GP_TYPE_TEXT)
            ok = (v->s = gp_arena_strdup(&snapshot->arena, v->s)) != NULL;
    }
    if (gp_metric_set_has(brief, GP_STATUS))
        gp_value_set_text(gp_device_value(device->values, GP_STATUS), gp_device_state(view.status),
                          snapshot->mono_ns);
    if (ok && gp_metric_set_has(brief, GP_STATUS_TEXT))
        gp_value_set_text(gp_device_value(device->values, GP_STATUS_TEXT),
                          view.status == GP_STATUS_OK ? gp_device_state(view.status)
                                                      : device->status_text,
                          snapshot->mono_ns);
    gp_value_set_text(gp_device_value(device->values, GP_UUID),
                      gp_arena_strdup(&snapshot->arena, t->slot.uuid), snapshot->mono_ns);
    return ok && gp_device_value(device->values, GP_UUID)->s;
}

/* Requires the lock. */
static int make_snapshot(const struct gp_sampler *s, uint64_t begin_ns, struct gp_snapshot **ret)
{
    struct gp_snapshot *snapshot = gp_snapshot_new();
    bool ok = snapshot != NULL;
    if (ok) {
        snapshot->mono_ns = gp_clock_mono_ns();
        snapshot->wall_ns = gp_clock_wall_ns();
        snapshot->devices =
            gp_arena_alloc(&snapshot->arena, s->task_count + 1, sizeof(*snapshot->devices));
        ok = snapshot->devices != NULL;
    }
    for (unsigned i = 0; ok && i < s->task_count; i++)
        if (s->tasks[i]->slot.chosen && s->tasks[i]->slot.uuid[0])
            ok = add_row(s, s->tasks[i], begin_ns, snapshot);
    if (!ok)
        gp_snapshot_free(snapshot);
    else
        *ret = snapshot;
    return ok ? 0 : GP_ENOMEM;
}

int gp_sampler_glance(struct gp_sampler *s, uint64_t patience_ns, struct gp_snapshot **ret,
                      struct gp_err *err)
{
    const uint64_t begin_ns = gp_clock_mono_ns();
    int r = 0;
    *ret = NULL;
    if (gp_sampler_is_recorded(s))
        return 0;
    (void)pthread_mutex_lock(&s->lock);
    if (can_look(s)) {
        for (unsigned i = 0; i < s->task_count; i++)
            if (s->tasks[i]->slot.chosen && is_ready(s->tasks[i]))
                gp_pool_queue_glance(s, s->tasks[i]);
        if (s->queued > 0 && gp_pool_employ(s, 1) == 0)
            gp_pool_await_reads(s, begin_ns + patience_ns);
        gp_pool_drop_glances(s);
        gp_pool_give_up_reads(s);
        r = make_snapshot(s, begin_ns, ret);
    }
    (void)pthread_mutex_unlock(&s->lock);
    return r < 0 ? gp_err_set(err, r, "out of memory for the snapshot") : 0;
}
