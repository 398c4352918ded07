/* What a thread does inside the driver: everything here can block forever. */
#include "base/clock.h"
#include "model/reading.h"
#include "sample/sampler_internal.h"
#include "sample/waiter.h"

#include <stdio.h>
#include <string.h>

void gp_calls_reopen(struct gp_sampler *s, bool open)
{
    const struct gp_source_ops *ops = s->config.source->ops;
    unsigned count = 0;
    struct gp_err err = {0};
    for (unsigned i = 0; i < s->task_count; i++) {
        ops->detach(s->tasks[i]->device);
        s->tasks[i]->device = NULL;
    }
    ops->close(s->config.source);
    if (!open)
        return;
    int r = ops->open(s->config.source, &count, &err);
    struct gp_value host[GP_HOST__COUNT] = {{{0}, 0, 0}};
    if (r == 0)
        ops->read_host(s->config.source, &gp_assembler_want(&s->assembler)->metrics, host);
    (void)pthread_mutex_lock(&s->lock);
    s->open_result = r;
    s->open_err = err;
    if (r == 0) {
        s->gpu_count = count;
        s->session_ns = gp_clock_mono_ns();
        gp_assembler_set_driver(&s->assembler, host);
    }
    (void)pthread_mutex_unlock(&s->lock);
    if (r == 0 && s->waiter)
        gp_waiter_begin(s->waiter);
}

/* Whether another slot already has this GPU. */
static bool is_claimed(struct gp_sampler *s, const struct gp_sampler_task *t, const char *uuid)
{
    bool claimed = false;
    (void)pthread_mutex_lock(&s->lock);
    for (unsigned i = 0; uuid[0] && i < s->task_count; i++)
        claimed = claimed || (s->tasks[i] != t && strcmp(s->tasks[i]->slot.uuid, uuid) == 0);
    (void)pthread_mutex_unlock(&s->lock);
    return claimed;
}

/* Opens the GPU at this index if it belongs to this slot: it has its UUID, or, while that is
 * unknown, no other slot has it. */
static bool attach_at(struct gp_sampler_task *t, unsigned index, struct gp_reading *reading)
{
    struct gp_sampler *s = t->sampler;
    const struct gp_source_ops *ops = s->config.source->ops;
    struct gp_source_device *device;
    if (index >= s->gpu_count ||
        ops->attach(s->config.source, index, &t->call, &device, reading) < 0)
        return false;
    const char *uuid = ops->uuid(device);
    if (t->slot.uuid[0] ? strcmp(t->slot.uuid, uuid) != 0 : is_claimed(s, t, uuid)) {
        ops->detach(device);
        return false;
    }
    t->device = device;
    return true;
}

static void copy_status(struct gp_reading *to, const struct gp_reading *from)
{
    to->status = from->status;
    to->driver_code = from->driver_code;
    to->refused = from->refused;
    to->needs_reinit = from->needs_reinit;
    memcpy(to->status_text, from->status_text, sizeof(to->status_text));
}

void gp_calls_publish(struct gp_sampler_task *t, struct gp_reading *reading)
{
    if (!reading)
        return;
    struct gp_slot *slot = &t->slot;
    struct gp_reading *earlier = slot->latest;
    slot->latest = reading;
    if (reading->status == GP_STATUS_OK) {
        gp_reading_unref(slot->good);
        slot->good = gp_reading_ref(reading);
        if (!slot->uuid[0])
            (void)snprintf(slot->uuid, sizeof(slot->uuid), "%s",
                           t->sampler->config.source->ops->uuid(t->device));
    }
    gp_reading_unref(t->spare);
    t->spare = gp_reading_recycle(earlier);
}

void gp_calls_publish_glance(struct gp_sampler_task *t, struct gp_reading *reading)
{
    struct gp_reading *earlier = t->glance;
    t->glance = reading;
    gp_reading_unref(t->spare);
    t->spare = gp_reading_recycle(earlier);
}

static struct gp_reading *new_reading(struct gp_sampler_task *t)
{
    struct gp_reading *reading = t->spare ? t->spare : gp_reading_new();
    t->spare = NULL;
    return reading;
}

/* The search for a lost GPU at other indices may hang in another GPU: publishes before it what is
 * known by then. */
static void publish_refusal(struct gp_sampler_task *t, const struct gp_reading *refusal)
{
    struct gp_reading *reading = new_reading(t);
    if (!reading)
        return;
    reading->time_ns = refusal->time_ns;
    copy_status(reading, refusal);
    (void)pthread_mutex_lock(&t->sampler->lock);
    gp_calls_publish(t, reading);
    (void)pthread_mutex_unlock(&t->sampler->lock);
}

/* Opens the GPU of this slot. The driver's order may change when it is reopened, so the UUID is
 * also searched at all other indices. A GPU that refuses to open has no UUID; its refusal only
 * counts for this slot if no other index has the slot's GPU. */
static void attach(struct gp_sampler_task *t, struct gp_reading *reading)
{
    bool is_known = t->slot.uuid[0] != '\0';
    if (attach_at(t, t->slot.index, reading) || (!is_known && reading->status != GP_STATUS_NONE))
        return;
    bool found = false;
    if (reading->status == GP_STATUS_LOST)
        publish_refusal(t, reading);
    for (unsigned i = 0; !found && i < t->sampler->gpu_count; i++) {
        struct gp_reading other = {0};
        found = i != t->slot.index && attach_at(t, i, &other);
        if (found || (is_known && reading->status == GP_STATUS_NONE))
            copy_status(reading, &other);
        gp_arena_fini(&other.arena);
    }
    if (found || reading->status != GP_STATUS_NONE)
        return;
    reading->status = GP_STATUS_LOST;
    reading->needs_reinit = true;
    (void)snprintf(reading->status_text, sizeof(reading->status_text),
                   "the driver no longer lists this GPU");
}

/* Publishes the permanent values as soon as the GPU is open, so that it has a name even if it hangs
 * in its first reading. */
static void publish_identity(struct gp_sampler_task *t)
{
    struct gp_sampler *s = t->sampler;
    struct gp_reading *reading = s->wants_identity ? new_reading(t) : NULL;
    if (!reading)
        return;
    s->config.source->ops->read(t->device, &s->identity, reading);
    (void)pthread_mutex_lock(&s->lock);
    gp_calls_publish(t, reading);
    (void)pthread_mutex_unlock(&s->lock);
}

struct gp_reading *gp_calls_read(struct gp_sampler_task *t)
{
    struct gp_sampler *s = t->sampler;
    struct gp_reading *reading = new_reading(t);
    if (!reading)
        return NULL;
    reading->time_ns = gp_clock_mono_ns();
    if (t->is_glance) { /* the GPU is open */
        const struct gp_want brief = {.metrics = s->config.brief};
        s->config.source->ops->read(t->device, &brief, reading);
        return reading;
    }
    bool is_new = !t->device;
    if (is_new) {
        attach(t, reading);
        if (t->device && !t->slot.good)
            publish_identity(t);
    }
    if (t->device) {
        struct gp_want want = s->wants_more ? s->want : s->less;
        want.lists |= s->more_lists | s->added_lists;
        want.fresh = want.fresh || s->more_lists;
        s->config.source->ops->read(t->device, &want, reading);
    }
    /* Only for a GPU that has responded: the waiter has one thread for all of them. */
    if (t->device && is_new && s->waiter)
        gp_waiter_offer(s->waiter, t->slot.index, t->device);
    return reading;
}
