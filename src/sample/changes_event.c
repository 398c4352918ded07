#include "sample/changes_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct gp_event *gp_changes_append(struct gp_changes *c, struct gp_event_list *list,
                                   const struct gp_event *event)
{
    if (list->count == list->capacity) {
        struct gp_event *grown = gp_grown(list->items, &list->capacity, 16, sizeof(*grown));
        if (!grown) {
            c->no_memory = true;
            return NULL;
        }
        list->items = grown;
    }
    list->items[list->count] = *event;
    return &list->items[list->count++];
}

bool gp_changes_wants(const struct gp_changes *c, enum gp_event_kind kind)
{
    return c->kinds & gp_event_bit(kind);
}

struct gp_event gp_changes_event(const struct gp_seen *seen, enum gp_event_kind kind)
{
    struct gp_event event = seen->event;
    event.kind = kind;
    event.gpu_instance = event.compute_instance = GP_EVENT_NO_INSTANCE;
    return event;
}

void gp_changes_say(struct gp_event *event, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(event->text, sizeof(event->text), fmt, args);
    va_end(args);
}

struct gp_event gp_changes_noticed(const struct gp_changes_round *r, enum gp_event_kind kind)
{
    struct gp_event event = gp_changes_event(r->seen, kind);
    event.wall_ns = r->snapshot->wall_ns;
    event.mono_ns = r->snapshot->mono_ns;
    return event;
}

bool gp_changes_is_same(const struct gp_event *a, const struct gp_event *b)
{
    return a->kind == b->kind && a->index == b->index;
}

void gp_changes_found(const struct gp_changes_round *r, const struct gp_event *event)
{
    struct gp_changes *c = r->c;
    if (!gp_changes_wants(c, event->kind))
        return;
    for (size_t i = 0; i < c->pending.count; i++) {
        if (!gp_changes_is_same(&c->pending.items[i], event))
            continue;
        (void)gp_changes_append(c, &c->found, event); /* changes.c merges them */
        return;
    }
    uint64_t told = r->seen->told[event->kind];
    if (!(r->delivered & gp_event_bit(event->kind)))
        (void)gp_changes_append(c, &c->out, event);
    else if (!told || told + 1 < c->round)
        (void)gp_changes_append(c, &c->found, event);
}
